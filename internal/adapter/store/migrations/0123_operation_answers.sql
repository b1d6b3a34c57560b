-- +goose Up

-- Small results of an operation that its user confirmed, sealed. A repeated call gets them; larger ones
-- are an object, and results is its name.
ALTER TABLE operations ADD COLUMN answer {{bytes}} NOT NULL DEFAULT '';
