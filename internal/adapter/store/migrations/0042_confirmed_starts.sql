-- +goose NO TRANSACTION
-- +goose Up

-- When an operation that carries itself out is due for its next attempt, once it is
-- confirmed. 0: a request carries it out.
ALTER TABLE confirmations ADD COLUMN {{missing}} start_at BIGINT NOT NULL DEFAULT 0;
CREATE INDEX {{concurrently}} confirmations_start ON confirmations (start_at) WHERE start_at <> 0 AND state = 'Confirmed';
