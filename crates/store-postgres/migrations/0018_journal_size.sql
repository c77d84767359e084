-- Journals expire by age and by size. Sizes are counted for each project and journal, so that the records of a project
-- never displace those of another.

-- Audit records of administrators, of logins and of the service itself expire by age only. So do existing records, and those
-- that the version before goes on to write: nothing says whether an administrator caused them.
ALTER TABLE audit ADD COLUMN protected boolean NOT NULL DEFAULT true;
CREATE INDEX audit_project ON audit (project, number) WHERE NOT protected;

-- What a record counts: its texts, and 128 for the rest.
CREATE FUNCTION audit_bytes(user_id text, project text, request_id text, action text, object text)
    RETURNS bigint LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT 128::bigint + octet_length(user_id) + octet_length(project) + octet_length(request_id)
        + octet_length(action) + octet_length(object)
$$;
CREATE FUNCTION notification_bytes(project text, event_type text, payload text)
    RETURNS bigint LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT 128::bigint + octet_length(project) + octet_length(event_type) + octet_length(payload)
$$;

-- Share of a project in a journal.
CREATE TABLE journal_size (
    journal text   NOT NULL CHECK (journal IN ('audit', 'notifications', 'protected_audit')),
    project text   NOT NULL,
    records bigint NOT NULL,
    bytes   bigint NOT NULL,
    PRIMARY KEY (journal, project)
);

-- Highest numbers that are counted. Records are counted later, many at a time, so that commits do not wait for each other's
-- counts.
CREATE TABLE journal_counted (
    one          boolean PRIMARY KEY CHECK (one),
    audit        bigint  NOT NULL,
    notification bigint  NOT NULL
);
INSERT INTO journal_counted (one, audit, notification) VALUES (true, 0, 0);

-- Deletions and counts wait for each other, so a deleted record is either not counted or subtracted.
CREATE FUNCTION discount_audit() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    counted bigint;
BEGIN
    SELECT audit INTO counted FROM journal_counted FOR SHARE;
    INSERT INTO journal_size AS size (journal, project, records, bytes)
    SELECT journal, project, -count(*), -sum(bytes) FROM (
        SELECT CASE WHEN protected THEN 'protected_audit' ELSE 'audit' END AS journal, project,
            audit_bytes(user_id, project, request_id, action, object) AS bytes
        FROM deleted WHERE number <= counted
    ) AS each GROUP BY journal, project ORDER BY journal, project
    ON CONFLICT (journal, project) DO UPDATE SET
        records = size.records + excluded.records, bytes = size.bytes + excluded.bytes;
    RETURN NULL;
END
$$;
CREATE TRIGGER audit_deleted AFTER DELETE ON audit
    REFERENCING OLD TABLE AS deleted FOR EACH STATEMENT EXECUTE FUNCTION discount_audit();

CREATE FUNCTION discount_notifications() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    counted bigint;
BEGIN
    SELECT notification INTO counted FROM journal_counted FOR SHARE;
    INSERT INTO journal_size AS size (journal, project, records, bytes)
    SELECT 'notifications', project, -count(*), -sum(notification_bytes(project, event_type, payload))
    FROM deleted WHERE number <= counted GROUP BY project ORDER BY project
    ON CONFLICT (journal, project) DO UPDATE SET
        records = size.records + excluded.records, bytes = size.bytes + excluded.bytes;
    RETURN NULL;
END
$$;
CREATE TRIGGER notification_deleted AFTER DELETE ON notification
    REFERENCING OLD TABLE AS deleted FOR EACH STATEMENT EXECUTE FUNCTION discount_notifications();
