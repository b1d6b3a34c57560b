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

// Receives returns nil if something may be encrypted for a certificate at a time, which may be of anyone: it is
// valid then, and its authority did not revoke it or put it on hold. The authorities of this installation are
// asked, the built-in ones and the outside ones that certify keys of its users. What another authority says of
// its certificates is not known here: the caller trusts them. Key usage is not checked, as in DecryptIn.
//
// Faults: invalid_recipients; temporarily_unavailable if an outside authority does not answer.
func (s *Service) Receives(ctx context.Context, cert *x509gost.Certificate, at time.Time) error {
	const day = "2006-01-02 15:04:05 UTC"
	switch {
	case at.Before(cert.NotBefore):
		return fault.Newf(fault.InvalidRecipients, "the certificate is not valid before %s", cert.NotBefore.UTC().Format(day))
	case !at.Before(end(cert)):
		return fault.Newf(fault.InvalidRecipients, "the certificate expired on %s", cert.NotAfter.UTC().Format(day))
	}
	crls, err := s.lists(ctx, nil)
	if err != nil {
		return err
	}
	anchors, issuing, err := s.Authority.Trusted(ctx)
	if err != nil {
		return err
	}
	_, err = chain.Build(cert, chain.Options{Roots: anchors, Intermediates: issuing, CRLs: crls, At: at})
	if errors.Is(err, chain.ErrNoPath) && len(s.Enrolment.Authorities) > 0 {
		_, _, err = s.askOutside(ctx, &Certificate{X509: cert}, at)
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
