// SPDX-License-Identifier: Apache-2.0

package store_test

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"tamga/internal/adapter/store"
	"tamga/internal/adapter/store/storetest"
	"tamga/internal/domain/audit"
	"tamga/internal/domain/signing"
	"tamga/internal/domain/user"
)

// far returns the address of a database behind a proxy that delays each direction.
func far(b *testing.B, address string, delay time.Duration) string {
	u, err := url.Parse(address)
	if err != nil {
		b.Fatal(err)
	}
	const socket = ".s.PGSQL.5432"
	query := u.Query()
	target := filepath.Join(query.Get("host"), socket)
	dir, err := os.MkdirTemp("", "tamga-far-") // the path of a socket has at most 107 bytes
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { os.RemoveAll(dir) })
	query.Set("host", dir)
	u.RawQuery = query.Encode()
	listener, err := net.Listen("unix", filepath.Join(dir, socket))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { listener.Close() })
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			server, err := net.Dial("unix", target)
			if err != nil {
				client.Close()
				continue
			}
			go forwardLate(server, client, delay)
			go forwardLate(client, server, delay)
		}
	}()
	return u.String()
}

// forwardLate copies until one side ends. Each piece arrives after the delay, however many
// pieces are under way.
func forwardLate(to, from net.Conn, delay time.Duration) {
	type piece struct {
		at   time.Time
		data []byte
	}
	pieces := make(chan piece, 1024)
	go func() {
		defer to.Close()
		for p := range pieces {
			time.Sleep(time.Until(p.at))
			if _, err := to.Write(p.data); err != nil {
				from.Close()
			}
		}
	}()
	defer close(pieces)
	for {
		data := make([]byte, 16<<10)
		n, err := from.Read(data)
		if err != nil {
			return
		}
		pieces <- piece{time.Now().Add(delay), data[:n]}
	}
}

// BenchmarkFar changes people and signs in two steps from one and from three processes,
// which are 5 ms away from the database.
//
// \tgo test -run '^$' -bench Far -benchtime 500x ./internal/adapter/store
func BenchmarkFar(b *testing.B) {
	for _, processes := range []int{1, 3} {
		address := storetest.OwnPostgreSQL(b, "fsync=on").Database(b)
		setup := storetest.Open(b, address)
		users := store.Users{DB: setup}
		for _, err := range []error{
			users.AddGroup(b.Context(), user.Group{Name: "Operators"}), users.AddGroup(b.Context(), user.Group{Name: "group 0"}),
			users.AddUser(b.Context(), user.User{ID: "operator-0", Login: "operator-0", Group: "Operators", Operator: true}, "operator-0"),
			users.SetOperatorGroups(b.Context(), "operator-0", []string{"group 0"}),
		} {
			if err != nil {
				b.Fatal(err)
			}
		}
		distant := far(b, address, 2500*time.Microsecond)
		var crowds []*crowd
		var handles []*store.DB
		for range processes {
			db, err := store.Open(b.Context(), store.Options{URL: distant, Limits: store.ServingLimits(9 * time.Second)})
			if err != nil {
				b.Fatal(err)
			}
			b.Cleanup(func() { db.Close() })
			handles, crowds = append(handles, db), append(crowds, newCrowd(b, db, storetest.CrowdGroups))
		}
		var number atomic.Int64
		for name, work := range map[string]func(process, n int) error{
			"People": func(process, n int) error { return crowds[process].one(b.Context(), n*storetest.CrowdGroups) }, // all of operator-0
			"TwoStep": func(process, n int) error {
				return prepareAndSpend(b.Context(), store.Prepared{DB: handles[process]}, n)
			},
		} {
			b.Run(fmt.Sprintf("%s/processes=%d", name, processes), func(b *testing.B) {
				var left atomic.Int64
				left.Store(int64(b.N))
				var done sync.WaitGroup
				for caller := range 16 * processes {
					done.Go(func() {
						for left.Add(-1) >= 0 {
							if err := work(caller%processes, int(number.Add(1))); err != nil {
								b.Error(err)
								return
							}
						}
					})
				}
				done.Wait()
				b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "cycles/s")
			})
		}
	}
}

// prepareAndSpend is what two-step signing does in the store, for one of few callers.
func prepareAndSpend(ctx context.Context, s store.Prepared, n int) error {
	now := time.Now()
	id := preparedNumber(n, "").ID
	p := preparedNumber(n, fmt.Sprint("caller", n%4))
	p.ExpiresAt = now.Add(time.Hour)
	wideQuota := signing.Quota{Objects: 1 << 40, Bytes: wide}
	if ok, err := s.AddPrepared(ctx, p, wideQuota, wideQuota, audit.Beside{}); !ok || err != nil {
		return fmt.Errorf("adding: %v, %w", ok, err)
	}
	if ok, err := s.ClaimPrepared(ctx, id, "l", now, now.Add(time.Minute), 3); !ok || err != nil {
		return fmt.Errorf("leasing: %v, %w", ok, err)
	}
	ok, err := s.SpendPrepared(ctx, id, "l", now, 3, audit.Beside{})
	if err == nil && !ok {
		err = fmt.Errorf("prepared object %d was not spent", n)
	}
	return err
}
