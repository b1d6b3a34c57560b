-- +goose Up

-- Certificates of roots of the built-in authority by other generations of the same root. name
-- is SUBJECT-by-ISSUER.
CREATE TABLE cross_certificates (
	name         TEXT      NOT NULL PRIMARY KEY,
	certificate  {{bytes}} NOT NULL,
	created_at   BIGINT    NOT NULL
);
