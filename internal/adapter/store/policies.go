package store

import (
	"context"
	"database/sql"
	"encoding/json"

	"tamga/internal/domain/fault"
	"tamga/internal/domain/policy"
)

// Policies satisfies policy.Store.
type Policies struct{ *DB }

var _ policy.Store = Policies{}

// Atomic implements policy.Store; see inTurn.
func (s Policies) Atomic(ctx context.Context, fn func(ctx context.Context) error) error {
	return s.inTurn(ctx, fn)
}

// standing is what was set for a user and for their group.
type standing struct{ own, group *policy.Setting }

// scanStanding scans actions and notifiers of the user, then those of the group with
// what the group alone has.
func scanStanding(r row) (s standing, err error) {
	var own, group struct {
		actions   sql.NullInt64
		notifiers sql.NullString
		fixed     sql.NullBool
	}
	if err := r.Scan(&own.actions, &own.notifiers, &group.actions, &group.notifiers, &group.fixed); err != nil {
		return s, err
	}
	read := func(actions sql.NullInt64, notifiers string, fixed bool) (*policy.Setting, error) {
		if !actions.Valid {
			return nil, nil
		}
		p := &policy.Setting{Actions: policy.Action(actions.Int64), Fixed: fixed}
		if notifiers == "" {
			return p, nil
		}
		return p, json.Unmarshal([]byte(notifiers), &p.Notifiers)
	}
	if s.own, err = read(own.actions, own.notifiers.String, false); err != nil {
		return s, err
	}
	s.group, err = read(group.actions, group.notifiers.String, group.fixed.Bool)
	return s, err
}

// Access policies of users have a table of their own.
const (
	accessStanding = `SELECT p.denied, '', g.actions, g.notifiers, g.fixed FROM users u
		LEFT JOIN access_policies p ON p.user_id = u.id
		LEFT JOIN group_policies g ON g.group_name = u.group_name AND g.kind = 'access' WHERE u.id = $1`
	otherStanding = `SELECT p.actions, p.notifiers, g.actions, g.notifiers, g.fixed FROM users u
		LEFT JOIN user_policies p ON p.user_id = u.id AND p.kind = $2
		LEFT JOIN group_policies g ON g.group_name = u.group_name AND g.kind = $2 WHERE u.id = $1`
)

// Settings implements policy.Store.
func (s Policies) Settings(ctx context.Context, userID string, k policy.Kind) (own, group *policy.Setting, err error) {
	if seen := s.sight(ctx); seen != nil && seen.bearer.User.ID == userID {
		switch k {
		case policy.Access:
			return seen.access.own, seen.access.group, nil
		case policy.Operation:
			return seen.operation.own, seen.operation.group, nil
		}
	}
	query, args := accessStanding, []any{userID}
	if k != policy.Access {
		query, args = otherStanding, append(args, string(k))
	}
	have, _, err := one(ctx, s.DB, scanStanding, query, args...)
	return have.own, have.group, err
}

// SetOwn implements policy.Store.
func (s Policies) SetOwn(ctx context.Context, userID string, k policy.Kind, p *policy.Setting) error {
	var n int64
	var err error
	switch {
	case p == nil && k == policy.Access:
		_, err = s.exec(ctx, "DELETE FROM access_policies WHERE user_id = $1", userID)
		return err
	case p == nil:
		_, err = s.exec(ctx, "DELETE FROM user_policies WHERE user_id = $1 AND kind = $2", userID, string(k))
		return err
	case k == policy.Access:
		n, err = s.exec(ctx, `INSERT INTO access_policies (user_id, denied)
			SELECT id, CAST($2 AS BIGINT) FROM users WHERE id = $1
			ON CONFLICT (user_id) DO UPDATE SET denied = excluded.denied`, userID, int64(p.Actions))
	default:
		var notifiers string
		if notifiers, err = notifiersText(p); err != nil {
			return err
		}
		n, err = s.exec(ctx, `INSERT INTO user_policies (user_id, kind, actions, notifiers)
			SELECT id, CAST($2 AS TEXT), CAST($3 AS BIGINT), CAST($4 AS TEXT) FROM users WHERE id = $1
			ON CONFLICT (user_id, kind) DO UPDATE SET actions = excluded.actions, notifiers = excluded.notifiers`,
			userID, string(k), int64(p.Actions), notifiers)
	}
	if err == nil && n == 0 {
		return fault.New(fault.UserNotFound, "user not found")
	}
	return err
}

// notifiersText is how a list of notifiers is kept; none at all is "".
func notifiersText(p *policy.Setting) (string, error) {
	if p.Notifiers == nil {
		return "", nil
	}
	text, err := json.Marshal(p.Notifiers)
	return string(text), err
}

// GroupSetting implements policy.Store.
func (s Policies) GroupSetting(ctx context.Context, group string, k policy.Kind) (*policy.Setting, error) {
	have, _, err := one(ctx, s.DB, scanStanding,
		"SELECT NULL, NULL, actions, notifiers, fixed FROM group_policies WHERE group_name = $1 AND kind = $2", group, string(k))
	return have.group, err
}

// SetGroup implements policy.Store.
func (s Policies) SetGroup(ctx context.Context, group string, k policy.Kind, p *policy.Setting) error {
	return s.Atomic(ctx, func(ctx context.Context) error {
		_, found, err := one(ctx, s.DB, scalar[string], "SELECT name FROM user_groups WHERE name = $1", group)
		switch {
		case err != nil:
			return err
		case !found:
			return fault.New(fault.NotFound, "group: unknown, want the name of an existing group")
		case p == nil:
			_, err = s.exec(ctx, "DELETE FROM group_policies WHERE group_name = $1 AND kind = $2", group, string(k))
			return err
		}
		notifiers, err := notifiersText(p)
		if err != nil {
			return err
		}
		_, err = s.exec(ctx, `INSERT INTO group_policies (group_name, kind, actions, notifiers, fixed) VALUES ($1, $2, $3, $4, $5)
			ON CONFLICT (group_name, kind) DO UPDATE SET actions = excluded.actions, notifiers = excluded.notifiers, fixed = excluded.fixed`,
			group, string(k), int64(p.Actions), notifiers, p.Fixed)
		return err
	})
}
