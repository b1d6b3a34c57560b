package cms

import (
	"errors"
	"fmt"
	"slices"
)

// Changes are what Rewrite does to a message. Nothing of the message is changed
// beside it.
type Changes struct {
	// Certificates are whole elements to append; those the message has already, and
	// repeats, are left out.
	Certificates [][]byte
	// Replaced are whole SignerInfos by the position of the one each takes the place
	// of, as AppendUnsigned returns them.
	Replaced map[int][]byte
	// Added are whole SignerInfos to append.
	Added [][]byte
}

// Rewrite returns what precedes and what follows the octets EncapContentInfo of
// the message, which stand in between as they are: the message with the changes.
// Certificates, CRLs and SignerInfos keep their octets and their order, whatever
// encoding they came in; version and digestAlgorithms are brought up to date (RFC
// 5652, 5.1), and the headers around them are DER. A result that Parse would not
// read again is an error.
func (m *Message) Rewrite(c Changes) (head, tail []byte, err error) {
	certs := slices.Clone(m.Certificates)
	have := make(map[string]bool, len(certs)+len(c.Certificates))
	for _, raw := range certs {
		have[string(raw)] = true
	}
	for _, raw := range c.Certificates {
		if !have[string(raw)] {
			have[string(raw)] = true
			certs = append(certs, raw)
		}
	}
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
	if len(certs) > maxElements || len(raws) > maxElements {
		return nil, nil, fmt.Errorf("cms: the message would have %d certificates and %d signers; at most %d of each are read", len(certs), len(raws), maxElements)
	}
	digests, err := m.listDigests(infos)
	if err != nil {
		return nil, nil, err
	}
	w := newWriter(headersRoom + size(certs) + size(m.CRLs) + size(raws) + size(digests))
	w.addAll(raws)
	after, err := w.closeSigners(certs, m.CRLs)
	if err != nil {
		return nil, nil, err
	}
	w.skip(m.EncapContentInfo.Length)
	mark := w.len()
	w.addAll(digests)
	w.close(tagSet, mark)
	byKey := slices.ContainsFunc(infos, func(s *SignerInfo) bool { return s.Version == 3 })
	w.closeMessage(version(m.ContentType, certs, m.CRLs, byKey))
	head, tail = w.parts(after)
	return head, tail, nil
}

// listDigests is what digestAlgorithms of the message lists: what it does already,
// as it stands, and behind that what its signers and their countersigners use beside.
func (m *Message) listDigests(signers []*SignerInfo) ([][]byte, error) {
	var list [][]byte
	listed := map[string]bool{}
	for _, a := range m.DigestAlgorithms {
		list = append(list, a.Raw)
		listed[a.OID.String()] = a.OID != nil
	}
	var add func(s *SignerInfo, depth int)
	add = func(s *SignerInfo, depth int) {
		if name := s.DigestAlgorithm.OID.String(); s.DigestAlgorithm.OID != nil && !listed[name] {
			listed[name] = true
			list = append(list, s.DigestAlgorithm.Raw)
		}
		if depth == MaxCountersignatures {
			return
		}
		inner, _ := s.Countersignatures() // one that cannot be read lists nothing
		for _, c := range inner {
			add(c, depth+1)
		}
	}
	for _, s := range signers {
		add(s, 0)
	}
	if len(list) > maxElements {
		return nil, errors.New("cms: there are too many digest algorithms")
	}
	return list, nil
}

// ParseSignerInfo reads one SignerInfo in DER or BER.
func ParseSignerInfo(raw []byte) (*SignerInfo, error) { return parseSignerInfo(raw) }

// AppendUnsigned returns the SignerInfo with unsigned attributes appended. All
// that was there keeps its octets; only the headers around it are written anew.
func (s *SignerInfo) AppendUnsigned(attrs ...Attribute) ([]byte, error) {
	return s.editUnsigned(func(raws [][]byte) ([][]byte, error) {
		for _, a := range attrs {
			raws = append(raws, a.Raw)
		}
		return raws, nil
	})
}

// ReplaceCountersignature returns the SignerInfo with another SignerInfo in the
// place of its n-th countersignature in the order of Countersignatures, from 0,
// which must be the same with attributes appended. The other values and attributes
// keep their octets.
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
				if _, err := parseSignerInfo(v); err != nil {
					continue // not counted by Countersignatures either
				}
				if n--; n < 0 {
					values[j] = raw
					raws[i] = wrap(tagSequence, fields[0], wrap(tagSet, values...))
					return raws, nil
				}
			}
		}
		return nil, errors.New("cms: there is no such countersignature")
	})
}

// editUnsigned lets edit change the list of unsigned attributes, each as it stands.
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
		return nil, fmt.Errorf("cms: the signer would have %d unsigned attributes; at most %d are read", len(attrs), maxAttrs)
	}
	if len(attrs) > 0 {
		fields = append(fields, wrap(tagContext1, attrs...))
	}
	return wrap(tagSequence, fields...), nil
}

// split returns the elements inside one constructed BER element, each as it
// stands, without an end mark.
func split(raw []byte) (parts [][]byte, err error) {
	tag, n, length, err := parseHeader(raw)
	if err != nil {
		return nil, fmt.Errorf("cms: %w", err)
	}
	if tag&bitConstructed == 0 || length > int64(len(raw)-n) {
		return nil, errors.New("cms: an element with elements inside expected")
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

// elementSize is the number of octets of the first element of b, its end mark
// included.
func elementSize(b []byte, depth int) (int, error) {
	if depth > maxDepth {
		return 0, fmt.Errorf("cms: elements are nested deeper than %d", maxDepth)
	}
	_, n, length, err := parseHeader(b)
	switch {
	case err != nil:
		return 0, fmt.Errorf("cms: %w", err)
	case length > int64(len(b)-n):
		return 0, fmt.Errorf("cms: an element of %d octets where %d are left", length, len(b)-n)
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

// IsDER tells whether b is exactly one element with definite minimal lengths and
// strings in one piece.
func IsDER(b []byte) bool {
	der, err := toDER(b)
	return err == nil && len(der) == len(b) && &der[0] == &b[0]
}
