-- +goose Up

-- Keys by which mobile devices knew the service until they were replaced: at most one for each
-- algorithm. digest is the SHA-256 of the public key. statement introduces the new key, signed
-- with this one. The row is deleted at until_at.
CREATE TABLE former_device_service_keys (
	algorithm   TEXT      NOT NULL PRIMARY KEY,
	digest      {{bytes}} NOT NULL,
	sealed      {{bytes}} NOT NULL,
	statement   TEXT      NOT NULL,
	until_at    BIGINT    NOT NULL
);
