// SPDX-License-Identifier: Apache-2.0

package store_test

import (
	"context"
	"crypto/rand"
	"database/sql"
	"fmt"
	randv2 "math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"tamga/internal/adapter/store"
	"tamga/internal/adapter/store/storetest"
	"tamga/internal/domain/audit"
	"tamga/internal/domain/contact"
	"tamga/internal/domain/notify"
	"tamga/internal/domain/session"
	"tamga/internal/domain/user"
)

// The installation of the benchmark: a million users in 5,000 groups, each with two
// phones and three e-mail addresses, a name and a method. With -short it is a hundredth
// of that.
const (
	crowdUsers  = 1_000_000
	crowdGroups = 5_000
)

// BenchmarkCrowd runs the queries of operators on a large installation, from two callers
// at a time, and reports the 50th and the 99th percentile, and the processor time of this
// process for each call, which other work on the machine hardly changes. On PostgreSQL most of
// the work is the server's. Then operators register, confirm, lock and delete users with every
// commit on the disk.
//
// \tgo test -run '^$' -bench Crowd -benchtime 5s ./internal/adapter/store
func BenchmarkCrowd(b *testing.B) {
	users := crowdUsers
	if testing.Short() {
		users /= 100
	}
	for _, engine := range []struct {
		name, driver string
		url          func(b *testing.B) string
	}{
		{"SQLite", "sqlite", func(b *testing.B) string { return "sqlite:" + filepath.Join(b.TempDir(), "tamga.db") }},
		{"PostgreSQL", "pgx", func(b *testing.B) string {
			// As docs/operations.md advises: texts compare by their bytes.
			return storetest.OwnPostgreSQL(b, "fsync=on", "max_wal_size=8GB", "shared_buffers=512MB").Database(b, "TEMPLATE template0 LC_COLLATE 'C'")
		}},
	} {
		b.Run(engine.name, func(b *testing.B) {
			url := engine.url(b)
			w := newCrowd(b, storetest.Open(b, url), users)
			w.fill(b, engine.driver, strings.TrimPrefix(url, "sqlite:"))
			b.Run("ByID", w.measure(func(ctx context.Context, i int) error {
				_, err := w.users.ByID(ctx, w.operator(i), crowdID(i))
				return err
			}))
			b.Run("ByIDOfAnotherGroup", w.measure(func(ctx context.Context, i int) error {
				if _, err := w.users.ByID(ctx, w.operator(i+1), crowdID(i)); err == nil {
					return fmt.Errorf("user %d was found", i)
				}
				return nil
			}))
			for kind := range identifiersOf(0) {
				b.Run("FindBy"+kind.String(), w.measure(func(ctx context.Context, i int) error {
					_, err := w.users.Find(ctx, w.operator(i), kind, identifiersOf(i)[kind], "")
					return err
				}))
			}
			b.Run("IsUnique", w.measure(func(ctx context.Context, i int) error {
				_, err := w.users.CheckUnique(ctx, w.operator(i), "", identifiersOf(i+i%2*users)) // every second one is free
				return err
			}))
			for name, filters := range map[string][]user.Filter{
				"All":    nil,
				"Login":  {{Column: user.ColumnLogin, Operation: user.Like, Value: "7"}},
				"Name":   {{Column: user.ColumnRdn, Operation: user.Like, Value: "user 1"}},
				"Phone":  {{Column: user.ColumnPhoneNumber, Operation: user.Like, Value: "7900"}},
				"State":  {{Column: user.ColumnIsLocked, Operation: user.Equal, Value: "false"}, {Column: user.ColumnAuthMethod, Operation: user.Equal, Value: "password"}},
				"Number": {{Column: user.ColumnPhoneNumber, Operation: user.Equal, Value: "79000000777"}},
			} {
				b.Run("SearchBy"+name, w.measure(func(ctx context.Context, i int) error {
					_, err := w.users.List(ctx, w.operator(i), user.Search{End: 100, Filters: filters})
					return err
				}))
			}
			b.Run("Browse", w.measure(func(ctx context.Context, i int) error {
				_, _, err := w.users.Browse(ctx, w.operator(i), nil, "", 50)
				return err
			}))
			// An operator of all groups, who searches for what few or no users have.
			for name, filter := range map[string]user.Filter{
				"Login":  {Column: user.ColumnLogin, Operation: user.Like, Value: "nobody"},
				"Name":   {Column: user.ColumnRdn, Operation: user.Like, Value: "nobody"},
				"Phone":  {Column: user.ColumnPhoneNumber, Operation: user.Like, Value: "9999999"},
				"Token":  {Column: user.ColumnTokenType, Operation: user.Equal, Value: "totp"},
				"Locked": {Column: user.ColumnIsLocked, Operation: user.Equal, Value: "true"},
				"Number": {Column: user.ColumnPhoneNumber, Operation: user.Equal, Value: "79000000777"},
			} {
				for who, id := range map[string]string{"OfAll": "operator-all", "OfFew": "operator-few"} {
					b.Run("Browse"+who+"By"+name, w.measure(func(ctx context.Context, i int) error {
						_, _, err := w.users.Browse(ctx, audit.Principal{UserID: id}, []user.Filter{filter}, fmt.Sprintf("user%d", i), 50)
						return err
					}))
				}
			}
			for _, callers := range []int{1, 16} {
				b.Run(fmt.Sprintf("Cycle/callers=%d", callers), func(b *testing.B) { w.cycle(b, callers) })
			}
		})
	}
}

// crowd is an installation with many users.
type crowd struct {
	users  *user.Service
	book   *contact.Book
	number int
	last   atomic.Int64
}

// silent sends no notifications.
type silent struct{}

func (silent) Emit(context.Context, notify.Event) error                        { return nil }
func (silent) Order(context.Context, notify.Direct) error                      { return nil }
func (silent) MethodUsesContact(context.Context, string, string) (bool, error) { return false, nil }
func (silent) ContactGone(context.Context, string, string) error               { return nil }

func newCrowd(b *testing.B, db *store.DB, number int) *crowd {
	naming, err := user.NewNaming(user.DefaultComponents(), false)
	if err != nil {
		b.Fatal(err)
	}
	w := &crowd{number: number}
	users, contacts := store.Users{DB: db}, store.Contacts{DB: db}
	w.users = &user.Service{
		Store: users, GroupStore: users, LoginStore: users, NameStore: users, SearchStore: users,
		Sessions: session.New(store.Tokens{DB: db}), Confirmations: storetest.Unconfirmed{}, Events: silent{}, Naming: naming, LocalIssuer: "realsts",
		Now: time.Now, Rand: rand.Reader,
	}
	codes := contact.DefaultSettings()
	w.book, err = contact.New(codes, contact.Deps{
		Store: contacts, Codes: contacts, Reach: w.users, Methods: silent{}, Confirmations: storetest.Unconfirmed{}, Notices: silent{}, Now: time.Now, Rand: rand.Reader,
	})
	if err != nil {
		b.Fatal(err)
	}
	w.users.Contacts = w.book
	return w
}

// crowdID is the identifier of user i. The first digits are scattered like those of
// random identifiers.
func crowdID(i int) string {
	return fmt.Sprintf("%08d-0000-4000-8000-%012d", 10_000_000+i*48_271%89_999_999, 100_000_000_000+i)
}

func identifiersOf(i int) map[user.IdentifierType]string {
	return map[user.IdentifierType]string{
		user.Login:       fmt.Sprintf("user%d", i),
		user.PhoneNumber: fmt.Sprintf("7%d", 9_000_000_000+i),
		user.Email:       fmt.Sprintf("user%d@example.ru", i),
	}
}

// operator returns the operator of the group of user i.
func (w *crowd) operator(i int) audit.Principal {
	return audit.Principal{UserID: fmt.Sprintf("operator-%d", i%crowdGroups)}
}

// fill adds the users with SQL for both engines, in portions that a write-ahead log can
// hold.
func (w *crowd) fill(b *testing.B, driver, source string) {
	pool, err := sql.Open(driver, source)
	if err != nil {
		b.Fatal(err)
	}
	defer pool.Close()
	pool.SetMaxOpenConns(1)
	do := func(query string, args ...any) {
		b.Helper()
		if _, err := pool.ExecContext(b.Context(), query, args...); err != nil {
			b.Fatalf("%s: %v", query, err)
		}
	}
	if driver == "sqlite" {
		do("PRAGMA synchronous = OFF")
		do("PRAGMA cache_size = -400000")
	}
	id := "CAST(10000000 + i * 48271 % 89999999 AS TEXT) || '-0000-4000-8000-' || CAST(100000000000 + i AS TEXT)"
	numbers := "WITH RECURSIVE n(i) AS (SELECT CAST($1 AS BIGINT) UNION ALL SELECT i + 1 FROM n WHERE i + 1 < $2) "
	do("INSERT INTO user_groups (name, title, created_at) VALUES ('Operators', '', 0)")
	do(numbers+"INSERT INTO user_groups (name, title, created_at) SELECT 'group ' || CAST(i AS TEXT), '', 0 FROM n", 0, crowdGroups)
	do(numbers+`INSERT INTO users (id, login, login_folded, display_name, group_name, operator, locked, created_at)
		SELECT 'operator-' || CAST(i AS TEXT), 'operator-' || CAST(i AS TEXT), 'operator-' || CAST(i AS TEXT), 'x', 'Operators', TRUE, FALSE, 0 FROM n`, 0, crowdGroups)
	do(numbers+"INSERT INTO operator_groups (user_id, group_name) SELECT 'operator-' || CAST(i AS TEXT), 'group ' || CAST(i AS TEXT) FROM n", 0, crowdGroups)
	do("INSERT INTO user_groups (name, title, created_at) VALUES ('large', '', 0)")
	for name, some := range map[string]string{"operator-all": "TRUE", "operator-few": "group_name IN ('group 1', 'group 2', 'group 3')"} {
		do("INSERT INTO users (id, login, login_folded, display_name, group_name, operator, locked, created_at) VALUES ($1, $1, $1, 'x', 'Operators', TRUE, FALSE, 0)", name)
		do("INSERT INTO operator_groups (user_id, group_name) SELECT DISTINCT $1, group_name FROM operator_groups WHERE user_id <> $1 AND "+some, name)
		do("INSERT INTO operator_groups (user_id, group_name) VALUES ($1, 'large')", name)
	}
	const portion = 200_000 // each sorted by its key, which is almost as fast as a bulk load
	for from := 0; from < w.number; from += portion {
		to := min(from+portion, w.number)
		do(numbers+`INSERT INTO users (id, login, login_folded, display_name, group_name, operator, locked, created_at)
			SELECT `+id+`, 'user' || CAST(i AS TEXT), 'user' || CAST(i AS TEXT), 'User ' || CAST(i AS TEXT), 'group ' || CAST(i % `+fmt.Sprint(crowdGroups)+` AS TEXT), FALSE, FALSE, 1700000000000 + i FROM n ORDER BY 1`, from, to)
		do(numbers+`INSERT INTO distinguished_names (user_id, name, name_folded, name_key)
			SELECT `+id+`, 'CN=User ' || CAST(i AS TEXT), 'cn=user ' || CAST(i AS TEXT), CAST(CAST(i AS TEXT) AS `+map[string]string{"sqlite": "BLOB", "pgx": "BYTEA"}[driver]+`) FROM n ORDER BY 1`, from, to)
		do(numbers+"INSERT INTO name_components (user_id, oid, value) SELECT "+id+", '2.5.4.3', 'User ' || CAST(i AS TEXT) FROM n ORDER BY 1", from, to)
		do(numbers+"INSERT INTO user_methods (user_id, method, level, created_at) SELECT "+id+", 'password', 1, 0 FROM n ORDER BY 1", from, to)
		for k, c := range []struct{ typ, value, primary string }{
			{"PhoneNumber", "CAST(79000000000 + i AS TEXT)", "TRUE"},
			{"PhoneNumber", "CAST(78000000000 + i AS TEXT)", "FALSE"},
			{"EmailAddress", "'user' || CAST(i AS TEXT) || '@example.ru'", "TRUE"},
			{"EmailAddress", "'user' || CAST(i AS TEXT) || '@example.com'", "FALSE"},
			{"EmailAddress", "'user' || CAST(i AS TEXT) || '@example.org'", "FALSE"},
		} {
			do(numbers+`INSERT INTO contacts (user_id, type, normal, value, confirmed, is_primary, notification, secondary_auth, created_at)
				SELECT `+id+`, '`+c.typ+`', `+c.value+`, `+c.value+`, TRUE, `+c.primary+`, FALSE, FALSE, `+fmt.Sprint(k)+` FROM n ORDER BY 1`, from, to)
		}
	}
	if driver == "pgx" {
		do("VACUUM ANALYZE")
	} else {
		do("PRAGMA wal_checkpoint(TRUNCATE)")
	}
}

// measure times single calls, two at a time.
func (w *crowd) measure(call func(ctx context.Context, i int) error) func(b *testing.B) {
	return func(b *testing.B) {
		var mu sync.Mutex
		var all []time.Duration
		used := processorTime(b)
		b.ResetTimer()
		b.RunParallel(func(pb *testing.PB) {
			var mine []time.Duration
			chance := randv2.New(randv2.NewPCG(1, uint64(w.last.Add(1))))
			for pb.Next() {
				i := chance.IntN(w.number)
				begun := time.Now()
				if err := call(b.Context(), i); err != nil {
					b.Error(err)
					return
				}
				mine = append(mine, time.Since(begun))
			}
			mu.Lock()
			defer mu.Unlock()
			all = append(all, mine...)
		})
		b.StopTimer()
		slices.Sort(all)
		if len(all) > 0 {
			b.ReportMetric(all[len(all)/2].Seconds()*1e3, "p50-ms")
			b.ReportMetric(all[len(all)*99/100].Seconds()*1e3, "p99-ms")
			b.ReportMetric((processorTime(b)-used).Seconds()*1e3/float64(len(all)), "cpu-ms/op")
		}
	}
}

// processorTime returns what this process has used.
func processorTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// cycle registers users, confirms a phone, locks and deletes them: four durable
// transactions each.
func (w *crowd) cycle(b *testing.B, callers int) {
	left := atomic.Int64{}
	left.Store(int64(b.N))
	b.ResetTimer()
	var done sync.WaitGroup
	for range callers {
		done.Go(func() {
			for left.Add(-1) >= 0 {
				i := int(w.last.Add(1)) + 2*w.number
				if err := w.one(b.Context(), i); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	done.Wait()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "cycles/s")
}

func (w *crowd) one(ctx context.Context, i int) error {
	who, ids := w.operator(i), identifiersOf(i)
	id, err := w.users.Register(ctx, who, user.Registration{Identifiers: ids})
	if err != nil {
		return err
	}
	if _, err := w.book.Confirm(ctx, who, id, contact.Phone, ids[user.PhoneNumber]); err != nil {
		return err
	}
	if err := w.users.SetLocked(ctx, who, id, true); err != nil {
		return err
	}
	return w.users.Delete(ctx, who, id)
}
