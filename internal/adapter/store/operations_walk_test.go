// SPDX-License-Identifier: Apache-2.0

package store_test

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
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
	"tamga/internal/domain/document"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/keys"
	"tamga/internal/domain/notify"
	"tamga/internal/domain/operation"
	"tamga/internal/domain/policy"
	"tamga/internal/domain/signing"
	"tamga/internal/domain/vault"
	"tamga/internal/sigtest"
	"tamga/internal/testsize"
	"tamga/pki/chain"
	"tamga/pki/suite"
	"tamga/pki/x509gost"
	"tamga/sig"
	"tamga/sig/raw"
)

var (
	walkSteps = flag.Int("walk.steps", 250, "steps of a random walk over operations")
	walkSeeds = flag.Int("walk.seeds", 3, "random walks on each engine")
)

// TestOperationsWalk makes random calls on operations in processes that die in the middle
// of anything, and compares the visible results with a model. An accepted operation ends
// once and keeps its end. A document has at most one result, a request with an
// Idempotency-Key one answer. There is a callback for each ended operation, and nothing
// is left on the disk when all is over.
func TestOperationsWalk(t *testing.T) {
	for _, engine := range engines(t) {
		t.Run(engine.name, func(t *testing.T) {
			for seed := range *walkSeeds {
				if testsize.Of() < testsize.Whole && seed > 0 {
					break
				}
				t.Run(fmt.Sprint(seed), func(t *testing.T) { walk(t, engine.migrated(t), uint64(seed)) })
			}
		})
	}
}

// walkKeys are the keys of the only user.
type walkKeys struct {
	t         testing.TB
	signer    *sigtest.Party
	meanwhile func() // runs elsewhere while a signature is made
}

func (k walkKeys) ResolveIn(context.Context, *keys.Snapshot, string, string) (*keys.Certificate, error) {
	return &keys.Certificate{ID: 1, X509: k.signer.Certificate}, nil
}

func (k walkKeys) JudgeIn(_ context.Context, _ *keys.Snapshot, c *keys.Certificate, _ time.Time) (*chain.Result, error) {
	return &chain.Result{Chain: append([]*x509gost.Certificate{c.X509}, k.signer.Chain...)}, nil
}

func (k walkKeys) SignIn(_ context.Context, _ *keys.Snapshot, _ *keys.Certificate, pin string, digests []suite.Digest) ([][]byte, error) {
	if pin != "pin" {
		return nil, fault.New(fault.InvalidPIN, "wrong")
	}
	k.meanwhile()
	values := make([][]byte, len(digests))
	for i, d := range digests {
		values[i] = k.signer.Sign(k.t, d)
	}
	return values, nil
}

type walkRules struct{}

func (walkRules) Snapshot(_ context.Context, userID string, now time.Time) (*signing.Snapshot, error) {
	return &signing.Snapshot{UserID: userID, At: now}, nil
}

func (walkRules) PermitBy(policy.Set, policy.Action) error                 { return nil }
func (walkRules) PermitType(string, bool) error                            { return nil }
func (walkRules) TSPAddress(context.Context, string, bool) (string, error) { return "", nil }

// walker is the world, its model, and the live process.
type walker struct {
	inRow  bool // small content is in rows
	t      *testing.T
	random *rand.Rand
	mu     sync.Mutex // guards writes of now: releases in the background read it
	now    time.Time
	who    audit.Principal
	world  mortal
	dir    string
	spool  *blob.Spool
	ring   *vault.Ring
	keys   walkKeys
	inputs []string // documents of the user

	process    *life
	operations *signing.Operations
	messages   *notify.Service
	answers    *signing.Answers
	other      *signing.Operations // another process
	nested     bool                // it is running

	began    []string          // operations that may have been recorded
	asked    []string          // keys of requests, the oldest first
	accepted map[string]bool   // accepted operations
	ended    map[string]string // final operations, as they were first seen
	keyed    map[string]string // keys of requests with their answers; empty: no answer yet
	called   map[string]string // received callbacks with their bodies
	pending  map[string]bool   // operations with a callback
	results  map[string]string // documents that are results, with their operations
}

const callbackURL = "https://example.org/"

func walk(t *testing.T, url string, seed uint64) {
	w := &walker{
		t: t, random: rand.New(rand.NewPCG(seed, 1)), now: sigtest.Time, who: audit.Principal{UserID: "00000000-0000-4000-8000-000000000001", Login: "user"},
		dir: t.TempDir(), accepted: map[string]bool{}, ended: map[string]string{}, keyed: map[string]string{}, called: map[string]string{}, pending: map[string]bool{}, results: map[string]string{},
	}
	db := storetest.Open(t, url)
	storage, err := blob.NewDir(filepath.Join(w.dir, "blobs"))
	w.must(err)
	w.spool, err = blob.NewSpool(filepath.Join(w.dir, "spool"))
	w.must(err)
	w.ring, err = vault.NewRing("k", map[string][]byte{"k": bytes.Repeat([]byte{1}, 32)}, sigtest.Random(9))
	w.must(err)
	w.keys = walkKeys{t, sigtest.Root(t, suite.ECDSAP256).Signer(t, suite.ECDSAP256, "signer"), w.meanwhile}
	inRow := int64(seed%2) << 15
	w.inRow = inRow > 0
	options := blob.Options{Storage: storage, Ring: w.ring, InRow: inRow}
	documents := &document.Service{
		Store: store.Documents{DB: db}, Uploads: store.Documents{DB: db}, Bytes: blob.NewDocuments(options), Now: w.clock, Rand: sigtest.Random(byte(seed)),
		Rules: document.Rules{InRow: inRow},
		Digest: func(context.Context, string) (document.Digest, error) {
			return document.Digest{Name: suite.Streebog256.Name, New: suite.Streebog256.New}, nil
		},
	}
	w.world = mortal{operations: store.Operations{DB: db}, answers: store.Answers{DB: db}, blobs: blob.NewPrepared(options), documents: operation.DocumentStore{Service: documents}}
	for i := range 5 {
		w.inputs = append(w.inputs, saveDocument(t, documents, w.who, fmt.Sprint("input", i), fmt.Sprint("document ", i)))
	}
	w.start(byte(seed))
	w.other = w.operations // the other process never dies
	w.start(byte(seed))
	for n := range *walkSteps {
		w.process.left = -1
		if w.random.IntN(3) == 0 {
			w.process.left, w.process.late = w.random.IntN(15), w.random.IntN(2) == 0
		}
		w.step(n)
		if w.process.dead {
			w.start(byte(n))
		}
	}
	w.drain()
}

func (w *walker) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *walker) clock() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.now
}

func (w *walker) pass(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.now = w.now.Add(d)
}

// start begins a new process.
func (w *walker) start(seed byte) {
	w.process = &life{left: -1}
	m := w.world
	m.life = w.process
	signer := &signing.Service{
		Formats: sig.Formats{raw.New()}, Keys: w.keys, Policy: walkRules{}, Snapshots: walkRules{}, Spool: w.spool, Now: w.clock,
		Rand: rand.NewChaCha8([32]byte{seed, byte(w.random.IntN(256)), byte(w.random.IntN(256)), byte(w.random.IntN(256))}), Blobs: mortalBlobs{m},
	}
	settings := notify.DefaultSettings()
	settings.Attempts = 100
	var err error
	w.messages, err = notify.New(settings, notify.Deps{
		Store: mortalOutbox{store.Outbox{DB: m.operations.DB}, m.life}, Vault: w.ring, Notifiers: []notify.Notifier{walkReceiver{w, m.life}}, Now: w.clock, Rand: signer.Rand,
		Failed: w.sound,
	})
	w.must(err)
	w.operations, _ = m.signs(w.t, operation.Settings{Async: true, Attempts: 100}, operation.Deps{Vault: w.ring, Now: w.clock, Rand: signer.Rand}, signer, nil, operation.Callbacks{
		Messages: w.messages, Check: func(string) error { return nil },
		Render: func(o *operation.Operation) (signing.Result, error) { return strings.NewReader(w.look(o)), nil },
	})
	w.messages.OpenBodies(operation.CallbackForm, w.operations)
	w.answers = &signing.Answers{Store: mortalAnswers{m}, Blobs: mortalBlobs{m}, Spool: w.spool, Vault: w.ring, Now: w.clock, Rand: signer.Rand}
}

// walkReceiver accepts callbacks, or refuses them.
type walkReceiver struct {
	w    *walker
	life *life
}

func (walkReceiver) Channel() notify.Channel { return notify.Callback }

func (r walkReceiver) Send(_ context.Context, m notify.Message) error {
	w := r.w
	if r.life.dead {
		return errDead
	}
	if m.To != callbackURL {
		w.t.Errorf("a callback to %q", m.To)
	}
	var text bytes.Buffer
	if _, err := m.Body.WriteTo(&text); err != nil {
		return err
	}
	if before, ok := w.called[m.ID]; ok && before != text.String() {
		w.t.Errorf("callbacks of %s differ:\n%s\n%s", m.ID, before, text.String())
	}
	if w.random.IntN(3) == 0 {
		return errors.New("answered 500")
	}
	w.called[m.ID] = text.String()
	return nil
}

// look describes everything that is visible of an operation.
func (w *walker) look(o *operation.Operation) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s %v", o.ID, o.State, o.Fault)
	for i := range o.Documents {
		d := &o.Documents[i]
		content := ""
		if d.Content != nil {
			var text bytes.Buffer
			if _, err := d.Content.WriteTo(&text); err != nil {
				w.t.Error(err)
			}
			content = fmt.Sprintf("%x", text.Bytes())
		}
		fmt.Fprintf(&b, " [%s %s %s %v]", d.OriginalRef, d.RefID, content, d.Fault)
	}
	return b.String()
}

func (w *walker) step(n int) {
	ctx := w.t.Context()
	switch w.random.IntN(10) {
	case 0, 1:
		w.request(fmt.Sprint("new ", n), uint64(n))
	case 2: // repeat an earlier one
		if len(w.asked) > 0 {
			w.repeat(w.asked[w.random.IntN(len(w.asked))])
		}
	case 3, 4:
		_, err := w.operations.Next(ctx)
		w.sound(err)
	case 5:
		if id := w.recent(); id != "" {
			if err := w.operations.Cancel(ctx, w.who, id); !fault.Is(err, fault.WrongOperation) && !fault.Is(err, fault.NotFound) {
				w.sound(err)
			}
		}
	case 6:
		w.pass(notify.DefaultSettings().Lease) // of a process that died
		w.sound(w.messages.Flush(ctx))
	case 7:
		w.pass(time.Duration(w.random.IntN(120)) * time.Second)
		if w.random.IntN(8) == 0 { // all that waits expires
			w.pass(20 * time.Minute)
		}
	case 8:
		w.sweep()
	case 9:
		if len(w.began) > 0 {
			w.see(w.began[w.random.IntN(len(w.began))])
		}
	}
}

// sound accepts the errors that may occur when a process dies, and no others.
func (w *walker) sound(err error) {
	w.t.Helper()
	if err != nil && !errors.Is(err, errDead) {
		w.t.Error(err)
	}
}

// meanwhile is what the other process does in the middle of a signature: it cancels an
// operation, or takes over an operation whose process seems to have died.
func (w *walker) meanwhile() {
	if w.nested || w.random.IntN(3) > 0 {
		return
	}
	w.nested = true
	defer func() { w.nested = false }()
	if id := w.recent(); id != "" && w.random.IntN(2) == 0 {
		if err := w.other.Cancel(w.t.Context(), w.who, id); !fault.Is(err, fault.WrongOperation) && !fault.Is(err, fault.NotFound) {
			w.must(err)
		}
		return
	}
	w.pass(2 * time.Minute) // longer than a lease
	_, err := w.other.Next(w.t.Context())
	w.must(err)
}

// recent is one of the last operations; "" before the first.
func (w *walker) recent() string {
	if len(w.began) == 0 {
		return ""
	}
	return w.began[len(w.began)-1-w.random.IntN(min(4, len(w.began)))]
}

// repeat sends a request again.
func (w *walker) repeat(key string) {
	var number uint64
	fmt.Sscanf(key, "new %d", &number)
	w.request(key, number)
}

// request starts an operation with a key. The same number always gives the same
// operation.
func (w *walker) request(key string, number uint64) {
	ctx := w.t.Context()
	what := rand.New(rand.NewPCG(number, 2))
	turn, wait, err := w.answers.Begin(ctx, "user", key, []byte(key))
	if err != nil || wait {
		w.sound(err)
		return
	}
	defer turn.Close()
	if _, body, ok := turn.Kept(); ok {
		var text bytes.Buffer
		_, err := body.WriteTo(&text)
		w.must(err)
		if before := w.keyed[key]; before != "" && before != text.String() {
			w.t.Errorf("%s: answered\n%s\nand before\n%s", key, text.String(), before)
		}
		w.keyed[key] = text.String()
		return
	}
	if w.keyed[key] != "" && w.now.Sub(sigtest.Time) < 12*time.Hour {
		w.t.Errorf("%s runs again after it was answered", key)
	}
	if _, ok := w.keyed[key]; !ok {
		w.keyed[key] = ""
		w.asked = append(w.asked, key)
	}
	order := &signing.OperationOrder{Type: "GOST3410", PIN: "pin", Params: map[string]string{"Hash": "False"}}
	order.Async = what.IntN(3) > 0
	if what.IntN(2) == 0 {
		order.Callback = callbackURL
	}
	if order.Async && what.IntN(8) == 0 {
		order.PIN = "wrong"
	}
	var open []io.Closer
	for range 1 + what.IntN(3) {
		if what.IntN(2) == 0 {
			order.Inputs = append(order.Inputs, signing.Input{RefID: w.inputs[what.IntN(len(w.inputs))]})
			continue
		}
		in, err := w.operations.Signer.NewIntake(ctx, &signing.Snapshot{UserID: w.who.UserID})
		w.must(err)
		fmt.Fprintf(in, "content %d", number)
		w.must(in.Finish())
		open = append(open, in)
		order.Inputs = append(order.Inputs, signing.Input{Content: in, Name: "name"})
	}
	defer func() {
		for _, c := range open {
			c.Close()
		}
	}()
	answer := ""
	order.Keep = func(ctx context.Context, o *operation.Operation) (func(context.Context) error, error) {
		w.began = append(w.began, o.ID)
		w.pending[o.ID] = order.Callback != ""
		answer = w.look(o)
		if what.IntN(2) == 0 {
			answer += strings.Repeat(" ", 40_000) // a large answer
		}
		record, err := turn.Keep(ctx, []byte("head"), strings.NewReader(answer))
		return func(ctx context.Context) error { return record(ctx, nil) }, err
	}
	op, err := w.operations.Start(ctx, w.who, order)
	if err != nil {
		w.sound(err)
		if !w.process.dead {
			w.sound(turn.Release(ctx))
		}
		return
	}
	defer op.Close()
	w.accepted[op.ID] = true
	w.keyed[key] = answer
	if !op.Async {
		w.see(op.ID)
	}
}

// see compares an operation with what was seen of it before.
func (w *walker) see(id string) {
	w.t.Helper()
	op, err := w.operations.Find(w.t.Context(), w.who, id)
	switch {
	case fault.Is(err, fault.NotFound):
		if w.accepted[id] && w.now.Sub(sigtest.Time) < 12*time.Hour {
			w.t.Errorf("operation %s is lost", id)
		}
		return
	case err != nil:
		w.sound(err)
		return
	}
	defer op.Close()
	w.accepted[id] = true
	now := w.look(op)
	if before, ok := w.ended[id]; ok && before != now {
		w.t.Errorf("operation %s ended as\n%s\nand is now\n%s", id, before, now)
	}
	if op.State.Active() {
		return
	}
	w.ended[id] = now
	for i := range op.Documents {
		d := &op.Documents[i]
		if (op.State == operation.Completed) != (d.Fault == nil && d.Over()) {
			w.t.Errorf("an operation in the state %s has a document %+v", op.State, d)
		}
		if d.RefID == "" {
			continue
		}
		if of, ok := w.results[d.RefID]; ok && of != id {
			w.t.Errorf("document %s is the result of %s and of %s", d.RefID, of, id)
		}
		w.results[d.RefID] = id
	}
}

func (w *walker) sweep() {
	ctx := w.t.Context()
	w.sound(w.operations.Sweep(ctx))
	w.sound(w.answers.Sweep(ctx))
	w.sound(w.world.documents.Sweep(ctx))
	w.sound(w.world.blobs.SweepBlobs(ctx, w.now))
}

// finish runs everything that waits until an hour has passed.
func (w *walker) finish() {
	ctx := w.t.Context()
	for range 60 {
		for more := true; more; {
			var err error
			more, err = w.operations.Next(ctx)
			w.must(err)
		}
		w.pass(time.Minute)
		w.must(w.messages.Flush(ctx))
		w.must(w.operations.Sweep(ctx))
	}
}

// drain finishes all running operations and checks all of them.
func (w *walker) drain() {
	ctx := w.t.Context()
	w.start(0)
	w.finish()
	for _, key := range w.asked {
		w.repeat(key)
	}
	w.finish()
	ends := map[string]int{}
	for _, id := range w.began {
		w.see(id)
		if text, ok := w.ended[id]; ok {
			ends[strings.Fields(text)[1]]++
		} else if w.accepted[id] {
			w.t.Errorf("operation %s does not end", id)
		}
	}
	for id := range w.ended {
		if _, came := w.called[id]; came != w.pending[id] {
			w.t.Errorf("operation %s: a callback is pending: %v, one came: %v", id, w.pending[id], came)
		}
	}
	messages, err := w.messages.List(ctx, notify.MessageQuery{Limit: notify.MaxMessages})
	w.must(err)
	if len(messages) != len(w.called) {
		w.t.Errorf("%d messages for %d callbacks", len(messages), len(w.called))
	}
	for id := range w.called {
		if !strings.HasPrefix(w.ended[id], w.called[id]) {
			w.t.Errorf("the callback of %s said\n%s\nand it ended as\n%s", id, w.called[id], w.ended[id])
		}
		op, err := w.operations.Find(ctx, w.who, id)
		if fault.Is(err, fault.NotFound) {
			continue // it ended long ago
		}
		w.must(err)
		if !op.Called {
			w.t.Errorf("the callback of %s was accepted, but its operation does not say so", id)
		}
		w.must(op.Close())
	}
	if ends["Completed"] == 0 || len(w.called) == 0 {
		w.t.Errorf("the walk was too short to prove anything: %v, %d callbacks", ends, len(w.called))
	}
	// The stored documents are exactly the results that operations name.
	stored := 0
	w.must(w.world.documents.List(ctx, w.who, func(i document.Info) error {
		if stored++; i.Parent != "" && w.results[i.ID] == "" {
			w.t.Errorf("document %s is the result of no operation", i.ID)
		}
		return nil
	}))
	if stored != len(w.inputs)+len(w.results) {
		w.t.Errorf("%d documents are stored, want %d and %d results", stored, len(w.inputs), len(w.results))
	}
	// Nothing stays when all is over.
	w.pass(72 * time.Hour)
	w.sweep()
	files := 0
	w.must(filepath.WalkDir(filepath.Join(w.dir, "blobs"), func(name string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			files++
		}
		return err
	}))
	if w.inRow { // all documents are small
		stored = 0
	}
	if files != stored {
		w.t.Errorf("%d files, want %d", files, stored)
	}
	for _, id := range w.began {
		if _, err := w.operations.Find(ctx, w.who, id); !fault.Is(err, fault.NotFound) {
			w.t.Errorf("operation %s is kept for ever: %v", id, err)
		}
	}
	w.t.Logf("%d requests, ends %v, %d callbacks", len(w.keyed), ends, len(w.called))
}
