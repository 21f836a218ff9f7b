-- Reports that a change still has to reach: those with this link behind this key whose revision is
-- at most the bound. What has a later revision has changed since, and was told with that change.
CREATE TABLE pending (
    id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    link TEXT COLLATE "C" NOT NULL,
    bound BIGINT NOT NULL,
    namespace TEXT COLLATE "C" NOT NULL,
    name TEXT COLLATE "C" NOT NULL
);

-- Gives some objects with a link, in order behind a key, their next revisions and events. Whoever
-- calls has locked the clock, and moves it.
CREATE FUNCTION touch_some_1(
    of_clock BIGINT, of_link TEXT, bound BIGINT, room BIGINT,
    INOUT revision BIGINT, INOUT at_namespace TEXT, INOUT at_name TEXT, OUT touched BIGINT
) LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    next_body BIGINT;
    one RECORD;
BEGIN
    touched := 0;
    FOR one IN
        SELECT o.namespace, o.name, o.body
        FROM field f
        JOIN object o ON o.resource = f.resource AND o.namespace = f.namespace AND o.name = f.name
        WHERE f.resource = of_clock AND f.key = '.link' AND f.value = of_link
        AND (f.namespace, f.name) > (at_namespace, at_name) AND o.rv <= bound
        ORDER BY f.namespace, f.name
        LIMIT room
    LOOP
        revision := revision + 1;
        INSERT INTO body (rv, revision_at, form, facts, blobs, text)
        SELECT revision, b.revision_at, b.form, b.facts, b.blobs, b.text
        FROM body b
        WHERE b.id = one.body
        RETURNING id INTO next_body;
        INSERT INTO event (resource, rv, type, namespace, name, body, before, time)
        VALUES (of_clock, revision, 1, one.namespace, one.name, next_body, one.body, now_1());
        UPDATE object o SET rv = revision, body = next_body
        WHERE o.resource = of_clock AND o.namespace = one.namespace AND o.name = one.name;
        at_namespace := one.namespace;
        at_name := one.name;
        touched := touched + 1;
    END LOOP;
END
$$;

-- Begins with the objects of a resource that have one of these links: some are touched now, and
-- what is left is noted. The clock is locked before anyone looks: an object that is being made
-- meanwhile has been made by then, or will be read after all of this has happened.
CREATE FUNCTION touch_2(
    of_resource TEXT, links TEXT[], room BIGINT, OUT last_revision BIGINT, OUT unfinished BOOLEAN
) LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    of_clock BIGINT;
    of_bound BIGINT;
    of_link TEXT;
    done RECORD;
BEGIN
    IF NOT EXISTS (SELECT 1 FROM clock c WHERE c.resource = of_resource) THEN
        INSERT INTO clock (resource, rv, compacted_rv) VALUES (of_resource, 1, 0)
        ON CONFLICT (resource) DO NOTHING;
    END IF;
    SELECT c.id, c.rv INTO of_clock, of_bound
    FROM clock c
    WHERE c.resource = of_resource
    FOR NO KEY UPDATE;
    last_revision := of_bound;
    unfinished := FALSE;
    FOREACH of_link IN ARRAY links LOOP
        SELECT * INTO done
        FROM touch_some_1(of_clock, of_link, of_bound, room, last_revision, '', '');
        last_revision := done.revision;
        room := room - done.touched;
        IF room = 0 THEN
            INSERT INTO pending (link, bound, namespace, name)
            VALUES (of_link, of_bound, done.at_namespace, done.at_name);
            unfinished := TRUE;
        END IF;
    END LOOP;
    IF last_revision = of_bound THEN
        last_revision := NULL;
    ELSE
        UPDATE clock SET rv = last_revision WHERE id = of_clock;
    END IF;
END
$$;

-- Goes on with one change that has not reached all its objects, unless others do. Nothing is
-- returned if there is none.
CREATE FUNCTION touch_more_1(of_resource TEXT, room BIGINT)
RETURNS TABLE (last_revision BIGINT) LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    of_clock BIGINT;
    before_revision BIGINT;
    one RECORD;
    done RECORD;
BEGIN
    SELECT p.id, p.link, p.bound, p.namespace, p.name INTO one
    FROM pending p
    ORDER BY p.id
    LIMIT 1
    FOR UPDATE SKIP LOCKED;
    IF NOT FOUND THEN
        RETURN;
    END IF;
    SELECT c.id, c.rv INTO of_clock, before_revision
    FROM clock c
    WHERE c.resource = of_resource
    FOR NO KEY UPDATE;
    SELECT * INTO done
    FROM touch_some_1(
        of_clock, one.link, one.bound, room, before_revision, one.namespace, one.name
    );
    IF done.touched < room THEN
        DELETE FROM pending p WHERE p.id = one.id;
    ELSE
        UPDATE pending p SET namespace = done.at_namespace, name = done.at_name
        WHERE p.id = one.id;
    END IF;
    UPDATE clock SET rv = done.revision WHERE id = of_clock;
    last_revision := done.revision;
    RETURN NEXT;
END
$$;
