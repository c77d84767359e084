-- Journals expire by age and by size. Sizes are counted for each project and journal, so that the records of a project
-- never displace those of another.

-- Audit records of administrators, of logins and of the service itself expire by age only. So do existing records, and those
-- that the version before goes on to write: nothing says whether an administrator caused them.
ALTER TABLE audit ADD COLUMN protected INTEGER NOT NULL DEFAULT 1 CHECK (protected IN (0, 1));

-- Share of a project in a journal. A record counts the bytes of its texts, and 128 for the rest. Remaining audit records of the
-- project that are not protected have numbers above `searched`.
CREATE TABLE journal_size (
    journal  TEXT    NOT NULL CHECK (journal IN ('audit', 'notifications', 'protected_audit')),
    project  TEXT    NOT NULL,
    records  INTEGER NOT NULL,
    bytes    INTEGER NOT NULL,
    searched INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (journal, project)
) STRICT, WITHOUT ROWID;

-- Highest numbers that are counted. Records are counted later, many at a time: triggers would have each commit write two
-- more pages.
CREATE TABLE journal_counted (
    one          INTEGER NOT NULL PRIMARY KEY CHECK (one = 1),
    audit        INTEGER NOT NULL,
    notification INTEGER NOT NULL
) STRICT;
INSERT INTO journal_counted (one, audit, notification) VALUES (1, 0, 0);

CREATE TRIGGER audit_deleted AFTER DELETE ON audit WHEN OLD.number <= (SELECT audit FROM journal_counted)
BEGIN
    UPDATE journal_size SET records = records - 1,
        bytes = bytes - 128 - octet_length(OLD.user_id) - octet_length(OLD.project) - octet_length(OLD.request_id)
            - octet_length(OLD.action) - octet_length(OLD.object)
        WHERE journal = iif(OLD.protected, 'protected_audit', 'audit') AND project = OLD.project;
END;
CREATE TRIGGER notification_deleted AFTER DELETE ON notification
WHEN OLD.number <= (SELECT notification FROM journal_counted)
BEGIN
    UPDATE journal_size SET records = records - 1,
        bytes = bytes - 128 - octet_length(OLD.project) - octet_length(OLD.event_type) - octet_length(OLD.payload)
        WHERE journal = 'notifications' AND project = OLD.project;
END;
