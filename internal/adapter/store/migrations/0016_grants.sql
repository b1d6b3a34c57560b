-- +goose NO TRANSACTION
-- +goose Up

-- actor_id is the operator who obtained a token for another user, '' for a user who
-- signed in. grant_id is the grant that a token came from, '' for none.
ALTER TABLE access_tokens ADD COLUMN {{missing}} actor_id TEXT NOT NULL DEFAULT '';
ALTER TABLE access_tokens ADD COLUMN {{missing}} grant_id TEXT NOT NULL DEFAULT '';
ALTER TABLE access_tokens ADD COLUMN {{missing}} scope TEXT NOT NULL DEFAULT '';
CREATE INDEX {{concurrently}} access_tokens_by_actor ON access_tokens (actor_id) WHERE actor_id <> '';
CREATE INDEX {{concurrently}} access_tokens_by_grant ON access_tokens (grant_id) WHERE grant_id <> '';

-- What an authorization request asked besides. login_only: no resource was asked for.
ALTER TABLE authorization_codes ADD COLUMN {{missing}} nonce TEXT NOT NULL DEFAULT '';
ALTER TABLE authorization_codes ADD COLUMN {{missing}} challenge TEXT NOT NULL DEFAULT '';
ALTER TABLE authorization_codes ADD COLUMN {{missing}} login_only BOOLEAN NOT NULL DEFAULT FALSE;
ALTER TABLE authorization_codes ADD COLUMN {{missing}} granted BOOLEAN NOT NULL DEFAULT FALSE;
ALTER TABLE authorization_codes ADD COLUMN {{missing}} signed_in_at BIGINT NOT NULL DEFAULT 0;

-- What refresh tokens rest on: one row for all the tokens that follow each other.
-- handle and secret are SHA-256 of the two parts of a refresh token, of which the first
-- stays and the second is good once. id is that of the first access token.
CREATE TABLE IF NOT EXISTS grants (
	handle        {{bytes}} NOT NULL PRIMARY KEY,
	id            TEXT      NOT NULL UNIQUE,
	secret        {{bytes}} NOT NULL,
	user_id       TEXT      NOT NULL REFERENCES users (id) ON DELETE CASCADE,
	client_id     TEXT      NOT NULL,
	scope         TEXT      NOT NULL,
	method        TEXT      NOT NULL,
	login_only    BOOLEAN   NOT NULL,
	signed_in_at  BIGINT    NOT NULL,
	refreshed_at  BIGINT    NOT NULL,
	expires_at    BIGINT    NOT NULL
);
CREATE INDEX IF NOT EXISTS grants_by_user ON grants (user_id);
CREATE INDEX IF NOT EXISTS grants_by_expiry ON grants (expires_at);

-- The login of the operator who acts for the caller.
ALTER TABLE audit ADD COLUMN {{missing}} actor TEXT NOT NULL DEFAULT '';
