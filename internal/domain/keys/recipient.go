// SPDX-License-Identifier: Apache-2.0

package keys

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"time"

	"tamga/internal/domain/fault"
	"tamga/pki/chain"
	"tamga/pki/x509gost"
)

// ErrNoRecipient is in the faults of certificates for which nothing is encrypted whatever the caller allows.
var ErrNoRecipient = errors.New("keys: no recipient")

// Receiving returns what checks certificates at a time before something is encrypted for them, which may be of
// anyone: a certificate must be valid then, and its authority must not have revoked it or put it on hold. The
// authorities of this installation are asked, the built-in ones and the outside ones that certify keys of its
// users. A certificate that names one of them must be signed by it: otherwise a changed certificate would look like
// one of a person here and have no revocation. What another authority says of its certificates is not known here:
// the caller trusts them. An authority is no recipient. Key usage is not checked, as in DecryptIn.
//
// Faults of the check: invalid_recipients, some with ErrNoRecipient; temporarily_unavailable if an outside authority does not answer.
func (s *Service) Receiving(ctx context.Context, at time.Time) (check func(cert *x509gost.Certificate) error, err error) {
	o := chain.Options{At: at}
	if o.CRLs, err = s.lists(ctx, nil); err != nil {
		return nil, err
	}
	if o.Roots, o.Intermediates, err = s.Authority.Trusted(ctx); err != nil {
		return nil, err
	}
	known := slices.Concat(o.Roots, o.Intermediates)
	for _, a := range s.Enrolment.Authorities {
		known = append(append(known, a.Roots...), a.Intermediates...)
	}
	return func(cert *x509gost.Certificate) error { return s.receives(ctx, cert, o, known) }, nil
}

// issued checks that a certificate which names a known authority as its issuer is signed by it.
func issued(cert *x509gost.Certificate, known []*x509gost.Certificate) error {
	// The names of authorities of other installations may be the same, so the caller may allow it.
	var why error
	for _, a := range known {
		if !bytes.Equal(a.Subject.Raw, cert.Issuer.Raw) {
			continue
		}
		err := cert.CheckSignatureFrom(a)
		if err == nil {
			return nil
		}
		why = err
	}
	if why == nil {
		return nil // another authority
	}
	return fault.New(fault.InvalidRecipients, "the certificate is not signed by the authority that it names").With(why)
}

// receives checks a certificate by the lists and roots of the built-in authority.
func (s *Service) receives(ctx context.Context, cert *x509gost.Certificate, o chain.Options, known []*x509gost.Certificate) error {
	const day = "2006-01-02 15:04:05 UTC"
	if err := issued(cert, known); err != nil {
		return err
	}
	switch {
	case cert.IsCA:
		return fault.New(fault.InvalidRecipients, "the certificate is one of an authority: want the certificate of a person").With(ErrNoRecipient)
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
