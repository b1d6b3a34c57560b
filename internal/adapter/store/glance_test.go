package store

import (
	"context"
	"errors"
	"testing"
	"time"

	"tamga/internal/domain/audit"
	"tamga/internal/domain/user"
)

// glancing opens a database with the token "t" of the user "u".
func glancing(t *testing.T) *DB {
	t.Helper()
	db := openTest(t)
	for _, statement := range []string{
		"INSERT INTO user_groups (name, title, created_at) VALUES ('g', '', 1)",
		`INSERT INTO users (id, login, login_folded, display_name, group_name, operator, locked, lock_at, unapproved, created_at)
			VALUES ('u', 'u', 'u', 'u', 'g', FALSE, FALSE, 0, FALSE, 1)`,
		`INSERT INTO access_tokens (id, user_id, client_id, method, created_at, expires_at, revoked, actor_id, grant_id, scope)
			VALUES ('t', 'u', 'c', 'm', 1, 2, FALSE, '', '', '')`,
	} {
		if _, err := db.exec(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	return db
}

// A glance serves one request for a moment: not another, not a transaction, and no
// longer once the request changed something. The journal is not a change.
func TestGlanceEnds(t *testing.T) {
	db := glancing(t)
	look := func() (context.Context, *glance) {
		ctx := db.Glancing(t.Context())
		if _, err := (Tokens{db}).BearerByToken(ctx, "t", time.Now()); err != nil {
			t.Fatal(err)
		}
		return ctx, db.glance(ctx)
	}
	if ctx, g := look(); g.seen == nil {
		t.Error("nothing was seen")
	} else if other := db.Glancing(ctx); db.sight(other) != nil {
		t.Error("another request has it, too")
	}
	for name, end := range map[string]func(context.Context) error{
		"statement": func(ctx context.Context) error { return Users{db}.SetDisplayName(ctx, "u", "another") },
		"unit": func(ctx context.Context) error {
			return db.Atomic(ctx, func(context.Context) error { return nil })
		},
		"shared unit": func(ctx context.Context) error {
			return db.committer.Do(ctx, func(context.Context) error { return errors.New("refused") })
		},
		"returning": func(ctx context.Context) error {
			_, _, err := returning(ctx, db, scalar[string], "UPDATE users SET login = login WHERE id = 'u' RETURNING login")
			return err
		},
		"unknown token": func(ctx context.Context) error {
			_, err := Tokens{db}.BearerByToken(ctx, "unknown", time.Now())
			return err
		},
	} {
		ctx, g := look()
		if _ = end(ctx); g.seen != nil {
			t.Errorf("%s: what was seen before is still there", name)
		}
	}
	ctx, g := look()
	if err := (Audit{db}).Record(ctx, audit.Entry{}); err != nil || g.seen == nil {
		t.Errorf("an entry of the journal ended it (%v)", err)
	}
	if err := db.Atomic(t.Context(), func(inside context.Context) error {
		inside = context.WithValue(inside, glanceKey{db}, g)
		if db.sight(inside) != nil {
			t.Error("a transaction saw something from before it")
		}
		return Users{db}.AddGroup(inside, user.Group{Name: "h"})
	}); err != nil {
		t.Fatal(err)
	}
	g.at = time.Now().Add(-glanceLife)
	if db.sight(ctx) != nil {
		t.Error("it serves longer than it may")
	}
}

func TestReadStandings(t *testing.T) {
	list, err := readStandings("root 2 1000\ngost 1 0")
	if err != nil || len(list) != 2 || list[0].Name != "gost" || !list[0].CRLAt.IsZero() || list[1].CRLNumber != 2 || list[1].CRLAt.UnixMilli() != 1000 {
		t.Errorf("%v, %v", list, err)
	}
	for _, text := range []string{"gost", "gost 1", "gost x 1", "gost 1 x", "gost 1 1 1"} {
		if list, err := readStandings(text); err == nil {
			t.Errorf("%q: %v, want an error", text, list)
		}
	}
}
