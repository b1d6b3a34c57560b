-- +goose Up

-- Stored documents, and uploads on their way to become one. state is 0 for an upload,
-- which is its uploader's until leased_until, 1 for a document, 2 for what has ended:
-- its bytes are being removed, and then its row goes. expires_at 0 is never. A row is
-- there before the first of its octets is anywhere and until the last one is gone.
CREATE TABLE documents (
	id            TEXT      NOT NULL PRIMARY KEY,
	user_id       TEXT      NOT NULL,
	state         BIGINT    NOT NULL,
	leased_until  BIGINT    NOT NULL,
	bytes         TEXT      NOT NULL,
	octets        BIGINT    NOT NULL,
	name          TEXT      NOT NULL,
	type          TEXT      NOT NULL,
	parent        TEXT      NOT NULL,
	linked        TEXT      NOT NULL,
	extra         TEXT      NOT NULL,
	size          BIGINT    NOT NULL,
	hash          {{bytes}} NOT NULL,
	hash_name     TEXT      NOT NULL,
	uploaded_at   BIGINT    NOT NULL,
	accessed_at   BIGINT    NOT NULL,
	expires_at    BIGINT    NOT NULL
);
CREATE INDEX documents_by_user ON documents (user_id, id);
CREATE INDEX documents_by_hash ON documents (user_id, hash);
-- What a sweep looks for: few rows at any time.
CREATE INDEX documents_unfinished ON documents (leased_until) WHERE state = 0;
CREATE INDEX documents_ended ON documents (id) WHERE state = 2;
CREATE INDEX documents_by_expiry ON documents (expires_at) WHERE state = 1 AND expires_at > 0;

-- How much each user has, and in all under the user '': counted along with every
-- change.
CREATE TABLE document_usage (
	user_id  TEXT   NOT NULL PRIMARY KEY,
	objects  BIGINT NOT NULL,
	octets   BIGINT NOT NULL
);
