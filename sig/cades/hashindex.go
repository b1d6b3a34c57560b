// SPDX-License-Identifier: Apache-2.0

package cades

import (
	"errors"
	"fmt"

	"golang.org/x/crypto/cryptobyte"
	cbasn1 "golang.org/x/crypto/cryptobyte/asn1"

	"tamga/pki/cms"
	"tamga/pki/suite"
	"tamga/pki/tsp"
	"tamga/pki/x509gost"
)

// hashIndex is the list of what an archive-time-stamp-v3 covers: the attribute ats-hash-index-v3, or an
// older form of it, among the unsigned attributes of the token (EN 319 122-1, 5.5.2).
type hashIndex struct {
	raw   []byte // value of the attribute, which the imprint covers
	hash  *suite.Hash
	whole bool // the older forms hash an attribute as a whole, the newest each of its values
	// The digests of elements of SignedData.certificates, of SignedData.crls, and of the unsigned
	// attributes of the signature.
	certs, crls, attrs [][]byte
}

// indexForms are the forms of the index.
var indexForms = []struct {
	oid     x509gost.OID
	whole   bool
	omitted *suite.Hash // the algorithm if the field is absent; nil: it must be present
}{
	{cms.OIDHashIndexV3, false, nil},
	{cms.OIDHashIndexV2, true, nil},
	{cms.OIDHashIndex, true, suite.SHA256},
}

// readHashIndex reads the index of a token, which must have exactly one.
func readHashIndex(token *tsp.Token) (*hashIndex, error) {
	var found *hashIndex
	for _, s := range token.Message.Signers {
		for _, a := range s.UnsignedAttrs {
			for _, form := range indexForms {
				if !a.OID.Equal(form.oid) {
					continue
				}
				_, values, err := a.Parts()
				if err != nil || len(values) != 1 || found != nil {
					return nil, errors.New("its index of what it covers must occur once and have one value")
				}
				if found, err = parseHashIndex(values[0], form.whole, form.omitted); err != nil {
					return nil, fmt.Errorf("its index of what it covers: %w", err)
				}
			}
		}
	}
	if found == nil {
		return nil, errors.New("it has no index of what it covers (ats-hash-index-v3)")
	}
	return found, nil
}

// parseHashIndex reads the value of the attribute.
func parseHashIndex(raw []byte, whole bool, omitted *suite.Hash) (*hashIndex, error) {
	x := &hashIndex{raw: raw, whole: whole, hash: omitted}
	in := cryptobyte.String(raw)
	var seq, first, peek cryptobyte.String
	if !in.ReadASN1(&seq, cbasn1.SEQUENCE) || !in.Empty() {
		return nil, errors.New("not a SEQUENCE")
	}
	// The algorithm and the first list are both a SEQUENCE. The algorithm begins with an identifier.
	rest := seq
	if !rest.ReadASN1(&first, cbasn1.SEQUENCE) {
		return nil, errors.New("malformed")
	}
	if peek = first; peek.PeekASN1Tag(cbasn1.OBJECT_IDENTIFIER) {
		oid, err := x509gost.ReadOID(&peek)
		if err != nil {
			return nil, err
		}
		var known bool
		if x.hash, known = suite.HashByOID(oid); !known {
			return nil, suite.Unsupported("digest algorithm", oid)
		}
		seq = rest
	}
	if x.hash == nil {
		return nil, errors.New("it names no digest algorithm")
	}
	for _, list := range []*[][]byte{&x.certs, &x.crls, &x.attrs} {
		var digests, sum cryptobyte.String
		if !seq.ReadASN1(&digests, cbasn1.SEQUENCE) {
			return nil, errors.New("three lists of digests expected")
		}
		*list = make([][]byte, 0, len(digests)/(x.hash.Size+2))
		for !digests.Empty() {
			if !digests.ReadASN1(&sum, cbasn1.OCTET_STRING) || len(sum) != x.hash.Size {
				return nil, fmt.Errorf("a digest is not an OCTET STRING of %d bytes", x.hash.Size)
			}
			*list = append(*list, sum)
		}
	}
	if !seq.Empty() {
		return nil, errors.New("unknown data follows the lists")
	}
	return x, nil
}

// attribute returns an index as the attribute ats-hash-index-v3.
func (x *hashIndex) attribute() cms.Attribute {
	b := cryptobyte.NewBuilder(nil)
	b.AddASN1(cbasn1.SEQUENCE, func(b *cryptobyte.Builder) {
		algorithm(b, x.hash)
		for _, list := range [][][]byte{x.certs, x.crls, x.attrs} {
			b.AddASN1(cbasn1.SEQUENCE, func(b *cryptobyte.Builder) {
				for _, sum := range list {
					b.AddASN1OctetString(sum)
				}
			})
		}
	})
	x.raw = b.BytesOrPanic() // cannot fail: it only joins bytes
	return cms.NewAttribute(cms.OIDHashIndexV3, x.raw)
}

// tally counts elements of a message by their digest, so that an index can be compared with them.
type tally map[string]int

func tallyOf(digests []suite.Digest) tally {
	t := make(tally, len(digests))
	for _, d := range digests {
		t[string(d.Sum)]++
	}
	return t
}

// holds reports whether each digest of an index has an element of its own.
func (t tally) holds(sums [][]byte) bool {
	used := make(tally, len(sums))
	for _, sum := range sums {
		if used[string(sum)]++; used[string(sum)] > t[string(sum)] {
			return false
		}
	}
	return true
}
