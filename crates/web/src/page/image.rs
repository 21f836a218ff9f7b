//! One image of one platform: its findings, its packages, its layers, and who runs it.

use super::workload::{fixed, marks, users};
use super::workloads::Line as User;
use crate::address::{Filter, Route};
use crate::carrier::Users;
use crate::chart;
use crate::finding::{Finding, Findings};
use crate::layout::Framed;
use crate::parts::{self, Offers, number, some};
use crate::read::{self, ReadError};
use crate::reader::{LeftOut, Reader, Where};
use crate::upgrade::{Counts, rated};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use jiff::Timestamp;
use maud::{Markup, html};
use muster_api::{image, link};
use serde::Deserialize;
use serde_json::{Value, json};

/// The parts of the page.
const PARTS: [(&str, &str); 4] = [
    ("", "Findings"),
    ("packages", "Packages"),
    ("layers", "Layers"),
    ("workloads", "Workloads"),
];

/// What one part of the page shows.
enum Part {
    Findings(Vec<Finding>),
    /// None if there is no bill.
    Packages(Option<Vec<Package>>),
    Layers(Vec<Layer>),
    Workloads(Vec<User>),
}

/// A package of a bill of materials.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "camelCase", default)]
struct Package {
    name: String,
    version_info: String,
    license_declared: String,
    primary_package_purpose: String,
    external_refs: Vec<Reference>,
}

#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "camelCase", default)]
struct Reference {
    reference_type: String,
    reference_locator: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Bill {
    spdx: Spdx,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Spdx {
    packages: Vec<Package>,
}

/// An Image.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Found {
    image_metadata: Value,
    layers: Option<Vec<Layer>>,
}

/// A layer of an image.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(default)]
struct Layer {
    command: String,
    digest: String,
    #[serde(rename = "diffID")]
    diff_id: String,
    /// How many findings came with it.
    #[serde(skip)]
    findings: usize,
}

/// What the page shows.
pub(crate) struct View {
    namespace: String,
    name: String,
    image: String,
    platform: String,
    digest: String,
    /// None if it is not scanned yet.
    counts: Option<Counts>,
    suppressed: usize,
    scanned_at: Option<String>,
    end_of_life: Option<String>,
    notes: Vec<String>,
    part: Part,
    left_out: LeftOut,
}

pub(crate) async fn load(
    reader: &Reader,
    namespace: &str,
    name: &str,
    filter: &Filter,
) -> Result<Option<View>, ReadError> {
    let place = Some(namespace);
    let mut left_out = LeftOut::default();
    let mut allowed = |error: ReadError| match error.code() {
        Some(403) => {
            left_out.forbidden = true;
            Ok(())
        }
        _ => Err(error),
    };
    let found = match read::get::<Found>(&reader.client, read::IMAGES, place, name).await {
        Ok(found) => found,
        Err(error) => allowed(error).map(|()| None)?,
    };
    let report = match read::get::<Findings>(&reader.client, read::FINDINGS, place, name).await {
        Ok(report) => report,
        Err(error) => allowed(error).map(|()| None)?,
    };
    if found.is_none() && report.is_none() {
        return Ok(None);
    }
    let metadata = found.as_ref().map(|found| found.image_metadata.clone());
    let metadata = metadata.unwrap_or_else(|| {
        let report = report.as_ref();
        report.map_or(Value::Null, |report| report.metadata().clone())
    });
    let about = json!({"metadata": {"namespace": namespace}, "imageMetadata": metadata});
    let text = |value: Value| value.as_str().unwrap_or_default().to_owned();
    let mut view = View {
        namespace: namespace.into(),
        name: name.into(),
        image: text(image::reference(&about)),
        platform: text(image::platform(&about)),
        digest: text(metadata["digest"].clone()),
        counts: None,
        suppressed: 0,
        scanned_at: None,
        end_of_life: None,
        notes: Vec::new(),
        part: Part::Layers(Vec::new()),
        left_out,
    };
    let mut findings = Vec::new();
    if let Some(report) = report {
        if let Some(report) = &report.report {
            view.scanned_at = report.scanned_at.clone();
            view.end_of_life = report.end_of_life.clone();
            view.notes = report.notes.clone().unwrap_or_default();
        }
        findings = report.findings();
        let mut counts = Counts::default();
        for finding in &findings {
            match finding.suppressed {
                true => view.suppressed += 1,
                false => counts.count(rated(&finding.severity), 1),
            }
        }
        view.counts = Some(counts);
    }
    view.part = match filter.show.as_str() {
        "packages" => Part::Packages(packages(reader, namespace, name, filter, &mut view).await?),
        "layers" => {
            let layers = found.and_then(|found| found.layers).unwrap_or_default();
            Part::Layers(with_findings(layers, &findings))
        }
        "workloads" => {
            let workloads = reader.workloads(Where::Anywhere).await?;
            view.left_out = view.left_out.and(workloads.left_out);
            let running = Users::of(&workloads.items);
            Part::Workloads(users(&running, &link::answered(&about)))
        }
        _ => Part::Findings(wanted(findings, filter)),
    };
    Ok(Some(view))
}

async fn packages(
    reader: &Reader,
    namespace: &str,
    name: &str,
    filter: &Filter,
    view: &mut View,
) -> Result<Option<Vec<Package>>, ReadError> {
    let bill = read::get::<Bill>(&reader.client, read::BILLS, Some(namespace), name).await;
    let bill = match bill {
        Ok(bill) => bill,
        Err(error) if error.code() == Some(403) => {
            view.left_out.forbidden = true;
            None
        }
        Err(error) => return Err(error),
    };
    Ok(bill.map(|bill| {
        let mut packages = bill.spdx.packages;
        // The image itself is a package of its bill, and so is its system.
        packages.retain(|package| {
            package.purl().is_some() && filter.finds(&[&package.name, &package.version_info])
        });
        packages.sort_by(|a, b| (&a.name, &a.version_info).cmp(&(&b.name, &b.version_info)));
        packages
    }))
}

impl Package {
    fn purl(&self) -> Option<&str> {
        let mut references = self.external_refs.iter();
        let purl = references.find(|reference| reference.reference_type == "purl")?;
        let purl = purl.reference_locator.as_str();
        (!purl.starts_with("pkg:oci/")).then_some(purl)
    }

    /// What sort of package it is.
    fn kind(&self) -> &str {
        let purl = self.purl().and_then(|purl| purl.strip_prefix("pkg:"));
        let kind = purl.and_then(|purl| purl.split('/').next());
        kind.unwrap_or_default()
    }
}

fn with_findings(mut layers: Vec<Layer>, findings: &[Finding]) -> Vec<Layer> {
    for layer in &mut layers {
        let came = |finding: &&Finding| {
            let from = finding.diff_id.as_deref();
            !finding.suppressed && !layer.diff_id.is_empty() && from == Some(&layer.diff_id)
        };
        layer.findings = findings.iter().filter(came).count();
    }
    layers
}

fn wanted(mut findings: Vec<Finding>, filter: &Filter) -> Vec<Finding> {
    findings.retain(|finding| {
        filter.finds(&[&finding.cve, &finding.package_name, &finding.title])
            && filter
                .severity
                .is_none_or(|least| rated(&finding.severity) >= least)
            && (!filter.fixable || (!finding.fixed_versions.is_empty() && !finding.suppressed))
    });
    findings.sort_by(|a, b| {
        let bad = |one: &Finding| (!one.suppressed, rated(&one.severity));
        let name = |one: &Finding| (one.cve.clone(), one.package_name.clone());
        bad(b).cmp(&bad(a)).then_with(|| name(a).cmp(&name(b)))
    });
    findings
}

pub(crate) fn draw(view: &View, filter: &Filter, now: Timestamp) -> Framed {
    let route = Route::Image {
        namespace: view.namespace.clone(),
        name: view.name.clone(),
    };
    let shown = match &view.part {
        Part::Findings(_) => "",
        Part::Packages(_) => "packages",
        Part::Layers(_) => "layers",
        Part::Workloads(_) => "workloads",
    };
    let main = html! {
        p class="crumbs" { a href=(Route::Images.path()) { "Images" } " / " (view.namespace) }
        h1 class="image" { (view.image) " " span class="quiet" { (view.platform) } }
        (summary(view, now))
        (parts::left_out(view.left_out))
        nav class="tabs" aria-label="Parts of the image" {
            @for (key, title) in PARTS {
                @let filter = Filter { show: key.into(), ..Filter::default() };
                a href={ (route.path()) (filter.query()) } aria-current=[(key == shown).then_some("page")] { (title) }
            }
        }
        @match &view.part {
            Part::Findings(findings) => {
                (parts::filters(&route, filter, Offers { severity: true, fixable: true, ..Offers::default() }))
                @if view.counts.is_none() {
                    p class="empty" { "This image is not scanned yet." }
                } @else if findings.is_empty() {
                    (parts::nothing(filter, "Nothing was found in this image."))
                } @else {
                    (finding_table(parts::shown(findings, filter)))
                    (parts::pager(&route, filter, findings))
                }
            }
            Part::Packages(None) => p class="empty" { "There is no bill of materials of this image." },
            Part::Packages(Some(packages)) => {
                (parts::filters(&route, filter, Offers::default()))
                p class="lead" { (some(packages.len(), "package", "packages")) }
                @if packages.is_empty() { (parts::nothing(filter, "The image has no packages that are understood.")) } @else {
                    (package_table(parts::shown(packages, filter)))
                    (parts::pager(&route, filter, packages))
                }
            }
            Part::Layers(layers) => (layer_table(layers)),
            Part::Workloads(users) => (user_table(users)),
        }
    };
    Framed {
        title: view.image.clone(),
        main,
    }
}

fn summary(view: &View, now: Timestamp) -> Markup {
    html! {
        div class="card summary" {
            @if let Some(counts) = &view.counts {
                (chart::ring(counts))
                ul class="legend" {
                    @for (count, severity) in counts.each() {
                        li { (parts::severity(severity)) " " b { (number(count)) } }
                    }
                    @if view.suppressed > 0 {
                        li { span class="severity suppressed" { "Suppressed" } " " b { (number(view.suppressed)) } }
                    }
                }
            }
            dl class="facts" {
                div { dt { "Scanned" } dd { @if view.counts.is_some() { (parts::ago(view.scanned_at.as_deref(), now)) } @else { "not yet" } } }
                @if let Some(day) = &view.end_of_life {
                    div { dt { "Release" } dd { span class="state bad" { "without fixes since " (day) } } }
                }
                div { dt { "Digest" } dd class="digest" { (view.digest) } }
                @for note in view.notes.iter().take(3) { div { dt { "Note" } dd { (note) } } }
            }
        }
    }
}

fn finding_table(findings: &[Finding]) -> Markup {
    html! {
        div class="scroll" {
            table {
                caption class="hidden" { "Findings, worst first" }
                thead { tr {
                    th scope="col" { "Severity" } th scope="col" { "Vulnerability" } th scope="col" { "Package" }
                    th scope="col" { "Installed" } th scope="col" { "Fixed in" } th scope="col" { "Where" }
                } }
                tbody {
                    @for finding in findings {
                        tr class=[finding.suppressed.then_some("suppressed")] {
                            td { (parts::severity(rated(&finding.severity))) (marks(finding)) }
                            th scope="row" { (parts::vulnerability(&finding.cve)) div class="quiet title" { (finding.title) } }
                            td { (finding.package_name) }
                            td class="version" { (finding.installed_version) }
                            td class="version" { (fixed(finding)) }
                            td class="path" { @if finding.package_path.is_empty() { (finding.kind) } @else { (finding.package_path) } }
                        }
                    }
                }
            }
        }
    }
}

fn package_table(packages: &[Package]) -> Markup {
    html! {
        div class="scroll" {
            table {
                caption class="hidden" { "Packages of the image" }
                thead { tr { th scope="col" { "Package" } th scope="col" { "Version" } th scope="col" { "Type" } th scope="col" { "License" } } }
                tbody {
                    @for package in packages {
                        tr {
                            th scope="row" { (package.name) }
                            td class="version" { (package.version_info) }
                            td { (package.kind()) }
                            td { @if !matches!(package.license_declared.as_str(), "" | "NOASSERTION" | "NONE") { (package.license_declared) } }
                        }
                    }
                }
            }
        }
    }
}

fn layer_table(layers: &[Layer]) -> Markup {
    html! {
        @if layers.is_empty() { p class="empty" { "Nothing is known of this image's layers." } } @else {
            div class="scroll" {
                table {
                    caption class="hidden" { "Layers of the image, lowest first" }
                    thead { tr { th scope="col" class="count" { "Layer" } th scope="col" { "Made by" } th scope="col" class="count" { "Findings" } th scope="col" { "Digest" } } }
                    tbody {
                        @for (at, layer) in layers.iter().enumerate() {
                            tr {
                                th scope="row" class="count" { (at + 1) }
                                td class="command" { (command(&layer.command)) }
                                td class="count" { (number(layer.findings)) }
                                td class="digest" { (layer.digest) }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// The build step, which is written in base64; what is not is shown as it is.
fn command(written: &str) -> String {
    let bytes = BASE64_STANDARD.decode(written).ok();
    let text = bytes.and_then(|bytes| String::from_utf8(bytes).ok());
    text.unwrap_or_else(|| written.into())
}

fn user_table(users: &[User]) -> Markup {
    html! {
        @if users.is_empty() { p class="empty" { "No workload that you may see runs this image." } } @else {
            div class="scroll" {
                table {
                    caption class="hidden" { "Workloads that run the image" }
                    thead { tr { th scope="col" { "Workload" } th scope="col" { "Namespace" } th scope="col" class="wide" { "All its findings" } } }
                    tbody {
                        @for user in users.iter().take(5 * parts::ROWS) {
                            tr {
                                th scope="row" { (user.link()) }
                                td { (user.namespace) }
                                td class="wide" { (chart::bar(&user.counts, super::workloads::longest(users))) }
                            }
                        }
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_build_step_is_read_and_what_is_none_is_shown_as_it_is() {
        assert_eq!(command("UlVOIG1ha2U="), "RUN make");
        assert_eq!(command("/bin/sh <x>"), "/bin/sh <x>");
    }

    #[test]
    fn every_part_of_the_page_shows_strange_things_as_text() {
        let strange = "<script>x</script>";
        let finding = Finding {
            cve: strange.into(),
            title: strange.into(),
            package_name: strange.into(),
            fixed_versions: vec![strange.into()],
            package_path: strange.into(),
            severity: strange.into(),
            ..Finding::default()
        };
        let package = Package {
            name: strange.into(),
            license_declared: strange.into(),
            ..Package::default()
        };
        let layer = Layer {
            command: strange.into(),
            digest: strange.into(),
            ..Layer::default()
        };
        for part in [
            Part::Findings(vec![finding]),
            Part::Packages(Some(vec![package])),
            Part::Packages(None),
            Part::Layers(vec![layer]),
            Part::Workloads(Vec::new()),
        ] {
            let view = View {
                namespace: "a".into(),
                name: "b".into(),
                image: strange.into(),
                platform: strange.into(),
                digest: strange.into(),
                counts: Some(Counts::default()),
                suppressed: 1,
                scanned_at: Some(strange.into()),
                end_of_life: Some(strange.into()),
                notes: vec![strange.into()],
                part,
                left_out: LeftOut::default(),
            };
            let page = draw(&view, &Filter::default(), Timestamp::UNIX_EPOCH);
            let page = page.main.into_string();
            assert!(!page.contains("<script"), "{page}");
        }
    }

    #[test]
    fn a_finding_is_counted_with_the_layer_that_brought_it() {
        let layer = |diff: &str| Layer {
            diff_id: diff.into(),
            ..Layer::default()
        };
        let finding = |diff: Option<&str>, suppressed| Finding {
            diff_id: diff.map(str::to_owned),
            suppressed,
            ..Finding::default()
        };
        let findings = [
            finding(Some("a"), false),
            finding(Some("a"), true),
            finding(None, false),
        ];
        let layers = with_findings(vec![layer("a"), layer("b"), layer("")], &findings);
        let counts: Vec<usize> = layers.iter().map(|layer| layer.findings).collect();
        assert_eq!(counts, [1, 0, 0]);
    }
}
