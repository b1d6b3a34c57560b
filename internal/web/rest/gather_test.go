// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tamga/internal/domain/audit"
	"tamga/internal/domain/fault"
)

// entrance is a route for Anyone on a mux, with an audit log that counts refusals.
func entrance(t *testing.T, j *auditLog, f func(ctx context.Context) error) (call func(remote string), g *Gatherer, clock *time.Time) {
	t.Helper()
	now := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	clock = &now
	g = NewGatherer(j, func() time.Time { return *clock })
	mux := http.NewServeMux()
	Mount(mux, "", &Gate{Audit: j, Gather: g, Log: slog.New(slog.DiscardHandler)}, []Route{
		Handle("POST /enter", "Enter", Anyone, func(ctx context.Context, _ struct{ Body Bytes }) (None, error) {
			return None{}, f(ctx)
		}),
	})
	return func(remote string) {
		r := httptest.NewRequest("POST", "/enter", strings.NewReader("x"))
		r.RemoteAddr = remote
		mux.ServeHTTP(httptest.NewRecorder(), r)
	}, g, clock
}

func (a *auditLog) details() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	var l []string
	for _, e := range a.entries {
		detail, _, _ := strings.Cut(e.Detail, " since ")
		l = append(l, strings.Join([]string{e.Phase, e.Outcome, e.Principal.Login + "/" + e.Principal.ClientID, e.Object, e.Remote, detail}, " "))
	}
	slices.Sort(l)
	return l
}

func newAuditLog() *auditLog {
	return &auditLog{fail: map[string]error{}, grown: make(chan struct{}, 100_000)}
}

var refusedEntry = fault.New(fault.AccessDenied, "no")

// A call of an unknown caller has no audit entry. A call that changes something has one.
func TestAnonymousCallersDoNotFillTheAuditLog(t *testing.T) {
	for _, c := range []struct {
		name string
		f    func(ctx context.Context) error
		want []string
	}{
		{"anonymous", func(context.Context) error { return nil }, nil},
		{"anonymous, refused", func(context.Context) error { return refusedEntry }, nil},
		{"a public client", func(ctx context.Context) error {
			Claimed(ctx, audit.Principal{ClientID: "public"})
			return refusedEntry
		}, nil},
		{"an unknown login", func(ctx context.Context) error { audit.Tried(ctx, "", ""); return refusedEntry }, nil},
		{"an effect", func(ctx context.Context) error {
			Claimed(ctx, audit.Principal{ClientID: "public"})
			audit.Changed(ctx, "a token ended")
			return refusedEntry
		}, []string{"done access_denied /public  192.0.2.1 a token ended", "done access_denied /public  192.0.2.1 a token ended"}},
		{"a user", func(ctx context.Context) error {
			Claimed(ctx, audit.Principal{ClientID: "public"})
			Identified(ctx, audit.Principal{UserID: "7", Login: "demo", ClientID: "public"})
			return nil
		}, []string{"done ok demo/public  192.0.2.1 ", "done ok demo/public  192.0.2.1 "}},
		{"a device", func(ctx context.Context) error {
			if err := audit.Known(ctx, audit.Principal{UserID: "7", Login: "demo"}); err != nil {
				return err
			}
			return refusedEntry
		}, []string{"attempt  demo/  192.0.2.1 ", "attempt  demo/  192.0.2.1 ", "done access_denied demo/  192.0.2.1 ", "done access_denied demo/  192.0.2.1 "}},
		{"a known login", func(ctx context.Context) error {
			Claimed(ctx, audit.Principal{ClientID: "public"})
			audit.Tried(ctx, "7", "demo")
			return refusedEntry
		}, []string{"done access_denied demo/public 7 192.0.2.1 refused 2 times"}},
		{"a client that proved itself", func(ctx context.Context) error {
			Identified(ctx, audit.Principal{ClientID: "bank"})
			return refusedEntry
		}, []string{"done access_denied /bank  192.0.2.1 refused 2 times"}},
		{"a known login of such a client", func(ctx context.Context) error {
			Identified(ctx, audit.Principal{ClientID: "bank"})
			audit.Tried(ctx, "7", "demo")
			return refusedEntry
		}, []string{"done access_denied demo/bank 7 192.0.2.1 refused 2 times"}},
	} {
		j := newAuditLog()
		call, g, _ := entrance(t, j, c.f)
		call("192.0.2.1:1")
		call("192.0.2.1:2")
		if err := g.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(c.want, j.details()); d != "" {
			t.Errorf("%s: %s", c.name, d)
		}
	}
}

// The entry of an attempt that cannot be written stops a known caller.
func TestKnownWithoutAuditLog(t *testing.T) {
	j := newAuditLog()
	j.fail[audit.Attempt] = errSecret
	done := false
	call, _, _ := entrance(t, j, func(ctx context.Context) error {
		if err := audit.Known(ctx, audit.Principal{UserID: "7"}); err != nil {
			return err
		}
		done = true
		return nil
	})
	call("192.0.2.1:1")
	if done || len(j.entries) != 1 || j.entries[0].Outcome != fault.Unavailable {
		t.Errorf("done %t, entries %+v", done, j.entries)
	}
}

// What an attack leaves grows with the logarithm of its size, in each window.
func TestGathererCounts(t *testing.T) {
	j := newAuditLog()
	call, g, clock := entrance(t, j, func(ctx context.Context) error {
		audit.Tried(ctx, "7", "demo")
		return refusedEntry
	})
	var got []int
	for n := 1; n <= 2000; n++ {
		call("192.0.2.1:1")
		before := len(j.entries)
		if err := g.write(t.Context(), false); err != nil {
			t.Fatal(err)
		}
		if len(j.entries) > before {
			got = append(got, n)
		}
	}
	if d := cmp.Diff([]int{1, 10, 100, 1000}, got); d != "" {
		t.Error(d)
	}
	*clock = clock.Add(gatherWindow + time.Hour)
	for range 3 { // the rest once
		if err := g.write(t.Context(), false); err != nil {
			t.Fatal(err)
		}
	}
	last := j.entries[len(j.entries)-1]
	if len(j.entries) != 5 || !strings.HasPrefix(last.Detail, "refused 2000 times since 20") || last.Principal.Login != "demo" || last.Object != "7" || len(g.known)+len(g.users) != 0 {
		t.Errorf("%d entries, the last %+v; %d counts are kept", len(j.entries), last, len(g.known))
	}
}

// One network is one address; many addresses of one user, and more users than are
// counted, share entries. Nothing is lost when the audit log fails.
func TestGathererBounds(t *testing.T) {
	user := 0
	j := newAuditLog()
	call, g, _ := entrance(t, j, func(ctx context.Context) error {
		audit.Tried(ctx, fmt.Sprint("user ", user), fmt.Sprint("login ", user))
		return refusedEntry
	})
	for i := range 100 {
		call(fmt.Sprintf("[2001:db8:1:2::%x]:1", i))
	}
	for i := range 100 {
		call(fmt.Sprintf("192.0.2.%d:1", i))
	}
	if len(g.known) != gatherAddresses+1 {
		t.Errorf("%d counts for one user", len(g.known))
	}
	for user = 1; user < 5000; user++ {
		call("192.0.2.1:1")
	}
	if len(g.known) > gatherMost+1 || len(g.users) > gatherMost+1 {
		t.Errorf("%d counts of %d users", len(g.known), len(g.users))
	}
	j.fail[audit.Done] = io.ErrClosedPipe
	if err := g.Flush(t.Context()); err == nil || len(j.entries) != 0 {
		t.Errorf("an audit log that fails: %v", err)
	}
	delete(j.fail, audit.Done)
	if err := g.Flush(t.Context()); err != nil || len(g.known) != 0 {
		t.Errorf("%v, %d counts left", err, len(g.known))
	}
	total := 0
	for _, e := range j.entries {
		n := 1
		fmt.Sscanf(e.Detail, "refused %d times", &n)
		total += n
	}
	if total != 5199 {
		t.Errorf("the entries count %d refusals, want 5199", total)
	}
}

// TestCountedSuccesses checks a route whose results callers without a token may have as fast as they
// like: the log has a few entries with numbers, also for a thousand calls. A call of a known user
// has its own.
func TestCountedSuccesses(t *testing.T) {
	j := newAuditLog()
	now := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	g := NewGatherer(j, func() time.Time { return now })
	mux := http.NewServeMux()
	calls, known := 0, false
	Mount(mux, "", &Gate{Audit: j, Gather: g, Log: slog.New(slog.DiscardHandler)}, []Route{
		Handle("POST /stamp", "Stamp", Anyone, func(ctx context.Context, _ struct{ Body Bytes }) (None, error) {
			calls++
			audit.Changed(ctx, fmt.Sprintf("number %d", calls))
			if known {
				Claimed(ctx, audit.Principal{ClientID: "client"})
				audit.Known(ctx, audit.Principal{UserID: "u", Login: "login"})
			}
			return None{}, nil
		}).Counted(),
	})
	for range 1000 {
		mux.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("POST", "/stamp", strings.NewReader("x")))
		if err := g.write(t.Context(), false); err != nil {
			t.Fatal(err)
		}
	}
	if calls != 1000 || len(j.entries) != 4 {
		t.Fatalf("%d calls have %d entries, want 4: %q", calls, len(j.entries), j.details())
	}
	if got, want := j.entries[3].Detail, "1000 times since 2026-11-22T12:00:00Z, the last one: number 1000"; got != want || j.entries[3].Outcome != audit.OK {
		t.Errorf("the entry is %q, want %q", got, want)
	}
	known = true
	mux.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("POST", "/stamp", strings.NewReader("x")))
	if n := len(j.entries); n != 6 || j.entries[n-1].Principal.Login != "login" {
		t.Errorf("a known caller: %q", j.details())
	}
}
