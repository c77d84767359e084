-- Text above 256 bytes is stored once, by its SHA-256. Columns of leases and of their reservations refer to it, and a lease
-- keeps all that it refers to. It goes with its last reference.
CREATE TABLE long_text (
    hash BLOB NOT NULL PRIMARY KEY CHECK (length(hash) = 32),
    body TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE lease_text (
    lease BLOB NOT NULL REFERENCES lease (id) ON DELETE CASCADE,
    hash  BLOB NOT NULL REFERENCES long_text (hash),
    PRIMARY KEY (lease, hash)
) STRICT, WITHOUT ROWID;
CREATE INDEX lease_text_hash ON lease_text (hash);

CREATE TRIGGER lease_text_deleted AFTER DELETE ON lease_text
BEGIN
    DELETE FROM long_text
    WHERE hash = OLD.hash AND NOT EXISTS (SELECT 1 FROM lease_text WHERE hash = OLD.hash);
END;

-- Text that would look like a reference has "text:" before it.
UPDATE lease SET name = 'text:' || name WHERE name GLOB 'sha256:*' OR name GLOB 'text:*';
UPDATE lease SET reason = 'text:' || reason WHERE reason GLOB 'sha256:*' OR reason GLOB 'text:*';
UPDATE reservation SET hypervisor_properties = 'text:' || hypervisor_properties
    WHERE hypervisor_properties GLOB 'sha256:*' OR hypervisor_properties GLOB 'text:*';
UPDATE reservation SET resource_properties = 'text:' || resource_properties
    WHERE resource_properties GLOB 'sha256:*' OR resource_properties GLOB 'text:*';

-- A service of an earlier version cannot read references.
UPDATE compatibility SET oldest = 18;
