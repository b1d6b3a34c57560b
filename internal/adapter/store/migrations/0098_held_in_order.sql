-- +goose NO TRANSACTION
-- +goose Up

-- The list of changes that wait begins with the oldest and ends with a page.
{{postgres}}CREATE INDEX {{concurrently}} held_requests_in_order ON held_requests (created_at, id) WHERE ended_at = 0;
{{sqlite}}CREATE INDEX IF NOT EXISTS held_requests_in_order ON held_requests (created_at, id) WHERE ended_at = 0;
