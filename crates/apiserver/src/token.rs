//! Continue tokens: where a list goes on, and at which revision. Opaque to clients, hostile when
//! they come back.

use crate::store::Key;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use muster_kind::Status;
use serde::{Deserialize, Serialize};

/// What a token says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Token {
    #[serde(rename = "v", default)]
    form: String,
    /// The revision the pages show; 0 goes on with whatever is there now.
    #[serde(rename = "rv", default)]
    pub revision: u64,
    #[serde(rename = "ns", default)]
    namespace: String,
    #[serde(default)]
    name: String,
}

const FORM: &str = "muster/1";

impl Token {
    /// A token that goes on behind `key`.
    pub fn new(revision: u64, key: &Key) -> Self {
        Token {
            form: FORM.into(),
            revision,
            namespace: key.namespace.clone(),
            name: key.name.clone(),
        }
    }
    /// The key behind which the list goes on.
    pub fn key(&self) -> Key {
        Key {
            namespace: self.namespace.clone(),
            name: self.name.clone(),
        }
    }
    /// The token as clients carry it.
    pub fn encode(&self) -> String {
        URL_SAFE_NO_PAD.encode(serde_json::to_vec(self).unwrap_or_default())
    }
    /// Reads a token.
    pub fn decode(text: &str) -> Result<Self, Status> {
        let bad = |why: String| {
            Status::bad_request(format!(
                "invalid continue token: continue key is not valid: {why}"
            ))
        };
        if text.len() > 2048 {
            return Err(bad("it is too long".into()));
        }
        let bytes = URL_SAFE_NO_PAD
            .decode(text)
            .map_err(|error| bad(error.to_string()))?;
        let token: Token =
            serde_json::from_slice(&bytes).map_err(|error| bad(error.to_string()))?;
        if token.form != FORM {
            return Err(bad(format!(
                "server does not recognize this encoded version {}",
                token.form
            )));
        }
        Ok(token)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_comes_back_as_it_went() {
        let key = Key {
            namespace: "a".into(),
            name: "b".into(),
        };
        let token = Token::new(7, &key);
        assert_eq!(Token::decode(&token.encode()).unwrap(), token);
        assert_eq!(token.key(), key);
    }

    #[test]
    fn a_forged_token_is_a_bad_request() {
        for bad in ["", "x", "eyJ2IjoxfQ", "%%%", &"A".repeat(5000)] {
            assert_eq!(Token::decode(bad).unwrap_err().code, 400);
        }
    }
}
