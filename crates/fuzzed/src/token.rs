//! Continue tokens: whatever comes back is refused, or is a token that comes back the same. The
//! file of the server is compiled as it stands, since its crate is too heavy to fuzz.

#[allow(dead_code, missing_docs, clippy::module_inception)]
#[path = "../../apiserver/src/token.rs"]
mod token;

pub(crate) fn run(bytes: &[u8]) {
    let encoded = base64::Engine::encode(&base64::prelude::BASE64_URL_SAFE_NO_PAD, bytes);
    for text in [std::str::from_utf8(bytes).unwrap_or_default(), &encoded] {
        if let Ok(found) = token::Token::decode(text) {
            let again = token::Token::decode(&found.encode());
            // Escapes may make it longer than a token may be; then it is refused.
            assert!(again.is_err() || again == Ok(found.clone()));
            assert_eq!(token::Token::new(found.revision, &found.key()), found);
        }
    }
}
