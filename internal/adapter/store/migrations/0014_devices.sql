-- +goose Up

-- Mobile devices. user_id is NULL for one that waits to be assigned. sealed holds
-- what matters of a device, its key and state with it; number is that of the last
-- message it sent.
CREATE TABLE devices (
	kid         TEXT COLLATE {{binary}} NOT NULL PRIMARY KEY,
	user_id     TEXT      REFERENCES users (id) ON DELETE CASCADE,
	number      BIGINT    NOT NULL,
	not_after   BIGINT    NOT NULL,
	created_at  BIGINT    NOT NULL,
	sealed      {{bytes}} NOT NULL
);
CREATE INDEX devices_by_user ON devices (user_id);
CREATE INDEX devices_anonymous ON devices (not_after) WHERE user_id IS NULL;

-- Initializations of devices to be, one of a user.
CREATE TABLE device_kinits (
	user_id     TEXT      NOT NULL PRIMARY KEY REFERENCES users (id) ON DELETE CASCADE,
	kid         TEXT COLLATE {{binary}} NOT NULL UNIQUE,
	expires_at  BIGINT    NOT NULL,
	sealed      {{bytes}} NOT NULL
);
CREATE INDEX device_kinits_by_expiry ON device_kinits (expires_at);

-- Verifications under way, one of a device. hash is the SHA-256 of the nonce.
CREATE TABLE device_nonces (
	kid         TEXT COLLATE {{binary}} NOT NULL PRIMARY KEY REFERENCES devices (kid) ON DELETE CASCADE,
	hash        {{bytes}} NOT NULL,
	expires_at  BIGINT    NOT NULL,
	sealed      {{bytes}} NOT NULL
);
CREATE INDEX device_nonces_by_expiry ON device_nonces (expires_at);
