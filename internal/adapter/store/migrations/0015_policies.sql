-- +goose Up

-- What is set for users. Their access policies stay in access_policies, where the
-- releases before this one look for them. actions are bits; notifiers is JSON, a list
-- of notifiers by type of event.
CREATE TABLE user_policies (
	user_id    TEXT   NOT NULL REFERENCES users (id) ON DELETE CASCADE,
	kind       TEXT   NOT NULL,
	actions    BIGINT NOT NULL,
	notifiers  TEXT   NOT NULL,
	PRIMARY KEY (user_id, kind)
) {{clustered}};

-- What is set for the users of a group who have nothing of their own. fixed keeps
-- operators from giving them something of their own.
CREATE TABLE group_policies (
	group_name  TEXT COLLATE {{binary}} NOT NULL REFERENCES user_groups (name) ON DELETE CASCADE,
	kind        TEXT    NOT NULL,
	actions     BIGINT  NOT NULL,
	notifiers   TEXT    NOT NULL,
	fixed       BOOLEAN NOT NULL,
	PRIMARY KEY (group_name, kind)
) {{clustered}};

-- Systems that listen to events. events is JSON, a list of types, [] for all of them.
-- sealed is the secret their messages are signed with.
CREATE TABLE webhooks (
	id          TEXT      NOT NULL PRIMARY KEY,
	url         TEXT      NOT NULL,
	events      TEXT      NOT NULL,
	sealed      {{bytes}} NOT NULL,
	created_at  BIGINT    NOT NULL
);
