-- +goose Up

-- Rows to lock on PostgreSQL for values that must be unique among users and may not be
-- stored yet. The hash of a value selects its row. The rows never change.
{{postgres}}CREATE TABLE lock_stripes (
{{postgres}}	stripe  BIGINT NOT NULL PRIMARY KEY
{{postgres}});
{{postgres}}INSERT INTO lock_stripes (stripe) SELECT generate_series(0, 1023);
