-- What is only offered, keeps something free for offers, or waits for its turn: a JSON document; null for leases. And the
-- leases that a lease recurs with, in 32 digits.
ALTER TABLE lease ADD COLUMN standing TEXT CHECK (standing IS NULL OR json_valid(standing));
ALTER TABLE lease ADD COLUMN series TEXT;

-- A service of an earlier version would take offers for leases.
UPDATE compatibility SET oldest = 10;
