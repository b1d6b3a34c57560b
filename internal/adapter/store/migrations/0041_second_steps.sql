-- +goose NO TRANSACTION
-- +goose Up

-- Whether the sign-in had a second step, or a confirmation in its place. Rows of a release
-- without these columns say that it had none.
ALTER TABLE access_tokens ADD COLUMN {{missing}} second_step BOOLEAN NOT NULL DEFAULT FALSE;
ALTER TABLE grants ADD COLUMN {{missing}} second_step BOOLEAN NOT NULL DEFAULT FALSE;
ALTER TABLE authorization_codes ADD COLUMN {{missing}} second_step BOOLEAN NOT NULL DEFAULT FALSE;
