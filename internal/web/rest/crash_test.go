// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"tamga/internal/domain/audit"
)

// mortal is the durable half of a server that dies at one of its writes: neither that
// one nor any later one happens, until another process takes over.
type mortal struct {
	answers
	entries []audit.Entry
	left    int // writes before the end
}

var errDead = errors.New("the process is dead")

func (m *mortal) write() error {
	if m.left--; m.left < 0 {
		return errDead
	}
	return nil
}

// Record implements [audit.Log].
func (m *mortal) Record(_ context.Context, e audit.Entry) error {
	if err := m.write(); err != nil {
		return err
	}
	m.entries = append(m.entries, e)
	return nil
}

// Begin implements [audit.Log].
func (m *mortal) Begin(ctx context.Context, e audit.Entry) func(context.Context) error {
	err := m.Record(ctx, e)
	return func(context.Context) error { return err }
}

func (m *mortal) begin(ctx context.Context, caller, key string, request []byte) (KeyedRequest, bool, error) {
	if err := m.write(); err != nil {
		return nil, false, err
	}
	t, wait, err := m.answers.begin(ctx, caller, key, request)
	if wait || err != nil {
		return nil, wait, err
	}
	return mortalRequest{t, m}, false, nil
}

type mortalRequest struct {
	KeyedRequest
	m *mortal
}

func (t mortalRequest) Keep(ctx context.Context, head []byte, body interface {
	Size() int64
	io.WriterTo
}) (func(context.Context, *audit.Entry) error, error) {
	record, err := t.KeyedRequest.Keep(ctx, head, body)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, outcome *audit.Entry) error {
		if err := t.m.write(); err != nil {
			return err
		}
		if err := record(ctx, nil); err != nil {
			return err
		}
		if outcome != nil {
			t.m.entries = append(t.m.entries, *outcome)
		}
		return nil
	}, nil
}

func (t mortalRequest) Release(ctx context.Context) error {
	if err := t.m.write(); err != nil {
		return err
	}
	return t.KeyedRequest.Release(ctx)
}

// revive is another process after the lease of the dead one is over.
func (m *mortal) revive() {
	m.left = 1 << 20
	for name, k := range m.kept {
		if !k.done {
			delete(m.kept, name)
		}
	}
}

// Wherever a process dies: nothing was made without an earlier attempt in the audit log,
// nothing that counts was made twice, and each answer has an audit entry that leads to the
// attempt it was made in.
func TestCrashBetweenAuditAndAnswer(t *testing.T) {
	for _, inside := range []bool{false, true} {
		for writes := range 8 {
			t.Run(fmt.Sprintf("inside the change %t, %d writes", inside, writes), func(t *testing.T) {
				m := &mortal{answers: answers{kept: map[string]*keptAnswer{}}, left: writes}
				made := 0
				var server *httptest.Server
				serve := func() {
					mux := http.NewServeMux()
					Mount(mux, "", &Gate{
						Identify: func(_ context.Context, token string) (audit.Principal, error) {
							return audit.Principal{UserID: token}, nil
						},
						Audit: m, Log: slog.New(slog.DiscardHandler), Once: m.begin,
					}, []Route{Handle("POST /do", "Do", SignedIn, func(ctx context.Context, _ struct{ Body Bytes }) (any, error) {
						if n := len(m.entries); n == 0 || m.entries[n-1].Phase != audit.Attempt {
							t.Error("something is made without an attempt in the audit log")
						}
						made++
						Concerning(ctx, fmt.Sprintf("thing %d", made))
						if !inside {
							return made, nil
						}
						value := made
						record, err := Keep(ctx, value)
						if err != nil {
							return nil, err
						}
						before, kept := len(m.entries), *m.kept["1 key"]
						if err := record(ctx); err != nil {
							// The transaction is rolled back.
							m.entries, *m.kept["1 key"] = m.entries[:before], kept
							return nil, err
						}
						return value, nil
					}).AnswerOnly().Once()})
					server = httptest.NewServer(mux)
				}
				serve()
				before, first := onceSend(t, server.URL+"/do", "1", "key", "", "body")
				server.Close()
				counts := m.kept["1 key"] != nil && m.kept["1 key"].done
				if before == 200 && !counts {
					t.Errorf("%s was answered and not kept", first)
				}
				earlier := len(m.entries)
				m.revive()
				serve()
				defer server.Close()
				status, text := onceSend(t, server.URL+"/do", "1", "key", "", "body")
				if status != 200 || before == 200 && text != first {
					t.Fatalf("answered %d %s, before the crash %d %s", status, text, before, first)
				}
				if counts && made != 1 {
					t.Errorf("made %d times although the first answer counts", made)
				}
				line := m.entries[len(m.entries)-1]
				want := "thing " + text
				if counts {
					want = "answer to request " + m.entries[0].RequestID + ", " + want
				}
				if line.Phase != audit.Done || line.Outcome != audit.OK || line.Object != want {
					t.Errorf("the audit log ends in %+v, want an outcome of %q", line, want)
				}
				if earlier > 0 && (m.entries[0].Phase != audit.Attempt || strings.Contains(m.entries[0].Object, "thing")) {
					t.Errorf("the audit log begins with %+v", m.entries[0])
				}
				if counts && (earlier < 2 || m.entries[1].Phase != audit.Done || m.entries[1].Object != "thing 1") {
					t.Errorf("what counts is not in the audit log: %+v", m.entries[:earlier])
				}
			})
		}
	}
}
