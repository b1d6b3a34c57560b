-- +goose Up

-- Messages on their way. id gives the order of ordering, lane names the recipient:
-- of one lane a message waits for those before it. sealed is empty once the text is
-- of no use. Rows stay when their user is deleted: what was promised is delivered,
-- and administrators can look back.
CREATE TABLE outbox (
	id            {{identity}},
	message_id    TEXT      NOT NULL UNIQUE,
	channel       TEXT      NOT NULL,
	lane          TEXT COLLATE {{binary}} NOT NULL,
	recipient     TEXT      NOT NULL,
	subject       TEXT      NOT NULL,
	user_id       TEXT      NOT NULL,
	actor         TEXT      NOT NULL,
	sealed        {{bytes}} NOT NULL,
	state         TEXT      NOT NULL,
	attempts      BIGINT    NOT NULL,
	error         TEXT      NOT NULL,
	lease         TEXT      NOT NULL,
	leased_until  BIGINT    NOT NULL,
	created_at    BIGINT    NOT NULL,
	due_at        BIGINT    NOT NULL,
	expires_at    BIGINT    NOT NULL,
	done_at       BIGINT    NOT NULL
);
CREATE INDEX outbox_lane ON outbox (lane, id) WHERE state = 'pending';
CREATE INDEX outbox_due ON outbox (channel, id) WHERE state = 'pending';
CREATE INDEX outbox_by_user ON outbox (user_id, id);
CREATE INDEX outbox_by_state ON outbox (state, id);
CREATE INDEX outbox_done ON outbox (done_at) WHERE done_at <> 0;

-- How many messages were sent for a recipient, a caller, a range of numbers, since
-- window_from.
CREATE TABLE message_budgets (
	name         TEXT COLLATE {{binary}} NOT NULL PRIMARY KEY,
	messages     BIGINT NOT NULL,
	window_from  BIGINT NOT NULL
);
CREATE INDEX message_budgets_by_window ON message_budgets (window_from);

-- What a server started with --dev shows instead of sending it.
CREATE TABLE captured_messages (
	id          {{identity}},
	message_id  TEXT      NOT NULL UNIQUE,
	at          BIGINT    NOT NULL,
	channel     TEXT      NOT NULL,
	recipient   TEXT      NOT NULL,
	sealed      {{bytes}} NOT NULL
);
