//! What was fetched for a policy, told apart by its content: a module's address says nothing of it.

use crate::load::LoadError;
use serde_json::Value;

/// The largest WebAssembly module, in bytes.
pub const LARGEST_MODULE: usize = 256 * 1024 * 1024;
/// The longest text, in bytes.
pub const LONGEST_TEXT: usize = 1024 * 1024;
/// How deep a text may be nested, and how many values it may have.
const DEEPEST: usize = 64;
const MOST_VALUES: usize = 20_000;
/// How WebAssembly begins.
const WASM: &[u8] = b"\0asm";

/// The code of a policy.
#[derive(Clone, Debug, PartialEq)]
pub enum Code {
    /// A WebAssembly module.
    Wasm(Vec<u8>),
    /// A module in Rego.
    Rego(String),
    /// Validations in CEL, in the shape of settings for `builtin:cel`.
    Cel(Value),
}

impl Code {
    /// What these bytes are. A text that begins with `package` is Rego; YAML that has `validations`, by
    /// itself or as the spec of a ValidatingAdmissionPolicy, is CEL.
    pub fn of(bytes: Vec<u8>) -> Result<Code, LoadError> {
        let refuse = |why: String| Err(LoadError::Module(why));
        if bytes.starts_with(WASM) {
            return match bytes.len() > LARGEST_MODULE {
                true => refuse(format!("it is larger than {LARGEST_MODULE} bytes")),
                false => Ok(Code::Wasm(bytes)),
            };
        }
        if bytes.len() > LONGEST_TEXT {
            let why = format!("it is no WebAssembly, and longer than {LONGEST_TEXT} bytes");
            return refuse(why);
        }
        let text = match String::from_utf8(bytes) {
            Ok(text) => text,
            Err(_) => return refuse("it is neither WebAssembly nor a text".into()),
        };
        let text = match text.strip_prefix('\u{feff}') {
            Some(rest) => rest.to_owned(),
            None => text,
        };
        if is_rego(&text) {
            return Ok(Code::Rego(text));
        }
        match read(&text) {
            Ok(value) => cel(value),
            Err(why) => refuse(format!("it is neither WebAssembly, Rego nor CEL: {why}")),
        }
    }
}

/// JSON is YAML too, and read faster.
fn read(text: &str) -> Result<Value, String> {
    if let Ok(value) = serde_json::from_str(text) {
        return Ok(value);
    }
    let options = serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_aliases: 0,
            max_documents: 1,
            max_depth: DEEPEST,
            max_nodes: MOST_VALUES,
        },
        with_snippet: false,
    };
    serde_saphyr::from_str_with_options(text, options).map_err(|error| {
        let told = error.to_string();
        told.lines().next().unwrap_or_default().to_owned()
    })
}

/// Whether the first thing that is no comment is the name of a package.
fn is_rego(text: &str) -> bool {
    let mut lines = text.lines().map(str::trim);
    let first = lines.find(|line| !line.is_empty() && !line.starts_with('#'));
    let rest = first.and_then(|line| line.strip_prefix("package"));
    rest.is_some_and(|rest| rest.starts_with([' ', '\t']))
}

fn cel(value: Value) -> Result<Code, LoadError> {
    let spec = match value.get("kind").and_then(Value::as_str) {
        Some("ValidatingAdmissionPolicy") => value.get("spec").cloned().unwrap_or_default(),
        _ => value,
    };
    let Value::Object(mut fields) = spec else {
        return Err(LoadError::Module("it has no validations".into()));
    };
    if !fields.contains_key("validations") {
        return Err(LoadError::Module("it has no validations".into()));
    }
    // What it judges is said by the policy that names this code, and not by the code.
    for field in ["matchConstraints", "failurePolicy"] {
        fields.remove(field);
    }
    Ok(Code::Cel(Value::Object(fields)))
}
