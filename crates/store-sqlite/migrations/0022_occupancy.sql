-- What looks at the whole hosts of leases saw: fences, instances, and times when nothing was seen. Intervals without an end
-- are open.
CREATE TABLE occupancy (
    number           INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    lease            BLOB    NOT NULL CHECK (length(lease) = 16),
    project          TEXT    NOT NULL,
    host             INTEGER NOT NULL,
    fact             TEXT    NOT NULL,
    -- Zero if the fact is about no instance.
    instance         BLOB    NOT NULL CHECK (length(instance) = 16),
    instance_project TEXT,
    begins           INTEGER NOT NULL CHECK (begins IN (0, 1)),
    starts_us        INTEGER NOT NULL,
    ends_us          INTEGER CHECK (starts_us <= ends_us)
) STRICT;
CREATE UNIQUE INDEX occupancy_open ON occupancy (host, lease, fact, instance) WHERE ends_us IS NULL;
CREATE INDEX occupancy_lease ON occupancy (lease, number);
CREATE INDEX occupancy_project ON occupancy (project, number) WHERE ends_us IS NOT NULL;
CREATE INDEX occupancy_ends ON occupancy (ends_us) WHERE ends_us IS NOT NULL;

-- Until when all that was seen is recorded.
CREATE TABLE occupancy_seen (
    one      INTEGER NOT NULL PRIMARY KEY CHECK (one = 1),
    until_us INTEGER NOT NULL
) STRICT;

-- Share of the projects of leases. A record counts the bytes of its texts, and 128 for the rest.
CREATE TABLE occupancy_size (
    project TEXT    NOT NULL PRIMARY KEY,
    bytes   INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TRIGGER occupancy_added AFTER INSERT ON occupancy
BEGIN
    INSERT INTO occupancy_size (project, bytes)
        SELECT NEW.project, 0 WHERE NOT EXISTS (SELECT 1 FROM occupancy_size WHERE project = NEW.project);
    UPDATE occupancy_size
        SET bytes = bytes + 128 + octet_length(NEW.project) + coalesce(octet_length(NEW.instance_project), 0)
        WHERE project = NEW.project;
END;
CREATE TRIGGER occupancy_removed AFTER DELETE ON occupancy
BEGIN
    UPDATE occupancy_size
        SET bytes = bytes - 128 - octet_length(OLD.project) - coalesce(octet_length(OLD.instance_project), 0)
        WHERE project = OLD.project;
END;
