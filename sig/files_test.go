// SPDX-License-Identifier: Apache-2.0

package sig_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"tamga/internal/sigtest"
	"tamga/pki/suite"
	"tamga/sig"
	"tamga/sig/budget"
)

// three returns a job over three documents.
func three(signer *sigtest.Party) *sig.Job {
	return &sig.Job{
		Name: "a.txt", Document: strings.NewReader("first"), Certificate: signer.Certificate, Time: sigtest.Time,
		Files: []sig.File{
			{Name: "b.txt", Document: strings.NewReader(strings.Repeat("second", 50_000))},
			{Name: "c.txt", Document: strings.NewReader("")},
		},
	}
}

// unread is a document that must not be read.
type unread struct{ sig.Document }

func (unread) ReadAt([]byte, int64) (int, error) { return 0, errors.New("it was read") }

// One signature covers three documents, in one step and in two.
func TestSeveralDocuments(t *testing.T) {
	for _, s := range []*suite.Suite{suite.GOST2012x512, suite.ECDSAP256} {
		signer := sigtest.Root(t, s).Signer(t, s, "Signer")
		verify := func(r sig.Result) {
			t.Helper()
			var file bytes.Buffer
			if n, err := r.WriteTo(&file); err != nil || n != r.Size() {
				t.Fatal(n, err)
			}
			report, err := sigtest.Container{}.Verify(context.Background(), &sig.Check{Document: bytes.NewReader(file.Bytes()), Certificate: signer.Certificate})
			if err != nil || !report.Signatures[0].Holds() {
				t.Fatalf("%v, %+v", err, report)
			}
			at := 0
			for _, name := range []string{`"a.txt" 5 `, `"b.txt" 300000 `, `"c.txt" 0 `} {
				i := strings.Index(report.Signatures[0].Covers, name)
				if i < at {
					t.Errorf("%s at %d of %s", name, i, report.Signatures[0].Covers)
				}
				at = i
			}
		}
		r, err := sig.Sign(context.Background(), sigtest.Container{}, three(signer), sigtest.Random(1), signer.Key)
		if err != nil {
			t.Fatal(err)
		}
		verify(r)

		// Known digests spare reading the first document and the others alike.
		known := three(signer)
		for f := range known.Documents() {
			d, err := sig.DigestOf(context.Background(), f, s.Hash)
			if err != nil {
				t.Fatal(err)
			}
			if f.Name == known.Name {
				known.Digests, known.Document = []suite.Digest{d}, unread{f.Document}
			}
			for i := range known.Files {
				if known.Files[i].Name == f.Name {
					known.Files[i].Digests, known.Files[i].Document = []suite.Digest{suite.SHA1.Digest(nil), d}, unread{f.Document}
				}
			}
		}
		p, err := sigtest.Container{}.Prepare(context.Background(), known)
		if err != nil {
			t.Fatal(err)
		}
		if r, err = (sigtest.Container{}).Finish(context.Background(), three(signer), p.State, signer.Sign(t, p.Digest)); err != nil {
			t.Fatal(err)
		}
		verify(r)
	}
}

// Finish notices that its documents are not those of Prepare.
func TestOtherDocuments(t *testing.T) {
	s := suite.ECDSAP256
	signer := sigtest.Root(t, s).Signer(t, s, "Signer")
	p, err := sigtest.Container{}.Prepare(context.Background(), three(signer))
	if err != nil {
		t.Fatal(err)
	}
	value := signer.Sign(t, p.Digest)
	for name, change := range map[string]func(*sig.Job){
		"another document":           func(j *sig.Job) { j.Document = strings.NewReader("First") },
		"a longer document":          func(j *sig.Job) { j.Document = strings.NewReader("firsts") },
		"another name":               func(j *sig.Job) { j.Name = "A.txt" },
		"another file":               func(j *sig.Job) { j.Files[0].Document = strings.NewReader(strings.Repeat("Second", 50_000)) },
		"a longer file":              func(j *sig.Job) { j.Files[1].Document = strings.NewReader("x") },
		"another name of a file":     func(j *sig.Job) { j.Files[1].Name = "d.txt" },
		"another order":              func(j *sig.Job) { slices.Reverse(j.Files) },
		"a file less":                func(j *sig.Job) { j.Files = j.Files[:1] },
		"no files":                   func(j *sig.Job) { j.Files = nil },
		"a file more":                func(j *sig.Job) { j.Files = append(j.Files, sig.File{Name: "d.txt", Document: strings.NewReader("")}) },
		"a file without document":    func(j *sig.Job) { j.Files[0].Document = nil },
		"another digest of the file": func(j *sig.Job) { j.Files[0].Digests = []suite.Digest{s.Hash.Digest(nil)} },
	} {
		job := three(signer)
		change(job)
		var e *sig.ErrState
		if _, err := (sigtest.Container{}).Finish(context.Background(), job, p.State, value); !errors.As(err, &e) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := (sigtest.Container{}).Finish(context.Background(), three(signer), p.State, value); err != nil {
		t.Error(err)
	}
}

// A format that signs one document refuses Files, whatever else is wrong, and so does one that signs
// several with other parameters.
func TestFilesRefused(t *testing.T) {
	s := suite.ECDSAP256
	signer := sigtest.Root(t, s).Signer(t, s, "Signer")
	refused := func(err error) bool {
		var e *sig.ErrParams
		return errors.As(err, &e) && slices.ContainsFunc(e.Faults, func(f sig.Fault) bool { return f.Key == "Files" && strings.Contains(f.Text, "2 more documents") })
	}
	job := three(signer)
	if _, err := (sigtest.MadeUp{}).Prepare(context.Background(), job); !refused(err) {
		t.Error(err)
	}
	if _, err := (sigtest.MadeUp{}).Prepare(context.Background(), &sig.Job{Document: job.Document, Name: "a", Certificate: job.Certificate}); err != nil {
		t.Error(err)
	}
	job.Params = sig.Params{sigtest.ContainerAlone: "True", "Hash": "maybe"}
	if _, err := (sigtest.Container{}).Prepare(context.Background(), job); !refused(err) || !strings.Contains(err.Error(), "Hash") {
		t.Error(err)
	}
	// Each job has its own faults.
	q := job.Params.Request()
	if err := q.ForJob(job).Err(); !refused(err) {
		t.Error(err)
	}
	if err := q.ForJob(new(sig.Job)).Err(); refused(err) {
		t.Error(err)
	}
	q.Several = true
	if err := q.ForJob(job).Err(); refused(err) {
		t.Error(err)
	}
	form := sig.StateForm{What: "a test", First: 3, Version: 3}
	state := sig.MarshalState(&sigtestState{sig.StateHeader{Version: 3}}, 8)
	if err := sig.OpenState(form, job, state, new(sigtestState)); !refused(err) {
		t.Error(err)
	}
	if err := sig.OpenState(form, job, nil, new(sigtestState)); !refused(err) {
		t.Errorf("without a state: %v", err)
	}
	form.Several = true
	if err := sig.OpenState(form, job, state, new(sigtestState)); err != nil {
		t.Error(err)
	}
}

type sigtestState struct{ sig.StateHeader }

func (*sigtestState) Fields(*sig.Fields) {}

// All documents of a job count for its size and for its budget.
func TestSizeOfJob(t *testing.T) {
	s := suite.ECDSAP256
	job := three(sigtest.Root(t, s).Signer(t, s, "Signer"))
	if got := job.Size(); got != 300_005 {
		t.Errorf("%d bytes", got)
	}
	names := func(most int) (list []string) {
		for f := range job.Documents() {
			if list = append(list, f.Name); len(list) == most {
				break
			}
		}
		return list
	}
	if got := names(0); !slices.Equal(got, []string{"a.txt", "b.txt", "c.txt"}) {
		t.Errorf("%v", got)
	}
	if len(names(1)) != 1 || len(names(2)) != 2 {
		t.Error("it goes on")
	}
	most := budget.Ordinary(job.Size()).Memory
	for n, want := range map[int64]error{most: nil, most + 1: budget.ErrMemory} {
		_, err := sig.Within(context.Background(), job, func(ctx context.Context) (int, error) {
			_, b := budget.Of(ctx, 0)
			return 0, b.Hold(n)
		})
		if !errors.Is(err, want) {
			t.Errorf("%d bytes: %v", n, err)
		}
	}
	job.Document, job.Files[0].Document = nil, nil
	if got := job.Size(); got != 0 {
		t.Errorf("%d bytes of no documents", got)
	}
}

// A job with one document takes no memory for the list of its documents.
func TestDocumentsTakeNoMemory(t *testing.T) {
	job := &sig.Job{Document: strings.NewReader("x")}
	if n := testing.AllocsPerRun(100, func() {
		if job.Size() != 1 {
			t.Error("the size is wrong")
		}
		for f := range job.Documents() {
			if _, err := f.Document.ReadAt(nil, 0); err != nil && err != io.EOF {
				t.Error(err)
			}
		}
	}); n > 0 {
		t.Errorf("%v allocations", n)
	}
}
