package keys

import (
	"context"
	"time"

	"tamga/internal/domain/fault"
	"tamga/pki/chain"
	"tamga/pki/ocsp"
	"tamga/pki/x509gost"
)

// Evidence tells what other authorities say about their certificates.
type Evidence interface {
	// Revocation returns what is in force now about cert of issuer: a
	// BasicOCSPResponse or a CertificateList, each as DER. A certificate that is
	// revoked is an error that wraps chain.ErrRevoked; any other error means that
	// nothing could be learnt.
	Revocation(ctx context.Context, cert, issuer *x509gost.Certificate) (answer, list []byte, err error)
}

// judgeOutside is Judge for a certificate of another authority. Nothing is remembered
// here: whoever fetches the evidence keeps it while it is good.
func (s *Service) judgeOutside(ctx context.Context, c *Certificate, at time.Time) (*chain.Verdict, error) {
	o := chain.Options{At: at}
	for _, a := range s.Enrolment.Authorities {
		o.Roots = append(o.Roots, a.Roots...)
		o.Intermediates = append(o.Intermediates, a.Intermediates...)
	}
	path, err := chain.Build(c.X509, o)
	if err != nil {
		return nil, translate(c, err)
	}
	for i, cert := range path.Chain[:len(path.Chain)-1] {
		if s.Evidence == nil {
			break
		}
		answer, list, err := s.Evidence.Revocation(ctx, cert, path.Chain[i+1])
		if err != nil {
			if refusal := translate(c, err); fault.Is(refusal, fault.InvalidCertificate) {
				return nil, refusal
			}
			if ctx.Err() != nil {
				return nil, err
			}
			return nil, fault.Newf(fault.Unavailable, "certificate %d cannot be used now: its authority does not tell whether it is revoked", c.ID).With(err)
		}
		if len(answer) > 0 {
			basic, err := ocsp.ParseBasic(answer)
			if err != nil {
				return nil, err
			}
			o.OCSP = append(o.OCSP, basic)
		}
		if len(list) > 0 {
			crl, err := x509gost.ParseRevocationList(list)
			if err != nil {
				return nil, err
			}
			o.CRLs = append(o.CRLs, crl)
		}
	}
	o.RequireRevocation = true
	verdict, err := chain.Build(c.X509, o)
	if err != nil {
		return nil, translate(c, err)
	}
	return verdict, nil
}
