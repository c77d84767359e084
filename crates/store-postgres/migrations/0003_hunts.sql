-- Whose guests are moved out of a lease's way: a JSON document. A service of an earlier version knows of no hunts: it
-- leaves guests of others where they are.
ALTER TABLE lease ADD COLUMN hunt text;
