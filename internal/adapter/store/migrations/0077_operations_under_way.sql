-- +goose NO TRANSACTION
-- +goose Up

-- Operators list the operations under way of all people, the oldest first.
{{postgres}}CREATE INDEX {{concurrently}} operations_under_way ON operations (created_at, id) WHERE keep_until = 0;
{{sqlite}}CREATE INDEX IF NOT EXISTS operations_under_way ON operations (created_at, id) WHERE keep_until = 0;
{{postgres}}CREATE INDEX {{concurrently}} confirmations_under_way ON confirmations (created_at, id) WHERE ended_at = 0;
{{sqlite}}CREATE INDEX IF NOT EXISTS confirmations_under_way ON confirmations (created_at, id) WHERE ended_at = 0;
