// SPDX-License-Identifier: Apache-2.0

package store_test

import (
	"context"
	"crypto/rand"
	"fmt"
	randv2 "math/rand/v2"
	"path/filepath"
	"slices"
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
	"tamga/internal/testsize"
)

// The installation of the benchmark: a million users in 5,000 groups, each with two
// phones and three e-mail addresses, a name and a method. With -short it is a hundredth
// of that.
const crowdUsers = 1_000_000

// BenchmarkCrowd runs the queries of operators on a large installation, from two callers
// at a time, and reports the 50th and the 99th percentile, and the processor time of this
// process for each call, which other work on the machine hardly changes. On PostgreSQL most of
// the work is the server's. Then operators register, confirm, lock and delete users with every
// commit on the disk.
//
// \tgo test -run '^$' -bench Crowd -benchtime 5s ./internal/adapter/store
func BenchmarkCrowd(b *testing.B) {
	users := crowdUsers
	if testsize.Of() == testsize.Quick {
		users /= 100
	}
	for _, engine := range []struct {
		name string
		url  func(b *testing.B) string
	}{
		{"SQLite", func(b *testing.B) string { return "sqlite:" + filepath.Join(b.TempDir(), "tamga.db") }},
		{"PostgreSQL", func(b *testing.B) string {
			// As docs/operations.md advises: texts compare by their bytes.
			return storetest.OwnPostgreSQL(b, "fsync=on", "max_wal_size=8GB", "shared_buffers=512MB").Database(b, "TEMPLATE template0 LC_COLLATE 'C'")
		}},
	} {
		b.Run(engine.name, func(b *testing.B) {
			url := engine.url(b)
			w := newCrowd(b, storetest.Open(b, url), users)
			crowd := storetest.OpenCrowd(b, url)
			crowd.AddUsers(users)
			crowd.Settle()
			b.Run("ByID", w.measure(func(ctx context.Context, i int) error {
				_, err := w.users.ByID(ctx, w.operator(i), storetest.CrowdID(i))
				return err
			}))
			b.Run("ByIDOfAnotherGroup", w.measure(func(ctx context.Context, i int) error {
				if _, err := w.users.ByID(ctx, w.operator(i+1), storetest.CrowdID(i)); err == nil {
					return fmt.Errorf("user %d was found", i)
				}
				return nil
			}))
			for kind := range storetest.CrowdIdentifiers(0) {
				b.Run("FindBy"+kind.String(), w.measure(func(ctx context.Context, i int) error {
					_, err := w.users.Find(ctx, w.operator(i), kind, storetest.CrowdIdentifiers(i)[kind], "")
					return err
				}))
			}
			b.Run("IsUnique", w.measure(func(ctx context.Context, i int) error {
				_, err := w.users.CheckUnique(ctx, w.operator(i), "", storetest.CrowdIdentifiers(i+i%2*users)) // every second one is free
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
				_, _, err := w.users.Browse(ctx, w.operator(i), nil, "", 50, false)
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
						_, _, err := w.users.Browse(ctx, audit.Principal{UserID: id}, []user.Filter{filter}, fmt.Sprintf("user%d", i), 50, false)
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

// operator returns the operator of the group of user i.
func (w *crowd) operator(i int) audit.Principal {
	return audit.Principal{UserID: fmt.Sprintf("operator-%d", i%storetest.CrowdGroups)}
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
	who, ids := w.operator(i), storetest.CrowdIdentifiers(i)
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
	return w.users.Delete(ctx, who, id, false)
}
