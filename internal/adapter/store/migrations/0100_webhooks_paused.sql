-- +goose Up

-- When a webhook was switched off. 0: it is on.
ALTER TABLE webhooks ADD COLUMN paused_at BIGINT NOT NULL DEFAULT 0;
