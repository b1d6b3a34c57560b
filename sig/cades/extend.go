// SPDX-License-Identifier: Apache-2.0

package cades

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/asn1"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync"

	"tamga/pki/cms"
	"tamga/pki/suite"
	"tamga/pki/x509gost"
	"tamga/sig"
)

// parse parses the signed message of a job.
func parse(ctx context.Context, d sig.Document) (*cms.Message, error) {
	m, err := cms.ParseWithin(d, d.Size(), spending(ctx).Hold)
	if err != nil {
		// A message in a text form is of the right kind, and the error says how to send it.
		return nil, &sig.ErrDocument{What: "Document", Text: "a signed message (CMS SignedData) expected", Err: err, OtherKind: !looksSigned(d) && !cms.IsText(err)}
	}
	return m, charge(spending(ctx), m)
}

// looksSigned reports whether a document begins like a signed message. Such a document is
// a damaged message if it cannot be parsed. Any other document is of another kind.
func looksSigned(d sig.Document) bool {
	head := make([]byte, min(d.Size(), 32)) // more than tags, lengths and the type need
	n, _ := d.ReadAt(head, 0)
	return LooksLikeMessage(head[:n])
}

// addition is what a signature that is added to a message covers.
type addition struct {
	digest      suite.Digest
	contentType asn1.ObjectIdentifier // nil for a countersignature, which has none
}

// extend checks the message that a signature is added to: the original must be the one
// that the earlier signatures cover, and the target of a countersignature must exist and
// be valid. It may change p: values that were not given are taken from the message.
func extend(ctx context.Context, job *sig.Job, r *sig.ParamReader, m *cms.Message, p *params, s *suite.Suite) (a addition, err error) {
	if p.kind == kindCosign && r.Given("IsDetached") && p.detached != m.Detached {
		is := map[bool]string{true: "detached: it does not contain its document", false: "attached: it contains its document"}[m.Detached]
		r.Fault("IsDetached", fmt.Sprintf("is %s, but the message to add to is %s; leave it out", r.String("IsDetached"), is))
	}
	p.detached = m.Detached
	if p.kind == kindCosign && m.Detached && !given(job.Original) {
		r.Fault("OriginalDocument", "is missing; it is needed to cosign a detached signature")
	}
	var line []*cms.SignerInfo
	if p.kind == kindCountersign {
		if p.position == nil {
			p.position = position{0}
		}
		line = p.position.find(m, r)
	} else if m.ContentType == nil {
		return a, &sig.ErrDocument{What: "Document", Text: "the type of its content is unknown"}
	}
	if err := r.Err(); err != nil {
		return a, err
	}
	digests, err := originals(ctx, job, r, m, p.hash, s)
	if err != nil {
		return a, err
	}
	if err := sameOriginal(m, digests, given(job.Original)); err != nil {
		return a, err
	}
	if p.kind == kindCountersign {
		target := line[len(line)-1]
		if err := checkFrozen(p.position, line); err != nil {
			return a, err
		}
		if len(line) > cms.MaxCountersignatures {
			return a, &sig.ErrDocument{What: "Document", Text: "its countersignatures are nested too deeply to add one more"}
		}
		if err := holds(p.position, target, m); err != nil {
			return a, err
		}
		return addition{digest: s.Hash.Digest(target.Signature)}, nil
	}
	d, _ := find(digests, s.Hash) // always among them
	return addition{d, m.ContentType}, nil
}

// originals returns the digests of the document that the message covers, by the hash of
// the suite, of every earlier signature and by more, as far as they can be known. If the message
// is attached, a given original must be the attached document.
func originals(ctx context.Context, job *sig.Job, r *sig.ParamReader, m *cms.Message, isHash bool, s *suite.Suite, more ...*suite.Hash) ([]suite.Digest, error) {
	var beside []suite.Digest
	hashes := []*suite.Hash{s.Hash}
	for _, h := range more {
		if !slices.Contains(hashes, h) {
			hashes = append(hashes, h)
		}
	}
	for _, si := range m.Signers {
		if h, err := si.Hash(); err == nil && !slices.Contains(hashes, h) {
			hashes = append(hashes, h)
		}
	}
	if given(job.Original) {
		if isHash {
			d, err := sig.HashValue(job.Original, "OriginalDocument", r, s)
			if err != nil {
				return nil, err
			}
			if err := r.Err(); err != nil {
				return nil, err
			}
			beside = []suite.Digest{d}
		} else {
			var err error
			if beside, err = sig.DigestsOf(ctx, job.Original, job.OriginalDigests, hashes); err != nil {
				return nil, err
			}
		}
	}
	if m.Detached {
		return beside, nil
	}
	inside, err := sig.DigestAll(ctx, m.ContentReader(), m.ContentSize(), hashes...)
	if err != nil {
		return nil, err
	}
	for _, d := range beside {
		if x, _ := find(inside, d.Hash); !bytes.Equal(x.Sum, d.Sum) {
			return nil, &sig.ErrDocument{What: "OriginalDocument", Text: "is not the document in the message; leave it out or give that document"}
		}
	}
	return inside, nil
}

// sameOriginal refuses digests that the signatures of the message do not cover. A
// signature by an algorithm that is not among the digests cannot be compared: with a hash
// value only that of its own algorithm is known. beside reports that an original was
// given, so that the error can name it.
func sameOriginal(m *cms.Message, digests []suite.Digest, beside bool) error {
	certs := sync.OnceValue(func() []*x509gost.Certificate { // most messages need none of them
		certs, _ := m.X509() // an unreadable one is ignored
		return certs
	})
	for i, s := range m.Signers {
		h, err := s.Hash()
		if err != nil {
			continue
		}
		d, ok := find(digests, h)
		if !ok {
			continue
		}
		same := true
		if s.RawSignedAttrs != nil {
			value, ok, err := s.SignedAttribute(cms.OIDMessageDigest)
			if err != nil || !ok {
				return &sig.ErrDocument{What: "Document", Text: fmt.Sprintf("signature %d is damaged: one message-digest expected", i)}
			}
			sum, readable := cms.ReadMessageDigest(value)
			same = readable && bytes.Equal(sum, d.Sum)
		} else if c := s.FindCertificate(certs()); c != nil && c.PublicKey != nil {
			scheme, err := s.Scheme()
			same = err != nil || scheme.SignsMessage() || c.VerifyBy(scheme, d, s.Signature) == nil
		}
		switch {
		case same:
		case beside && m.Detached:
			return &sig.ErrDocument{What: "OriginalDocument", Text: fmt.Sprintf("is not the document that signature %d of the message covers", i)}
		default:
			return &sig.ErrDocument{What: "Document", Text: fmt.Sprintf("signature %d of the message does not cover the document in the message", i)}
		}
	}
	return nil
}

// holds refuses a target whose value is invalid, as far as that can be checked without
// its certificate and, if there are no signed attributes, its document.
func holds(p position, target *cms.SignerInfo, m *cms.Message) error {
	certs, _ := m.X509()
	c := target.FindCertificate(certs)
	if c == nil || c.PublicKey == nil || target.RawSignedAttrs == nil {
		return nil
	}
	if err := target.CheckValue(c); err != nil && !errors.Is(err, suite.ErrUnsupported) {
		return &sig.ErrDocument{What: "Document", Text: fmt.Sprintf("signature %s is not valid", p), Err: err}
	}
	return nil
}

// fingerprint returns a digest of everything in the message but its content, so that
// Finish recognises the message of Prepare.
func fingerprint(m *cms.Message) []byte {
	h := sha256.New()
	var number [8]byte
	add := func(n int64) {
		binary.BigEndian.PutUint64(number[:], uint64(n))
		h.Write(number[:])
	}
	addRaw := func(raw []byte) {
		add(int64(len(raw)))
		h.Write(raw)
	}
	add(m.EncapContentInfo.Offset)
	add(m.EncapContentInfo.Length)
	for _, list := range [][][]byte{m.Certificates, m.CRLs} {
		add(int64(len(list)))
		for _, raw := range list {
			addRaw(raw)
		}
	}
	add(int64(len(m.Signers)))
	for _, s := range m.Signers {
		addRaw(s.Raw)
	}
	return h.Sum(nil)
}

// rewritten returns the message with the changes. Its content is copied unchanged.
func rewritten(d sig.Document, m *cms.Message, c cms.Changes) (sig.Result, error) {
	if coversFields(m) && !m.FieldsInDER() {
		return nil, &sig.ErrDocument{What: "Document", Text: "has an archive time stamp (archive-time-stamp-v2) over its certificates as they are encoded, which the change would invalidate"}
	}
	head, tail, err := m.Rewrite(c)
	if err != nil {
		return nil, &sig.ErrDocument{What: "Document", Text: "cannot be extended", Err: err}
	}
	return sig.Parts(sig.Bytes(head), sig.Section(d, m.EncapContentInfo.Offset, m.EncapContentInfo.Length), sig.Bytes(tail)), nil
}

// certificates returns the certificates for a new signature: the signer's and, with
// chain, its issuers' except the root.
func certificates(job *sig.Job, chain bool) [][]byte {
	certs := [][]byte{job.Certificate.Raw}
	if !chain {
		return certs
	}
	for _, c := range job.Chain {
		if !c.IsSelfIssued() && !c.Equal(job.Certificate) {
			certs = append(certs, c.Raw)
		}
	}
	return certs
}
