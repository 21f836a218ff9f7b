//! Names: which strings Kubernetes accepts as object names, labels and finalizers, with its words.

const SUBDOMAIN: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const LABEL: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
const SERVICE: &str = "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')";
const QUALIFIED: &str = "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
const VALUE: &str = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";

fn longer(max: usize) -> String {
    format!("must be no more than {max} characters")
}

fn more_bytes(max: usize) -> String {
    format!("must be no more than {max} bytes")
}

fn edge(byte: u8) -> bool {
    byte.is_ascii_lowercase() || byte.is_ascii_digit()
}

fn is_label(text: &str) -> bool {
    let bytes = text.as_bytes();
    !bytes.is_empty()
        && edge(bytes[0])
        && edge(bytes[bytes.len() - 1])
        && bytes.iter().all(|b| edge(*b) || *b == b'-')
}

/// RFC 1123 subdomain: the rule for most names.
pub fn subdomain(name: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    if name.len() > 253 {
        wrong.push(longer(253));
    }
    if !name.split('.').all(is_label) {
        wrong.push(SUBDOMAIN.into());
    }
    wrong
}

/// RFC 1123 label: the rule for namespaces.
pub fn label(name: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    if name.len() > 63 {
        wrong.push(longer(63));
    }
    if !is_label(name) {
        let dotted = name.contains('.') && name.split('.').all(is_label);
        wrong.push(
            if dotted {
                "must not contain dots"
            } else {
                LABEL
            }
            .into(),
        );
    }
    wrong
}

/// RFC 1035 label: the rule for services.
pub fn service(name: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    if name.len() > 63 {
        wrong.push(longer(63));
    }
    if !is_label(name) || name.as_bytes()[0].is_ascii_digit() {
        wrong.push(SERVICE.into());
    }
    wrong
}

/// The rule for RBAC names: anything that fits in one segment of a path.
pub fn segment(name: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    for bad in [".", ".."] {
        if name == bad {
            wrong.push(format!("may not be '{bad}'"));
        }
    }
    for bad in ["/", "%"] {
        if name.contains(bad) {
            wrong.push(format!("may not contain '{bad}'"));
        }
    }
    wrong
}

/// A label's key: a qualified name, in the words of labels.
pub fn label_key(text: &str) -> Vec<String> {
    qualified_as("a valid label key", text)
}

/// A qualified name `[prefix/]name`: annotation keys, finalizers.
pub fn qualified(text: &str) -> Vec<String> {
    qualified_as("a qualified name", text)
}

fn qualified_as(what: &str, text: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    let name = match text.split_once('/') {
        Some((_, rest)) if rest.contains('/') => {
            let rule = QUALIFIED.trim_start_matches("name part");
            return vec![format!(
                "{what}{rule} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
            )];
        }
        Some((prefix, name)) => {
            if prefix.is_empty() {
                wrong.push("prefix part must be non-empty".into());
            } else {
                wrong.extend(
                    subdomain(prefix)
                        .into_iter()
                        .map(|w| format!("prefix part {w}")),
                );
            }
            name
        }
        None => text,
    };
    if name.is_empty() {
        wrong.push("name part must be non-empty".into());
    } else if name.len() > 63 {
        wrong.push(format!("name part {}", more_bytes(63)));
    }
    if !is_word(name) {
        wrong.push(QUALIFIED.into());
    }
    wrong
}

/// A label's value.
pub fn label_value(text: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    if text.len() > 63 {
        wrong.push(more_bytes(63));
    }
    if !text.is_empty() && !is_word(text) {
        wrong.push(VALUE.into());
    }
    wrong
}

fn is_word(text: &str) -> bool {
    let bytes = text.as_bytes();
    !bytes.is_empty()
        && bytes[0].is_ascii_alphanumeric()
        && bytes[bytes.len() - 1].is_ascii_alphanumeric()
        && bytes
            .iter()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'))
}
