// SPDX-License-Identifier: Apache-2.0

package app

import (
	"errors"
	"slices"
	"strconv"
	"testing"
	"time"

	"tamga/internal/adapter/evidence"
	"tamga/internal/adapter/guard"
	"tamga/internal/config"
	"tamga/internal/setting"
	"tamga/internal/web/pages/operator"
)

func TestOwnAddress(t *testing.T) {
	for public, want := range map[string]string{
		"http://127.0.0.1:8080":       "127.0.0.1:8080",
		"http://[::1]:8080":           "[::1]:8080",
		"https://Sign.example.org":    "sign.example.org:443",
		"http://sign_1.example.org/x": "sign_1.example.org:80",
	} {
		expected, err := guard.ParseException(want)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := ownAddress(public); err != nil || len(got) != 1 || got[0] != expected {
			t.Errorf("%s: %v, %v; want %v", public, got, err, expected)
		}
	}
	for _, public := range []string{"http://:8080", "http://127.0.0.1:0"} {
		if got, err := ownAddress(public); err != nil || len(got) != 0 {
			t.Errorf("%s: %v, %v", public, got, err)
		}
	}
}

// TestSourceStates checks what is remembered of the services of others.
func TestSourceStates(t *testing.T) {
	at := time.Unix(1000, 0)
	s := &sourceStates{now: func() time.Time { return at }}
	tick := func(e evidence.Event) { at = at.Add(time.Second); s.note(e) }
	tick(evidence.Event{Kind: "tsp", Host: "a", Outcome: "ok", Duration: 5})
	tick(evidence.Event{Kind: "tsp", Host: "a", Outcome: "failed", Err: errors.New("no\nanswer"), Duration: 7})
	tick(evidence.Event{Kind: "tsp", Host: "a", Outcome: "canceled"})
	tick(evidence.Event{Kind: "ocsp", Outcome: "cached"})
	tick(evidence.Event{Kind: "ocsp", Host: "a", Outcome: "failed", Err: errors.New("1")})
	tick(evidence.Event{Kind: "ocsp", Host: "a", Outcome: "ok"})
	want := []operator.SourceState{
		{Kind: "ocsp", Host: "a", Asked: time.Unix(1006, 0), Answered: time.Unix(1006, 0)},
		{Kind: "tsp", Host: "a", Asked: time.Unix(1002, 0), Answered: time.Unix(1001, 0), Took: 7, Failures: 1, Error: "no answer"},
	}
	if got := s.states(); !slices.Equal(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
	for i := range 2 * maxSources {
		tick(evidence.Event{Kind: "crl", Host: strconv.Itoa(i), Outcome: "ok"})
	}
	got := s.states()
	if len(got) != maxSources || slices.ContainsFunc(got, func(x operator.SourceState) bool { return x.Kind != "crl" || x.Host == "0" }) {
		t.Errorf("%d services are remembered, want the %d that were asked last", len(got), maxSources)
	}
}

// TestLimits checks that every limit that a page shows is a setting.
func TestLimits(t *testing.T) {
	for _, name := range limits {
		if setting.Value(config.Default(config.Parts{}), name) == nil {
			t.Errorf("there is no setting %s", name)
		}
	}
}
