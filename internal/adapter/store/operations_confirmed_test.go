// SPDX-License-Identifier: Apache-2.0

package store_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"tamga/internal/adapter/blob"
	"tamga/internal/adapter/store"
	"tamga/internal/adapter/store/storetest"
	"tamga/internal/domain/audit"
	"tamga/internal/domain/confirm"
	"tamga/internal/domain/contact"
	"tamga/internal/domain/document"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/keys"
	"tamga/internal/domain/notify"
	"tamga/internal/domain/oath"
	"tamga/internal/domain/operation"
	"tamga/internal/domain/policy"
	"tamga/internal/domain/signing"
	"tamga/internal/domain/vault"
	"tamga/internal/sigtest"
	"tamga/internal/testsize"
	"tamga/pki/suite"
	"tamga/sig"
	"tamga/sig/cades"
	"tamga/sig/raw"
)

const confirmedUser = "00000000-0000-4000-8000-000000000001"

// desk carries out confirmed operations with real stores. Its keys count signatures.
type desk struct {
	t         *testing.T
	mu        sync.Mutex
	now       time.Time
	who       audit.Principal
	keys      *deskKeys
	evidence  *sigtest.Services
	world     mortal
	records   store.Confirmations
	confirm   *confirm.Service
	ring      *vault.Ring
	spool     *blob.Spool
	documents *document.Service
	usable    bool // the user has a method
	device    bool // it is a device
	force     bool // the policy asks for confirmations
	number    uint32
	drawn     uint32 // calls of random
	called    deskCallbacks
	messages  *notify.Service  // of the last process
	service   *confirm.Service // the same
	tells     bool             // confirmations have events and callbacks
	at        func(string)     // life.at of the processes

	settings operation.Settings
	docs     operation.DocumentDeps                                  // of the last process
	failed   func(err error)                                         // nil: the test fails
	wrapped  func(c operation.Confirmations) operation.Confirmations // nil: nothing is
}

// follower moves operations with their confirmations.
func (d *desk) follower() operation.Follower {
	return operation.Follower{Store: store.Operations{DB: d.records.DB}, Keep: time.Hour}
}

// deskCallbacks keeps the bodies of callbacks.
type deskCallbacks struct{ bodies []string }

func (c *deskCallbacks) Channel() notify.Channel { return notify.Callback }
func (c *deskCallbacks) Send(_ context.Context, m notify.Message) error {
	var text bytes.Buffer
	_, err := m.Body.WriteTo(&text)
	c.bodies = append(c.bodies, text.String())
	return err
}

type deskKeys struct {
	walkKeys
	other  *sigtest.Party // the certificate with the number 1 from now on; nil: that of walkKeys
	signed int
	down   error
	rand   io.Reader // of the values; nil: equal digests have equal values
}

func (k *deskKeys) ResolveIn(ctx context.Context, snap *keys.Snapshot, user, id string) (*keys.Certificate, error) {
	if k.other != nil {
		return &keys.Certificate{ID: 1, X509: k.other.Certificate}, nil
	}
	return k.walkKeys.ResolveIn(ctx, snap, user, id)
}

func (k *deskKeys) SignIn(ctx context.Context, snap *keys.Snapshot, c *keys.Certificate, pin string, digests []suite.Digest) ([][]byte, error) {
	if k.down != nil {
		return nil, k.down
	}
	values, err := k.walkKeys.SignIn(ctx, snap, c, pin, digests)
	k.signed += len(values)
	for i := range values {
		if k.rand != nil && err == nil {
			values[i], err = k.signer.Suite.Sign(k.rand, k.signer.Key, digests[i])
		}
	}
	return values, err
}

// CheckPIN implements signing.PINs.
func (k *deskKeys) CheckPIN(_ context.Context, _ audit.Principal, _, pin string, _ bool) (bool, string, error) {
	return pin == "pin", "the PIN is wrong", nil
}

// deskRules are a policy that may ask for confirmations.
type deskRules struct {
	walkRules
	d *desk
}

func (r deskRules) NeedsConfirmationBy(policy.Set, policy.Action) bool { return r.d.force }
func (r deskRules) TSPAddress(_ context.Context, requested string, _ bool) (string, error) {
	if requested == "" {
		requested = "http://tsp.example/"
	}
	return requested, nil
}

type deskMethods struct{ d *desk }

func (m deskMethods) AssignedMethods(context.Context, string) ([]string, error) {
	if !m.d.usable {
		return nil, nil
	}
	if m.d.device {
		return []string{"mydss"}, nil
	}
	return []string{"oath"}, nil
}

// Approvers implements confirm.Devices.
func (deskMethods) Approvers(context.Context, string) ([]confirm.Approver, error) {
	return []confirm.Approver{{Kid: "kid", Name: "phone"}}, nil
}

// OpenDecision implements confirm.Devices: a decision is JSON without a signature.
func (deskMethods) OpenDecision(_ context.Context, signed []byte) (v confirm.Decision, err error) {
	return v, json.Unmarshal(signed, &v)
}
func (deskMethods) Wake(context.Context, string, string) error { return nil }
func (deskMethods) Offline(context.Context, string, string, confirm.OfflineOrder) (qr, code string, err error) {
	return "", "", nil
}
func (deskMethods) ForOneTime(context.Context, string, contact.Kind) (contact.Contact, bool, error) {
	return contact.Contact{}, false, nil
}
func (deskMethods) TokenOf(context.Context, string) (oath.Token, bool, error) {
	return oath.Token{}, true, nil
}
func (deskMethods) CheckOneTimePassword(_ context.Context, _, code string) error {
	if code != "123456" {
		return fault.New("invalid_confirmation_code", "wrong")
	}
	return nil
}
func (deskMethods) Available() []notify.Channel                { return nil }
func (deskMethods) Order(context.Context, notify.Direct) error { return nil }
func (deskMethods) Emit(context.Context, notify.Event) error   { return nil }
func (deskMethods) Call(context.Context, notify.Call) error    { return nil }

// deskMessages puts two messages for each event into the outbox, and calls back.
type deskMessages struct {
	deskMethods
	events inOutbox
	calls  *notify.Service
}

func (m deskMessages) Emit(ctx context.Context, e notify.Event) error { return m.events.Emit(ctx, e) }
func (m deskMessages) Call(ctx context.Context, c notify.Call) error  { return m.calls.Call(ctx, c) }

func newDesk(t *testing.T, url string) *desk {
	return deskAt(t, storetest.Open(t, url), t.TempDir(), suite.ECDSAP256, 0)
}

// deskAt returns a desk over an open database and the documents in a directory. The desks of one database have numbers,
// so that none makes an identifier of another one. Desks with odd numbers keep small content in rows, as
// processes whose settings differ.
func deskAt(t *testing.T, db *store.DB, dir string, s *suite.Suite, number uint32) *desk {
	d := &desk{
		t: t, now: sigtest.Time, usable: true, number: number,
		who: audit.Principal{UserID: confirmedUser, Login: "user", ClientID: "client"}, settings: operation.Settings{Async: true, Life: 20 * time.Minute, Lease: time.Minute},
	}
	storage, err := blob.NewDir(filepath.Join(dir, "blobs"))
	d.must(err)
	d.spool, err = blob.NewSpool(filepath.Join(dir, "spool"))
	d.must(err)
	d.ring, err = vault.NewRing("k", map[string][]byte{"k": bytes.Repeat([]byte{1}, 32)}, d.random(9))
	d.must(err)
	root := sigtest.Root(t, s)
	d.keys = &deskKeys{walkKeys: walkKeys{t, root.Signer(t, s, "signer"), func() {}}}
	d.evidence = sigtest.NewServices(t, root)
	inRow := int64(number%2) << 15
	options := blob.Options{Storage: storage, Ring: d.ring, InRow: inRow}
	d.documents = &document.Service{
		Store: store.Documents{DB: db}, Uploads: store.Documents{DB: db}, Bytes: blob.NewDocuments(options), Now: d.clock, Rand: d.random(3),
		Rules: document.Rules{InRow: inRow},
		Digest: func(context.Context, string) (document.Digest, error) {
			return document.Digest{Name: suite.Streebog256.Name, New: suite.Streebog256.New}, nil
		},
	}
	d.world = mortal{operations: store.Operations{DB: db}, blobs: blob.NewPrepared(options), documents: operation.DocumentStore{Service: d.documents}}
	d.records = store.Confirmations{DB: db}
	d.confirm = d.confirmations(deskMethods{d}, d.random(4))
	return d
}

// confirmations returns the confirmations of a process.
func (d *desk) confirmations(messages confirm.Messages, random io.Reader) *confirm.Service {
	d.t.Helper()
	m := deskMethods{d}
	s, err := confirm.New(confirm.DefaultSettings(), confirm.Deps{
		Store: d.records, Answers: d.records, Follower: d.follower(), Codes: store.Contacts{DB: d.records.DB},
		Assigned: m, Contacts: m, Oath: m, Devices: m, Messages: messages,
		Callbacks: &confirm.Callbacks{Store: d.records, Check: func(string) error { return nil }},
		Render:    func(r *confirm.Record) (string, error) { return string(r.State), nil },
		Vault:     d.ring, Audit: store.Audit{DB: d.records.DB}, Now: d.clock, Rand: random,
	})
	d.must(err)
	return s
}

// random returns numbers that are the same on every run, and of no other call.
func (d *desk) random(of byte) io.Reader {
	d.drawn++
	seed := [32]byte{of}
	binary.BigEndian.PutUint32(seed[1:], d.number)
	binary.BigEndian.PutUint32(seed[5:], d.drawn)
	return &sharedRandom{from: rand.NewChaCha8(seed)}
}

// sharedRandom are random numbers for several goroutines.
type sharedRandom struct {
	mu   sync.Mutex
	from *rand.ChaCha8
}

func (r *sharedRandom) Read(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.from.Read(p)
}

func (d *desk) clock() time.Time {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.now
}

func (d *desk) pass(by time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.now = d.now.Add(by)
}

func (d *desk) must(err error) {
	d.t.Helper()
	if err != nil {
		d.t.Fatal(err)
	}
}

func (d *desk) is(name string, err error, code string) {
	d.t.Helper()
	if !fault.Is(err, code) {
		d.t.Errorf("%s: %v, want %s", name, err, code)
	}
}

// process starts a process that dies after a number of calls; below 0: never.
func (d *desk) process(left int, late bool) (*signing.Operations, *life) {
	d.t.Helper()
	l := &life{left: left, late: late, at: d.at}
	m := d.world
	m.life = l
	var err error
	d.messages, err = notify.New(notify.DefaultSettings(), notify.Deps{
		Store: mortalOutbox{store.Outbox{DB: m.operations.DB}, l}, Vault: d.ring, Notifiers: []notify.Notifier{&d.called}, Now: d.clock, Rand: d.random(200),
		Failed: func(err error) { d.t.Error(err) },
	})
	d.must(err)
	var messages confirm.Messages = deskMethods{d}
	if d.tells {
		messages = deskMessages{deskMethods{d}, inOutbox{outbox: store.Outbox{DB: m.operations.DB}}, d.messages}
	}
	d.service = d.confirmations(messages, d.random(100))
	rules := deskRules{d: d}
	signer := &signing.Service{
		Formats: sig.Formats{raw.New(), cades.New()}, Keys: d.keys, Policy: rules, Confirmation: rules, Snapshots: walkRules{}, Spool: d.spool, Now: d.clock,
		Rand: d.random(7), Blobs: mortalBlobs{m}, Evidence: d.evidence,
	}
	deps := operation.Deps{Confirmations: d.service, Vault: d.ring, Now: d.clock, Rand: d.random(150), Failed: d.failed}
	if d.wrapped != nil {
		deps.Confirmations = d.wrapped(d.service)
	}
	var operations *signing.Operations
	operations, d.docs = m.signs(d.t, d.settings, deps, signer, d.keys, operation.Callbacks{
		Messages: d.messages, Check: func(string) error { return nil },
		Render: func(o *operation.Operation) (signing.Result, error) { return bytes.NewReader([]byte(d.look(o))), nil },
	})
	d.messages.OpenBodies(operation.CallbackForm, operations)
	return operations, l
}

func (d *desk) live() *signing.Operations {
	o, _ := d.process(-1, false)
	return o
}

func (d *desk) intake(o *signing.Operations, text string) *signing.Intake {
	d.t.Helper()
	in, err := o.Signer.NewIntake(d.t.Context(), nil)
	d.must(err)
	_, err = in.Write([]byte(text))
	d.must(errors.Join(err, in.Finish()))
	d.t.Cleanup(func() { in.Close() })
	return in
}

func (d *desk) stored(text string) string {
	d.t.Helper()
	return saveDocument(d.t, d.documents, d.who, "stored.txt", text)
}

// saveDocument stores a document of a user.
func saveDocument(t testing.TB, s *document.Service, who audit.Principal, name, text string) string {
	t.Helper()
	b := s.NewBatch(who)
	id, err := b.Save(t.Context(), document.Description{Name: name}, strings.NewReader(text))
	if err := errors.Join(err, b.Record(t.Context())); err != nil {
		t.Fatal(err)
	}
	return id
}

// order is an operation on an inline and a stored document.
func (d *desk) order(o *signing.Operations) *signing.OperationOrder {
	return &signing.OperationOrder{
		Type: "CAdES", Params: map[string]string{"IsDetached": "False", "CADESType": "BES"}, PIN: "pin",
		Inputs: []signing.Input{{Content: d.intake(o, "one"), Name: "one.txt"}, {RefID: d.stored("two")}},
	}
}

// approve confirms a record. The documents with these indexes are declined.
func (d *desk) approve(id string, declined ...int) {
	d.t.Helper()
	p, err := d.confirm.Challenge(d.t.Context(), d.who, confirm.Ask{ID: id})
	d.must(err)
	now := d.clock()
	r, moved, err := d.records.MoveConfirmation(d.t.Context(), id, confirm.Move{
		From: []confirm.State{confirm.Challenged}, To: confirm.Confirmed, At: now, Round: p.Record.Round, CompleteBefore: now.Add(5 * time.Minute), Declined: declined,
	})
	if d.must(err); !moved {
		d.t.Fatal("not confirmed")
	}
	d.must(d.follower().Follow(d.t.Context(), &r))
}

// look returns all that a client sees of an operation, and closes it.
func (d *desk) look(op *operation.Operation) string {
	d.t.Helper()
	defer op.Close()
	return d.seen(op)
}

func (d *desk) seen(op *operation.Operation) string {
	d.t.Helper()
	var text strings.Builder
	fmt.Fprintf(&text, "%s %s %s %d", op.ID, op.State, op.Parameters, op.CompleteBefore.UnixMilli())
	for i := range op.Documents {
		p := op.Documents[i]
		fmt.Fprintf(&text, " [%s %s %s declined %v fault %v", p.ID, p.RefID, p.Name, p.Declined, p.Fault)
		if p.Content != nil {
			var content bytes.Buffer
			_, err := p.Content.WriteTo(&content)
			d.must(err)
			fmt.Fprintf(&text, " %x", content.Bytes())
		}
		text.WriteString("]")
	}
	return text.String()
}

func (d *desk) results() int {
	d.t.Helper()
	n := 0
	d.must(d.documents.List(d.t.Context(), d.who, func(one document.Info) error {
		if strings.HasSuffix(one.Name, ".sig") {
			n++
		}
		return nil
	}))
	return n
}

// propose creates an operation that its user must confirm.
func propose(ctx context.Context, o *signing.Operations, who audit.Principal, order *signing.OperationOrder) (*operation.Operation, error) {
	order.ForceConfirmation = true
	return o.Start(ctx, who, order)
}

func confirmedOrder(id string) *signing.ConfirmedOrder {
	return &signing.ConfirmedOrder{ID: id, Form: operation.FormOperation}
}

// TestConfirmedOperations carries operations out that their user confirmed.
func TestConfirmedOperations(t *testing.T) {
	for _, engine := range engines(t) {
		t.Run(engine.name, func(t *testing.T) {
			ctx := t.Context()
			d := newDesk(t, engine.migrated(t))
			o := d.live()

			// Nothing is signed without the confirmation, for each reason to ask for one.
			d.force = true
			op, err := o.Start(ctx, d.who, d.order(o))
			d.must(err)
			if op.State != operation.Created || d.keys.signed != 0 {
				t.Fatalf("%s, %d signatures", op.State, d.keys.signed)
			}
			d.force = false
			forced := d.order(o)
			forced.ForceConfirmation = true
			op, err = o.Start(ctx, d.who, forced)
			d.must(err)
			_, err = o.Confirmed(ctx, d.who, confirmedOrder(op.ID))
			d.is("not confirmed", err, fault.InvalidTransaction)
			other := d.who
			other.UserID = "00000000-0000-4000-8000-000000000002"
			_, err = o.Confirmed(ctx, other, confirmedOrder(op.ID))
			d.is("another user", err, fault.InvalidTransaction)
			found, err := o.Find(ctx, d.who, op.ID)
			d.must(err)
			if found.State != operation.Created || len(found.Documents) != 2 || found.Documents[1].OriginalName != "stored.txt" {
				t.Errorf("found: %+v", found)
			}
			list, err := o.Active(ctx, d.who)
			if d.must(err); len(list) != 2 {
				t.Errorf("%d operations are open", len(list))
			}

			// A wrong PIN, an outage and another form leave it confirmed.
			d.approve(op.ID)
			wrong := confirmedOrder(op.ID)
			wrong.PIN = "no"
			_, err = o.Confirmed(ctx, d.who, wrong)
			d.is("a wrong PIN", err, fault.InvalidPIN)
			form := confirmedOrder(op.ID)
			form.Form = operation.FormTransaction
			_, err = o.Confirmed(ctx, d.who, form)
			d.is("another form", err, fault.InvalidOperation)
			d.keys.down = errors.New("the vault is down")
			if _, err = o.Confirmed(ctx, d.who, confirmedOrder(op.ID)); !errors.Is(err, d.keys.down) {
				t.Error(err)
			}
			d.keys.down = nil
			client := d.who
			client.ClientID = "another"
			_, err = o.Confirmed(ctx, client, confirmedOrder(op.ID))
			d.is("another client", err, fault.InvalidTransaction)
			if d.keys.signed != 0 {
				t.Fatalf("%d signatures", d.keys.signed)
			}

			done, err := o.Confirmed(ctx, d.who, confirmedOrder(op.ID))
			d.must(err)
			first := d.look(done)
			if done.State != operation.Completed || d.keys.signed != 2 || d.results() != 1 {
				t.Errorf("%s, %d signatures, %d results", first, d.keys.signed, d.results())
			}
			d.pass(4 * time.Minute)
			d.keys.down = errors.New("no key is needed")
			again, err := d.live().Confirmed(ctx, d.who, confirmedOrder(op.ID))
			d.must(err)
			if second := d.look(again); second != first || d.keys.signed != 2 || d.results() != 1 {
				t.Errorf("again:\n%s\nfirst:\n%s\n%d signatures, %d results", second, first, d.keys.signed, d.results())
			}
			d.keys.down = nil
			found, err = o.Find(ctx, d.who, op.ID)
			if d.must(err); found.State != operation.Completed {
				t.Errorf("found as %s", found.State)
			}
			d.pass(2 * time.Minute)
			_, err = o.Confirmed(ctx, d.who, confirmedOrder(op.ID))
			d.is("after its time", err, fault.InvalidTransaction)

			// Documents that the user declined are not signed.
			part := d.order(o)
			op, err = propose(ctx, o, d.who, part)
			d.must(err)
			d.approve(op.ID, 0)
			before := d.keys.signed
			done, err = o.Confirmed(ctx, d.who, confirmedOrder(op.ID))
			d.must(err)
			if p := done.Documents; !p[0].Declined || p[0].Content != nil || p[0].Fault == nil || p[1].RefID == "" || d.keys.signed != before+1 {
				t.Errorf("declined: %+v", p)
			}
			first = d.look(done)
			again, err = o.Confirmed(ctx, d.who, confirmedOrder(op.ID))
			d.must(err)
			if second := d.look(again); second != first {
				t.Errorf("again:\n%s\nfirst:\n%s", second, first)
			}

			// A time-stamp service that does not respond.
			stamped := d.order(o)
			stamped.Params = map[string]string{"IsDetached": "False", "CADESType": "T"}
			op, err = propose(ctx, o, d.who, stamped)
			d.must(err)
			d.approve(op.ID)
			results := d.results()
			d.evidence.Err = map[string]error{"stamp": &sig.ErrEvidence{What: "time stamp", Text: "the service does not respond"}}
			_, err = o.Confirmed(ctx, d.who, confirmedOrder(op.ID))
			d.is("no time stamp", err, fault.Failed)
			if r, err := d.confirm.Find(ctx, d.who, op.ID); err != nil || r.State != confirm.Confirmed || d.results() != results {
				t.Errorf("%s, %v, %d results", r.State, err, d.results())
			}
			d.evidence.Err = nil
			done, err = o.Confirmed(ctx, d.who, confirmedOrder(op.ID))
			d.must(err)
			first, stamps := d.look(done), d.evidence.Calls("stamp")
			again, err = d.live().Confirmed(ctx, d.who, confirmedOrder(op.ID))
			d.must(err)
			if second := d.look(again); second != first || stamps < 2 || d.evidence.Calls("stamp") != stamps {
				t.Errorf("again:\n%s\nfirst:\n%s\n%d time stamps, %d before", second, first, d.evidence.Calls("stamp"), stamps)
			}

			// Refusals at creation store nothing.
			bad := d.order(o)
			bad.PIN = "no"
			_, err = propose(ctx, o, d.who, bad)
			d.is("a wrong PIN at creation", err, fault.InvalidPIN)
			d.usable = false
			_, err = propose(ctx, o, d.who, d.order(o))
			d.is("a user without a method", err, fault.MethodNotConfirmed)
			d.usable = true

			// Cancelling.
			op, err = propose(ctx, o, d.who, d.order(o))
			d.must(err)
			d.must(o.Cancel(ctx, d.who, op.ID))
			d.must(o.Cancel(ctx, d.who, op.ID))
			found, err = o.Find(ctx, d.who, op.ID)
			if d.must(err); found.State != operation.Cancelled || found.Fault == nil {
				t.Errorf("cancelled: %+v", found)
			}
			_, err = o.Confirmed(ctx, d.who, confirmedOrder(op.ID))
			d.is("cancelled", err, fault.InvalidTransaction)
		})
	}
}

// TestConfirmedChanged changes what an operation signs between its creation and its
// execution. A row past the domain changes the stored plan, as a broken program would.
func TestConfirmedChanged(t *testing.T) {
	ctx := t.Context()
	d := newDesk(t, storetest.SQLiteFile(t, filepath.Join(t.TempDir(), "tamga.db")))
	o := d.live()
	column := func(name string, change func(of any) any) func(id string) {
		return func(id string) {
			r, found, err := d.world.operations.FindOperation(ctx, id)
			if d.must(err); !found {
				t.Fatal("no operation")
			}
			text := map[string][]byte{"plan": r.Plan, "documents": r.List}[name]
			var of any
			d.must(json.Unmarshal(text, &of))
			text, err = json.Marshal(change(of))
			d.must(err)
			d.must(store.Exec(d.records.DB, ctx, "UPDATE operations SET "+name+" = $2 WHERE id = $1", id, text))
		}
	}
	plan := func(change func(p map[string]any)) func(id string) {
		return column("plan", func(of any) any { change(of.(map[string]any)["plan"].(map[string]any)); return of })
	}
	documents := func(change func(list []any) []any) func(id string) {
		return column("documents", func(of any) any { return change(of.([]any)) })
	}
	document := func(i int, name string, value any) func(id string) {
		return documents(func(list []any) []any { list[i].(map[string]any)[name] = value; return list })
	}
	foreign := d.stored("three")
	for name, change := range map[string]func(id string){
		"type":        plan(func(p map[string]any) { p["type"] = "CMS" }),
		"parameter":   plan(func(p map[string]any) { p["params"].(map[string]any)["IsDetached"] = "True" }),
		"argument":    plan(func(p map[string]any) { p["arguments"] = map[string]any{"documentinfo": "x"} }),
		"action":      plan(func(p map[string]any) { p["action"] = "SignDocument" }),
		"name":        document(0, "original_name", "two.txt"),
		"document":    document(1, "original_ref", foreign),
		"size":        document(0, "in", map[string]any{"at": 0, "size": 2}),
		"order":       documents(func(list []any) []any { return []any{list[1], list[0]} }),
		"number":      documents(func(list []any) []any { return list[:1] }),
		"related":     document(1, "related", foreign),
		"certificate": func(string) { d.keys.other = sigtest.Root(t, suite.ECDSAP256).Signer(t, suite.ECDSAP256, "another") },
	} {
		op, err := propose(ctx, o, d.who, d.order(o))
		d.must(err)
		d.approve(op.ID)
		change(op.ID)
		_, err = o.Confirmed(ctx, d.who, confirmedOrder(op.ID))
		d.is(name, err, fault.InvalidTransaction)
		d.keys.other = nil
		if r, err := d.confirm.Find(ctx, d.who, op.ID); err != nil || r.State != confirm.Confirmed {
			t.Errorf("%s: %s, %v", name, r.State, err)
		}
	}
	if d.keys.signed != 0 {
		t.Errorf("%d signatures", d.keys.signed)
	}
}

// TestConfirmedDies lets a process die in every call between the confirmation and the
// answer, before the call and after it. At most one result leaves, and the next process
// returns it.
func TestConfirmedDies(t *testing.T) {
	for _, engine := range engines(t) {
		t.Run(engine.name, func(t *testing.T) {
			ctx := t.Context()
			d := newDesk(t, engine.migrated(t))
			died := 0
			for n, ended := 0, false; !ended; n++ {
				for _, late := range []bool{false, true} {
					o := d.live()
					op, err := propose(ctx, o, d.who, d.order(o))
					d.must(err)
					d.approve(op.ID)
					results := d.results()
					mortal, l := d.process(n, late)
					done, err := mortal.Confirmed(ctx, d.who, confirmedOrder(op.ID))
					left := ""
					if err == nil {
						left = d.look(done)
					}
					if ended = !l.dead; !ended {
						died++
					}
					l.dead = true
					d.pass(3*time.Minute + time.Second) // its lease ends
					done, err = d.live().Confirmed(ctx, d.who, confirmedOrder(op.ID))
					if err != nil {
						t.Fatalf("after call %d, late %v: %v", n, late, err)
					}
					next := d.look(done)
					if left != "" && next != left {
						t.Errorf("call %d, late %v: two results leave:\n%s\n%s", n, late, left, next)
					}
					if got := d.results() - results; got != 1 {
						t.Errorf("call %d, late %v: %d visible results", n, late, got)
					}
					done, err = d.live().Confirmed(ctx, d.who, confirmedOrder(op.ID))
					d.must(err)
					if again := d.look(done); again != next {
						t.Errorf("call %d, late %v: another result later", n, late)
					}
				}
			}
			if died < 8 {
				t.Errorf("the process died in %d calls", died)
			}
		})
	}
}

// TestUnansweredCommits cuts the answer of the commit of every step of operations: the step was
// made, and the documents that it named are there for the next one.
func TestUnansweredCommits(t *testing.T) {
	for _, engine := range engines(t) {
		t.Run(engine.name, func(t *testing.T) {
			ctx := t.Context()
			d := newDesk(t, engine.migrated(t))
			unanswered := func(name string, step func(o *signing.Operations) error) {
				t.Helper()
				o, l := d.process(-1, false)
				l.unanswered = true
				if _, is := fault.AsOutage(step(o)); !is {
					t.Errorf("%s: not an outage", name)
				}
				d.pass(3*time.Minute + time.Second) // its lease ends
			}
			only := func(name string) string {
				t.Helper()
				list, err := d.live().Active(ctx, d.who)
				if d.must(err); len(list) != 1 {
					t.Fatalf("%s: %d operations", name, len(list))
				}
				return list[0].ID
			}
			var id string
			unanswered("accepting", func(o *signing.Operations) error {
				order := d.order(o)
				order.Async = true
				_, err := o.Start(ctx, d.who, order)
				return err
			})
			id = only("accepted")
			unanswered("carrying out", func(o *signing.Operations) error {
				_, err := o.Next(ctx)
				return err
			})
			op, err := d.live().Find(ctx, d.who, id)
			d.must(err)
			if seen := d.look(op); op.State != operation.Completed || strings.Count(seen, "fault <nil>") != 2 {
				t.Errorf("carried out: %s", seen)
			}
			unanswered("proposing", func(o *signing.Operations) error {
				_, err := propose(ctx, o, d.who, d.order(o))
				return err
			})
			id = only("proposed")
			d.approve(id)
			unanswered("carrying out what was confirmed", func(o *signing.Operations) error {
				_, err := o.Confirmed(ctx, d.who, confirmedOrder(id))
				return err
			})
			op, err = d.live().Confirmed(ctx, d.who, confirmedOrder(id))
			d.must(err)
			if seen := d.look(op); op.State != operation.Completed || strings.Count(seen, "fault <nil>") != 2 {
				t.Errorf("what was confirmed: %s", seen)
			}
		})
	}
}

// TestConfirmedStarts confirms asynchronous operations, which then carry themselves out and
// call back. The process dies in every call in between, before the call and after it: the
// next one continues, and there is one result.
func TestConfirmedStarts(t *testing.T) {
	t.Parallel()
	for _, engine := range engines(t) {
		t.Run(engine.name, func(t *testing.T) {
			ctx := t.Context()
			d := newDesk(t, engine.migrated(t))
			next := func(name string, o *signing.Operations, want bool) {
				t.Helper()
				if worked, err := o.Next(ctx); worked != want || err != nil {
					t.Errorf("%s: worked %v, %v", name, worked, err)
				}
			}
			propose := func(o *signing.Operations) string {
				t.Helper()
				order := d.order(o)
				order.Async, order.Callback = true, "https://example.ru/"
				op, err := propose(ctx, o, d.who, order)
				d.must(err)
				return op.ID
			}
			state := func(id string) string {
				t.Helper()
				op, err := d.live().Find(ctx, d.who, id)
				d.must(err)
				defer op.Close()
				return fmt.Sprintf("%s %v", op.State, op.Fault)
			}
			called := func(name, id, has string) {
				t.Helper()
				d.called.bodies = nil
				d.live()
				if err := d.messages.Flush(ctx); err != nil || len(d.called.bodies) != 1 ||
					!strings.HasPrefix(d.called.bodies[0], id) || !strings.Contains(d.called.bodies[0], has) {
					t.Errorf("%s: %v: %.200q", name, err, d.called.bodies)
				}
			}
			step := 1
			if testsize.Of() < testsize.Whole {
				step = 4
			}
			for n, ended := 0, false; !ended; n += step {
				for _, late := range []bool{false, true} {
					id := propose(d.live())
					next("before the confirmation", d.live(), false)
					d.approve(id)
					results := d.results()
					mortal, l := d.process(n, late)
					if worked, err := mortal.Next(ctx); !worked && err == nil {
						t.Fatal("a confirmed operation is not due")
					}
					ended = !l.dead
					l.dead = true
					if !ended {
						d.pass(3*time.Minute + time.Second) // its lease ends
						_, err := d.live().Next(ctx)
						d.must(err)
					}
					if got := state(id); got != "Completed <nil>" || d.results() != results+1 {
						t.Errorf("call %d, late %v: %s, %d visible results", n, late, got, d.results()-results)
					}
					next("once more", d.live(), false)
					called("the result", id, "Completed")
					done, err := d.live().Confirmed(ctx, d.who, confirmedOrder(id)) // the client asks as well
					d.must(err)
					d.must(done.Close())
				}
			}

			// An outage leaves it Confirmed. A request sees that it is under way.
			id := propose(d.live())
			d.approve(id)
			d.keys.down = fault.New(fault.Unavailable, "out of order")
			next("an outage", d.live(), true)
			if got := state(id); got != "Confirmed <nil>" {
				t.Errorf("after an outage: %s", got)
			}
			if op, err := d.live().Confirmed(ctx, d.who, confirmedOrder(id)); err != nil || op.State != operation.Confirmed {
				t.Errorf("a request during an outage: %v, %v", op, err)
			}
			d.keys.down = nil
			next("too early", d.live(), false)
			d.pass(5 * time.Second)
			next("after the outage", d.live(), true)
			called("after the outage", id, "Completed")

			// A wrong PIN waits for a request. A fault that stays ends the operation.
			for code, want := range map[string]string{fault.InvalidPIN: "Confirmed", fault.InvalidCertificate: "Error"} {
				id := propose(d.live())
				d.approve(id)
				d.keys.down = fault.New(code, "refused")
				next(code, d.live(), true)
				d.keys.down = nil
				d.pass(time.Minute)
				next(code, d.live(), false)
				if got := state(id); !strings.HasPrefix(got, want) {
					t.Errorf("%s: %s", code, got)
				}
				if want == "Error" {
					called(code, id, code)
					continue
				}
				done, err := d.live().Confirmed(ctx, d.who, confirmedOrder(id))
				d.must(err)
				d.must(done.Close())
				called(code, id, "Completed")
			}

			// A wrong PIN of a request says nothing about the PIN of the order.
			id = propose(d.live())
			d.approve(id)
			d.keys.down = fault.New(fault.InvalidPIN, "refused")
			wrong := confirmedOrder(id)
			wrong.PIN = "wrong"
			_, err := d.live().Confirmed(ctx, d.who, wrong)
			d.is("a wrong PIN of a request", err, fault.InvalidPIN)
			d.keys.down = nil
			next("the PIN of the order", d.live(), true)
			called("the PIN of the order", id, "Completed")

			// Without such a request it ends in time for the callback, by no further attempt.
			id = propose(d.live())
			d.approve(id)
			d.keys.down = fault.New(fault.InvalidPIN, "refused")
			next("a wrong PIN", d.live(), true)
			d.keys.down = nil // another attempt would succeed
			d.pass(5*time.Minute - 16*time.Second)
			next("before the last call", d.live(), false)
			d.pass(time.Second)
			results := d.results()
			next("the last call", d.live(), true)
			if got := state(id); !strings.HasPrefix(got, "Error "+fault.InvalidPIN) || d.results() != results {
				t.Errorf("after the last call: %s, %d more results", got, d.results()-results)
			}
			called("the last call", id, fault.InvalidPIN)
		})
	}
}

// TestConfirmedDocument reads the documents of an operation that waits for its user.
func TestConfirmedDocument(t *testing.T) {
	t.Parallel()
	d := newDesk(t, storetest.SQLiteFile(t, filepath.Join(t.TempDir(), "tamga.db")))
	o := d.live()
	ref := d.stored("two")
	propose := func(order *signing.OperationOrder) string {
		op, err := propose(t.Context(), o, d.who, order)
		d.must(err)
		d.must(op.Close())
		return op.ID
	}
	read := func(id string, index int, original bool) string {
		t.Helper()
		document, err := o.Shown(t.Context(), d.who, id, index, original)
		d.must(err)
		defer document.Close()
		var content bytes.Buffer
		n, err := document.WriteTo(&content)
		d.must(err)
		if n != document.Size() {
			t.Errorf("%d bytes of a document of %d", n, document.Size())
		}
		return content.String()
	}
	refused := func(name string, who audit.Principal, id string, index int, original bool, code string) {
		t.Helper()
		_, err := o.Shown(t.Context(), who, id, index, original)
		d.is(name, err, code)
	}
	id := propose(&signing.OperationOrder{
		Type: "CAdES", Params: map[string]string{"IsDetached": "False", "CADESType": "BES"}, PIN: "pin",
		Inputs: []signing.Input{{Content: d.intake(o, "one"), Name: "1"}, {RefID: ref}, {Content: d.intake(o, "three"), Name: "3"}},
	})
	if got := read(id, 1, false); got != "two" { // a page shows the documents before a method is chosen
		t.Errorf("before the user is asked: %q", got)
	}
	_, err := d.confirm.Challenge(t.Context(), d.who, confirm.Ask{ID: id})
	d.must(err)
	for i, want := range []string{"one", "two", "three"} {
		if got := read(id, i, false); got != want {
			t.Errorf("document %d is %q, want %q", i, got, want)
		}
	}
	refused("no such document", d.who, id, 3, false, "invalid_parameters")
	refused("a negative index", d.who, id, -1, false, "invalid_parameters")
	refused("no original", d.who, id, 0, true, "object_not_found")
	refused("another user", audit.Principal{UserID: "00000000-0000-4000-8000-00000000dead"}, id, 0, false, "invalid_transaction")
	refused("an unknown operation", d.who, "x", 0, false, "invalid_transaction")
	d.must(d.documents.Delete(t.Context(), d.who, ref))
	refused("a deleted document", d.who, id, 1, false, "object_not_found")
	hash := propose(&signing.OperationOrder{
		Type: "GOST3410", Params: map[string]string{"Hash": "True"}, PIN: "pin",
		Inputs: []signing.Input{{Content: d.intake(o, strings.Repeat("h", 32)), Name: "1"}},
	})
	_, err = d.confirm.Challenge(t.Context(), d.who, confirm.Ask{ID: hash})
	d.must(err)
	refused("a hash", d.who, hash, 0, false, "object_not_found")
	d.approve(id)
	refused("after the confirmation", d.who, id, 0, false, "invalid_transaction")
}
