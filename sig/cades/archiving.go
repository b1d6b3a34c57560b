// SPDX-License-Identifier: Apache-2.0

package cades

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"tamga/pki/cms"
	"tamga/pki/suite"
	"tamga/pki/tsp"
	"tamga/pki/x509gost"
	"tamga/sig"
	"tamga/sig/budget"
	"tamga/sig/evidence"
)

// container is the message around the signatures that are raised: an archive time stamp covers its
// certificates and revocation data.
type container struct {
	contentType x509gost.OID
	content     []suite.Digest // of the document; empty if there is none
	certs, crls [][]byte       // whole elements, with the new ones at the end
	hashes      []*suite.Hash  // of the new stamps
	message     *cms.Message   // nil for a new one
	// frozen reports that an archive time stamp of any signature covers the fields as they are.
	frozen  bool
	has     map[string]bool
	digests map[elementsKey][][]byte
	inside  func() sig.Found // certificates and revocation data of the message; nil for a new one
}

func containerOf(m *cms.Message) *container {
	return &container{contentType: m.ContentType, certs: slices.Clip(m.Certificates), crls: slices.Clip(m.CRLs), message: m, frozen: coversFields(m),
		inside: sync.OnceValue(func() sig.Found { return Carried(m) })}
}

// coversFields reports whether an archive time stamp covers the certificates and CRLs of a message as they
// are, so that none may be added.
func coversFields(m *cms.Message) bool {
	return slices.ContainsFunc(m.Signers, func(s *cms.SignerInfo) bool {
		return slices.ContainsFunc(s.UnsignedAttrs, func(a cms.Attribute) bool {
			return a.OID.Equal(cms.OIDArchiveTimeStamp) || a.OID.Equal(cms.OIDArchiveTimeStampV2)
		})
	})
}

// lacks returns the elements that the container does not have.
func (c *container) lacks(list [][]byte) (missing [][]byte) {
	if c.has == nil {
		c.has = map[string]bool{}
		for _, raw := range slices.Concat(c.certs, c.crls) {
			c.has[string(raw)] = true
		}
	}
	for _, raw := range list {
		if !c.has[string(raw)] {
			missing = append(missing, raw)
		}
	}
	return missing
}

// add adds the elements that are missing.
func (c *container) add(certs, crls [][]byte) error {
	certs, crls = c.lacks(certs), c.lacks(crls)
	if len(certs)+len(crls) == 0 {
		return nil
	}
	if c.frozen {
		return &sig.ErrDocument{What: "Document", Text: "has an archive time stamp (archive-time-stamp-v2) over its certificates, which the change would invalidate"}
	}
	for _, raw := range slices.Concat(certs, crls) {
		c.has[string(raw)] = true
	}
	c.certs, c.crls, c.digests = append(c.certs, certs...), append(c.crls, crls...), nil
	return nil
}

// changes returns what was added.
func (c *container) changes() cms.Changes {
	return cms.Changes{Certificates: c.certs[len(c.message.Certificates):], CRLs: c.crls[len(c.message.CRLs):], Hashes: c.hashes}
}

// digested returns the digests of the certificates or CRLs for an index, computed once for all stamps.
func (c *container) digested(key elementsKey) [][]byte {
	if sums, known := c.digests[key]; known {
		return sums
	}
	list := c.certs
	if key.crls {
		list = c.crls
	}
	sums := make([][]byte, len(list))
	for i, d := range key.hash.SumMany(list) {
		sums[i] = d.Sum
	}
	if c.digests == nil {
		c.digests = map[elementsKey][][]byte{}
	}
	c.digests[key] = sums
	return sums
}

// contentOf returns the digest of the document by an algorithm. If the document is not given, it is the
// digest that the signature covers.
func (c *container) contentOf(s *cms.SignerInfo, h *suite.Hash) (suite.Digest, bool) {
	if d, known := find(c.content, h); known {
		return d, true
	}
	if own, err := s.Hash(); err != nil || own != h {
		return suite.Digest{}, false
	}
	value, present, err := s.SignedAttribute(cms.OIDMessageDigest)
	if err != nil || !present {
		return suite.Digest{}, false
	}
	sum, ok := cms.ReadMessageDigest(value)
	return suite.Digest{Hash: h, Sum: sum}, ok
}

// service is the service of a time stamp that no archive time stamp covers yet.
type service struct {
	authority *x509gost.Certificate
	token     *tsp.Token
}

// hasArchive reports whether a signature has archive time stamps, of any kind.
func hasArchive(s *cms.SignerInfo) bool {
	return slices.ContainsFunc(s.UnsignedAttrs, func(a cms.Attribute) bool { return stampKind(a.OID) == "archive" })
}

// archived checks all time stamps of a signature that gets an archive time stamp, and notes the services
// of those that no earlier one covers: evidence about them is still needed.
func (e *enhancement) archived(ctx context.Context, l line, t *target) error {
	refuse := func(err error, format string, args ...any) error {
		return &sig.ErrDocument{What: "Document", Text: fmt.Sprintf("signature %s: ", l.position) + fmt.Sprintf(format, args...), Err: err}
	}
	if e.level < sig.LevelArchive {
		return nil
	}
	for _, a := range t.info.UnsignedAttrs {
		if a.OID.Equal(cms.OIDArchiveTimeStamp) {
			return refuse(nil, "it has an archive time stamp of the first kind (RFC 3126), which another one would invalidate")
		}
	}
	if e.source == nil {
		e.source = &source{message: e.message, signed: e.job.Document, content: e.content, spend: e.budget.Spend}
		if given(e.job.Original) && !e.overHash {
			e.source.original = e.job.Original
		}
	}
	t.earlier = e.earlier[t.info]
	carried := readLongTerm(t.info)
	known := slices.Concat(e.known, carried.values.Certificates)
	if t.earlier != nil {
		for _, a := range t.earlier.stamps {
			if a.err == nil && a.v3 {
				if e.source.content = e.content; len(e.content) == 0 {
					if d, ok := e.into.contentOf(t.info, a.token.Info.Digest.Hash); ok {
						e.source.content = []suite.Digest{d}
					}
				}
			}
			if a.err == nil {
				a.err = e.source.check(ctx, t.earlier, a)
			}
			if err := cmp.Or(e.budget.Err(), ctx.Err(), e.source.failed); err != nil {
				return err
			}
			if a.missing != "" {
				return &sig.ErrParams{Faults: []sig.Fault{{Key: "OriginalDocument", Text: fmt.Sprintf("is missing; %s of signature %s covers the document itself", a.name(), l.position)}}}
			}
			if a.err == nil {
				if err := e.budget.Spend(budget.Signature); err != nil {
					return err
				}
				a.signer, a.err = a.token.CheckSignature(known)
			}
			if a.err != nil {
				return refuse(a.err, "%s is invalid", a.name())
			}
			if t.stamped.IsZero() || a.token.Info.Time.Before(t.stamped) {
				t.stamped = a.token.Info.Time
			}
		}
		t.earlier.refuseDisorder(func(*archiveStamp) bool { return true })
		for _, a := range t.earlier.stamps {
			if a.err != nil {
				return refuse(a.err, "%s is invalid", a.name())
			}
		}
	}
	imprints := &imprints{signer: t.info}
	t.stamps = nil // they are among those below
	archived := 0
	for place, a := range t.info.UnsignedAttrs {
		kind := stampKind(a.OID)
		for _, value := range a.Values {
			switch {
			case kind == "":
			case kind == "archive":
				one := t.earlier.stamps[archived]
				if archived++; !t.earlier.cover(place) {
					t.unproven = append(t.unproven, service{one.signer, one.token})
				}
			case t.earlier != nil && t.earlier.cover(place):
			default:
				if err := e.budget.Spend(budget.Signature + stepsOfValue*int64(len(value))); err != nil {
					return err
				}
				token, err := tsp.ParseTokenWithin(tsp.Unwrap(value), e.budget.Hold)
				if err != nil {
					return refuse(err, "a time stamp (%s) cannot be read", kind)
				}
				if _, err := imprints.answers(kind, place, token, e.budget.Spend); err != nil {
					return refuse(err, "a time stamp (%s) is invalid", kind)
				}
				authority, err := token.CheckSignature(known)
				if err != nil {
					return refuse(err, "a time stamp (%s) is invalid", kind)
				}
				t.unproven = append(t.unproven, service{authority, token})
			}
		}
	}
	return nil
}

// cover reports whether an archive time stamp covers the unsigned attribute at a place.
func (l *archives) cover(place int) bool {
	return slices.ContainsFunc(l.stamps, func(a *archiveStamp) bool { return a.valid() && a.covers[place] })
}

// addArchive is the raise of A: it completes the evidence in the fields of the message and then stamps all
// of it. All signatures have their evidence before the first gets its stamp, which covers the evidence.
func addArchive(ctx context.Context, r *raising, targets []*target) error {
	for _, t := range targets {
		if err := t.prove(ctx, r); err != nil {
			return err
		}
	}
	for _, t := range targets {
		if err := t.archive(ctx, r); err != nil {
			return err
		}
	}
	return nil
}

// prove adds the evidence that a signature and its time stamps lack.
func (t *target) prove(ctx context.Context, r *raising) error {
	for _, s := range t.stamps {
		t.unproven = append(t.unproven, service{s.Authority(), s.Token()})
	}
	var values evidence.Values
	whole := &cms.SignerInfo{UnsignedAttrs: slices.Concat(t.has, t.attrs)}
	if !t.proven(r, whole) {
		values.AddCertificate(t.signer, evidence.ForSigner)
		if _, err := r.collector().Collect(ctx, &values, evidence.Subject{Certificate: t.signer, Purpose: evidence.ForSigner, At: t.stamped}); err != nil {
			return err
		}
	}
	for _, s := range t.unproven {
		values.AddCertificate(s.authority, evidence.ForTimeStamp)
		of := evidence.Subject{Certificate: s.authority, Purpose: evidence.ForTimeStamp, Others: s.token.Certificates(), At: s.token.Info.Time}
		if _, err := r.collector().Collect(ctx, &values, of); err != nil {
			return err
		}
	}
	// What its own attributes have is covered as well.
	has := map[string]bool{}
	certs, crls, answers := Values(whole)
	for _, raw := range slices.Concat(certs, crls, answers) {
		has[string(raw)] = true
	}
	var newCerts, newCRLs [][]byte
	for _, v := range values.Certificates {
		if !has[string(v.DER)] {
			newCerts = append(newCerts, v.DER)
		}
	}
	for _, v := range values.CRLs {
		if !has[string(v.DER)] {
			newCRLs = append(newCRLs, v.DER)
		}
	}
	for _, v := range values.OCSP {
		if !has[string(v.DER)] {
			newCRLs = append(newCRLs, cms.OCSPAnswer(v.DER))
		}
	}
	if r.into.frozen && t.earlier != nil {
		return t.hold(r.into.lacks(newCerts), r.into.lacks(newCRLs))
	}
	return r.into.add(newCerts, newCRLs)
}

// proven reports whether the message has all evidence about the signer.
func (t *target) proven(r *raising, whole *cms.SignerInfo) bool {
	if r.into.message == nil {
		return false
	}
	found := joined(readLongTerm(whole).values, r.into.inside())
	if t.earlier != nil {
		for _, a := range t.earlier.stamps {
			found = joined(found, contentsOf(a.token))
		}
	}
	return evidence.Proven(t.signer, t.stamped, found, r.rules)
}

// hold puts evidence into the token of the last archive time stamp, which nothing covers: with a v2 in the
// message nothing may be added to its fields (EN 319 122-1, 5.5.3).
func (t *target) hold(certs, crls [][]byte) error {
	if len(certs)+len(crls) == 0 {
		return nil
	}
	last := slices.MaxFunc(t.earlier.stamps, t.earlier.compare)
	attr := t.has[last.place]
	if t.earlier.cover(last.place) || len(attr.Values) != 1 {
		return &sig.ErrDocument{What: "Document", Text: "has an archive time stamp (archive-time-stamp-v2) over its certificates, and the evidence about the last one cannot be put into its token"}
	}
	token, err := rewrittenToken(last.token, cms.Changes{Certificates: certs, CRLs: crls})
	if err != nil {
		return err
	}
	t.has = slices.Clone(t.has)
	t.has[last.place] = cms.NewAttribute(attr.OID, token)
	t.replaced = map[int]cms.Attribute{last.place: t.has[last.place]}
	return nil
}

// rewrittenToken returns a token with changes outside of what it signs.
func rewrittenToken(token *tsp.Token, c cms.Changes) ([]byte, error) {
	m := token.Message
	head, tail, err := m.Rewrite(c)
	if err != nil {
		return nil, err
	}
	of := m.EncapContentInfo
	out := slices.Concat(head, token.Raw[of.Offset:of.Offset+of.Length], tail)
	if len(out) > tsp.MaxResponse {
		return nil, &sig.ErrDocument{What: "Document", Text: fmt.Sprintf("the token of its archive time stamp would have more than %d bytes", tsp.MaxResponse)}
	}
	return out, nil
}

// archive appends an archive-time-stamp-v3 over everything that the signature has.
func (t *target) archive(ctx context.Context, r *raising) error {
	h, err := t.info.Hash()
	if err != nil {
		return err
	}
	if h.Weak() {
		h = t.hash
		for _, d := range r.into.content {
			if !d.Hash.Weak() {
				h = d.Hash
			}
		}
	}
	content, known := r.into.contentOf(t.info, h)
	if !known {
		return &sig.ErrParams{Faults: []sig.Fault{{Key: "OriginalDocument", Text: "is missing or given by its hash value; an archive time stamp needs its digest by " + h.Name}}}
	}
	fields, err := t.info.Fields()
	if err != nil {
		return err
	}
	x := &hashIndex{hash: h, certs: r.into.digested(elementsKey{h, false}), crls: r.into.digested(elementsKey{h, true})}
	for _, a := range slices.Concat(t.has, t.attrs) {
		oid, values, err := a.Parts()
		if err != nil {
			return err
		}
		for _, v := range values {
			x.attrs = append(x.attrs, h.Digest(slices.Concat(oid, v)).Sum)
		}
	}
	index := x.attribute()
	input, err := imprintV3(r.into.contentType, content, slices.Concat(fields...), x)
	if err != nil {
		return &sig.ErrDocument{What: "Document", Text: err.Error()}
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	s, err := sig.Stamp(ctx, r.by.source, r.by.address, h.Digest(input))
	if err != nil {
		return err
	}
	if err := t.inTime(s.Token().Info.Time); err != nil {
		return err
	}
	m := s.Token().Message
	info, err := m.Signers[0].AppendUnsigned(index)
	if err != nil {
		return err
	}
	token, err := rewrittenToken(s.Token(), cms.Changes{Replaced: map[int][]byte{0: info}})
	if err != nil {
		return err
	}
	t.attrs = append(t.attrs, cms.NewAttribute(cms.OIDArchiveTimeStampV3, token))
	if !slices.Contains(r.into.hashes, h) {
		r.into.hashes = append(r.into.hashes, h)
	}
	return nil
}

// inTime refuses a stamp that comes too late: the earlier ones prove nothing when their certificates have
// ended.
func (t *target) inTime(now time.Time) error {
	for _, s := range t.unproven {
		if now.After(s.authority.NotAfter) {
			return &sig.ErrDocument{What: "Document", Text: fmt.Sprintf(
				"its time stamp of %s proves nothing any more: %s ended at %s, and no archive time stamp was added before",
				at(s.token.Info.Time), evidence.Name(s.authority), at(s.authority.NotAfter)), Err: errors.New("a renewal is missing")}
		}
	}
	return nil
}
