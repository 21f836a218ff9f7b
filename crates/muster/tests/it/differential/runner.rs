//! Runs one case on one server.

use super::normalise::Normaliser;
use super::request::{Answer, Case, Step, Values};
use anyhow::{Context, Result};
use http::{HeaderMap, Method};
use muster_testkit::http::{Client, Request};
use muster_testkit::wait;
use muster_testkit::watch::{Next, Watch};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::Duration;

/// How long a watch may stay quiet before its trace is closed. Long enough for a busy machine;
/// reached only where an expected event does not come.
const QUIET: Duration = Duration::from_secs(20);

/// How long something eventual may take.
const EVENTUALLY: Duration = Duration::from_secs(60);

/// The headers that clients act on. The others name a server's version, time or connection.
const HEADERS: &[&str] = &[
    "content-type",
    "warning",
    "location",
    "retry-after",
    "cache-control",
    "allow",
    "etag",
];

/// The answers to all steps of a case, normalised.
pub(super) async fn run(client: &Client, case: &Case, index: usize) -> Result<Vec<Answer>> {
    // The same name on both servers, so that it needs no normalising.
    let namespace = format!("case-{index:03}");
    let body = json!({"metadata": {"name": namespace}}).to_string();
    let create = Request::new(Method::POST, "/api/v1/namespaces").body("application/json", body)?;
    let created = client.send(create).await?;
    anyhow::ensure!(
        created.status == 201,
        "no namespace {namespace}: {:?}",
        created.body
    );
    let mut values = Values::new(&namespace);
    let mut answers = Vec::new();
    for step in &case.steps {
        let answer = match step.is_watch() {
            true => watch(client, step, &mut values, &mut answers).await,
            false => ask(client, step, &mut values).await,
        };
        // A server that hangs up must not hide what the other cases show.
        answers.push(answer.unwrap_or_else(|error| Answer {
            step: step.title(),
            body: format!("no answer: {error:#}").into(),
            ..Answer::default()
        }));
    }
    let mut normaliser = Normaliser::default();
    answers
        .iter_mut()
        .for_each(|answer| normaliser.answer(answer));
    Ok(answers)
}

async fn ask(client: &Client, step: &Step, values: &mut Values) -> Result<Answer> {
    let request = step.request(values)?;
    let generate_name = step.generate_name(values);
    let stranger = step.stranger.then(|| client.stranger()).transpose()?;
    let client = stranger.as_ref().unwrap_or(client);
    let response = match step.eventually {
        None => client.send(request.clone()).await?,
        Some(status) => {
            let what = format!("status {status} of {}", step.title());
            wait::until_async(&what, EVENTUALLY, || async {
                let response = client.send(request.clone()).await?;
                Ok((response.status == status).then_some(response))
            })
            .await?
        }
    };
    let body = parse(&response.body);
    for (name, pointer) in &step.save {
        let value = match body.pointer(pointer) {
            Some(Value::String(text)) => text.clone(),
            Some(other) => other.to_string(),
            // The answer itself shows what is wrong; later steps fail in their own way.
            None => format!("no-{name}"),
        };
        values.set(name, value);
    }
    Ok(Answer {
        step: step.title(),
        collection: collection(&request.target),
        generate_name,
        status: response.status.as_u16(),
        headers: headers(&response.headers),
        body: pick(body, &step.pick),
        events: None,
    })
}

/// Opens a watch, does what happens meanwhile, and reads the events.
async fn watch(
    client: &Client,
    step: &Step,
    values: &mut Values,
    answers: &mut Vec<Answer>,
) -> Result<Answer> {
    let request = step.request(values)?;
    let mut answer = Answer {
        step: step.title(),
        collection: collection(&request.target),
        ..Answer::default()
    };
    let mut watch = client.watch(request, QUIET).await?;
    answer.status = watch.status.as_u16();
    answer.headers = headers(&watch.headers);
    for meanwhile in &step.during {
        answers.push(
            ask(client, meanwhile, values)
                .await
                .with_context(|| meanwhile.title())?,
        );
    }
    if watch.status == 200 {
        answer.events = Some(trace(&mut watch, step.events).await?);
    } else {
        answer.body = parse(&watch.rest(QUIET).await?);
    }
    Ok(answer)
}

/// The events of a watch until there are enough, or the server ends it, or nothing more comes.
async fn trace(watch: &mut Watch, enough: Option<usize>) -> Result<Vec<Value>> {
    let mut events = Vec::new();
    while enough.is_none_or(|enough| events.len() < enough) {
        match watch.next(QUIET).await? {
            Next::Line(line) => events.push(parse(&line)),
            Next::End(rest) if rest.is_empty() => {
                events.push(json!("the server ended the watch"));
                break;
            }
            Next::End(rest) => {
                events.push(json!({"the server ended the watch after": parse(&rest)}));
                break;
            }
            Next::Quiet => {
                events.push(json!("nothing more came"));
                break;
            }
        }
    }
    Ok(events)
}

fn parse(bytes: &[u8]) -> Value {
    if bytes.is_empty() {
        return Value::Null;
    }
    serde_json::from_slice(bytes)
        .unwrap_or_else(|_| Value::String(String::from_utf8_lossy(bytes).into_owned()))
}

fn headers(headers: &HeaderMap) -> BTreeMap<String, Vec<String>> {
    let mut kept: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for name in HEADERS {
        for value in headers.get_all(*name) {
            let value = String::from_utf8_lossy(value.as_bytes()).into_owned();
            kept.entry(name.to_string()).or_default().push(value);
        }
    }
    // The value is a hash of the document; that there is one is what matters.
    if let Some(etag) = kept.get_mut("etag") {
        *etag = vec!["<etag>".into()];
    }
    kept
}

/// Follows field names, and `field.path=value` into the items of an array.
fn pick(body: Value, path: &[String]) -> Value {
    path.iter().fold(body, |value, part| {
        let found = match part.split_once('=') {
            None => value.get(part).cloned(),
            Some((field, wanted)) => value.as_array().and_then(|items| {
                let pointer = format!("/{}", field.replace('.', "/"));
                // The core group has an empty name, which is left out.
                let name = |item: &Value| {
                    item.pointer(&pointer)
                        .and_then(Value::as_str)
                        .map(str::to_string)
                };
                let holds = |item: &&Value| name(item).unwrap_or_default() == wanted;
                items.iter().find(holds).cloned()
            }),
        };
        found.unwrap_or(Value::Null)
    })
}

/// The group and resource that a target is about: revisions are only comparable within one.
fn collection(target: &str) -> String {
    let path = target.split('?').next().unwrap_or_default();
    let parts: Vec<&str> = path.trim_matches('/').split('/').collect();
    let (group, rest) = match parts.as_slice() {
        ["api", _, rest @ ..] => ("", rest),
        ["apis", group, _, rest @ ..] => (*group, rest),
        _ => return String::new(),
    };
    let resource = match rest {
        ["namespaces", _, resource, ..] if !["finalize", "status"].contains(resource) => *resource,
        [resource, ..] => *resource,
        [] => "",
    };
    format!("{group}/{resource}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_names_its_collection() {
        for (target, expected) in [
            ("/api/v1/namespaces", "/namespaces"),
            ("/api/v1/namespaces/a", "/namespaces"),
            ("/api/v1/namespaces/a/finalize", "/namespaces"),
            ("/api/v1/namespaces/a/secrets/b?x=y", "/secrets"),
            (
                "/apis/g/v1/namespaces/a/registries/b/status",
                "g/registries",
            ),
            ("/apis/g/v1/vexhubs", "g/vexhubs"),
            ("/version", ""),
        ] {
            assert_eq!(collection(target), expected, "{target}");
        }
    }
}
