// SPDX-License-Identifier: Apache-2.0

package store_test

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
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
	"tamga/internal/domain/document"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/lease"
	"tamga/internal/domain/notify"
	"tamga/internal/domain/operation"
	"tamga/internal/domain/retention"
	"tamga/internal/domain/signing"
	"tamga/internal/domain/user"
	"tamga/internal/domain/vault"
	"tamga/internal/sigtest"
	"tamga/internal/testsize"
	"tamga/pki/suite"
	"tamga/pki/tsp"
	"tamga/pki/x509gost"
	"tamga/sig"
	"tamga/sig/cades"
	"tamga/sig/pdf"
	"tamga/sig/xmldsig"
)

// The two time-stamp services of renewals, in their order.
const firstTSP, secondTSP = "http://first.test/", "http://second.test/"

// keeper is a process that renews documents, at times that the test sets. Every nine years there is another authority, whose
// certificates end after eleven.
type keeper struct {
	t     testing.TB
	who   audit.Principal
	roots []*x509gost.Certificate
	*retention.Service
	documents *document.Service
	signer    *signing.Service
	first     *sigtest.Party // authority of the first era

	mu       sync.Mutex
	now      time.Time
	eras     []*sigtest.Services
	starts   []time.Time
	down     map[string]bool // addresses of services that do not answer
	silent   bool            // no revocation data is to be had
	asked    []string        // services
	told     []notify.Event
	outcomes []string
	spent    time.Duration // in evidence
}

func newKeeper(t testing.TB, db *store.DB, dir string, number uint32, su *suite.Suite, inRow int64) *keeper {
	t.Helper()
	k := &keeper{t: t, now: sigtest.Time, down: map[string]bool{}, who: audit.Principal{UserID: "00000000-0000-4000-8000-00000000000a", Login: "owner"}}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	for n := range 4 {
		from := sigtest.Time.AddDate(9*n, 0, 0)
		root, sub, services := sigtest.Era(t, su, string(rune('A'+n)), from, from.AddDate(11, 0, 0))
		k.eras, k.starts, k.roots = append(k.eras, services), append(k.starts, from), append(k.roots, root.Certificate)
		if n == 0 {
			k.first = sub
		}
	}
	random := func(of byte) io.Reader {
		seed := [32]byte{of}
		binary.BigEndian.PutUint32(seed[1:], number)
		return &sharedRandom{from: rand.NewChaCha8(seed)}
	}
	storage, err := blob.NewDir(filepath.Join(dir, "blobs"))
	must(err)
	spool, err := blob.NewSpool(filepath.Join(dir, "spool"))
	must(err)
	ring, err := vault.NewRing("k", map[string][]byte{"k": bytes.Repeat([]byte{1}, 32)}, random(1))
	must(err)
	options := blob.Options{Storage: storage, Ring: ring, InRow: inRow, Keys: store.MasterKeys{DB: db}}
	rows := store.Documents{DB: db}
	k.documents = &document.Service{
		Store: rows, Uploads: rows, Retention: rows, Bytes: blob.NewDocuments(options), Now: k.clock, Rand: random(2), Rules: document.Rules{InRow: inRow},
		Digest: func(context.Context, string) (document.Digest, error) {
			return document.Digest{Name: suite.Streebog256.Name, New: suite.Streebog256.New}, nil
		},
	}
	k.signer = &signing.Service{
		Formats: sig.Formats{cades.New(), pdf.New(), xmldsig.New()}, Spool: spool, Now: k.clock, Rand: random(3), Evidence: k,
		Anchors: func(context.Context) ([]*x509gost.Certificate, []*x509gost.Certificate, error) {
			return k.roots, nil, nil
		},
	}
	acts := store.Operations{DB: db}
	operations, err := operation.New(operation.Settings{Life: time.Hour, Lease: time.Minute, Keep: time.Hour}, operation.Deps{
		Store: acts, Lists: acts, Vault: ring, Audit: store.Audit{DB: db}, Now: k.clock, Rand: random(4),
	})
	must(err)
	operations.Use(operation.DocumentDeps{Documents: operation.DocumentStore{Service: k.documents}, Blobs: blob.NewPrepared(options)})
	k.Service = &retention.Service{
		Store: store.Retentions{DB: db}, Documents: k.documents, Operations: operations, Signer: k.signer, Now: k.clock, Rand: random(5), Events: k,
		Services: func(context.Context) ([]string, error) { return []string{firstTSP, secondTSP}, nil },
		Counted: func(outcome string) {
			k.mu.Lock()
			defer k.mu.Unlock()
			k.outcomes = append(k.outcomes, outcome)
		},
	}
	must(operations.Add(k.Service.OperationKind()))
	return k
}

// registered adds the owner of the documents.
func (k *keeper) registered(db *store.DB) {
	k.t.Helper()
	users := store.Users{DB: db}
	if err := errors.Join(users.AddGroup(k.t.Context(), user.Group{Name: "Default"}), users.AddUser(k.t.Context(), user.User{ID: k.who.UserID, Login: "owner", Group: "Default"}, "owner")); err != nil {
		k.t.Fatal(err)
	}
}

func (k *keeper) clock() time.Time {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.now
}

func (k *keeper) pass(years, months, days int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.now = k.now.AddDate(years, months, days)
}

func (k *keeper) wait(d time.Duration) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.now = k.now.Add(d)
}

func (k *keeper) must(err error) {
	k.t.Helper()
	if err != nil {
		k.t.Fatal(err)
	}
}

// Emit implements retention.Events.
func (k *keeper) Emit(_ context.Context, e notify.Event) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.told = append(k.told, e)
	return nil
}

// TimeStamp implements sig.Evidence by the newest authority.
func (k *keeper) TimeStamp(ctx context.Context, address string, d suite.Digest) (*tsp.Verified, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	began := time.Now()
	defer func() { k.spent += time.Since(began) }()
	k.asked = append(k.asked, address)
	if k.down[address] {
		return nil, &sig.ErrEvidence{What: "time stamp", Text: "the service does not answer"}
	}
	n := len(k.eras) - 1
	for ; k.starts[n].After(k.now); n-- {
	}
	k.eras[n].Now = k.now
	return k.eras[n].TimeStamp(ctx, address, d)
}

// Revocation implements sig.Evidence.
func (k *keeper) Revocation(ctx context.Context, cert, issuer *x509gost.Certificate, notBefore time.Time) (p sig.Proof, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	began := time.Now()
	defer func() { k.spent += time.Since(began) }()
	if k.silent {
		return sig.Proof{}, &sig.ErrEvidence{What: "revocation", Text: "the responder does not answer"}
	}
	for _, era := range k.eras {
		era.Now = k.now
		if p, err = era.Revocation(ctx, cert, issuer, notBefore); err == nil || !strings.Contains(err.Error(), "unknown to the test") {
			return p, err
		}
	}
	return p, err
}

// Issuer implements sig.Evidence.
func (k *keeper) Issuer(ctx context.Context, cert *x509gost.Certificate) (c *x509gost.Certificate, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	began := time.Now()
	defer func() { k.spent += time.Since(began) }()
	for _, era := range k.eras {
		if c, err = era.Issuer(ctx, cert); err == nil {
			break
		}
	}
	return c, err
}

// signed returns a signature of a level by a certificate of one year.
func (k *keeper) signed(level string, more sig.Params) []byte {
	k.t.Helper()
	signer := k.first.Issue(k.t, k.first.Suite, "Signer", func(c *x509gost.Template) { c.NotBefore, c.NotAfter = sigtest.Time, sigtest.Time.AddDate(1, 0, 0) })
	params := sig.Params{"CADESType": level, "TSPAddress": firstTSP}
	for name, value := range more {
		params[name] = value
	}
	made, err := sigtest.Try(k.t, cades.New(), signer, &sig.Job{Document: sigtest.Document([]byte("an agreement")), Params: params, Evidence: k})
	k.must(err)
	return made
}

// kept stores a document and keeps it for years.
func (k *keeper) kept(content []byte, years int) string {
	k.t.Helper()
	id := saveDocument(k.t, k.documents, k.who, "agreement.sig", string(content))
	_, err := k.Set(k.t.Context(), k.who, id, k.clock().AddDate(years, 0, 0))
	k.must(err)
	return id
}

// rounds has the process look for what is due.
func (k *keeper) round() {
	k.t.Helper()
	k.must(k.RenewDue(k.t.Context()))
}

// content reads a document.
func (k *keeper) content(id string) []byte {
	k.t.Helper()
	d, err := k.documents.Open(k.t.Context(), k.who, id)
	k.must(err)
	var out bytes.Buffer
	_, err = d.WriteTo(&out)
	k.must(errors.Join(err, d.Close()))
	sum := suite.Streebog256.New()
	sum.Write(out.Bytes())
	if !bytes.Equal(sum.Sum(nil), d.Info.Hash) {
		k.t.Errorf("the hash of document %s is of another content", id)
	}
	return out.Bytes()
}

// verified verifies a document by itself.
func (k *keeper) verified(id string, at time.Time) *sig.Report {
	k.t.Helper()
	check := &sig.Check{Document: sigtest.Document(k.content(id)), Roots: k.roots, At: at, Describe: true}
	r, err := cades.New().Verify(k.t.Context(), check)
	k.must(err)
	return r
}

// stamps returns how many archive time stamps a document has.
func (k *keeper) stamps(id string) (n int) {
	k.t.Helper()
	for _, s := range k.verified(id, k.clock()).Signatures[0].TimeStamps {
		if s.Kind == "archive" && s.Passed() {
			n++
		}
	}
	return n
}

func (k *keeper) row(id string) retention.Retained {
	k.t.Helper()
	r, err := k.Of(k.t.Context(), k.who, id)
	k.must(err)
	return r
}

// A signature is kept for thirty years. The loop renews it four times, in the third time by the second service, and in the
// fourth after months without any.
func TestRetentionForThirtyYears(t *testing.T) {
	for _, engine := range engines(t) {
		for _, inRow := range []int64{0, 64 << 10} {
			t.Run(fmt.Sprintf("%s/%d", engine.name, inRow), func(t *testing.T) {
				t.Parallel()
				db := storetest.Open(t, engine.reused(t))
				k := newKeeper(t, db, t.TempDir(), 0, suite.GOST2012x256, inRow)
				k.registered(db)
				id := k.kept(k.signed("T", nil), 30)
				var renewed []time.Time
				last := time.Time{}
				outage := 0
				for end := sigtest.Time.AddDate(30, 0, -31); k.clock().Before(end); k.pass(0, 0, 30) {
					k.mu.Lock()
					k.down[firstTSP] = len(renewed) == 2
					k.down[secondTSP] = false
					if len(renewed) == 3 && outage < 3 {
						k.down[firstTSP], k.down[secondTSP] = true, true
					}
					k.mu.Unlock()
					k.round()
					r := k.row(id)
					if r.RenewedAt.After(last) {
						last = r.RenewedAt
						renewed = append(renewed, last)
					}
					if r.Failure != "" {
						outage++
						if r.Refused || !strings.Contains(r.Failure, "does not answer") || !r.Due(k.clock()) {
							t.Errorf("during the outage: %+v", r)
						}
					}
					if r.GoodUntil.Before(k.clock()) {
						t.Fatalf("the time stamp has ended: %+v", r)
					}
				}
				if len(renewed) != 4 || outage != 3 || k.stamps(id) != 4 {
					t.Errorf("%d renewals at %v, %d days of outage, %d time stamps", len(renewed), renewed, outage, k.stamps(id))
				}
				r := k.verified(id, k.clock())
				if s := &r.Signatures[0]; !r.Passed() || s.Level != "A" || !s.BestTime.Equal(sigtest.Time) {
					t.Errorf("after thirty years: %v, level %s, %v: %+v", r.Verdict(), s.Level, s.BestTime, s.Findings)
				}
				if want := []string{retention.Renewed, retention.Renewed, retention.Renewed, retention.Delayed, retention.Delayed, retention.Delayed, retention.Renewed}; !slices.Equal(k.outcomes, want) {
					t.Errorf("outcomes %v", k.outcomes)
				}
				if !slices.Contains(k.asked, secondTSP) {
					t.Error("the second service was not asked")
				}
				for _, e := range k.told {
					if e.Type != notify.DocumentRenewed || e.UserID != k.who.UserID || !strings.Contains(e.Detail, id) {
						t.Errorf("event %+v", e)
					}
				}
				// Its owner may not remove it before the end, and may after it.
				if err := k.documents.Delete(t.Context(), k.who, id); !fault.Is(err, fault.InvalidObjectState) || !strings.Contains(err.Error(), "retention until 2055-03-14") {
					t.Errorf("removed: %v", err)
				}
				k.pass(0, 1, 0)
				k.round()
				if _, err := k.Of(t.Context(), k.who, id); !fault.Is(err, fault.NotFound) {
					t.Errorf("after its end: %v", err)
				}
				k.must(k.documents.Delete(t.Context(), k.who, id))
				// Each renewal is an operation and an audit entry, and nothing but the present content stays.
				list, _, err := store.Audit{DB: db}.Read(t.Context(), store.AuditFilter{Operation: retention.AuditRenewal}, 10)
				if k.must(err); len(list) != 4 || list[0].Principal.UserID != k.who.UserID {
					t.Errorf("%d audit entries", len(list))
				}
				k.must(k.documents.Sweep(t.Context()))
				room, err := k.documents.Uploads.Room(t.Context(), k.who.UserID, document.Quotas{All: document.Quota{Objects: 9, Bytes: 9}, Own: document.Quota{Objects: 9, Bytes: 9}})
				if k.must(err); room != (document.Quota{Objects: 9, Bytes: 9}) {
					t.Errorf("something counts in the quota: %+v", room)
				}
			})
		}
	}
}

// Who may set, change and end a retention, and of which documents.
func TestRetentionRules(t *testing.T) {
	db := storetest.SQLite(t)
	k := newKeeper(t, db, t.TempDir(), 0, suite.ECDSAP256, 64<<10)
	k.registered(db)
	ctx := t.Context()
	other := audit.Principal{UserID: "00000000-0000-4000-8000-00000000000b"}
	signed := k.signed("BES", nil)
	is := func(what string, err error, code, text string) {
		t.Helper()
		if !fault.Is(err, code) || !strings.Contains(err.Error(), text) {
			t.Errorf("%s: %v", what, err)
		}
	}
	set := func(who audit.Principal, id string, until time.Time) error {
		_, err := k.Set(ctx, who, id, until)
		return err
	}
	in := k.clock().AddDate
	text := saveDocument(t, k.documents, k.who, "text.txt", "only a text")
	is("a text", set(k.who, text, in(1, 0, 0)), fault.InvalidContent, "not a signed document")
	id := saveDocument(t, k.documents, k.who, "a.sig", string(signed))
	is("of another user", set(other, id, in(1, 0, 0)), fault.NotFound, "")
	is("over", set(k.who, id, k.clock()), fault.InvalidParameters, "choose a time after now")
	is("too far", set(k.who, id, in(101, 0, 0)), fault.InvalidParameters, "at most until")
	is("no retention", k.End(ctx, k.who, id), fault.NotFound, "has no retention")
	k.must(set(k.who, id, in(10, 0, 0)))
	k.must(set(k.who, id, in(2, 0, 0))) // it is the owner's own
	is("removed", k.documents.Delete(ctx, k.who, id), fault.InvalidObjectState, "has a retention until")
	yes := true
	is("made temporary", k.documents.Patch(ctx, k.who, id, document.Change{Temporary: &yes}), fault.InvalidObjectState, "has a retention until")
	is("ended by another user", k.End(ctx, other, id), fault.NotFound, "")
	k.must(k.End(ctx, k.who, id))
	k.must(k.documents.Delete(ctx, k.who, id))

	// By the policy of the group.
	id = k.kept(signed, 5)
	row := k.row(id)
	row.Origin = retention.ByPolicy
	k.must(k.Store.PutRetention(ctx, &row))
	is("shortened", set(k.who, id, in(2, 0, 0)), fault.AccessDenied, "only an operator")
	k.must(set(k.who, id, in(6, 0, 0)))
	is("ended", k.End(ctx, k.who, id), fault.AccessDenied, "only an operator")
	if got := k.row(id); got.Origin != retention.ByPolicy || !got.KeepUntil.Equal(in(6, 0, 0)) {
		t.Errorf("%+v", got)
	}
	k.must(k.EndFor(ctx, id))
	k.must(k.documents.Delete(ctx, k.who, id))

	// A temporary document becomes permanent.
	b := k.documents.NewBatch(k.who)
	id, err := b.Save(ctx, document.Description{Name: "t.sig", Temporary: true}, bytes.NewReader(signed))
	k.must(errors.Join(err, b.Record(ctx)))
	k.must(set(k.who, id, in(1, 0, 0)))
	k.pass(0, 0, 3)
	k.must(k.documents.Sweep(ctx))
	if i, err := k.documents.Info(ctx, k.who, id); err != nil || i.Temporary() || !i.Retained(k.clock()) {
		t.Errorf("%+v, %v", i, err)
	}
	// With its owner goes the retention.
	k.must(store.Exec(db, ctx, "DELETE FROM users WHERE id = $1", k.who.UserID))
	if _, found, err := k.Store.Retention(ctx, id); err != nil || found {
		t.Errorf("without its owner: %t, %v", found, err)
	}
}

// A failure that cannot pass is told once and tried again once a day. One that may pass does not hold up other documents for
// longer than three attempts, and is tried again until it passes.
func TestRetentionFailures(t *testing.T) {
	db := storetest.SQLite(t)
	k := newKeeper(t, db, t.TempDir(), 0, suite.ECDSAP256, 64<<10)
	k.registered(db)
	broken := bytes.Clone(k.signed("T", nil))
	at := bytes.Index(broken, []byte("an agreement"))
	broken[at] ^= 1
	bad := k.kept(broken, 10)
	for range 4 {
		k.round()
		if r := k.row(bad); !r.Refused || r.Failure == "" || !r.DueAt.Equal(k.clock().Add(24*time.Hour)) || !r.RenewAt.Before(r.DueAt) {
			t.Errorf("%+v", r)
		}
		k.pass(0, 0, 1)
	}
	if len(k.told) != 1 || k.told[0].Type != notify.DocumentRenewalFailed || k.told[0].Reason == "" || len(k.outcomes) != 4 {
		t.Errorf("%+v, outcomes %v", k.told, k.outcomes)
	}
	f, err := k.Figures(t.Context())
	if k.must(err); f != (retention.Figures{Retained: 1, Due: 1, Overdue: 1, Refused: 1, Oldest: sigtest.Time}) {
		t.Errorf("%+v", f)
	}
	k.must(k.EndFor(t.Context(), bad))

	// Five documents while nothing answers: each round makes three attempts, whose pauses grow.
	k.outcomes, k.silent = nil, true
	var ids []string
	for range 5 {
		ids = append(ids, k.kept(k.signed("BES", nil), 5))
	}
	began := k.clock()
	for range 10 {
		n := len(k.outcomes)
		k.round()
		if made := len(k.outcomes) - n; made > 3 {
			t.Errorf("%d attempts in a round", made)
		}
		k.wait(time.Minute)
	}
	for _, id := range ids {
		if r := k.row(id); r.Refused || r.Attempts < 2 || r.Attempts > 5 || !strings.Contains(r.Failure, "does not answer") {
			t.Errorf("%d attempts in %v: %+v", r.Attempts, k.clock().Sub(began), r)
		}
	}
	k.wait(time.Hour)
	k.silent = false
	k.round()
	for _, id := range ids {
		if r := k.row(id); r.Failure != "" || r.Attempts != 0 || k.stamps(id) != 1 {
			t.Errorf("after the outage: %+v", r)
		}
	}
}

// A detached signature is renewed with its document if the store has it, and otherwise as it was made.
func TestRetentionOfDetached(t *testing.T) {
	db := storetest.SQLite(t)
	k := newKeeper(t, db, t.TempDir(), 0, suite.ECDSAP256, 64<<10)
	k.registered(db)
	content := k.signed("T", sig.Params{"IsDetached": "True"})
	of := saveDocument(t, k.documents, k.who, "agreement.txt", "an agreement")
	wrong := saveDocument(t, k.documents, k.who, "other.txt", "another text")
	var ids []string
	for _, parent := range []string{of, wrong, ""} {
		b := k.documents.NewBatch(k.who)
		id, err := b.Save(t.Context(), document.Description{Name: "a.sig", Parent: parent}, bytes.NewReader(content))
		k.must(errors.Join(err, b.Record(t.Context())))
		_, err = k.Set(t.Context(), k.who, id, k.clock().AddDate(20, 0, 0))
		k.must(err)
		ids = append(ids, id)
	}
	k.round()
	for _, id := range ids {
		r := k.row(id)
		report, err := cades.New().Verify(t.Context(), &sig.Check{Document: sigtest.Document(k.content(id)), Original: sigtest.Document([]byte("an agreement")), Roots: k.roots, At: k.clock().AddDate(10, 0, 0)})
		if k.must(err); r.Failure != "" || !report.Passed() || report.Signatures[0].Level != "A" {
			t.Errorf("%+v, %v", r, report.Verdict())
		}
	}
}

// The policy of a group keeps what its users store: permanent documents, of which those without a signature lose it again.
func TestRetentionByPolicy(t *testing.T) {
	for _, engine := range engines(t) {
		for _, inRow := range []int64{0, 64 << 10} {
			t.Run(fmt.Sprintf("%s/%d", engine.name, inRow), func(t *testing.T) {
				t.Parallel()
				db := storetest.Open(t, engine.reused(t))
				k := newKeeper(t, db, t.TempDir(), 0, suite.ECDSAP256, inRow)
				k.registered(db)
				k.who.Group = "Default"
				k.documents.KeepFor = func(who audit.Principal) time.Duration {
					if who.Group == "Default" {
						return 10 * 365 * 24 * time.Hour
					}
					return 0
				}
				k.documents.Kept = k.Service.Kept
				signed := k.signed("T", nil)
				save := func(content []byte, temporary bool) string {
					b := k.documents.NewBatch(k.who)
					id, err := b.Save(t.Context(), document.Description{Name: "x", Temporary: temporary}, bytes.NewReader(content))
					k.must(errors.Join(err, b.Record(t.Context())))
					return id
				}
				in, err := k.documents.NewIntake(t.Context(), k.who)
				k.must(err)
				_, err = in.Write(signed)
				k.must(errors.Join(err, in.Finish()))
				list, err := k.documents.Keep(t.Context(), k.who, []document.New{{Content: in}})
				k.must(err)
				kept := []string{list[0].ID, save(signed, false)}
				text, temporary := save([]byte("a text"), false), save(signed, true)
				for _, id := range append(kept, text) {
					if err := k.documents.Delete(t.Context(), k.who, id); !fault.Is(err, fault.InvalidObjectState) {
						t.Errorf("removed: %v", err)
					}
				}
				k.round()
				for _, id := range kept {
					if r := k.row(id); r.Origin != retention.ByPolicy || !r.KeepUntil.Equal(sigtest.Time.Add(10*365*24*time.Hour)) || k.stamps(id) != 1 {
						t.Errorf("%+v", r)
					}
				}
				for _, id := range []string{text, temporary} {
					if r, err := k.Of(t.Context(), k.who, id); !fault.Is(err, fault.NotFound) {
						t.Errorf("kept: %+v, %v", r, err)
					}
					k.must(k.documents.Delete(t.Context(), k.who, id))
				}
				if len(k.told) != 2 || len(k.outcomes) != 2 {
					t.Errorf("%+v, %v", k.told, k.outcomes)
				}
				k.who.Group = "Other"
				k.must(k.documents.Delete(t.Context(), k.who, save(signed, false)))
			})
		}
	}
}

// byPolicy has the policy of the group keep what the owner stores for ten years.
func (k *keeper) byPolicy() {
	k.documents.KeepFor = func(audit.Principal) time.Duration { return 10 * 365 * 24 * time.Hour }
	k.documents.Kept = k.Service.Kept
}

// unsignedPDF returns a PDF document of one page.
func unsignedPDF() []byte {
	var out bytes.Buffer
	out.WriteString("%PDF-1.7\n")
	var at []int
	for i, object := range []string{"<< /Type /Catalog /Pages 2 0 R >>", "<< /Type /Pages /Kids [3 0 R] /Count 1 >>", "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 9 9] >>"} {
		at = append(at, out.Len())
		fmt.Fprintf(&out, "%d 0 obj\n%s\nendobj\n", i+1, object)
	}
	xref := out.Len()
	out.WriteString("xref\n0 4\n0000000000 65535 f \n")
	for _, place := range at {
		fmt.Fprintf(&out, "%010d 00000 n \n", place)
	}
	fmt.Fprintf(&out, "trailer\n<< /Size 4 /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n", xref)
	return out.Bytes()
}

// levelless is a format without its higher levels.
type levelless struct{ sig.Described }

// The policy lets go of documents that have no signature, whatever their format, and of no others.
func TestRetentionOfUnsigned(t *testing.T) {
	db := storetest.SQLite(t)
	k := newKeeper(t, db, t.TempDir(), 0, suite.ECDSAP256, 64<<10)
	k.registered(db)
	k.byPolicy()
	for name, content := range map[string][]byte{"a.pdf": unsignedPDF(), "a.xml": []byte("<a>an agreement</a>")} {
		id := saveDocument(t, k.documents, k.who, name, string(content))
		if _, err := k.Set(t.Context(), k.who, id, k.clock().AddDate(20, 0, 0)); !fault.Is(err, fault.InvalidContent) || !errors.Is(err, sig.ErrUnsigned) {
			t.Errorf("%s: set by its owner: %v", name, err)
		}
		k.round()
		if r, err := k.Of(t.Context(), k.who, id); !fault.Is(err, fault.NotFound) {
			t.Errorf("%s: kept: %+v, %v", name, r, err)
		}
		k.must(k.documents.Delete(t.Context(), k.who, id))
	}
	if len(k.told) > 0 || len(k.asked) > 0 {
		t.Errorf("%+v, asked %q", k.told, k.asked)
	}
	signed := k.signed("BES", nil)
	k.signer.Formats = sig.Formats{levelless{cades.New()}}
	id := saveDocument(t, k.documents, k.who, "a.sig", string(signed))
	k.round()
	if r := k.row(id); !r.Refused || !strings.Contains(r.Failure, "get no archive time stamps") || !r.KeepUntil.After(k.clock()) {
		t.Errorf("without an archive level: %+v", r)
	}
	if err := k.documents.Delete(t.Context(), k.who, id); !fault.Is(err, fault.InvalidObjectState) || len(k.told) != 1 {
		t.Errorf("removed: %v; told %+v", err, k.told)
	}
}

// The policy keeps a temporary document from the moment it becomes permanent: by a change of it, or by a retention of its owner's.
func TestRetentionOfMadePermanent(t *testing.T) {
	db := storetest.SQLite(t)
	k := newKeeper(t, db, t.TempDir(), 0, suite.ECDSAP256, 64<<10)
	k.registered(db)
	k.byPolicy()
	ctx := t.Context()
	id := saveTemporary(k)
	k.wait(time.Hour)
	name, permanent := "b.sig", false
	k.must(k.documents.Patch(ctx, k.who, id, document.Change{Name: &name}))
	k.must(k.documents.Delete(ctx, k.who, saveTemporary(k)))
	if _, err := k.Set(ctx, k.who, id, k.clock().AddDate(0, 0, 1)); !fault.Is(err, fault.AccessDenied) {
		t.Errorf("kept shorter than the policy wants: %v", err)
	}
	if i, err := k.documents.Info(ctx, k.who, id); err != nil || !i.Temporary() || !i.KeepUntil.IsZero() {
		t.Errorf("after the refusal: %+v, %v", i, err)
	}
	k.must(k.documents.Patch(ctx, k.who, id, document.Change{Temporary: &permanent}))
	if r := k.row(id); r.Origin != retention.ByPolicy || !r.KeepUntil.Equal(k.clock().Add(10*365*24*time.Hour)) || !r.DueAt.Equal(k.clock()) {
		t.Errorf("%+v", r)
	}
	if err := k.documents.Delete(ctx, k.who, id); !fault.Is(err, fault.InvalidObjectState) {
		t.Errorf("removed: %v", err)
	}
	// A later change does not begin it again.
	until := k.row(id).KeepUntil
	k.wait(time.Hour)
	k.must(k.documents.Patch(ctx, k.who, id, document.Change{Temporary: &permanent}))
	if r := k.row(id); !r.KeepUntil.Equal(until) {
		t.Errorf("kept until %v, want %v", r.KeepUntil, until)
	}
	other := saveTemporary(k)
	if r, err := k.Set(ctx, k.who, other, k.clock().AddDate(20, 0, 0)); err != nil || r.Origin != retention.ByPolicy {
		t.Errorf("%+v, %v", r, err)
	}
}

// meanwhile is a store with something that happens after the next claim.
type meanwhile struct {
	retention.Store
	then func()
}

func (m *meanwhile) ClaimRenewal(ctx context.Context, l lease.Lease, now time.Time, pause, longest time.Duration) (retention.Retained, bool, error) {
	r, found, err := m.Store.ClaimRenewal(ctx, l, now, pause, longest)
	if then := m.then; found && then != nil {
		m.then = nil
		then()
	}
	return r, found, err
}

// The end of a retention is changed while its renewal is on its way, and the end that it has now counts.
func TestRetentionChangedMeanwhile(t *testing.T) {
	db := storetest.SQLite(t)
	k := newKeeper(t, db, t.TempDir(), 0, suite.ECDSAP256, 64<<10)
	k.registered(db)
	m := &meanwhile{Store: k.Store}
	k.Store = m
	until := func(id string, end time.Time) {
		m.then = func() {
			_, err := k.Set(t.Context(), k.who, id, end)
			k.must(err)
		}
	}
	// Longer, when it was over.
	id := k.kept(k.signed("T", nil), 1)
	k.round()
	k.pass(1, 0, 0)
	end := k.clock().AddDate(2, 0, 0)
	until(id, end)
	k.round()
	if r := k.row(id); !r.KeepUntil.Equal(end) || !r.DueAt.Equal(end) || r.Attempts != 0 || m.then != nil {
		t.Errorf("longer: %+v", r)
	}
	if err := k.documents.Delete(t.Context(), k.who, id); !fault.Is(err, fault.InvalidObjectState) {
		t.Errorf("removed: %v", err)
	}
	// Shorter, while it is renewed, and while it fails.
	k.now = sigtest.Time
	id = k.kept(k.signed("T", nil), 20)
	end = k.clock().AddDate(1, 0, 0)
	until(id, end)
	k.round()
	if r := k.row(id); !r.DueAt.Equal(end) || r.GoodUntil.IsZero() || m.then != nil {
		t.Errorf("shorter: %+v", r)
	}
	broken := bytes.Clone(k.signed("T", nil))
	broken[bytes.Index(broken, []byte("an agreement"))] ^= 1
	id = k.kept(broken, 20)
	end = k.clock().Add(time.Hour)
	until(id, end)
	k.round()
	if r := k.row(id); !r.DueAt.Equal(end) || !r.Refused || m.then != nil {
		t.Errorf("shorter and refused: %+v", r)
	}
}

// A service that has no new certificate when its old one is about to end, and even after that, is not asked again and again.
func TestRetentionSameEnd(t *testing.T) {
	db := storetest.SQLite(t)
	k := newKeeper(t, db, t.TempDir(), 0, suite.ECDSAP256, 64<<10)
	k.registered(db)
	k.eras, k.starts = k.eras[:1], k.starts[:1]
	id := k.kept(k.signed("T", nil), 30)
	k.round()
	end := k.row(id).GoodUntil
	var pauses []time.Duration
	for range 6 {
		last := k.row(id)
		k.wait(last.RenewAt.Sub(k.clock()))
		k.round()
		r := k.row(id)
		if r.Failure != "" || !r.GoodUntil.Equal(end) {
			t.Fatalf("%+v", r)
		}
		pauses = append(pauses, r.RenewAt.Sub(k.clock()))
		if !r.RenewAt.Before(end) {
			break
		}
	}
	days := 24 * time.Hour
	if want := []time.Duration{120 * days, 40 * days, 19 * days, days}; !slices.Equal(pauses, want) {
		t.Errorf("pauses %v, want %v", pauses, want)
	}
}

// saveTemporary stores a signed temporary document.
func saveTemporary(k *keeper) string {
	k.t.Helper()
	b := k.documents.NewBatch(k.who)
	id, err := b.Save(k.t.Context(), document.Description{Name: "t.sig", Temporary: true}, bytes.NewReader(k.signed("BES", nil)))
	k.must(errors.Join(err, b.Record(k.t.Context())))
	return id
}

// The first time stamp of an owner's retention obeys the quota. Any other renewal is not refused by it, and counts in it.
func TestRetentionQuota(t *testing.T) {
	db := storetest.SQLite(t)
	k := newKeeper(t, db, t.TempDir(), 0, suite.ECDSAP256, 0)
	k.registered(db)
	content := k.signed("T", nil)
	k.documents.Rules.Own = document.Quota{Objects: 1, Bytes: int64(len(content))}
	id := k.kept(content, 20)
	k.round()
	if r := k.row(id); k.stamps(id) != 0 || !r.Refused || !strings.Contains(r.Failure, "quota") {
		t.Fatalf("of its owner: %+v", r)
	}
	k.pass(0, 0, 1)
	k.documents.Rules.Own.Objects, k.documents.Rules.Own.Bytes = 2, 1<<20
	k.round()
	k.wait(2 * time.Hour)
	k.must(k.documents.Sweep(t.Context()))
	k.documents.Rules.Own = document.Quota{Objects: 1, Bytes: int64(len(content))}
	k.pass(10, 8, 0)
	k.round()
	if k.stamps(id) != 2 {
		t.Fatalf("not renewed: %+v", k.row(id))
	}
	k.wait(2 * time.Hour)
	k.must(k.documents.Sweep(t.Context()))
	own := document.Quota{Objects: 10, Bytes: 1 << 30}
	room, err := k.documents.Uploads.Room(t.Context(), k.who.UserID, document.Quotas{All: own, Own: own})
	if k.must(err); room.Objects != 9 || room.Bytes != own.Bytes-int64(len(k.content(id))) {
		t.Errorf("room for %+v, the document has %d bytes", room, len(k.content(id)))
	}
	b := k.documents.NewBatch(k.who)
	if _, err := b.Save(t.Context(), document.Description{Name: "more"}, strings.NewReader("more")); !fault.Is(err, fault.InvalidObjectState) {
		t.Errorf("a further document: %v", err)
	}
}

// Two processes renew each document once.
func TestRetentionTogether(t *testing.T) {
	for _, engine := range engines(t) {
		t.Run(engine.name, func(t *testing.T) {
			t.Parallel()
			db, dir := storetest.Open(t, engine.reused(t)), t.TempDir()
			one := newKeeper(t, db, dir, 0, suite.GOST2012x256, 64<<10)
			two := newKeeper(t, db, dir, 1, suite.GOST2012x256, 64<<10)
			one.registered(db)
			content := one.signed("A", nil)
			var ids []string
			for range 8 {
				ids = append(ids, one.kept(content, 20))
			}
			one.asked = nil
			var both sync.WaitGroup
			for _, k := range []*keeper{one, two, one, two} {
				both.Go(func() {
					if err := k.RenewDue(t.Context()); err != nil {
						t.Error(err)
					}
				})
			}
			both.Wait()
			if n := len(one.asked) + len(two.asked); n != len(ids) {
				t.Errorf("%d time stamps for %d documents", n, len(ids))
			}
			for _, id := range ids {
				if r := one.row(id); one.stamps(id) != 2 || r.Failure != "" || r.GoodUntil.IsZero() {
					t.Errorf("%d time stamps, %+v", one.stamps(id), r)
				}
			}
			// A process that was frozen for longer than its lease loses what it made.
			id := ids[0]
			one.must(store.Exec(db, t.Context(), "UPDATE retained SET due_at = 1 WHERE document = $1", id))
			frozen := one.Service.Services
			one.Service.Services = func(ctx context.Context) ([]string, error) {
				two.wait(2 * time.Minute)
				two.round()
				return frozen(ctx)
			}
			one.round()
			if n := one.stamps(id); n != 3 {
				t.Errorf("%d time stamps after a lost lease", n)
			}
		})
	}
}

// renewalOrder in the environment makes TestKilledRenewalProcess a process that is killed. Its value is a killOrder.
const renewalOrder = "TAMGA_TEST_KILLED_RENEWAL"

func TestKilledRenewalProcess(t *testing.T) {
	text := os.Getenv(renewalOrder)
	if text == "" {
		return
	}
	var o killOrder
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		t.Fatal(err)
	}
	db, err := store.Open(t.Context(), store.Options{URL: o.URL, Now: func() time.Time { return o.Now }})
	if err != nil {
		t.Fatal(err)
	}
	at, begin := dies(o.At)
	store.OnStatements(db, at)
	k := newKeeper(t, db, o.Dir, o.Process, suite.GOST2012x256, int64(o.Transition))
	k.now = o.Now
	begin()
	k.round()
	k.must(os.WriteFile(o.Done, []byte("done"), 0o600))
}

// TestKilledRenewal kills a process by SIGKILL before and after each statement and commit of a renewal. The document has its old
// content or the new one, the next process renews it once, and nothing else stays. In the short form some points have their turn.
func TestKilledRenewal(t *testing.T) {
	for _, engine := range engines(t) {
		for _, inRow := range []int64{0, 64 << 10} {
			t.Run(fmt.Sprintf("%s/%d", engine.name, inRow), func(t *testing.T) {
				t.Parallel()
				url, dir := engine.reused(t), t.TempDir()
				pool, err := sql.Open(engine.driver, engine.source(url))
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { pool.Close() })
				killing := &killer{engine: engine, url: url, dir: dir, pool: pool, stage: &stage{desk: &desk{t: t}}}
				db := storetest.Open(t, url)
				store.OnStatements(db, killing.at)
				k := newKeeper(t, db, dir, 0, suite.GOST2012x256, inRow)
				k.registered(db)
				id := k.kept(k.signed("T", nil), 9)
				killing.listening(true)
				k.round()
				killing.listening(false)
				points := len(killing.points)
				if points < 20 || k.stamps(id) != 1 {
					t.Fatalf("%d points: %q", points, killing.points)
				}
				step := 1
				if testsize.Of() < testsize.Whole {
					step = points/6 + 1
				}
				stamps := 1
				for point := points - 1; point >= 0; point -= step {
					label := fmt.Sprintf("killed at point %d, %s", point, killing.points[point])
					k.wait(time.Hour)
					k.must(store.Exec(db, t.Context(), "UPDATE retained SET renew_at = $1, due_at = $1", k.clock().UnixMilli()))
					before := k.content(id)
					killing.processes++
					done := filepath.Join(dir, "done")
					o := killOrder{URL: killing.urlOfKilled(), Dir: dir, Done: done, Process: killing.processes, Now: k.clock(), At: point, Transition: int(inRow)}
					if killing.dying("TestKilledRenewalProcess", renewalOrder, o, done, label) { // this process counts a few points more
						k.must(os.Remove(done))
					}
					stamps++
					after := k.content(id)
					if n := k.stamps(id); !bytes.Equal(before, after) && n != stamps {
						t.Errorf("%s: %d time stamps", label, n)
					}
					k.wait(2 * time.Minute)
					k.round()
					if n := k.stamps(id); n != stamps {
						t.Errorf("%s: %d time stamps, want %d: %+v", label, n, stamps, k.row(id))
						stamps = n
					}
				}
				// What the dead have left goes with the sweep.
				k.wait(3 * time.Hour)
				k.must(k.documents.Sweep(t.Context()))
				killing.counts("at the end", "records of documents", 1, "SELECT COUNT(*) FROM documents")
				killing.counts("at the end", "bytes in the quota", int64(len(k.content(id))), "SELECT CAST(SUM(bytes) AS BIGINT) FROM document_shares")
				objects := 0
				k.must(filepath.WalkDir(filepath.Join(dir, "blobs"), func(_ string, d os.DirEntry, err error) error {
					if err == nil && !d.IsDir() {
						objects++
					}
					return err
				}))
				want := 0
				if int64(len(k.content(id))) > inRow { // each attempt has added a time stamp
					want = 1
				}
				if objects != want {
					t.Errorf("%d objects, want %d", objects, want)
				}
			})
		}
	}
}

// BenchmarkRenewal measures what a renewal costs, without what other services do. The signature has an archive time stamp.
func BenchmarkRenewal(b *testing.B) {
	db := storetest.SQLite(b)
	k := newKeeper(b, db, b.TempDir(), 0, suite.GOST2012x256, 64<<10)
	k.registered(db)
	content := k.signed("A", nil)
	const documents = 100
	for range documents {
		k.kept(content, 20)
	}
	k.spent = 0
	b.ResetTimer()
	for n := 0; n < b.N; n++ {
		if n > 0 && n%documents == 0 { // each signature is renewed once
			b.StopTimer()
			k.must(store.Exec(db, b.Context(), "UPDATE retained SET due_at = 4000000000000"))
			for range documents {
				k.kept(content, 20)
			}
			b.StartTimer()
		}
		if worked, passes, err := k.Next(b.Context()); !worked || passes || err != nil {
			b.Fatalf("%t, %t, %v", worked, passes, err)
		}
	}
	b.ReportMetric(float64((b.Elapsed()-k.spent).Microseconds())/1000/float64(b.N), "own-ms/op")
}
