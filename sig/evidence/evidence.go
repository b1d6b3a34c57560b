// SPDX-License-Identifier: Apache-2.0

package evidence

import (
	"context"
	"errors"
	"fmt"
	"time"

	"tamga/pki/ocsp"
	"tamga/pki/x509gost"
	"tamga/sig"
)

// Limits for the evidence of one certificate.
const (
	maxPath       = 10 // certificates from the subject to the root
	maxTried      = 16 // issuers of one name whose key is tried
	maxResponders = 4  // chained responders
)

// Rules say how old revocation data may be. The zero value has the strictest rules.
type Rules struct {
	// Allowance is how much older than the time asked for the data may be. 0 means that it
	// must not be older.
	Allowance time.Duration
	// OldListsForAuthorities accepts older data for the certificates of authorities, whose
	// lists are issued every few months.
	OldListsForAuthorities bool
}

// Collector fetches evidence for the signatures of one document, each piece once. It checks
// everything it gets, because the source is not trusted. It is not for several goroutines at once.
type Collector struct {
	source  sig.Evidence
	rules   Rules
	known   []*x509gost.Certificate // searched for issuers first
	issuers map[string]*x509gost.Certificate
	checked map[string]*Status
}

// New returns a collector. known are certificates that may be issuers, such as those in the
// document: they are searched before the source is asked.
func New(source sig.Evidence, known []*x509gost.Certificate, rules Rules) *Collector {
	return &Collector{source: source, rules: rules, known: known,
		issuers: map[string]*x509gost.Certificate{}, checked: map[string]*Status{}}
}

// Subject is a certificate whose path is collected.
type Subject struct {
	Certificate *x509gost.Certificate
	// Purpose is what the certificate is for. Values keeps it.
	Purpose Purpose
	// Others are certificates that came with it, such as those in a time stamp. They are
	// searched for issuers after those that the Collector knows.
	Others []*x509gost.Certificate
	// At is the time at which the certificates must have been good: that of the latest time
	// stamp. Revocation data must be of this time or later, as the Rules say.
	At time.Time
}

// Status is the parsed and checked evidence that one certificate was good. Exactly one of OCSP and
// CRL is set.
type Status struct {
	OCSP *ocsp.Basic
	CRL  *x509gost.RevocationList
	// ThisUpdate is the time that the evidence is about.
	ThisUpdate time.Time

	responder *x509gost.Certificate // signed OCSP for the issuer, nil if the issuer did
}

// Chain is a path with its evidence.
type Chain struct {
	// Path has the certificates from the subject, which is first, to the root.
	Path []*x509gost.Certificate
	// Statuses has one element for each certificate of Path, in its order. The last is nil: a
	// root has none.
	Statuses []*Status
}

// Collect adds to values the issuers of a subject and the revocation data of its path, with the
// responders of the answers and the data about them. The certificate of the subject itself is
// not added, because most signatures have a place of their own for it: call
// [Values.AddCertificate] if this one has not. After an error, values has a part of what is
// needed and must not be used. Errors: *sig.ErrEvidence, ctx.Err().
func (c *Collector) Collect(ctx context.Context, values *Values, s Subject) (*Chain, error) {
	path, err := c.path(ctx, s.Certificate, s.Others)
	if err != nil {
		return nil, err
	}
	statuses := make([]*Status, len(path))
	for i, cert := range path[:len(path)-1] {
		issuer := path[i+1]
		values.AddCertificate(issuer, s.Purpose)
		if statuses[i], err = c.prove(ctx, values, &s, cert, issuer, 0); err != nil {
			return nil, err
		}
	}
	return &Chain{path, statuses}, nil
}

// path returns the certificates from the leaf, which is first, to a self-issued one. more
// are additional certificates to search for issuers.
func (c *Collector) path(ctx context.Context, leaf *x509gost.Certificate, more []*x509gost.Certificate) ([]*x509gost.Certificate, error) {
	path := []*x509gost.Certificate{leaf}
	for {
		last := path[len(path)-1]
		if last.IsSelfIssued() {
			return path, nil
		}
		if len(path) == maxPath {
			return nil, &sig.ErrEvidence{What: "issuer", Text: fmt.Sprintf("the path from %s does not end within %d certificates", Name(leaf), maxPath)}
		}
		issuer, err := c.issuer(ctx, last, more)
		if err != nil {
			return nil, err
		}
		path = append(path, issuer)
	}
}

func (c *Collector) issuer(ctx context.Context, cert *x509gost.Certificate, more []*x509gost.Certificate) (*x509gost.Certificate, error) {
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
	issuer, err := c.source.Issuer(ctx, cert)
	if err != nil {
		return nil, err
	}
	if err := cert.CheckSignatureFrom(issuer); err != nil {
		return nil, &sig.ErrEvidence{What: "issuer", Text: "the certificate found did not issue " + Name(cert) + ": " + err.Error(), Err: err}
	}
	c.issuers[string(cert.Raw)] = issuer
	return issuer, nil
}

// prove adds the evidence about one certificate, and that about its responder.
func (c *Collector) prove(ctx context.Context, values *Values, s *Subject, cert, issuer *x509gost.Certificate, depth int) (*Status, error) {
	st, err := c.status(ctx, cert, issuer, s.At)
	if err != nil {
		return nil, err
	}
	if st.CRL != nil {
		values.add(&values.CRLs, st.CRL.Raw, s.Purpose)
		return st, nil
	}
	values.add(&values.OCSP, st.OCSP.Raw, s.Purpose)
	r := st.responder
	if r == nil {
		return st, nil
	}
	values.AddCertificate(r, s.Purpose)
	if ocsp.NoCheck(r) || r.Equal(cert) || depth == maxResponders {
		return st, nil
	}
	if _, err := c.prove(ctx, values, s, r, issuer, depth+1); err != nil {
		return nil, err
	}
	return st, nil
}

// status returns the evidence that cert of issuer was not revoked, not older than at minus the
// allowance.
func (c *Collector) status(ctx context.Context, cert, issuer *x509gost.Certificate, at time.Time) (*Status, error) {
	// Revocation data has whole seconds: data of the same second is not older.
	limit := at.Add(-c.rules.Allowance).Truncate(time.Second)
	if st := c.checked[string(cert.Raw)]; st != nil && !st.ThisUpdate.Before(limit) {
		return st, nil
	}
	st, err := c.fetch(ctx, cert, issuer, limit)
	var outage *sig.ErrEvidence
	if err != nil && errors.As(err, &outage) && c.rules.OldListsForAuthorities && cert.IsCA {
		st, err = c.fetch(ctx, cert, issuer, time.Time{})
	}
	if err != nil {
		return nil, err
	}
	c.checked[string(cert.Raw)] = st
	return st, nil
}

func (c *Collector) fetch(ctx context.Context, cert, issuer *x509gost.Certificate, limit time.Time) (*Status, error) {
	proof, err := c.source.Revocation(ctx, cert, issuer, limit)
	if err != nil {
		return nil, err
	}
	var st *Status
	switch {
	case proof.OCSP != nil:
		st, err = readAnswer(proof, cert, issuer)
	case proof.CRL != nil:
		st, err = readList(proof.CRL, cert, issuer)
	default:
		err = errors.New("neither an OCSP answer nor a revocation list was found")
	}
	if err != nil {
		return nil, &sig.ErrEvidence{What: "revocation", Text: "no usable data about " + Name(cert) + ": " + err.Error(), Err: err}
	}
	what, next := "the OCSP answer", time.Time{}
	if st.CRL != nil {
		what, next = "the revocation list", st.CRL.NextUpdate
	}
	// Authorities drop certificates that have ended (RFC 5280, 3.3): they are then on no list although they
	// were revoked. The extensions that promise otherwise, expiredCertsOnCRL and archiveCutoff, are not read.
	if st.ThisUpdate.After(cert.NotAfter) {
		return nil, &sig.ErrEvidence{What: "revocation", Text: fmt.Sprintf("%s about %s is of %s, after the certificate has ended (%s), and proves nothing: an authority may drop a revoked certificate when it ends",
			what, Name(cert), written(st.ThisUpdate), written(cert.NotAfter))}
	}
	if !st.ThisUpdate.Before(limit) {
		return st, nil
	}
	text := fmt.Sprintf("%s about %s is of %s, before the time stamp (%s), and proves nothing about that time", what, Name(cert), written(st.ThisUpdate), written(limit))
	if !next.IsZero() {
		text += "; the next one is due at " + written(next)
	}
	return nil, &sig.ErrEvidence{What: "revocation", Text: text}
}

// readAnswer checks an OCSP answer. Parsing it and checking its signature is left out if the source
// has done so, which the type of Answer shows. Everything else is checked for each signature.
func readAnswer(proof sig.Proof, cert, issuer *x509gost.Certificate) (*Status, error) {
	v := proof.Answer
	if v == nil || !v.Of(proof.OCSP, issuer) {
		b, err := ocsp.ParseBasic(proof.OCSP)
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
		return nil, fmt.Errorf("it was revoked at %s (reason %d)", written(s.RevokedAt), s.Reason)
	case s.Status != ocsp.Good:
		return nil, errors.New("the OCSP answer has the status unknown for it")
	case len(b.UnknownCritical)+len(s.UnknownCritical) > 0:
		return nil, errors.New("the OCSP answer has unknown critical extensions")
	}
	st := &Status{OCSP: b, ThisUpdate: s.ThisUpdate}
	if !responder.Equal(issuer) {
		if b.ProducedAt.Before(responder.NotBefore) || b.ProducedAt.After(responder.NotAfter) {
			return nil, errors.New("the certificate of the OCSP responder was not valid when it answered")
		}
		st.responder = responder
	}
	return st, nil
}

func readList(der []byte, cert, issuer *x509gost.Certificate) (*Status, error) {
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
		return nil, fmt.Errorf("it was revoked at %s (reason %d)", written(e.At), e.Reason)
	}
	return &Status{CRL: l, ThisUpdate: l.ThisUpdate}, nil
}

// Name names a certificate in a message: by its common name, or by its serial number.
func Name(c *x509gost.Certificate) string {
	if cn, ok := c.Subject.Get(x509gost.OIDCommonName); ok {
		return fmt.Sprintf("the certificate of %q", cn)
	}
	return fmt.Sprintf("the certificate %s", c.SerialHex())
}

// written returns a time as messages have it.
func written(t time.Time) string { return t.UTC().Format(time.RFC3339) }
