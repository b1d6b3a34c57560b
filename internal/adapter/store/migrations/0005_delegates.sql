-- +goose Up

-- What the authorities certified to act for them: time-stamping services and
-- OCSP responders. Of each name the highest generation is in service. They have
-- a table of their own because a release that knows none of them takes every row
-- of authorities for one with a revocation list.
CREATE TABLE authority_delegates (
	name         TEXT      NOT NULL,
	generation   BIGINT    NOT NULL,
	authority    TEXT      NOT NULL REFERENCES authorities (name),
	suite        TEXT      NOT NULL,
	sealed       {{bytes}} NOT NULL,
	certificate  {{bytes}} NOT NULL,
	created_at   BIGINT    NOT NULL,
	PRIMARY KEY (name, generation)
);
