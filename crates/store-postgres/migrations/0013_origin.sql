-- Which store this is, so that a fleet can tell whether it belongs to it. A copy is the same store.
CREATE TABLE origin (
    one boolean NOT NULL PRIMARY KEY CHECK (one),
    id  text    NOT NULL
);
INSERT INTO origin (one, id) VALUES (true, md5(random()::text || clock_timestamp()::text || txid_current()::text));
