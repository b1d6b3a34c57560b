package store

import (
	"context"

	"tamga/internal/domain/fault"
	"tamga/internal/domain/policy"
)

// Policies satisfies policy.Store.
type Policies struct{ *DB }

var _ policy.Store = Policies{}

// DeniedActions implements policy.Store.
func (s Policies) DeniedActions(ctx context.Context, userID string) (policy.Action, error) {
	denied, _, err := one(ctx, s.DB, scalar[int64], "SELECT denied FROM access_policies WHERE user_id = $1", userID)
	return policy.Action(denied), err
}

// SetDeniedActions implements policy.Store.
func (s Policies) SetDeniedActions(ctx context.Context, userID string, denied policy.Action) error {
	n, err := s.exec(ctx, `INSERT INTO access_policies (user_id, denied)
		SELECT id, CAST($2 AS BIGINT) FROM users WHERE id = $1
		ON CONFLICT (user_id) DO UPDATE SET denied = excluded.denied`, userID, int64(denied))
	if err == nil && n == 0 {
		return fault.New(fault.UserNotFound, "user not found")
	}
	return err
}
