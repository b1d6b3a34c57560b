-- +goose Up

-- A user without a login has the empty one, and in login_folded a text that no
-- login folds to. lock_at is when a delayed lock comes due, or when the lock
-- came; 0 where there is none. It is compared with the clock at every check.
ALTER TABLE users ADD COLUMN lock_at BIGINT NOT NULL DEFAULT 0;
ALTER TABLE users ADD COLUMN unapproved BOOLEAN NOT NULL DEFAULT FALSE;
ALTER TABLE users ADD COLUMN last_login_at BIGINT NOT NULL DEFAULT 0;
-- What searches inside a group need first is in the index itself.
DROP INDEX users_by_group;
CREATE INDEX users_in_group ON users (group_name, login_folded, operator, id);

-- Logins at other identity providers.
CREATE TABLE external_logins (
	user_id        TEXT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
	issuer         TEXT NOT NULL,
	issuer_folded  TEXT COLLATE {{binary}} NOT NULL,
	login          TEXT NOT NULL,
	login_folded   TEXT NOT NULL,
	PRIMARY KEY (user_id, issuer_folded),
	UNIQUE (issuer_folded, login_folded)
) {{clustered}};

-- Distinguished names. name is the text people see and name_folded the one that
-- is searched; name_key is a digest that two equal names share. unique_key is
-- name_key where the installation wanted names unique when this one was set, and
-- NULL elsewhere, so that the constraint binds no others.
CREATE TABLE distinguished_names (
	user_id      TEXT      NOT NULL PRIMARY KEY REFERENCES users (id) ON DELETE CASCADE,
	name         TEXT      NOT NULL,
	name_folded  TEXT      NOT NULL,
	name_key     {{bytes}} NOT NULL,
	unique_key   {{bytes}} UNIQUE
) {{clustered}};
CREATE INDEX distinguished_names_by_key ON distinguished_names (name_key);

-- Their components by object identifier: the numbers by which the interface
-- names them belong to the configuration and may change with it.
CREATE TABLE name_components (
	user_id  TEXT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
	oid      TEXT NOT NULL,
	value    TEXT NOT NULL,
	PRIMARY KEY (user_id, oid)
) {{clustered}};

-- How a user may sign in. level is as given: 1 a first step, 2 a second.
CREATE TABLE user_methods (
	user_id     TEXT   NOT NULL REFERENCES users (id) ON DELETE CASCADE,
	method      TEXT   NOT NULL,
	level       BIGINT NOT NULL,
	created_at  BIGINT NOT NULL,
	PRIMARY KEY (user_id, method)
) {{clustered}};
-- Who had a password signed in with it; so they go on.
INSERT INTO user_methods (user_id, method, level, created_at)
	SELECT user_id, 'password', 1, changed_at FROM passwords;

-- Attempts with a secret of a known user, counted as login_failures does.
CREATE TABLE user_failures (
	user_id       TEXT   NOT NULL PRIMARY KEY REFERENCES users (id) ON DELETE CASCADE,
	failures      BIGINT NOT NULL,
	window_from   BIGINT NOT NULL,
	locked_until  BIGINT NOT NULL
) {{clustered}};
CREATE INDEX user_failures_by_window ON user_failures (window_from);

-- Certificates that users sign in with, by the SHA-256 of the certificate.
CREATE TABLE sign_in_certificates (
	thumbprint  {{bytes}} NOT NULL PRIMARY KEY,
	user_id     TEXT      NOT NULL REFERENCES users (id) ON DELETE CASCADE,
	subject     TEXT      NOT NULL,
	issuer      TEXT      NOT NULL,
	serial      TEXT      NOT NULL,
	not_after   BIGINT    NOT NULL,
	created_at  BIGINT    NOT NULL
);
CREATE INDEX sign_in_certificates_by_user ON sign_in_certificates (user_id);

-- Authorization codes, by the SHA-256 of the code. spent_at is 0 until the code
-- is exchanged; token_id is then what it was exchanged for.
CREATE TABLE authorization_codes (
	hash          {{bytes}} NOT NULL PRIMARY KEY,
	user_id       TEXT      NOT NULL REFERENCES users (id) ON DELETE CASCADE,
	client_id     TEXT      NOT NULL,
	redirect_uri  TEXT      NOT NULL,
	scope         TEXT      NOT NULL,
	method        TEXT      NOT NULL,
	thumbprint    {{bytes}} NOT NULL,
	expires_at    BIGINT    NOT NULL,
	spent_at      BIGINT    NOT NULL,
	token_id      TEXT      NOT NULL
);
CREATE INDEX authorization_codes_by_user ON authorization_codes (user_id);
CREATE INDEX authorization_codes_by_expiry ON authorization_codes (expires_at);
