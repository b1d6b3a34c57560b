-- +goose Up

-- Browsers that are away at identity providers whose answers are posted (SAML). handle
-- is SHA-256 of what comes back with the browser, ticket is sealed for that browser,
-- returns_to is the client's address. ended: the answer was taken; the row stays until it
-- expires, so that nothing else is made of it.
CREATE TABLE external_visits (
	handle      {{bytes}} NOT NULL PRIMARY KEY,
	ticket      TEXT      NOT NULL,
	returns_to  TEXT      NOT NULL,
	ended       BOOLEAN   NOT NULL,
	expires_at  BIGINT    NOT NULL
);
CREATE INDEX external_visits_by_expiry ON external_visits (expires_at);
