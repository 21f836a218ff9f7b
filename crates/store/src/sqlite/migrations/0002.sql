-- What a VulnerabilityReport found, as a set: nine bytes for each finding.
CREATE TABLE finding (
    namespace TEXT NOT NULL,
    name TEXT NOT NULL,
    entries BLOB NOT NULL,
    PRIMARY KEY (namespace, name)
) STRICT;

-- What all reports that answer to a link found together, each finding counted once.
CREATE TABLE tally (
    link TEXT PRIMARY KEY,
    critical INTEGER NOT NULL,
    high INTEGER NOT NULL,
    medium INTEGER NOT NULL,
    low INTEGER NOT NULL,
    unknown INTEGER NOT NULL,
    suppressed INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
