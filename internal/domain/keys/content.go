// SPDX-License-Identifier: Apache-2.0

package keys

import (
	"encoding/hex"
	"encoding/xml"
	"fmt"
	"strings"
	"time"

	"tamga/pki/x509gost"
)

// DefaultUsages are the extended key usages that a request asks for when the client names
// none: authentication of clients and protection of mail.
func DefaultUsages() []x509gost.OID { return append([]x509gost.OID(nil), userUsage...) }

// description is the readable content of a certificate in the form of XML.
type description struct {
	XMLName                                         xml.Name `xml:"Certificate"`
	SerialNumber, Subject, Issuer                   string
	NotBefore, NotAfter                             string
	PublicKeyAlgorithm, SignatureAlgorithm          string
	SubjectKeyIdentifier                            string `xml:",omitempty"`
	PrivateKeyNotBefore, PrivateKeyNotAfter, Status string `xml:",omitempty"`
}

func describe(c *Certificate) description {
	x := c.X509
	d := description{
		SerialNumber: strings.ToUpper(hex.EncodeToString(x.SerialNumber)),
		Subject:      x.Subject.String(), Issuer: x.Issuer.String(),
		NotBefore: moment(x.NotBefore), NotAfter: moment(x.NotAfter),
		SignatureAlgorithm:   x.SignatureOID.String(),
		SubjectKeyIdentifier: strings.ToUpper(hex.EncodeToString(x.SubjectKeyID)),
		PrivateKeyNotBefore:  moment(x.PrivateKeyNotBefore), PrivateKeyNotAfter: moment(x.PrivateKeyNotAfter),
		Status: c.Status.String(),
	}
	if x.Suite != nil {
		d.PublicKeyAlgorithm = x.Suite.KeyOID.String()
	}
	return d
}

func moment(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}

// XML describes a certificate as a small XML document of our own.
func (c *Certificate) XML() (string, error) {
	text, err := xml.MarshalIndent(describe(c), "", "  ")
	return xml.Header + string(text) + "\n", err
}

// Formatted describes a certificate for people, one fact on a line.
func (c *Certificate) Formatted() string {
	d := describe(c)
	var b strings.Builder
	for _, line := range []struct{ what, text string }{
		{"Серийный номер", d.SerialNumber}, {"Владелец", d.Subject}, {"Издатель", d.Issuer},
		{"Действителен с", d.NotBefore}, {"Действителен по", d.NotAfter},
		{"Ключ подписи с", d.PrivateKeyNotBefore}, {"Ключ подписи по", d.PrivateKeyNotAfter},
		{"Алгоритм ключа", d.PublicKeyAlgorithm}, {"Алгоритм подписи издателя", d.SignatureAlgorithm},
		{"Идентификатор ключа", d.SubjectKeyIdentifier}, {"Состояние", d.Status},
	} {
		if line.text != "" {
			fmt.Fprintf(&b, "%s: %s\n", line.what, line.text)
		}
	}
	return b.String()
}
