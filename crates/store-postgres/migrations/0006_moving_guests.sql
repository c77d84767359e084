-- Guests may be moved away at the end as well.
ALTER TABLE lease
    DROP CONSTRAINT lease_end_action_check,
    ADD CONSTRAINT lease_end_action_check
        CHECK (end_action IN ('delete_guests', 'keep_guests', 'snapshot_guests', 'move_guests'));
UPDATE compatibility SET oldest = 6;
