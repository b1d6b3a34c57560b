-- +goose NO TRANSACTION
-- +goose Up

-- The network that a sign-in waiting for its second step came from; empty if it is not
-- known, and in rows of a release without this column.
ALTER TABLE confirmations ADD COLUMN {{missing}} origin TEXT NOT NULL DEFAULT '';
