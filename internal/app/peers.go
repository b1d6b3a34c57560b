package app

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"time"

	"tamga/internal/domain/authority"
	"tamga/internal/files"
	"tamga/pki/x509gost"
)

// OperatorAuthorities reads the authorities of the configuration whose
// certificates of operators count.
func (h *Rooms) OperatorAuthorities() ([]*x509gost.Certificate, error) {
	file := h.Config.OperatorCertificates.AuthoritiesFile
	if file == "" {
		return nil, nil
	}
	data, err := os.ReadFile(h.Config.Path(file))
	if err != nil {
		return nil, fmt.Errorf("operator_certificates.authorities_file: %w", err)
	}
	list, err := x509gost.ParseCertificates(data)
	if err != nil {
		return nil, fmt.Errorf("operator_certificates.authorities_file: %w", err)
	}
	for _, c := range list {
		if !c.IsCA {
			return nil, fmt.Errorf("operator_certificates.authorities_file: %s is no authority's certificate", c.Subject)
		}
	}
	return list, nil
}

// peers opens the judge of operators' certificates.
func (h *Rooms) peers() (*authority.Peers, error) {
	list, err := h.OperatorAuthorities()
	if err != nil {
		return nil, err
	}
	p := &authority.Peers{Now: time.Now}
	for _, c := range list {
		if c.IsSelfIssued() {
			p.Roots = append(p.Roots, c)
		} else {
			p.Intermediates = append(p.Intermediates, c)
		}
	}
	if h.Config.OperatorCertificates.BuiltIn {
		p.Own = h.Authority
	}
	if named := h.Config.OperatorCertificates.RevocationFiles; len(named) > 0 {
		// Read at each judgement: what renews a list replaces its file, and it counts
		// from then on.
		p.Lists = func(context.Context) ([]*x509gost.RevocationList, error) {
			var lists []*x509gost.RevocationList
			for _, file := range named {
				l, err := files.RevocationLists(h.Config.Path(file))
				if err != nil {
					return nil, fmt.Errorf("operator_certificates.revocation_files: %w", err)
				}
				lists = append(lists, l...)
			}
			return lists, nil
		}
		// A file that is broken is found out now, not by the first operator.
		if _, err := p.Lists(context.Background()); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// clientTLS is the configuration of Go's own TLS: with client certificates it
// asks for one and takes none on trust, since a handshake proves the key alone and
// the certificate is judged at each request.
func (h *Rooms) clientTLS(ctx context.Context) (*tls.Config, error) {
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	if !h.Config.TLS.ClientCertificates {
		return c, nil
	}
	c.ClientAuth = tls.RequestClientCert
	list, err := h.OperatorAuthorities()
	if err != nil {
		return nil, err
	}
	if h.Config.OperatorCertificates.BuiltIn {
		for _, certificates := range []func(context.Context) ([]*x509gost.Certificate, error){h.Authority.Roots, h.Authority.Issuing} {
			own, err := certificates(ctx)
			if err != nil {
				return nil, err
			}
			list = append(list, own...)
		}
	}
	// A hint for clients that have several certificates.
	c.ClientCAs = x509.NewCertPool()
	for _, a := range list {
		if x, err := x509.ParseCertificate(a.Raw); err == nil {
			c.ClientCAs.AddCert(x)
		}
	}
	return c, nil
}
