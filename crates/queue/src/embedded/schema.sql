CREATE TABLE message (
    number INTEGER PRIMARY KEY,
    subject TEXT NOT NULL,
    id TEXT NOT NULL,
    payload BLOB NOT NULL,
    visible INTEGER NOT NULL,
    attempts INTEGER NOT NULL,
    lease INTEGER NOT NULL,
    published INTEGER NOT NULL,
    reason TEXT NOT NULL,
    UNIQUE (subject, id)
) STRICT;

CREATE INDEX message_by_time ON message (subject, visible);

CREATE TABLE finished (
    subject TEXT NOT NULL,
    id TEXT NOT NULL,
    until INTEGER NOT NULL,
    PRIMARY KEY (subject, id)
) STRICT, WITHOUT ROWID;

CREATE INDEX finished_by_time ON finished (until);

CREATE TABLE dead (
    number INTEGER PRIMARY KEY,
    subject TEXT NOT NULL,
    id TEXT NOT NULL,
    payload BLOB NOT NULL,
    reason TEXT NOT NULL,
    tries INTEGER NOT NULL,
    at INTEGER NOT NULL
) STRICT;

CREATE INDEX dead_by_subject ON dead (subject, number);
