-- What was changed in which revision (RecordKey as text, in a JSON list); each commit adds a row. A mark is drawn
-- anew each time, so that a file that was restored from a backup is not taken for the one that it was.
CREATE TABLE change (
    number INTEGER NOT NULL PRIMARY KEY,
    mark   BLOB    NOT NULL CHECK (length(mark) = 16),
    keys   TEXT    NOT NULL CHECK (json_valid(keys))
) STRICT;
INSERT INTO change (number, mark, keys) VALUES (0, randomblob(16), '[]');

-- Who leads in roles that one service has at a time.
CREATE TABLE leader (
    role     TEXT    NOT NULL PRIMARY KEY,
    holder   TEXT    NOT NULL,
    until_us INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- The oldest migration that a service has to know to work with this schema: see the README.md of store-postgres/migrations. One
-- that does not write its changes would go unnoticed, hence 2.
CREATE TABLE compatibility (
    one    INTEGER NOT NULL PRIMARY KEY CHECK (one = 1),
    oldest INTEGER NOT NULL
) STRICT;
INSERT INTO compatibility (one, oldest) VALUES (1, 2);
