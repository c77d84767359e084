-- Plain records are documents: what nothing else here refers to. A kind of them more needs no table.
CREATE TABLE document (
    kind TEXT NOT NULL,
    id   TEXT NOT NULL,
    body TEXT NOT NULL CHECK (json_valid(body)),
    PRIMARY KEY (kind, id)
) STRICT, WITHOUT ROWID;

-- Services of the version before use the tables of the three kinds that there were. So these tables stay for now, and
-- what is written to them or to the documents is written to the others as well, unless it is there already. The next
-- release removes the tables, and with them all that follows.

CREATE VIEW flavor_as_document (id, body) AS
    SELECT id, json_object(
        'name', name, 'vcpus', vcpus, 'memory_mib', memory_mib, 'disk_gib', disk_gib,
        'ephemeral_gib', ephemeral_gib, 'swap_mib', swap_mib, 'public', json(iif(public, 'true', 'false')),
        'extra_specs', json(extra_specs), 'created_at_us', created_at_us
    ) FROM flavor;
CREATE VIEW document_as_flavor (
    id, name, vcpus, memory_mib, disk_gib, ephemeral_gib, swap_mib, public, extra_specs, created_at_us
) AS
    SELECT id, body ->> 'name', body ->> 'vcpus', body ->> 'memory_mib', body ->> 'disk_gib',
        body ->> 'ephemeral_gib', body ->> 'swap_mib', body ->> 'public', body -> 'extra_specs',
        body ->> 'created_at_us'
    FROM document WHERE kind = 'flavor';

CREATE VIEW property_as_document (id, body) AS
    SELECT name, json_object(
        'id', lower(hex(id)), 'private', json(iif(private, 'true', 'false')), 'created_at_us', created_at_us,
        'updated_at_us', updated_at_us
    ) FROM property;
CREATE VIEW document_as_property (name, id, private, created_at_us, updated_at_us) AS
    SELECT id, unhex(body ->> 'id'), body ->> 'private', body ->> 'created_at_us', body ->> 'updated_at_us'
    FROM document WHERE kind = 'property';

CREATE VIEW preemptible_project_as_document (id, body) AS
    SELECT pattern, json_object('created_at_us', created_at_us) FROM preemptible_project;
CREATE VIEW document_as_preemptible_project (pattern, created_at_us) AS
    SELECT id, body ->> 'created_at_us' FROM document WHERE kind = 'preemptible-project';

INSERT INTO document (kind, id, body)
    SELECT 'flavor', id, body FROM flavor_as_document
    UNION ALL SELECT 'property', id, body FROM property_as_document
    UNION ALL SELECT 'preemptible-project', id, body FROM preemptible_project_as_document;

CREATE TRIGGER document_inserted AFTER INSERT ON document
BEGIN
    INSERT INTO flavor
        SELECT * FROM document_as_flavor WHERE NEW.kind = 'flavor' AND id = NEW.id
        EXCEPT SELECT * FROM flavor WHERE id = NEW.id
        ON CONFLICT (id) DO UPDATE SET
            name = excluded.name, vcpus = excluded.vcpus, memory_mib = excluded.memory_mib,
            disk_gib = excluded.disk_gib, ephemeral_gib = excluded.ephemeral_gib, swap_mib = excluded.swap_mib,
            public = excluded.public, extra_specs = excluded.extra_specs, created_at_us = excluded.created_at_us;
    INSERT INTO property
        SELECT * FROM document_as_property WHERE NEW.kind = 'property' AND name = NEW.id
        EXCEPT SELECT * FROM property WHERE name = NEW.id
        ON CONFLICT (name) DO UPDATE SET
            id = excluded.id, private = excluded.private, created_at_us = excluded.created_at_us,
            updated_at_us = excluded.updated_at_us;
    INSERT INTO preemptible_project
        SELECT * FROM document_as_preemptible_project WHERE NEW.kind = 'preemptible-project' AND pattern = NEW.id
        EXCEPT SELECT * FROM preemptible_project WHERE pattern = NEW.id
        ON CONFLICT (pattern) DO UPDATE SET created_at_us = excluded.created_at_us;
END;
CREATE TRIGGER document_updated AFTER UPDATE ON document
BEGIN
    INSERT INTO flavor
        SELECT * FROM document_as_flavor WHERE NEW.kind = 'flavor' AND id = NEW.id
        EXCEPT SELECT * FROM flavor WHERE id = NEW.id
        ON CONFLICT (id) DO UPDATE SET
            name = excluded.name, vcpus = excluded.vcpus, memory_mib = excluded.memory_mib,
            disk_gib = excluded.disk_gib, ephemeral_gib = excluded.ephemeral_gib, swap_mib = excluded.swap_mib,
            public = excluded.public, extra_specs = excluded.extra_specs, created_at_us = excluded.created_at_us;
    INSERT INTO property
        SELECT * FROM document_as_property WHERE NEW.kind = 'property' AND name = NEW.id
        EXCEPT SELECT * FROM property WHERE name = NEW.id
        ON CONFLICT (name) DO UPDATE SET
            id = excluded.id, private = excluded.private, created_at_us = excluded.created_at_us,
            updated_at_us = excluded.updated_at_us;
    INSERT INTO preemptible_project
        SELECT * FROM document_as_preemptible_project WHERE NEW.kind = 'preemptible-project' AND pattern = NEW.id
        EXCEPT SELECT * FROM preemptible_project WHERE pattern = NEW.id
        ON CONFLICT (pattern) DO UPDATE SET created_at_us = excluded.created_at_us;
END;
CREATE TRIGGER document_deleted AFTER DELETE ON document
BEGIN
    DELETE FROM flavor WHERE OLD.kind = 'flavor' AND id = OLD.id;
    DELETE FROM property WHERE OLD.kind = 'property' AND name = OLD.id;
    DELETE FROM preemptible_project WHERE OLD.kind = 'preemptible-project' AND pattern = OLD.id;
END;

CREATE TRIGGER flavor_inserted AFTER INSERT ON flavor
WHEN NOT EXISTS (
    SELECT * FROM flavor WHERE id = NEW.id INTERSECT SELECT * FROM document_as_flavor WHERE id = NEW.id
)
BEGIN
    INSERT INTO document (kind, id, body) SELECT 'flavor', id, body FROM flavor_as_document WHERE id = NEW.id
        ON CONFLICT (kind, id) DO UPDATE SET body = excluded.body;
END;
CREATE TRIGGER flavor_updated AFTER UPDATE ON flavor
WHEN NOT EXISTS (
    SELECT * FROM flavor WHERE id = NEW.id INTERSECT SELECT * FROM document_as_flavor WHERE id = NEW.id
)
BEGIN
    INSERT INTO document (kind, id, body) SELECT 'flavor', id, body FROM flavor_as_document WHERE id = NEW.id
        ON CONFLICT (kind, id) DO UPDATE SET body = excluded.body;
END;
CREATE TRIGGER flavor_deleted AFTER DELETE ON flavor
BEGIN
    DELETE FROM document WHERE kind = 'flavor' AND id = OLD.id;
END;

CREATE TRIGGER property_inserted AFTER INSERT ON property
WHEN NOT EXISTS (
    SELECT * FROM property WHERE name = NEW.name INTERSECT SELECT * FROM document_as_property WHERE name = NEW.name
)
BEGIN
    INSERT INTO document (kind, id, body) SELECT 'property', id, body FROM property_as_document WHERE id = NEW.name
        ON CONFLICT (kind, id) DO UPDATE SET body = excluded.body;
END;
CREATE TRIGGER property_updated AFTER UPDATE ON property
WHEN NOT EXISTS (
    SELECT * FROM property WHERE name = NEW.name INTERSECT SELECT * FROM document_as_property WHERE name = NEW.name
)
BEGIN
    INSERT INTO document (kind, id, body) SELECT 'property', id, body FROM property_as_document WHERE id = NEW.name
        ON CONFLICT (kind, id) DO UPDATE SET body = excluded.body;
END;
CREATE TRIGGER property_deleted AFTER DELETE ON property
BEGIN
    DELETE FROM document WHERE kind = 'property' AND id = OLD.name;
END;

CREATE TRIGGER preemptible_project_inserted AFTER INSERT ON preemptible_project
WHEN NOT EXISTS (
    SELECT * FROM preemptible_project WHERE pattern = NEW.pattern
    INTERSECT SELECT * FROM document_as_preemptible_project WHERE pattern = NEW.pattern
)
BEGIN
    INSERT INTO document (kind, id, body)
        SELECT 'preemptible-project', id, body FROM preemptible_project_as_document WHERE id = NEW.pattern
        ON CONFLICT (kind, id) DO UPDATE SET body = excluded.body;
END;
CREATE TRIGGER preemptible_project_updated AFTER UPDATE ON preemptible_project
WHEN NOT EXISTS (
    SELECT * FROM preemptible_project WHERE pattern = NEW.pattern
    INTERSECT SELECT * FROM document_as_preemptible_project WHERE pattern = NEW.pattern
)
BEGIN
    INSERT INTO document (kind, id, body)
        SELECT 'preemptible-project', id, body FROM preemptible_project_as_document WHERE id = NEW.pattern
        ON CONFLICT (kind, id) DO UPDATE SET body = excluded.body;
END;
CREATE TRIGGER preemptible_project_deleted AFTER DELETE ON preemptible_project
BEGIN
    DELETE FROM document WHERE kind = 'preemptible-project' AND id = OLD.pattern;
END;
