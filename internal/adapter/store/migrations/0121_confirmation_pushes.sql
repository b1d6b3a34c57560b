-- +goose Up

-- Sign-ins that devices of a user were asked to confirm, one row for each time. A row counts
-- until expires_at.
CREATE TABLE confirmation_pushes (
	user_id     TEXT   NOT NULL,
	challenge   TEXT   NOT NULL,
	expires_at  BIGINT NOT NULL,
	PRIMARY KEY (user_id, challenge)
) {{clustered}};
CREATE INDEX confirmation_pushes_by_expiry ON confirmation_pushes (expires_at);
