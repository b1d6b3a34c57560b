// SPDX-License-Identifier: Apache-2.0

package signing

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"slices"
	"time"

	"tamga/internal/domain/fault"
	"tamga/pki/x509gost"
)

// Container returns the certificates of a PKCS #7 container (a SignedData message, DER or
// BER), in any order.
type Container func(message []byte) ([]*x509gost.Certificate, error)

// maxCertificates bounds the certificates that a client may send to find its own among
// them.
const maxCertificates = 32

// readCertificate reads the certificate of a client that holds its own key: DER, PEM (of
// one or more certificates, or of a PKCS #7), or a PKCS #7 container. Among several, the
// signer's is the only one that issued none of the others. The issuers on its path are
// returned too. The fault is invalid_certificate.
func (s *Service) readCertificate(raw []byte, at time.Time) (*x509gost.Certificate, []*x509gost.Certificate, error) {
	const want = "RawCertificate: want an X.509 certificate in DER or PEM, or a PKCS #7 container that holds it, as Base64"
	if len(bytes.TrimSpace(raw)) == 0 {
		return nil, nil, fault.New(fault.InvalidCertificate, "RawCertificate is missing or empty: send the signing certificate as Base64")
	}
	found, err := s.unpack(raw)
	if err != nil {
		return nil, nil, fault.New(fault.InvalidCertificate, want).With(err)
	}
	if len(found) == 0 {
		return nil, nil, fault.New(fault.InvalidCertificate, "RawCertificate holds no certificate")
	}
	cert, err := leaf(found)
	if err != nil {
		return nil, nil, err
	}
	const day = "2006-01-02 15:04:05 UTC"
	switch {
	case cert.Suite == nil:
		return nil, nil, fault.New(fault.InvalidCertificate, "RawCertificate: the type of its key is not supported").With(cert.KeyError)
	case cert.HasKeyUsage && cert.KeyUsage&(x509.KeyUsageDigitalSignature|x509.KeyUsageContentCommitment) == 0:
		return nil, nil, fault.New(fault.InvalidCertificate, "RawCertificate must not be used for signatures: its keyUsage has neither digitalSignature nor nonRepudiation")
	case at.Before(cert.NotBefore):
		return nil, nil, fault.Newf(fault.InvalidCertificate, "RawCertificate is not valid before %s", cert.NotBefore.UTC().Format(day))
	case at.After(cert.NotAfter):
		return nil, nil, fault.Newf(fault.InvalidCertificate, "RawCertificate expired on %s", cert.NotAfter.UTC().Format(day))
	}
	return cert, issuers(cert, found), nil
}

// unpack reads every form of a certificate.
func (s *Service) unpack(raw []byte) ([]*x509gost.Certificate, error) {
	if block, rest := pem.Decode(raw); block != nil {
		var found []*x509gost.Certificate
		for ; block != nil && len(found) <= maxCertificates; block, rest = pem.Decode(rest) {
			more, err := s.unpackDER(block.Bytes)
			if err != nil {
				return nil, err
			}
			found = append(found, more...)
		}
		return found, nil
	}
	return s.unpackDER(raw)
}

func (s *Service) unpackDER(der []byte) ([]*x509gost.Certificate, error) {
	cert, err := x509gost.ParseShared(der)
	if err == nil {
		return []*x509gost.Certificate{cert}, nil
	}
	if s.Container != nil {
		if found, other := s.Container(der); other == nil {
			return found, nil
		}
	}
	return nil, err // the error of reading it as a certificate says most
}

// leaf returns the only certificate that issued none of the others. An authority is
// returned only if there is nothing else, because the certificate that it issued may be
// missing.
func leaf(found []*x509gost.Certificate) (*x509gost.Certificate, error) {
	if len(found) > maxCertificates {
		return nil, fault.Newf(fault.InvalidCertificate, "RawCertificate holds more than %d certificates: send the signing certificate", maxCertificates)
	}
	var leaves, authorities []*x509gost.Certificate
	for i, c := range found {
		last := !slices.ContainsFunc(found, func(o *x509gost.Certificate) bool {
			return !o.Equal(c) && bytes.Equal(o.RawIssuer, c.RawSubject)
		})
		again := slices.ContainsFunc(found[:i], c.Equal)
		switch {
		case !last || again:
		case c.IsCA:
			authorities = append(authorities, c)
		default:
			leaves = append(leaves, c)
		}
	}
	if len(leaves) == 0 {
		leaves = authorities
	}
	if len(leaves) != 1 {
		return nil, fault.Newf(fault.InvalidCertificate, "RawCertificate holds %d certificates that may be the signing certificate: send only that one", len(leaves))
	}
	return leaves[0], nil
}

// issuers follows the issuer names from a certificate upwards through found. It verifies
// nothing: the issuers are only added to the signed document.
func issuers(cert *x509gost.Certificate, found []*x509gost.Certificate) []*x509gost.Certificate {
	var chain []*x509gost.Certificate
	for len(chain) < len(found) && !cert.IsSelfIssued() {
		var next *x509gost.Certificate
		for _, c := range found {
			if c.Subject.Equal(cert.Issuer) && !c.Equal(cert) {
				next = c
				break
			}
		}
		if next == nil {
			break
		}
		chain, cert = append(chain, next), next
	}
	return chain
}
