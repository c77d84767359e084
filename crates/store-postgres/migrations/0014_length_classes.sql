-- Whether there is room is found out in time that does not grow with what is booked for other times.
--
-- Of all bookings of a host, those that begin before a time ends are not told by an index from those that have ended
-- long before it. So bookings are kept apart by their length: of each length class, none that begins longer than the
-- class's bound before a time reaches into it.

CREATE TABLE length_class (
    id      integer NOT NULL PRIMARY KEY,
    most_us bigint  NOT NULL
);
INSERT INTO length_class (id, most_us) VALUES
    (0, 900000000), (1, 14400000000), (2, 230400000000), (3, 3686400000000), (4, 58982400000000),
    (5, 4611686018427387904);

CREATE FUNCTION length_class(length_us bigint) RETURNS integer LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT CASE
        WHEN length_us <= 900000000 THEN 0 -- 15 minutes
        WHEN length_us <= 14400000000 THEN 1 -- 4 hours
        WHEN length_us <= 230400000000 THEN 2 -- 64 hours
        WHEN length_us <= 3686400000000 THEN 3 -- 43 days
        WHEN length_us <= 58982400000000 THEN 4 -- 683 days
        ELSE 5
    END
$$;

-- The resources of a booking are side by side: a booking changes one page of the index.
CREATE INDEX slot_use_by_length ON slot_use (host, length_class(ends_us - starts_us), starts_us, ends_us, class, amount)
    WHERE kept;
DROP INDEX slot_use_kept;

-- A whole host excludes slots that overlap; that it excludes whole hosts is a constraint.
CREATE OR REPLACE FUNCTION host_allocation_takes() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM lock_host(NEW.host);
    IF NEW.starts_us < NEW.ends_us AND EXISTS (
        SELECT FROM length_class AS class CROSS JOIN slot_use AS other
        WHERE other.host = NEW.host AND other.kept AND length_class(other.ends_us - other.starts_us) = class.id
            AND other.starts_us > NEW.starts_us - class.most_us AND other.starts_us < NEW.ends_us
            AND NEW.starts_us < other.ends_us AND other.starts_us < other.ends_us
    ) THEN
        RAISE EXCEPTION 'allot: taken';
    END IF;
    RETURN NEW;
END
$$;

-- Slots exclude whole hosts that overlap, and fit together with others at every instant. What the others use is
-- summed up in the order of their starts and ends; where one ends and another starts, the end comes first.
CREATE OR REPLACE FUNCTION slot_use_takes() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    room bigint;
    most numeric;
BEGIN
    PERFORM lock_host(NEW.host);
    IF NEW.starts_us = NEW.ends_us THEN
        RETURN NEW;
    END IF;
    IF EXISTS (
        SELECT FROM host_allocation AS other
        WHERE other.host = NEW.host AND other.kept
            AND int8range(other.starts_us, other.ends_us, '[)') && int8range(NEW.starts_us, NEW.ends_us, '[)')
    ) THEN
        RAISE EXCEPTION 'allot: taken';
    END IF;
    SELECT coalesce((SELECT amount FROM host_capacity WHERE host = NEW.host AND class = NEW.class), 0) INTO room;
    SELECT coalesce(max(used), 0) INTO most FROM (
        SELECT sum(turn.change) OVER (ORDER BY turn.instant_us, turn.change) AS used
        FROM length_class AS class CROSS JOIN slot_use AS other
            CROSS JOIN LATERAL (
                VALUES
                    (greatest(other.starts_us, NEW.starts_us), other.amount),
                    (other.ends_us, -other.amount)
            ) AS turn (instant_us, change)
        WHERE other.host = NEW.host AND other.class = NEW.class AND other.kept
            AND length_class(other.ends_us - other.starts_us) = class.id
            AND other.starts_us > NEW.starts_us - class.most_us AND other.starts_us < NEW.ends_us
            AND NEW.starts_us < other.ends_us AND other.starts_us < other.ends_us
    ) AS sums;
    IF NEW.amount + most > room THEN
        RAISE EXCEPTION 'allot: no_room';
    END IF;
    RETURN NEW;
END
$$;
