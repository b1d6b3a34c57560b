-- +goose Up

-- Backups that run. The bytes of documents are not removed while one of these leases is valid.
CREATE TABLE backup_holds (
	id        TEXT   NOT NULL PRIMARY KEY,
	until_at  BIGINT NOT NULL
);

-- Restores of this database from a backup. taken_at is the time of the snapshot. While
-- released_at is 0, the service is closed.
CREATE TABLE restores (
	id           TEXT   NOT NULL PRIMARY KEY,
	taken_at     BIGINT NOT NULL,
	restored_at  BIGINT NOT NULL,
	released_at  BIGINT NOT NULL
);

-- Whether the counter of the token may be behind the true one, because a restore moved it
-- back. Then two codes in a row are needed.
ALTER TABLE oath_tokens ADD COLUMN behind BOOLEAN NOT NULL DEFAULT FALSE;
