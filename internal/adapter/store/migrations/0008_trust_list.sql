-- The list of accredited certification authorities, as it was verified. There is one, named 'accredited'.
CREATE TABLE trust_lists (
	name         TEXT   NOT NULL PRIMARY KEY,
	version      BIGINT NOT NULL,
	dated        BIGINT NOT NULL,
	imported_at  BIGINT NOT NULL,
	checked_at   BIGINT NOT NULL,
	content      {{bytes}} NOT NULL
);
