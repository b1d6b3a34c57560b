-- +goose Up

-- The key of a sealed document, sealed anew under a later master key than in the head of the object.
-- Empty: only the head has it.
ALTER TABLE documents ADD COLUMN sealed_key {{bytes}} NOT NULL DEFAULT '';
