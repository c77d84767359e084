-- Scheduler hints of leases, and what housekeeping has done about them, as one JSON document; none of most leases.
-- A service of an earlier version leaves it alone.
ALTER TABLE lease ADD COLUMN extras TEXT CHECK (extras IS NULL OR json_valid(extras));
