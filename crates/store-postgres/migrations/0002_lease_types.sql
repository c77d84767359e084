-- When a lease is to start, and until when it must have. A service of an earlier version takes all leases for
-- scheduled ones.
ALTER TABLE lease
    ADD COLUMN lease_type text NOT NULL DEFAULT 'SCHEDULE'
        CHECK (lease_type IN ('SCHEDULE', 'IMMEDIATE', 'BEST-EFFORT')),
    ADD COLUMN deadline_us bigint,
    ADD CHECK ((deadline_us IS NULL) = (lease_type = 'SCHEDULE'));
