-- +goose Up

-- Passkeys: keys of WebAuthn. id is the identifier of the credential in Base64url. sealed
-- holds the public key and whose it is; counter is that of its last signature.
CREATE TABLE passkeys (
	id          TEXT COLLATE {{binary}} NOT NULL PRIMARY KEY,
	user_id     TEXT      NOT NULL REFERENCES users (id) ON DELETE CASCADE,
	name        TEXT      NOT NULL,
	counter     BIGINT    NOT NULL,
	sealed      {{bytes}} NOT NULL,
	created_at  BIGINT    NOT NULL,
	used_at     BIGINT    NOT NULL
);
CREATE INDEX passkeys_by_user ON passkeys (user_id);

-- Passkeys that people are creating, one of a user.
CREATE TABLE passkey_registrations (
	user_id     TEXT      NOT NULL PRIMARY KEY REFERENCES users (id) ON DELETE CASCADE,
	session     TEXT      NOT NULL,
	name        TEXT      NOT NULL,
	challenge   {{bytes}} NOT NULL,
	expires_at  BIGINT    NOT NULL
);
CREATE INDEX passkey_registrations_by_expiry ON passkey_registrations (expires_at);
