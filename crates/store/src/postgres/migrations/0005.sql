-- The revision at which all clocks begin in this life, those that are made later in it too.
ALTER TABLE incarnation ADD COLUMN origin BIGINT NOT NULL DEFAULT 1;

-- A new clock begins at the origin, whichever build makes it: clients may have seen this resource
-- written in a life that was lost.
CREATE FUNCTION begin_clock_1() RETURNS TRIGGER LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    at_least BIGINT;
BEGIN
    SELECT i.origin INTO at_least FROM incarnation i;
    IF NEW.rv < at_least THEN
        NEW.rv := at_least;
        NEW.compacted_rv := at_least;
    END IF;
    RETURN NEW;
END
$$;
CREATE TRIGGER begin_clock BEFORE INSERT ON clock
FOR EACH ROW EXECUTE FUNCTION begin_clock_1();

-- Who counts a new life begins it. No write is under way meanwhile, so none is left behind the
-- origin. It is the time, which moves on by a million revisions each second, up to the year 2242;
-- where that is not ahead of all that was given, a jump has to do.
CREATE FUNCTION begin_life_1() RETURNS TRIGGER LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    highest BIGINT;
BEGIN
    LOCK TABLE clock IN EXCLUSIVE MODE;
    SELECT GREATEST(OLD.origin, NEW.origin, MAX(c.rv)) INTO highest FROM clock c;
    NEW.origin := LEAST(now_1() / 1000, 8589934591) << 20;
    IF NEW.origin <= highest THEN
        NEW.origin := highest + 4294967296;
    END IF;
    UPDATE clock SET rv = NEW.origin, compacted_rv = NEW.origin;
    RETURN NEW;
END
$$;
CREATE TRIGGER begin_life BEFORE UPDATE ON incarnation
FOR EACH ROW WHEN (NEW.number > OLD.number) EXECUTE FUNCTION begin_life_1();
