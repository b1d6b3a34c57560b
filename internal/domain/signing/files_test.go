// SPDX-License-Identifier: Apache-2.0

package signing

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"testing"
	"time"

	"tamga/internal/domain/audit"
	"tamga/internal/sigtest"
	"tamga/pki/suite"
	"tamga/sig"
	"tamga/sig/budget"
)

// memoryBlobs keeps documents in memory.
type memoryBlobs struct {
	kept map[string][]byte
	made int
	left int // how many documents fit
}

type memoryBlob struct{ *bytes.Reader }

func (memoryBlob) Close() error { return nil }

func (b *memoryBlobs) KeepBlob(_ context.Context, d sig.Document, _ time.Time) (string, error) {
	if b.left--; b.left < 0 {
		return "", errors.New("no space left")
	}
	data, err := io.ReadAll(io.NewSectionReader(d, 0, d.Size()))
	b.made++
	name := fmt.Sprint("blob", b.made)
	b.kept[name] = data
	return name, err
}

func (b *memoryBlobs) OpenBlob(_ context.Context, name string) (Blob, error) {
	data, ok := b.kept[name]
	if !ok {
		return nil, fs.ErrNotExist
	}
	return memoryBlob{bytes.NewReader(data)}, nil
}

func (b *memoryBlobs) RemoveBlob(_ context.Context, name string) error {
	delete(b.kept, name)
	return nil
}

func (b *memoryBlobs) SweepBlobs(context.Context, time.Time) error { return nil }

// onePrepared stores one prepared object.
type onePrepared struct {
	PreparedStore
	record *PreparedRecord
}

func (p *onePrepared) AddPrepared(_ context.Context, r *PreparedRecord, _, _ Quota, _ audit.Beside) (bool, error) {
	p.record = r
	return true, nil
}

func (p *onePrepared) FindPrepared(_ context.Context, id string) (*PreparedRecord, bool, error) {
	return p.record, p.record.ID == id, nil
}

func (p *onePrepared) FailPrepared(context.Context, string, time.Time, int) (int, bool, error) {
	p.record.Failures++
	return p.record.Failures, true, nil
}

func (p *onePrepared) ClaimPrepared(_ context.Context, id, _ string, _, _ time.Time, _ int) (bool, error) {
	return p.record.ID == id, nil
}

func (p *onePrepared) ReleasePrepared(context.Context, string, string) error { return nil }

func (p *onePrepared) SpendPrepared(_ context.Context, _, _ string, now time.Time, _ int, _ audit.Beside) (bool, error) {
	p.record.SpentAt = now
	return true, nil
}

// A prepared object with several documents stores all of them, is finished with all of them, and leaves
// none behind. All of them count in the quota and in the budget of a caller without a token.
func TestTwoStepsOfSeveralDocuments(t *testing.T) {
	for _, end := range []string{"completed", "discarded", "not stored"} {
		t.Run(end, func(t *testing.T) {
			s, k := newService(t, suite.GOST2012x256)
			s.Formats = append(s.Formats, sigtest.Container{})
			blobs, store := &memoryBlobs{kept: map[string][]byte{}, left: 3}, new(onePrepared)
			if end == "not stored" {
				blobs.left = 2
			}
			s.Blobs, s.Prepared, s.Rand = blobs, store, rand.Reader
			var sizes []int64
			s.Anonymous = func(size int64) budget.Limits {
				sizes = append(sizes, size)
				return budget.Anonymous()
			}
			way, err := s.request(t.Context(), "Container", nil)
			if err != nil {
				t.Fatal(err)
			}
			first := content(t, s, "first")
			job := &sig.Job{
				Name: "a", Document: first, Digests: first.digests(), Certificate: k.signer.Certificate, Time: s.Now(), Request: way.read,
				Files: []sig.File{
					{Name: "b", Document: strings.NewReader("second"), Digests: []suite.Digest{suite.Streebog256.Digest([]byte("second"))}},
					{Name: "c", Document: strings.NewReader("third")},
				},
			}
			p, err := way.format.Prepare(s.bounded(t.Context(), true, job), job)
			if err != nil {
				t.Fatal(err)
			}
			kept, err := s.keep(t.Context(), OfAddress+"192.0.2.1", way, &PrepareOrder{}, job, p)
			if end == "not stored" {
				if err == nil || len(blobs.kept) != 0 || store.record != nil {
					t.Errorf("%v; %d documents stay, %+v", err, len(blobs.kept), store.record)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if want := int64(len("first"+"second"+"third") + len(store.record.Job)); store.record.Bytes != want || len(blobs.kept) != 3 {
				t.Errorf("%d bytes count, want %d; %d documents", store.record.Bytes, want, len(blobs.kept))
			}
			if end == "discarded" {
				for range wrongValues {
					if _, err := s.Complete(t.Context(), audit.Principal{}, &CompleteOrder{ID: kept.ID, Value: []byte("wrong")}); err == nil {
						t.Fatal("a wrong value is accepted")
					}
				}
				if len(blobs.kept) != 0 {
					t.Errorf("%d documents stay", len(blobs.kept))
				}
				return
			}
			_, stored, err := readJob(store.record.Job)
			if err != nil || stored.Name != "a" || len(stored.Digests) != 1 || len(stored.Files) != 2 || stored.Files[0].Name != "b" || len(stored.Files[0].Digests) != 1 || stored.Files[1].Digests != nil {
				t.Errorf("%+v, %v", stored, err)
			}
			done, err := s.Complete(t.Context(), audit.Principal{}, &CompleteOrder{ID: kept.ID, Value: k.signer.Sign(t, p.Digest)})
			if err != nil {
				t.Fatal(err)
			}
			var file bytes.Buffer
			if _, err := done.WriteTo(&file); err != nil || !strings.HasSuffix(file.String(), "\nfirstsecondthird") {
				t.Errorf("%q, %v", file.String(), err)
			}
			report, err := sigtest.Container{}.Verify(t.Context(), &sig.Check{Document: bytes.NewReader(file.Bytes()), Certificate: k.signer.Certificate})
			if err != nil || !report.Signatures[0].Holds() {
				t.Errorf("%+v, %v", report, err)
			}
			if err := done.Close(); err != nil || len(blobs.kept) != 0 {
				t.Errorf("%v; %d documents stay", err, len(blobs.kept))
			}
			if fmt.Sprint(sizes) != "[16 16]" {
				t.Errorf("the budgets are for %v bytes", sizes)
			}
		})
	}
}
