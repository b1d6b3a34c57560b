-- +goose Up

-- Operations of v2. plan, pin and contents are what waits with one that is carried out
-- later; they are empty once it is over. While lease is not empty and leased_until has
-- not come, one process is at work on it. octets is what contents or results take.
-- keep_until is 0 until it is over.
CREATE TABLE operations (
	id               TEXT      NOT NULL PRIMARY KEY,
	user_id          TEXT      NOT NULL,
	owner            {{bytes}} NOT NULL,
	action           TEXT      NOT NULL,
	state            TEXT      NOT NULL,
	is_async         BOOLEAN   NOT NULL,
	parameters       TEXT      NOT NULL,
	description      TEXT      NOT NULL,
	documents        {{bytes}} NOT NULL,
	plan             {{bytes}} NOT NULL,
	pin              {{bytes}} NOT NULL,
	contents         TEXT      NOT NULL,
	octets           BIGINT    NOT NULL,
	results          TEXT      NOT NULL,
	callback         TEXT      NOT NULL,
	called           BOOLEAN   NOT NULL,
	code             TEXT      NOT NULL,
	message          TEXT      NOT NULL,
	attempts         BIGINT    NOT NULL,
	due_at           BIGINT    NOT NULL,
	lease            TEXT      NOT NULL,
	leased_until     BIGINT    NOT NULL,
	created_at       BIGINT    NOT NULL,
	updated_at       BIGINT    NOT NULL,
	confirmed_at     BIGINT    NOT NULL,
	completed_at     BIGINT    NOT NULL,
	complete_before  BIGINT    NOT NULL,
	keep_until       BIGINT    NOT NULL
);
CREATE INDEX operations_active ON operations (user_id, created_at) WHERE keep_until = 0;
CREATE INDEX operations_due ON operations (due_at) WHERE keep_until = 0;
CREATE INDEX operations_octets ON operations (user_id, octets) WHERE octets > 0;
CREATE INDEX operations_kept ON operations (keep_until) WHERE keep_until <> 0;

-- Pending callbacks; a row goes when its callback was taken or is given up.
CREATE TABLE operation_callbacks (
	operation_id  TEXT   NOT NULL PRIMARY KEY,
	url           TEXT   NOT NULL,
	attempts      BIGINT NOT NULL,
	error         TEXT   NOT NULL,
	due_at        BIGINT NOT NULL,
	expires_at    BIGINT NOT NULL,
	lease         TEXT   NOT NULL,
	leased_until  BIGINT NOT NULL
);
CREATE INDEX operation_callbacks_due ON operation_callbacks (due_at);

-- What was answered to requests with an Idempotency-Key: name is a digest of it,
-- request one of what was asked. done_at is 0 while the first request is under way.
CREATE TABLE answers (
	caller        TEXT      NOT NULL,
	name          TEXT      NOT NULL,
	request       {{bytes}} NOT NULL,
	lease         TEXT      NOT NULL,
	leased_until  BIGINT    NOT NULL,
	head          {{bytes}} NOT NULL,
	body          {{bytes}} NOT NULL,
	blob          TEXT      NOT NULL,
	octets        BIGINT    NOT NULL,
	done_at       BIGINT    NOT NULL,
	expires_at    BIGINT    NOT NULL,
	PRIMARY KEY (caller, name)
);
CREATE INDEX answers_by_expiry ON answers (expires_at);
CREATE INDEX answers_large ON answers (caller, octets) WHERE blob <> '';
