// SPDX-License-Identifier: Apache-2.0

package signapi

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"tamga/internal/adapter/blob"
	"tamga/internal/adapter/store"
	"tamga/internal/adapter/store/storetest"
	"tamga/internal/domain/audit"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/keys"
	"tamga/internal/domain/policy"
	"tamga/internal/domain/signing"
	"tamga/internal/sigtest"
	"tamga/internal/web/rest"
	"tamga/pki/chain"
	"tamga/pki/cms"
	"tamga/pki/suite"
	"tamga/pki/x509gost"
	"tamga/sig"
	"tamga/sig/cades"
	"tamga/sig/raw"
)

// desk is a server with the real service, store and directory of documents, whose
// process may die and come back.
type desk struct {
	*httptest.Server
	service *signing.Service
	db      *store.DB
	clock   *clock
	data    string // directory that remains after the process
	down    func()
}

// clock shows the same time until it is set.
type clock struct {
	mu sync.Mutex
	at time.Time
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *clock) pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
}

// vault is the keys of the one user of the server, counting how often they are asked.
type vault struct {
	noKeys
	t      testing.TB
	signer *sigtest.Party
	pin    string

	mu    sync.Mutex
	asked int
}

func (v *vault) ResolveIn(_ context.Context, _ *keys.Snapshot, _, identifier string) (*keys.Certificate, error) {
	if v.signer == nil || identifier != "" && identifier != "0" {
		return nil, fault.New(fault.InvalidCertificate, "no such certificate")
	}
	return &keys.Certificate{ID: 1, X509: v.signer.Certificate}, nil
}

func (v *vault) JudgeIn(_ context.Context, _ *keys.Snapshot, c *keys.Certificate, _ time.Time) (*chain.Result, error) {
	return &chain.Result{Chain: append([]*x509gost.Certificate{c.X509}, v.signer.Chain...)}, nil
}

func (v *vault) SignIn(_ context.Context, _ *keys.Snapshot, _ *keys.Certificate, pin string, digests []suite.Digest) ([][]byte, error) {
	v.mu.Lock()
	v.asked++
	v.mu.Unlock()
	if pin != v.pin {
		return nil, fault.New(fault.InvalidPIN, "wrong")
	}
	values := make([][]byte, len(digests))
	for i, d := range digests {
		values[i] = v.signer.Sign(v.t, d)
	}
	return values, nil
}

// rules allow everything but time-stamp services that are not registered.
type rules struct{}

// snapshotFor is the snapshot of a caller; nil for one without a token.
func snapshotFor(who audit.Principal) *signing.Snapshot {
	if who.UserID == "" {
		return nil
	}
	return &signing.Snapshot{UserID: who.UserID}
}

const registered = "http://tsp.example/tsp"

func (rules) PermitBy(policy.Set, policy.Action) error { return nil }
func (rules) PermitType(string, bool) error            { return nil }

// Snapshot finds a user with nothing.
func (rules) Snapshot(_ context.Context, userID string, now time.Time) (*signing.Snapshot, error) {
	return &signing.Snapshot{UserID: userID, At: now}, nil
}

func (rules) TSPAddress(ctx context.Context, requested string, present bool) (string, error) {
	s := policy.Service{Store: noServices{}, Rules: policy.Rules{TSPServices: []policy.TSPService{{Name: "first", URL: registered}}}}
	return s.TSPAddress(ctx, requested, present)
}

type noServices struct{ policy.Store }

func (noServices) TSPServices(context.Context) ([]policy.TSPService, error) { return nil, nil }

// openDesk starts a process over data. change may alter its service and its API.
func openDesk(t testing.TB, data string, now *clock, change func(*signing.Service, *API) *API) *desk {
	t.Helper()
	db, err := store.Open(t.Context(), store.Options{URL: "sqlite:" + filepath.Join(data, "tamga.db"), Now: now.now})
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	storage, err := blob.NewDir(filepath.Join(data, "objects"))
	if err != nil {
		t.Fatal(err)
	}
	spool, err := blob.NewSpool(filepath.Join(data, "spool"))
	if err != nil {
		t.Fatal(err)
	}
	d := &desk{db: db, clock: now, data: data}
	d.service = &signing.Service{
		Formats: sig.Formats{raw.New(), cades.New()},
		Keys:    &vault{t: t}, Policy: rules{}, Snapshots: rules{}, Spool: spool, Now: now.now,
		Prepared: store.Prepared{DB: db}, Blobs: blob.NewPrepared(blob.Options{Storage: storage, Plain: true}), Rand: rand.Reader,
		Container: func(b []byte) ([]*x509gost.Certificate, error) {
			m, err := cms.Parse(bytes.NewReader(b), int64(len(b)))
			if err != nil {
				return nil, err
			}
			var found []*x509gost.Certificate
			for _, der := range m.Certificates {
				c, err := x509gost.ParseCertificate(der)
				if err != nil {
					return nil, err
				}
				found = append(found, c)
			}
			return found, nil
		},
	}
	api := New(Deps{Signer: d.service, Certificates: certificates(nil), Anonymous: &Anonymous{}})
	if change != nil {
		api = change(d.service, api)
	}
	identify := func(ctx context.Context, token string) (context.Context, audit.Principal, error) {
		who := audit.Principal{UserID: token, Login: "login" + token}
		return WithSnapshot(ctx, snapshotFor(who)), who, nil
	}
	gate := &rest.Gate{
		Identify: func(_ context.Context, token string) (audit.Principal, error) {
			return audit.Principal{UserID: token, Login: "login" + token}, nil
		},
		IdentifyWith: identify, IdentifyConfirmed: identify,
		Audit: store.Audit{DB: db}, Log: slog.New(slog.DiscardHandler),
	}
	mux := http.NewServeMux()
	rest.MountAPI(mux, "/SignServer", gate, api.Routes())
	d.Server = httptest.NewServer(rest.Routed(mux))
	d.down = sync.OnceFunc(func() {
		d.Server.Close()
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(d.down)
	return d
}

func newDesk(t testing.TB, change func(*signing.Service, *API) *API) *desk {
	t.Helper()
	data := t.TempDir()
	storetest.SQLiteFile(t, filepath.Join(data, "tamga.db"))
	return openDesk(t, data, &clock{at: sigtest.Time}, change)
}

// again is another process over the same data, after this one has ended.
func (d *desk) again(t testing.TB) *desk {
	t.Helper()
	d.down()
	return openDesk(t, d.data, d.clock, nil)
}

// call sends a value as JSON, without a token.
func (d *desk) call(t testing.TB, method, path string, body any) (int, []byte) {
	t.Helper()
	text, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	return d.send(t, method, path, "", bytes.NewReader(text))
}

func (d *desk) send(t testing.TB, method, path, token string, body io.Reader) (int, []byte) {
	t.Helper()
	r, err := http.NewRequest(method, d.URL+"/SignServer"+path, body)
	if err != nil {
		t.Fatal(err)
	}
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := d.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, text
}

// object is any JSON object of a request.
type object map[string]any

// presigned is an answer of presign.
type presigned struct {
	HashValue     []byte
	CacheObjectID string `json:"CacheObjectId"`
	Cyrillic      string `json:"\u0421acheObjectId"`
}

// presign prepares a document. It must succeed.
func (d *desk) presign(t testing.TB, body object) presigned {
	t.Helper()
	status, text := d.call(t, "POST", "/api/signatures/presign", body)
	var p presigned
	if err := json.Unmarshal(text, &p); status != 200 || err != nil {
		t.Fatalf("presign: %d %s", status, text)
	}
	return p
}

// refused checks the shape of an error and returns its code and sentence.
func refused(t testing.TB, status int, text []byte) (code, says string) {
	t.Helper()
	var f rest.Failure
	if err := json.Unmarshal(text, &f); err != nil || status < 400 || f.Message != f.Error {
		t.Fatalf("not an error: %d %.300s", status, text)
	}
	return f.Error, f.Description
}

// bytesOf is the content of an answer that is a JSON string with Base64.
func bytesOf(t testing.TB, status int, text []byte) []byte {
	t.Helper()
	var b []byte
	if err := json.Unmarshal(text, &b); status != 200 || err != nil {
		t.Fatalf("%d %.300s", status, text)
	}
	return b
}

// kept lists the documents on the disk.
func (d *desk) kept(t testing.TB) int {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(d.data, "objects"))
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}

// valid checks a signed message by its certificate's root.
func valid(t testing.TB, f sig.Format, message, original []byte, p *sigtest.Party) {
	t.Helper()
	c := &sig.Check{Document: bytes.NewReader(message), Certificate: p.Certificate, Roots: p.Chain, At: sigtest.Time}
	if original != nil {
		c.Original = bytes.NewReader(original)
	}
	r, err := f.Verify(context.Background(), c)
	if err != nil {
		t.Fatal(err)
	}
	for _, code := range sigtest.Codes(r) {
		if code != "certificate-revocation-unknown" {
			t.Errorf("the result is not valid: %v", sigtest.Codes(r))
		}
	}
	if len(r.Signatures) != 1 {
		t.Errorf("%d signatures", len(r.Signatures))
	}
}

func reversed(b []byte) []byte {
	b = slices.Clone(b)
	slices.Reverse(b)
	return b
}

// inLines is Base64 as programs for Windows write it.
func inLines(b []byte) string {
	text := base64.StdEncoding.EncodeToString(b)
	var out strings.Builder
	for len(text) > 64 {
		out.WriteString(text[:64] + "\r\n")
		text = text[64:]
	}
	return out.String() + text + "\r\n"
}

var errBroken = errors.New("broken on purpose")
