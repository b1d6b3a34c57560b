-- +goose Up

-- Wrong passwords of trusted callers, counted as login_failures and user_failures do for untrusted callers.
CREATE TABLE trusted_login_failures (
	login         {{bytes}}  NOT NULL PRIMARY KEY,
	failures      BIGINT NOT NULL,
	window_from   BIGINT NOT NULL,
	locked_until  BIGINT NOT NULL
);
CREATE INDEX trusted_login_failures_by_window ON trusted_login_failures (window_from);

CREATE TABLE trusted_user_failures (
	user_id       TEXT   NOT NULL PRIMARY KEY REFERENCES users (id) ON DELETE CASCADE,
	failures      BIGINT NOT NULL,
	window_from   BIGINT NOT NULL,
	locked_until  BIGINT NOT NULL
) {{clustered}};
CREATE INDEX trusted_user_failures_by_window ON trusted_user_failures (window_from);
