-- +goose NO TRANSACTION
-- +goose Up

-- Searches by the lock of users find it in the index itself, as they find the login: in
-- a table of a million users the users of one group are on almost as many pages.
{{postgres}}CREATE INDEX {{concurrently}} users_in_group_next ON users (group_name, login_folded, operator, id, locked, unapproved, lock_at);
{{sqlite}}DROP INDEX users_in_group;
{{sqlite}}CREATE INDEX users_in_group ON users (group_name, login_folded, operator, id, locked, unapproved, lock_at);
{{postgres}}DROP INDEX CONCURRENTLY IF EXISTS users_in_group;
{{postgres}}ALTER INDEX IF EXISTS users_in_group_next RENAME TO users_in_group;
