-- +goose Up

-- Texts that are sorted or paged through compare by their octets.
CREATE TABLE user_groups (
	name        TEXT COLLATE {{binary}} NOT NULL PRIMARY KEY,
	title       TEXT   NOT NULL,
	created_at  BIGINT NOT NULL
);

-- login_folded decides uniqueness: two logins that differ in letter case only
-- are one login.
CREATE TABLE users (
	id            TEXT    NOT NULL PRIMARY KEY,
	login         TEXT    NOT NULL,
	login_folded  TEXT COLLATE {{binary}} NOT NULL UNIQUE,
	display_name  TEXT    NOT NULL,
	group_name    TEXT COLLATE {{binary}} NOT NULL REFERENCES user_groups (name),
	operator      BOOLEAN NOT NULL,
	locked        BOOLEAN NOT NULL,
	created_at    BIGINT  NOT NULL
);
CREATE INDEX users_by_group ON users (group_name, login_folded);

-- The groups an operator is responsible for.
CREATE TABLE operator_groups (
	user_id     TEXT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
	group_name  TEXT COLLATE {{binary}} NOT NULL REFERENCES user_groups (name),
	PRIMARY KEY (user_id, group_name)
);

CREATE TABLE passwords (
	user_id     TEXT   NOT NULL PRIMARY KEY REFERENCES users (id) ON DELETE CASCADE,
	encoded     TEXT   NOT NULL,
	changed_at  BIGINT NOT NULL
);

-- Attempts with a password, begun and not found correct, since window_from.
-- login is a hash of what was typed, whether or not such a user exists.
CREATE TABLE login_failures (
	login         {{bytes}}  NOT NULL PRIMARY KEY,
	failures      BIGINT NOT NULL,
	window_from   BIGINT NOT NULL,
	locked_until  BIGINT NOT NULL
);
CREATE INDEX login_failures_by_window ON login_failures (window_from);

CREATE TABLE access_tokens (
	id          TEXT    NOT NULL PRIMARY KEY,
	user_id     TEXT    NOT NULL REFERENCES users (id) ON DELETE CASCADE,
	client_id   TEXT    NOT NULL,
	method      TEXT    NOT NULL,
	created_at  BIGINT  NOT NULL,
	expires_at  BIGINT  NOT NULL,
	revoked     BOOLEAN NOT NULL
);
CREATE INDEX access_tokens_by_user ON access_tokens (user_id);
CREATE INDEX access_tokens_by_expiry ON access_tokens (expires_at);

-- Private keys that sign tokens, sealed. The newest one signs.
CREATE TABLE signing_keys (
	id          TEXT    NOT NULL PRIMARY KEY,
	sealed      {{bytes}} NOT NULL,
	created_at  BIGINT  NOT NULL
);

-- Actions a user may not perform, as bits.
CREATE TABLE access_policies (
	user_id  TEXT   NOT NULL PRIMARY KEY REFERENCES users (id) ON DELETE CASCADE,
	denied   BIGINT NOT NULL
);

-- The journal outlives users, so nothing in it refers to other tables.
CREATE TABLE audit (
	id           {{identity}},
	at           BIGINT  NOT NULL,
	request_id   TEXT    NOT NULL,
	operation    TEXT    NOT NULL,
	phase        TEXT    NOT NULL,
	outcome      TEXT    NOT NULL,
	object       TEXT    NOT NULL,
	remote       TEXT    NOT NULL,
	detail       TEXT    NOT NULL,
	user_id      TEXT    NOT NULL,
	login        TEXT    NOT NULL,
	group_name   TEXT    NOT NULL,
	operator     BOOLEAN NOT NULL,
	token_id     TEXT    NOT NULL,
	client_id    TEXT    NOT NULL,
	method       TEXT    NOT NULL,
	duration_us  BIGINT  NOT NULL
);
CREATE INDEX audit_by_time ON audit (at);
