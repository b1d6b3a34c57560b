-- +goose NO TRANSACTION
-- +goose Up

-- More rows to lock for values of users (0024), so that two changes hardly ever lock one row
-- for different values.
{{postgres}}INSERT INTO lock_stripes (stripe) SELECT generate_series(1024, 16383) ON CONFLICT DO NOTHING;
