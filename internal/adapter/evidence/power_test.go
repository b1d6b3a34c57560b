// SPDX-License-Identifier: Apache-2.0

package evidence

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"tamga/sig/power"
)

// TestPowerRegistry asks a register of powers of attorney. Answers are remembered for a while, failures for a shorter one, and
// neither a failure nor an unknown answer counts as in force.
func TestPowerRegistry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newInternet(t)
		asked, answer, code := 0, "", http.StatusOK
		var seen string
		n.serve("registry.example", func(w http.ResponseWriter, r *http.Request) {
			asked, seen = asked+1, r.URL.RequestURI()
			w.WriteHeader(code)
			_, _ = w.Write([]byte(answer))
		})
		r := &PowerRegistry{Source: n.source(nil), Address: "http://registry.example/powers/{number}?inn={inn}", Timeout: 5 * time.Second, Fresh: 5 * time.Minute}
		revoked := time.Date(2025, 3, 1, 9, 0, 0, 0, time.UTC)
		for i, c := range []struct {
			code         int
			answer, want string // in the error
			state        power.State
			at           time.Time
		}{
			{200, `{"status": "ACTIVE"}`, "", power.StateInForce, time.Time{}},
			{200, `{"status": "expired", "more": 1}`, "", power.StateInForce, time.Time{}},
			{200, `{"status": "REVOKED", "revoked_at": "2025-03-01T12:00:00+03:00"}`, "", power.StateWithdrawn, revoked},
			{200, `{"status": "REVOKED"}`, "", power.StateWithdrawn, time.Time{}},
			{200, `{"status": "REJECTED"}`, "", power.StateWithdrawn, time.Time{}},
			{200, `{"status": "PROCESSING"}`, "not registered yet (PROCESSING)", power.StateUnknown, time.Time{}},
			{200, `{"status": "CREATED"}`, "not registered yet (CREATED)", power.StateUnknown, time.Time{}},
			{200, `{"status": "FINE"}`, `unknown status "FINE"`, power.StateUnknown, time.Time{}},
			{200, `{"status": "REVOKED", "revoked_at": "yesterday"}`, "no JSON object", power.StateUnknown, time.Time{}},
			{200, `<html>`, "no JSON object", power.StateUnknown, time.Time{}},
			{404, `{"status": "ACTIVE"}`, "404", power.StateUnknown, time.Time{}},
			{200, `{"status": "ACTIVE", "x": "` + strings.Repeat("x", 64<<10) + `"}`, "registry.example", power.StateUnknown, time.Time{}},
		} {
			code, answer = c.code, c.answer
			p := &power.Power{Number: "n" + string(rune('a'+i)), Principals: []power.Party{{INN: "7707083893"}}}
			got, err := r.Status(t.Context(), p)
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) || got.State != c.state || !got.At.Equal(c.at) {
				t.Errorf("%d %.60s: %+v, %v", c.code, c.answer, got, err)
			}
			if seen != "/powers/"+p.Number+"?inn=7707083893" {
				t.Errorf("asked at %s", seen)
			}
		}
		// What is in a power cannot change another part of the address.
		hostile := &power.Power{Number: "../x?inn=1&y#z {inn}", Principals: []power.Party{{INN: "1"}}}
		if _, _ = r.Status(t.Context(), hostile); seen != "/powers/..%2Fx%3Finn%3D1%26y%23z%20%7Binn%7D?inn=1" {
			t.Errorf("asked at %s", seen)
		}
		// Answers are remembered.
		p := &power.Power{Number: "again", Principals: []power.Party{{INN: "1"}}}
		code, answer, asked = 200, `{"status": "ACTIVE"}`, 0
		count := func(after time.Duration, want int) {
			t.Helper()
			time.Sleep(after)
			if _, err := r.Status(t.Context(), p); asked != want {
				t.Errorf("asked %d times, want %d: %v", asked, want, err)
			}
		}
		count(0, 1)
		count(4*time.Minute, 1)
		answer = "broken"
		count(time.Minute, 2)
		count(29*time.Second, 2)
		answer = `{"status": "ACTIVE"}`
		count(time.Second, 3)
		// The end of the caller is no answer of the register.
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := r.Status(ended, &power.Power{Number: "ended", Principals: p.Principals}); !errors.Is(err, context.Canceled) {
			t.Errorf("after the end: %v", err)
		}
		// The guard decides about the address.
		inside := &PowerRegistry{Source: n.source(nil), Address: "http://127.0.0.1/{number}", Timeout: time.Second, Fresh: time.Minute}
		if _, err := inside.Status(t.Context(), p); err == nil || !strings.Contains(err.Error(), "not an address of the public internet") {
			t.Errorf("an internal address: %v", err)
		}
	})
}
