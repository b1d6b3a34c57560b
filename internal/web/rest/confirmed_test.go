// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"tamga/internal/domain/audit"
	"tamga/internal/domain/fault"
)

// A confirmed token opens the routes that are marked, and no other.
func TestConfirmedRoutes(t *testing.T) {
	log := &auditLog{fail: map[string]error{}, grown: make(chan struct{}, 1000)}
	confirmation := func(ctx context.Context, _ struct{}) (string, error) { return Caller(ctx).Confirmation, nil }
	gate := &Gate{
		Identify: func(_ context.Context, token string) (audit.Principal, error) {
			if token != "access" {
				return audit.Principal{}, fault.New(fault.Unauthorized, "not an access token")
			}
			return audit.Principal{UserID: "1"}, nil
		},
		Audit: log, Log: slog.New(slog.DiscardHandler),
	}
	routes := []Route{
		Handle("POST /marked", "Marked", SignedIn, confirmation).Confirmed(),
		Handle("POST /other", "Other", SignedIn, confirmation),
	}
	for name, list := range map[string][]Route{
		"no IdentifyConfirmed": routes,
		"for Anyone":           {Handle("POST /marked", "Marked", Anyone, confirmation).Confirmed()},
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: mounted", name)
				}
			}()
			Mount(http.NewServeMux(), "", gate, list)
		}()
	}
	gate.IdentifyConfirmed = func(ctx context.Context, token string) (context.Context, audit.Principal, error) {
		if token == "confirmed" {
			return ctx, audit.Principal{UserID: "1", Confirmation: "c"}, nil
		}
		who, err := gate.Identify(ctx, token)
		return ctx, who, err
	}
	mux := http.NewServeMux()
	Mount(mux, "", gate, routes)
	for _, c := range []struct {
		path, token string
		status      int
		body        string
	}{
		{"/marked", "confirmed", 200, `"c"`},
		{"/marked", "access", 200, `""`},
		{"/marked", "bad", 401, ""},
		{"/other", "confirmed", 401, ""},
		{"/other", "access", 200, `""`},
	} {
		r := httptest.NewRequest("POST", c.path, nil)
		r.Header.Set("Authorization", "Bearer "+c.token)
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, r)
		if w.Code != c.status || c.body != "" && strings.TrimSpace(w.Body.String()) != c.body {
			t.Errorf("%s %s: %d %s", c.path, c.token, w.Code, w.Body)
		}
	}
}
