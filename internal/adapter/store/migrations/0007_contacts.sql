-- +goose Up

-- Phones and e-mail addresses of users. normal decides what is one contact, value
-- is what people read.
CREATE TABLE contacts (
	user_id         TEXT    NOT NULL REFERENCES users (id) ON DELETE CASCADE,
	type            TEXT    NOT NULL,
	normal          TEXT COLLATE {{binary}} NOT NULL,
	value           TEXT    NOT NULL,
	confirmed       BOOLEAN NOT NULL,
	is_primary      BOOLEAN NOT NULL,
	notification    BOOLEAN NOT NULL,
	secondary_auth  BOOLEAN NOT NULL,
	created_at      BIGINT  NOT NULL,
	PRIMARY KEY (user_id, type, normal)
) {{clustered}};
-- Who has it; and what is an identifier is one user's alone.
CREATE INDEX contacts_by_value ON contacts (normal, type);
CREATE UNIQUE INDEX contacts_primary ON contacts (normal, type) WHERE is_primary;
-- A user signs in with one contact of a type, and one receives the codes.
CREATE UNIQUE INDEX contacts_primary_of_user ON contacts (user_id, type) WHERE is_primary;
CREATE UNIQUE INDEX contacts_secondary_auth_of_user ON contacts (user_id, type) WHERE secondary_auth;

-- One-time codes. mac is an HMAC of the code under a key that is kept sealed.
CREATE TABLE one_time_codes (
	user_id     TEXT      NOT NULL REFERENCES users (id) ON DELETE CASCADE,
	purpose     TEXT      NOT NULL,
	type        TEXT      NOT NULL,
	normal      TEXT COLLATE {{binary}} NOT NULL,
	sealed_key  {{bytes}} NOT NULL,
	mac         {{bytes}} NOT NULL,
	attempts    BIGINT    NOT NULL,
	issued_at   BIGINT    NOT NULL,
	expires_at  BIGINT    NOT NULL,
	PRIMARY KEY (user_id, purpose, type, normal)
);
CREATE INDEX one_time_codes_by_expiry ON one_time_codes (expires_at);
