-- One clock per group-resource. Rows are never dropped, so a revision is never given twice. A row
-- changes with every write: room beside it keeps its versions on one page.
CREATE TABLE clock (
    id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    resource TEXT COLLATE "C" NOT NULL UNIQUE,
    rv BIGINT NOT NULL,
    compacted_rv BIGINT NOT NULL
) WITH (fillfactor = 10, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);

-- One row per state of an object. The object and its events refer to it. Text of some size comes
-- compressed already, so the engine shall not try again.
CREATE TABLE body (
    id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    rv BIGINT NOT NULL,
    revision_at BIGINT NOT NULL,
    form BIGINT NOT NULL,
    facts TEXT COLLATE "C",
    blobs BYTEA,
    text BYTEA NOT NULL
) WITH (toast_tuple_target = 4080);
ALTER TABLE body ALTER COLUMN text SET STORAGE EXTERNAL;

CREATE TABLE object (
    resource BIGINT NOT NULL,
    namespace TEXT COLLATE "C" NOT NULL,
    name TEXT COLLATE "C" NOT NULL,
    uid TEXT COLLATE "C" NOT NULL,
    rv BIGINT NOT NULL,
    body BIGINT NOT NULL,
    PRIMARY KEY (resource, namespace, name)
) WITH (fillfactor = 80);
-- Objects of one name are read in the order of a list too.
CREATE INDEX object_name ON object (resource, name, namespace);
CREATE INDEX object_uid ON object (uid);

-- The tables of what can be selected are keyed like the object, so that one value's objects are
-- read in the order of a list and a page needs no sorting.
CREATE TABLE label (
    resource BIGINT NOT NULL,
    key TEXT COLLATE "C" NOT NULL,
    value TEXT COLLATE "C" NOT NULL,
    namespace TEXT COLLATE "C" NOT NULL,
    name TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (resource, key, value, namespace, name)
);

CREATE TABLE field (
    resource BIGINT NOT NULL,
    key TEXT COLLATE "C" NOT NULL,
    value TEXT COLLATE "C" NOT NULL,
    namespace TEXT COLLATE "C" NOT NULL,
    name TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (resource, key, value, namespace, name)
);

CREATE TABLE owner (
    uid TEXT COLLATE "C" NOT NULL,
    resource BIGINT NOT NULL,
    namespace TEXT COLLATE "C" NOT NULL,
    name TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (uid, resource, namespace, name)
);

CREATE TABLE event (
    resource BIGINT NOT NULL,
    rv BIGINT NOT NULL,
    type BIGINT NOT NULL,
    namespace TEXT COLLATE "C" NOT NULL,
    name TEXT COLLATE "C" NOT NULL,
    body BIGINT NOT NULL,
    before BIGINT,
    time BIGINT NOT NULL,
    PRIMARY KEY (resource, rv)
);

CREATE TABLE blob (
    id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    sha256 BYTEA NOT NULL UNIQUE,
    size BIGINT NOT NULL,
    touched BIGINT NOT NULL,
    zstd BYTEA NOT NULL
);
ALTER TABLE blob ALTER COLUMN zstd SET STORAGE EXTERNAL;
-- The sweep walks what was touched longest ago.
CREATE INDEX blob_touched ON blob (touched, id);

CREATE TABLE body_blob (
    body BIGINT NOT NULL,
    sha256 BYTEA NOT NULL,
    PRIMARY KEY (body, sha256)
);
CREATE INDEX body_blob_sha256 ON body_blob (sha256);

-- Which life of the database this is, and where it is lived.
CREATE TABLE incarnation (
    one BOOLEAN PRIMARY KEY DEFAULT TRUE CHECK (one),
    number BIGINT NOT NULL,
    place TEXT COLLATE "C"
);
INSERT INTO incarnation (number) VALUES (1);

-- The time that all processes share, in milliseconds since 1970.
CREATE FUNCTION now_1() RETURNS BIGINT LANGUAGE sql VOLATILE AS $$
    SELECT (extract(epoch FROM clock_timestamp()) * 1000)::BIGINT
$$;

-- One write, in one trip: the clock's row is locked first and until the commit, so the order of
-- commits is the order of revisions. What the write expects is judged once without the lock, so
-- that a stale one waits for nobody, and again under it, by a statement that sees all that was
-- committed before. A refused write changes nothing. The differences of labels, fields and owners
-- are those to the state of the expected revision.
CREATE FUNCTION write_1(
    of_resource TEXT, of_namespace TEXT, of_name TEXT, expected BIGINT,
    next_uid TEXT,
    next_revision_at BIGINT, next_form BIGINT, next_facts TEXT, next_blobs BYTEA, next_text BYTEA,
    digests BYTEA[],
    gone_label_keys TEXT[], gone_label_values TEXT[], label_keys TEXT[], label_values TEXT[],
    gone_field_keys TEXT[], gone_field_values TEXT[], field_keys TEXT[], field_values TEXT[],
    gone_owners TEXT[], owners TEXT[],
    OUT outcome TEXT, OUT revision BIGINT
) LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    of_clock BIGINT;
    found_rv BIGINT;
    found_body BIGINT;
    next_body BIGINT;
    at INTEGER;
BEGIN
    SELECT c.id, o.rv INTO of_clock, found_rv
    FROM clock c
    LEFT JOIN object o ON o.resource = c.id AND o.namespace = of_namespace AND o.name = of_name
    WHERE c.resource = of_resource;
    IF found_rv IS DISTINCT FROM expected THEN
        outcome := 'refused';
        revision := found_rv;
        RETURN;
    END IF;
    IF of_clock IS NULL THEN
        INSERT INTO clock (resource, rv, compacted_rv) VALUES (of_resource, 1, 0)
        ON CONFLICT (resource) DO NOTHING;
    END IF;

    SELECT c.id, c.rv + 1 INTO of_clock, revision
    FROM clock c
    WHERE c.resource = of_resource
    FOR NO KEY UPDATE;
    SELECT o.rv, o.body INTO found_rv, found_body
    FROM object o
    WHERE o.resource = of_clock AND o.namespace = of_namespace AND o.name = of_name;
    IF found_rv IS DISTINCT FROM expected THEN
        outcome := 'refused';
        revision := found_rv;
        RETURN;
    END IF;

    -- The sweep cannot take a blob that is locked so, and whoever comes after the sweep sees that
    -- it has taken it.
    IF cardinality(digests) > 0 THEN
        PERFORM 1 FROM blob b WHERE b.sha256 = ANY (digests) ORDER BY b.sha256 FOR KEY SHARE;
        GET DIAGNOSTICS at = ROW_COUNT;
        IF at < cardinality(digests) THEN
            outcome := 'blob missing';
            revision := NULL;
            RETURN;
        END IF;
    END IF;

    UPDATE clock SET rv = revision WHERE id = of_clock;
    INSERT INTO body (rv, revision_at, form, facts, blobs, text)
    VALUES (revision, next_revision_at, next_form, next_facts, next_blobs, next_text)
    RETURNING id INTO next_body;
    INSERT INTO body_blob (body, sha256) SELECT next_body, d FROM unnest(digests) d;
    IF next_uid IS NULL THEN
        DELETE FROM object o
        WHERE o.resource = of_clock AND o.namespace = of_namespace AND o.name = of_name;
    ELSIF expected IS NULL THEN
        INSERT INTO object (resource, namespace, name, uid, rv, body)
        VALUES (of_clock, of_namespace, of_name, next_uid, revision, next_body);
    ELSE
        UPDATE object o SET uid = next_uid, rv = revision, body = next_body
        WHERE o.resource = of_clock AND o.namespace = of_namespace AND o.name = of_name;
    END IF;
    INSERT INTO event (resource, rv, type, namespace, name, body, before, time)
    VALUES (
        of_clock, revision,
        CASE WHEN next_uid IS NULL THEN 2 WHEN expected IS NULL THEN 0 ELSE 1 END,
        of_namespace, of_name, next_body, found_body, now_1()
    );

    -- One lookup per row that goes: a join could be planned as a scan while the table is small.
    FOR at IN 1 .. cardinality(gone_label_keys) LOOP
        DELETE FROM label l
        WHERE l.resource = of_clock AND l.key = gone_label_keys[at]
        AND l.value = gone_label_values[at] AND l.namespace = of_namespace AND l.name = of_name;
    END LOOP;
    FOR at IN 1 .. cardinality(gone_field_keys) LOOP
        DELETE FROM field f
        WHERE f.resource = of_clock AND f.key = gone_field_keys[at]
        AND f.value = gone_field_values[at] AND f.namespace = of_namespace AND f.name = of_name;
    END LOOP;
    FOR at IN 1 .. cardinality(gone_owners) LOOP
        DELETE FROM owner w
        WHERE w.uid = gone_owners[at]
        AND w.resource = of_clock AND w.namespace = of_namespace AND w.name = of_name;
    END LOOP;
    INSERT INTO label (resource, key, value, namespace, name)
    SELECT of_clock, e.key, e.value, of_namespace, of_name
    FROM unnest(label_keys, label_values) e (key, value);
    INSERT INTO field (resource, key, value, namespace, name)
    SELECT of_clock, e.key, e.value, of_namespace, of_name
    FROM unnest(field_keys, field_values) e (key, value);
    INSERT INTO owner (uid, resource, namespace, name)
    SELECT e.uid, of_clock, of_namespace, of_name
    FROM unnest(owners) e (uid);
    outcome := 'done';
END
$$;
