-- +goose Up

-- What a device answers to the challenge of a confirmation without a network, sealed. Empty
-- after the end.
ALTER TABLE confirmation_contents ADD COLUMN offline {{bytes}} NOT NULL DEFAULT '';
