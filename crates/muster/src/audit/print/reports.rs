//! The reports that an audit that never ends would keep, as one list. What a policy would change is
//! added here alone: a patch may hold what a reader of reports must not see.

use super::super::judge::Audited;
use super::Found;
use anyhow::Result;
use muster_policy::Verdict;
use muster_policy::report::{Format, Line, report};
use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::Write;

pub(super) fn json(found: Found<'_>, format: Format, out: &mut impl Write) -> Result<()> {
    serde_json::to_writer_pretty(&mut *out, &List { found, format })
        .map_err(std::io::Error::from)?;
    out.write_all(b"\n")?;
    Ok(())
}

pub(super) fn yaml(found: Found<'_>, format: Format, out: &mut impl Write) -> Result<()> {
    serde_saphyr::to_io_writer(out, &List { found, format })?;
    Ok(())
}

struct List<'a> {
    found: Found<'a>,
    format: Format,
}

impl Serialize for List<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(3))?;
        map.serialize_entry("apiVersion", "v1")?;
        map.serialize_entry("kind", "List")?;
        map.serialize_entry("items", &Items(self))?;
        map.end()
    }
}

struct Items<'a>(&'a List<'a>);

impl Serialize for Items<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let List { found, format } = self.0;
        let now = found.now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
        serializer.collect_seq(found.audited.iter().flat_map(|one| {
            let judged = one.is_judged().then(|| of(*found, *format, one));
            let checked = one.checked.as_ref();
            let checked = checked.map(|checked| checked.report(&one.subject, &now));
            judged.into_iter().chain(checked)
        }))
    }
}

fn of(found: Found<'_>, format: Format, audited: &Audited) -> Value {
    let line = |place: usize, verdict: &Verdict| {
        Line::new(
            found.bench.policies[place].policy(),
            verdict,
            found.now.as_second(),
        )
    };
    let pass = Verdict::pass();
    let mut lines: Vec<Line> = Vec::new();
    lines.extend(audited.passed.iter().map(|place| line(*place, &pass)));
    for (place, verdict) in &audited.said {
        let mut line = line(*place, verdict);
        if let Some(patch) = verdict.patch.as_ref().filter(|_| verdict.is_mutation()) {
            let patch = Value::Array(patch.clone()).to_string();
            line.properties.insert("patch".into(), patch);
        }
        lines.push(line);
    }
    report(
        format,
        &audited.subject,
        lines,
        audited.skipped,
        &BTreeMap::new(),
    )
}
