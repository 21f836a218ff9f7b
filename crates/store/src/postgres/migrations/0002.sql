-- What a VulnerabilityReport found, as a set: nine bytes for each finding.
CREATE TABLE finding (
    namespace TEXT COLLATE "C" NOT NULL,
    name TEXT COLLATE "C" NOT NULL,
    entries BYTEA NOT NULL,
    PRIMARY KEY (namespace, name)
);

-- What all reports that answer to a link found together, each finding counted once.
CREATE TABLE tally (
    link TEXT COLLATE "C" PRIMARY KEY,
    critical BIGINT NOT NULL,
    high BIGINT NOT NULL,
    medium BIGINT NOT NULL,
    low BIGINT NOT NULL,
    unknown BIGINT NOT NULL,
    suppressed BIGINT NOT NULL
);

-- Gives every object of a resource that has one of these links a new revision and an event, and
-- returns the last revision given. The clock is locked before anyone looks: an object that is being
-- made meanwhile has been made by then, or will be read after all of this has happened.
CREATE FUNCTION touch_1(of_resource TEXT, links TEXT[], OUT revision BIGINT)
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    of_clock BIGINT;
    next_revision BIGINT;
    next_body BIGINT;
    one RECORD;
BEGIN
    IF NOT EXISTS (SELECT 1 FROM clock c WHERE c.resource = of_resource) THEN
        INSERT INTO clock (resource, rv, compacted_rv) VALUES (of_resource, 1, 0)
        ON CONFLICT (resource) DO NOTHING;
    END IF;
    SELECT c.id, c.rv INTO of_clock, next_revision
    FROM clock c
    WHERE c.resource = of_resource
    FOR NO KEY UPDATE;
    FOR one IN
        SELECT DISTINCT o.namespace, o.name, o.body
        FROM unnest(links) v (value)
        JOIN field f ON f.value = v.value
        JOIN object o ON o.resource = f.resource AND o.namespace = f.namespace AND o.name = f.name
        WHERE f.resource = of_clock AND f.key = '.link'
        ORDER BY o.namespace, o.name
    LOOP
        next_revision := next_revision + 1;
        INSERT INTO body (rv, revision_at, form, facts, blobs, text)
        SELECT next_revision, b.revision_at, b.form, b.facts, b.blobs, b.text
        FROM body b
        WHERE b.id = one.body
        RETURNING id INTO next_body;
        INSERT INTO event (resource, rv, type, namespace, name, body, before, time)
        VALUES (of_clock, next_revision, 1, one.namespace, one.name, next_body, one.body, now_1());
        UPDATE object o SET rv = next_revision, body = next_body
        WHERE o.resource = of_clock AND o.namespace = one.namespace AND o.name = one.name;
        revision := next_revision;
    END LOOP;
    IF revision IS NOT NULL THEN
        UPDATE clock SET rv = revision WHERE id = of_clock;
    END IF;
END
$$;
