-- Keys that tokens of the small Keystone are signed with: the one with the highest number signs, all are accepted.
CREATE TABLE token_key (
    number INTEGER NOT NULL PRIMARY KEY,
    secret BLOB    NOT NULL,
    at_us  INTEGER NOT NULL
) STRICT;

-- Tokens that are invalid before their end, by their 16 bytes; without any, all of the user that were issued until then.
CREATE TABLE revocation (
    user     TEXT    NOT NULL,
    token    BLOB    NOT NULL,
    at_us    INTEGER NOT NULL,
    until_us INTEGER NOT NULL,
    PRIMARY KEY (user, token)
) STRICT, WITHOUT ROWID;
CREATE INDEX revocation_until ON revocation (until_us);
