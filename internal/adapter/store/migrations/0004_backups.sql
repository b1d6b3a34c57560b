-- Backups that were made and are whole. taken_at is the time of the snapshot. Metrics have the newest one.
CREATE TABLE backups (
	id           TEXT   NOT NULL PRIMARY KEY,
	taken_at     BIGINT NOT NULL,
	finished_at  BIGINT NOT NULL,
	documents    BIGINT NOT NULL,
	bytes        BIGINT NOT NULL
);
CREATE INDEX backups_taken ON backups (taken_at);
