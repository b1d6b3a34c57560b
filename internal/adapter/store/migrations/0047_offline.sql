-- +goose Up

-- Keys by which mobile devices know the service, sealed: one for each algorithm.
CREATE TABLE device_service_keys (
	algorithm   TEXT      NOT NULL PRIMARY KEY,
	sealed      {{bytes}} NOT NULL,
	created_at  BIGINT    NOT NULL
);
