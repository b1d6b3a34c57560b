// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"tamga/internal/domain/held"
	"tamga/internal/domain/lock"
)

// Held implements held.Store.
type Held struct{ *DB }

var _ held.Store = Held{}

// Atomic implements held.Store; see DB.locked.
func (s Held) Atomic(ctx context.Context, set lock.Set, fn func(ctx context.Context) error) error {
	return s.locked(ctx, set, fn)
}

const heldColumns = `id, operation, object, requester, login, group_names, state, approval, decided_by,
	created_at, not_before, expires_at, ended_at, delayed_from, confirmed_at, digest, sealed`

func scanHeldRequest(r row) (h held.Request, err error) {
	var groups string
	err = r.Scan(&h.ID, &h.Operation, &h.Object, &h.Requester, &h.Login, &groups, &h.State, &h.Approval, &h.DecidedBy,
		(*timeField)(&h.CreatedAt), (*timeField)(&h.NotBefore), (*timeField)(&h.ExpiresAt), (*timeField)(&h.EndedAt), (*timeField)(&h.DelayedFrom), (*timeField)(&h.ConfirmedAt), &h.Digest, &h.Sealed)
	if err == nil {
		err = json.Unmarshal([]byte(groups), &h.Groups)
	}
	return h, err
}

// AddHeld implements held.Store.
func (s Held) AddHeld(ctx context.Context, r *held.Request, most int) (bool, error) {
	groups, err := json.Marshal(r.Groups)
	if err != nil {
		return false, err
	}
	open, _, err := one(ctx, s.DB, scalar[int64], "SELECT COUNT(*) FROM held_requests WHERE requester = $1 AND ended_at = 0", r.Requester)
	if err != nil || open >= int64(most) {
		return false, err
	}
	n, err := s.exec(ctx, "INSERT INTO held_requests ("+heldColumns+`, leased_until)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, '', $9, $10, $11, 0, $12, 0, $13, $14, 0) ON CONFLICT DO NOTHING`,
		r.ID, r.Operation, r.Object, r.Requester, r.Login, string(groups), string(r.State), r.Approval,
		millis(r.CreatedAt), millis(r.NotBefore), millis(r.ExpiresAt), millis(r.DelayedFrom), r.Digest, r.Sealed)
	return n == 1, err
}

// Held implements held.Store.
func (s Held) Held(ctx context.Context, id string) (held.Request, bool, error) {
	return one(ctx, s.DB, scanHeldRequest, "SELECT "+heldColumns+" FROM held_requests WHERE id = $1", id)
}

// HeldCall implements held.Store.
func (s Held) HeldCall(ctx context.Context, requester string, digest []byte) (held.Request, bool, error) {
	return one(ctx, s.DB, scanHeldRequest, "SELECT "+heldColumns+" FROM held_requests WHERE requester = $1 AND digest = $2 AND ended_at = 0", requester, digest)
}

// OpenHeld implements held.Store.
func (s Held) OpenHeld(ctx context.Context, object, after string, limit int) ([]held.Request, error) {
	return all(ctx, s.DB, scanHeldRequest, "SELECT "+heldColumns+` FROM held_requests
		WHERE ended_at = 0 AND (CAST($1 AS TEXT) = '' OR object = $1)
			AND (CAST($2 AS TEXT) = '' OR (created_at, id) > (SELECT a.created_at, a.id FROM held_requests a WHERE a.id = $2))
		ORDER BY created_at, id LIMIT $3`, object, after, limit)
}

// OpenHeldFor implements held.Store.
func (s Held) OpenHeldFor(ctx context.Context, operatorID, after string, limit int, now time.Time) ([]held.Request, error) {
	few, err := s.reachesFew(ctx, operatorID)
	if err != nil {
		return nil, err
	}
	begin, where := "", onePerRow("SELECT 1 FROM users u WHERE u.id = held_requests.object AND "+reaches)
	if few {
		begin, where = people, "object IN (SELECT id FROM people)"
	}
	return all(ctx, s.DB, scanHeldRequest, begin+"SELECT "+heldColumns+` FROM held_requests
		WHERE ended_at = 0 AND (object = '' OR `+where+`)
			AND (CAST($3 AS TEXT) = '' OR (created_at, id) > (SELECT a.created_at, a.id FROM held_requests a WHERE a.id = $3))
		ORDER BY created_at, id LIMIT $4`, operatorID, millis(now), after, limit)
}

// MoveHeld implements held.Store.
func (s Held) MoveHeld(ctx context.Context, id string, m held.Move) (held.Request, bool, error) {
	if len(m.From) < 1 || len(m.From) > 2 {
		return held.Request{}, false, errors.New("store: a move of a held request: want one or two states that it leads from")
	}
	endedAt, liveAfter, dueBy := int64(0), int64(-1), int64(1)<<62
	if m.Final {
		endedAt = millis(m.At)
	}
	if m.Live {
		liveAfter = millis(m.At)
	}
	if m.Due {
		dueBy = millis(m.At)
	}
	return returning(ctx, s.DB, scanHeldRequest, `UPDATE held_requests SET state = $2, ended_at = $3, leased_until = $4,
			decided_by = CASE WHEN CAST($5 AS TEXT) = '' THEN decided_by ELSE CAST($5 AS TEXT) END
		WHERE id = $1 AND ended_at = 0 AND state IN ($6, $7) AND expires_at > $8 AND not_before <= $9
		RETURNING `+heldColumns,
		id, string(m.To), endedAt, millis(m.Lease), m.By, string(m.From[0]), string(m.From[len(m.From)-1]), liveAfter, dueBy)
}

// GrowHeld implements held.Store.
func (s Held) GrowHeld(ctx context.Context, old *held.Request, g held.Growth) (held.Request, bool, error) {
	return returning(ctx, s.DB, scanHeldRequest, `UPDATE held_requests SET approval = $2, not_before = $3, expires_at = $4, delayed_from = $5
		WHERE id = $1 AND ended_at = 0 AND state IN ('Waiting', 'Approved') AND approval = $6 AND not_before = $7
		RETURNING `+heldColumns, old.ID, g.Approval, millis(g.NotBefore), millis(g.ExpiresAt), millis(g.DelayedFrom), old.Approval, millis(old.NotBefore))
}

// EndDelay implements held.Store.
func (s Held) EndDelay(ctx context.Context, id string, now time.Time) (held.Request, bool, error) {
	return returning(ctx, s.DB, scanHeldRequest, `UPDATE held_requests SET not_before = $2, confirmed_at = $2
		WHERE id = $1 AND ended_at = 0 AND state IN ('Waiting', 'Approved') AND not_before > $2 AND expires_at > $2
		RETURNING `+heldColumns, id, millis(now))
}

// DueHeld implements held.Store.
func (s Held) DueHeld(ctx context.Context, now time.Time, limit int) ([]held.Request, error) {
	return all(ctx, s.DB, scanHeldRequest, "SELECT "+heldColumns+` FROM held_requests
		WHERE ended_at = 0 AND (state <> 'Running' AND expires_at <= $1 OR state = 'Running' AND leased_until <= $1)
		ORDER BY expires_at LIMIT $2`, millis(now), limit)
}

// SweepHeld implements held.Store.
func (s Held) SweepHeld(ctx context.Context, endedBefore time.Time) error {
	for n := int64(sweepPortion); n == sweepPortion; {
		var err error
		n, err = s.exec(ctx, `DELETE FROM held_requests WHERE id IN
			(SELECT id FROM held_requests WHERE ended_at <> 0 AND ended_at < $1 LIMIT $2`+s.skipLocked()+")", millis(endedBefore), sweepPortion)
		if err != nil {
			return err
		}
	}
	return nil
}
