// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"tamga/internal/domain/directory"
	"tamga/internal/domain/lease"
	"tamga/internal/domain/lock"
)

// Directories implements directory.Store.
type Directories struct{ Users }

var (
	_ directory.Store      = Directories{}
	_ directory.Remembered = Directories{}
)

const (
	linkColumns = "d.user_id, u.login, u.group_name, d.entry, d.dn, d.digest, d.missing_since, d.barred OR d.locked, d.locked, FALSE"
	linkTables  = " FROM directory_users d JOIN users u ON u.id = d.user_id"
)

func scanLink(r row) (l directory.Link, err error) {
	err = r.Scan(&l.UserID, &l.Login, &l.Group, &l.Entry, &l.DN, &l.Digest, (*timeField)(&l.MissingSince), &l.Barred, &l.Locked, &l.Unlinked)
	return l, err
}

// Links implements directory.Store.
func (s Directories) Links(ctx context.Context, name string, entries []string) ([]directory.Link, error) {
	if len(entries) == 0 {
		return nil, nil
	}
	args, isOne := among([]any{name}, entries)
	return all(ctx, s.DB, scanLink, "SELECT "+linkColumns+linkTables+" WHERE d.directory = $1 AND d.entry "+isOne+
		" UNION ALL SELECT n.user_id, n.login, '', n.entry, '', '', 0, FALSE, FALSE, TRUE FROM directory_unlinked n WHERE n.directory = $1 AND n.entry "+isOne, args...)
}

// LinksAfter implements directory.Store.
func (s Directories) LinksAfter(ctx context.Context, name, after string, limit int) ([]directory.Link, error) {
	return all(ctx, s.DB, scanLink, "SELECT "+linkColumns+linkTables+" WHERE d.directory = $1 AND d.entry > $2 ORDER BY d.entry LIMIT $3", name, after, limit)
}

// unlessLinked is the condition that neither the entry $3 of the directory $2 nor the user $1 is linked otherwise, or was unlinked.
const unlessLinked = ` WHERE NOT EXISTS (SELECT 1 FROM directory_users x WHERE x.directory = $2 AND x.entry = $3 AND x.user_id <> $1)
	AND NOT EXISTS (SELECT 1 FROM directory_unlinked n WHERE n.user_id = $1) AND NOT EXISTS (SELECT 1 FROM directory_unlinked n WHERE n.directory = $2 AND n.entry = $3)`

// PutLink implements directory.Store.
func (s Directories) PutLink(ctx context.Context, name string, l directory.Link) error {
	n, err := s.exec(ctx, `INSERT INTO directory_users (user_id, directory, entry, dn, digest, missing_since, barred, locked)
		SELECT CAST($1 AS TEXT), CAST($2 AS TEXT), CAST($3 AS TEXT), CAST($4 AS TEXT), CAST($5 AS TEXT), CAST($6 AS BIGINT), CAST($7 AS BOOLEAN), CAST($8 AS BOOLEAN)`+unlessLinked+`
		ON CONFLICT (user_id) DO UPDATE SET dn = excluded.dn, digest = excluded.digest, missing_since = excluded.missing_since, barred = excluded.barred, locked = excluded.locked
		WHERE directory_users.directory = excluded.directory AND directory_users.entry = excluded.entry`,
		l.UserID, name, l.Entry, l.DN, l.Digest, millis(l.MissingSince), l.Barred, l.Locked)
	return linked(n, err)
}

// linked is the error of a statement that adds or changes one link.
func linked(n int64, err error) error {
	if err == nil && n == 0 {
		return directory.ErrLinked
	}
	return err
}

var addLinks = newInsertion(1, "directory_users", "user_id, directory, entry, dn, digest, missing_since, locked, barred", ifFree)

// AddLink implements directory.Store.
func (s Directories) AddLink(ctx context.Context, name string, l directory.Link) error {
	return linked(s.insert(ctx, addLinks, l.UserID, name, l.Entry, l.DN, l.Digest, millis(l.MissingSince), l.Locked, l.Barred))
}

// MarkMissing implements directory.Store.
func (s Directories) MarkMissing(ctx context.Context, name string, userIDs []string, since time.Time) error {
	args, isOne := among([]any{name, millis(since)}, userIDs)
	_, err := s.exec(ctx, "UPDATE directory_users SET missing_since = $2 WHERE directory = $1 AND missing_since = 0 AND user_id "+isOne, args...)
	return err
}

// Unlink implements directory.Store.
func (s Directories) Unlink(ctx context.Context, userID string, forget bool) (had bool, err error) {
	err = s.Atomic(ctx, lock.User(userID), func(ctx context.Context) error {
		if forget {
			n, err := s.exec(ctx, "DELETE FROM directory_unlinked WHERE user_id = $1", userID)
			if had = n > 0; err != nil || had {
				return err
			}
		} else if _, err := s.exec(ctx, `INSERT INTO directory_unlinked (user_id, directory, entry, login)
			SELECT d.user_id, d.directory, d.entry, u.login_folded FROM directory_users d JOIN users u ON u.id = d.user_id WHERE d.user_id = $1`, userID); err != nil {
			return err
		}
		n, err := s.exec(ctx, "DELETE FROM directory_users WHERE user_id = $1", userID)
		if had = n > 0; err != nil || !had {
			return err
		}
		_, err = s.exec(ctx, "DELETE FROM passwords WHERE user_id = $1", userID)
		return err
	})
	return had, err
}

// ForgetDeleted implements directory.Remembered.
func (s Directories) ForgetDeleted(ctx context.Context, id, login string) (bool, error) {
	n, err := s.exec(ctx, "DELETE FROM directory_unlinked WHERE (user_id = $1 OR login = $2) AND NOT EXISTS (SELECT 1 FROM users u WHERE u.id = directory_unlinked.user_id)", id, login)
	return n > 0, err
}

// LinkOf implements directory.Store.
func (s Directories) LinkOf(ctx context.Context, userID string) (name string, unlinked bool, err error) {
	type link struct {
		name     string
		unlinked bool
	}
	l, _, err := one(ctx, s.DB, func(r row) (l link, err error) {
		err = r.Scan(&l.name, &l.unlinked)
		return l, err
	}, "SELECT directory, FALSE FROM directory_users WHERE user_id = $1 UNION ALL SELECT directory, TRUE FROM directory_unlinked WHERE user_id = $1", userID)
	return l.name, l.unlinked, err
}

// ClaimSync implements directory.Store.
func (s Directories) ClaimSync(ctx context.Context, name string, l lease.Lease, now time.Time, force bool) (bool, error) {
	condition := "due_at <= $4"
	if force {
		condition = "due_at >= 0"
	}
	claim := func() (bool, error) {
		_, claimed, err := returning(ctx, s.DB, scalar[string], leasedSyncs.claimOne("", condition, "directory"), name, l.Token, millis(l.Until), millis(now))
		return claimed, err
	}
	if claimed, err := claim(); err != nil || claimed {
		return claimed, err
	}
	_, found, err := one(ctx, s.DB, scalar[int64], "SELECT due_at FROM directory_syncs WHERE directory = $1", name)
	if err != nil || found {
		return false, err
	}
	if _, err := s.exec(ctx, "INSERT INTO directory_syncs (directory, lease, leased_until, due_at, ended_at, result, error) VALUES ($1, '', 0, 0, 0, '', '') ON CONFLICT (directory) DO NOTHING", name); err != nil {
		return false, err
	}
	return claim()
}

// ExtendSync implements directory.Store.
func (s Directories) ExtendSync(ctx context.Context, name string, l lease.Lease) (bool, error) {
	return leasedSyncs.extend(ctx, s.DB, l.Token, l.Until, name)
}

// EndSync implements directory.Store.
func (s Directories) EndSync(ctx context.Context, token string, state directory.State) (bool, error) {
	result, err := json.Marshal(state.Result)
	if err != nil {
		return false, err
	}
	n, err := s.exec(ctx, leasedSyncs.finish("due_at = $3, ended_at = $4, result = $5, error = $6"),
		state.Directory, token, millis(state.DueAt), millis(state.EndedAt), string(result), brief(state.Error))
	return n == 1, err
}

// SyncState implements directory.Store.
func (s Directories) SyncState(ctx context.Context, name string) (state directory.State, err error) {
	state, found, err := one(ctx, s.DB, func(r row) (x directory.State, err error) {
		var result string
		if err = r.Scan(&x.Directory, (*timeField)(&x.EndedAt), (*timeField)(&x.DueAt), &result, &x.Error); err != nil || result == "" {
			return x, err
		}
		if err := json.Unmarshal([]byte(result), &x.Result); err != nil {
			return x, fmt.Errorf("store: the result of a synchronization: %w", err)
		}
		return x, nil
	}, "SELECT directory, ended_at, due_at, result, error FROM directory_syncs WHERE directory = $1", name)
	if err == nil && !found {
		state.Directory = name
	}
	return state, err
}
