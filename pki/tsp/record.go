// SPDX-License-Identifier: Apache-2.0

package tsp

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/crypto/cryptobyte"
	cbasn1 "golang.org/x/crypto/cryptobyte/asn1"

	"tamga/pki/suite"
	"tamga/pki/x509gost"
)

// Limits for an evidence record: two time stamps a year for thirty years, and a tree of 2^20 documents with a group of
// documents at its leaf.
const (
	maxRecordStamps = 64
	maxRecordHashes = 1 << 14
)

// Record is an evidence record (RFC 4998, or RFC 6283 in XML): archive time stamps over the digests of documents, each renewed by
// the next. It proves that the documents existed at the time of the first one. Begin with ParseRecord and Check.
type Record struct {
	// Stamps are the archive time stamps, the oldest first.
	Stamps []RecordStamp
}

// RecordStamp is one archive time stamp of a record.
type RecordStamp struct {
	Token *Token
	// Hash is the algorithm of the tree.
	Hash *suite.Hash
	// Tree has the lists of digests from the documents up to the imprint of the token, empty for a single group.
	Tree [][][]byte
	// Renews is the form of the time stamp before it in its chain, which it covers. It is nil for the first of a chain, which
	// covers the documents.
	Renews []byte
	// Before are the chains before the one that it begins, whose digest is joined to the digest of each document (RFC 4998, 5.2).
	// Beside is their form in XML, whose digest is beside those of the documents (RFC 6283, 4.2.2).
	Before, Beside []byte
}

// ErrRecord reports that an evidence record does not prove the documents.
var ErrRecord = errors.New("tsp: the evidence record does not fit")

// ParseRecord reads an evidence record. It checks the form only. hold is called with the memory that it takes, as in
// ParseTokenWithin, and may be nil.
func ParseRecord(der []byte, hold func(bytes int64) error) (*Record, error) {
	if hold == nil {
		hold = func(int64) error { return nil }
	}
	r, err := parseRecord(der, hold)
	if err != nil {
		return nil, fmt.Errorf("tsp: evidence record: %w", err)
	}
	return r, nil
}

func parseRecord(der []byte, hold func(int64) error) (*Record, error) {
	tag0, tag1, tag2 := cbasn1.Tag(0).ContextSpecific().Constructed(), cbasn1.Tag(1).ContextSpecific().Constructed(), cbasn1.Tag(2).ContextSpecific().Constructed()
	malformed := errors.New("it is malformed")
	input := cryptobyte.String(der)
	var record, sequence cryptobyte.String
	var version int
	if !input.ReadASN1(&record, cbasn1.SEQUENCE) || !input.Empty() || !record.ReadASN1Integer(&version) || !record.SkipASN1(cbasn1.SEQUENCE) ||
		!record.SkipOptionalASN1(tag0) {
		return nil, malformed
	}
	if version != 1 {
		return nil, fmt.Errorf("its version is %d, not 1", version)
	}
	if record.PeekASN1Tag(tag1) {
		return nil, errors.New("it is of encrypted documents, which is not supported")
	}
	if !record.ReadASN1(&sequence, cbasn1.SEQUENCE) || !record.Empty() {
		return nil, malformed
	}
	r := &Record{}
	var chains []byte
	hashes := 0
	for first := true; !sequence.Empty(); first = false {
		var whole, chain cryptobyte.String
		if !sequence.ReadASN1Element(&whole, cbasn1.SEQUENCE) {
			return nil, malformed
		}
		of := whole
		if !of.ReadASN1(&chain, cbasn1.SEQUENCE) || chain.Empty() {
			return nil, malformed
		}
		var algorithm *suite.Hash
		var renewed []byte
		for begins := true; !chain.Empty(); begins = false {
			var one, digest, tree, raw cryptobyte.String
			var named, has bool
			if !chain.ReadASN1(&one, cbasn1.SEQUENCE) || !one.ReadOptionalASN1(&digest, &named, tag0) || !one.SkipOptionalASN1(tag1) ||
				!one.ReadOptionalASN1(&tree, &has, tag2) || !one.ReadASN1Element(&raw, cbasn1.SEQUENCE) || !one.Empty() {
				return nil, malformed
			}
			if len(r.Stamps) == maxRecordStamps {
				return nil, fmt.Errorf("it has more than %d time stamps", maxRecordStamps)
			}
			if err := hold(int64(len(raw) + 2*len(tree))); err != nil {
				return nil, err
			}
			token, err := ParseTokenWithin(raw, hold)
			if err != nil {
				return nil, err
			}
			s := RecordStamp{Token: token, Hash: token.Info.Digest.Hash}
			if !begins {
				s.Renews = renewed
			}
			renewed = raw
			if named {
				oid, err := x509gost.ReadOID(&digest)
				if err != nil {
					return nil, malformed
				}
				if s.Hash, named = suite.HashByOID(oid); !named {
					return nil, fmt.Errorf("its digest algorithm %s is not supported", oid)
				}
			}
			if begins {
				algorithm = s.Hash
				if !first {
					s.Before = chains[:len(chains):len(chains)] // what is appended later is behind it
				}
			}
			switch {
			case s.Hash == nil:
				return nil, errors.New("the digest algorithm of a time stamp is not supported")
			case s.Hash != algorithm || token.Info.Digest.Hash != s.Hash:
				return nil, errors.New("the algorithms of its time stamps do not match")
			}
			for !tree.Empty() {
				var list cryptobyte.String
				var sums [][]byte
				if !tree.ReadASN1(&list, cbasn1.SEQUENCE) || list.Empty() {
					return nil, malformed
				}
				for !list.Empty() {
					var sum cryptobyte.String
					if !list.ReadASN1(&sum, cbasn1.OCTET_STRING) || len(sum) != s.Hash.Size {
						return nil, malformed
					}
					if hashes++; hashes > maxRecordHashes {
						return nil, fmt.Errorf("it has more than %d digests", maxRecordHashes)
					}
					sums = append(sums, sum)
				}
				s.Tree = append(s.Tree, sums)
			}
			r.Stamps = append(r.Stamps, s)
		}
		if err := hold(int64(len(whole))); err != nil {
			return nil, err
		}
		chains = append(chains, whole...)
	}
	if len(r.Stamps) == 0 {
		return nil, errors.New("it has no time stamp")
	}
	return r, nil
}

// Check checks that the record covers a group of documents, and each time stamp the one before it (RFC 4998, 4.3 and 5.3).
// digests returns the digests of the documents for the time stamp with an index, by an algorithm. The signatures of the tokens are checked elsewhere, and so is whether
// each was still valid when the next was made. An error of the record wraps ErrRecord.
func (r *Record) Check(digests func(index int, h *suite.Hash) ([][]byte, error)) error {
	for i := range r.Stamps {
		s := &r.Stamps[i]
		var covered [][]byte
		switch {
		case i > 0 && s.Token.Info.Time.Before(r.Stamps[i-1].Token.Info.Time):
			return fmt.Errorf("%w: time stamp %d is earlier than the one before it", ErrRecord, i+1)
		case s.Renews == nil:
			documents, err := digests(i, s.Hash)
			if err != nil {
				return err
			}
			covered = documents
			if s.Beside != nil {
				covered = append(slices.Clone(documents), s.Hash.Digest(s.Beside).Sum)
			}
			if s.Before != nil {
				var b cryptobyte.Builder
				b.AddASN1(cbasn1.SEQUENCE, func(b *cryptobyte.Builder) { b.AddBytes(s.Before) })
				sequence, err := b.Bytes()
				if err != nil {
					return err
				}
				earlier := s.Hash.Digest(sequence).Sum
				covered = nil
				for _, d := range documents {
					covered = append(covered, s.Hash.Digest(slices.Concat(d, earlier)).Sum)
				}
			}
		default:
			covered = [][]byte{s.Hash.Digest(s.Renews).Sum}
		}
		root, err := s.root(covered)
		if err != nil {
			return fmt.Errorf("%w: time stamp %d: %s", ErrRecord, i+1, strings.TrimPrefix(err.Error(), "tsp: "))
		}
		if !bytes.Equal(root, s.Token.Info.Digest.Sum) {
			return fmt.Errorf("%w: time stamp %d is for another digest", ErrRecord, i+1)
		}
	}
	return nil
}

// root returns the root of the tree over digests, which must be the first list.
func (s *RecordStamp) root(covered [][]byte) ([]byte, error) {
	if len(covered) == 0 {
		return nil, errors.New("it covers no document")
	}
	if len(s.Tree) == 0 {
		return s.group(covered), nil
	}
	// The digests of a group stay together, so that no document can be added to it or taken away.
	switch {
	case len(covered) == 1:
		if !slices.ContainsFunc(s.Tree[0], func(sum []byte) bool { return bytes.Equal(sum, covered[0]) }) {
			return nil, errors.New("its tree does not have the digest of what it must cover")
		}
	case !slices.EqualFunc(sorted(covered), sorted(s.Tree[0]), bytes.Equal):
		return nil, errors.New("its tree does not have the digests of what it must cover, or has other documents in the group")
	}
	var root []byte
	for i, list := range s.Tree {
		if i > 0 {
			list = append(slices.Clone(list), root)
		}
		root = s.group(list)
	}
	return root, nil
}

// group returns the digest of digests in ascending order; that of one is itself.
func (s *RecordStamp) group(sums [][]byte) []byte {
	if len(sums) == 1 {
		return sums[0]
	}
	return s.Hash.Digest(slices.Concat(sorted(sums)...)).Sum
}

func sorted(sums [][]byte) [][]byte { return slices.SortedFunc(slices.Values(sums), bytes.Compare) }
