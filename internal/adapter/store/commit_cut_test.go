// SPDX-License-Identifier: Apache-2.0

package store_test

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"testing"

	"tamga/internal/adapter/store"
	"tamga/internal/adapter/store/storetest"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/lock"
	"tamga/internal/domain/user"
)

// TestCommitCut breaks the connection at every byte of a commit and of its answer, and in the
// middle of statements that commit by themselves. A unit is kept at most once, a success is kept, and an error that says that nothing was kept is true.
func TestCommitCut(t *testing.T) {
	url := storetest.PostgreSQL(t).Migrated(t)
	storetest.Open(t, url)
	admin, err := sql.Open("pgx", url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { admin.Close() })
	const commit = "commit\x00"
	for name, c := range map[string]struct {
		text string // that a client sends to commit
		step int    // bytes between two cuts
		unit func(db *store.DB, ctx context.Context, fn func(ctx context.Context) error) error
	}{
		"transaction": {commit, 1, func(db *store.DB, ctx context.Context, fn func(ctx context.Context) error) error {
			return db.Atomic(ctx, fn)
		}},
		"unit": {commit, 1, func(db *store.DB, ctx context.Context, fn func(ctx context.Context) error) error {
			return db.Unit(ctx, fn)
		}},
		"people": {commit, 1, func(db *store.DB, ctx context.Context, fn func(ctx context.Context) error) error {
			return store.Users{DB: db}.Atomic(ctx, lock.User("a"), fn)
		}},
		// Such a statement commits by itself. Its message has the name of the group, and is long.
		"statement": {"statement,", 9, func(db *store.DB, ctx context.Context, fn func(ctx context.Context) error) error {
			return fn(ctx)
		}},
	} {
		for _, answer := range []bool{false, true} {
			side := "sent"
			if answer {
				side = "answered"
			}
			t.Run(name+"/"+side, func(t *testing.T) {
				t.Parallel()
				proxy := storetest.NewProxy(t, url)
				db := openLimited(t, proxy.URL, store.Options{Connections: 1})
				users := store.Users{DB: db}
				// The statement is prepared, as it is after the first use of a connection.
				prepare := func() {
					for {
						err := users.AddGroup(patience(t), user.Group{Name: "prepared"})
						if err == nil || err == user.ErrDuplicate {
							return
						}
						// The connection of the cut before may end while this is sent.
						if _, is := fault.AsOutage(err); !is || t.Context().Err() != nil {
							t.Fatal(err)
						}
					}
				}
				unknown := 0
				for at := 0; ; at += c.step {
					prepare()
					prefix, runs := fmt.Sprintf("%s,%s,%d,", name, side, at), 0
					cut := &storetest.Cut{Text: c.text, Answer: answer, At: at}
					proxy.Cut(cut)
					err := c.unit(db, patience(t), func(ctx context.Context) error {
						runs++
						return users.AddGroup(ctx, user.Group{Name: fmt.Sprint(prefix, runs)})
					})
					if !cut.Met() {
						t.Fatalf("byte %d: nothing was committed: %v", at, err)
					}
					kept := keptGroups(t, admin, prefix)
					switch o, is := fault.AsOutage(err); {
					case kept > 1:
						t.Errorf("byte %d: kept %d times by %d runs: %v", at, kept, runs, err)
					case err == nil && kept != 1:
						t.Errorf("byte %d: a success was not kept", at)
					case is && strings.Contains(o.Message, "may or may not"):
						unknown++
					case err != nil && kept > 0:
						t.Errorf("byte %d: kept, but the error says that it was not: %v", at, err)
					}
					if !cut.Over() {
						if err != nil {
							t.Errorf("no cut: %v", err)
						}
						break // the message is shorter
					}
				}
				if unknown == 0 {
					t.Error("no outcome was unknown: the test shows nothing")
				}
			})
		}
	}
}

// keptGroups returns how many groups have names that begin with a text, once every unit that adds
// groups has ended.
func keptGroups(t *testing.T, admin *sql.DB, prefix string) (n int) {
	t.Helper()
	tx, err := admin.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback()
	if _, err := tx.ExecContext(t.Context(), "LOCK TABLE user_groups IN SHARE MODE"); err != nil {
		t.Fatal(err)
	}
	if err := tx.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM user_groups WHERE starts_with(name, $1)", prefix).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}
