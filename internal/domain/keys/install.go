// SPDX-License-Identifier: Apache-2.0

package keys

import (
	"bytes"
	"context"
	"crypto"
	"encoding/base64"
	"errors"
	"strconv"

	"tamga/internal/domain/audit"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/policy"
	"tamga/pki/chain"
	"tamga/pki/x509gost"
)

// Install stores the certificate that an outside authority issued for a pending request
// of the user. The input is DER, BER, PEM, their Base64, or a PKCS #7 container, whose
// other certificates are ignored. The certificate must be for the key of the request, be
// valid now and have a path to a root of the request's authority. Faults:
// invalid_certificate_format, invalid_certificate, request_not_found, access_denied,
// wrong_operation.
func (s *Service) Install(ctx context.Context, a Act, data []byte) (*Certificate, error) {
	if err := s.guard(ctx, a, policy.CreateRequest); err != nil {
		return nil, err
	}
	certificates, err := installed(data)
	if err != nil {
		return nil, err
	}
	var c *Certificate
	err = s.change(ctx, a, a.Who.UserID, func(ctx context.Context) (any, error) {
		q, cert, err := s.awaited(ctx, a.Who, certificates)
		if err != nil {
			return nil, err
		}
		if err := s.accept(ctx, q, cert, true, a.Who.UserID); err != nil {
			return nil, fault.Rollback(err)
		}
		c, err = s.Find(ctx, a.Who.UserID, strconv.FormatInt(q.CertificateID, 10))
		return c, fault.Rollback(err)
	})
	if err != nil {
		return nil, err
	}
	return c, nil
}

// installed reads what a client installs.
func installed(data []byte) ([]*x509gost.Certificate, error) {
	list, err := readCertificates(data)
	if err != nil {
		return nil, fault.New(fault.CertificateFormat, "certificate: want an X.509 certificate as DER, BER or PEM").With(err)
	}
	return list, nil
}

// awaited returns the pending request that one of the certificates answers, with that
// certificate.
func (s *Service) awaited(ctx context.Context, who audit.Principal, certificates []*x509gost.Certificate) (*Request, *x509gost.Certificate, error) {
	requests, err := s.Requests(ctx, who)
	if err != nil {
		return nil, nil, err
	}
	waiting := false
	for _, q := range requests {
		if q.Status != Pending || q.Type != ForCertificate || q.Authority == BuiltIn {
			continue
		}
		waiting = true
		for _, cert := range certificates {
			if bytes.Equal(cert.RawSPKI, q.Parsed.RawSPKI) || sameKey(cert, q.Parsed) {
				return q, cert, s.trusted(cert, q.Authority)
			}
		}
	}
	if !waiting {
		return nil, nil, fault.New(fault.RequestNotFound, "you have no request that waits for a certificate of another authority")
	}
	return nil, nil, fault.New(fault.InvalidCertificate, "the certificate is for another key than that of your request")
}

// sameKey compares public keys, which authorities encode in several ways.
func sameKey(cert *x509gost.Certificate, r *x509gost.Request) bool {
	k, ok := cert.PublicKey.(interface{ Equal(x crypto.PublicKey) bool })
	return ok && cert.Suite == r.Suite && k.Equal(r.PublicKey)
}

// trusted refuses a certificate that the authority did not issue.
func (s *Service) trusted(cert *x509gost.Certificate, id int64) error {
	target, err := s.Enrolment.authority(id)
	if err != nil {
		return err
	}
	_, err = chain.Build(cert, chain.Options{Roots: target.Roots, Intermediates: target.Intermediates, At: s.Now()})
	var refusal *chain.Error
	if errors.As(err, &refusal) {
		return fault.Newf(fault.InvalidCertificate, "the certificate is not a valid certificate of %s", target.Name).With(err)
	}
	return err
}

// readCertificates reads all the forms that Install accepts.
func readCertificates(data []byte) ([]*x509gost.Certificate, error) {
	list, err := x509gost.ParseCertificates(data)
	if err == nil {
		return list, nil
	}
	if inner, decodeErr := base64.StdEncoding.DecodeString(string(bytes.Join(bytes.Fields(data), nil))); decodeErr == nil {
		if list, err := x509gost.ParseCertificates(inner); err == nil { // of PEM
			return list, nil
		}
		data = inner
	}
	der, berErr := x509gost.FromBER(data, x509gost.MaxBundle)
	if berErr != nil {
		return nil, err
	}
	return x509gost.ParseCertificates(der)
}
