// SPDX-License-Identifier: Apache-2.0

package keys

import (
	"context"
	"errors"
	"time"

	"tamga/internal/domain/fault"
	"tamga/pki/chain"
	"tamga/pki/x509gost"
)

// Receiving returns what checks certificates at a time before something is encrypted for them, which may be of
// anyone: a certificate must be valid then, and its authority must not have revoked it or put it on hold. The
// authorities of this installation are asked, the built-in ones and the outside ones that certify keys of its
// users. What another authority says of its certificates is not known here: the caller trusts them. Key usage is
// not checked, as in DecryptIn.
//
// Faults of the check: invalid_recipients; temporarily_unavailable if an outside authority does not answer.
func (s *Service) Receiving(ctx context.Context, at time.Time) (check func(cert *x509gost.Certificate) error, err error) {
	o := chain.Options{At: at}
	if o.CRLs, err = s.lists(ctx, nil); err != nil {
		return nil, err
	}
	if o.Roots, o.Intermediates, err = s.Authority.Trusted(ctx); err != nil {
		return nil, err
	}
	return func(cert *x509gost.Certificate) error { return s.receives(ctx, cert, o) }, nil
}

// receives checks a certificate by the lists and roots of the built-in authority.
func (s *Service) receives(ctx context.Context, cert *x509gost.Certificate, o chain.Options) error {
	const day = "2006-01-02 15:04:05 UTC"
	switch {
	case o.At.Before(cert.NotBefore):
		return fault.Newf(fault.InvalidRecipients, "the certificate is not valid before %s", cert.NotBefore.UTC().Format(day))
	case !o.At.Before(end(cert)):
		return fault.Newf(fault.InvalidRecipients, "the certificate expired on %s", cert.NotAfter.UTC().Format(day))
	}
	_, err := chain.Build(cert, o)
	if errors.Is(err, chain.ErrNoPath) && len(s.Enrolment.Authorities) > 0 {
		_, _, err = s.askOutside(ctx, &Certificate{X509: cert}, o.At)
		if fault.Is(err, fault.Unavailable) {
			return fault.New(fault.Unavailable, "the authority of the certificate does not answer whether it is revoked").With(err)
		}
		if _, refused := fault.As(err); err != nil && !refused {
			return err
		}
	}
	if errors.Is(err, chain.ErrRevoked) {
		return fault.New(fault.InvalidRecipients, "the certificate is revoked or on hold").With(err)
	}
	return nil
}
