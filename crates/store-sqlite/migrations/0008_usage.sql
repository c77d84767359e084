-- Usage: spans of time in which something was held. An open one has a key, and ends as is planned now.
CREATE TABLE usage_span (
    number      INTEGER NOT NULL PRIMARY KEY,
    open_key    TEXT    UNIQUE,
    kind        TEXT    NOT NULL CHECK (kind IN ('lease', 'host', 'room', 'address', 'instance')),
    thing       BLOB    CHECK (length(thing) = 16),
    host        INTEGER,
    pool        TEXT,
    count       INTEGER NOT NULL,
    cores       INTEGER NOT NULL,
    memory_mib  INTEGER NOT NULL,
    disk_gib    INTEGER NOT NULL,
    lease       BLOB    CHECK (length(lease) = 16),
    reservation BLOB    CHECK (length(reservation) = 16),
    project     TEXT    NOT NULL,
    user_id     TEXT    NOT NULL,
    lease_type  TEXT,
    begins      INTEGER NOT NULL CHECK (begins IN (0, 1)),
    starts_us   INTEGER NOT NULL,
    ends_us     INTEGER NOT NULL,
    CHECK (starts_us <= ends_us)
) STRICT;
CREATE INDEX usage_span_ends ON usage_span (ends_us);
CREATE INDEX usage_span_lease ON usage_span (lease);
CREATE INDEX usage_span_project ON usage_span (project, ends_us);

-- What happened. Hosts are a JSON list of numbers.
CREATE TABLE usage_event (
    number     INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    at_us      INTEGER NOT NULL,
    what       TEXT    NOT NULL,
    lease      BLOB    CHECK (length(lease) = 16),
    instance   BLOB    CHECK (length(instance) = 16),
    project    TEXT    NOT NULL,
    user_id    TEXT    NOT NULL,
    lease_type TEXT,
    status     TEXT    NOT NULL,
    starts_us  INTEGER,
    ends_us    INTEGER,
    hosts      TEXT    NOT NULL CHECK (json_valid(hosts)),
    reason     TEXT
) STRICT;
CREATE INDEX usage_event_at ON usage_event (at_us);
CREATE INDEX usage_event_lease ON usage_event (lease);
CREATE INDEX usage_event_project ON usage_event (project);

-- A service of an earlier version would not write down what is to be billed.
UPDATE compatibility SET oldest = 8;
