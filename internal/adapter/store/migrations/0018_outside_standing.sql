-- +goose NO TRANSACTION
-- +goose Up

-- What an outside authority last said about one of its certificates, for those who look at
-- it and not for those who sign with it: when it was revoked, 0 for not at all, and when to
-- ask again.
ALTER TABLE certificates ADD COLUMN {{missing}} standing_revoked_at BIGINT NOT NULL DEFAULT 0;
ALTER TABLE certificates ADD COLUMN {{missing}} standing_reason BIGINT NOT NULL DEFAULT 0;
ALTER TABLE certificates ADD COLUMN {{missing}} standing_due_at BIGINT NOT NULL DEFAULT 0;
CREATE INDEX {{concurrently}} certificates_outside ON certificates (id) WHERE outside;

-- What the user said when it was revoked or put on hold.
ALTER TABLE certificates ADD COLUMN {{missing}} revocation_comment TEXT NOT NULL DEFAULT '';
