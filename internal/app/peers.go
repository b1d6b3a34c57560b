// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"

	"tamga/internal/domain/authority"
	"tamga/internal/files"
	"tamga/pki/x509gost"
)

// OperatorAuthorities reads the authorities of operator_certificates.authorities_file. Operators may
// sign in with certificates that these authorities issued.
func (s *Services) OperatorAuthorities() ([]*x509gost.Certificate, error) {
	file := s.Config.OperatorCertificates.AuthoritiesFile
	if file == "" {
		return nil, nil
	}
	data, err := os.ReadFile(s.Config.Path(file))
	if err != nil {
		return nil, fmt.Errorf("operator_certificates.authorities_file: %w", err)
	}
	list, err := x509gost.ParseCertificates(data)
	if err != nil {
		return nil, fmt.Errorf("operator_certificates.authorities_file: %w", err)
	}
	for _, c := range list {
		if !c.IsCA {
			return nil, fmt.Errorf("operator_certificates.authorities_file: %s is not the certificate of an authority (basicConstraints CA)", c.Subject)
		}
	}
	return list, nil
}

// peers returns what checks the certificates of operators.
func (s *Services) peers() (*authority.Peers, error) {
	list, err := s.OperatorAuthorities()
	if err != nil {
		return nil, err
	}
	p := &authority.Peers{Now: s.DB.Now}
	for _, c := range list {
		if c.IsSelfIssued() {
			p.Roots = append(p.Roots, c)
		} else {
			p.Intermediates = append(p.Intermediates, c)
		}
	}
	if s.Config.OperatorCertificates.BuiltIn {
		p.Own = s.Authority
	}
	if named := s.Config.OperatorCertificates.RevocationFiles; len(named) > 0 {
		// Read at each check: a replaced file takes effect at once.
		p.Lists = func(context.Context) ([]*x509gost.RevocationList, error) {
			var lists []*x509gost.RevocationList
			for _, file := range named {
				l, err := files.RevocationLists(s.Config.Path(file))
				if err != nil {
					return nil, fmt.Errorf("operator_certificates.revocation_files: %w", err)
				}
				lists = append(lists, l...)
			}
			return lists, nil
		}
		// An invalid file fails the start, not the first sign-in.
		if _, err := p.Lists(context.Background()); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// clientTLS returns the configuration of Go's own TLS. With client certificates it requests one and
// does not verify it: the handshake proves possession of the key, and each request checks the
// certificate.
func (s *Services) clientTLS(ctx context.Context) (*tls.Config, error) {
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	if !s.Config.TLS.ClientCertificates {
		return c, nil
	}
	c.ClientAuth = tls.RequestClientCert
	list, err := s.OperatorAuthorities()
	if err != nil {
		return nil, err
	}
	if s.Config.OperatorCertificates.BuiltIn {
		for _, certificates := range []func(context.Context) ([]*x509gost.Certificate, error){s.Authority.Roots, s.Authority.Issuing} {
			own, err := certificates(ctx)
			if err != nil {
				return nil, err
			}
			list = append(list, own...)
		}
	}
	// A hint for clients that have several certificates. crypto/x509 cannot parse all of them.
	c.ClientCAs = x509.NewCertPool()
	for _, a := range list {
		if x, err := x509.ParseCertificate(a.Raw); err == nil {
			c.ClientCAs.AddCert(x)
		}
	}
	return c, nil
}
