-- +goose Up

-- When the delay of a request began, and when its user has ended it; 0: not.
ALTER TABLE approval_requests ADD COLUMN delayed_from BIGINT NOT NULL DEFAULT 0;
ALTER TABLE approval_requests ADD COLUMN confirmed_at BIGINT NOT NULL DEFAULT 0;
