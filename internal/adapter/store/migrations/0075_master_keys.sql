-- +goose Up

-- Master keys that this database was used with. canary is a known text sealed under the key: it
-- tells whether a file has the key or another one. sealed_at is when a process last had the
-- key as the one that seals.
CREATE TABLE master_keys (
	id          TEXT      NOT NULL PRIMARY KEY,
	canary      {{bytes}} NOT NULL,
	created_at  BIGINT    NOT NULL,
	sealed_at   BIGINT    NOT NULL
);

-- Running processes of the service and the master keys that each has. seen_at is written again
-- and again while the process runs.
CREATE TABLE processes (
	id       TEXT    NOT NULL PRIMARY KEY,
	host     TEXT    NOT NULL,
	version  TEXT    NOT NULL,
	active   TEXT    NOT NULL,
	ids      TEXT    NOT NULL,
	seen_at  BIGINT  NOT NULL
);
