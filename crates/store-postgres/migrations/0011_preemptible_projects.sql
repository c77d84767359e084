-- Projects whose instances are preemptible unless a request says otherwise, with * for anything and ? for any character.
CREATE TABLE preemptible_project (
    pattern       text   PRIMARY KEY,
    created_at_us bigint NOT NULL
);
-- A service of an earlier version does not know what has changed when one does.
UPDATE compatibility SET oldest = 11;
