// SPDX-License-Identifier: Apache-2.0

package evidence

import "tamga/pki/x509gost"

// Purpose is what a certificate is for whose path was collected. Formats with different places
// for the two, such as CertificateValues and TimeStampValidationData of XAdES, need it.
type Purpose uint8

// The purposes.
const (
	ForSigner    Purpose = iota // it signed the document or another signature
	ForTimeStamp                // it is the certificate of a time-stamp service
)

// Value is one certificate, revocation list or OCSP answer.
type Value struct {
	// DER is a Certificate or a CertificateList (RFC 5280), or a BasicOCSPResponse
	// (RFC 6960, 4.2.1; ocsp.CreateResponse makes an OCSPResponse of it).
	DER []byte
	// Purpose is the one for which it was first needed.
	Purpose Purpose
}

// Values is the evidence of one place in a document, each piece once, in the order in which it was
// needed. The zero value is empty and ready.
type Values struct {
	Certificates, CRLs, OCSP []Value

	seen map[string]bool
}

// AddCertificate appends a certificate unless it is there.
func (v *Values) AddCertificate(c *x509gost.Certificate, p Purpose) { v.add(&v.Certificates, c.Raw, p) }

func (v *Values) add(list *[]Value, der []byte, p Purpose) {
	if v.seen[string(der)] {
		return
	}
	if v.seen == nil {
		v.seen = map[string]bool{}
	}
	v.seen[string(der)] = true
	*list = append(*list, Value{der, p})
}
