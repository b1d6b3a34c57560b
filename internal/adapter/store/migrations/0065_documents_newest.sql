-- +goose NO TRANSACTION
-- +goose Up

-- Pages list the documents of a user with the newest first.
{{postgres}}CREATE INDEX {{concurrently}} documents_newest ON documents (user_id, uploaded_at, id) WHERE state = 1;
{{sqlite}}CREATE INDEX IF NOT EXISTS documents_newest ON documents (user_id, uploaded_at, id) WHERE state = 1;
