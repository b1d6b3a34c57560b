-- +goose Up

-- Searches by the lock of users find it in the index itself, as they find the login: in
-- a table of a million users those of one group lie on as many pages as they are.
DROP INDEX users_in_group;
CREATE INDEX users_in_group ON users (group_name, login_folded, operator, id, locked, unapproved, lock_at);
