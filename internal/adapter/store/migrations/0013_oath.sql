-- +goose Up

-- Tokens that make one-time passwords: hardware, in stock or of a user, and secrets of
-- apps, which go with their user. serial_key is the serial number with letter case
-- taken out. sealed holds the secret and all that matters with it, watermark too: the
-- last step a code was accepted of, here once more so that one statement can decide.
-- failures are wrong codes in a row.
CREATE TABLE oath_tokens (
	serial_key    TEXT COLLATE {{binary}} NOT NULL PRIMARY KEY,
	serial        TEXT      NOT NULL,
	user_id       TEXT      UNIQUE REFERENCES users (id) ON DELETE SET NULL,
	type          TEXT      NOT NULL,
	app           BOOLEAN   NOT NULL,
	watermark     BIGINT    NOT NULL,
	sealed        {{bytes}} NOT NULL,
	failures      BIGINT    NOT NULL,
	locked_until  BIGINT    NOT NULL,
	created_at    BIGINT    NOT NULL,
	assigned_at   BIGINT    NOT NULL
);
CREATE INDEX oath_tokens_unassigned ON oath_tokens (app) WHERE user_id IS NULL;
