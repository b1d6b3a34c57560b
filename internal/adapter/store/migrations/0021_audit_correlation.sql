-- +goose Up

-- The id that a known caller gave the request, beside the one that the service made.
ALTER TABLE audit ADD COLUMN correlation_id TEXT NOT NULL DEFAULT '';
