-- +goose NO TRANSACTION
-- +goose Up

-- Entries are found by their user: as the caller, and as the object of an act.
{{sqlite}}CREATE INDEX IF NOT EXISTS audit_by_user ON audit (user_id);
{{sqlite}}CREATE INDEX IF NOT EXISTS audit_by_object ON audit (object) WHERE length(object) = 36;

-- On PostgreSQL the audit log has a partition for each month. The table of before becomes
-- the first partition, up to a month that has not begun, and is not rewritten. Processes
-- make the later partitions (partitions.go). Releases of before go on writing: the name and
-- the columns stay.
--
-- First a bound for the entries that are there, checked while others write.
{{postgres}}DO $$
{{postgres}}DECLARE
{{postgres}}	ends BIGINT;
{{postgres}}BEGIN
{{postgres}}	IF (SELECT relkind FROM pg_class WHERE oid = 'audit'::regclass) <> 'r'
{{postgres}}		OR EXISTS (SELECT 1 FROM pg_constraint WHERE conrelid = 'audit'::regclass AND conname = 'audit_before') THEN
{{postgres}}		RETURN;
{{postgres}}	END IF;
{{postgres}}	-- A month that begins in seven days or more, and after all entries.
{{postgres}}	SELECT EXTRACT(EPOCH FROM date_trunc('month', to_timestamp(GREATEST(COALESCE(MAX(at), 0) / 1000, EXTRACT(EPOCH FROM now()) + 7 * 86400)) AT TIME ZONE 'UTC')
{{postgres}}		+ INTERVAL '1 month') * 1000 INTO ends FROM audit;
{{postgres}}	EXECUTE format('ALTER TABLE audit ADD CONSTRAINT audit_before CHECK (at < %s) NOT VALID', ends);
{{postgres}}END $$;
{{postgres}}DO $$
{{postgres}}BEGIN
{{postgres}}	SET LOCAL lock_timeout = 0; -- no statement waits behind this
{{postgres}}	IF EXISTS (SELECT 1 FROM pg_constraint WHERE conrelid = 'audit'::regclass AND conname = 'audit_before' AND NOT convalidated) THEN
{{postgres}}		ALTER TABLE audit VALIDATE CONSTRAINT audit_before;
{{postgres}}	END IF;
{{postgres}}END $$;

-- The switch takes milliseconds, because the bound is known to hold. The numbers come from
-- a sequence of their own: a partition has no identity column. Privileges are kept.
{{postgres}}DO $$
{{postgres}}DECLARE
{{postgres}}	ends TEXT;
{{postgres}}	given RECORD;
{{postgres}}BEGIN
{{postgres}}	IF (SELECT relkind FROM pg_class WHERE oid = 'audit'::regclass) <> 'r' THEN
{{postgres}}		RETURN;
{{postgres}}	END IF;
{{postgres}}	LOCK TABLE audit IN ACCESS EXCLUSIVE MODE;
{{postgres}}	SELECT substring(pg_get_constraintdef(oid) FROM '[0-9]+') INTO ends FROM pg_constraint WHERE conrelid = 'audit'::regclass AND conname = 'audit_before';
{{postgres}}	ALTER TABLE audit RENAME TO audit_first;
{{postgres}}	ALTER TABLE audit_first ALTER COLUMN id DROP IDENTITY;
{{postgres}}	CREATE TABLE audit (LIKE audit_first INCLUDING DEFAULTS) PARTITION BY RANGE (at);
{{postgres}}	CREATE SEQUENCE audit_numbers OWNED BY audit.id;
{{postgres}}	PERFORM setval('audit_numbers', COALESCE((SELECT MAX(id) FROM audit_first), 0) + 1, FALSE);
{{postgres}}	ALTER TABLE audit ALTER COLUMN id SET DEFAULT nextval('audit_numbers');
{{postgres}}	EXECUTE format('ALTER TABLE audit ATTACH PARTITION audit_first FOR VALUES FROM (MINVALUE) TO (%s)', ends);
{{postgres}}	ALTER TABLE audit_first DROP CONSTRAINT audit_before;
{{postgres}}	CREATE TABLE audit_other PARTITION OF audit DEFAULT; -- of clocks that are months wrong
{{postgres}}	ALTER TABLE audit_other ADD PRIMARY KEY (id);
{{postgres}}	FOR given IN SELECT CASE a.grantee WHEN 0 THEN 'PUBLIC' ELSE a.grantee::regrole::text END AS role, a.privilege_type AS privilege
{{postgres}}		FROM pg_class c, aclexplode(c.relacl) a WHERE c.oid = 'audit_first'::regclass AND a.grantee <> c.relowner LOOP
{{postgres}}		EXECUTE format('GRANT %s ON audit TO %s', given.privilege, given.role);
{{postgres}}		IF given.privilege = 'INSERT' THEN
{{postgres}}			EXECUTE format('GRANT USAGE ON SEQUENCE audit_numbers TO %s', given.role);
{{postgres}}		END IF;
{{postgres}}	END LOOP;
{{postgres}}END $$;

-- The indexes of the first partition are built while others write.
{{postgres}}CREATE INDEX {{concurrently}} audit_first_by_user ON audit_first (user_id, id);
{{postgres}}CREATE INDEX {{concurrently}} audit_first_by_object ON audit_first (object, id) WHERE length(object) = 36;
{{postgres}}CREATE INDEX {{concurrently}} audit_first_by_at ON audit_first USING brin (at) WITH (pages_per_range = 32, autosummarize = on);
{{postgres}}DROP INDEX CONCURRENTLY IF EXISTS audit_by_time;

-- Those of all partitions: nothing is built, because the one of the first partition is
-- taken over, and the others are empty.
{{postgres}}DO $$
{{postgres}}BEGIN
{{postgres}}	CREATE INDEX IF NOT EXISTS audit_by_user ON audit (user_id, id);
{{postgres}}	CREATE INDEX IF NOT EXISTS audit_by_object ON audit (object, id) WHERE length(object) = 36;
{{postgres}}	CREATE INDEX IF NOT EXISTS audit_by_at ON audit USING brin (at) WITH (pages_per_range = 32, autosummarize = on);
{{postgres}}END $$;
