// SPDX-License-Identifier: Apache-2.0

package tsp_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"tamga/internal/sigtest"
	"tamga/internal/testsize"
	"tamga/pki/suite"
	"tamga/pki/tsp"
)

// A record covers the documents of its group, through renewals of time stamps and of the algorithm. With another document, one
// less, one more, or a changed byte anywhere it does not.
func TestRecord(t *testing.T) {
	root := sigtest.Root(t, suite.GOST2012x256)
	services := sigtest.NewServices(t, root)
	documents := [][]byte{[]byte("first"), []byte("second"), []byte("third")}
	digests := func(documents ...[]byte) func(int, *suite.Hash) ([][]byte, error) {
		return func(_ int, h *suite.Hash) (list [][]byte, err error) {
			for _, d := range documents {
				list = append(list, h.Digest(d).Sum)
			}
			return list, nil
		}
	}
	of := func(h *suite.Hash, documents ...[]byte) [][]byte { list, _ := digests(documents...)(0, h); return list }
	var r sigtest.Record
	r.Add(t, services, suite.SHA256, of(suite.SHA256, documents...), suite.SHA256.Digest([]byte("of another owner")).Sum)
	r.Renew(t, services)
	r.NewChain(t, services, suite.Streebog256, of(suite.Streebog256, documents...))
	r.Renew(t, services)
	der := r.DER()
	record, err := tsp.ParseRecord(der, nil)
	if err != nil || len(record.Stamps) != 4 {
		t.Fatalf("%+v %v", record, err)
	}
	if err := record.Check(digests(documents...)); err != nil {
		t.Error(err)
	}
	if err := record.Check(digests(documents[1], documents[2], documents[0])); err != nil {
		t.Errorf("in another order: %v", err)
	}
	for name, other := range map[string][][]byte{
		"another document": {documents[0], documents[1], []byte("fourth")}, "one less": documents[:2], "one more": append(documents[:3:3], []byte("fourth")), "none": nil,
	} {
		if err := record.Check(digests(other...)); !errors.Is(err, tsp.ErrRecord) {
			t.Errorf("%s: %v", name, err)
		}
	}
	step := 11
	if testsize.Of() >= testsize.Whole { // every byte in the long form
		step = 1
	}
	for i := 0; i < len(der); i += step {
		changed := bytes.Clone(der)
		changed[i] ^= 1
		again, err := tsp.ParseRecord(changed, nil)
		if err != nil {
			continue
		}
		if again.Check(digests(documents...)) != nil {
			continue
		}
		// What the trees do not cover is in the signature of the last token, or means nothing.
		bad := false
		for _, s := range again.Stamps {
			_, err := s.Token.CheckSignature(nil)
			bad = bad || err != nil
		}
		if !bad && !sameStamps(record, again) {
			t.Fatalf("byte %d can be changed", i)
		}
	}
	// A stamp may not be earlier than the one that it renews.
	var back sigtest.Record
	back.Add(t, services, suite.SHA256, of(suite.SHA256, documents[0]))
	services.Now = services.Now.Add(-time.Hour)
	back.Renew(t, services)
	if record, err = tsp.ParseRecord(back.DER(), nil); err != nil {
		t.Fatal(err)
	}
	if err := record.Check(digests(documents[0])); err == nil || !strings.Contains(err.Error(), "earlier than the one before") {
		t.Errorf("out of order: %v", err)
	}
	if _, err := tsp.ParseRecord(der[:len(der)-1], nil); err == nil {
		t.Error("a cut record is read")
	}
	full := errors.New("full")
	if _, err := tsp.ParseRecord(der, func(int64) error { return full }); !errors.Is(err, full) {
		t.Errorf("without memory: %v", err)
	}
}

// sameStamps reports whether two records have the same tokens and algorithms.
func sameStamps(a, b *tsp.Record) bool {
	for i := range a.Stamps {
		if i >= len(b.Stamps) || a.Stamps[i].Hash != b.Stamps[i].Hash || !a.Stamps[i].Token.Info.Time.Equal(b.Stamps[i].Token.Info.Time) {
			return false
		}
	}
	return len(a.Stamps) == len(b.Stamps)
}

func FuzzRecord(f *testing.F) {
	services := sigtest.NewServices(f, sigtest.Root(f, suite.ECDSAP256))
	var r sigtest.Record
	r.Add(f, services, suite.SHA256, [][]byte{suite.SHA256.Digest([]byte("x")).Sum})
	r.Renew(f, services)
	f.Add(r.DER())
	f.Fuzz(func(t *testing.T, der []byte) {
		if record, err := tsp.ParseRecord(der, nil); err == nil {
			record.Check(func(_ int, h *suite.Hash) ([][]byte, error) { return [][]byte{h.Digest([]byte("x")).Sum}, nil })
		}
	})
}
