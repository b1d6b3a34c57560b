// SPDX-License-Identifier: Apache-2.0

package cms

import (
	"bytes"
	"encoding/asn1"
	"slices"
	"strings"
	"testing"

	"tamga/pki/suite"
)

// small returns a detached message of signers with these unsigned attributes.
func small(t testing.TB, attrs ...Attribute) []byte {
	t.Helper()
	head, tail, err := Encode(OIDData, -1, [][]byte{certificate(t).Raw}, nil, []Signer{{
		Certificate: certificate(t), Suite: suite.GOST2012x256, Signature: make([]byte, 64), UnsignedAttrs: attrs,
	}})
	if err != nil {
		t.Fatal(err)
	}
	return append(head, tail...)
}

func rewrite(t testing.TB, b []byte, c Changes) []byte {
	t.Helper()
	m := parse(t, b)
	head, tail, err := m.Rewrite(c)
	if err != nil {
		t.Fatal(err)
	}
	e := m.EncapContentInfo
	return slices.Concat(head, b[e.Offset:e.Offset+e.Length], tail)
}

// Rewriting a DER message without a change gives the same bytes.
func TestRewriteNothing(t *testing.T) {
	for i, s := range samples(t) {
		m := parse(t, s.Message)
		if der, err := toDER(s.Message); err != nil || !bytes.Equal(der, s.Message) || len(m.DigestAlgorithms) == 0 {
			continue
		}
		if got := rewrite(t, s.Message, Changes{}); !bytes.Equal(got, s.Message) {
			t.Errorf("sample %d has changed", i)
		}
	}
	if b := small(t); !bytes.Equal(rewrite(t, b, Changes{}), b) {
		t.Error("the message has changed")
	}
}

// A signer named by key identifier makes the message version 3. Missing digests are
// appended to the list, and unknown algorithms stay unchanged.
func TestRewriteVersionAndDigests(t *testing.T) {
	b := small(t)
	keyID := wrap(tagSequence, wrap(tagInteger, []byte{3}), wrap(0x80, []byte("key")),
		wrap(tagSequence, marshalOID(asn1.ObjectIdentifier{1, 2, 3}), []byte{5, 0}),
		wrap(tagSequence, marshalOID(suite.GOST2012x256.CMSSignatureOID)), wrap(tagOctetString, make([]byte, 64)))
	m := parse(t, rewrite(t, b, Changes{Added: [][]byte{keyID}, Certificates: [][]byte{certificate(t).Raw}}))
	if m.Version != 3 || len(m.Signers) != 2 || len(m.Certificates) != 1 {
		t.Errorf("version %d, %d signers, %d certificates", m.Version, len(m.Signers), len(m.Certificates))
	}
	if len(m.DigestAlgorithms) != 2 || !m.DigestAlgorithms[1].OID.Equal(asn1.ObjectIdentifier{1, 2, 3}) || !bytes.Equal(m.DigestAlgorithms[1].Params, []byte{5, 0}) {
		t.Errorf("digest algorithms %+v", m.DigestAlgorithms)
	}
	counter := Signer{Certificate: certificate(t), Suite: suite.GOST2012x512, Signature: make([]byte, 128)}
	raw, err := parse(t, b).Signers[0].AppendUnsigned(NewAttribute(OIDCountersignature, counter.Marshal()))
	if err != nil {
		t.Fatal(err)
	}
	m = parse(t, rewrite(t, b, Changes{Replaced: map[int][]byte{0: raw}}))
	if m.Version != 1 || len(m.DigestAlgorithms) != 2 || !m.DigestAlgorithms[1].OID.Equal(suite.Streebog512.OID) {
		t.Errorf("version %d, digest algorithms %+v", m.Version, m.DigestAlgorithms)
	}
}

func TestRewriteLimits(t *testing.T) {
	b := small(t)
	one := parse(t, b).Signers[0].Raw
	tests := map[string]Changes{
		"signers":     {Added: slices.Repeat([][]byte{one}, maxElements)},
		"bytes":       {Certificates: [][]byte{wrap(tagSequence, make([]byte, maxHeld))}},
		"no signer":   {Added: [][]byte{{5, 0}}},
		"broken":      {Replaced: map[int][]byte{0: one[:len(one)-1]}},
		"bytes after": {Added: [][]byte{append(bytes.Clone(one), 0)}},
	}
	for name, c := range tests {
		if _, _, err := parse(t, b).Rewrite(c); err == nil {
			t.Errorf("%s: not refused", name)
		}
	}
	many := slices.Repeat([]Attribute{NewAttribute(asn1.ObjectIdentifier{1, 2, 3}, []byte{5, 0})}, maxAttrs+1)
	if _, err := parse(t, b).Signers[0].AppendUnsigned(many...); err == nil || !strings.Contains(err.Error(), "at most") {
		t.Errorf("too many attributes: %v", err)
	}
}

// Attributes in BER keep their bytes when others are appended, and a time stamp over
// attributes covers these bytes.
func TestAppendUnsignedBER(t *testing.T) {
	fields, err := split(parse(t, small(t)).Signers[0].Raw)
	if err != nil {
		t.Fatal(err)
	}
	oid := asn1.ObjectIdentifier{1, 2, 3}
	inner := wrap(tagSequence, []byte{5, 0})
	attr := indefinite(tagSequence, marshalOID(oid), indefinite(tagSet, indefinite(tagSequence, []byte{5, 0})))
	raw := indefinite(tagSequence, slices.Concat(fields...), indefinite(tagContext1, attr))
	s, err := ParseSignerInfo(raw)
	if err != nil {
		t.Fatal(err)
	}
	a := s.UnsignedAttrs[0]
	if !bytes.Equal(a.Encoded, attr) || !bytes.Equal(a.Raw, NewAttribute(oid, inner).Raw) {
		t.Errorf("encoded %x, DER %x", a.Encoded, a.Raw)
	}
	if want := attr[2 : len(attr)-2]; !bytes.Equal(a.Contents(), want) {
		t.Errorf("contents %x, want %x", a.Contents(), want)
	}
	grown, err := s.AppendUnsigned(NewAttribute(oid, []byte{5, 0}))
	if err != nil {
		t.Fatal(err)
	}
	got, err := ParseSignerInfo(grown)
	if err != nil || len(got.UnsignedAttrs) != 2 || !bytes.Equal(got.UnsignedAttrs[0].Encoded, attr) || !bytes.Contains(grown, slices.Concat(fields...)) {
		t.Errorf("%v: %x", err, grown)
	}
	if der := NewAttribute(oid, inner); !bytes.Equal(der.Contents(), der.Raw[2:]) {
		t.Errorf("contents of DER: %x", der.Contents())
	}
}

// A countersignature is found by its number in every arrangement, and nothing else
// changes.
func TestReplaceCountersignature(t *testing.T) {
	counter := func(n byte) []byte {
		s := Signer{Certificate: certificate(t), Suite: suite.GOST2012x256, Signature: bytes.Repeat([]byte{n}, 64)}
		return s.Marshal()
	}
	other := NewAttribute(asn1.ObjectIdentifier{1, 2, 3}, []byte{5, 0})
	malformed := NewAttribute(asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 9, 7}, []byte{5, 0}) // an unreadable countersignature
	b := small(t, NewAttribute(OIDCountersignature, counter(0), counter(1)), other, malformed, NewAttribute(OIDCountersignature, counter(2)))
	b = bytes.Replace(b, malformed.Raw, NewAttribute(OIDCountersignature, []byte{5, 0}).Raw, 1)
	s := parse(t, b).Signers[0]
	for n := range 3 {
		raw, err := s.ReplaceCountersignature(n, counter(9))
		if err != nil {
			t.Fatal(err)
		}
		got, err := ParseSignerInfo(raw)
		if err != nil {
			t.Fatal(err)
		}
		list, _ := got.Countersignatures()
		if len(list) != 3 || len(got.UnsignedAttrs) != 4 || !bytes.Equal(got.UnsignedAttrs[1].Raw, other.Raw) {
			t.Fatalf("%d countersignatures", len(list))
		}
		for i, c := range list {
			want := byte(i)
			if i == n {
				want = 9
			}
			if c.Signature[0] != want {
				t.Errorf("replacing %d: number %d is %d", n, i, c.Signature[0])
			}
		}
	}
	if _, err := s.ReplaceCountersignature(3, counter(9)); err == nil {
		t.Error("replacing a missing countersignature is accepted")
	}
}

func TestIsDER(t *testing.T) {
	for name, test := range map[string]struct {
		b  []byte
		is bool
	}{
		"null":          {[]byte{5, 0}, true},
		"sequence":      {[]byte{0x30, 2, 5, 0}, true},
		"nothing":       {nil, false},
		"two":           {[]byte{5, 0, 5, 0}, false},
		"cut short":     {[]byte{4, 2, 0}, false},
		"indefinite":    {[]byte{0x30, 0x80, 0, 0}, false},
		"long length":   {[]byte{4, 0x81, 1, 0}, false},
		"pieces":        {[]byte{0x24, 3, 4, 1, 0}, false},
		"end mark":      {[]byte{0, 0}, false},
		"tag 0":         {[]byte{0, 1, 5}, false},
		"inside broken": {[]byte{0x30, 2, 5, 1}, false},
	} {
		if IsDER(test.b) != test.is {
			t.Errorf("%s: %v", name, !test.is)
		}
	}
}
