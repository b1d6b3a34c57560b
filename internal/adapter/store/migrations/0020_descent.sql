-- +goose NO TRANSACTION
-- +goose Up

-- When the user signed in, however the token was obtained; 0 in rows of a release that
-- did not record it.
ALTER TABLE access_tokens ADD COLUMN {{missing}} signed_in_at BIGINT NOT NULL DEFAULT 0;

-- Of a code that was made for a valid access token: the sign-in that it belongs to (as
-- access_tokens.grant_id), that token, and the end of that token. Empty and 0 for a code
-- that a sign-in made.
ALTER TABLE authorization_codes ADD COLUMN {{missing}} grant_id TEXT NOT NULL DEFAULT '';
ALTER TABLE authorization_codes ADD COLUMN {{missing}} parent_id TEXT NOT NULL DEFAULT '';
ALTER TABLE authorization_codes ADD COLUMN {{missing}} ends_at BIGINT NOT NULL DEFAULT 0;
CREATE INDEX {{concurrently}} authorization_codes_by_grant ON authorization_codes (grant_id) WHERE grant_id <> '';
