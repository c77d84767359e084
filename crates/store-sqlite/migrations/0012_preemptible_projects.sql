-- Projects whose instances are preemptible unless a request says otherwise, with * for anything and ? for any character.
CREATE TABLE preemptible_project (
    pattern       TEXT    NOT NULL PRIMARY KEY,
    created_at_us INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
-- A service of an earlier version does not know what has changed when one does.
UPDATE compatibility SET oldest = 12;
