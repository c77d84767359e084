-- Keys that tokens of the small Keystone are signed with: the one with the highest number signs, all are accepted.
CREATE TABLE token_key (
    number bigint PRIMARY KEY,
    secret bytea  NOT NULL,
    at_us  bigint NOT NULL
);

-- Tokens that are invalid before their end, by their 16 bytes; without any, all of the user that were issued until then.
CREATE TABLE revocation (
    user_id  text   NOT NULL,
    token    bytea  NOT NULL,
    at_us    bigint NOT NULL,
    until_us bigint NOT NULL,
    PRIMARY KEY (user_id, token)
);
CREATE INDEX revocation_until ON revocation (until_us);
