// SPDX-License-Identifier: Apache-2.0

package cms

import (
	"bytes"
	"encoding/asn1"
	"errors"
	"fmt"
	"slices"

	"tamga/pki/suite"
)

// Changes are the changes that Rewrite makes to a message.
type Changes struct {
	// Certificates are whole elements to append. Rewrite omits duplicates and those that
	// the message already has.
	Certificates [][]byte
	// CRLs are whole elements of the field crls to append, in the same way.
	CRLs [][]byte
	// Hashes are listed in digestAlgorithms even if no signer uses them, for programs that compute
	// all digests of a document while they read it.
	Hashes []*suite.Hash
	// Replaced has whole SignerInfos, as AppendUnsigned returns them, by the index of
	// the SignerInfo that each replaces.
	Replaced map[int][]byte
	// Added are whole SignerInfos to append.
	Added [][]byte
}

// Rewrite returns the parts of the changed message before and after the bytes of
// EncapContentInfo, which stay unchanged between them. Certificates, CRLs and SignerInfos
// keep their bytes and their order, in DER or BER. Rewrite updates version and
// digestAlgorithms (RFC 5652, 5.1) and writes the headers around them in DER. It is an error
// if Parse would refuse the result.
func (m *Message) Rewrite(c Changes) (head, tail []byte, err error) {
	certs, crls := appended(m.Certificates, c.Certificates), appended(m.CRLs, c.CRLs)
	raws := make([][]byte, 0, len(m.Signers)+len(c.Added))
	infos := make([]*SignerInfo, 0, cap(raws))
	for i, s := range m.Signers {
		if raw, ok := c.Replaced[i]; ok {
			if s, err = ParseSignerInfo(raw); err != nil {
				return nil, nil, fmt.Errorf("cms: signer %d: %w", i, err)
			}
		}
		raws, infos = append(raws, s.Raw), append(infos, s)
	}
	for _, raw := range c.Added {
		s, err := ParseSignerInfo(raw)
		if err != nil {
			return nil, nil, fmt.Errorf("cms: new signer: %w", err)
		}
		raws, infos = append(raws, raw), append(infos, s)
	}
	if len(certs) > maxElements || len(crls) > maxElements || len(raws) > maxElements {
		return nil, nil, fmt.Errorf("cms: the message would have %d certificates, %d CRLs and %d signers; at most %d of each are allowed", len(certs), len(crls), len(raws), maxElements)
	}
	digests, err := m.listDigests(infos, c.Hashes)
	if err != nil {
		return nil, nil, err
	}
	w := newWriter(headersRoom + size(certs) + size(crls) + size(raws) + size(digests))
	w.addAll(raws)
	after, err := w.closeSigners(certs, crls)
	if err != nil {
		return nil, nil, err
	}
	w.skip(m.EncapContentInfo.Length)
	mark := w.len()
	w.addAll(digests)
	w.close(tagSet, mark)
	byKey := slices.ContainsFunc(infos, func(s *SignerInfo) bool { return s.Version == 3 })
	w.closeMessage(OIDSignedData, version(m.ContentType, certs, crls, byKey))
	head, tail = w.parts(after)
	return head, tail, nil
}

// appended returns a list with the elements of more that it has not.
func appended(list, more [][]byte) [][]byte {
	out := append(make([][]byte, 0, len(list)+len(more)), list...)
	for _, raw := range more {
		if !slices.ContainsFunc(out, func(other []byte) bool { return bytes.Equal(raw, other) }) {
			out = append(out, raw)
		}
	}
	return out
}

// listDigests returns the digestAlgorithms of the rewritten message: those of the message
// unchanged, and then those that its signers and countersigners use and that are missing, and more.
func (m *Message) listDigests(signers []*SignerInfo, more []*suite.Hash) ([][]byte, error) {
	list := make([][]byte, 0, len(m.DigestAlgorithms)+1)
	known := make([]*suite.Hash, 0, cap(list))
	unknown := map[string]bool{} // by object identifier
	isNew := func(oid asn1.ObjectIdentifier) bool {
		if h, ok := suite.HashByOID(oid); ok {
			before := len(known)
			known = withHash(known, h)
			return len(known) > before
		}
		name := oid.String()
		if oid == nil || unknown[name] {
			return false
		}
		unknown[name] = true
		return true
	}
	for _, a := range m.DigestAlgorithms {
		list = append(list, a.Raw)
		isNew(a.OID)
	}
	var add func(s *SignerInfo, depth int)
	add = func(s *SignerInfo, depth int) {
		if isNew(s.DigestAlgorithm.OID) {
			list = append(list, s.DigestAlgorithm.Raw)
		}
		if depth == MaxCountersignatures {
			return
		}
		inner, _ := s.Countersignatures() // unreadable ones add nothing
		for _, c := range inner {
			add(c, depth+1)
		}
	}
	for _, s := range signers {
		add(s, 0)
	}
	for _, h := range more {
		if isNew(h.OID) {
			w := newWriter(attributeRoom)
			w.digestAlgorithm(h)
			list = append(list, w.der())
		}
	}
	if len(list) > maxElements {
		return nil, errors.New("cms: too many digest algorithms")
	}
	return list, nil
}

// ParseSignerInfo reads one SignerInfo in DER or BER.
func ParseSignerInfo(raw []byte) (*SignerInfo, error) { return parseSignerInfo(raw, nil) }

// AppendUnsigned returns the SignerInfo with unsigned attributes appended. Everything else
// keeps its bytes. Only the headers around the attributes are new.
func (s *SignerInfo) AppendUnsigned(attrs ...Attribute) ([]byte, error) {
	return s.ChangeUnsigned(nil, attrs...)
}

// ChangeUnsigned is AppendUnsigned that also replaces the unsigned attributes at the given places.
func (s *SignerInfo) ChangeUnsigned(replaced map[int]Attribute, attrs ...Attribute) ([]byte, error) {
	return s.editUnsigned(func(raws [][]byte) ([][]byte, error) {
		for place, a := range replaced {
			if place < 0 || place >= len(raws) {
				return nil, fmt.Errorf("cms: the signer has no unsigned attribute at place %d", place)
			}
			raws[place] = a.Raw
		}
		for _, a := range attrs {
			raws = append(raws, a.Raw)
		}
		return raws, nil
	})
}

// ReplaceCountersignature returns the SignerInfo with another SignerInfo in place of its
// n-th countersignature. n counts from 0 in the order of Countersignatures. The new one must
// be the old one with attributes appended. Other values and attributes keep their bytes.
func (s *SignerInfo) ReplaceCountersignature(n int, raw []byte) ([]byte, error) {
	return s.editUnsigned(func(raws [][]byte) ([][]byte, error) {
		for i, a := range s.UnsignedAttrs {
			if !a.OID.Equal(OIDCountersignature) {
				continue
			}
			fields, err := split(raws[i])
			if err != nil || len(fields) != 2 {
				return nil, errors.New("cms: an attribute is malformed")
			}
			values, err := split(fields[1])
			if err != nil {
				return nil, err
			}
			for j, v := range values {
				if _, err := parseSignerInfo(v, nil); err != nil {
					continue // Countersignatures does not count it either
				}
				if n--; n < 0 {
					values[j] = raw
					raws[i] = wrap(tagSequence, fields[0], wrap(tagSet, values...))
					return raws, nil
				}
			}
		}
		return nil, errors.New("cms: the signature has no such countersignature")
	})
}

// editUnsigned calls edit with the unsigned attributes, each as it is in the message, and
// replaces them by its result.
func (s *SignerInfo) editUnsigned(edit func([][]byte) ([][]byte, error)) ([]byte, error) {
	fields, err := split(s.Raw)
	if err != nil {
		return nil, err
	}
	var attrs [][]byte
	if last := len(fields) - 1; last >= 0 && fields[last][0] == tagContext1 {
		if attrs, err = split(fields[last]); err != nil {
			return nil, err
		}
		fields = fields[:last]
	}
	if attrs, err = edit(attrs); err != nil {
		return nil, err
	}
	if len(attrs) > maxAttrs {
		return nil, fmt.Errorf("cms: the signer would have %d unsigned attributes; at most %d are allowed", len(attrs), maxAttrs)
	}
	if len(attrs) > 0 {
		fields = append(fields, wrap(tagContext1, attrs...))
	}
	return wrap(tagSequence, fields...), nil
}

// split returns the elements inside one constructed BER element, each with its bytes
// unchanged, without an end mark.
func split(raw []byte) (parts [][]byte, err error) {
	tag, n, length, err := parseHeader(raw)
	if err != nil {
		return nil, fmt.Errorf("cms: %w", err)
	}
	if tag&bitConstructed == 0 || length > int64(len(raw)-n) {
		return nil, errors.New("cms: the element is not a constructed one")
	}
	body := raw[n:]
	if length >= 0 {
		body = body[:length]
	}
	for len(body) > 0 && !(length < 0 && body[0] == 0) {
		k, err := elementSize(body, 0)
		if err != nil {
			return nil, err
		}
		parts, body = append(parts, body[:k]), body[k:]
	}
	return parts, nil
}

// elementSize returns the length in bytes of the first element of b with its end mark.
func elementSize(b []byte, depth int) (int, error) {
	if depth > maxDepth {
		return 0, fmt.Errorf("cms: elements are nested deeper than %d", maxDepth)
	}
	_, n, length, err := parseHeader(b)
	switch {
	case err != nil:
		return 0, fmt.Errorf("cms: %w", err)
	case length > int64(len(b)-n):
		return 0, fmt.Errorf("cms: an element of %d bytes, but only %d bytes are left", length, len(b)-n)
	case length >= 0:
		return n + int(length), nil
	}
	for {
		if len(b)-n < 2 {
			return 0, errors.New("cms: an end mark is missing")
		}
		if b[n] == 0 {
			return n + 2, nil
		}
		k, err := elementSize(b[n:], depth+1)
		if err != nil {
			return 0, err
		}
		n += k
	}
}

// IsDER reports whether b is exactly one element with definite minimal lengths and strings
// in one piece.
func IsDER(b []byte) bool {
	der, err := toDER(b)
	return err == nil && len(der) == len(b) && &der[0] == &b[0]
}
