// SPDX-License-Identifier: Apache-2.0

package signing

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"

	"tamga/internal/domain/audit"
	"tamga/internal/domain/fault"
	"tamga/pki/suite"
	"tamga/sig"
	"tamga/sig/cades"
)

// scripted is a format whose steps fail for some documents.
type scripted struct {
	sig.Described
	prepare, finish func(document string) error
	at, most        atomic.Int32
}

func text(d sig.Document) string {
	b := make([]byte, d.Size())
	d.ReadAt(b, 0)
	return string(b)
}

func (f *scripted) Prepare(ctx context.Context, job *sig.Job) (*sig.Prepared, error) {
	n := f.at.Add(1)
	defer f.at.Add(-1)
	for most := f.most.Load(); n > most && !f.most.CompareAndSwap(most, n); most = f.most.Load() {
	}
	if f.prepare != nil {
		if err := f.prepare(text(job.Document)); err != nil {
			return nil, err
		}
	}
	return f.Described.Prepare(ctx, job)
}

func (f *scripted) Finish(ctx context.Context, job *sig.Job, state, signature []byte) (sig.Result, error) {
	if f.finish != nil {
		if err := f.finish(text(job.Document)); err != nil {
			return nil, err
		}
	}
	return f.Described.Finish(ctx, job, state, signature)
}

func items(t *testing.T, s *Service, n int) []Item {
	list := make([]Item, n)
	for i := range list {
		list[i].Content = content(t, s, fmt.Sprint("document ", i))
	}
	return list
}

// TestSignMany checks that an error in an item does not affect the others, in every step.
func TestSignMany(t *testing.T) {
	s, k := newService(t, suite.GOST2012x256)
	f := &scripted{Described: cades.New(),
		prepare: func(d string) error {
			if d == "document 3" {
				return &sig.ErrDocument{What: "Document", Text: "three"}
			}
			return nil
		},
		finish: func(d string) error {
			if d == "document 5" {
				return &sig.ErrEvidence{What: "time stamp", Text: "five", Err: errors.New("hidden")}
			}
			return nil
		},
	}
	s.Formats = sig.Formats{f}
	list := items(t, s, 40)
	list[7].Err = fault.New(fault.InvalidContent, "seven")
	got, err := s.SignMany(context.Background(), audit.Principal{}, &BatchOrder{Type: "cades", Params: map[string]string{"IsDetached": "False"}, Items: list})
	if err != nil {
		t.Fatal(err)
	}
	wants := map[int]*fault.Error{
		3: {Code: fault.InvalidContent, Message: "Document: three"},
		5: {Code: fault.Failed, Message: "time stamp: five"},
		7: {Code: fault.InvalidContent, Message: "seven"},
	}
	for i, o := range got {
		if want := wants[i]; want != nil {
			if o.Result != nil || o.Err == nil || o.Err.Code != want.Code || o.Err.Message != want.Message {
				t.Errorf("item %d: %v, %v", i, o.Result, o.Err)
			}
			continue
		}
		var message bytes.Buffer
		if o.Err != nil || o.Result == nil {
			t.Errorf("item %d: %v", i, o.Err)
		} else if _, err := o.Result.WriteTo(&message); err != nil || !bytes.Contains(message.Bytes(), fmt.Appendf(nil, "document %d", i)) {
			t.Errorf("item %d: a message of another document, %v", i, err)
		}
	}
	if k.asked != 1 || f.most.Load() > parallel {
		t.Errorf("the key was asked %d times, %d documents were under way at once", k.asked, f.most.Load())
	}
}

// TestSignManyStops checks that internal errors and clients that are gone end a batch,
// and that a wrong signature value is not returned.
func TestSignManyStops(t *testing.T) {
	broken := errors.New("broken")
	for _, c := range []struct {
		name  string
		setup func(s *Service, k *fakeKeys, f *scripted, cancel func())
		want  error // nil: any error that is not a fault
	}{
		{"prepare", func(_ *Service, _ *fakeKeys, f *scripted, _ func()) {
			f.prepare = func(string) error { return broken }
		}, broken},
		{"finish", func(_ *Service, _ *fakeKeys, f *scripted, _ func()) {
			f.finish = func(string) error { return broken }
		}, broken},
		{"hung up before", func(_ *Service, _ *fakeKeys, _ *scripted, cancel func()) { cancel() }, context.Canceled},
		{"hung up in the middle", func(_ *Service, _ *fakeKeys, f *scripted, cancel func()) {
			f.finish = func(string) error { cancel(); return fault.New(fault.Failed, "a fault that came of it") }
		}, context.Canceled},
		{"spoiled value", func(_ *Service, k *fakeKeys, _ *scripted, _ func()) {
			n := 0
			k.spoil = func(value []byte) {
				if n++; n == 3 {
					value[0] ^= 1
				}
			}
		}, nil},
	} {
		s, k := newService(t, suite.GOST2012x256)
		f := &scripted{Described: cades.New()}
		s.Formats = sig.Formats{f}
		ctx, cancel := context.WithCancel(context.Background())
		c.setup(s, k, f, cancel)
		got, err := s.SignMany(ctx, audit.Principal{}, &BatchOrder{Type: "CAdES", Items: items(t, s, 10)})
		cancel()
		if _, isFault := fault.As(err); got != nil || err == nil || isFault || c.want != nil && !errors.Is(err, c.want) {
			t.Errorf("%s: %v, %v", c.name, got, err)
		}
	}
}

func TestSignManyRefusals(t *testing.T) {
	denied := fault.New(fault.AccessDenied, "no")
	for _, c := range []struct {
		name  string
		order BatchOrder
		deny  error
		n     int
		code  string
	}{
		{"nothing", BatchOrder{Type: "CAdES"}, nil, 0, fault.ContentRequired},
		{"denied", BatchOrder{Type: "CAdES"}, denied, 1, fault.AccessDenied},
		{"no time-stamp service", BatchOrder{Type: "CAdES", Params: map[string]string{"CADESType": "T"}}, nil, 1, fault.InvalidSignatureParams},
		{"wrong PIN", BatchOrder{Type: "CAdES", PIN: "wrong"}, nil, 2, fault.InvalidPIN},
		{"too many", BatchOrder{Type: "CAdES"}, nil, 6, fault.InvalidParameters},
	} {
		s, _ := newService(t, suite.GOST2012x256)
		s.Policy, s.BatchItems = fakePolicy{err: c.deny}, 5
		c.order.Items = items(t, s, c.n)
		if got, err := s.SignMany(context.Background(), audit.Principal{}, &c.order); got != nil || !fault.Is(err, c.code) {
			t.Errorf("%s: %v, %v", c.name, got, err)
		}
	}
}
