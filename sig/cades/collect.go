// SPDX-License-Identifier: Apache-2.0

package cades

import (
	"context"
	"errors"
	"fmt"
	"time"

	"tamga/pki/ocsp"
	"tamga/pki/x509gost"
	"tamga/sig"
)

// Limits for the collected evidence of one certificate.
const (
	maxPath       = 10 // certificates from the leaf to the root
	maxTried      = 16 // issuers of one name whose key is tried
	maxResponders = 4  // chained responders
)

// proof is the parsed and checked evidence that one certificate was not revoked.
type proof struct {
	ocsp       *ocsp.Basic
	crl        *x509gost.RevocationList
	thisUpdate time.Time
	responder  *x509gost.Certificate // the certificate that signed ocsp for the issuer, nil if the issuer signed it
}

// collector fetches the evidence for the signatures of one message, each piece once. It
// checks everything it gets, because the source is not trusted.
type collector struct {
	ctx      context.Context
	format   *Format
	evidence sig.Evidence
	known    []*x509gost.Certificate // searched for issuers first
	issuers  map[string]*x509gost.Certificate
	proofs   map[string]*proof
}

func newCollector(ctx context.Context, f *Format, e sig.Evidence, known []*x509gost.Certificate) *collector {
	return &collector{ctx: ctx, format: f, evidence: e, known: known,
		issuers: map[string]*x509gost.Certificate{}, proofs: map[string]*proof{}}
}

// path returns the certificates from the leaf, which is first, to a self-issued one. more
// are additional certificates to search for issuers.
func (c *collector) path(leaf *x509gost.Certificate, more []*x509gost.Certificate) ([]*x509gost.Certificate, error) {
	path := []*x509gost.Certificate{leaf}
	for {
		last := path[len(path)-1]
		if last.IsSelfIssued() {
			return path, nil
		}
		if len(path) == maxPath {
			return nil, &sig.ErrEvidence{What: "issuer", Text: fmt.Sprintf("the path from %s does not end within %d certificates", name(leaf), maxPath)}
		}
		issuer, err := c.issuer(last, more)
		if err != nil {
			return nil, err
		}
		path = append(path, issuer)
	}
}

func (c *collector) issuer(cert *x509gost.Certificate, more []*x509gost.Certificate) (*x509gost.Certificate, error) {
	if issuer := c.issuers[string(cert.Raw)]; issuer != nil {
		return issuer, nil
	}
	tried := 0
	for _, list := range [][]*x509gost.Certificate{c.known, more} {
		for _, x := range list {
			if tried < maxTried && x.Subject.Equal(cert.Issuer) {
				tried++
				if cert.CheckSignatureFrom(x) == nil {
					c.issuers[string(cert.Raw)] = x
					return x, nil
				}
			}
		}
	}
	issuer, err := c.evidence.Issuer(c.ctx, cert)
	if err != nil {
		return nil, err
	}
	if err := cert.CheckSignatureFrom(issuer); err != nil {
		return nil, &sig.ErrEvidence{What: "issuer", Text: "the certificate found did not issue " + name(cert) + ": " + err.Error(), Err: err}
	}
	c.issuers[string(cert.Raw)] = issuer
	return issuer, nil
}

// proof returns the evidence that cert of issuer was not revoked, not older than
// notBefore minus the allowance.
func (c *collector) proof(cert, issuer *x509gost.Certificate, notBefore time.Time) (*proof, error) {
	// Revocation data has whole seconds: data of the same second is not older.
	limit := notBefore.Add(-c.format.Allowance).Truncate(time.Second)
	if p := c.proofs[string(cert.Raw)]; p != nil && !p.thisUpdate.Before(limit) {
		return p, nil
	}
	p, err := c.fetch(cert, issuer, limit)
	var outage *sig.ErrEvidence
	if err != nil && errors.As(err, &outage) && c.format.OldListsForAuthorities && cert.IsCA {
		p, err = c.fetch(cert, issuer, time.Time{})
	}
	if err != nil {
		return nil, err
	}
	c.proofs[string(cert.Raw)] = p
	return p, nil
}

func (c *collector) fetch(cert, issuer *x509gost.Certificate, limit time.Time) (*proof, error) {
	raw, err := c.evidence.Revocation(c.ctx, cert, issuer, limit)
	if err != nil {
		return nil, err
	}
	var p *proof
	switch {
	case raw.OCSP != nil:
		p, err = readAnswer(raw, cert, issuer)
	case raw.CRL != nil:
		p, err = readList(raw.CRL, cert, issuer)
	default:
		err = errors.New("neither an OCSP answer nor a revocation list was found")
	}
	if err != nil {
		return nil, &sig.ErrEvidence{What: "revocation", Text: "no usable data about " + name(cert) + ": " + err.Error(), Err: err}
	}
	if !p.thisUpdate.Before(limit) {
		return p, nil
	}
	what, next := "the OCSP answer", time.Time{}
	if p.crl != nil {
		what, next = "the revocation list", p.crl.NextUpdate
	}
	text := fmt.Sprintf("%s about %s is of %s, before the time stamp (%s), and proves nothing about that time", what, name(cert), at(p.thisUpdate), at(limit))
	if !next.IsZero() {
		text += "; the next one is due at " + at(next)
	}
	return nil, &sig.ErrEvidence{What: "revocation", Text: text}
}

// readAnswer checks an OCSP answer. Parsing it and checking its signature is left out if the source
// has done so, which the type of Answer shows. Everything else is checked for each signature.
func readAnswer(raw sig.Proof, cert, issuer *x509gost.Certificate) (*proof, error) {
	v := raw.Answer
	if v == nil || !v.Of(raw.OCSP, issuer) {
		b, err := ocsp.ParseBasic(raw.OCSP)
		if err != nil {
			return nil, err
		}
		if v, err = b.Verify(issuer); err != nil {
			return nil, err
		}
	}
	b, responder := v.Basic(), v.Responder()
	s, ok := b.Find(cert, issuer)
	switch {
	case !ok:
		return nil, errors.New("the OCSP answer does not cover it")
	case s.Status == ocsp.Revoked:
		return nil, fmt.Errorf("it was revoked at %s (reason %d)", at(s.RevokedAt), s.Reason)
	case s.Status != ocsp.Good:
		return nil, errors.New("the OCSP answer has the status unknown for it")
	case len(b.UnknownCritical)+len(s.UnknownCritical) > 0:
		return nil, errors.New("the OCSP answer has unknown critical extensions")
	}
	p := &proof{ocsp: b, thisUpdate: s.ThisUpdate}
	if !responder.Equal(issuer) {
		if b.ProducedAt.Before(responder.NotBefore) || b.ProducedAt.After(responder.NotAfter) {
			return nil, errors.New("the certificate of the OCSP responder was not valid when it answered")
		}
		p.responder = responder
	}
	return p, nil
}

func readList(der []byte, cert, issuer *x509gost.Certificate) (*proof, error) {
	l, err := x509gost.ParseRevocationList(der)
	if err != nil {
		return nil, err
	}
	switch {
	case !l.Issuer.Equal(cert.Issuer):
		return nil, errors.New("the revocation list is of another issuer")
	case len(l.UnknownCritical) > 0 || !l.Scope.Covers(cert):
		return nil, errors.New("the revocation list does not cover it, or is incomplete or has unknown critical extensions")
	}
	if err := l.CheckSignatureFrom(issuer); err != nil {
		return nil, err
	}
	if e, ok := l.Find(cert.SerialNumber); ok {
		return nil, fmt.Errorf("it was revoked at %s (reason %d)", at(e.At), e.Reason)
	}
	return &proof{crl: l, thisUpdate: l.ThisUpdate}, nil
}

// bag is the content of certificate-values and revocation-values of one signature, each
// piece once.
type bag struct {
	certs, crls, answers [][]byte
	seen                 map[string]bool
}

// put appends raw to one of the lists of the bag.
func (b *bag) put(list *[][]byte, raw []byte) {
	if !b.seen[string(raw)] {
		b.seen[string(raw)] = true
		*list = append(*list, raw)
	}
}

// fill puts the certificates of a path except the leaf, and the proofs for all of them
// except the root, into the bag. It returns a proof for each certificate of the path, nil
// for the root.
func (c *collector) fill(b *bag, path []*x509gost.Certificate, notBefore time.Time) ([]*proof, error) {
	proofs := make([]*proof, len(path))
	for i, cert := range path[:len(path)-1] {
		b.put(&b.certs, path[i+1].Raw)
		p, err := c.prove(b, cert, path[i+1], notBefore, 0)
		if err != nil {
			return nil, err
		}
		proofs[i] = p
	}
	return proofs, nil
}

// prove puts the proof for one certificate into the bag, and the proof for its responder.
func (c *collector) prove(b *bag, cert, issuer *x509gost.Certificate, notBefore time.Time, depth int) (*proof, error) {
	p, err := c.proof(cert, issuer, notBefore)
	if err != nil {
		return nil, err
	}
	if p.crl != nil {
		b.put(&b.crls, p.crl.Raw)
		return p, nil
	}
	b.put(&b.answers, p.ocsp.Raw)
	r := p.responder
	if r == nil {
		return p, nil
	}
	b.put(&b.certs, r.Raw)
	if ocsp.NoCheck(r) || r.Equal(cert) || depth == maxResponders {
		return p, nil
	}
	if _, err := c.prove(b, r, issuer, notBefore, depth+1); err != nil {
		return nil, err
	}
	return p, nil
}

// name names a certificate in messages.
func name(c *x509gost.Certificate) string {
	if cn, ok := c.Subject.Get(x509gost.OIDCommonName); ok {
		return fmt.Sprintf("the certificate of %q", cn)
	}
	return fmt.Sprintf("the certificate %s", c.SerialHex())
}

func at(t time.Time) string { return t.UTC().Format(time.RFC3339) }
