-- Instances that are started through the service: JSON documents.
CREATE TABLE instance (
    id            uuid   NOT NULL PRIMARY KEY,
    version       bigint NOT NULL,
    document      text   NOT NULL,
    created_at_us bigint NOT NULL,
    updated_at_us bigint
);

-- A service of an earlier version does not know what has changed where an instance has.
UPDATE compatibility SET oldest = 4;
