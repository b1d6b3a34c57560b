-- +goose NO TRANSACTION
-- +goose Up

-- The list of changes that wait begins with the oldest and ends with a page.
{{postgres}}CREATE INDEX {{concurrently}} approval_requests_in_order ON approval_requests (created_at, id) WHERE ended_at = 0;
{{sqlite}}CREATE INDEX IF NOT EXISTS approval_requests_in_order ON approval_requests (created_at, id) WHERE ended_at = 0;
