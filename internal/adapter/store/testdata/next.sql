-- An example of the next migration, with which tests show every rule of migrate.go. Each statement is on
-- its own, so all of them are repeatable.
-- +no transaction

-- Columns: this program does not name them.
ALTER TABLE users ADD COLUMN {{missing}} rank BIGINT NOT NULL DEFAULT 0;

-- An index in place of another one.
{{postgres}}CREATE INDEX {{concurrently}} users_in_group_next ON users (group_name, login_folded, operator, id, locked, unapproved, lock_at, rank);
{{sqlite}}DROP INDEX users_in_group;
{{sqlite}}CREATE INDEX users_in_group ON users (group_name, login_folded, operator, id, locked, unapproved, lock_at, rank);
{{postgres}}DROP INDEX CONCURRENTLY IF EXISTS users_in_group;
{{postgres}}ALTER INDEX IF EXISTS users_in_group_next RENAME TO users_in_group;

-- A column of a table that every request reads.
ALTER TABLE access_tokens ADD COLUMN {{missing}} browser TEXT NOT NULL DEFAULT '';

-- Rows that are filled in, in portions, which an index finds.
{{postgres}}CREATE INDEX {{concurrently}} users_without_rank ON users (id) WHERE rank = 0;
-- +portions
UPDATE users SET rank = 1 WHERE id IN (SELECT id FROM users WHERE rank = 0 LIMIT 200);
{{postgres}}DROP INDEX CONCURRENTLY IF EXISTS users_without_rank;

-- A constraint. SQLite adds none to a table.
{{postgres}}ALTER TABLE users DROP CONSTRAINT IF EXISTS users_rank, ADD CONSTRAINT users_rank CHECK (rank >= 0) NOT VALID;
{{postgres}}ALTER TABLE users VALIDATE CONSTRAINT users_rank;

-- A table.
CREATE TABLE IF NOT EXISTS ranks (
	rank   BIGINT NOT NULL PRIMARY KEY,
	title  TEXT   NOT NULL
);
