-- Hosts may be in several free pools. Those of no pool here are in the one that is always there. Names are unique.
CREATE TABLE free_pool (
    id            uuid   NOT NULL PRIMARY KEY,
    version       bigint NOT NULL,
    name          text   NOT NULL UNIQUE,
    document      text   NOT NULL,
    created_at_us bigint NOT NULL,
    updated_at_us bigint
);
ALTER TABLE host ADD COLUMN free_pool uuid REFERENCES free_pool (id);
CREATE INDEX host_by_free_pool ON host (free_pool);

-- Guests may be moved away at the end as well.
ALTER TABLE lease
    DROP CONSTRAINT lease_end_action_check,
    ADD CONSTRAINT lease_end_action_check
        CHECK (end_action IN ('delete_guests', 'keep_guests', 'snapshot_guests', 'move_guests'));
UPDATE compatibility SET oldest = 6;
