-- +goose NO TRANSACTION
-- +goose Up

-- Every signature and verification reads the numbers and times of the revocation lists. In the rows of
-- SQLite they come after the list itself, which is hundreds of kilobytes when much was revoked.
{{sqlite}}CREATE INDEX IF NOT EXISTS authority_states ON authorities (name, crl_number, crl_at);
