// SPDX-License-Identifier: Apache-2.0

package cades

import (
	"bytes"
	"context"

	"tamga/pki/cms"
	"tamga/pki/suite"
	"tamga/sig"
)

// Prepare implements sig.Format. It reads the parameters Hash, IsDetached,
// CADESType, CmsSignatureType, HashAlgorithm, TSPAddress, IncludeCertChain,
// SignatureIndex, AuthenticatedAttributes and Profile.
func (f *Format) Prepare(ctx context.Context, job *sig.Job) (*sig.Prepared, error) {
	return sig.Within(ctx, job.Document, func(ctx context.Context) (*sig.Prepared, error) { return f.prepare(ctx, job) })
}

func (f *Format) prepare(ctx context.Context, job *sig.Job) (*sig.Prepared, error) {
	s, err := sig.SuiteOf(job.Certificate)
	if err != nil {
		return nil, err
	}
	q, p := sig.ReadFor[params](f, job)
	r := q.ForJob(job)
	p.check(q, job, r, s)
	if p.whole {
		wholePath(job, r)
	}
	a := addition{contentType: cms.OIDData}
	var message []byte
	if p.kind == kindSign {
		if a.digest, err = document(ctx, job, r, p.hash, s); err != nil {
			return nil, err
		}
	} else {
		m, err := parse(ctx, job.Document)
		if err != nil {
			if faults := r.Err(); faults != nil {
				return nil, faults
			}
			return nil, err
		}
		if a, err = extend(ctx, job, r, m, &p, s); err != nil {
			return nil, err
		}
		message = fingerprint(m)
	}
	attrs, err := f.signedAttributes(job, &p, a)
	if err != nil {
		return nil, err
	}
	st := state{
		StateHeader: stateForm.Header(job),
		Attributes:  attrs,
		Digest:      a.digest.Sum,
		Hash:        p.hash && p.kind == kindSign,
		Detached:    p.detached,
		Chain:       p.chain,
		Kind:        p.kind,
		Message:     message,
		Position:    p.position,
		Level:       TypeOf(p.level),
		Address:     p.address,
	}
	return &sig.Prepared{Digest: s.Hash.Digest(attrs), State: st.marshal(), Detached: st.Detached && st.Kind == kindSign}, nil
}

// document returns the digest of the job's document, or the digest that the document is.
func document(ctx context.Context, job *sig.Job, r *sig.ParamReader, isHash bool, s *suite.Suite) (d suite.Digest, err error) {
	if isHash {
		if d, err = sig.HashValue(job.Document, "Content", r, s); err != nil {
			return d, err
		}
	}
	if err := r.Err(); err != nil {
		return d, err
	}
	if isHash {
		return d, nil
	}
	return sig.DigestOf(ctx, job.First(), s.Hash)
}

// signedAttributes returns the bytes to sign.
func (f *Format) signedAttributes(job *sig.Job, p *params, a addition) ([]byte, error) {
	signed := cms.Signed{ContentType: a.contentType, Digest: a.digest, Certificate: job.Certificate, Others: p.attrs}
	if !f.NoSigningTime {
		signed.Time = &job.Time
	}
	return signed.Attributes()
}

// Finish implements sig.Format. It does not read the parameters again: they are in the
// state. A detached message can be finished without the document, unless a message is
// extended. For a level above BES the value is verified before evidence is requested.
func (f *Format) Finish(ctx context.Context, job *sig.Job, prepared, signature []byte) (sig.Result, error) {
	return sig.Within(ctx, job.Document, func(ctx context.Context) (sig.Result, error) { return f.finish(ctx, job, prepared, signature) })
}

func (f *Format) finish(ctx context.Context, job *sig.Job, prepared, signature []byte) (sig.Result, error) {
	s, err := sig.SuiteOf(job.Certificate)
	if err != nil {
		return nil, err
	}
	st, err := readState(job, s, prepared)
	if err != nil {
		return nil, err
	}
	value, err := s.RawValue(signature) // CMS has the same bytes
	if err != nil {
		return nil, err
	}
	signer := cms.Signer{Certificate: job.Certificate, Suite: s, SignedAttrs: st.Attributes, Signature: value}
	if st.Kind == kindSign {
		into := &container{contentType: cms.OIDData, certs: certificates(job, st.Chain), content: []suite.Digest{{Hash: s.Hash, Sum: st.Digest}}}
		if signer.UnsignedAttrs, err = f.lifted(ctx, job, st, &signer, nil, into); err != nil {
			return nil, err
		}
		return attach(job, st, signer, into)
	}
	m, err := parse(ctx, job.Document)
	if err != nil {
		return nil, err
	}
	if !bytes.Equal(st.Message, fingerprint(m)) {
		return nil, &sig.ErrState{Text: "made for another message"}
	}
	into := containerOf(m)
	into.content = []suite.Digest{{Hash: s.Hash, Sum: st.Digest}}
	if err := into.add(certificates(job, st.Chain), nil); err != nil {
		return nil, err
	}
	if signer.UnsignedAttrs, err = f.lifted(ctx, job, st, &signer, m, into); err != nil {
		return nil, err
	}
	changes := into.changes()
	raw := signer.Marshal()
	if st.Kind == kindCosign {
		changes.Added = [][]byte{raw}
		return rewritten(job.Document, m, changes)
	}
	r := sig.Params(nil).Reader()
	line := st.Position.find(m, r)
	if r.Err() != nil || len(line) == 0 {
		return nil, &sig.ErrState{Text: "damaged"}
	}
	// A separate attribute changes no byte of the others.
	if raw, err = line[len(line)-1].AppendUnsigned(cms.NewAttribute(cms.OIDCountersignature, raw)); err == nil {
		raw, err = st.Position.replace(line, raw)
	}
	if err != nil {
		return nil, &sig.ErrDocument{What: "Document", Text: "cannot be countersigned", Err: err}
	}
	changes.Replaced = map[int][]byte{st.Position[0]: raw}
	return rewritten(job.Document, m, changes)
}

// attach makes a new message with one signature.
func attach(job *sig.Job, st *state, signer cms.Signer, into *container) (sig.Result, error) {
	size := st.Size
	if st.Detached {
		size = -1
	}
	head, tail, err := cms.Encode(cms.OIDData, size, into.certs, into.crls, []cms.Signer{signer})
	if err != nil {
		return nil, err
	}
	if st.Detached {
		return sig.Parts(sig.Bytes(head), sig.Bytes(tail)), nil
	}
	return sig.Parts(sig.Bytes(head), sig.Section(job.Document, 0, st.Size), sig.Bytes(tail)), nil
}

// readState reads a prepared state and checks that it was made for this job.
func readState(job *sig.Job, s *suite.Suite, prepared []byte) (*state, error) {
	st, err := parseState(job, prepared)
	if err != nil {
		return nil, err
	}
	if err := st.CheckCertificate(job.Certificate); err != nil {
		return nil, err
	}
	if len(st.Attributes) == 0 || len(st.Digest) != s.Hash.Size || st.Size < 0 || st.Hash && !st.Detached {
		return nil, &sig.ErrState{Text: "damaged"}
	}
	if job.Document == nil && st.Detached && st.Kind == kindSign {
		return st, nil
	}
	if err := st.CheckSize(job.Document); err != nil {
		return nil, err
	}
	switch {
	case st.Kind != kindSign: // the fingerprint is compared instead
	case st.Hash:
		value := make([]byte, len(st.Digest))
		if n, _ := job.Document.ReadAt(value, 0); n < len(value) || !bytes.Equal(value, st.Digest) {
			return nil, &sig.ErrState{Text: "made for another hash value"}
		}
	default:
		for _, d := range job.Digests {
			if d.Hash == s.Hash && !bytes.Equal(d.Sum, st.Digest) {
				return nil, &sig.ErrState{Text: "made for a document with another hash value"}
			}
		}
	}
	return st, nil
}
