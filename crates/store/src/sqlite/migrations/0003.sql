-- Reports that a change still has to reach: those with this link behind this key whose revision is
-- at most the bound. What has a later revision has changed since, and was told with that change.
CREATE TABLE pending (
    id INTEGER PRIMARY KEY,
    link TEXT NOT NULL,
    bound INTEGER NOT NULL,
    namespace TEXT NOT NULL,
    name TEXT NOT NULL
) STRICT;
