-- +goose Up

-- The holder of each private key, by its name in the configuration.
ALTER TABLE keys ADD COLUMN holder TEXT NOT NULL DEFAULT 'software';
ALTER TABLE authorities ADD COLUMN holder TEXT NOT NULL DEFAULT 'software';
ALTER TABLE authority_delegates ADD COLUMN holder TEXT NOT NULL DEFAULT 'software';

-- Keys whose rows are gone and which their holders must still destroy. Nothing of a key of the holder
-- software is outside of its row, so it never comes here.
CREATE TABLE deleted_keys (
	id          TEXT      NOT NULL PRIMARY KEY,
	holder      TEXT      NOT NULL,
	suite       TEXT      NOT NULL,
	sealed      {{bytes}} NOT NULL,
	has_pin     BOOLEAN   NOT NULL,
	deleted_at  BIGINT    NOT NULL
);
