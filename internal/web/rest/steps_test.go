// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"tamga/internal/domain/audit"
)

// quietLog is an audit log that keeps nothing.
type quietLog struct{}

func (quietLog) Record(context.Context, audit.Entry) error { return nil }
func (quietLog) Begin(context.Context, audit.Entry) func(context.Context) error {
	return func(context.Context) error { return nil }
}

// unsent is a connection that keeps nothing of an answer.
type unsent struct {
	header http.Header
	n      int
}

func (u *unsent) Header() http.Header              { return u.header }
func (u *unsent) Write(p []byte) (int, error)      { u.n += len(p); return len(p), nil }
func (u *unsent) WriteHeader(int)                  {}
func (u *unsent) FlushError() error                { return nil }
func (u *unsent) SetReadDeadline(time.Time) error  { return nil }
func (u *unsent) SetWriteDeadline(time.Time) error { return nil }

// BenchmarkSteps measures what all requests share, without net/http, cryptography and the store: a
// request to sign 1 KiB, answered with 1,700 bytes, and a request to verify them, answered with JSON.
func BenchmarkSteps(b *testing.B) {
	type order struct {
		Body struct {
			Content   Blob
			Name      Unread
			Signature *struct {
				Type          Text
				Parameters    map[string]Blob
				CertificateID Text `json:"CertificateId"`
				PinCode       string
			}
		}
	}
	type question struct {
		Body struct {
			SignatureType   Text
			Content, Source Blob
			VerifyParams    map[string]Text
		}
	}
	type verdict struct {
		Result                     bool
		Message, SignerCertificate string
	}
	signed := bytes.Repeat([]byte("signed"), 1700/6)
	none := func(context.Context, audit.Principal) (discard, error) { return discard{io.Discard}, nil }
	routes := []Route{
		HandleDocuments("POST /documents", "Sign", SignedIn, none, func(_ context.Context, docs *Documents[discard], o order) (any, error) {
			_, err := docs.Open(o.Body.Content)
			return Stream{Content: bytes.NewReader(signed)}, err
		}).Large().AnswerOnly(),
		HandleDocuments("POST /signatures", "Verify", Anyone, none, func(_ context.Context, docs *Documents[discard], q question) ([]verdict, error) {
			_, err := docs.Open(q.Body.Content)
			if err == nil {
				_, err = docs.Open(q.Body.Source)
			}
			return []verdict{{true, "the signature is valid", base64.StdEncoding.EncodeToString(signed[:700])}}, err
		}).Large(),
	}
	log := slog.New(slog.NewTextHandler(io.Discard, nil))
	mux := http.NewServeMux()
	MountAPI(mux, "", &Gate{
		Identify: func(context.Context, string) (audit.Principal, error) {
			return audit.Principal{UserID: "1", Login: "anna"}, nil
		},
		Audit: quietLog{}, Log: log,
	}, routes)
	server := NewServer(Front(mux, log, NewMetrics(prometheus.NewRegistry()), nil), log)
	document := bytes.Repeat([]byte("0123456789abcdef"), 64)
	for _, c := range []struct {
		path string
		body map[string]any
	}{
		{"/api/documents", map[string]any{"Content": document, "Name": "n.txt", "Signature": map[string]any{
			"Type": "CAdES", "CertificateId": 1, "PinCode": "",
			"Parameters": map[string]string{"CADESType": "BES", "IsDetached": "True", "TSPAddress": ""},
		}}},
		{"/api/signatures", map[string]any{"SignatureType": "CAdES", "Content": signed, "Source": document}},
	} {
		text, err := json.Marshal(c.body)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(c.path[5:], func(b *testing.B) {
			r := httptest.NewRequest("POST", c.path, nil)
			for name, value := range map[string]string{"Authorization": "Bearer anna", "User-Agent": "Go-http-client/1.1", "Accept-Encoding": "gzip", "Content-Length": "1700"} {
				r.Header.Set(name, value)
			}
			r.ContentLength = int64(len(text))
			b.ReportAllocs()
			for b.Loop() {
				r.Body = io.NopCloser(bytes.NewReader(text))
				out := &unsent{header: make(http.Header)}
				server.Handler.ServeHTTP(out, r)
				if out.n < 800 {
					b.Fatal("no answer")
				}
			}
		})
	}
}
