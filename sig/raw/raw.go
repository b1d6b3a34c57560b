// SPDX-License-Identifier: Apache-2.0

// Package raw makes and checks bare signatures, which the interface calls GOST3410: the signature
// value and nothing else, over a document (Hash=False) or over its hash value (Hash=True). Despite
// the name, every suite can sign. Begin with New. The package stores no certificate and no document
// in the signature, so a check must bring both.
//
// A GOST value is s followed by r, both big-endian, 64 or 128 bytes together (RFC 4491, section
// 2.2.2). RSA is the PKCS #1 v1.5 value, ECDSA the DER of r and s.
package raw

import (
	"context"
	"fmt"
	"io"

	"tamga/pki/cms"
	"tamga/pki/suite"
	"tamga/sig"
)

// Format makes and checks bare signatures. It has no state.
type Format struct{}

// New returns the format.
func New() *Format { return &Format{} }

var stateForm = sig.StateForm{What: "a bare signature", First: 1, JSON: 1, Version: 2}

type state struct {
	sig.StateHeader        // the version alone
	Hash            string `json:"hash"`   // suite.Hash.Name
	Digest          []byte `json:"digest"` // what was given to the key
}

// Fields implements sig.State.
func (st *state) Fields(f *sig.Fields) {
	f.Text(&st.Hash)
	f.Bytes(&st.Digest)
}

// params are the values of the parameters that bare signatures alone have: none.
type params struct{}

// Read implements sig.Format.
func (*Format) Read(p sig.Params) *sig.Request {
	q := p.Request()
	q.Own = params{}
	return q
}

// Prepare implements sig.Format. It reads the parameters Hash and HashAlgorithm.
func (f *Format) Prepare(ctx context.Context, job *sig.Job) (*sig.Prepared, error) {
	s, err := sig.SuiteOf(job.Certificate)
	if err != nil {
		return nil, err
	}
	q, _ := sig.ReadFor[params](f, job)
	r := q.ForJob(job)
	r.CheckHashAlgorithm(s)
	var d suite.Digest
	if q.OverHash {
		if d, err = sig.HashValue(job.Document, "Content", r, s); err != nil {
			return nil, err
		}
	}
	if err := r.Err(); err != nil {
		return nil, err
	}
	if !q.OverHash {
		if d, err = sig.DigestOf(ctx, job.First(), s.Hash); err != nil {
			return nil, err
		}
	}
	st := sig.MarshalState(&state{sig.StateHeader{Version: stateForm.Version}, d.Hash.Name, d.Sum}, 128)
	return &sig.Prepared{Digest: d, State: st, Detached: true}, nil
}

// Finish implements sig.Format. The result is the value itself.
func (*Format) Finish(_ context.Context, job *sig.Job, prepared, signature []byte) (sig.Result, error) {
	s, err := sig.SuiteOf(job.Certificate)
	if err != nil {
		return nil, err
	}
	var st state
	if err := sig.OpenState(stateForm, job, prepared, &st); err != nil {
		return nil, err
	}
	if st.Hash != s.Hash.Name || len(st.Digest) != s.Hash.Size {
		return nil, &sig.ErrState{Text: fmt.Sprintf("made for %s, but the certificate's key signs %s", st.Hash, s.Hash.Name)}
	}
	value, err := s.RawValue(signature)
	if err != nil {
		return nil, err
	}
	return sig.Parts(sig.Bytes(value)), nil
}

// maxValue is more than the length of any signature value, in bytes.
const maxValue = 4096

// Verify implements sig.Verifier. The check must have a Certificate, and Original or Hash.
func (*Format) Verify(ctx context.Context, c *sig.Check) (*sig.Report, error) {
	if err := question(c); err != nil {
		return nil, err
	}
	size := c.Document.Size()
	if size == 0 || size > maxValue {
		return nil, &sig.ErrDocument{What: "Document", Text: fmt.Sprintf("a bare signature must have 1 to %d bytes; this one has %d", maxValue, size)}
	}
	value := make([]byte, size)
	if n, err := c.Document.ReadAt(value, 0); n < len(value) {
		if err == nil || err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		return nil, fmt.Errorf("document: reading the signature: %w", err)
	}

	out := sig.Signature{Signer: c.Certificate, Level: "raw", BestTime: c.At}
	s, err := sig.SuiteOf(c.Certificate)
	if err != nil {
		out.Findings = append(out.Findings, sig.Finding{Code: cms.CodeAlgorithm, Text: err.Error(), Indication: sig.IndicationOf(cms.CodeAlgorithm)})
		return &sig.Report{Signatures: []sig.Signature{out}}, nil
	}
	out.Scheme = s.Scheme()
	var d suite.Digest
	if c.Original != nil {
		size := c.Original.Size()
		ds, err := sig.DigestAll(ctx, io.NewSectionReader(c.Original, 0, size), size, s.Hash)
		if err != nil {
			return nil, err
		}
		d, out.Covers = ds[0], fmt.Sprintf("the document, %d bytes", size)
	} else {
		d, out.Covers = *c.Hash, "the document with the given hash value"
	}
	// Verify refuses a digest of another algorithm or length as well.
	if err := s.Verify(c.Certificate.PublicKey, d, value); err != nil {
		out.Findings = append(out.Findings, sig.Finding{Code: cms.CodeSignature, Text: "the signature value does not match this document and this certificate: " + err.Error(), Indication: sig.IndicationOf(cms.CodeSignature)})
	}
	path, found := c.Trust(ctx, c.Certificate, c.At, sig.Found{})
	out.Chain, out.Findings = path, append(out.Findings, found...)
	return &sig.Report{Signatures: []sig.Signature{out}}, nil
}

// question returns an *sig.ErrParams if the check lacks an input.
func question(c *sig.Check) error {
	var faults []sig.Fault
	if c.Certificate == nil {
		faults = append(faults, sig.Fault{Key: "Certificate", Text: "is required: a bare signature has no certificate inside"})
	}
	if c.Original == nil && c.Hash == nil {
		faults = append(faults, sig.Fault{Key: "OriginalDocument", Text: "is required, or its hash value: a bare signature has no document inside"})
	}
	if faults != nil {
		return &sig.ErrParams{Faults: faults}
	}
	return nil
}
