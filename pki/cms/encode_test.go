// SPDX-License-Identifier: Apache-2.0

package cms

import (
	"bytes"
	"encoding/asn1"
	"io"
	"runtime"
	"slices"
	"testing"
	"time"

	"tamga/pki/suite"
	"tamga/pki/x509gost"
)

func mustHash(t testing.TB, s *SignerInfo) *suite.Hash {
	t.Helper()
	h, err := s.Hash()
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// certificate returns the certificate of a published sample. Encoding needs no key.
func certificate(t testing.TB) *x509gost.Certificate {
	t.Helper()
	c, err := x509gost.ParseCertificate(samples(t)[1].Certificate)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// The lengths of all headers are right at every size where one of them grows.
func TestEncodeLengths(t *testing.T) {
	signers := []Signer{{Certificate: certificate(t), Suite: suite.GOST2012x256, Signature: make([]byte, 64)}}
	for _, size := range []int64{-1, 0, 1, 127, 128, 255, 256, 65535, 65536, 1<<24 - 1, 1 << 24, 1<<31 - 1, 1 << 32, 1 << 40} {
		head, tail, err := Encode(OIDData, size, [][]byte{certificate(t).Raw}, nil, signers)
		if err != nil {
			t.Fatal(err)
		}
		b := &sparse{head: head, tail: tail, middle: max(size, 0)}
		m, err := Parse(b, b.Size())
		if err != nil {
			t.Fatalf("%d: %v", size, err)
		}
		if m.ContentSize() != max(size, 0) || m.Detached != (size < 0) || len(m.Signers) != 1 || len(m.Certificates) != 1 {
			t.Errorf("%d: %d bytes, detached %v", size, m.ContentSize(), m.Detached)
		}
	}
	if _, _, err := Encode(OIDData, -2, nil, nil, nil); err == nil {
		t.Error("a negative size is accepted")
	}
	if _, _, err := Encode(OIDData, 1<<63-1, nil, nil, nil); err == nil {
		t.Error("a size whose headers overflow is accepted")
	}
}

func TestVersionAndDigests(t *testing.T) {
	c := certificate(t)
	other := asn1.ObjectIdentifier{1, 2, 3}
	counter := NewAttribute(OIDCountersignature, (&Signer{Certificate: c, Suite: suite.GOST2012x512, Signature: make([]byte, 128)}).Marshal())
	tests := []struct {
		name        string
		contentType asn1.ObjectIdentifier
		certs, crls [][]byte
		signers     []Signer
		version     int
		digests     []*suite.Hash
	}{
		{"data", OIDData, nil, nil, []Signer{{Certificate: c, Suite: suite.GOST2012x256}}, 1, []*suite.Hash{suite.Streebog256}},
		{"other content", other, nil, nil, nil, 3, nil},
		{"attribute certificate v1", OIDData, [][]byte{{0xa1, 0}}, nil, nil, 3, nil},
		{"attribute certificate v2", OIDData, [][]byte{{0xa2, 0}}, nil, nil, 4, nil},
		{"other certificate", OIDData, [][]byte{{0xa3, 0}}, nil, nil, 5, nil},
		{"other revocation", OIDData, nil, [][]byte{{0xa1, 0}}, nil, 5, nil},
		{"two suites, one twice", OIDData, nil, nil, []Signer{{Certificate: c, Suite: suite.GOST2001}, {Certificate: c, Suite: suite.RSASHA256}, {Certificate: c, Suite: suite.GOST2001}},
			1, []*suite.Hash{suite.GOST94, suite.SHA256}},
		{"countersigner", OIDData, nil, nil, []Signer{{Certificate: c, Suite: suite.GOST2012x256, UnsignedAttrs: []Attribute{counter}}},
			1, []*suite.Hash{suite.Streebog256, suite.Streebog512}},
	}
	for _, test := range tests {
		head, tail, err := Encode(test.contentType, -1, test.certs, test.crls, test.signers)
		if err != nil {
			t.Fatalf("%s: %v", test.name, err)
		}
		m := parse(t, append(head, tail...))
		if m.Version != test.version {
			t.Errorf("%s: version %d, want %d", test.name, m.Version, test.version)
		}
		var got []*suite.Hash
		for _, a := range m.DigestAlgorithms {
			h, _ := suite.HashByOID(a.OID)
			got = append(got, h)
			if (a.Params != nil) != h.NullParams {
				t.Errorf("%s: parameters of %s: %x", test.name, h.Name, a.Params)
			}
		}
		if !slices.Equal(got, test.digests) {
			t.Errorf("%s: %d digest algorithms", test.name, len(got))
		}
	}
}

// X.690, 11.6: a short attribute precedes a long one, whatever their OIDs.
func TestSignedAttributesOrder(t *testing.T) {
	signingTime, err := SigningTime(time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC))
	if err != nil {
		t.Fatal(err)
	}
	private := NewAttribute(asn1.ObjectIdentifier{1, 2, 643, 2, 45, 1, 1, 1}, []byte{5, 0})
	digest := MessageDigest(suite.Streebog256.Digest(nil))
	got := BuildSignedAttributes(digest, ContentType(OIDData), signingTime, private)
	want := wrap(tagSet, private.Raw, ContentType(OIDData).Raw, signingTime.Raw, digest.Raw)
	if !bytes.Equal(got, want) {
		t.Errorf("%x", got)
	}
}

func TestSigningTime(t *testing.T) {
	tests := []struct {
		at   time.Time
		want string // "" is an error
	}{
		{time.Date(1949, 12, 31, 23, 59, 59, 0, time.UTC), "\x18\x0f19491231235959Z"},
		{time.Date(1950, 1, 1, 0, 0, 0, 0, time.UTC), "\x17\x0d500101000000Z"},
		{time.Date(2049, 12, 31, 23, 59, 59, 999, time.UTC), "\x17\x0d491231235959Z"},
		{time.Date(2050, 1, 1, 0, 0, 0, 0, time.UTC), "\x18\x0f20500101000000Z"},
		{time.Date(2025, 1, 1, 2, 0, 0, 0, time.FixedZone("MSK", 3*3600)), "\x17\x0d241231230000Z"},
		{time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC), ""},
	}
	for _, test := range tests {
		a, err := SigningTime(test.at)
		if test.want == "" {
			if err == nil {
				t.Errorf("%v: accepted", test.at)
			}
			continue
		}
		if err != nil || string(a.Values[0]) != test.want {
			t.Errorf("%v: %q, %v", test.at, a.Values, err)
			continue
		}
		got, ok := (&SignerInfo{SignedAttrs: []Attribute{a}}).SigningTime()
		if !ok || !got.Equal(test.at.Truncate(time.Second)) {
			t.Errorf("%v: read back as %v", test.at, got)
		}
	}
}

// sparse is a message with a content of zeros that needs no memory.
type sparse struct {
	head, tail []byte
	middle     int64
}

func (s *sparse) Size() int64 { return int64(len(s.head)) + s.middle + int64(len(s.tail)) }

func (s *sparse) ReadAt(p []byte, off int64) (int, error) {
	for n := range p {
		switch i := off + int64(n); {
		case i < int64(len(s.head)):
			p[n] = s.head[i]
		case i < int64(len(s.head))+s.middle:
			p[n] = 0
		case i < s.Size():
			p[n] = s.tail[i-int64(len(s.head))-s.middle]
		default:
			return n, io.EOF
		}
	}
	return len(p), nil
}

func attached(t testing.TB, size int64) *sparse {
	t.Helper()
	c := certificate(t)
	head, tail, err := Encode(OIDData, size, [][]byte{c.Raw}, nil, []Signer{{Certificate: c, Suite: suite.GOST2012x256, Signature: make([]byte, 64)}})
	if err != nil {
		t.Fatal(err)
	}
	return &sparse{head, tail, size}
}

// Parsing needs the same memory for every size of the content.
func TestParseMemory(t *testing.T) {
	used := func(size int64) uint64 {
		b := attached(t, size)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		if _, err := Parse(b, b.Size()); err != nil {
			t.Fatal(err)
		}
		runtime.ReadMemStats(&after)
		return after.TotalAlloc - before.TotalAlloc
	}
	if small, large := used(1<<10), used(1<<30); large > small+16<<10 {
		t.Errorf("%d bytes for 1 KiB, %d for 1 GiB", small, large)
	}
}

func BenchmarkParseAttached1GiB(b *testing.B) {
	m := attached(b, 1<<30)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Parse(m, m.Size()); err != nil {
			b.Fatal(err)
		}
	}
}

// Attributes returns the same bytes as BuildSignedAttributes for the same attributes, also
// when it reuses memory.
func TestSignedAttributes(t *testing.T) {
	c := certificate(t)
	private := NewAttribute(asn1.ObjectIdentifier{1, 2, 643, 2, 45, 1, 1, 1}, []byte{5, 0})
	long := NewAttribute(asn1.ObjectIdentifier{1, 2, 3}, wrap(tagOctetString, make([]byte, 3000)))
	for _, h := range []*suite.Hash{suite.GOST94, suite.Streebog256, suite.Streebog512, suite.SHA256} {
		digest := h.Digest([]byte("text"))
		for _, contentType := range []asn1.ObjectIdentifier{nil, OIDData, {1, 2, 840, 113549, 1, 9, 16, 1, 4}} {
			for _, year := range []int{0, 1, 1949, 1950, 2049, 2050, 9999} {
				s := Signed{ContentType: contentType, Digest: digest, Certificate: c}
				want := []Attribute{MessageDigest(digest), SigningCertificateV2(c, h)}
				if contentType != nil {
					want = append(want, ContentType(contentType))
				}
				if year > 0 {
					at := time.Date(year, 5, 6, 7, 8, 9, 10, time.UTC)
					claimed, err := SigningTime(at)
					if err != nil {
						t.Fatal(err)
					}
					s.Time, want = &at, append(want, claimed)
				}
				for _, others := range [][]Attribute{nil, {private}, {long, private}} {
					s.Others = others
					got, err := s.Attributes()
					if err != nil || !bytes.Equal(got, BuildSignedAttributes(slices.Concat(others, want)...)) {
						t.Errorf("%s, %v, %d, %d others: %x %v", h.Name, contentType, year, len(others), got, err)
					}
				}
			}
		}
	}
	at := time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)
	if _, err := (&Signed{Digest: suite.SHA256.Digest(nil), Certificate: c, Time: &at}).Attributes(); err == nil {
		t.Error("the year 10000 is accepted")
	}
}
