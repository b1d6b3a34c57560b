-- +goose Up

-- What a confirmed operation does is stored with the operation, and package operation carries it out.
DROP INDEX confirmations_start;
ALTER TABLE confirmations DROP COLUMN start_at;
ALTER TABLE confirmation_contents DROP COLUMN plan;
ALTER TABLE confirmation_contents DROP COLUMN secret;

-- An operation of a release before this one cannot be carried out any more: its time is over.
UPDATE confirmations SET due_at = 1 WHERE ended_at = 0 AND purpose = 'operation' AND NOT EXISTS (SELECT 1 FROM operations o WHERE o.id = confirmations.id);
