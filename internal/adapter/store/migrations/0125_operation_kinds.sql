-- +goose Up

-- Operations of package operation. A row without a kind is of package signing.
ALTER TABLE operations ADD COLUMN kind TEXT NOT NULL DEFAULT '';
ALTER TABLE operations ADD COLUMN form TEXT NOT NULL DEFAULT '';
ALTER TABLE operations ADD COLUMN secret {{bytes}} NOT NULL DEFAULT '';
ALTER TABLE operations ADD COLUMN confirm_before BIGINT NOT NULL DEFAULT 0;
