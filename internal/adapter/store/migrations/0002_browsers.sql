-- Browsers that show notifications (Web Push). id is the SHA-256 of the push address in Base64url. sealed has
-- the address, the keys and the user.
CREATE TABLE browsers (
	id          TEXT COLLATE {{binary}} NOT NULL PRIMARY KEY,
	user_id     TEXT      NOT NULL REFERENCES users (id) ON DELETE CASCADE,
	created_at  BIGINT    NOT NULL,
	sealed      {{bytes}} NOT NULL
);
CREATE INDEX browsers_by_user ON browsers (user_id);
