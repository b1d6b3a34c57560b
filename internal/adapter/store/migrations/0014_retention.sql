-- Documents that are kept, and the archive time stamps that their signatures get. Each statement is on its own, because of
-- the index on a table that is in use.
-- +no transaction

-- Until when only an operator may have the document removed, 0: its owner may remove it at any time.
ALTER TABLE documents ADD COLUMN {{missing}} keep_until BIGINT NOT NULL DEFAULT 0;

-- Renewals. origin is 'owner' or 'policy'. good_until is when the last archive time stamp ends, 0 before the first renewal.
-- renew_at is when the next one is due, due_at when it is tried: later after a failure and after a claim, otherwise
-- not later than keep_until, when the row goes. attempts are those since the last success. refused says that the last failure cannot pass by itself.
CREATE TABLE IF NOT EXISTS retained (
	document      TEXT    NOT NULL PRIMARY KEY REFERENCES documents (id) ON DELETE CASCADE,
	user_id       TEXT    NOT NULL REFERENCES users (id) ON DELETE CASCADE,
	origin        TEXT    NOT NULL,
	good_until    BIGINT  NOT NULL,
	renewed_at    BIGINT  NOT NULL,
	renew_at      BIGINT  NOT NULL,
	due_at        BIGINT  NOT NULL,
	attempts      BIGINT  NOT NULL,
	refused       BOOLEAN NOT NULL,
	failure       TEXT    NOT NULL,
	lease         TEXT    NOT NULL,
	leased_until  BIGINT  NOT NULL
);
CREATE INDEX {{concurrently}} retained_due ON retained (due_at);
CREATE INDEX {{concurrently}} retained_renew ON retained (renew_at);
CREATE INDEX {{concurrently}} retained_by_user ON retained (user_id, renew_at);

-- A renewal gives a document the object of another record, so the key of an object is found by the name of the object.
-- Few rows have a key: only after a master key was replaced.
CREATE INDEX {{concurrently}} documents_by_object ON documents (blob) WHERE length(sealed_key) > 0;
