-- Times are microseconds since 1970 in UTC (*_us): timestamps of PostgreSQL do not go back as far as those of
-- leases may, and an int8range of them is as exact. Windows are half-open.
--
-- Bookings (host_allocation, slot_use, floating_ip_allocation) take something from others if kept. What they take
-- is checked when they are inserted; a row that exists can only come to take less. So there is one place for each
-- check, and what shrinks is never refused.
--
-- That no two transactions take the same: whole hosts and addresses exclude each other by constraints. Sums of
-- slots, and slots beside whole hosts, are added up by triggers under the lock of the host's row, so that whoever
-- adds up sees all that others have committed. Locks rather than serializable transactions: those of a host come
-- one after another either way, and nobody has to begin anew for it.

CREATE EXTENSION IF NOT EXISTS btree_gist;

CREATE TABLE host (
    id                 bigint  PRIMARY KEY,
    version            bigint  NOT NULL,
    name               text    NOT NULL UNIQUE,
    service_name       text    NOT NULL,
    traits             text    NOT NULL CHECK (traits::json IS NOT NULL),
    cpu_info           text    NOT NULL,
    hypervisor_type    text    NOT NULL,
    hypervisor_version bigint  NOT NULL,
    availability_zone  text    NOT NULL,
    capabilities       text    NOT NULL CHECK (capabilities::json IS NOT NULL),
    reservable         boolean NOT NULL,
    health             text    NOT NULL CHECK (health IN ('up', 'failed', 'unknown')),
    created_at_us      bigint  NOT NULL,
    updated_at_us      bigint
);

-- What instances may use of a host, by Placement's names of resource classes. Amounts stop at 2^62 - 1, as in the
-- SQLite store.
CREATE TABLE host_capacity (
    host   bigint NOT NULL REFERENCES host (id) ON DELETE CASCADE,
    class  text   NOT NULL,
    amount bigint NOT NULL CHECK (amount BETWEEN 0 AND 4611686018427387903),
    PRIMARY KEY (host, class)
);

CREATE TABLE floating_ip (
    id            uuid    PRIMARY KEY,
    network       text    NOT NULL,
    address       text    NOT NULL,
    subnet        text    NOT NULL,
    reservable    boolean NOT NULL,
    created_at_us bigint  NOT NULL,
    UNIQUE (network, address)
);

CREATE TABLE flavor (
    id            text    PRIMARY KEY,
    name          text    NOT NULL,
    vcpus         bigint  NOT NULL,
    memory_mib    bigint  NOT NULL,
    disk_gib      bigint  NOT NULL,
    ephemeral_gib bigint  NOT NULL,
    swap_mib      bigint  NOT NULL,
    public        boolean NOT NULL,
    extra_specs   text    NOT NULL CHECK (extra_specs::json IS NOT NULL),
    created_at_us bigint  NOT NULL
);

CREATE TABLE property (
    name          text    PRIMARY KEY,
    id            uuid    NOT NULL,
    private       boolean NOT NULL,
    created_at_us bigint  NOT NULL,
    updated_at_us bigint
);

CREATE TABLE lease (
    id                uuid   PRIMARY KEY,
    version           bigint NOT NULL,
    name              text   NOT NULL,
    project           text   NOT NULL,
    user_id           text   NOT NULL,
    starts_us         bigint NOT NULL,
    ends_us           bigint NOT NULL,
    before_end_us     bigint,
    end_action        text   NOT NULL CHECK (end_action IN ('delete_guests', 'keep_guests')),
    status            text   NOT NULL CHECK (status IN (
        'CREATING', 'PENDING', 'STARTING', 'ACTIVE', 'UPDATING', 'TERMINATING', 'TERMINATED', 'DELETING', 'ERROR'
    )),
    start_event       text   NOT NULL CHECK (start_event IN ('UNDONE', 'IN_PROGRESS', 'DONE', 'ERROR')),
    before_end_event  text   NOT NULL CHECK (before_end_event IN ('UNDONE', 'IN_PROGRESS', 'DONE', 'ERROR')),
    end_event         text   NOT NULL CHECK (end_event IN ('UNDONE', 'IN_PROGRESS', 'DONE', 'ERROR')),
    reason            text,
    created_at_us     bigint NOT NULL,
    updated_at_us     bigint,
    CHECK (starts_us <= ends_us)
);

CREATE TABLE reservation (
    lease                 uuid    NOT NULL REFERENCES lease (id) ON DELETE CASCADE,
    id                    uuid    NOT NULL,
    position              bigint  NOT NULL,
    terms                 text    NOT NULL CHECK (terms::json IS NOT NULL),
    status                text    NOT NULL CHECK (status IN ('pending', 'active', 'deleted', 'error')),
    missing_resources     boolean NOT NULL,
    resources_changed     boolean NOT NULL,
    hypervisor_properties text,
    resource_properties   text,
    PRIMARY KEY (lease, id)
);

-- Whole hosts.
CREATE TABLE host_allocation (
    lease       uuid    NOT NULL,
    reservation uuid    NOT NULL,
    host        bigint  NOT NULL,
    starts_us   bigint  NOT NULL,
    ends_us     bigint  NOT NULL,
    kept        boolean NOT NULL,
    PRIMARY KEY (lease, reservation, host),
    FOREIGN KEY (lease, reservation) REFERENCES reservation (lease, id) ON DELETE CASCADE,
    CHECK (starts_us <= ends_us),
    CONSTRAINT host_allocation_once
        EXCLUDE USING gist (host WITH =, int8range(starts_us, ends_us, '[)') WITH &&) WHERE (kept)
);

CREATE INDEX host_allocation_kept ON host_allocation (host, starts_us, ends_us) WHERE kept;

-- Slots on hosts, and what they use of each resource.
CREATE TABLE slot_allocation (
    lease       uuid   NOT NULL,
    reservation uuid   NOT NULL,
    host        bigint NOT NULL,
    slots       bigint NOT NULL CHECK (slots > 0),
    PRIMARY KEY (lease, reservation, host),
    FOREIGN KEY (lease, reservation) REFERENCES reservation (lease, id) ON DELETE CASCADE
);

CREATE TABLE slot_use (
    lease       uuid    NOT NULL,
    reservation uuid    NOT NULL,
    host        bigint  NOT NULL,
    class       text    NOT NULL,
    amount      bigint  NOT NULL CHECK (amount BETWEEN 1 AND 4611686018427387904),
    starts_us   bigint  NOT NULL,
    ends_us     bigint  NOT NULL,
    kept        boolean NOT NULL,
    PRIMARY KEY (lease, reservation, host, class),
    FOREIGN KEY (lease, reservation, host) REFERENCES slot_allocation (lease, reservation, host) ON DELETE CASCADE,
    CHECK (starts_us <= ends_us)
);

CREATE INDEX slot_use_kept ON slot_use (host, class, starts_us, ends_us, amount) WHERE kept;

CREATE TABLE floating_ip_allocation (
    lease       uuid    NOT NULL,
    reservation uuid    NOT NULL,
    floating_ip uuid    NOT NULL,
    starts_us   bigint  NOT NULL,
    ends_us     bigint  NOT NULL,
    kept        boolean NOT NULL,
    PRIMARY KEY (lease, reservation, floating_ip),
    FOREIGN KEY (lease, reservation) REFERENCES reservation (lease, id) ON DELETE CASCADE,
    CHECK (starts_us <= ends_us),
    CONSTRAINT floating_ip_allocation_once
        EXCLUDE USING gist (floating_ip WITH =, int8range(starts_us, ends_us, '[)') WITH &&) WHERE (kept)
);

-- Locks a host's row until the end of the transaction.
--
-- What is added up afterwards must be what others have committed until then. In a transaction of another level it
-- would be what they had when it began, so it is refused.
CREATE FUNCTION lock_host(wanted bigint) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF current_setting('transaction_isolation') <> 'read committed' THEN
        RAISE EXCEPTION 'allot: bookings are made in transactions that are read committed';
    END IF;
    PERFORM FROM host WHERE id = wanted FOR NO KEY UPDATE;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'allot: gone';
    END IF;
END
$$;

-- A whole host excludes slots that overlap; that it excludes whole hosts is a constraint.
CREATE FUNCTION host_allocation_takes() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM lock_host(NEW.host);
    IF NEW.starts_us < NEW.ends_us AND EXISTS (
        SELECT FROM slot_use AS other
        WHERE other.host = NEW.host AND other.kept
            AND other.starts_us < NEW.ends_us AND NEW.starts_us < other.ends_us
            AND other.starts_us < other.ends_us
    ) THEN
        RAISE EXCEPTION 'allot: taken';
    END IF;
    RETURN NEW;
END
$$;
CREATE TRIGGER host_allocation_takes BEFORE INSERT ON host_allocation
    FOR EACH ROW WHEN (NEW.kept) EXECUTE FUNCTION host_allocation_takes();

-- Slots exclude whole hosts that overlap, and fit together with others at every instant. The sum rises only where
-- a use starts, so it is taken at the start of the new one and at the starts of others inside it.
CREATE FUNCTION slot_use_takes() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    room bigint;
BEGIN
    PERFORM lock_host(NEW.host);
    IF NEW.starts_us = NEW.ends_us THEN
        RETURN NEW;
    END IF;
    IF EXISTS (
        SELECT FROM host_allocation AS other
        WHERE other.host = NEW.host AND other.kept
            AND other.starts_us < NEW.ends_us AND NEW.starts_us < other.ends_us
            AND other.starts_us < other.ends_us
    ) THEN
        RAISE EXCEPTION 'allot: taken';
    END IF;
    SELECT coalesce((SELECT amount FROM host_capacity WHERE host = NEW.host AND class = NEW.class), 0) INTO room;
    IF EXISTS (
        SELECT FROM (
            SELECT NEW.starts_us AS instant_us
            UNION ALL
            SELECT other.starts_us FROM slot_use AS other
            WHERE other.host = NEW.host AND other.class = NEW.class AND other.kept
                AND other.starts_us > NEW.starts_us AND other.starts_us < NEW.ends_us
        ) AS turn
        WHERE NEW.amount + (
            SELECT coalesce(sum(other.amount), 0) FROM slot_use AS other
            WHERE other.host = NEW.host AND other.class = NEW.class AND other.kept
                AND other.starts_us <= turn.instant_us AND turn.instant_us < other.ends_us
        ) > room
    ) THEN
        RAISE EXCEPTION 'allot: no_room';
    END IF;
    RETURN NEW;
END
$$;
CREATE TRIGGER slot_use_takes BEFORE INSERT ON slot_use
    FOR EACH ROW WHEN (NEW.kept) EXECUTE FUNCTION slot_use_takes();

-- What exclusion leaves open: that the address exists.
CREATE FUNCTION floating_ip_allocation_takes() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM FROM floating_ip WHERE id = NEW.floating_ip FOR NO KEY UPDATE;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'allot: gone';
    END IF;
    RETURN NEW;
END
$$;
CREATE TRIGGER floating_ip_allocation_takes BEFORE INSERT ON floating_ip_allocation
    FOR EACH ROW WHEN (NEW.kept) EXECUTE FUNCTION floating_ip_allocation_takes();

CREATE FUNCTION only_shrinks() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'allot: a booking that grows has to be inserted anew';
END
$$;
CREATE TRIGGER host_allocation_only_shrinks BEFORE UPDATE ON host_allocation
    FOR EACH ROW WHEN (NEW.kept AND NEW.starts_us < NEW.ends_us AND NOT (
        OLD.kept AND OLD.host = NEW.host AND OLD.starts_us <= NEW.starts_us AND NEW.ends_us <= OLD.ends_us
    )) EXECUTE FUNCTION only_shrinks();
CREATE TRIGGER slot_use_only_shrinks BEFORE UPDATE ON slot_use
    FOR EACH ROW WHEN (NEW.kept AND NEW.starts_us < NEW.ends_us AND NOT (
        OLD.kept AND OLD.host = NEW.host AND OLD.class = NEW.class AND NEW.amount <= OLD.amount
        AND OLD.starts_us <= NEW.starts_us AND NEW.ends_us <= OLD.ends_us
    )) EXECUTE FUNCTION only_shrinks();
CREATE TRIGGER floating_ip_allocation_only_shrinks BEFORE UPDATE ON floating_ip_allocation
    FOR EACH ROW WHEN (NEW.kept AND NEW.starts_us < NEW.ends_us AND NOT (
        OLD.kept AND OLD.floating_ip = NEW.floating_ip
        AND OLD.starts_us <= NEW.starts_us AND NEW.ends_us <= OLD.ends_us
    )) EXECUTE FUNCTION only_shrinks();

-- Under the row's lock, which bookings take as well.
CREATE FUNCTION host_in_use() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM FROM host WHERE id = OLD.id FOR UPDATE;
    IF EXISTS (SELECT FROM host_allocation WHERE host = OLD.id AND kept)
        OR EXISTS (SELECT FROM slot_use WHERE host = OLD.id AND kept)
    THEN
        RAISE EXCEPTION 'allot: in_use';
    END IF;
    RETURN OLD;
END
$$;
CREATE TRIGGER host_in_use BEFORE DELETE ON host FOR EACH ROW EXECUTE FUNCTION host_in_use();

CREATE FUNCTION floating_ip_in_use() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM FROM floating_ip WHERE id = OLD.id FOR UPDATE;
    IF EXISTS (SELECT FROM floating_ip_allocation WHERE floating_ip = OLD.id AND kept) THEN
        RAISE EXCEPTION 'allot: in_use';
    END IF;
    RETURN OLD;
END
$$;
CREATE TRIGGER floating_ip_in_use BEFORE DELETE ON floating_ip
    FOR EACH ROW EXECUTE FUNCTION floating_ip_in_use();

-- Who carries out which step, and what became of steps. Fences are counted over all steps, under the lock of the
-- one row: a sequence would give a claim that waited for another one the lower number.
CREATE TABLE step_claim (
    step     text   PRIMARY KEY,
    holder   text   NOT NULL,
    fence    bigint NOT NULL UNIQUE,
    until_us bigint NOT NULL
);

CREATE TABLE fence (
    one  boolean PRIMARY KEY CHECK (one),
    last bigint  NOT NULL
);
INSERT INTO fence (one, last) VALUES (true, 0);

CREATE TABLE step_failure (
    step       text   PRIMARY KEY,
    times      bigint NOT NULL CHECK (times > 0),
    last_at_us bigint NOT NULL,
    message    text   NOT NULL
);

-- Successes that leave nothing behind that can be observed.
CREATE TABLE step_success (
    step  text   PRIMARY KEY,
    at_us bigint NOT NULL
);

CREATE TABLE notification (
    number     bigint PRIMARY KEY,
    at_us      bigint NOT NULL,
    lease      uuid   NOT NULL,
    project    text   NOT NULL,
    event_type text   NOT NULL,
    payload    text   NOT NULL
);
CREATE INDEX notification_at ON notification (at_us);

CREATE TABLE listener (
    name      text   PRIMARY KEY,
    delivered bigint NOT NULL
);

CREATE TABLE audit (
    number     bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY,
    at_us      bigint NOT NULL,
    user_id    text   NOT NULL,
    project    text   NOT NULL,
    request_id text   NOT NULL,
    action     text   NOT NULL,
    object     text   NOT NULL
);
CREATE INDEX audit_at ON audit (at_us);

CREATE TABLE request_key (
    project     text   NOT NULL,
    key         text   NOT NULL,
    fingerprint text   NOT NULL,
    lease       uuid   NOT NULL,
    at_us       bigint NOT NULL,
    PRIMARY KEY (project, key)
);
CREATE INDEX request_key_at ON request_key (at_us);

-- The last revision, and the number of the last notification. A commit changes this row as the last thing it does,
-- and so holds its lock until it is visible: numbers of a sequence become visible in any order, and who has seen
-- the higher one would never look for the lower.
CREATE TABLE revision (
    one           boolean PRIMARY KEY CHECK (one),
    number        bigint  NOT NULL,
    mark          uuid    NOT NULL,
    previous_mark uuid    NOT NULL,
    notifications bigint  NOT NULL
) WITH (fillfactor = 10);
INSERT INTO revision (one, number, mark, previous_mark, notifications)
    VALUES (true, 0, gen_random_uuid(), gen_random_uuid(), 0);

-- What was changed in which revision (RecordKey as text).
CREATE TABLE change (
    number bigint PRIMARY KEY,
    mark   uuid   NOT NULL,
    keys   text[] NOT NULL
);
INSERT INTO change (number, mark, keys) SELECT number, mark, '{}' FROM revision;

-- A hint to those who wait for a change; they look now and then anyway.
CREATE FUNCTION tell_revision() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_notify('allot_revision', NEW.number::text);
    RETURN NULL;
END
$$;
CREATE TRIGGER tell_revision AFTER UPDATE ON revision FOR EACH ROW EXECUTE FUNCTION tell_revision();

-- Who leads in roles that one service has at a time.
CREATE TABLE leader (
    role     text   PRIMARY KEY,
    holder   text   NOT NULL,
    until_us bigint NOT NULL
);

-- Written to find out whether it can be.
CREATE TABLE probe (
    one    boolean PRIMARY KEY CHECK (one),
    writes bigint  NOT NULL
);
INSERT INTO probe (one, writes) VALUES (true, 0);

-- The oldest migration that a service has to know to work with this schema: see README.md beside this file.
CREATE TABLE compatibility (
    one    boolean PRIMARY KEY CHECK (one),
    oldest bigint  NOT NULL
);
INSERT INTO compatibility (one, oldest) VALUES (true, 1);
