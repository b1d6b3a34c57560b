-- +goose Up

-- What an outside authority said last about a certificate of its: for who looks at it,
-- not for who signs with it. revoked_at is 0 for one that is not revoked; due_at is when
-- to ask again.
CREATE TABLE outside_standing (
	certificate_id  BIGINT NOT NULL PRIMARY KEY REFERENCES certificates (id) ON DELETE CASCADE,
	revoked_at      BIGINT NOT NULL,
	reason          BIGINT NOT NULL,
	due_at          BIGINT NOT NULL
);
