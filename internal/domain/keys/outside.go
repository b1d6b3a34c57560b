// SPDX-License-Identifier: Apache-2.0

package keys

import (
	"context"
	"errors"
	"time"

	"tamga/internal/domain/fault"
	"tamga/pki/chain"
	"tamga/pki/ocsp"
	"tamga/pki/x509gost"
)

// Evidence fetches the revocation status of certificates of outside authorities.
type Evidence interface {
	// Revocation returns the current evidence about cert of issuer: a BasicOCSPResponse
	// or a CertificateList, each as DER. For a revoked certificate the error wraps
	// chain.ErrRevoked and the evidence is returned too. Any other error means that the
	// status is unknown.
	Revocation(ctx context.Context, cert, issuer *x509gost.Certificate) (answer, list []byte, err error)
}

// judgeOutside is Judge for a certificate of an outside authority. It caches nothing:
// Evidence caches what it fetches.
func (s *Service) judgeOutside(ctx context.Context, c *Certificate, at time.Time) (*chain.Result, error) {
	result, learnt, err := s.askOutside(ctx, c, at)
	if e := s.notice(ctx, c, learnt); e != nil && err == nil {
		return nil, e
	}
	return result, err
}

// askOutside checks a certificate of an outside authority and returns what was learned
// about its revocation, nil for nothing.
func (s *Service) askOutside(ctx context.Context, c *Certificate, at time.Time) (result *chain.Result, learnt *OutsideStatus, err error) {
	o := chain.Options{At: at}
	for _, a := range s.Enrolment.Authorities {
		o.Roots = append(o.Roots, a.Roots...)
		o.Intermediates = append(o.Intermediates, a.Intermediates...)
	}
	path, err := chain.Build(c.X509, o)
	if err != nil {
		return nil, nil, translate(c, err)
	}
	var answers, lists [][]byte
	for i, cert := range path.Chain[:len(path.Chain)-1] {
		if s.Evidence == nil {
			break
		}
		answer, list, err := s.Evidence.Revocation(ctx, cert, path.Chain[i+1])
		if err != nil {
			if i == 0 && errors.Is(err, chain.ErrRevoked) {
				learnt = revokedBy(cert, path.Chain[1], answer, list, s.Now())
			}
			if refusal := translate(c, err); fault.Is(refusal, fault.InvalidCertificate) {
				return nil, learnt, refusal
			}
			if ctx.Err() != nil {
				return nil, nil, err
			}
			return nil, nil, fault.Newf(fault.Unavailable, "certificate %d cannot be used now: its authority does not answer whether it is revoked", c.ID).With(err)
		}
		answers, lists = append(answers, answer), append(lists, list)
		if len(answer) > 0 {
			basic, err := ocsp.ParseBasic(answer)
			if err != nil {
				return nil, nil, err
			}
			o.OCSP = append(o.OCSP, basic)
		}
		if len(list) > 0 {
			crl, err := x509gost.ParseRevocationList(list)
			if err != nil {
				return nil, nil, err
			}
			o.CRLs = append(o.CRLs, crl)
		}
	}
	o.RequireRevocation = true
	result, err = chain.Build(c.X509, o)
	switch {
	case err == nil && len(answers) > 0:
		learnt = &OutsideStatus{}
	case isRevoked(c.X509, err):
		learnt = revokedBy(c.X509, path.Chain[1], answers[0], lists[0], s.Now())
	}
	if err != nil {
		return nil, learnt, translate(c, err)
	}
	return result, learnt, nil
}
