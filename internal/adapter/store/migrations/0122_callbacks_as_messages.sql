-- +goose Up

-- A callback of an operation is a message of the outbox, with the identifier of the operation. The text of
-- a message is sealed, so what was pending before cannot be moved here, and is not sent.
DROP TABLE operation_callbacks;
ALTER TABLE operations DROP COLUMN called;
