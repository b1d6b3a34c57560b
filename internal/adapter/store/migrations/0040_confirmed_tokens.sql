-- +goose Up

-- The confirmation that a confirmed token was issued for; '' for an access token. A release
-- without this column refuses such tokens by their type.
ALTER TABLE access_tokens ADD COLUMN confirmation TEXT NOT NULL DEFAULT '';
