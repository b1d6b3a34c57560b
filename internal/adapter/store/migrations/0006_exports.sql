-- How far the audit log was delivered to a collector. position is the number of the last entry that was
-- delivered. One process at a time delivers, by a lease.
CREATE TABLE exports (
	name          TEXT   NOT NULL PRIMARY KEY,
	position      BIGINT NOT NULL,
	lease         TEXT   NOT NULL,
	leased_until  BIGINT NOT NULL
);
