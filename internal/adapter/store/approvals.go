// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"tamga/internal/domain/approval"
	"tamga/internal/domain/lock"
)

// Approvals implements approval.Store.
type Approvals struct{ *DB }

var _ approval.Store = Approvals{}

// Atomic implements approval.Store; see DB.locked.
func (s Approvals) Atomic(ctx context.Context, set lock.Set, fn func(ctx context.Context) error) error {
	return s.locked(ctx, set, fn)
}

const approvalColumns = `id, operation, object, requester, login, group_names, state, approval, decided_by,
	created_at, not_before, expires_at, ended_at, delayed_from, confirmed_at, digest, sealed`

func scanApproval(r row) (h approval.Request, err error) {
	var groups string
	err = r.Scan(&h.ID, &h.Operation, &h.Object, &h.Requester, &h.Login, &groups, &h.State, &h.Approval, &h.DecidedBy,
		(*timeField)(&h.CreatedAt), (*timeField)(&h.NotBefore), (*timeField)(&h.ExpiresAt), (*timeField)(&h.EndedAt), (*timeField)(&h.DelayedFrom), (*timeField)(&h.ConfirmedAt), &h.Digest, &h.Sealed)
	if err == nil {
		err = json.Unmarshal([]byte(groups), &h.Groups)
	}
	return h, err
}

// AddApproval implements approval.Store.
func (s Approvals) AddApproval(ctx context.Context, r *approval.Request, most int) (bool, error) {
	groups, err := json.Marshal(r.Groups)
	if err != nil {
		return false, err
	}
	open, _, err := one(ctx, s.DB, scalar[int64], "SELECT COUNT(*) FROM approval_requests WHERE requester = $1 AND ended_at = 0", r.Requester)
	if err != nil || open >= int64(most) {
		return false, err
	}
	n, err := s.exec(ctx, "INSERT INTO approval_requests ("+approvalColumns+`, leased_until)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, '', $9, $10, $11, 0, $12, 0, $13, $14, 0) ON CONFLICT DO NOTHING`,
		r.ID, r.Operation, r.Object, r.Requester, r.Login, string(groups), string(r.State), r.Approval,
		millis(r.CreatedAt), millis(r.NotBefore), millis(r.ExpiresAt), millis(r.DelayedFrom), r.Digest, r.Sealed)
	return n == 1, err
}

// Approvals implements approval.Store.
func (s Approvals) Approval(ctx context.Context, id string) (approval.Request, bool, error) {
	return one(ctx, s.DB, scanApproval, "SELECT "+approvalColumns+" FROM approval_requests WHERE id = $1", id)
}

// ApprovalOf implements approval.Store.
func (s Approvals) ApprovalOf(ctx context.Context, requester string, digest []byte) (approval.Request, bool, error) {
	return one(ctx, s.DB, scanApproval, "SELECT "+approvalColumns+" FROM approval_requests WHERE requester = $1 AND digest = $2 AND ended_at = 0", requester, digest)
}

// OpenApprovals implements approval.Store.
func (s Approvals) OpenApprovals(ctx context.Context, object, after string, limit int) ([]approval.Request, error) {
	return all(ctx, s.DB, scanApproval, "SELECT "+approvalColumns+` FROM approval_requests
		WHERE ended_at = 0 AND (CAST($1 AS TEXT) = '' OR object = $1)
			AND (CAST($2 AS TEXT) = '' OR (created_at, id) > (SELECT a.created_at, a.id FROM approval_requests a WHERE a.id = $2))
		ORDER BY created_at, id LIMIT $3`, object, after, limit)
}

// OpenApprovalsFor implements approval.Store.
func (s Approvals) OpenApprovalsFor(ctx context.Context, operatorID, after string, limit int, now time.Time) ([]approval.Request, error) {
	few, err := s.reachesFew(ctx, operatorID)
	if err != nil {
		return nil, err
	}
	begin, where := "", onePerRow("SELECT 1 FROM users u WHERE u.id = approval_requests.object AND "+reaches)
	if few {
		begin, where = people, "object IN (SELECT id FROM people)"
	}
	return all(ctx, s.DB, scanApproval, begin+"SELECT "+approvalColumns+` FROM approval_requests
		WHERE ended_at = 0 AND (object = '' OR `+where+`)
			AND (CAST($3 AS TEXT) = '' OR (created_at, id) > (SELECT a.created_at, a.id FROM approval_requests a WHERE a.id = $3))
		ORDER BY created_at, id LIMIT $4`, operatorID, millis(now), after, limit)
}

// MoveApproval implements approval.Store.
func (s Approvals) MoveApproval(ctx context.Context, id string, m approval.Move) (approval.Request, bool, error) {
	if len(m.From) < 1 || len(m.From) > 2 {
		return approval.Request{}, false, errors.New("store: a move of a request: want one or two states that it leads from")
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
	return returning(ctx, s.DB, scanApproval, `UPDATE approval_requests SET state = $2, ended_at = $3, leased_until = $4,
			decided_by = CASE WHEN CAST($5 AS TEXT) = '' THEN decided_by ELSE CAST($5 AS TEXT) END
		WHERE id = $1 AND ended_at = 0 AND state IN ($6, $7) AND expires_at > $8 AND not_before <= $9
		RETURNING `+approvalColumns,
		id, string(m.To), endedAt, millis(m.Lease), m.By, string(m.From[0]), string(m.From[len(m.From)-1]), liveAfter, dueBy)
}

// GrowApproval implements approval.Store.
func (s Approvals) GrowApproval(ctx context.Context, old *approval.Request, g approval.Growth) (approval.Request, bool, error) {
	return returning(ctx, s.DB, scanApproval, `UPDATE approval_requests SET approval = $2, not_before = $3, expires_at = $4, delayed_from = $5
		WHERE id = $1 AND ended_at = 0 AND state IN ('Waiting', 'Approved') AND approval = $6 AND not_before = $7
		RETURNING `+approvalColumns, old.ID, g.Approval, millis(g.NotBefore), millis(g.ExpiresAt), millis(g.DelayedFrom), old.Approval, millis(old.NotBefore))
}

// EndDelay implements approval.Store.
func (s Approvals) EndDelay(ctx context.Context, id string, now time.Time) (approval.Request, bool, error) {
	return returning(ctx, s.DB, scanApproval, `UPDATE approval_requests SET not_before = $2, confirmed_at = $2
		WHERE id = $1 AND ended_at = 0 AND state IN ('Waiting', 'Approved') AND not_before > $2 AND expires_at > $2
		RETURNING `+approvalColumns, id, millis(now))
}

// DueApprovals implements approval.Store.
func (s Approvals) DueApprovals(ctx context.Context, now time.Time, limit int) ([]approval.Request, error) {
	return all(ctx, s.DB, scanApproval, "SELECT "+approvalColumns+` FROM approval_requests
		WHERE ended_at = 0 AND (state <> 'Running' AND expires_at <= $1 OR state = 'Running' AND leased_until <= $1)
		ORDER BY expires_at LIMIT $2`, millis(now), limit)
}

// SweepApprovals implements approval.Store.
func (s Approvals) SweepApprovals(ctx context.Context, endedBefore time.Time) error {
	for n := int64(sweepPortion); n == sweepPortion; {
		var err error
		n, err = s.exec(ctx, `DELETE FROM approval_requests WHERE id IN
			(SELECT id FROM approval_requests WHERE ended_at <> 0 AND ended_at < $1 LIMIT $2`+s.skipLocked()+")", millis(endedBefore), sweepPortion)
		if err != nil {
			return err
		}
	}
	return nil
}
