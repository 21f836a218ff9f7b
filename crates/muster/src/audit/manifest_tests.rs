use super::*;

/// Each document in a word: its name and its line, or what is wrong with it.
fn told(text: &str) -> Vec<String> {
    let read = read("f.yaml", text).into_iter();
    read.map(|read| match read {
        Read::Object(one) => {
            let name = one.object["metadata"]["name"].as_str().unwrap_or("?");
            format!("{name} {}", one.origin)
        }
        Read::Other(one) => format!("other {}", one.origin),
        Read::Broken(why) => why,
    })
    .collect()
}

fn pod(name: &str) -> String {
    format!("apiVersion: v1\nkind: Pod\nmetadata:\n  name: {name}\n")
}

#[test]
fn each_document_is_read_by_itself_and_knows_its_line() {
    let (a, b) = (pod("a"), pod("b"));
    for (text, expected) in [
        (a.clone(), &["a f.yaml:1"][..]),
        (format!("---\n{a}---\n{b}"), &["a f.yaml:2", "b f.yaml:7"]),
        (
            format!("# why\n\n---\n# more\n{a}...\n{b}"),
            &["a f.yaml:5", "b f.yaml:10"],
        ),
        (format!("%YAML 1.2\n---\n{a}"), &["a f.yaml:3"]),
        (format!("\u{feff}{a}"), &["a f.yaml:1"]),
        (
            format!("{a}---\r\n---\r\n# nothing\n--- \n"),
            &["a f.yaml:1"],
        ),
        (format!("--- # first\n{a}"), &["a f.yaml:2"]),
        (String::new(), &[]),
        ("replicas: 1\n".into(), &["other f.yaml:1"]),
        (
            "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\n".into(),
            &["other f.yaml:1"],
        ),
        (
            format!("- a\n---\nkind: Pod\n---\napiVersion: v1\n---\n{b}"),
            &[
                "f.yaml, document 1: is no object: it has no fields",
                "f.yaml, document 2: names no apiVersion",
                "f.yaml, document 3: names no kind",
                "b f.yaml:7",
            ],
        ),
    ] {
        assert_eq!(told(&text), expected, "{text:?}");
    }
}

#[test]
fn a_mistake_is_told_with_its_line_in_the_file() {
    let text = format!("{}---\na: b\n c: d\n---\n{}", pod("a"), pod("b"));
    let told = told(&text);
    assert_eq!(
        (told.len(), told[0].as_str(), told[2].as_str()),
        (3, "a f.yaml:1", "b f.yaml:9")
    );
    assert!(
        told[1].starts_with("f.yaml, document 2: line 7: "),
        "{}",
        told[1]
    );
}

#[test]
fn json_is_read_too_one_document_after_the_other() {
    let text = "{\"apiVersion\": \"v1\", \"kind\": \"Pod\",\n \"metadata\": {\"name\": \"a\"}}\n\n\
                {\"apiVersion\": \"v1\", \"kind\": \"Pod\", \"metadata\": {\"name\": \"b\"}}\n";
    assert_eq!(told(text), ["a f.yaml:1", "b f.yaml:4"]);
    // A mapping in the flow style of YAML begins the same way.
    let text = "{apiVersion: v1, kind: Pod, metadata: {name: a}}";
    assert_eq!(told(text), ["a f.yaml:1"]);
}

#[test]
fn lists_are_taken_apart() {
    let text = "\
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: Pod, metadata: {name: a}}
- {kind: Pod}
- {apiVersion: v1, kind: List, items: []}
---
apiVersion: v1
kind: PodList
items:
- metadata: {name: b}
";
    assert_eq!(
        told(text),
        [
            "a f.yaml:1",
            "f.yaml, document 1: names no apiVersion",
            "f.yaml, document 1: a list within a list",
            "b f.yaml:8",
        ]
    );
}

#[test]
fn hostile_documents_are_refused_and_cost_no_other() {
    let mut bomb = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x]\n");
    for level in 1..12 {
        let before = format!("*a{}", level - 1);
        bomb += &format!("a{level}: &a{level} [{}]\n", vec![before; 9].join(", "));
    }
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let deep_json = format!("{{\"a\": {}{}}}", "[".repeat(100_000), "]".repeat(100_000));
    let itself = "a: &a\n  b: *a\n".to_owned();
    for hostile in [bomb, deep, deep_json, itself] {
        let text = format!("{}---\n{hostile}\n---\n{}", pod("a"), pod("b"));
        let told = told(&text);
        assert_eq!(told.len(), 3, "{told:?}");
        assert!(told[1].starts_with("f.yaml, document 2: "), "{told:?}");
        assert!(
            told[0].starts_with("a ") && told[2].starts_with("b "),
            "{told:?}"
        );
        assert!(
            read("f.yaml", &hostile)
                .iter()
                .all(|one| matches!(one, Read::Broken(_)))
        );
    }
}
