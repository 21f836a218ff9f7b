//! Bundles of certificates in PEM. Only the armour is checked here: that the bytes inside are a
//! certificate anybody can use is found out by whoever connects with it.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

const BEGIN: &str = "-----BEGIN CERTIFICATE-----";
const END: &str = "-----END CERTIFICATE-----";
const SEQUENCE: u8 = 0x30;

/// What is wrong with a bundle.
pub(super) fn fault(bundle: &str) -> Option<String> {
    let mut blocks = 0;
    let mut block: Option<String> = None;
    // Text between the blocks is allowed: many bundles carry comments there.
    for line in bundle.lines().map(str::trim) {
        match (line, &mut block) {
            (BEGIN, None) => {
                blocks += 1;
                block = Some(String::new());
            }
            (END, Some(body)) => {
                if !STANDARD
                    .decode(body)
                    .is_ok_and(|der| der.first() == Some(&SEQUENCE))
                {
                    return Some(format!("block {blocks} must hold a certificate in base64"));
                }
                block = None;
            }
            (BEGIN, Some(_)) | (END, None) => {
                return Some("must have BEGIN and END CERTIFICATE lines in pairs".into());
            }
            (_, Some(body)) => body.push_str(line),
            (_, None) if line.starts_with("-----BEGIN ") => {
                return Some("must hold nothing but certificates".into());
            }
            (_, None) => {}
        }
    }
    match (blocks, block) {
        (_, Some(_)) => Some(format!(
            "block {blocks} must end with an END CERTIFICATE line"
        )),
        (0, None) => Some("must hold at least one certificate in PEM".into()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bundle_is_a_row_of_certificates() {
        let one = format!("{BEGIN}\nMAMC\nAQE=\n{END}\n");
        for (bundle, fine) in [
            (one.clone(), true),
            (format!("# our CA\r\n{one}\n{one}"), true),
            (String::from("certificate"), false),
            (format!("{BEGIN}\n...\n{END}"), false),
            (format!("{BEGIN}\n{END}"), false),
            (format!("{BEGIN}\nMAMC"), false),
            (format!("{one}{END}"), false),
            (format!("{BEGIN}\n{one}"), false),
            (
                format!("{one}-----BEGIN PRIVATE KEY-----\nMAMC\n-----END PRIVATE KEY-----"),
                false,
            ),
        ] {
            assert_eq!(fault(&bundle).is_none(), fine, "{bundle}");
        }
    }
}
