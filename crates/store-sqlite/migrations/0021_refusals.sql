-- Requests that were refused for lack of capacity, by project and day. A project has at most 1,000 rows. Services of an earlier
-- version leave them alone.
CREATE TABLE refusal (
    project       TEXT    NOT NULL,
    -- Beginning of the day in UTC.
    day_us        INTEGER NOT NULL,
    resource_type TEXT    NOT NULL,
    -- What each host, instance or address must be like.
    kind          TEXT    NOT NULL,
    -- Hosts, instances or addresses that were missing; 0 if more would not have helped, or if there were too many.
    missing       INTEGER NOT NULL CHECK (missing >= 0),
    refused       INTEGER NOT NULL CHECK (refused > 0),
    PRIMARY KEY (project, day_us, resource_type, kind, missing)
) STRICT, WITHOUT ROWID;
CREATE INDEX refusal_day ON refusal (day_us);
