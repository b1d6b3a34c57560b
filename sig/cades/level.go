// SPDX-License-Identifier: Apache-2.0

package cades

import (
	"context"
	"fmt"
	"slices"
	"time"

	"tamga/pki/cms"
	"tamga/pki/suite"
	"tamga/pki/tsp"
	"tamga/pki/x509gost"
	"tamga/sig"
)

// target is one signature that is being enhanced. Attributes are appended to those it
// has.
type target struct {
	value  []byte          // of the signature
	has    []cms.Attribute // unsigned attributes it has
	info   *cms.SignerInfo // nil for a new signature
	signer *x509gost.Certificate
	hash   *suite.Hash // of the signer's suite, for imprints and references
	// carried are the certificates of the message, which are not added a second time.
	carried [][]byte

	attrs   []cms.Attribute // to append
	stamped time.Time       // time of the earliest signature time stamp
	stamps  []*tsp.Verified // all of its signature, then that of its references
}

// lifted returns the unsigned attributes of a new signature at the level of the state.
func (f *Format) lifted(ctx context.Context, job *sig.Job, st *state, s *cms.Signer, m *cms.Message) ([]cms.Attribute, error) {
	level, _ := levelOf(st.Level) // parseState has checked it
	if level == sig.LevelBasic {
		return nil, nil
	}
	// Callers verify a value before Finish. It is verified again here because this is the boundary to
	// the outside: a time stamp cannot be taken back, and a program that keeps its key elsewhere may
	// bring the wrong value.
	if err := s.Suite.Verify(job.Certificate.PublicKey, s.Suite.Hash.Digest(st.Attributes), s.Signature); err != nil {
		return nil, fmt.Errorf("signature value: %w", err)
	}
	if job.Evidence == nil {
		return nil, &sig.ErrEvidence{What: "time stamp", Text: "no time-stamp service is configured"}
	}
	t := &target{value: s.Signature, signer: job.Certificate, hash: s.Suite.Hash, carried: certificates(job, st.Chain)}
	known := append([]*x509gost.Certificate{job.Certificate}, job.Chain...)
	if m != nil {
		t.carried = append(t.carried, m.Certificates...)
		inside, _ := m.X509() // unreadable ones are ignored
		known = append(known, inside...)
	}
	c := newCollector(ctx, f, job.Evidence, known)
	if err := c.raise([]*target{t}, level, st.Address); err != nil {
		return nil, err
	}
	return t.attrs, nil
}

// raise appends the attributes that are missing for the level. All signatures are stamped
// before evidence for their certificates is fetched, so that one answer serves all.
func (c *collector) raise(targets []*target, level sig.Level, address string) error {
	for _, t := range targets {
		if len(t.stamps) > 0 {
			continue
		}
		a, s, err := c.stamp(address, cms.OIDSignatureTimeStamp, t.hash, t.value)
		if err != nil {
			return err
		}
		t.attrs, t.stamps, t.stamped = append(t.attrs, a), []*tsp.Verified{s}, s.Token().Info.Time
	}
	if level == sig.LevelTime {
		return nil
	}
	var latest time.Time // data must not be older than the latest stamp
	for _, t := range targets {
		if t.stamped.After(latest) {
			latest = t.stamped
		}
	}
	for _, t := range targets {
		if err := c.complete(t, address, latest); err != nil {
			return err
		}
	}
	return nil
}

// stamp requests a time stamp over data and returns it as an attribute.
func (c *collector) stamp(address string, oid x509gost.OID, h *suite.Hash, data []byte) (a cms.Attribute, s *tsp.Verified, err error) {
	if err := c.ctx.Err(); err != nil {
		return a, nil, err
	}
	if s, err = sig.Stamp(c.ctx, c.evidence, address, h.Digest(data)); err != nil {
		return a, nil, err
	}
	return cms.NewAttribute(oid, s.Token().Raw), s, nil
}

// complete appends references, their time stamp, and values. Nothing that the time stamp
// covers changes afterwards. The values are not covered.
func (c *collector) complete(t *target, address string, notBefore time.Time) error {
	path, err := c.path(t.signer, nil)
	if err != nil {
		return err
	}
	b := &bag{seen: map[string]bool{}}
	proofs, err := c.fill(b, path, notBefore)
	if err != nil {
		return err
	}
	certRefs, revRefs := certificateRefs(path, t.hash), revocationRefs(proofs, t.hash)
	covered := escCovers(t.value, slices.Concat(t.has, t.attrs, []cms.Attribute{certRefs, revRefs}))
	esc, s, err := c.stamp(address, cms.OIDEscTimeStamp, t.hash, covered)
	if err != nil {
		return err
	}
	t.stamps = append(t.stamps, s)
	if !slices.ContainsFunc(t.carried, func(raw []byte) bool { return string(raw) == string(t.signer.Raw) }) {
		b.put(&b.certs, t.signer.Raw)
	}
	for _, s := range t.stamps {
		path, err := c.path(s.Authority(), s.Token().Certificates())
		if err != nil {
			return err
		}
		b.put(&b.certs, s.Authority().Raw)
		if _, err := c.fill(b, path, notBefore); err != nil {
			return err
		}
	}
	t.attrs = append(t.attrs, certRefs, revRefs, esc, certificateValues(b.certs), revocationValues(b.crls, b.answers))
	return nil
}

// escCovers returns the bytes that a CAdES-C time stamp covers (RFC 5126, 6.3.5): the
// signature value, then the attributes with the time stamps of the signature, the
// certificate references and the revocation references, each without its header.
func escCovers(value []byte, attrs []cms.Attribute) []byte {
	out := slices.Clone(value)
	for _, oid := range []x509gost.OID{cms.OIDSignatureTimeStamp, cms.OIDCertificateRefs, cms.OIDRevocationRefs} {
		for _, a := range attrs {
			if a.OID.Equal(oid) {
				out = append(out, a.Contents()...)
			}
		}
	}
	return out
}
