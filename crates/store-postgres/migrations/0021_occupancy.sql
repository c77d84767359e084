-- What looks at the whole hosts of leases saw: fences, instances, and times when nothing was seen. Intervals without an end
-- are open.
CREATE TABLE occupancy (
    number           bigint  GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    lease            uuid    NOT NULL,
    project          text    NOT NULL,
    host             bigint  NOT NULL,
    fact             text    NOT NULL,
    -- Zero if the fact is about no instance.
    instance         uuid    NOT NULL,
    instance_project text,
    begins           boolean NOT NULL,
    starts_us        bigint  NOT NULL,
    ends_us          bigint  CHECK (starts_us <= ends_us)
);
CREATE UNIQUE INDEX occupancy_open ON occupancy (host, lease, fact, instance) WHERE ends_us IS NULL;
CREATE INDEX occupancy_lease ON occupancy (lease, number);
CREATE INDEX occupancy_project ON occupancy (project, number) WHERE ends_us IS NOT NULL;
CREATE INDEX occupancy_ends ON occupancy (ends_us) WHERE ends_us IS NOT NULL;

-- Until when all that was seen is recorded.
CREATE TABLE occupancy_seen (
    one      boolean PRIMARY KEY CHECK (one),
    until_us bigint  NOT NULL
);

-- What a record counts: its texts, and 128 for the rest.
CREATE FUNCTION occupancy_bytes(project text, instance_project text)
    RETURNS bigint LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT 128::bigint + octet_length(project) + coalesce(octet_length(instance_project), 0)
$$;

-- Share of the projects of leases.
CREATE TABLE occupancy_size (
    project text   PRIMARY KEY,
    bytes   bigint NOT NULL
);
CREATE FUNCTION count_occupancy() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO occupancy_size AS size (project, bytes)
    SELECT project, sum(occupancy_bytes(project, instance_project)) FROM added GROUP BY project ORDER BY project
    ON CONFLICT (project) DO UPDATE SET bytes = size.bytes + excluded.bytes;
    RETURN NULL;
END
$$;
CREATE TRIGGER occupancy_added AFTER INSERT ON occupancy
    REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION count_occupancy();
CREATE FUNCTION discount_occupancy() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO occupancy_size AS size (project, bytes)
    SELECT project, -sum(occupancy_bytes(project, instance_project)) FROM deleted GROUP BY project ORDER BY project
    ON CONFLICT (project) DO UPDATE SET bytes = size.bytes + excluded.bytes;
    RETURN NULL;
END
$$;
CREATE TRIGGER occupancy_removed AFTER DELETE ON occupancy
    REFERENCING OLD TABLE AS deleted FOR EACH STATEMENT EXECUTE FUNCTION discount_occupancy();
