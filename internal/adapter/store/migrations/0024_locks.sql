-- +goose Up

-- Rows to lock on PostgreSQL for values that must be unique among users and may not be
-- stored yet. The hash of a value selects its row. The rows never change.
{{postgres}}CREATE TABLE lock_stripes (
{{postgres}}	stripe  BIGINT NOT NULL PRIMARY KEY
{{postgres}});
{{postgres}}INSERT INTO lock_stripes (stripe) SELECT generate_series(0, 1023);

-- Counters of what owners hold, by owner and shard. A process counts in one shard, so that
-- processes do not wait for one row. A quota is compared with the sum. Objects name the
-- shard that counts them. Objects of -1 are counted in prepared_usage and document_usage,
-- where earlier releases count, also while they run beside this one.
CREATE TABLE prepared_shares (
	caller   TEXT   NOT NULL,
	shard    BIGINT NOT NULL,
	objects  BIGINT NOT NULL,
	octets   BIGINT NOT NULL,
	PRIMARY KEY (caller, shard)
);
ALTER TABLE prepared ADD COLUMN shard BIGINT NOT NULL DEFAULT -1;

CREATE TABLE document_shares (
	user_id  TEXT   NOT NULL,
	shard    BIGINT NOT NULL,
	objects  BIGINT NOT NULL,
	octets   BIGINT NOT NULL,
	PRIMARY KEY (user_id, shard)
);
ALTER TABLE documents ADD COLUMN shard BIGINT NOT NULL DEFAULT -1;
