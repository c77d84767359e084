-- What is only offered, keeps something free for offers, or waits for its turn: a JSON document; null for leases. And the
-- leases that a lease recurs with, in 32 digits.
ALTER TABLE lease ADD COLUMN standing text;
ALTER TABLE lease ADD COLUMN series text;

-- A service of an earlier version would take offers for leases.
UPDATE compatibility SET oldest = 9;
