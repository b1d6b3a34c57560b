package sig

import (
	"crypto/x509"
	"errors"
	"fmt"
	"slices"

	"tamga/pki/chain"
	"tamga/pki/suite"
	"tamga/pki/x509gost"
)

// SuiteOf returns the suite a certificate's key signs with, or an error when the
// key is of a kind this program does not have.
func SuiteOf(c *x509gost.Certificate) (*suite.Suite, error) {
	switch {
	case c == nil:
		return nil, errors.New("certificate: none is given")
	case c.Suite == nil:
		return nil, fmt.Errorf("certificate: its key is not supported: %w", c.KeyError)
	}
	return c.Suite, nil
}

// certificateCode begins the code of every finding about certificates, so that a
// bad signature on a certificate is not taken for one on the document.
const certificateCode = "certificate-"

// Trust judges a signer's certificate by the anchors, the time and the evidence
// of the check, together with what the signed document brought along. It returns
// the path, leaf first, empty when there is none. All formats judge by it.
func (c *Check) Trust(signer *x509gost.Certificate, certs []*x509gost.Certificate, crls []*x509gost.RevocationList) ([]*x509gost.Certificate, []Finding) {
	verdict, err := chain.Build(signer, chain.Options{
		Roots:         c.Roots,
		Intermediates: slices.Concat(c.Intermediates, certs),
		CRLs:          slices.Concat(c.CRLs, crls),
		At:            c.At,
	})
	path := verdict.Chain
	if errors.Is(err, chain.ErrNoPath) {
		path = nil // the verdict holds how far the search got
	}
	found := make([]Finding, 0, len(verdict.Findings)+1)
	for _, f := range verdict.Findings {
		found = append(found, Finding{Code: certificateCode + f.Code, Text: f.Text, Fatal: f.Fatal})
	}
	// RFC 5280, 4.2.1.3: a key may sign documents by either bit.
	if signer.HasKeyUsage && signer.KeyUsage&(x509.KeyUsageDigitalSignature|x509.KeyUsageContentCommitment) == 0 {
		found = append(found, Finding{
			Code: certificateCode + "usage", Fatal: true,
			Text: "the certificate is not for signatures: keyUsage has neither digitalSignature nor nonRepudiation",
		})
	}
	return path, found
}
