-- +goose Up

-- What the right answer to a confirmation was and what it gave, for a client that did not
-- get it and sends the same answer again. sealed has a MAC of the answer, the network that it
-- came from, and the token of a sign-in.
CREATE TABLE confirmation_answers (
	id          TEXT      NOT NULL PRIMARY KEY,
	sealed      {{bytes}} NOT NULL,
	expires_at  BIGINT    NOT NULL
);
CREATE INDEX confirmation_answers_by_expiry ON confirmation_answers (expires_at);
