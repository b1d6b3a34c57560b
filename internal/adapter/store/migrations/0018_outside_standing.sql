-- +goose Up

-- What an outside authority said last about a certificate of its, for who looks at it
-- and not for who signs with it: when it was revoked, 0 for not at all, and when to ask
-- again.
ALTER TABLE certificates ADD COLUMN standing_revoked_at BIGINT NOT NULL DEFAULT 0;
ALTER TABLE certificates ADD COLUMN standing_reason BIGINT NOT NULL DEFAULT 0;
ALTER TABLE certificates ADD COLUMN standing_due_at BIGINT NOT NULL DEFAULT 0;
CREATE INDEX certificates_outside ON certificates (id) WHERE outside;

-- What the user said when it was revoked or put on hold.
ALTER TABLE certificates ADD COLUMN revocation_comment TEXT NOT NULL DEFAULT '';
