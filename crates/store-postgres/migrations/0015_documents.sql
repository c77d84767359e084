-- Plain records are documents: what nothing else here refers to. A kind of them more needs no table.
CREATE TABLE document (
    kind text NOT NULL,
    id   text NOT NULL,
    body text NOT NULL CHECK (body::json IS NOT NULL),
    PRIMARY KEY (kind, id)
);

-- Services of the version before use the tables of the three kinds that there were, and may run beside this one. So
-- these tables stay for now, and what is written to them or to the documents is written to the others as well. The next
-- release removes the tables, and with them all that follows.

-- Columns have U+001A and 0 for a zero, which text cannot be, and U+001A and 1 for itself. JSON can have a zero, but
-- not where anything is to be taken out of it. Here the text of JSON is changed from the one to the other: a backslash
-- after an even number of them begins an escape.
CREATE FUNCTION json_as_columns(written text) RETURNS text LANGUAGE sql IMMUTABLE AS $$
    SELECT regexp_replace(
        regexp_replace(written, '(?<!\\)((?:\\\\)*)\\u001a', '\1\\u001a1', 'g'),
        '(?<!\\)((?:\\\\)*)\\u0000', '\1\\u001a0', 'g'
    )
$$;
CREATE FUNCTION columns_as_json(written text) RETURNS text LANGUAGE sql IMMUTABLE AS $$
    SELECT regexp_replace(
        regexp_replace(written, '(?<!\\)((?:\\\\)*)\\u001a0', '\1\\u0000', 'g'),
        '(?<!\\)((?:\\\\)*)\\u001a1', '\1\\u001a', 'g'
    )
$$;

CREATE VIEW flavor_as_document AS
    SELECT id, json_build_object(
        'name', columns_as_json(to_json(name)::text)::json, 'vcpus', vcpus, 'memory_mib', memory_mib,
        'disk_gib', disk_gib, 'ephemeral_gib', ephemeral_gib, 'swap_mib', swap_mib, 'public', public,
        'extra_specs', extra_specs::json, 'created_at_us', created_at_us
    )::text AS body FROM flavor;
CREATE VIEW document_as_flavor AS
    SELECT id, flavor ->> 'name' AS name, (flavor ->> 'vcpus')::bigint AS vcpus,
        (flavor ->> 'memory_mib')::bigint AS memory_mib, (flavor ->> 'disk_gib')::bigint AS disk_gib,
        (flavor ->> 'ephemeral_gib')::bigint AS ephemeral_gib, (flavor ->> 'swap_mib')::bigint AS swap_mib,
        (flavor ->> 'public')::boolean AS public, columns_as_json((flavor -> 'extra_specs')::text) AS extra_specs,
        (flavor ->> 'created_at_us')::bigint AS created_at_us
    FROM (SELECT id, json_as_columns(body)::json AS flavor FROM document WHERE kind = 'flavor') AS flavors;

CREATE VIEW property_as_document AS
    SELECT name AS id, json_build_object(
        'id', replace(id::text, '-', ''), 'private', private, 'created_at_us', created_at_us,
        'updated_at_us', updated_at_us
    )::text AS body FROM property;
CREATE VIEW document_as_property AS
    SELECT id AS name, (body::json ->> 'id')::uuid AS id, (body::json ->> 'private')::boolean AS private,
        (body::json ->> 'created_at_us')::bigint AS created_at_us,
        (body::json ->> 'updated_at_us')::bigint AS updated_at_us
    FROM document WHERE kind = 'property';

CREATE VIEW preemptible_project_as_document AS
    SELECT pattern AS id, json_build_object('created_at_us', created_at_us)::text AS body FROM preemptible_project;
CREATE VIEW document_as_preemptible_project AS
    SELECT id AS pattern, (body::json ->> 'created_at_us')::bigint AS created_at_us
    FROM document WHERE kind = 'preemptible-project';

CREATE FUNCTION document_to_tables() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'DELETE' THEN
        DELETE FROM flavor WHERE OLD.kind = 'flavor' AND id = OLD.id;
        DELETE FROM property WHERE OLD.kind = 'property' AND name = OLD.id;
        DELETE FROM preemptible_project WHERE OLD.kind = 'preemptible-project' AND pattern = OLD.id;
    ELSIF NEW.kind = 'flavor' THEN
        INSERT INTO flavor (
            id, name, vcpus, memory_mib, disk_gib, ephemeral_gib, swap_mib, public, extra_specs, created_at_us
        ) SELECT
            id, name, vcpus, memory_mib, disk_gib, ephemeral_gib, swap_mib, public, extra_specs, created_at_us
        FROM document_as_flavor WHERE id = NEW.id
        ON CONFLICT (id) DO UPDATE SET
            name = excluded.name, vcpus = excluded.vcpus, memory_mib = excluded.memory_mib,
            disk_gib = excluded.disk_gib, ephemeral_gib = excluded.ephemeral_gib, swap_mib = excluded.swap_mib,
            public = excluded.public, extra_specs = excluded.extra_specs, created_at_us = excluded.created_at_us;
    ELSIF NEW.kind = 'property' THEN
        INSERT INTO property (name, id, private, created_at_us, updated_at_us)
        SELECT name, id, private, created_at_us, updated_at_us FROM document_as_property WHERE name = NEW.id
        ON CONFLICT (name) DO UPDATE SET
            id = excluded.id, private = excluded.private, created_at_us = excluded.created_at_us,
            updated_at_us = excluded.updated_at_us;
    ELSIF NEW.kind = 'preemptible-project' THEN
        INSERT INTO preemptible_project (pattern, created_at_us)
        SELECT pattern, created_at_us FROM document_as_preemptible_project WHERE pattern = NEW.id
        ON CONFLICT (pattern) DO UPDATE SET created_at_us = excluded.created_at_us;
    END IF;
    RETURN NULL;
END
$$;

CREATE FUNCTION flavor_to_document() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'DELETE' THEN
        DELETE FROM document WHERE kind = 'flavor' AND id = OLD.id;
    ELSE
        INSERT INTO document (kind, id, body)
        SELECT 'flavor', new_row.id, new_row.body FROM flavor_as_document AS new_row WHERE new_row.id = NEW.id
        ON CONFLICT (kind, id) DO UPDATE SET body = excluded.body;
    END IF;
    RETURN NULL;
END
$$;

CREATE FUNCTION property_to_document() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'DELETE' THEN
        DELETE FROM document WHERE kind = 'property' AND id = OLD.name;
    ELSE
        INSERT INTO document (kind, id, body)
        SELECT 'property', new_row.id, new_row.body FROM property_as_document AS new_row WHERE new_row.id = NEW.name
        ON CONFLICT (kind, id) DO UPDATE SET body = excluded.body;
    END IF;
    RETURN NULL;
END
$$;

CREATE FUNCTION preemptible_project_to_document() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'DELETE' THEN
        DELETE FROM document WHERE kind = 'preemptible-project' AND id = OLD.pattern;
    ELSE
        INSERT INTO document (kind, id, body)
        SELECT 'preemptible-project', new_row.id, new_row.body FROM preemptible_project_as_document AS new_row
        WHERE new_row.id = NEW.pattern
        ON CONFLICT (kind, id) DO UPDATE SET body = excluded.body;
    END IF;
    RETURN NULL;
END
$$;

-- Not where one of the others writes. The tables are locked by this, so nobody writes to them before all is copied.
CREATE TRIGGER flavor_to_document AFTER INSERT OR UPDATE OR DELETE ON flavor
    FOR EACH ROW WHEN (pg_trigger_depth() = 0) EXECUTE FUNCTION flavor_to_document();
CREATE TRIGGER property_to_document AFTER INSERT OR UPDATE OR DELETE ON property
    FOR EACH ROW WHEN (pg_trigger_depth() = 0) EXECUTE FUNCTION property_to_document();
CREATE TRIGGER preemptible_project_to_document AFTER INSERT OR UPDATE OR DELETE ON preemptible_project
    FOR EACH ROW WHEN (pg_trigger_depth() = 0) EXECUTE FUNCTION preemptible_project_to_document();

INSERT INTO document (kind, id, body)
    SELECT 'flavor', id, body FROM flavor_as_document
    UNION ALL SELECT 'property', id, body FROM property_as_document
    UNION ALL SELECT 'preemptible-project', id, body FROM preemptible_project_as_document;

CREATE TRIGGER document_to_tables AFTER INSERT OR UPDATE OR DELETE ON document
    FOR EACH ROW WHEN (pg_trigger_depth() = 0) EXECUTE FUNCTION document_to_tables();
