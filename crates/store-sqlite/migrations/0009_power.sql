-- Whether hosts are switched on: a JSON document, none of hosts that were never switched.
ALTER TABLE host ADD COLUMN power TEXT CHECK (power IS NULL OR json_valid(power));

-- Times that hosts were off for, once they are over.
CREATE TABLE host_sleep (
    number           INTEGER NOT NULL PRIMARY KEY,
    host             INTEGER NOT NULL,
    free_pool        BLOB    CHECK (length(free_pool) = 16),
    starts_us        INTEGER NOT NULL,
    ends_us          INTEGER NOT NULL,
    saved_milliwatts INTEGER NOT NULL,
    off_milliwatts   INTEGER NOT NULL,
    boot_us          INTEGER,
    failed           INTEGER NOT NULL CHECK (failed IN (0, 1)),
    CHECK (starts_us <= ends_us)
) STRICT;
CREATE INDEX host_sleep_ends ON host_sleep (ends_us);

-- A service of an earlier version would take hosts that are off for failed ones.
UPDATE compatibility SET oldest = 9;
