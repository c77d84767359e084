-- When a lease is to start, and until when it must have. A service of an earlier version takes all leases for
-- scheduled ones.
ALTER TABLE lease ADD COLUMN lease_type TEXT NOT NULL DEFAULT 'SCHEDULE'
    CHECK (lease_type IN ('SCHEDULE', 'IMMEDIATE', 'BEST-EFFORT'));
ALTER TABLE lease ADD COLUMN deadline_us INTEGER
    CHECK ((deadline_us IS NULL) = (lease_type = 'SCHEDULE'));
