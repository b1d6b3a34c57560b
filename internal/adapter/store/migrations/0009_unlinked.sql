-- barred says that the last synchronization found the user disabled or gone for long enough, and has acted on that
-- once. An operator who unlocks the user meanwhile is not overruled. The row is locked only if the present lock is the
-- one of the directory.
ALTER TABLE directory_users ADD COLUMN barred BOOLEAN NOT NULL DEFAULT FALSE;
-- Users whom an operator has taken out of a directory for good, with the entry that they had. No synchronization joins
-- such a user with an entry, or the entry with a user. The row outlives the user, so there is no foreign key: otherwise the
-- deletion would undo what the operator decided. login is the folded one at that time, by which a deleted user is named.
CREATE TABLE directory_unlinked (
	user_id    TEXT NOT NULL PRIMARY KEY,
	directory  TEXT COLLATE {{binary}} NOT NULL,
	entry      TEXT COLLATE {{binary}} NOT NULL,
	login      TEXT COLLATE {{binary}} NOT NULL
);
CREATE INDEX directory_unlinked_entry ON directory_unlinked (directory, entry);
