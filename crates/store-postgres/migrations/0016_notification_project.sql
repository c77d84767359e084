-- A project reads its own notifications, however many there are of others.
CREATE INDEX notification_project ON notification (project, number);
