//! Findings: what a scan says about an image. The counts are small and read often; the results may
//! be tens of megabytes, which is why they are described here but kept as bytes.

use muster_kind::schema::{Schema, boolean, int64, list, map, number, object, string, timestamp};
use muster_kind::{Column, Kind};

/// The severities that a finding can have, worst first, as summaries name them.
pub const SEVERITIES: &[&str] = &["critical", "high", "medium", "low", "unknown"];

/// The schema of a `report`.
pub fn report() -> Schema {
    object()
        .describe("What was found in the image, and with which knowledge.")
        .field("summary", summary("Findings of the image by severity."))
        .field(
            "results",
            list(result()).describe("Findings, grouped by where they are."),
        )
        .field(
            "scannedAt",
            timestamp().describe("When the SBOM was matched."),
        )
        .field(
            "scanner",
            object()
                .describe("What did the matching.")
                .field("name", string().describe("Name of the scanner."))
                .field("version", string().describe("Version of the scanner.")),
        )
        .field(
            "database",
            object()
                .describe("The vulnerability data that was matched with.")
                .field(
                    "revision",
                    string().describe("Identifies the data, such as a digest."),
                )
                .field(
                    "updatedAt",
                    timestamp().describe("When its makers last changed the data."),
                ),
        )
        .field(
            "vex",
            object()
                .describe("The statements that suppressed findings.")
                .field(
                    "revision",
                    string().describe("Identifies the state of all VEX hubs."),
                ),
        )
        .field(
            "incomplete",
            list(
                object()
                    .describe("A file that should have been understood and was not.")
                    .field("path", string().describe("The file."))
                    .field("reason", string().describe("Why it was not.")),
            )
            .describe("What was not understood; there may be more findings than are shown."),
        )
        .field(
            "notes",
            list(string()).describe("Packages that were not matched, in sentences."),
        )
        .field(
            "unmatched",
            list(unmatched()).describe(
                "Packages that were not matched with vulnerability data, by reason and type. \
                 Empty: all were matched. Missing: an older version wrote the report, and it is not known.",
            ),
        )
        .field(
            "endOfLife",
            string().describe("Last day on which the distribution's release got fixes, if over."),
        )
}

/// Why packages can be left unmatched, as reports name it.
const REASONS: [&str; 4] = ["NoData", "NoRules", "InvalidVersion", "InvalidRange"];

fn unmatched() -> Schema {
    let package = object()
        .describe("A package that was not matched.")
        .field("name", string().describe("Name of the package."))
        .field("version", string().describe("Installed version, if known."))
        .field(
            "advisory",
            string().describe("Advisory whose version range cannot be parsed."),
        );
    object()
        .describe("Packages of one type that were not matched for one reason.")
        .field(
            "reason",
            string().one_of(REASONS).describe(
                "NoData: the data has nothing for the distribution or ecosystem. \
                 NoRules: the distribution or type is not supported. \
                 InvalidVersion: the installed version cannot be parsed. \
                 InvalidRange: the version range of an advisory cannot be parsed.",
            ),
        )
        .field(
            "type",
            string().describe("Package URL type, such as deb; empty if there is no package URL."),
        )
        .field(
            "count",
            int64().at_least(0.0).describe("Number of packages."),
        )
        .field(
            "matchable",
            boolean().describe("A data source exists for these packages."),
        )
        .field("message", string().describe("The reason in words."))
        .field(
            "packages",
            list(package).describe("Some of the packages, 10 at most."),
        )
}

/// Counts by severity. A suppressed finding counts as suppressed and nowhere else.
pub fn summary(about: &str) -> Schema {
    let count = |about: &str| int64().at_least(0.0).describe(about);
    object()
        .describe(about)
        .field("critical", count("Findings of critical severity."))
        .field("high", count("Findings of high severity."))
        .field("medium", count("Findings of medium severity."))
        .field("low", count("Findings of low severity."))
        .field("unknown", count("Findings nobody has rated."))
        .field(
            "suppressed",
            count("Findings that a VEX statement declares harmless here."),
        )
}

/// Adds one column for each count of the summary at `path`.
pub(crate) fn severity_columns(kind: Kind, path: &str) -> Kind {
    let column = |name: &str| {
        let field = name.to_lowercase();
        Column::integer(name, &format!("{path}.{field}"))
    };
    kind.column(column("Critical"))
        .column(column("High"))
        .column(column("Medium"))
        .column(column("Low"))
        .column(column("Unknown"))
        .column(column("Suppressed").wide())
}

fn result() -> Schema {
    object()
        .describe("The findings of one part of the image.")
        .field(
            "target",
            string().describe("The part: a distribution, a file or a manifest."),
        )
        .field(
            "class",
            string().describe("What sort of part it is: os-pkgs, lang-pkgs or binary."),
        )
        .field(
            "type",
            string().describe("The ecosystem of its packages, such as debian or gobinary."),
        )
        .field(
            "vulnerabilities",
            list(vulnerability()).describe("Findings in this part, suppressed ones too."),
        )
}

fn vulnerability() -> Schema {
    let text = |about: &str| string().describe(about);
    object()
        .describe("One vulnerability of one package.")
        .field(
            "cve",
            text("Identifier of the vulnerability, a CVE number where there is one."),
        )
        .field(
            "aliases",
            list(string())
                .describe("Other identifiers of the vulnerability that the advisory declares."),
        )
        .field("title", text("The vulnerability in a line."))
        .field("description", text("The vulnerability in full."))
        .field("packageName", text("Name of the package."))
        .field(
            "packagePath",
            text("File in the image that declares the package."),
        )
        .field("purl", text("Package URL of the package."))
        .field("installedVersion", text("Version found in the image."))
        .field(
            "fixedVersions",
            list(string()).describe("Versions that are free of it."),
        )
        .field(
            "status",
            text("What the vendor does about it, such as fixed or will_not_fix."),
        )
        .field(
            "diffID",
            text("Layer that brought the package, by the digest of its contents."),
        )
        .field(
            "severity",
            string()
                .one_of(["CRITICAL", "HIGH", "MEDIUM", "LOW", "UNKNOWN"])
                .describe("How bad it is."),
        )
        .field("severitySource", text("Who said how bad it is."))
        .field("references", list(string()).describe("Where to read more."))
        .field(
            "cvss",
            map(cvss()).describe("CVSS ratings by who gave them."),
        )
        .field(
            "cwes",
            list(string()).describe("Weaknesses behind it, by CWE number."),
        )
        .field("publishedAt", timestamp().describe("When it became known."))
        .field(
            "modifiedAt",
            timestamp().describe("When its description last changed."),
        )
        .field(
            "knownExploited",
            boolean().describe("It is on the list of exploited vulnerabilities."),
        )
        .field(
            "epssScore",
            number()
                .range(0.0, 1.0)
                .describe("Probability of exploitation within 30 days."),
        )
        .field(
            "epssPercentile",
            number()
                .range(0.0, 1.0)
                .describe("Share of vulnerabilities that score no higher."),
        )
        .field(
            "suppressed",
            boolean().describe("A VEX statement says it does no harm here."),
        )
        .field("vexStatus", vex_status())
}

fn cvss() -> Schema {
    object()
        .describe("One rating.")
        .field("v2vector", string().describe("CVSS 2 vector."))
        .field("v2score", string().describe("CVSS 2 base score."))
        .field("v3vector", string().describe("CVSS 3 vector."))
        .field("v3score", string().describe("CVSS 3 base score."))
        .field("v4vector", string().describe("CVSS 4 vector."))
        .field("v4score", string().describe("CVSS 4 base score."))
}

fn vex_status() -> Schema {
    object()
        .describe("The statement that suppresses the finding.")
        .field(
            "repository",
            string().describe("Where the statement was found."),
        )
        .field(
            "status",
            string().describe("Its verdict: not_affected or fixed."),
        )
        .field("statement", string().describe("Its justification."))
}
