-- Users who follow an entry of a directory (LDAP). entry identifies it for ever, dn is what the user signs in with
-- there. digest is of what the user has from the entry. missing_since is when it vanished, 0 while it is there.
-- locked says that the user was locked for the directory, so that its return lifts the lock.
CREATE TABLE directory_users (
	user_id        TEXT   NOT NULL PRIMARY KEY REFERENCES users (id) ON DELETE CASCADE,
	directory      TEXT COLLATE {{binary}} NOT NULL,
	entry          TEXT COLLATE {{binary}} NOT NULL,
	dn             TEXT   NOT NULL,
	digest         TEXT   NOT NULL,
	missing_since  BIGINT NOT NULL,
	locked         BOOLEAN NOT NULL
);
CREATE UNIQUE INDEX directory_users_entry ON directory_users (directory, entry);

-- The last synchronization of each directory. result is JSON. One process at a time synchronizes, by a lease.
CREATE TABLE directory_syncs (
	directory     TEXT COLLATE {{binary}} NOT NULL PRIMARY KEY,
	lease         TEXT   NOT NULL,
	leased_until  BIGINT NOT NULL,
	due_at        BIGINT NOT NULL,
	ended_at      BIGINT NOT NULL,
	result        TEXT   NOT NULL,
	error         TEXT   NOT NULL
);
