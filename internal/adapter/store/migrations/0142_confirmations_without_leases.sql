-- +goose Up

-- A confirmation carries nothing out: operations have leases, and what else a record gives is given in the transaction that ends it.
ALTER TABLE confirmations DROP COLUMN lease;
ALTER TABLE confirmations DROP COLUMN leased_until;
