-- +goose NO TRANSACTION
-- +goose Up

-- A search for users by a method that few have begins with these users.
{{postgres}}CREATE INDEX {{concurrently}} user_methods_by_method ON user_methods (method, user_id);
{{sqlite}}CREATE INDEX IF NOT EXISTS user_methods_by_method ON user_methods (method, user_id);
