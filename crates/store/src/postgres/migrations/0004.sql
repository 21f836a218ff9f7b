-- Inventories of layers. They never change; `used` is when one was last known to be of use.
CREATE TABLE layer (
    diff_id BYTEA NOT NULL,
    analyzers TEXT COLLATE "C" NOT NULL,
    sha256 BYTEA NOT NULL,
    size BIGINT NOT NULL,
    packed BIGINT NOT NULL,
    used BIGINT NOT NULL,
    zstd BYTEA NOT NULL,
    PRIMARY KEY (diff_id, analyzers)
);

-- It is compressed already.
ALTER TABLE layer ALTER COLUMN zstd SET STORAGE EXTERNAL;

-- Who forgets walks along it, and adds up what all take without touching a row.
CREATE INDEX layer_used ON layer (used, diff_id, analyzers) INCLUDE (packed);
