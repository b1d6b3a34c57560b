// SPDX-License-Identifier: Apache-2.0

package store_test

import (
	"context"
	"database/sql"
	"flag"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"tamga/internal/adapter/store"
	"tamga/internal/adapter/store/lite"
	"tamga/internal/adapter/store/storetest"
	"tamga/internal/domain/audit"
	"tamga/internal/domain/confirm"
	"tamga/internal/domain/lease"
	"tamga/internal/domain/operation"
)

var endedOperations = flag.String("operations.ended", "10000,1000000", "numbers of ended operations in BenchmarkEndedOperations, the smallest first")

// BenchmarkEndedOperations shows that work on open operations costs the same however many have ended: it reports the median
// time of a call with each number of ended operations, and how many times the one with the most takes that with the
// fewest. The calls to the databases alternate, so other work on the machine slows all of them.
//
//	go test -run '^$' -bench EndedOperations -benchtime 500x -timeout 30m ./internal/adapter/store
//	go test -run '^$' -bench EndedOperations/PostgreSQL -benchtime 500x -timeout 60m ./internal/adapter/store -operations.ended 10000,10000000
func BenchmarkEndedOperations(b *testing.B) {
	var numbers []int
	for text := range strings.SplitSeq(*endedOperations, ",") {
		n, err := strconv.Atoi(text)
		if err != nil {
			b.Fatal(err)
		}
		numbers = append(numbers, n)
	}
	for _, engine := range []struct {
		name string
		url  func(b *testing.B) func() string
	}{
		{"SQLite", func(b *testing.B) func() string {
			return func() string { return "sqlite:" + filepath.Join(b.TempDir(), "tamga.db") }
		}},
		{"PostgreSQL", func(b *testing.B) func() string {
			// Without autovacuum: it begins after a part of the table has changed, so it cleans a small table during the
			// measurement and a large one never.
			server := storetest.OwnPostgreSQL(b, "max_wal_size=4GB", "shared_buffers=512MB", "autovacuum=off")
			return func() string { return server.Database(b, "TEMPLATE template0 LC_COLLATE 'C'") }
		}},
	} {
		b.Run(engine.name, func(b *testing.B) {
			url := engine.url(b)
			var list []*pastOperations
			for _, n := range numbers {
				list = append(list, newPastOperations(b, url(), n))
			}
			for _, call := range pastCalls {
				b.Run(call.name, func(b *testing.B) {
					took := make([][]time.Duration, len(list))
					n := 0
					for b.Loop() {
						for k := range list { // each is the first one in turn
							k = (k + n) % len(list)
							began := time.Now()
							if err := call.do(b.Context(), list[k], n); err != nil {
								b.Fatal(err)
							}
							took[k] = append(took[k], time.Since(began))
						}
						n++
					}
					median := func(k int) float64 {
						slices.Sort(took[k])
						return float64(took[k][len(took[k])/2].Nanoseconds()) / 1e3
					}
					for k, n := range numbers {
						b.ReportMetric(median(k), fmt.Sprintf("us/%d-ended", n))
					}
					b.ReportMetric(median(len(list)-1)/median(0), "times")
					b.ReportMetric(0, "ns/op")
				})
			}
		})
	}
}

var pastNow = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

const (
	pastUsers = 1000
	pastOpen  = 1000 // open operations, of the first users
)

// pastOperations is an installation with many ended operations and some open ones.
type pastOperations struct {
	store.Operations
	now   time.Time
	added int
}

func newPastOperations(b testing.TB, url string, ended int) *pastOperations {
	p := &pastOperations{Operations: store.Operations{DB: storetest.Open(b, url)}, now: pastNow}
	crowd := storetest.OpenCrowd(b, url)
	crowd.AddUsers(pastUsers)
	for i := range pastOpen {
		o := p.one(i, storetest.CrowdID(i%100))
		o.DueAt = p.now.Add(time.Duration(i)*time.Millisecond - 2*time.Hour)
		p.add(b.Context(), b, o)
	}
	over := p.one(pastOpen, storetest.CrowdID(0))
	over.State, over.CompletedAt, over.KeepUntil, over.Plan, over.Secret, over.Contents, over.Bytes = operation.Completed, p.now, p.now.Add(time.Hour), nil, nil, "", 0
	p.add(b.Context(), b, over)
	id := func(kind string) string {
		return "CAST(10000000 + i * 48271 % 89999999 AS TEXT) || '-0000-4000-800" + kind + "-' || CAST(100000000000 + i AS TEXT)"
	}
	at := fmt.Sprintf("%d + i %% 86000000", p.now.UnixMilli())
	crowd.Copy("operations", "id = '"+over.ID+"'", ended, map[string]string{
		"id": id("1"), "user_id": storetest.CrowdUser("i % " + fmt.Sprint(pastUsers)), "created_at": at, "completed_at": at, "keep_until": "3600000 + " + at,
	})
	confirmed := confirm.Record{
		ID: pastID(pastOpen), RefID: pastID(pastOpen), Subject: confirm.Subject{UserID: storetest.CrowdID(0)}, Purpose: confirm.ForOperation, Action: over.Action,
		State: confirm.Created, CreatedAt: p.now, UpdatedAt: p.now, ConfirmBefore: p.now.Add(time.Hour),
	}
	records, most := store.Confirmations{DB: p.DB}, confirm.Quota{Records: 1e9, Bytes: 1e15}
	if room, err := records.AddConfirmation(b.Context(), &confirmed, &confirm.StoredContent{}, most, confirm.DocumentQuotas{User: most, All: most}); err != nil || room != confirm.Added {
		b.Fatal(room, err)
	}
	crowd.Copy("confirmations", "id = '"+confirmed.ID+"'", ended/10, map[string]string{
		"id": id("1"), "ref_id": id("2"), "user_id": storetest.CrowdUser("i % " + fmt.Sprint(pastUsers)), "state": "'Completed'", "ended_at": at,
	})
	crowd.Settle()
	return p
}

func pastID(n int) string { return fmt.Sprintf("00000000-0000-4000-8000-%012d", n) }

// one returns an operation for later.
func (p *pastOperations) one(n int, userID string) *operation.Stored {
	return &operation.Stored{
		Operation: operation.Operation{
			ID: pastID(n), Kind: "sign", Form: operation.FormOperation, Owner: audit.Principal{UserID: userID}, Action: "SignDocument",
			State: operation.Confirmed, Async: true, Parameters: `{"IsDetached":"True","CADESType":"BES"}`, Description: "document.pdf",
			CreatedAt: p.now, UpdatedAt: p.now, ConfirmedAt: p.now, CompleteBefore: p.now.Add(20 * time.Minute),
		},
		Purpose: confirm.ForOperation, Principal: []byte(`{"UserID":"` + userID + `"}`), Contents: "contents", Bytes: 100, StartAfter: -1,
		List: []byte(`[{"id":"` + userID + `","original_name":"document.pdf","name":"document.pdf.sig","out":{"at":0,"size":3000}}]`), Plan: make([]byte, 200), Secret: make([]byte, 100),
	}
}

func (p *pastOperations) add(ctx context.Context, b testing.TB, o *operation.Stored) {
	b.Helper()
	if added, err := p.AddOperation(ctx, o, operation.Quota{Objects: 1e9, Bytes: 1e15}); err != nil || !added {
		b.Fatal(added, err)
	}
}

// addOne adds an operation and returns an error if it was not added.
func (p *pastOperations) addOne(ctx context.Context, n int, change func(o *operation.Stored)) error {
	p.added++
	o := p.one(2*pastOpen+p.added, storetest.CrowdID(n%100))
	change(o)
	added, err := p.AddOperation(ctx, o, operation.Quota{Objects: 1e9, Bytes: 1e15})
	if err == nil && !added {
		err = fmt.Errorf("%s was not added", o.ID)
	}
	return err
}

// pastCalls are what is done with open operations. Each leaves as many of them as there were.
var pastCalls = []struct {
	name  string
	do    func(ctx context.Context, p *pastOperations, n int) error
	ended bool // it is about ended operations
}{
	{"ClaimOperation", func(ctx context.Context, p *pastOperations, n int) error {
		id := pastID(n % pastOpen)
		_, found, err := p.ClaimOperation(ctx, id, p.lease(), p.now)
		if err != nil || !found {
			return fmt.Errorf("%v, %w", found, err)
		}
		return p.ReleaseOperation(ctx, id, "token")
	}, false},
	{"ClaimNext", func(ctx context.Context, p *pastOperations, n int) error {
		r, found, err := p.ClaimNext(ctx, false, p.lease(), p.now)
		if err != nil || !found {
			return fmt.Errorf("%v, %w", found, err)
		}
		// Behind the others, at a time of its own.
		return p.PostponeOperation(ctx, r.ID, "token", p.now.Add(time.Duration(n)*time.Millisecond-time.Hour), true, nil)
	}, false},
	{"ClaimNextConfirmed", func(ctx context.Context, p *pastOperations, n int) error {
		_, found, err := p.ClaimNext(ctx, true, p.lease(), p.now)
		if found {
			return fmt.Errorf("an operation without a confirmation is claimed")
		}
		return err
	}, false},
	{"OpenOperations", func(ctx context.Context, p *pastOperations, n int) error {
		list, err := p.OpenOperations(ctx, storetest.CrowdID(n%100), "", p.now, 1000)
		if len(list) < pastOpen/100 {
			return fmt.Errorf("%d are open, %w", len(list), err)
		}
		return err
	}, false},
	{"UnderWayOfAll", underWay("operator-all"), false},
	{"UnderWayOfFew", underWay("operator-few"), false},
	{"AddAndExpire", func(ctx context.Context, p *pastOperations, n int) error {
		if err := p.addOne(ctx, n, func(o *operation.Stored) { o.CompleteBefore, o.Contents, o.Bytes = p.now, "", 0 }); err != nil {
			return err
		}
		list, err := p.ExpireOperations(ctx, p.now, p.now.Add(time.Hour), 1000)
		if len(list) != 1 {
			return fmt.Errorf("%d have expired, %w", len(list), err)
		}
		return err
	}, false},
	{"ExpireNone", func(ctx context.Context, p *pastOperations, n int) error {
		_, err := p.ExpireOperations(ctx, p.now, p.now.Add(time.Hour), 1000)
		return err
	}, false},
	{"AddAndSweep", func(ctx context.Context, p *pastOperations, n int) error {
		id := ""
		err := p.addOne(ctx, n, func(o *operation.Stored) {
			id = o.ID
			o.State, o.CompletedAt, o.KeepUntil, o.Plan, o.Secret, o.Contents, o.Bytes = operation.Completed, p.now, p.now, nil, nil, "", 0
		})
		if err == nil {
			err = p.SweepOperations(ctx, p.now)
		}
		if err != nil {
			return err
		}
		if _, found, err := p.FindOperation(ctx, id); err != nil || found {
			return fmt.Errorf("%s is still there: %v, %w", id, found, err)
		}
		return nil
	}, true},
	{"AddEnded", func(ctx context.Context, p *pastOperations, n int) error {
		return p.addOne(ctx, n, func(o *operation.Stored) {
			o.State, o.CompletedAt, o.KeepUntil, o.Plan, o.Secret, o.Contents, o.Bytes = operation.Completed, p.now, p.now.Add(time.Hour), nil, nil, "", 0
		})
	}, true},
}

func (p *pastOperations) lease() lease.Lease {
	return lease.Lease{Token: "token", Until: p.now.Add(time.Minute)}
}

func underWay(operator string) func(ctx context.Context, p *pastOperations, n int) error {
	return func(ctx context.Context, p *pastOperations, n int) error {
		_, err := p.UnderWay(ctx, operator, operation.UnderWay{}, 100, p.now)
		return err
	}
}

// TestEndedOperationsAreSkipped checks that no statement about open operations reads the ended ones: each uses an index that
// has only open operations, or finds rows by their key.
func TestEndedOperationsAreSkipped(t *testing.T) {
	for _, engine := range engines(t) {
		t.Run(engine.name, func(t *testing.T) {
			t.Parallel()
			ctx, url := t.Context(), engine.reused(t)
			newPastOperations(t, url, 10_000)
			// A handle of its own, whose statements are seen.
			db := storetest.Open(t, url)
			type statement struct {
				query string
				args  []any
			}
			var call string
			seen := map[string][]statement{}
			store.Statements(db, func(query string, args []any) {
				if strings.Contains(query, "operations ") {
					seen[call] = append(seen[call], statement{query, slices.Clone(args)})
				}
			})
			p := &pastOperations{Operations: store.Operations{DB: db}, now: pastNow}
			for _, c := range pastCalls {
				call = c.name
				if err := c.do(ctx, p, 1); err != nil {
					t.Fatalf("%s: %v", call, err)
				}
			}
			explain := engine.explain(t, url)
			for _, c := range pastCalls {
				if c.ended {
					continue
				}
				if len(seen[c.name]) == 0 {
					t.Errorf("%s: no statement", c.name)
				}
				for _, s := range seen[c.name] {
					plan, err := explain(s.query, s.args)
					if err != nil {
						t.Fatalf("%s: %s: %v", c.name, s.query, err)
					}
					for _, line := range plan {
						if readsEnded(line) {
							t.Errorf("%s: %s\n%s", c.name, s.query, strings.Join(plan, "\n"))
							break
						}
					}
				}
			}
		})
	}
}

// readsEnded reports whether a line of a plan reads all operations. On SQLite the table has the names o and x, too.
func readsEnded(line string) bool {
	fields := strings.Fields(line)
	for i, word := range fields[:max(len(fields)-1, 0)] {
		scan := word == "SCAN" && slices.Contains([]string{"operations", "o", "x"}, fields[i+1]) && !strings.Contains(line, "USING")
		if scan || word == "Seq" && strings.Contains(line, " on operations") {
			return true
		}
	}
	return strings.Contains(line, "SCAN") && strings.Contains(line, "sqlite_autoindex_operations")
}

func TestReadsEnded(t *testing.T) {
	for line, want := range map[string]bool{
		"SCAN operations": true, "SCAN o": true, "SCAN x USING INDEX sqlite_autoindex_operations_1": true, "  ->  Seq Scan on operations x  (cost=0.00)": true,
		"SEARCH operations USING INDEX sqlite_autoindex_operations_1 (id=?)": false, "SCAN o USING INDEX operations_open": false, "SCAN g": false,
		"SEARCH o USING INDEX operations_open (user_id=?)": false, "Index Scan using operations_due on operations": false, "": false,
	} {
		if readsEnded(line) != want {
			t.Errorf("%q: want %v", line, want)
		}
	}
}

// explain returns a function that returns the plan of a statement.
func (e engine) explain(t *testing.T, url string) func(query string, args []any) ([]string, error) {
	t.Helper()
	if e.driver == "sqlite" {
		c, err := lite.Open(e.source(url), time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		return func(query string, args []any) (plan []string, err error) {
			err = c.Query(t.Context(), lite.Once, "EXPLAIN QUERY PLAN "+query, args, func(r lite.Row) error {
				var id, parent, unused int64
				var text string
				err := r.Scan(&id, &parent, &unused, &text)
				plan = append(plan, text)
				return err
			})
			return plan, err
		}
	}
	pool, err := sql.Open(e.driver, e.source(url))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { pool.Close() })
	return func(query string, args []any) (plan []string, err error) {
		rows, err := pool.QueryContext(t.Context(), "EXPLAIN "+query, args...)
		if err != nil {
			return nil, err
		}
		defer rows.Close()
		for rows.Next() {
			var line string
			if err := rows.Scan(&line); err != nil {
				return nil, err
			}
			plan = append(plan, line)
		}
		return plan, rows.Err()
	}
}
