-- One clock per group-resource. Rows are never dropped, so a revision is never given twice.
CREATE TABLE clock (
    id INTEGER PRIMARY KEY,
    resource TEXT NOT NULL UNIQUE,
    rv INTEGER NOT NULL,
    compacted_rv INTEGER NOT NULL
) STRICT;

-- One row per state of an object. The object and its events refer to it. The payload is the last
-- column: what stands before it is read without touching overflow pages.
CREATE TABLE body (
    id INTEGER PRIMARY KEY,
    rv INTEGER NOT NULL,
    revision_at INTEGER NOT NULL,
    form INTEGER NOT NULL,
    facts TEXT,
    blobs BLOB,
    text BLOB NOT NULL
) STRICT;

CREATE TABLE object (
    resource INTEGER NOT NULL,
    namespace TEXT NOT NULL,
    name TEXT NOT NULL,
    uid TEXT NOT NULL,
    rv INTEGER NOT NULL,
    body INTEGER NOT NULL,
    PRIMARY KEY (resource, namespace, name)
) STRICT, WITHOUT ROWID;
CREATE INDEX object_name ON object (resource, name);
CREATE INDEX object_uid ON object (uid);

-- The tables of what can be selected are keyed like the object, so that one value's objects are
-- read in the order of a list and a page needs no sorting.
CREATE TABLE label (
    resource INTEGER NOT NULL,
    key TEXT NOT NULL,
    value TEXT NOT NULL,
    namespace TEXT NOT NULL,
    name TEXT NOT NULL,
    PRIMARY KEY (resource, key, value, namespace, name)
) STRICT, WITHOUT ROWID;

CREATE TABLE field (
    resource INTEGER NOT NULL,
    key TEXT NOT NULL,
    value TEXT NOT NULL,
    namespace TEXT NOT NULL,
    name TEXT NOT NULL,
    PRIMARY KEY (resource, key, value, namespace, name)
) STRICT, WITHOUT ROWID;

CREATE TABLE owner (
    uid TEXT NOT NULL,
    resource INTEGER NOT NULL,
    namespace TEXT NOT NULL,
    name TEXT NOT NULL,
    PRIMARY KEY (uid, resource, namespace, name)
) STRICT, WITHOUT ROWID;

CREATE TABLE event (
    resource INTEGER NOT NULL,
    rv INTEGER NOT NULL,
    type INTEGER NOT NULL,
    namespace TEXT NOT NULL,
    name TEXT NOT NULL,
    body INTEGER NOT NULL,
    before INTEGER,
    time INTEGER NOT NULL,
    PRIMARY KEY (resource, rv)
) STRICT, WITHOUT ROWID;

-- The bytes are apart, because touching a row rewrites all of it.
CREATE TABLE blob (
    id INTEGER PRIMARY KEY,
    sha256 BLOB NOT NULL UNIQUE,
    size INTEGER NOT NULL,
    touched INTEGER NOT NULL
) STRICT;

CREATE TABLE blob_bytes (
    id INTEGER PRIMARY KEY,
    zstd BLOB NOT NULL
) STRICT;

CREATE TABLE body_blob (
    body INTEGER NOT NULL,
    sha256 BLOB NOT NULL,
    PRIMARY KEY (body, sha256)
) STRICT, WITHOUT ROWID;
CREATE INDEX body_blob_sha256 ON body_blob (sha256);
