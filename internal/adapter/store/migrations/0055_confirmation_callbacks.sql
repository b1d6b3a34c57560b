-- +goose NO TRANSACTION
-- +goose Up

-- The address that a client named for the callback of a confirmation; empty for none. Rows
-- of a release without this column have none.
ALTER TABLE confirmations ADD COLUMN {{missing}} callback TEXT NOT NULL DEFAULT '';
