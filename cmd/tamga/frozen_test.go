// SPDX-License-Identifier: Apache-2.0

//go:build unix

package main

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"tamga/internal/adapter/store/storetest"

	"tamga/internal/tamgatest"
	"tamga/internal/testsize"
)

// fleet is several servers over one PostgreSQL. The first one made the installation.
type fleet struct {
	*tamgatest.UMS
	database string
	servers  []*tamgatest.Server
	admin    *sql.DB
}

// startFleet starts n servers whose sessions are named server0, server1 and so on.
func startFleet(t *testing.T, n int, more ...string) *fleet {
	t.Helper()
	f := &fleet{database: storetest.PostgreSQL(t).Database(t)}
	var err error
	if f.admin, err = sql.Open("pgx", f.database); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.admin.Close() })
	f.UMS = tamgatest.StartUMSProcess(t, t.TempDir(), append([]string{"--set", "database=" + f.database + "&application_name=server0"}, more...)...)
	f.servers = []*tamgatest.Server{f.Server}
	for i := range n - 1 {
		f.servers = append(f.servers, f.another(i+1, "127.0.0.1:0", more...))
	}
	return f
}

// another starts a further server over the database.
func (f *fleet) another(i int, listen string, more ...string) *tamgatest.Server {
	f.T.Helper()
	return tamgatest.StartArgs(f.T, append([]string{
		"serve", "--dev", "--data", f.Dir, "--listen", listen, "--set", "public_url=" + f.URL,
		"--set", fmt.Sprintf("database=%s&application_name=server%d", f.database, i),
	}, more...)...)
}

// sessions counts the sessions of a server for which a condition holds.
func (f *fleet) sessions(server int, condition string) (n int) {
	f.T.Helper()
	row := f.admin.QueryRowContext(f.T.Context(), `SELECT count(*) FROM pg_stat_activity a
		WHERE datname = current_database() AND application_name = $1 AND `+condition, fmt.Sprintf("server%d", server))
	if err := row.Scan(&n); err != nil {
		f.T.Fatal(err)
	}
	return n
}

const (
	inTransaction = "state = 'idle in transaction'"
	holdsNames    = inTransaction + ` AND EXISTS (SELECT 1 FROM pg_locks l WHERE l.pid = a.pid AND l.relation = 'lock_stripes'::regclass AND l.granted)`
)

// freeze stops a server at a moment when one of its sessions is as the condition says.
func (f *fleet) freeze(server int, condition string) {
	f.T.Helper()
	p := f.servers[server].Process()
	for begun := time.Now(); time.Since(begun) < tamgatest.Patience; {
		p.Signal(syscall.SIGSTOP)
		// PostgreSQL first carries out what the process had sent. A session that is idle afterwards stays idle.
		time.Sleep(20 * time.Millisecond)
		if f.sessions(server, condition) > 0 {
			return
		}
		p.Signal(syscall.SIGCONT)
		time.Sleep(3 * time.Millisecond)
	}
	f.T.Fatal("the server could not be stopped at the moment that was looked for")
}

// pauses lets a caller ask 16 times a second at most in the short form: a load shows how long
// nothing succeeds and what fails, not how much succeeds. A hasty caller does not pause.
func pauses(hasty bool) <-chan time.Time {
	if hasty || testsize.Of() >= testsize.Whole {
		always := make(chan time.Time)
		close(always)
		return always
	}
	return time.Tick(60 * time.Millisecond)
}

// load are callers that do one thing after the other at a server, and what became of it.
type load struct {
	mu       sync.Mutex
	success  []time.Time
	statuses map[int]int
	broken   int  // without an answer
	hasty    bool // asks without pauses in the short form too
}

// run has callers ask until ctx ends. done is called for what was answered 200.
func (l *load) run(ctx context.Context, callers int, all *sync.WaitGroup, request func() *http.Request, done func(body []byte)) {
	l.mu.Lock()
	if l.statuses == nil {
		l.statuses = map[int]int{}
	}
	l.mu.Unlock()
	for range callers {
		next := pauses(l.hasty)
		all.Go(func() {
			for ctx.Err() == nil {
				<-next
				response, err := http.DefaultClient.Do(request())
				var body []byte
				if err == nil {
					body, err = io.ReadAll(response.Body)
					response.Body.Close()
				}
				l.mu.Lock()
				if err != nil {
					l.broken++
				} else {
					l.statuses[response.StatusCode]++
					if response.StatusCode == http.StatusOK {
						l.success = append(l.success, time.Now())
						if done != nil {
							done(body)
						}
					}
				}
				l.mu.Unlock()
			}
		})
	}
}

// gap is the longest time without a success between two moments.
func (l *load) gap(from, to time.Time) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	times := append(slices.Clone(l.success), from, to)
	slices.SortFunc(times, time.Time.Compare)
	var longest time.Duration
	for i, at := range times[1:] {
		if before := times[i]; !before.Before(from) && !at.After(to) {
			longest = max(longest, at.Sub(before))
		}
	}
	return longest
}

// after reports whether something succeeded after a moment.
func (l *load) after(moment time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.success) > 0 && l.success[len(l.success)-1].After(moment)
}

// TestFrozenProcess stops one of three servers while it holds the locks of a registration,
// and while it holds another transaction. The others go on meanwhile, and in the long form lose three
// seconds at most. What was acknowledged is there, and the server goes on when it is thawed.
func TestFrozenProcess(t *testing.T) {
	// Beside other work, callers may wait for a processor.
	frozen, most := 6*time.Second, 6*time.Second
	if testsize.Of() == testsize.Full {
		frozen, most = 20*time.Second, 3*time.Second
	} else if testsize.Of() < testsize.Whole {
		t.Parallel()
		frozen, most = 4*time.Second, 4*time.Second
	}
	f := startFleet(t, 3)
	const victim = 2
	ctx, stop := context.WithCancel(t.Context())
	var all sync.WaitGroup
	var mu sync.Mutex
	acknowledged := []string{} // users
	number := 0
	post := func(url, token, body string) *http.Request {
		r, err := http.NewRequest("POST", url, bytes.NewReader([]byte(body)))
		if err != nil {
			panic(err)
		}
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Authorization", "Bearer "+token)
		return r
	}
	signing := string(signingBody(t, f.Cert("gost2012-256", false).ID, ""))
	token := f.Token()
	sign := func(server int) func() *http.Request {
		return func() *http.Request { return post(f.servers[server].URL+"/SignServer/api/documents", token, signing) }
	}
	register := func(server int) func() *http.Request {
		return func() *http.Request {
			mu.Lock()
			defer mu.Unlock()
			number++
			return post(f.servers[server].URL+"/STS/ums/user", f.Tokens[tamgatest.Ours], fmt.Sprintf(`{"Login":"frozen%d"}`, number))
		}
	}
	registered := func(body []byte) {
		var id string
		if err := json.Unmarshal(body, &id); err != nil {
			t.Errorf("a user was registered as %s", body)
		}
		mu.Lock()
		defer mu.Unlock()
		acknowledged = append(acknowledged, id)
	}
	var signatures, people load
	// The moment to freeze the victim comes often if it has much to do.
	victimSigns, victimPeople := load{hasty: true}, load{hasty: true}
	for server := range victim {
		signatures.run(ctx, 2, &all, sign(server), nil)
		people.run(ctx, 2, &all, register(server), registered)
	}
	victimSigns.run(ctx, 2, &all, sign(victim), nil)
	victimPeople.run(ctx, 4, &all, register(victim), registered)
	defer func() { f.servers[victim].Process().Signal(syscall.SIGCONT) }()

	for name, condition := range map[string]string{"locks of names": holdsNames, "a transaction": inTransaction} {
		f.freeze(victim, condition)
		begun := time.Now()
		time.Sleep(frozen)
		end := time.Now()
		f.servers[victim].Process().Signal(syscall.SIGCONT)
		for what, l := range map[string]*load{"signatures": &signatures, "people changes": &people} {
			gap := l.gap(begun, end)
			t.Logf("frozen with %s: the longest gap of %s was %v", name, what, gap.Round(time.Millisecond))
			if gap >= min(most, end.Sub(begun)) {
				t.Errorf("frozen with %s: no %s for %v, want less than %v", name, what, gap, most)
			}
		}
		// It works again after it found its transactions gone.
		for what, l := range map[string]*load{"signatures": &victimSigns, "people changes": &victimPeople} {
			for !l.after(end) {
				if time.Since(end) > tamgatest.Patience {
					t.Fatalf("thawed: no %s in %v", what, tamgatest.Patience)
				}
				time.Sleep(10 * time.Millisecond)
			}
		}
	}
	stop()
	all.Wait()
	for name, l := range map[string]*load{"signatures": &signatures, "people": &people, "signatures of the frozen one": &victimSigns, "people of the frozen one": &victimPeople} {
		t.Logf("%s: %v, %d without an answer", name, l.statuses, l.broken)
		for status := range l.statuses {
			if status != 200 && status != 503 {
				t.Errorf("%s: %d answers %d", name, l.statuses[status], status)
			}
		}
	}
	for _, id := range acknowledged {
		if f.Ask(tamgatest.Ours, "GET", "/ums/user/"+id, "").Status != 200 {
			t.Errorf("user %s was acknowledged and is not there", id)
		}
	}
	var signed int
	if err := f.admin.QueryRowContext(t.Context(), "SELECT count(*) FROM audit WHERE operation = 'SignDocument' AND phase = 'done' AND outcome = 'ok'").Scan(&signed); err != nil {
		t.Fatal(err)
	}
	if acked := len(signatures.success) + len(victimSigns.success); signed < acked {
		t.Errorf("%d signatures were acknowledged, the audit log has %d", acked, signed)
	}
}
