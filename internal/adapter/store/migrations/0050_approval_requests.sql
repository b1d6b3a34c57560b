-- +goose Up

-- Requests of operators that wait: for a second operator (approval), for a time
-- (not_before), or both. digest identifies the same request. ended_at is 0 while the
-- request is open. leased_until is that of a request which is being carried out.
CREATE TABLE approval_requests (
	id            TEXT      NOT NULL PRIMARY KEY,
	operation     TEXT      NOT NULL,
	object        TEXT      NOT NULL,
	requester     TEXT      NOT NULL,
	login         TEXT      NOT NULL,
	group_names   TEXT      NOT NULL,
	state         TEXT      NOT NULL,
	approval      BOOLEAN   NOT NULL,
	decided_by    TEXT      NOT NULL,
	created_at    BIGINT    NOT NULL,
	not_before    BIGINT    NOT NULL,
	expires_at    BIGINT    NOT NULL,
	ended_at      BIGINT    NOT NULL,
	leased_until  BIGINT    NOT NULL,
	digest        {{bytes}} NOT NULL,
	sealed        {{bytes}} NOT NULL
);
CREATE UNIQUE INDEX approval_requests_open ON approval_requests (requester, digest) WHERE ended_at = 0;
CREATE INDEX approval_requests_object ON approval_requests (object, created_at) WHERE ended_at = 0;
CREATE INDEX approval_requests_due ON approval_requests (expires_at) WHERE ended_at = 0;
CREATE INDEX approval_requests_ended ON approval_requests (ended_at) WHERE ended_at <> 0;
