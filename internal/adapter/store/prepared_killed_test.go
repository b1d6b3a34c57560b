// SPDX-License-Identifier: Apache-2.0

package store_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"tamga/internal/adapter/store"
	"tamga/internal/adapter/store/storetest"
	"tamga/internal/domain/audit"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/signing"
	"tamga/internal/sigtest"
	"tamga/internal/testsize"
	"tamga/pki/suite"
	"tamga/sig"
	"tamga/sig/cades"
)

// killedSteps in the environment makes TestTwoStepsKilledProcess a process that is killed. Its value is a
// stepOrder.
const killedSteps = "TAMGA_TEST_KILLED_STEPS"

// stepOrder is a step of a signature in two steps that a process makes.
type stepOrder struct {
	URL, Dir, Done string // Done: the file of the answer
	Process        uint32 // those with odd numbers keep small documents in rows
	Now            time.Time
	At             int    // the process is killed at this point; points have numbers from 0
	Level          string // BES ends without a lease, T with one
	Detached       bool
	Certificate    []byte // of the client
	// Of the second step. ID is "" in the first one.
	ID    string
	Value []byte
}

// steps has the services of one process.
type steps struct {
	*stage
	prepared store.Prepared
}

func newSteps(t *testing.T, db *store.DB, dir string, number uint32, at func(string)) *steps {
	s := &steps{newStage(t, db, dir, number, &transition{}, at), store.Prepared{DB: db}}
	s.User = confirmedUser
	return s
}

// start starts a process.
func (s *steps) start() {
	s.stage.start()
	s.o.Signer.Prepared = s.prepared
}

func (s *steps) first(o *stepOrder) (*signing.Prepared, error) {
	params := map[string]string{"CADESType": o.Level, "IsDetached": fmt.Sprint(o.Detached)}
	return s.o.Signer.Prepare(s.t.Context(), s.who, &signing.PrepareOrder{Type: "CAdES", Params: params, Document: s.intake(s.o, twoStepText), Certificate: o.Certificate})
}

const twoStepText = "signed in two steps"

// second returns the signed message. It writes an audit entry together with the end of the object.
func (s *steps) second(o *stepOrder) (message string, err error) {
	order := &signing.CompleteOrder{ID: o.ID, Value: o.Value}
	order.Keep = func(context.Context, signing.Result) (audit.Beside, error) {
		return audit.Beside{Entry: &audit.Entry{At: s.clock(), RequestID: o.ID, Operation: "PostSign", Phase: audit.Done, Outcome: audit.OK, Principal: s.who}}, nil
	}
	completed, err := s.o.Signer.Complete(s.t.Context(), s.who, order)
	if err != nil {
		return "", err
	}
	var text strings.Builder
	_, err = completed.WriteTo(&text)
	return text.String(), errors.Join(err, completed.Close())
}

// TestTwoStepsKilledProcess is a process of TestTwoStepsKilled. Without an order there is nothing to do.
func TestTwoStepsKilledProcess(t *testing.T) {
	text := os.Getenv(killedSteps)
	if text == "" {
		return
	}
	var o stepOrder
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		t.Fatal(err)
	}
	db, err := store.Open(t.Context(), store.Options{URL: o.URL, Now: func() time.Time { return o.Now }})
	if err != nil {
		t.Fatal(err)
	}
	at, begin := dies(o.At)
	store.OnStatements(db, at)
	s := newSteps(t, db, o.Dir, o.Process, at)
	s.now = o.Now
	s.start()
	begin()
	answer := ""
	if o.ID == "" {
		var prepared *signing.Prepared
		if prepared, err = s.first(&o); err == nil {
			answer = prepared.ID
		}
	} else {
		answer, err = s.second(&o)
	}
	s.must(err)
	at("before the answer")
	s.must(os.WriteFile(o.Done, []byte(answer), 0o600))
	s.must(db.Close())
}

// TestTwoStepsKilled kills a process by SIGKILL at each point of presign and postsign: before and after each
// statement, each commit and each use of the storage of documents, and before the answer. What was prepared is completed
// once by the next process, or was completed and is written down as such, and nothing else stays.
//
// With TAMGA_TEST_FULL_FAULTS each point has its turn, otherwise two of each step.
func TestTwoStepsKilled(t *testing.T) {
	for _, engine := range engines(t) {
		for _, order := range []stepOrder{{Level: "BES"}, {Level: "BES", Detached: true}, {Level: "T", Detached: true}} {
			t.Run(fmt.Sprintf("%s/%s, detached %v", engine.name, order.Level, order.Detached), func(t *testing.T) {
				t.Parallel()
				url, dir := engine.reused(t), t.TempDir()
				pool, err := sql.Open(engine.driver, engine.source(url))
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { pool.Close() })
				db := storetest.Open(t, url)
				client := sigtest.Root(t, suite.GOST2012x256).Signer(t, suite.GOST2012x256, "client")
				order.Certificate = client.Certificate.Raw
				k := &stepKiller{killer: &killer{engine: engine, url: url, dir: dir, pool: pool}, client: client, order: order}
				store.OnStatements(db, k.at)
				k.steps = newSteps(t, db, dir, 0, k.at)
				k.stage = k.steps.stage
				k.steps.start()
				for _, inRow := range []bool{false, true} {
					k.rounds(inRow)
				}
				k.over()
			})
		}
	}
}

// stepKiller is the process that is not killed.
type stepKiller struct {
	*killer
	steps  *steps
	client *sigtest.Party
	order  stepOrder
}

// prepare makes the first step and signs.
func (k *stepKiller) prepare() (o stepOrder) {
	k.t.Helper()
	prepared, err := k.steps.first(&k.order)
	k.must(err)
	o = k.order
	o.ID, o.Value = prepared.ID, k.client.Sign(k.t, suite.Digest{Hash: k.client.Suite.Hash, Sum: prepared.Hash})
	return o
}

// rounds kills processes that keep small documents in rows, or not.
func (k *stepKiller) rounds(inRow bool) {
	k.t.Helper()
	listened := func(do func()) []string {
		k.points = nil
		k.listening(true)
		do()
		k.at("before the answer")
		k.listening(false)
		return slices.Clone(k.points)
	}
	var o stepOrder
	first := listened(func() { o = k.prepare() })
	second := listened(func() {
		message, err := k.steps.second(&o)
		k.must(err)
		k.signed("not killed", message)
	})
	k.complete("not killed", &o)
	for n := range k.turns(first) {
		o := k.order
		k.kill(fmt.Sprintf("in row %v, presign", inRow), inRow, &o, first, n)
	}
	for n := range k.turns(second) {
		o := k.prepare()
		label := k.kill(fmt.Sprintf("in row %v, postsign", inRow), inRow, &o, second, n)
		k.pass(16 * time.Second) // the lease ends
		k.complete(label, &o)
	}
}

// turns returns the points at which a process is killed.
func (k *stepKiller) turns(points []string) map[int]bool {
	turns := map[int]bool{}
	if testsize.Of() == testsize.Full {
		for n := range points {
			turns[n] = true
		}
		return turns
	}
	turns[len(points)-1] = true
	turns[len(points)/2] = true
	return turns
}

// kill has another process make a step, and kills it. A process with more points than this one would not be killed
// at the last ones.
func (k *stepKiller) kill(label string, inRow bool, o *stepOrder, points []string, n int) string {
	k.t.Helper()
	label = fmt.Sprintf("%s, killed at point %d, %s", label, n, points[n])
	k.processes += 2
	o.URL, o.Dir, o.Done, o.Now, o.At, o.Process = k.urlOfKilled(), k.dir, filepath.Join(k.dir, "done"), k.clock(), n, k.processes
	if inRow {
		o.Process++
	}
	if k.dying("TestTwoStepsKilledProcess", killedSteps, o, o.Done, label) {
		if !inRow || o.Detached {
			k.t.Fatalf("%s: the process has answered", label)
		}
		k.must(os.Remove(o.Done)) // in a row the document costs no points
	}
	return label
}

// complete makes the second step, unless it was made, and checks that it cannot be made again.
func (k *stepKiller) complete(label string, o *stepOrder) {
	k.t.Helper()
	spent := value[int64](k.killer, "SELECT COUNT(*) FROM prepared WHERE spent_at <> 0 AND id = '"+o.ID+"'") == 1
	message, err := k.steps.second(o)
	switch {
	case spent:
		k.used(label, err)
	case err != nil:
		k.t.Fatalf("%s: what was answered is lost: %v", label, err)
	default:
		k.signed(label, message)
	}
	_, err = k.steps.second(o)
	k.used(label, err)
	k.counts(label, "audit entries of the end", 1, "SELECT COUNT(*) FROM audit WHERE request_id = '%s' AND operation = 'PostSign'", o.ID)
	k.counts(label, "rows that keep a document", 0, "SELECT COUNT(*) FROM prepared WHERE id = '%s' AND (document <> '' OR original <> '')", o.ID)
}

func (k *stepKiller) used(label string, err error) {
	k.t.Helper()
	if !fault.Is(err, fault.InvalidObjectState) || !strings.Contains(err.Error(), "was used already") {
		k.t.Errorf("%s: an object that is spent: %v", label, err)
	}
}

// signed verifies a message.
func (k *stepKiller) signed(label, message string) {
	k.t.Helper()
	roots := slices.Concat(k.client.Chain, k.steps.evidence.TSA.Chain)
	c := &sig.Check{Document: strings.NewReader(message), Certificate: k.client.Certificate, Roots: roots, At: sigtest.Time}
	if k.order.Detached {
		c.Original = strings.NewReader(twoStepText)
	}
	report, err := cades.New().Verify(k.t.Context(), c)
	if err != nil || report.Verdict() != sig.Passed || report.Signatures[0].Level != k.order.Level {
		k.t.Errorf("%s: the signature: %v, %v", label, report, err)
	}
}

// over lets the time of everything pass. Nothing stays.
func (k *stepKiller) over() {
	k.t.Helper()
	k.pass(time.Hour)
	k.must(k.steps.o.Signer.Sweep(k.t.Context()))
	for _, what := range []string{"prepared", "prepared_shares WHERE objects <> 0 OR bytes <> 0"} {
		k.counts("at last", "rows of "+what, 0, "SELECT COUNT(*) FROM %s", what)
	}
	err := filepath.WalkDir(filepath.Join(k.dir, "blobs"), func(name string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			k.t.Errorf("%s is left", name)
		}
		return err
	})
	k.must(err)
}
