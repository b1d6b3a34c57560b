-- +goose Up

-- Certificates of outside authorities: their serial numbers are not noted here, and
-- two authorities may use the same one. SQLite can drop no constraint, so there the
-- table is made anew, with what refers to it.
{{postgres}}ALTER TABLE certificates DROP CONSTRAINT certificates_serial_fkey;
{{postgres}}ALTER TABLE certificates DROP CONSTRAINT certificates_serial_key;
{{postgres}}ALTER TABLE certificates ADD COLUMN outside BOOLEAN NOT NULL DEFAULT FALSE;
{{sqlite}}CREATE TABLE certificates_next (
{{sqlite}}	id             {{identity}},
{{sqlite}}	user_id        TEXT      NOT NULL REFERENCES users (id) ON DELETE CASCADE,
{{sqlite}}	key_id         TEXT      NOT NULL REFERENCES keys (id) ON DELETE CASCADE,
{{sqlite}}	certificate    {{bytes}} NOT NULL,
{{sqlite}}	serial         {{bytes}} NOT NULL,
{{sqlite}}	friendly_name  TEXT      NOT NULL,
{{sqlite}}	created_at     BIGINT    NOT NULL,
{{sqlite}}	outside        BOOLEAN   NOT NULL DEFAULT FALSE,
{{sqlite}}	UNIQUE (user_id, id)
{{sqlite}});
{{sqlite}}INSERT INTO sqlite_sequence (name, seq) SELECT 'certificates_next', seq FROM sqlite_sequence WHERE name = 'certificates';
{{sqlite}}INSERT INTO certificates_next (id, user_id, key_id, certificate, serial, friendly_name, created_at)
{{sqlite}}	SELECT id, user_id, key_id, certificate, serial, friendly_name, created_at FROM certificates;
{{sqlite}}CREATE TABLE default_certificates_next (user_id TEXT NOT NULL PRIMARY KEY, certificate_id BIGINT NOT NULL);
{{sqlite}}INSERT INTO default_certificates_next SELECT user_id, certificate_id FROM default_certificates;
{{sqlite}}DROP TABLE default_certificates;
{{sqlite}}DROP TABLE certificates;
{{sqlite}}ALTER TABLE certificates_next RENAME TO certificates;
{{sqlite}}CREATE INDEX certificates_by_key ON certificates (key_id);
{{sqlite}}CREATE TABLE default_certificates (
{{sqlite}}	user_id         TEXT   NOT NULL PRIMARY KEY REFERENCES users (id) ON DELETE CASCADE,
{{sqlite}}	certificate_id  BIGINT NOT NULL,
{{sqlite}}	FOREIGN KEY (user_id, certificate_id) REFERENCES certificates (user_id, id) ON DELETE CASCADE
{{sqlite}});
{{sqlite}}INSERT INTO default_certificates SELECT user_id, certificate_id FROM default_certificates_next;
{{sqlite}}DROP TABLE default_certificates_next;
CREATE UNIQUE INDEX certificates_by_serial ON certificates (serial) WHERE NOT outside;

-- Requests for certificates and for their revocation. key_id is the key a pending
-- request wants a certificate for; certificate_id the one that was issued, or is to be
-- renewed or revoked while none was. life is in milliseconds, 0 the authority's own.
CREATE TABLE certificate_requests (
	id              {{identity}},
	user_id         TEXT      NOT NULL REFERENCES users (id) ON DELETE CASCADE,
	type            BIGINT    NOT NULL,
	status          BIGINT    NOT NULL,
	authority       BIGINT    NOT NULL,
	key_id          TEXT      REFERENCES keys (id) ON DELETE SET NULL,
	certificate_id  BIGINT    NOT NULL,
	renews          BIGINT    NOT NULL,
	request         {{bytes}} NOT NULL,
	life            BIGINT    NOT NULL,
	reason          BIGINT    NOT NULL,
	comment         TEXT      NOT NULL,
	created_at      BIGINT    NOT NULL,
	decided_at      BIGINT    NOT NULL
);
CREATE INDEX certificate_requests_by_user ON certificate_requests (user_id, id);
CREATE INDEX certificate_requests_by_status ON certificate_requests (status, id);
CREATE INDEX certificate_requests_by_key ON certificate_requests (key_id);
-- One request for a certificate waits at a time; statuses and types are the
-- interface's (2 pending, 0 a certificate).
CREATE UNIQUE INDEX certificate_requests_pending ON certificate_requests (user_id) WHERE status = 2 AND type = 0;

-- What clients keep with keys of theirs.
CREATE TABLE key_parameters (
	key_id  TEXT NOT NULL REFERENCES keys (id) ON DELETE CASCADE,
	name    TEXT NOT NULL,
	value   TEXT NOT NULL,
	PRIMARY KEY (key_id, name)
);
