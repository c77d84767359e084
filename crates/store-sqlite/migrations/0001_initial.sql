-- Times are microseconds since 1970 in UTC (*_us). UUIDs are 16 bytes. Windows are half-open.
--
-- Bookings (host_allocation, slot_use, floating_ip_allocation) take something from others if kept = 1. What they
-- take is checked when they are inserted; a row that exists can only come to take less. So there is one place
-- for each check, and what shrinks is never refused.

CREATE TABLE host (
    id                 INTEGER NOT NULL PRIMARY KEY,
    version            INTEGER NOT NULL,
    name               TEXT    NOT NULL UNIQUE,
    service_name       TEXT    NOT NULL,
    traits             TEXT    NOT NULL CHECK (json_valid(traits)),
    cpu_info           TEXT    NOT NULL,
    hypervisor_type    TEXT    NOT NULL,
    hypervisor_version INTEGER NOT NULL,
    availability_zone  TEXT    NOT NULL,
    capabilities       TEXT    NOT NULL CHECK (json_valid(capabilities)),
    reservable         INTEGER NOT NULL CHECK (reservable IN (0, 1)),
    health             TEXT    NOT NULL CHECK (health IN ('up', 'failed', 'unknown')),
    created_at_us      INTEGER NOT NULL,
    updated_at_us      INTEGER
) STRICT;

-- What instances may use of a host, by Placement's names of resource classes. Amounts stop at 2^62 - 1, so that
-- sums cannot overflow.
CREATE TABLE host_capacity (
    host   INTEGER NOT NULL REFERENCES host (id) ON DELETE CASCADE,
    class  TEXT    NOT NULL,
    amount INTEGER NOT NULL CHECK (amount BETWEEN 0 AND 4611686018427387903),
    PRIMARY KEY (host, class)
) STRICT, WITHOUT ROWID;

CREATE TABLE floating_ip (
    id            BLOB    NOT NULL PRIMARY KEY CHECK (length(id) = 16),
    network       TEXT    NOT NULL,
    address       TEXT    NOT NULL,
    subnet        TEXT    NOT NULL,
    reservable    INTEGER NOT NULL CHECK (reservable IN (0, 1)),
    created_at_us INTEGER NOT NULL,
    UNIQUE (network, address)
) STRICT;

CREATE TABLE flavor (
    id            TEXT    NOT NULL PRIMARY KEY,
    name          TEXT    NOT NULL,
    vcpus         INTEGER NOT NULL,
    memory_mib    INTEGER NOT NULL,
    disk_gib      INTEGER NOT NULL,
    ephemeral_gib INTEGER NOT NULL,
    swap_mib      INTEGER NOT NULL,
    public        INTEGER NOT NULL CHECK (public IN (0, 1)),
    extra_specs   TEXT    NOT NULL CHECK (json_valid(extra_specs)),
    created_at_us INTEGER NOT NULL
) STRICT;

CREATE TABLE property (
    name          TEXT    NOT NULL PRIMARY KEY,
    id            BLOB    NOT NULL CHECK (length(id) = 16),
    private       INTEGER NOT NULL CHECK (private IN (0, 1)),
    created_at_us INTEGER NOT NULL,
    updated_at_us INTEGER
) STRICT;

CREATE TABLE lease (
    id                BLOB    NOT NULL PRIMARY KEY CHECK (length(id) = 16),
    version           INTEGER NOT NULL,
    name              TEXT    NOT NULL,
    project           TEXT    NOT NULL,
    user_id           TEXT    NOT NULL,
    starts_us         INTEGER NOT NULL,
    ends_us           INTEGER NOT NULL,
    before_end_us     INTEGER,
    end_action        TEXT    NOT NULL CHECK (end_action IN ('delete_guests', 'keep_guests')),
    status            TEXT    NOT NULL CHECK (status IN (
        'CREATING', 'PENDING', 'STARTING', 'ACTIVE', 'UPDATING', 'TERMINATING', 'TERMINATED', 'DELETING', 'ERROR'
    )),
    start_event       TEXT    NOT NULL CHECK (start_event IN ('UNDONE', 'IN_PROGRESS', 'DONE', 'ERROR')),
    before_end_event  TEXT    NOT NULL CHECK (before_end_event IN ('UNDONE', 'IN_PROGRESS', 'DONE', 'ERROR')),
    end_event         TEXT    NOT NULL CHECK (end_event IN ('UNDONE', 'IN_PROGRESS', 'DONE', 'ERROR')),
    reason            TEXT,
    created_at_us     INTEGER NOT NULL,
    updated_at_us     INTEGER,
    CHECK (starts_us <= ends_us)
) STRICT, WITHOUT ROWID;

CREATE TABLE reservation (
    lease                 BLOB    NOT NULL REFERENCES lease (id) ON DELETE CASCADE,
    id                    BLOB    NOT NULL CHECK (length(id) = 16),
    position              INTEGER NOT NULL,
    terms                 TEXT    NOT NULL CHECK (json_valid(terms)),
    status                TEXT    NOT NULL CHECK (status IN ('pending', 'active', 'deleted', 'error')),
    missing_resources     INTEGER NOT NULL CHECK (missing_resources IN (0, 1)),
    resources_changed     INTEGER NOT NULL CHECK (resources_changed IN (0, 1)),
    hypervisor_properties TEXT,
    resource_properties   TEXT,
    PRIMARY KEY (lease, id)
) STRICT, WITHOUT ROWID;

-- Whole hosts.
CREATE TABLE host_allocation (
    lease       BLOB    NOT NULL,
    reservation BLOB    NOT NULL,
    host        INTEGER NOT NULL,
    starts_us   INTEGER NOT NULL,
    ends_us     INTEGER NOT NULL,
    kept        INTEGER NOT NULL CHECK (kept IN (0, 1)),
    PRIMARY KEY (lease, reservation, host),
    FOREIGN KEY (lease, reservation) REFERENCES reservation (lease, id) ON DELETE CASCADE,
    CHECK (starts_us <= ends_us)
) STRICT, WITHOUT ROWID;

CREATE INDEX host_allocation_kept ON host_allocation (host, starts_us, ends_us) WHERE kept = 1;

-- Slots on hosts, and what they use of each resource.
CREATE TABLE slot_allocation (
    lease       BLOB    NOT NULL,
    reservation BLOB    NOT NULL,
    host        INTEGER NOT NULL,
    slots       INTEGER NOT NULL CHECK (slots > 0),
    PRIMARY KEY (lease, reservation, host),
    FOREIGN KEY (lease, reservation) REFERENCES reservation (lease, id) ON DELETE CASCADE
) STRICT, WITHOUT ROWID;

CREATE TABLE slot_use (
    lease       BLOB    NOT NULL,
    reservation BLOB    NOT NULL,
    host        INTEGER NOT NULL,
    class       TEXT    NOT NULL,
    amount      INTEGER NOT NULL CHECK (amount BETWEEN 1 AND 4611686018427387904),
    starts_us   INTEGER NOT NULL,
    ends_us     INTEGER NOT NULL,
    kept        INTEGER NOT NULL CHECK (kept IN (0, 1)),
    PRIMARY KEY (lease, reservation, host, class),
    FOREIGN KEY (lease, reservation, host) REFERENCES slot_allocation (lease, reservation, host) ON DELETE CASCADE,
    CHECK (starts_us <= ends_us)
) STRICT, WITHOUT ROWID;

CREATE INDEX slot_use_kept ON slot_use (host, class, starts_us, ends_us, amount) WHERE kept = 1;

CREATE TABLE floating_ip_allocation (
    lease       BLOB    NOT NULL,
    reservation BLOB    NOT NULL,
    floating_ip BLOB    NOT NULL,
    starts_us   INTEGER NOT NULL,
    ends_us     INTEGER NOT NULL,
    kept        INTEGER NOT NULL CHECK (kept IN (0, 1)),
    PRIMARY KEY (lease, reservation, floating_ip),
    FOREIGN KEY (lease, reservation) REFERENCES reservation (lease, id) ON DELETE CASCADE,
    CHECK (starts_us <= ends_us)
) STRICT, WITHOUT ROWID;

CREATE INDEX floating_ip_allocation_kept ON floating_ip_allocation (floating_ip, starts_us, ends_us) WHERE kept = 1;

-- A whole host excludes whole hosts and slots that overlap.
CREATE TRIGGER host_allocation_takes BEFORE INSERT ON host_allocation WHEN NEW.kept = 1
BEGIN
    SELECT RAISE(ABORT, 'allot: gone') WHERE NOT EXISTS (SELECT 1 FROM host WHERE id = NEW.host);
    SELECT RAISE(ABORT, 'allot: taken') WHERE NEW.starts_us < NEW.ends_us AND (
        EXISTS (
            SELECT 1 FROM host_allocation AS other
            WHERE other.host = NEW.host AND other.kept = 1
                AND other.starts_us < NEW.ends_us AND NEW.starts_us < other.ends_us
                AND other.starts_us < other.ends_us
        ) OR EXISTS (
            SELECT 1 FROM slot_use AS other
            WHERE other.host = NEW.host AND other.kept = 1
                AND other.starts_us < NEW.ends_us AND NEW.starts_us < other.ends_us
                AND other.starts_us < other.ends_us
        )
    );
END;

CREATE TRIGGER host_allocation_only_shrinks BEFORE UPDATE ON host_allocation
WHEN NEW.kept = 1 AND NEW.starts_us < NEW.ends_us AND NOT (
    OLD.kept = 1 AND OLD.host = NEW.host AND OLD.starts_us <= NEW.starts_us AND NEW.ends_us <= OLD.ends_us
)
BEGIN
    SELECT RAISE(ABORT, 'allot: a booking that grows has to be inserted anew');
END;

-- Slots exclude whole hosts that overlap, and fit together with others at every instant. The sum rises only where
-- a use starts, so it is taken at the start of the new one and at the starts of others inside it.
CREATE TRIGGER slot_use_takes BEFORE INSERT ON slot_use WHEN NEW.kept = 1
BEGIN
    SELECT RAISE(ABORT, 'allot: gone') WHERE NOT EXISTS (SELECT 1 FROM host WHERE id = NEW.host);
    SELECT RAISE(ABORT, 'allot: taken') WHERE NEW.starts_us < NEW.ends_us AND EXISTS (
        SELECT 1 FROM host_allocation AS other
        WHERE other.host = NEW.host AND other.kept = 1
            AND other.starts_us < NEW.ends_us AND NEW.starts_us < other.ends_us
            AND other.starts_us < other.ends_us
    );
    SELECT RAISE(ABORT, 'allot: no_room') FROM (
        SELECT NEW.starts_us AS instant_us
        UNION ALL
        SELECT other.starts_us FROM slot_use AS other
        WHERE other.host = NEW.host AND other.class = NEW.class AND other.kept = 1
            AND other.starts_us > NEW.starts_us AND other.starts_us < NEW.ends_us
    ) AS turn
    WHERE NEW.starts_us < NEW.ends_us AND NEW.amount + (
        SELECT coalesce(sum(other.amount), 0) FROM slot_use AS other
        WHERE other.host = NEW.host AND other.class = NEW.class AND other.kept = 1
            AND other.starts_us <= turn.instant_us AND turn.instant_us < other.ends_us
    ) > coalesce((SELECT amount FROM host_capacity WHERE host = NEW.host AND class = NEW.class), 0);
END;

CREATE TRIGGER slot_use_only_shrinks BEFORE UPDATE ON slot_use
WHEN NEW.kept = 1 AND NEW.starts_us < NEW.ends_us AND NOT (
    OLD.kept = 1 AND OLD.host = NEW.host AND OLD.class = NEW.class AND NEW.amount <= OLD.amount
    AND OLD.starts_us <= NEW.starts_us AND NEW.ends_us <= OLD.ends_us
)
BEGIN
    SELECT RAISE(ABORT, 'allot: a booking that grows has to be inserted anew');
END;

CREATE TRIGGER floating_ip_allocation_takes BEFORE INSERT ON floating_ip_allocation WHEN NEW.kept = 1
BEGIN
    SELECT RAISE(ABORT, 'allot: gone') WHERE NOT EXISTS (SELECT 1 FROM floating_ip WHERE id = NEW.floating_ip);
    SELECT RAISE(ABORT, 'allot: taken') WHERE NEW.starts_us < NEW.ends_us AND EXISTS (
        SELECT 1 FROM floating_ip_allocation AS other
        WHERE other.floating_ip = NEW.floating_ip AND other.kept = 1
            AND other.starts_us < NEW.ends_us AND NEW.starts_us < other.ends_us
            AND other.starts_us < other.ends_us
    );
END;

CREATE TRIGGER floating_ip_allocation_only_shrinks BEFORE UPDATE ON floating_ip_allocation
WHEN NEW.kept = 1 AND NEW.starts_us < NEW.ends_us AND NOT (
    OLD.kept = 1 AND OLD.floating_ip = NEW.floating_ip
    AND OLD.starts_us <= NEW.starts_us AND NEW.ends_us <= OLD.ends_us
)
BEGIN
    SELECT RAISE(ABORT, 'allot: a booking that grows has to be inserted anew');
END;

CREATE TRIGGER host_in_use BEFORE DELETE ON host
BEGIN
    SELECT RAISE(ABORT, 'allot: in_use') WHERE
        EXISTS (SELECT 1 FROM host_allocation WHERE host = OLD.id AND kept = 1)
        OR EXISTS (SELECT 1 FROM slot_use WHERE host = OLD.id AND kept = 1);
END;

CREATE TRIGGER floating_ip_in_use BEFORE DELETE ON floating_ip
BEGIN
    SELECT RAISE(ABORT, 'allot: in_use') WHERE
        EXISTS (SELECT 1 FROM floating_ip_allocation WHERE floating_ip = OLD.id AND kept = 1);
END;

-- Who carries out which step, and what became of steps. Fences are counted over all steps.
CREATE TABLE step_claim (
    step     TEXT    NOT NULL PRIMARY KEY,
    holder   TEXT    NOT NULL,
    fence    INTEGER NOT NULL UNIQUE,
    until_us INTEGER NOT NULL
) STRICT;

CREATE TABLE fence (
    one  INTEGER NOT NULL PRIMARY KEY CHECK (one = 1),
    last INTEGER NOT NULL
) STRICT;
INSERT INTO fence (one, last) VALUES (1, 0);

CREATE TABLE step_failure (
    step       TEXT    NOT NULL PRIMARY KEY,
    times      INTEGER NOT NULL CHECK (times > 0),
    last_at_us INTEGER NOT NULL,
    message    TEXT    NOT NULL
) STRICT;

-- Successes that leave nothing behind that can be observed.
CREATE TABLE step_success (
    step  TEXT    NOT NULL PRIMARY KEY,
    at_us INTEGER NOT NULL
) STRICT;

CREATE TABLE notification (
    number     INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    at_us      INTEGER NOT NULL,
    lease      BLOB    NOT NULL CHECK (length(lease) = 16),
    project    TEXT    NOT NULL,
    event_type TEXT    NOT NULL,
    payload    TEXT    NOT NULL
) STRICT;

CREATE TABLE listener (
    name      TEXT    NOT NULL PRIMARY KEY,
    delivered INTEGER NOT NULL
) STRICT;

CREATE TABLE audit (
    number     INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    at_us      INTEGER NOT NULL,
    user_id    TEXT    NOT NULL,
    project    TEXT    NOT NULL,
    request_id TEXT    NOT NULL,
    action     TEXT    NOT NULL,
    object     TEXT    NOT NULL
) STRICT;

CREATE TABLE request_key (
    project     TEXT    NOT NULL,
    key         TEXT    NOT NULL,
    fingerprint TEXT    NOT NULL,
    lease       BLOB    NOT NULL CHECK (length(lease) = 16),
    at_us       INTEGER NOT NULL,
    PRIMARY KEY (project, key)
) STRICT, WITHOUT ROWID;

-- Written to find out whether it can be.
CREATE TABLE probe (
    one    INTEGER NOT NULL PRIMARY KEY CHECK (one = 1),
    writes INTEGER NOT NULL
) STRICT;
INSERT INTO probe (one, writes) VALUES (1, 0);
