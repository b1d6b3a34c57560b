-- +goose Up

-- Time-stamp services registered beside those of the configuration. normal_url
-- is the address in the form that decides whether two are one.
CREATE TABLE tsp_services (
	id          {{identity}},
	name        TEXT   NOT NULL UNIQUE,
	title       TEXT   NOT NULL,
	url         TEXT   NOT NULL,
	normal_url  TEXT   NOT NULL UNIQUE,
	class       TEXT   NOT NULL,
	policy      TEXT   NOT NULL,
	per_minute  BIGINT NOT NULL,
	created_at  BIGINT NOT NULL
);
