-- A file has one user, which keeps the claims of steps in memory.
DROP TABLE step_claim;

-- Every commit that changes a lease wrote a page of each index. Events are found by project and number, or by number.
DROP INDEX usage_event_at;
DROP INDEX usage_event_lease;

-- A service of an earlier version uses the table, and cannot read terms that refer to the text of their requirements.
UPDATE compatibility SET oldest = 20;
