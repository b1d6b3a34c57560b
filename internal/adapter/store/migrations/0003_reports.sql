-- Reports of verifications that people have stored under a number. sealed is the report, without the documents,
-- and bytes the size of it. name is the name of the file, verdict the worst verdict of its signatures. A report stays until its
-- end when its user is deleted: others have its number on paper.
CREATE TABLE reports (
	number      TEXT COLLATE {{binary}} NOT NULL PRIMARY KEY,
	user_id     TEXT      NOT NULL,
	name        TEXT      NOT NULL,
	verdict     TEXT      NOT NULL,
	bytes       BIGINT    NOT NULL,
	created_at  BIGINT    NOT NULL,
	expires_at  BIGINT    NOT NULL,
	sealed      {{bytes}} NOT NULL
);
CREATE INDEX reports_by_user ON reports (user_id, created_at, number);
CREATE INDEX reports_by_expiry ON reports (expires_at);

-- The time zone that a user has chosen, by its name in the database of time zones; '' for none.
ALTER TABLE users ADD COLUMN time_zone TEXT NOT NULL DEFAULT '';

-- Why an operator has refused a request, for its user.
ALTER TABLE certificate_requests ADD COLUMN refusal TEXT NOT NULL DEFAULT '';
