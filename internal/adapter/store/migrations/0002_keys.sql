-- +goose Up

-- The built-in certificate authorities, each with its current revocation list.
CREATE TABLE authorities (
	name         TEXT      NOT NULL PRIMARY KEY,
	suite        TEXT      NOT NULL,
	sealed       {{bytes}} NOT NULL,
	certificate  {{bytes}} NOT NULL,
	crl          {{bytes}} NOT NULL,
	crl_number   BIGINT    NOT NULL,
	crl_at       BIGINT    NOT NULL,
	created_at   BIGINT    NOT NULL
);

-- Everything the authorities issued. A serial number is unique over all of
-- them; revoked_at is 0 and reason 0 until a certificate is revoked. Rows stay
-- when the certificate's owner is deleted: a revocation must outlive both.
CREATE TABLE issued_certificates (
	serial      {{bytes}} NOT NULL PRIMARY KEY,
	authority   TEXT      NOT NULL REFERENCES authorities (name),
	not_after   BIGINT    NOT NULL,
	issued_at   BIGINT    NOT NULL,
	revoked_at  BIGINT    NOT NULL,
	reason      BIGINT    NOT NULL
);
CREATE INDEX issued_certificates_revoked ON issued_certificates (authority, serial) WHERE revoked_at <> 0;

-- Users' private keys, sealed. pin_failures counts attempts that were begun and
-- not yet found correct.
CREATE TABLE keys (
	id            TEXT      NOT NULL PRIMARY KEY,
	user_id       TEXT      NOT NULL REFERENCES users (id) ON DELETE CASCADE,
	suite         TEXT      NOT NULL,
	sealed        {{bytes}} NOT NULL,
	has_pin       BOOLEAN   NOT NULL,
	pin_failures  BIGINT    NOT NULL,
	created_at    BIGINT    NOT NULL
);
CREATE INDEX keys_by_user ON keys (user_id);

-- Users' certificates. The id is what clients send as CertificateId.
CREATE TABLE certificates (
	id             {{identity}},
	user_id        TEXT      NOT NULL REFERENCES users (id) ON DELETE CASCADE,
	key_id         TEXT      NOT NULL REFERENCES keys (id) ON DELETE CASCADE,
	certificate    {{bytes}} NOT NULL,
	serial         {{bytes}} NOT NULL UNIQUE REFERENCES issued_certificates (serial),
	friendly_name  TEXT      NOT NULL,
	created_at     BIGINT    NOT NULL,
	UNIQUE (user_id, id)
);
CREATE INDEX certificates_by_key ON certificates (key_id);

-- The one default certificate of a user, always one of the user's own.
CREATE TABLE default_certificates (
	user_id         TEXT   NOT NULL PRIMARY KEY REFERENCES users (id) ON DELETE CASCADE,
	certificate_id  BIGINT NOT NULL,
	FOREIGN KEY (user_id, certificate_id) REFERENCES certificates (user_id, id) ON DELETE CASCADE
);
