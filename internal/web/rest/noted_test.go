// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tamga/internal/domain/audit"
	"tamga/internal/domain/fault"
)

// lateLog writes the entries of attempts when it is waited for.
type lateLog struct {
	entries []string // phase and outcome
	lost    error    // the answer to who waits for an attempt
}

func (l *lateLog) Record(_ context.Context, e audit.Entry) error {
	l.entries = append(l.entries, strings.TrimSpace(e.Phase+" "+e.Outcome))
	return nil
}

func (l *lateLog) Begin(ctx context.Context, e audit.Entry) func(context.Context) error {
	if e.Phase == audit.Attempt {
		l.entries = append(l.entries, "begun")
	}
	return func(context.Context) error {
		if e.Phase == audit.Attempt && l.lost != nil {
			return l.lost
		}
		return l.Record(ctx, e)
	}
}

// TestNoted: the entries of a route that is Noted are written once: with the change, or after a call that
// failed, the attempt first.
func TestNoted(t *testing.T) {
	refusal := fault.New(fault.InvalidParameters, "refused")
	for _, c := range []struct {
		name    string
		lost    error
		fails   error
		status  int
		entries []string
	}{
		{"made", nil, nil, 200, []string{"change with attempt", "change with done ok"}},
		{"refused", nil, refusal, 400, []string{"begun", "attempt", "done invalid_parameters"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			log := &lateLog{lost: c.lost}
			mux := http.NewServeMux()
			Mount(mux, "", &Gate{
				Identify: func(context.Context, string) (audit.Principal, error) { return audit.Principal{UserID: "1"}, nil },
				Audit:    log, Log: slog.New(slog.DiscardHandler),
			}, []Route{Handle("POST /do", "Do", SignedIn, func(ctx context.Context, _ struct{ Body Bytes }) (any, error) {
				if c.fails != nil {
					return nil, c.fails
				}
				kept, err := KeepEntry(ctx, 1)
				if err != nil || kept.Record != nil {
					t.Fatal("a record without an Idempotency-Key", err)
				}
				for _, e := range kept.Entries() {
					log.entries = append(log.entries, strings.TrimSpace("change with "+e.Phase+" "+e.Outcome))
				}
				return 1, nil
			}).Once().Noted()})
			server := httptest.NewServer(mux)
			defer server.Close()
			status, text := onceSend(t, server.URL+"/do", "1", "", "", "body")
			if status != c.status {
				t.Errorf("%d %s, want %d", status, text, c.status)
			}
			if d := cmp.Diff(c.entries, log.entries); d != "" {
				t.Error(d)
			}
		})
	}
}
