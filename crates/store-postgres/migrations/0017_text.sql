-- Text above 256 bytes is stored once, by its SHA-256. Columns of leases and of their reservations refer to it, and a lease
-- keeps all that it refers to. It goes with its last reference.
CREATE TABLE long_text (
    hash bytea PRIMARY KEY CHECK (octet_length(hash) = 32),
    body text  NOT NULL
);

CREATE TABLE lease_text (
    lease uuid  NOT NULL REFERENCES lease ON DELETE CASCADE,
    hash  bytea NOT NULL REFERENCES long_text,
    PRIMARY KEY (lease, hash)
);
CREATE INDEX lease_text_hash ON lease_text (hash);

-- A transaction that refers to the text at the same time has locked it, or waits for this lock and then misses it, and is
-- tried again. So what is looked for under the lock is all that there is.
CREATE FUNCTION lease_text_deleted() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (SELECT FROM gone) THEN
        PERFORM FROM long_text WHERE hash IN (SELECT hash FROM gone) ORDER BY hash FOR UPDATE;
        DELETE FROM long_text
        WHERE hash IN (SELECT hash FROM gone)
            AND NOT EXISTS (SELECT FROM lease_text WHERE lease_text.hash = long_text.hash);
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER lease_text_deleted AFTER DELETE ON lease_text
    REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION lease_text_deleted();

-- Text that would look like a reference has "text:" before it.
UPDATE lease SET name = 'text:' || name WHERE name ^@ 'sha256:' OR name ^@ 'text:';
UPDATE lease SET reason = 'text:' || reason WHERE reason ^@ 'sha256:' OR reason ^@ 'text:';
UPDATE reservation SET hypervisor_properties = 'text:' || hypervisor_properties
    WHERE hypervisor_properties ^@ 'sha256:' OR hypervisor_properties ^@ 'text:';
UPDATE reservation SET resource_properties = 'text:' || resource_properties
    WHERE resource_properties ^@ 'sha256:' OR resource_properties ^@ 'text:';

-- A service of an earlier version cannot read references.
UPDATE compatibility SET oldest = 17;
