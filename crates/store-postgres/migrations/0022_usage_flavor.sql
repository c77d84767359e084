-- The flavor of room for instances, of instances in it, and of leases that have nothing but such room: prices differ by it.
ALTER TABLE usage_span ADD COLUMN flavor TEXT;
