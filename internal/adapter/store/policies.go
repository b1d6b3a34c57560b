// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"database/sql"
	"encoding/json"

	"tamga/internal/domain/fault"
	"tamga/internal/domain/lock"
	"tamga/internal/domain/policy"
)

// Policies implements policy.Store.
type Policies struct{ *DB }

var _ policy.Store = Policies{}

// Atomic implements policy.Store; see DB.locked.
func (s Policies) Atomic(ctx context.Context, set lock.Set, fn func(ctx context.Context) error) error {
	return s.locked(ctx, set, fn)
}

// settingsOf returns the columns of the policy of a kind as it is set for the user u and
// for the user's group, in the order of settingsRow, and the joins they need. Access
// policies of users have their own table.
func settingsOf(k policy.Kind) (columns, joins string) {
	own, group := "own_"+string(k), "group_"+string(k)
	columns, joins = own+".denied, ''", " LEFT JOIN access_policies "+own+" ON "+own+".user_id = u.id"
	if k != policy.Access {
		columns = own + ".actions, " + own + ".notifiers"
		joins = " LEFT JOIN user_policies " + own + " ON " + own + ".user_id = u.id AND " + own + ".kind = '" + string(k) + "'"
	}
	columns += ", " + group + ".actions, " + group + ".notifiers, " + group + ".fixed"
	joins += " LEFT JOIN group_policies " + group + " ON " + group + ".group_name = u.group_name AND " + group + ".kind = '" + string(k) + "'"
	return columns, joins
}

// settingsQueries select the policy of a kind by the user.
var settingsQueries = func() map[policy.Kind]string {
	queries := map[policy.Kind]string{}
	for _, k := range policy.Kinds() {
		columns, joins := settingsOf(k)
		queries[k] = "SELECT " + columns + " FROM users u" + joins + " WHERE u.id = $1"
	}
	return queries
}()

// settingsRow holds the columns of settingsOf: those of the user, then those of the group
// and those that only the group has.
type settingsRow struct {
	own, group struct {
		actions   sql.NullInt64
		notifiers sql.NullString
	}
	fixed sql.NullBool
}

func (r *settingsRow) fields() []any {
	return []any{&r.own.actions, &r.own.notifiers, &r.group.actions, &r.group.notifiers, &r.fixed}
}

// set converts the row.
func (r *settingsRow) set() (set policy.Set, err error) {
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
	if set.Own, err = read(r.own.actions, r.own.notifiers.String, false); err != nil {
		return set, err
	}
	set.Group, err = read(r.group.actions, r.group.notifiers.String, r.fixed.Bool)
	return set, err
}

func scanSettings(r row) (policy.Set, error) {
	var columns settingsRow
	if err := r.Scan(columns.fields()...); err != nil {
		return policy.Set{}, err
	}
	return columns.set()
}

// Settings implements policy.Store.
func (s Policies) Settings(ctx context.Context, userID string, k policy.Kind) (own, group *policy.Setting, err error) {
	have, _, err := one(ctx, s.DB, scanSettings, settingsQueries[k], userID)
	return have.Own, have.Group, err
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

// notifiersText returns the stored form of a list of notifiers. No list is "".
func notifiersText(p *policy.Setting) (string, error) {
	if p.Notifiers == nil {
		return "", nil
	}
	text, err := json.Marshal(p.Notifiers)
	return string(text), err
}

// GroupSetting implements policy.Store.
func (s Policies) GroupSetting(ctx context.Context, group string, k policy.Kind) (*policy.Setting, error) {
	have, _, err := one(ctx, s.DB, scanSettings,
		"SELECT NULL, NULL, actions, notifiers, fixed FROM group_policies WHERE group_name = $1 AND kind = $2", group, string(k))
	return have.Group, err
}

// GroupKinds implements policy.Store.
func (s Policies) GroupKinds(ctx context.Context, groups []string) (map[string][]policy.Kind, error) {
	if len(groups) == 0 {
		return nil, nil
	}
	names, isOne := among(nil, groups)
	type setting struct{ group, kind string }
	list, err := allUnprepared(ctx, s.DB, func(r row) (v setting, err error) {
		err = r.Scan(&v.group, &v.kind)
		return v, err
	}, "SELECT group_name, kind FROM group_policies WHERE group_name "+isOne, names...)
	if err != nil {
		return nil, err
	}
	kinds := map[string][]policy.Kind{}
	for _, k := range policy.Kinds() {
		for _, v := range list {
			if v.kind == string(k) {
				kinds[v.group] = append(kinds[v.group], k)
			}
		}
	}
	return kinds, nil
}

// SetGroup implements policy.Store.
func (s Policies) SetGroup(ctx context.Context, group string, k policy.Kind, p *policy.Setting) error {
	return s.Atomic(ctx, lock.Set{}, func(ctx context.Context) error {
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
