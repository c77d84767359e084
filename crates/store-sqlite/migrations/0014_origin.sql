-- Which store this is, so that a fleet can tell whether it belongs to it. A copy is the same store.
CREATE TABLE origin (
    one INTEGER NOT NULL PRIMARY KEY CHECK (one = 1),
    id  TEXT    NOT NULL
) STRICT;
INSERT INTO origin (one, id) VALUES (1, lower(hex(randomblob(16))));

-- What the clock of the machine showed when it was right, how long the machine had been running, and which run that was.
CREATE TABLE clock_mark (
    one       INTEGER NOT NULL PRIMARY KEY CHECK (one = 1),
    at_us     INTEGER NOT NULL,
    steady_us INTEGER NOT NULL,
    boot      TEXT    NOT NULL
) STRICT;
