-- +goose Up

-- All operations are those of package operation. What a release before this one accepted, and has not carried out, ends as
-- Expired: its plan has another form.
ALTER TABLE operations ADD COLUMN purpose TEXT NOT NULL DEFAULT 'operation';
ALTER TABLE operations ADD COLUMN client_id TEXT NOT NULL DEFAULT '';
ALTER TABLE operations ADD COLUMN start_after BIGINT NOT NULL DEFAULT -1;
UPDATE operations SET state = 'Expired', completed_at = complete_before, keep_until = complete_before, plan = '', lease = '', leased_until = 0
	WHERE kind = '' AND keep_until = 0;
UPDATE operations SET kind = 'sign', form = 'operation' WHERE kind = '';
UPDATE operations SET purpose = 'change' WHERE form = 'change';
UPDATE operations SET due_at = 0 WHERE due_at <> 0;
ALTER TABLE operations DROP COLUMN pin;
DROP INDEX operations_due;
CREATE INDEX operations_due ON operations (due_at) WHERE due_at <> 0;
CREATE INDEX operations_ending ON operations (complete_before) WHERE keep_until = 0;
