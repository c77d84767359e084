-- Hosts may be in several free pools. Those of no pool here are in the one that is always there. Names are unique.
CREATE TABLE free_pool (
    id            BLOB    NOT NULL PRIMARY KEY CHECK (length(id) = 16),
    version       INTEGER NOT NULL,
    name          TEXT    NOT NULL UNIQUE,
    document      TEXT    NOT NULL CHECK (json_valid(document)),
    created_at_us INTEGER NOT NULL,
    updated_at_us INTEGER
) STRICT, WITHOUT ROWID;
ALTER TABLE host ADD COLUMN free_pool BLOB REFERENCES free_pool (id);
CREATE INDEX host_by_free_pool ON host (free_pool);

-- Guests may be moved away at the end as well. A check cannot be changed, so the column is made anew.
ALTER TABLE lease ADD COLUMN end_action_2 TEXT NOT NULL DEFAULT 'delete_guests'
    CHECK (end_action_2 IN ('delete_guests', 'keep_guests', 'snapshot_guests', 'move_guests'));
UPDATE lease SET end_action_2 = end_action;
ALTER TABLE lease DROP COLUMN end_action;
ALTER TABLE lease RENAME COLUMN end_action_2 TO end_action;
UPDATE compatibility SET oldest = 7;
