-- +goose NO TRANSACTION
-- +goose Up

-- The deliveries to one webhook, the newest first.
{{postgres}}CREATE INDEX {{concurrently}} outbox_webhooks ON outbox (lane, id) WHERE channel = 'Webhook';
{{sqlite}}CREATE INDEX IF NOT EXISTS outbox_webhooks ON outbox (lane, id) WHERE channel = 'Webhook';
