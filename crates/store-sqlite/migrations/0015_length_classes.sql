-- Whether there is room is found out in time that does not grow with what is booked for other times.
--
-- Of all bookings of a host, those that begin before a time ends are not told by an index from those that have ended
-- long before it. So bookings are kept apart by their length: of each length class, none that begins longer than the
-- class's bound before a time reaches into it.

CREATE TABLE length_class (
    id      INTEGER NOT NULL PRIMARY KEY,
    most_us INTEGER NOT NULL
) STRICT;
INSERT INTO length_class (id, most_us) VALUES
    (0, 900000000), (1, 14400000000), (2, 230400000000), (3, 3686400000000), (4, 58982400000000),
    (5, 4611686018427387904);

ALTER TABLE slot_use ADD COLUMN length_class INTEGER NOT NULL GENERATED ALWAYS AS (
    CASE
        WHEN ends_us - starts_us <= 900000000 THEN 0 -- 15 minutes
        WHEN ends_us - starts_us <= 14400000000 THEN 1 -- 4 hours
        WHEN ends_us - starts_us <= 230400000000 THEN 2 -- 64 hours
        WHEN ends_us - starts_us <= 3686400000000 THEN 3 -- 43 days
        WHEN ends_us - starts_us <= 58982400000000 THEN 4 -- 683 days
        ELSE 5
    END
) VIRTUAL;

-- The resources of a booking are side by side: a booking changes one page of the index.
DROP INDEX slot_use_kept;
CREATE INDEX slot_use_kept ON slot_use (host, length_class, starts_us, ends_us, class, amount) WHERE kept = 1;

-- A whole host excludes whole hosts and slots that overlap. Whole hosts exclude each other, so the last one that
-- begins before the end is the only one that may.
DROP TRIGGER host_allocation_takes;
CREATE TRIGGER host_allocation_takes BEFORE INSERT ON host_allocation WHEN NEW.kept = 1
BEGIN
    SELECT RAISE(ABORT, 'allot: gone') WHERE NOT EXISTS (SELECT 1 FROM host WHERE id = NEW.host);
    SELECT RAISE(ABORT, 'allot: taken') WHERE NEW.starts_us < NEW.ends_us AND (
        NEW.starts_us < (
            SELECT other.ends_us FROM host_allocation AS other
            WHERE other.host = NEW.host AND other.kept = 1
                AND other.starts_us < NEW.ends_us AND other.starts_us < other.ends_us
            ORDER BY other.starts_us DESC LIMIT 1
        ) OR EXISTS (
            SELECT 1 FROM length_class AS class CROSS JOIN slot_use AS other
            WHERE other.host = NEW.host AND other.kept = 1 AND other.length_class = class.id
                AND other.starts_us > NEW.starts_us - class.most_us AND other.starts_us < NEW.ends_us
                AND NEW.starts_us < other.ends_us AND other.starts_us < other.ends_us
        )
    );
END;

-- Slots exclude whole hosts that overlap, and fit together with others at every instant. Nearly always they would fit if
-- all that overlap were there at once. Where not, what the others use is summed up in the order of their starts and
-- ends; where one ends and another starts, the end comes first.
DROP TRIGGER slot_use_takes;
CREATE TRIGGER slot_use_takes BEFORE INSERT ON slot_use WHEN NEW.kept = 1
BEGIN
    SELECT RAISE(ABORT, 'allot: gone') WHERE NOT EXISTS (SELECT 1 FROM host WHERE id = NEW.host);
    SELECT RAISE(ABORT, 'allot: taken') WHERE NEW.starts_us < NEW.ends_us AND NEW.starts_us < (
        SELECT other.ends_us FROM host_allocation AS other
        WHERE other.host = NEW.host AND other.kept = 1
            AND other.starts_us < NEW.ends_us AND other.starts_us < other.ends_us
        ORDER BY other.starts_us DESC LIMIT 1
    );
    SELECT RAISE(ABORT, 'allot: no_room')
    FROM (SELECT coalesce((SELECT amount FROM host_capacity WHERE host = NEW.host AND class = NEW.class), 0) AS amount) AS room
    WHERE NEW.starts_us < NEW.ends_us
        AND NEW.amount + (
            SELECT coalesce(sum(other.amount), 0) FROM length_class AS class CROSS JOIN slot_use AS other
            WHERE other.host = NEW.host AND other.class = NEW.class AND other.kept = 1
                AND other.length_class = class.id
                AND other.starts_us > NEW.starts_us - class.most_us AND other.starts_us < NEW.ends_us
                AND NEW.starts_us < other.ends_us AND other.starts_us < other.ends_us
        ) > room.amount
        AND NEW.amount + coalesce((
            SELECT max(used) FROM (
                SELECT sum(change) OVER (ORDER BY instant_us, change) AS used FROM (
                    SELECT
                        CASE turn.sign WHEN 1 THEN max(other.starts_us, NEW.starts_us) ELSE other.ends_us END
                            AS instant_us,
                        other.amount * turn.sign AS change
                    FROM length_class AS class CROSS JOIN slot_use AS other
                        CROSS JOIN (SELECT 1 AS sign UNION ALL SELECT -1) AS turn
                    WHERE other.host = NEW.host AND other.class = NEW.class AND other.kept = 1
                        AND other.length_class = class.id
                        AND other.starts_us > NEW.starts_us - class.most_us AND other.starts_us < NEW.ends_us
                        AND NEW.starts_us < other.ends_us AND other.starts_us < other.ends_us
                )
            )
        ), 0) > room.amount;
END;

DROP TRIGGER floating_ip_allocation_takes;
CREATE TRIGGER floating_ip_allocation_takes BEFORE INSERT ON floating_ip_allocation WHEN NEW.kept = 1
BEGIN
    SELECT RAISE(ABORT, 'allot: gone') WHERE NOT EXISTS (SELECT 1 FROM floating_ip WHERE id = NEW.floating_ip);
    SELECT RAISE(ABORT, 'allot: taken') WHERE NEW.starts_us < NEW.ends_us AND NEW.starts_us < (
        SELECT other.ends_us FROM floating_ip_allocation AS other
        WHERE other.floating_ip = NEW.floating_ip AND other.kept = 1
            AND other.starts_us < NEW.ends_us AND other.starts_us < other.ends_us
        ORDER BY other.starts_us DESC LIMIT 1
    );
END;
