-- Instances that are started through the service: JSON documents.
CREATE TABLE instance (
    id            BLOB    NOT NULL PRIMARY KEY CHECK (length(id) = 16),
    version       INTEGER NOT NULL,
    document      TEXT    NOT NULL CHECK (json_valid(document)),
    created_at_us INTEGER NOT NULL,
    updated_at_us INTEGER
) STRICT, WITHOUT ROWID;

-- A service of an earlier version does not know what has changed where an instance has.
UPDATE compatibility SET oldest = 5;
