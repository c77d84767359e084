-- Usage: spans of time in which something was held. An open one has a key, and ends as is planned now.
CREATE TABLE usage_span (
    number      bigint  GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    open_key    text    UNIQUE,
    kind        text    NOT NULL CHECK (kind IN ('lease', 'host', 'room', 'address', 'instance')),
    thing       uuid,
    host        bigint,
    pool        text,
    count       bigint  NOT NULL,
    cores       bigint  NOT NULL,
    memory_mib  bigint  NOT NULL,
    disk_gib    bigint  NOT NULL,
    lease       uuid,
    reservation uuid,
    project     text    NOT NULL,
    user_id     text    NOT NULL,
    lease_type  text,
    begins      boolean NOT NULL,
    starts_us   bigint  NOT NULL,
    ends_us     bigint  NOT NULL,
    CHECK (starts_us <= ends_us)
);
CREATE INDEX usage_span_ends ON usage_span (ends_us);
CREATE INDEX usage_span_lease ON usage_span (lease);
CREATE INDEX usage_span_project ON usage_span (project, ends_us);

-- What happened. Hosts are a JSON list of numbers.
CREATE TABLE usage_event (
    number     bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at_us      bigint NOT NULL,
    what       text   NOT NULL,
    lease      uuid,
    instance   uuid,
    project    text   NOT NULL,
    user_id    text   NOT NULL,
    lease_type text,
    status     text   NOT NULL,
    starts_us  bigint,
    ends_us    bigint,
    hosts      text   NOT NULL,
    reason     text
);
CREATE INDEX usage_event_at ON usage_event (at_us);
CREATE INDEX usage_event_lease ON usage_event (lease);
CREATE INDEX usage_event_project ON usage_event (project);

-- A service of an earlier version would not write down what is to be billed.
UPDATE compatibility SET oldest = 7;
