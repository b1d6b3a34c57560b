-- +goose Up

-- What an operation says about its documents and parameters for as long as its record is stored. The
-- plan is deleted with the end of the operation.
ALTER TABLE confirmation_contents ADD COLUMN outline {{bytes}} NOT NULL DEFAULT '';
