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

	"tamga/pki/suite"
	"tamga/sig"
)

func TestParams(t *testing.T) {
	choices := []sig.Choice{{Name: "BES", Number: "0"}, {Name: "T", Number: "2"}, {Name: "Plain"}}
	for value, want := range map[string]bool{"True": true, "true": true, "TRUE": true, " 1 ": true, "False": false, "false": false, "0": false, "": true, " ": true} {
		r := sig.Params{" isdetached\t": value}.Reader()
		if got := r.Bool("IsDetached", true); got != want || r.Err() != nil {
			t.Errorf("Bool of %q: %v, %v", value, got, r.Err())
		}
	}
	for value, want := range map[string]string{"BES": "BES", "bes": "BES", "0": "BES", "2": "T", "plain": "Plain", "": "T"} {
		r := sig.Params{"CADESType": value}.Reader()
		if got := r.Enum("cadestype", choices, "T"); got != want || r.Err() != nil {
			t.Errorf("Enum of %q: %v, %v", value, got, r.Err())
		}
	}
	if r := (sig.Params{}).Reader(); !r.Bool("Hash", true) || r.Bool("Hash", false) || r.Enum("X", choices, "T") != "T" || r.Has("X") {
		t.Error("absent values are not the defaults")
	}
	r := sig.Params{"TSPAddress": "", "Other": " x "}.Reader()
	if !r.Has("tspaddress") || r.Given("TSPAddress") || !r.Given("OTHER") || r.String("other") != "x" {
		t.Error("Has, Given or String is wrong")
	}
}

func TestParamsFaults(t *testing.T) {
	for range 20 { // the order of the map must not matter
		r := sig.Params{"A": "x", "B": "7", "hash": "True", "Hash": "False", "HASH": "True", "C": strings.Repeat("я", 1000)}.Reader()
		r.Bool("A", false)
		r.Enum("B", []sig.Choice{{Name: "One", Number: "1"}, {Name: "Two"}}, "One")
		r.Bool("C", false)
		var e *sig.ErrParams
		if !errors.As(r.Err(), &e) {
			t.Fatal(r.Err())
		}
		var keys []string
		for _, f := range e.Faults {
			keys = append(keys, f.Key)
		}
		if !slices.Equal(keys, []string{"Hash", "A", "B", "C"}) {
			t.Fatalf("faults %v", keys)
		}
		if s := e.Error(); !strings.Contains(s, "One, Two") || len(s) > 600 {
			t.Fatalf("%d bytes: %s", len(s), s)
		}
	}
}

func FuzzParams(f *testing.F) {
	f.Add("CADESType", "BES", "cadestype ", "T")
	f.Add("Hash", "True", "IsDetached", "0")
	f.Fuzz(func(t *testing.T, k1, v1, k2, v2 string) {
		r := sig.Params{k1: v1, k2: v2}.Reader()
		r.Bool("Hash", false)
		r.Enum("CADESType", []sig.Choice{{Name: "BES", Number: "0"}}, "BES")
		r.CheckHashAlgorithm(suite.GOST2012x256)
		r.Has(k1)
		if err := r.Err(); err != nil && len(err.Error()) > 1000+len(k1)+len(k2) {
			t.Fatalf("an error of %d bytes", len(err.Error()))
		}
	})
}

func TestParts(t *testing.T) {
	doc := strings.NewReader(strings.Repeat("0123456789", 40000)) // several chunks
	r := sig.Parts(sig.Bytes([]byte("<")), sig.Part{}, sig.Section(doc, 5, 399_990), sig.Bytes(nil), sig.Bytes([]byte(">")))
	if r.Size() != 399_992 {
		t.Errorf("size %d", r.Size())
	}
	for range 2 { // any number of times
		var out bytes.Buffer
		n, err := r.WriteTo(&out)
		if err != nil || n != r.Size() || int64(out.Len()) != n {
			t.Fatal(n, err)
		}
		if b := out.Bytes(); string(b[:6]) != "<56789" || string(b[len(b)-6:]) != "01234>" {
			t.Errorf("%s ... %s", b[:6], b[len(b)-6:])
		}
	}
	if n, err := sig.Parts(sig.Section(doc, 399_999, 2)).WriteTo(io.Discard); n != 0 || !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("beyond the end: %d, %v", n, err)
	}
	if n, err := r.WriteTo(&limited{left: 10}); n != 10 || err == nil {
		t.Errorf("a writer that fails: %d, %v", n, err)
	}
}

type limited struct{ left int }

func (l *limited) Write(p []byte) (int, error) {
	n := min(len(p), l.left)
	l.left -= n
	if n < len(p) {
		return n, errors.New("full")
	}
	return n, nil
}

func TestDigestOf(t *testing.T) {
	doc := strings.Repeat("0123456789", 40000)
	want := suite.Streebog256.Digest([]byte(doc))
	job := &sig.Job{Document: strings.NewReader(doc), Digests: []suite.Digest{
		suite.SHA256.Digest(nil),
		{Hash: suite.Streebog256, Sum: []byte("of a wrong length")},
	}}
	got, err := sig.DigestOf(context.Background(), job.First(), suite.Streebog256)
	if err != nil || got.Hash != want.Hash || !bytes.Equal(got.Sum, want.Sum) {
		t.Errorf("%x, %v", got.Sum, err)
	}
	given := suite.Digest{Hash: suite.Streebog256, Sum: make([]byte, 32)}
	job.Digests = append(job.Digests, given)
	if got, err = sig.DigestOf(context.Background(), job.First(), suite.Streebog256); err != nil || !bytes.Equal(got.Sum, given.Sum) {
		t.Error("a known digest is not used")
	}
	both, err := sig.DigestAll(context.Background(), strings.NewReader(doc), int64(len(doc)), suite.SHA256, suite.Streebog256)
	if err != nil || !bytes.Equal(both[0].Sum, suite.SHA256.Digest([]byte(doc)).Sum) || !bytes.Equal(both[1].Sum, want.Sum) {
		t.Error("two digests in one pass:", err)
	}
	if _, err := sig.DigestAll(context.Background(), strings.NewReader(doc), int64(len(doc))+1, suite.SHA256); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Error("a document that ends early:", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := sig.DigestAll(ctx, strings.NewReader(doc), int64(len(doc)), suite.SHA256); !errors.Is(err, context.Canceled) {
		t.Error("cancelled:", err)
	}
}

// TestAssembly reads a result in pieces of every size and compares it with what is written.
// TestDigestsOf checks that known digests are used, and the others computed in their places.
func TestDigestsOf(t *testing.T) {
	hs := []*suite.Hash{suite.SHA256, suite.Streebog256, suite.Streebog512}
	for _, size := range []int{0, 1000, 300_000} {
		document := bytes.Repeat([]byte{7}, size)
		for mask := range 1 << len(hs) {
			var known, want []suite.Digest
			for i, h := range hs {
				d := h.Digest(document)
				if mask>>i&1 != 0 { // a known digest is not computed again
					d.Sum = bytes.Repeat([]byte{byte(i)}, h.Size)
					known = append(known, d)
				}
				want = append(want, d)
			}
			got, err := sig.DigestsOf(t.Context(), bytes.NewReader(document), known, hs)
			if err != nil || !slices.EqualFunc(got, want, func(a, b suite.Digest) bool { return a.Hash == b.Hash && bytes.Equal(a.Sum, b.Sum) }) {
				t.Errorf("%d bytes, known %03b: %v, %v", size, mask, got, err)
			}
		}
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := sig.DigestsOf(ended, bytes.NewReader(make([]byte, 10)), nil, hs[:1]); !errors.Is(err, context.Canceled) {
		t.Errorf("after the end of the request: %v", err)
	}
}

func TestAssembly(t *testing.T) {
	document := bytes.NewReader([]byte("0123456789"))
	a := sig.Parts(sig.Bytes([]byte("head")), sig.Part{}, sig.Section(document, 2, 5), sig.Bytes(nil), sig.Bytes([]byte("tail")), sig.Part{})
	var b bytes.Buffer
	if n, err := a.WriteTo(&b); err != nil || n != a.Size() || b.String() != "head23456tail" {
		t.Fatalf("%q %d %v", b.String(), n, err)
	}
	for size := 1; size <= 14; size++ {
		for at := int64(0); at <= 14; at++ {
			p := make([]byte, size)
			n, err := a.ReadAt(p, at)
			want := b.Bytes()[min(at, 13):min(at+int64(size), 13)]
			if !bytes.Equal(p[:n], want) || (err == io.EOF) != (n < size) || err != nil && err != io.EOF {
				t.Errorf("%d bytes at %d: %q, %v; want %q", size, at, p[:n], err, want)
			}
		}
	}
	if _, err := a.ReadAt(make([]byte, 1), -1); err == nil || err == io.EOF {
		t.Errorf("a negative offset: %v", err)
	}
	short := sig.Parts(sig.Section(document, 8, 5))
	if n, err := short.ReadAt(make([]byte, 5), 0); n != 2 || !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("a document that is shorter than it said: %d %v", n, err)
	}
}
