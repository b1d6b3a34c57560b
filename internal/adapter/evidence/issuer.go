// SPDX-License-Identifier: Apache-2.0

package evidence

import (
	"context"
	"errors"
	"fmt"
	"time"

	"tamga/pki/x509gost"
	"tamga/sig"
	"tamga/sig/budget"
)

// issuerLife is how long a downloaded certificate is kept.
const issuerLife = 24 * time.Hour

// maxIssuersTried limits how many certificates of one bundle are tried by their
// signature, because the server of the bundle chose them.
const maxIssuersTried = 16

type heldIssuer struct {
	issuer  *x509gost.Certificate
	fetched time.Time
}

// Issuer implements sig.Evidence. It searches the registered anchors and authorities,
// then the caIssuers addresses in the certificate. A downloaded certificate is recognised
// by its name and key and does not become trusted.
func (s *Source) Issuer(ctx context.Context, cert *x509gost.Certificate) (*x509gost.Certificate, error) {
	budget.Leave(ctx)
	if cert == nil {
		return nil, errors.New("evidence: issuer: want a certificate")
	}
	t, err := s.trust(ctx)
	if err != nil {
		return nil, err
	}
	for _, list := range [][]*x509gost.Certificate{t.roots, t.known} {
		for _, c := range list {
			if issued(c, cert) {
				return c, nil
			}
		}
	}
	if issued(cert, cert) {
		return nil, &sig.ErrEvidence{What: whatIssuer, Text: describe(cert) + " issued itself and is not registered here"}
	}
	if len(cert.IssuingURLs) == 0 {
		return nil, &sig.ErrEvidence{What: whatIssuer, Text: fmt.Sprintf("the issuer of %s, %.200q, is not registered here, and the certificate names no address of it", describe(cert), cert.Issuer)}
	}
	limited, cancel := context.WithTimeout(ctx, s.TotalTimeout)
	defer cancel()
	var failed []error
	for _, address := range cert.IssuingURLs[:min(len(cert.IssuingURLs), maxAddressesAsked)] {
		c, err := s.issuerAt(limited, address, cert)
		if err == nil {
			return c, nil
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		failed = append(failed, fmt.Errorf("%s: %w", address, err))
	}
	return nil, unavailable(whatIssuer, "the issuer of "+describe(cert)+" could not be fetched", failed)
}

func issued(issuer, cert *x509gost.Certificate) bool {
	return issuer.Subject.Equal(cert.Issuer) && cert.CheckSignatureFrom(issuer) == nil
}

// issuerAt returns the issuer from an address, or from the cache.
func (s *Source) issuerAt(ctx context.Context, address string, cert *x509gost.Certificate) (*x509gost.Certificate, error) {
	// One issuer is kept for all certificates that it issued. The name alone is not
	// enough, because two authorities may have the same name.
	key := "issuer" + fingerprint(cert.RawIssuer) + address
	if h, ok := s.answers.get(key).(*heldIssuer); ok && s.Now().Before(h.fetched.Add(issuerLife)) && issued(h.issuer, cert) {
		s.observe(Event{Kind: issuerKind.name, Outcome: "cached"})
		return h.issuer, nil
	}
	v, err := s.once(ctx, key+fingerprint(cert.Raw), 2*s.StatusTimeout+s.Pause, func(ctx context.Context) (any, error) {
		var found *x509gost.Certificate
		err := s.twice(ctx, address, func() (err error) {
			found, err = s.downloadIssuer(ctx, address, cert)
			return err
		})
		if err != nil {
			return nil, err
		}
		s.answers.put(key, &heldIssuer{found, s.Now()}, int64(len(found.Raw)*4))
		return found, nil
	})
	if err != nil {
		return nil, err
	}
	return v.(*x509gost.Certificate), nil
}

func (s *Source) downloadIssuer(ctx context.Context, address string, cert *x509gost.Certificate) (*x509gost.Certificate, error) {
	u, err := s.guard.Parse(address)
	if err != nil {
		return nil, err
	}
	data, err := s.fetch(ctx, order{kind: issuerKind, url: u, timeout: s.StatusTimeout})
	if err != nil {
		return nil, err
	}
	list, err := x509gost.ParseCertificates(data)
	if err != nil {
		return nil, err
	}
	tried := 0
	for _, c := range list {
		if !c.Subject.Equal(cert.Issuer) {
			continue
		}
		if tried++; tried > maxIssuersTried {
			break
		}
		if issued(c, cert) {
			// A copy, so that the bundle can be freed.
			return x509gost.ParseCertificate(append([]byte(nil), c.Raw...))
		}
	}
	return nil, errors.New("none of the certificates there signed this one")
}
