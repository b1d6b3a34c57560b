-- +goose NO TRANSACTION
-- +goose Up

-- The entries of a user are read along an index, the newest first. PostgreSQL reads and sorts all of
-- them instead if it takes them for few, as it does with a user whom its statistics do not name, for 20
-- ms with 20,000 entries. It believes a part of a partition in place of a count of users. What it
-- believes takes effect when the statistics are made again. New partitions: partitions.go.
{{postgres}}DO $$
{{postgres}}DECLARE
{{postgres}}	part REGCLASS;
{{postgres}}BEGIN
{{postgres}}	SET LOCAL lock_timeout = 0; -- no statement waits behind this
{{postgres}}	FOR part IN SELECT inhrelid::regclass FROM pg_inherits WHERE inhparent = 'audit'::regclass LOOP
{{postgres}}		EXECUTE format('ALTER TABLE %s ALTER COLUMN user_id SET (n_distinct = 200), ALTER COLUMN object SET (n_distinct = 200)', part);
{{postgres}}		EXECUTE format('ANALYZE %s', part);
{{postgres}}	END LOOP;
{{postgres}}END $$;
