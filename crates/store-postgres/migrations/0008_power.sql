-- Whether hosts are switched on: a JSON document, none of hosts that were never switched.
ALTER TABLE host ADD COLUMN power text;

-- Times that hosts were off for, once they are over.
CREATE TABLE host_sleep (
    number           bigint  GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    host             bigint  NOT NULL,
    free_pool        uuid,
    starts_us        bigint  NOT NULL,
    ends_us          bigint  NOT NULL,
    saved_milliwatts bigint  NOT NULL,
    off_milliwatts   bigint  NOT NULL,
    boot_us          bigint,
    failed           boolean NOT NULL,
    CHECK (starts_us <= ends_us)
);
CREATE INDEX host_sleep_ends ON host_sleep (ends_us);

-- A service of an earlier version would take hosts that are off for failed ones.
UPDATE compatibility SET oldest = 8;
