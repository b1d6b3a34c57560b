// SPDX-License-Identifier: Apache-2.0

package pkiapi_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"tamga/internal/domain/audit"
	"tamga/internal/domain/fault"
	"tamga/internal/web/pkiapi"
	"tamga/internal/web/rest"
	"tamga/internal/web/rest/limit"
)

// echo is an authority that answers with what it was asked.
type echo struct{}

var errDown = errors.New("a text for the log alone")

func (echo) read(what, name string) ([]byte, error) {
	if name != "gost" {
		return nil, fault.New(fault.NotFound, "no such authority")
	}
	return []byte(what + " of " + name), nil
}

func (e echo) CRL(_ context.Context, name string) ([]byte, error) { return e.read("list", name) }

func (e echo) Certificate(_ context.Context, name string) ([]byte, error) {
	return e.read("certificate", name)
}

func (e echo) OCSP(_ context.Context, request []byte) ([]byte, error) {
	return append([]byte("status of "), request...), nil
}

func (e echo) TimeStamp(ctx context.Context, request []byte) ([]byte, error) {
	switch string(request) {
	case "down":
		return nil, errDown
	case "refused":
		return []byte("rejection"), nil
	}
	audit.Changed(ctx, "serial number 1")
	return append([]byte("stamp of "), request...), nil
}

type auditLog struct{ operations []string }

func (l *auditLog) Record(_ context.Context, e audit.Entry) error {
	l.operations = append(l.operations, e.Operation+" "+e.Phase)
	return nil
}

func (l *auditLog) Begin(ctx context.Context, e audit.Entry) func(context.Context) error {
	err := l.Record(ctx, e)
	return func(context.Context) error { return err }
}

func TestRoutes(t *testing.T) {
	j := &auditLog{}
	mux := http.NewServeMux()
	rest.Mount(mux, "", &rest.Gate{Audit: j, Log: slog.New(slog.DiscardHandler)}, pkiapi.New(echo{}, nil).Routes())
	front := rest.Routed(mux)
	request := []byte{0xfb, 0xff, 0xbf, 0, 1} // "+/+/AAE=": every character that troubles an address
	encoded := base64.StdEncoding.EncodeToString(request)
	status := "status of " + string(request)
	for _, c := range []struct {
		method, path, body string
		code               int
		kind, want         string
	}{
		{"GET", "/pki/gost.crl", "", 200, "application/pkix-crl", "list of gost"},
		{"GET", "/pki/gost.crt", "", 200, "application/pkix-cert", "certificate of gost"},
		{"GET", "/pki/other.crl", "", 404, "application/json", ""},
		{"GET", "/pki/gost", "", 404, "application/json", ""},
		{"POST", "/pki/ocsp", string(request), 200, "application/ocsp-response", status},
		{"POST", "/pki/ocsp/", string(request), 200, "application/ocsp-response", status},
		{"GET", "/pki/ocsp/" + url.PathEscape(encoded), "", 200, "application/ocsp-response", status},
		{"GET", "/pki/ocsp/" + url.QueryEscape(encoded), "", 200, "application/ocsp-response", status},
		{"GET", "/pki/ocsp/" + encoded, "", 200, "application/ocsp-response", status},
		{"GET", "/pki/ocsp/" + base64.RawURLEncoding.EncodeToString(request), "", 200, "application/ocsp-response", status},
		{"GET", "/pki/ocsp/a*b", "", 400, "application/json", ""},
		{"POST", "/pki/tsp", string(request), 200, "application/timestamp-reply", "stamp of " + string(request)},
		{"POST", "/pki/tsp", strings.Repeat("x", 64<<10), 200, "application/timestamp-reply", ""},
		{"POST", "/pki/tsp", strings.Repeat("x", 64<<10+1), 413, "application/json", ""},
		{"POST", "/pki/tsp", "refused", 200, "application/timestamp-reply", "rejection"},
		{"POST", "/pki/tsp", "down", 500, "application/json", ""},
		{"PUT", "/pki/tsp", "", 405, "application/json", ""},
	} {
		w := httptest.NewRecorder()
		front.ServeHTTP(w, httptest.NewRequest(c.method, c.path, strings.NewReader(c.body)))
		text, err := io.ReadAll(w.Body)
		if err != nil {
			t.Fatal(err)
		}
		if w.Code != c.code || !strings.HasPrefix(w.Header().Get("Content-Type"), c.kind) || c.want != "" && string(text) != c.want {
			t.Errorf("%s %.60s: %d %s %.60q", c.method, c.path, w.Code, w.Header().Get("Content-Type"), text)
		}
		if bytes.Contains(text, []byte(errDown.Error())) {
			t.Errorf("%s %.60s reveals a text that is for the log only", c.method, c.path)
		}
	}
	// Each stamp has an audit entry, for any caller. Refusals have none.
	if want := []string{"TimeStamp done", "TimeStamp done"}; !slices.Equal(j.operations, want) {
		t.Errorf("the audit log holds %q, want %q", j.operations, want)
	}
}

// TestStampsAreLimited checks that an address gets a number of stamps and nothing else is limited.
func TestStampsAreLimited(t *testing.T) {
	mux := http.NewServeMux()
	stamps := limit.New(1, 2, 10, time.Now)
	rest.Mount(mux, "", &rest.Gate{Audit: &auditLog{}, Log: slog.New(slog.DiscardHandler)}, pkiapi.New(echo{}, stamps.Admit).Routes())
	front := rest.Routed(mux)
	ask := func(path, remote string) int {
		w := httptest.NewRecorder()
		r := httptest.NewRequest("POST", path, strings.NewReader("x"))
		r.RemoteAddr = remote
		front.ServeHTTP(w, r)
		return w.Code
	}
	for i, c := range []struct {
		path, remote string
		code         int
	}{
		{"/pki/tsp", "192.0.2.1:1", 200},
		{"/pki/tsp", "192.0.2.1:2", 200},
		{"/pki/tsp", "192.0.2.1:3", 429},
		{"/pki/ocsp", "192.0.2.1:4", 200},
		{"/pki/tsp", "192.0.2.2:1", 200},
	} {
		if got := ask(c.path, c.remote); got != c.code {
			t.Errorf("call %d, %s from %s: %d, want %d", i, c.path, c.remote, got, c.code)
		}
	}
}
