//! What holds for every evaluator, whatever the policy is written in and wherever it runs.

use muster_policy::cel::CelPolicy;
use muster_policy::module::ModulePolicy;
use muster_policy::rego::{Owner, RegoPolicy};
use muster_policy::remote::RemotePolicy;
use muster_policy::{
    Evaluator, GroupPolicy, GroupVersionKind, Lookup, LookupError, Member, Outcome, Request,
    Verdict,
};
use muster_testkit::policies::{self, Abi};
use muster_wasm::{Options, Sandbox};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long a test waits for a policy that never ends, before it says that nothing stopped the policy.
const HANG: Duration = Duration::from_secs(120);

/// The time of a policy: short where it never ends, so long elsewhere that a busy machine does not matter.
fn time(behaviour: Behaviour) -> Duration {
    Duration::from_secs(if behaviour == Behaviour::Endless {
        1
    } else {
        60
    })
}

/// What a policy does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Behaviour {
    /// Refuses what is called `bad`.
    Picky,
    /// Fails while it judges.
    Broken,
    /// Does not come to an end within its time.
    Endless,
}

#[derive(Debug)]
struct Nothing;

impl Lookup for Nothing {
    fn get(&self, _: &GroupVersionKind, _: Option<&str>, _: &str) -> Result<Value, LookupError> {
        Err(LookupError::permanent("nothing is looked up"))
    }

    fn list(
        &self,
        _: &GroupVersionKind,
        _: Option<&str>,
        _: Option<&str>,
        _: Option<&str>,
    ) -> Result<Value, LookupError> {
        Err(LookupError::permanent("nothing is looked up"))
    }
}

fn wasm(abi: Abi, behaviour: Behaviour) -> Arc<dyn Evaluator> {
    let bytes = match behaviour {
        Behaviour::Picky => policies::forbidding(abi, r#""name":"bad""#, "it is bad"),
        Behaviour::Broken => policies::panicking(abi),
        Behaviour::Endless => policies::spinning(abi),
    };
    let sandbox = Sandbox::new(Options::default()).unwrap();
    let module = Arc::new(sandbox.load(&bytes).unwrap());
    let member = Member {
        module: "m".into(),
        settings: json!({}),
        time: time(behaviour),
        context_aware: Vec::new(),
    };
    Arc::new(ModulePolicy::load(module, &member, Arc::new(Nothing)).unwrap())
}

fn cel(behaviour: Behaviour) -> Arc<dyn Evaluator> {
    let expression = match behaviour {
        Behaviour::Picky => "object.metadata.name != 'bad'".to_owned(),
        Behaviour::Broken => "object.nothing".to_owned(),
        Behaviour::Endless => {
            let list = format!("[{}]", vec!["1"; 200].join(", "));
            let loops = "abcdef".chars();
            loops.fold("true".to_owned(), |inner, name| {
                format!("{list}.all({name}, {inner})")
            })
        }
    };
    let settings = json!({"validations": [{"expression": expression, "message": "it is bad"}]});
    Arc::new(CelPolicy::load(&settings, time(behaviour)).unwrap())
}

fn rego(behaviour: Behaviour) -> Arc<dyn Evaluator> {
    let rule = match behaviour {
        Behaviour::Picky => "deny contains \"it is bad\" if input.request.name == \"bad\"",
        Behaviour::Broken => "deny := 1 if true\ndeny := 2 if true",
        Behaviour::Endless => {
            "n := numbers.range(1, 3000)\ndeny contains \"x\" if { some a in n; some b in n; \
             some c in n; a * b * c == 0 }"
        }
    };
    let source = format!("package p\nimport rego.v1\n{rule}\n");
    Arc::new(RegoPolicy::load(&source, &json!({}), time(behaviour), Owner::default()).unwrap())
}

fn group(behaviour: Behaviour) -> Arc<dyn Evaluator> {
    let members = BTreeMap::from([("one".to_owned(), cel(behaviour))]);
    let expression = muster_api::expression::GroupExpression::parse("one()").unwrap();
    Arc::new(GroupPolicy::new(members, expression, "it is bad".into()))
}

/// A policy server that answers one request on each connection.
fn serve(listener: TcpListener, behaviour: Behaviour) {
    for stream in listener.incoming() {
        let Ok(stream) = stream else { return };
        std::thread::spawn(move || answer(stream, behaviour));
    }
}

fn answer(stream: TcpStream, behaviour: Behaviour) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut length = 0;
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).unwrap_or(0) <= 2 {
            break;
        }
        let line = line.to_lowercase();
        if let Some(value) = line.strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    let review: Value = serde_json::from_slice(&body).unwrap();
    let bad = review["request"]["name"] == "bad";
    let status = match behaviour {
        Behaviour::Picky => json!({"code": 403, "message": "it is bad"}),
        Behaviour::Broken => json!({"code": 500, "message": "it panicked"}),
        // It waits for the client to hang up.
        Behaviour::Endless => return drop(reader.read(&mut [0])),
    };
    let allowed = behaviour == Behaviour::Picky && !bad;
    let mut response = json!({"uid": review["request"]["uid"], "allowed": allowed});
    if !allowed {
        response["status"] = status;
    }
    let review = json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
        "response": response});
    let body = review.to_string();
    let mut stream = stream;
    let _ = write!(
        stream,
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
        body.len()
    );
}

fn remote(runtime: &tokio::runtime::Runtime, behaviour: Behaviour) -> Arc<dyn Evaluator> {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || serve(listener, behaviour));
    let client = reqwest::Client::new();
    let handle = runtime.handle().clone();
    Arc::new(RemotePolicy::new(
        client,
        &address,
        "clusterwide-p",
        time(behaviour),
        handle,
    ))
}

fn pod(name: &str) -> Request {
    let pod = json!({"apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "namespace": "n", "uid": "u"}, "spec": {"containers": []}});
    Request::create("pods", pod)
}

fn holds(name: &str, make: impl Fn(Behaviour) -> Arc<dyn Evaluator>) {
    let picky = make(Behaviour::Picky);
    assert_eq!(picky.judge(&pod("good")), Verdict::pass(), "{name}");
    let verdict = picky.judge(&pod("bad"));
    assert_eq!(
        (verdict.outcome, verdict.message.as_str()),
        (Outcome::Fail, "it is bad"),
        "{name}"
    );
    // What goes wrong is a verdict that says so, and the same every time.
    let broken = make(Behaviour::Broken);
    let verdict = broken.judge(&pod("good"));
    assert_eq!(verdict.outcome, Outcome::Error, "{name}: {verdict:?}");
    assert!(!verdict.message.is_empty(), "{name}");
    assert_eq!(broken.judge(&pod("good")), verdict, "{name}");
    // Nobody waits for a policy longer than its time, or much longer on a busy machine.
    let endless = make(Behaviour::Endless);
    let begun = Instant::now();
    let verdict = endless.judge(&pod("good"));
    assert_eq!(verdict.outcome, Outcome::Error, "{name}: {verdict:?}");
    assert!(begun.elapsed() < HANG, "{name}");
    // None of that harms others that judge meanwhile.
    std::thread::scope(|scope| {
        let judging: Vec<_> = (0..4)
            .map(|number| {
                let (picky, endless) = (picky.clone(), endless.clone());
                scope.spawn(move || match number {
                    0 => endless.judge(&pod("good")).outcome == Outcome::Error,
                    _ => (0..20).all(|_| {
                        picky.judge(&pod("bad")).outcome == Outcome::Fail
                            && picky.judge(&pod("good")).outcome == Outcome::Pass
                    }),
                })
            })
            .collect();
        for thread in judging {
            assert!(thread.join().unwrap(), "{name}");
        }
    });
}

#[test]
fn every_evaluator_accepts_refuses_fails_and_ends() {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    holds("waPC", |behaviour| wasm(Abi::Wapc, behaviour));
    holds("WASI", |behaviour| wasm(Abi::Wasi, behaviour));
    holds("CEL", cel);
    holds("Rego", rego);
    holds("a group", group);
    holds("a policy server", |behaviour| remote(&runtime, behaviour));
}
