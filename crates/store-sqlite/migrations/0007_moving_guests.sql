-- Guests may be moved away at the end as well. A check cannot be changed, so the column is made anew.
ALTER TABLE lease ADD COLUMN end_action_2 TEXT NOT NULL DEFAULT 'delete_guests'
    CHECK (end_action_2 IN ('delete_guests', 'keep_guests', 'snapshot_guests', 'move_guests'));
UPDATE lease SET end_action_2 = end_action;
ALTER TABLE lease DROP COLUMN end_action;
ALTER TABLE lease RENAME COLUMN end_action_2 TO end_action;
UPDATE compatibility SET oldest = 7;
