-- +goose Up

-- Confirmations of operations and second steps of sign-ins. what is the digest of what is
-- confirmed. round counts challenges, sent_at and answer_before are of the present one.
-- due_at is when the record expires in its present state. ended_at is 0 while the record
-- is open. While lease is not empty and leased_until has not come, one process carries the
-- operation out.
CREATE TABLE confirmations (
	id               TEXT      NOT NULL PRIMARY KEY,
	ref_id           TEXT      NOT NULL UNIQUE,
	user_id          TEXT      NOT NULL,
	client_id        TEXT      NOT NULL,
	operator         TEXT      NOT NULL,
	sign_in          TEXT      NOT NULL,
	purpose          TEXT      NOT NULL,
	action           TEXT      NOT NULL,
	documents        BIGINT    NOT NULL,
	what             {{bytes}} NOT NULL,
	bytes           BIGINT    NOT NULL,
	state            TEXT      NOT NULL,
	method           TEXT      NOT NULL,
	address          TEXT      NOT NULL,
	label            TEXT      NOT NULL,
	number           TEXT      NOT NULL,
	round            BIGINT    NOT NULL,
	sent_at          BIGINT    NOT NULL,
	answer_before    BIGINT    NOT NULL,
	attempts         BIGINT    NOT NULL,
	resends          BIGINT    NOT NULL,
	declined         TEXT      NOT NULL,
	code             TEXT      NOT NULL,
	message          TEXT      NOT NULL,
	lease            TEXT      NOT NULL,
	leased_until     BIGINT    NOT NULL,
	created_at       BIGINT    NOT NULL,
	updated_at       BIGINT    NOT NULL,
	confirm_before   BIGINT    NOT NULL,
	confirmed_at     BIGINT    NOT NULL,
	complete_before  BIGINT    NOT NULL,
	due_at           BIGINT    NOT NULL,
	ended_at         BIGINT    NOT NULL
);
CREATE INDEX confirmations_open ON confirmations (user_id, due_at) WHERE ended_at = 0;
CREATE INDEX confirmations_due ON confirmations (due_at) WHERE ended_at = 0;
CREATE INDEX confirmations_ended ON confirmations (ended_at) WHERE ended_at <> 0;

-- The large part of a confirmation. secret is sealed. plan and secret are empty after the
-- end.
CREATE TABLE confirmation_contents (
	id        TEXT      NOT NULL PRIMARY KEY,
	fields    {{bytes}} NOT NULL,
	shown     {{bytes}} NOT NULL,
	plan      {{bytes}} NOT NULL,
	secret    {{bytes}} NOT NULL,
	result    {{bytes}} NOT NULL,
	approval  {{bytes}} NOT NULL
);

-- Open confirmations of each user and purpose, for the quotas.
CREATE TABLE confirmation_usage (
	user_id  TEXT   NOT NULL,
	purpose  TEXT   NOT NULL,
	records  BIGINT NOT NULL,
	bytes   BIGINT NOT NULL,
	PRIMARY KEY (user_id, purpose)
) {{clustered}};

-- Wrong answers of each user and method, over all confirmations.
CREATE TABLE confirmation_failures (
	user_id       TEXT   NOT NULL,
	method        TEXT   NOT NULL,
	failures      BIGINT NOT NULL,
	window_from   BIGINT NOT NULL,
	locked_until  BIGINT NOT NULL,
	PRIMARY KEY (user_id, method)
) {{clustered}};
CREATE INDEX confirmation_failures_by_window ON confirmation_failures (window_from);
