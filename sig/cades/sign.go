package cades

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"

	"tamga/pki/cms"
	"tamga/pki/suite"
	"tamga/pki/x509gost"
	"tamga/sig"
)

// stateVersion is the form of state below. Finish knows every version that was
// ever written.
const stateVersion = 1

// state is all that Finish needs beside the job's document and certificates.
type state struct {
	Version     int    `json:"v"`
	Attributes  []byte `json:"attributes"`  // signed attributes as they were digested, tag 0x31
	Digest      []byte `json:"digest"`      // of the document, by the suite's hash
	Hash        bool   `json:"hash"`        // the document of the job is that digest itself
	Size        int64  `json:"size"`        // octets of the job's document
	Detached    bool   `json:"detached"`    // the message is without the document
	Chain       bool   `json:"chain"`       // issuers' certificates are included
	Certificate []byte `json:"certificate"` // SHA-256 of the signer's certificate
}

// Prepare implements sig.Format. It reads the parameters Hash, IsDetached,
// CADESType, CmsSignatureType, HashAlgorithm, TSPAddress, IncludeCertChain and
// AuthenticatedAttributes.
func (*Format) Prepare(ctx context.Context, job *sig.Job) (*sig.Prepared, error) {
	s, err := sig.SuiteOf(job.Certificate)
	if err != nil {
		return nil, err
	}
	r := job.Params.Reader()
	p := read(job, r, s)
	var d suite.Digest
	if p.hash && p.kind == "Sign" {
		if d, err = sig.HashValue(job, r, s); err != nil {
			return nil, err
		}
	}
	if err := r.Err(); err != nil {
		return nil, err
	}
	if !p.hash {
		if d, err = sig.DigestOf(ctx, job, s.Hash); err != nil {
			return nil, err
		}
	}
	claimed, err := cms.SigningTime(job.Time)
	if err != nil {
		return nil, err
	}
	attrs := cms.BuildSignedAttributes(
		cms.ContentType(cms.OIDData),
		cms.MessageDigest(d),
		claimed,
		cms.SigningCertificateV2(job.Certificate, s.Hash),
	)
	thumbprint := sha256.Sum256(job.Certificate.Raw)
	st, err := json.Marshal(state{
		Version:     stateVersion,
		Attributes:  attrs,
		Digest:      d.Sum,
		Hash:        p.hash,
		Size:        job.Document.Size(),
		Detached:    p.detached,
		Chain:       p.chain,
		Certificate: thumbprint[:],
	})
	if err != nil {
		return nil, err
	}
	return &sig.Prepared{Digest: s.Hash.Digest(attrs), State: st}, nil
}

// Finish implements sig.Format. The parameters are not read again: what they
// said is in the state. A detached message can be finished without the document.
func (*Format) Finish(_ context.Context, job *sig.Job, prepared, signature []byte) (sig.Result, error) {
	s, err := sig.SuiteOf(job.Certificate)
	if err != nil {
		return nil, err
	}
	st, err := readState(job, s, prepared)
	if err != nil {
		return nil, err
	}
	value, err := s.RawValue(signature) // CMS carries the same octets
	if err != nil {
		return nil, err
	}
	size := st.Size
	if st.Detached {
		size = -1
	}
	head, tail, err := cms.Encode(cms.OIDData, size, certificates(job, st.Chain), nil, []cms.Signer{{
		Certificate: job.Certificate,
		Suite:       s,
		SignedAttrs: st.Attributes,
		Signature:   value,
	}})
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
	var st state
	if err := json.Unmarshal(prepared, &st); err != nil {
		return nil, &sig.ErrState{Text: "cannot be read"}
	}
	if st.Version != stateVersion {
		return nil, &sig.ErrState{Text: fmt.Sprintf("version %d of a signed message is not known; %d expected", st.Version, stateVersion)}
	}
	thumbprint := sha256.Sum256(job.Certificate.Raw)
	if !bytes.Equal(st.Certificate, thumbprint[:]) {
		return nil, &sig.ErrState{Text: "made for another certificate"}
	}
	if len(st.Attributes) == 0 || len(st.Digest) != s.Hash.Size || st.Size < 0 || st.Hash && !st.Detached {
		return nil, &sig.ErrState{Text: "damaged"}
	}
	if job.Document == nil {
		if st.Detached {
			return &st, nil
		}
		return nil, &sig.ErrState{Text: "the document is needed to attach it"}
	}
	if n := job.Document.Size(); n != st.Size {
		return nil, &sig.ErrState{Text: fmt.Sprintf("made for a document of %d octets, not %d", st.Size, n)}
	}
	if st.Hash {
		value := make([]byte, len(st.Digest))
		if n, _ := job.Document.ReadAt(value, 0); n < len(value) || !bytes.Equal(value, st.Digest) {
			return nil, &sig.ErrState{Text: "made for another hash value"}
		}
	} else {
		for _, d := range job.Digests {
			if d.Hash == s.Hash && !bytes.Equal(d.Sum, st.Digest) {
				return nil, &sig.ErrState{Text: "made for a document with another hash value"}
			}
		}
	}
	return &st, nil
}

// certificates are those the message carries: the signer's, and with chain its
// issuers' up to the root, which is left out.
func certificates(job *sig.Job, chain bool) [][]byte {
	certs := [][]byte{job.Certificate.Raw}
	if !chain {
		return certs
	}
	for _, c := range job.Chain {
		if !selfIssued(c) && !c.Equal(job.Certificate) {
			certs = append(certs, c.Raw)
		}
	}
	return certs
}

func selfIssued(c *x509gost.Certificate) bool { return bytes.Equal(c.RawIssuer, c.RawSubject) }
