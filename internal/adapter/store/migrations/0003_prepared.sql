-- +goose Up

-- What two-step signing keeps between its steps. A row is spent once; it stays
-- until it expires, without its job, so that a second use can be told from an
-- unknown name. While lease is not empty and leased_until has not come, one
-- completion is at work.
CREATE TABLE prepared (
	id            TEXT      NOT NULL PRIMARY KEY,
	caller        TEXT      NOT NULL,
	type          TEXT      NOT NULL,
	job           {{bytes}} NOT NULL,
	document      TEXT      NOT NULL,
	original      TEXT      NOT NULL,
	octets        BIGINT    NOT NULL,
	created_at    BIGINT    NOT NULL,
	expires_at    BIGINT    NOT NULL,
	failures      BIGINT    NOT NULL,
	lease         TEXT      NOT NULL,
	leased_until  BIGINT    NOT NULL,
	spent_at      BIGINT    NOT NULL
);
CREATE INDEX prepared_by_expiry ON prepared (expires_at);

-- How much is prepared and not yet spent or swept: by each caller, and in all
-- under the caller ''. Counted along with every change, since counting the rows
-- of the other table would cost more with every row.
CREATE TABLE prepared_usage (
	caller   TEXT   NOT NULL PRIMARY KEY,
	objects  BIGINT NOT NULL,
	octets   BIGINT NOT NULL
);
