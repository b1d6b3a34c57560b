-- +goose Up

-- actor_id is the operator who obtained a token for somebody else, '' for who signed
-- in themselves; grant_id is the grant that a token came of, '' for none.
ALTER TABLE access_tokens ADD COLUMN actor_id TEXT NOT NULL DEFAULT '';
ALTER TABLE access_tokens ADD COLUMN grant_id TEXT NOT NULL DEFAULT '';
ALTER TABLE access_tokens ADD COLUMN scope TEXT NOT NULL DEFAULT '';
CREATE INDEX access_tokens_by_actor ON access_tokens (actor_id) WHERE actor_id <> '';
CREATE INDEX access_tokens_by_grant ON access_tokens (grant_id) WHERE grant_id <> '';

-- What an authorization request asked besides. login_only: no resource was asked for.
ALTER TABLE authorization_codes ADD COLUMN nonce TEXT NOT NULL DEFAULT '';
ALTER TABLE authorization_codes ADD COLUMN challenge TEXT NOT NULL DEFAULT '';
ALTER TABLE authorization_codes ADD COLUMN login_only BOOLEAN NOT NULL DEFAULT FALSE;
ALTER TABLE authorization_codes ADD COLUMN granted BOOLEAN NOT NULL DEFAULT FALSE;
ALTER TABLE authorization_codes ADD COLUMN signed_in_at BIGINT NOT NULL DEFAULT 0;

-- What refresh tokens rest on: one row for all the tokens that follow each other.
-- handle and secret are SHA-256 of the two parts of a refresh token, of which the first
-- stays and the second is good once. id is that of the first access token.
CREATE TABLE grants (
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
CREATE INDEX grants_by_user ON grants (user_id);
CREATE INDEX grants_by_expiry ON grants (expires_at);

-- The login of the operator for whom somebody else is the caller.
ALTER TABLE audit ADD COLUMN actor TEXT NOT NULL DEFAULT '';
