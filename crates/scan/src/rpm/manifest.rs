//! The list of packages that images without a package manager have in place of a database: one
//! line for each, as rpm was asked to print it, its fields parted by tabs.

use super::header::source;
use crate::package::{Package, Reading};

/// Reads `var/lib/rpmmanifest/container-manifest-2`.
pub fn manifest(contents: &[u8]) -> Reading {
    let text = String::from_utf8_lossy(contents);
    let mut reading = Reading::default();
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        let fields: Vec<&str> = line.split('\t').collect();
        let [name, version, _, _, vendor, _, _, architecture, epoch, file] = fields.as_slice()
        else {
            let problem = format!("a line of the package list has {} fields", fields.len());
            reading.problems.push(problem);
            // One is enough to say that the list is of another form.
            break;
        };
        let epoch = match *epoch {
            "0" | "" | "(none)" => String::new(),
            epoch => format!("{epoch}:"),
        };
        let given = |text: &str| (!text.is_empty() && text != "(none)").then(|| text.to_owned());
        reading.packages.push(Package {
            architecture: given(architecture),
            vendor: given(vendor),
            source: source(file, &epoch),
            ..Package::new(*name, format!("{epoch}{version}"))
        });
    }
    reading
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_of_packages_is_read() {
        let reading = manifest(
            b"openssl\t1.1.1k-17.cm2\t1\t2\tMicrosoft Corporation\t(none)\t5\tx86_64\t0\topenssl-1.1.1k-17.cm2.src.rpm\n\
              bind-libs\t9.16-1.cm2\t1\t2\t(none)\t(none)\t5\tnoarch\t32\tbind-9.16-1.cm2.src.rpm\n",
        );
        let [openssl, bind] = reading.packages.as_slice() else {
            panic!("{reading:?}");
        };
        assert_eq!(openssl.version, "1.1.1k-17.cm2");
        assert_eq!(openssl.architecture.as_deref(), Some("x86_64"));
        assert_eq!(openssl.vendor.as_deref(), Some("Microsoft Corporation"));
        assert_eq!(openssl.source_version(), "1.1.1k-17.cm2");
        assert_eq!(bind.version, "32:9.16-1.cm2");
        assert_eq!(
            (bind.source_name(), bind.source_version()),
            ("bind", "32:9.16-1.cm2")
        );
        assert_eq!(manifest(b"a\tb\nc\td\n").problems.len(), 1);
    }
}
