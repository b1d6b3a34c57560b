// SPDX-License-Identifier: Apache-2.0

package x509gost

import (
	"errors"
	"math/big"
	"strings"

	"golang.org/x/crypto/cryptobyte"
	cbasn1 "golang.org/x/crypto/cryptobyte/asn1"
)

// IssuerSerial names a certificate by its issuer and its serial number, as signatures do beside
// the digest of their certificate.
type IssuerSerial struct {
	issuer, serial []byte // a Name as DER and the contents of an INTEGER
	name, number   string // the same in XML, if serial is nil
}

// ParseIssuerSerial reads the DER of an IssuerSerial (RFC 5035, 4). Its issuer must be one
// directoryName. Nothing may follow it.
func ParseIssuerSerial(der []byte) (*IssuerSerial, error) {
	in := cryptobyte.String(der)
	var seq, names, name, serial cryptobyte.String
	if !in.ReadASN1(&seq, cbasn1.SEQUENCE) || !in.Empty() ||
		!seq.ReadASN1(&names, cbasn1.SEQUENCE) ||
		!names.ReadASN1(&name, cbasn1.Tag(4).ContextSpecific().Constructed()) || !names.Empty() ||
		!seq.ReadASN1(&serial, cbasn1.INTEGER) || !seq.Empty() {
		return nil, errors.New("is not one directoryName and a serial number")
	}
	return &IssuerSerial{issuer: name, serial: serial}, nil
}

// TextIssuerSerial returns the IssuerSerial of the elements X509IssuerName and X509SerialNumber.
func TextIssuerSerial(name, number string) *IssuerSerial {
	return &IssuerSerial{name: name, number: strings.TrimSpace(number)}
}

// Texts returns the name and the number for people.
func (s *IssuerSerial) Texts() (name, number string) {
	if s.serial == nil {
		return s.name, s.number
	}
	if n, err := ParseName(s.issuer); err == nil {
		name = n.String()
	}
	return name, decodeInteger(s.serial).String()
}

// Cost is about how many bytes are looked at when s is compared with a certificate.
func (s *IssuerSerial) Cost() int64 {
	return 100 + 10*int64(len(s.issuer)+len(s.serial)+len(s.name)+len(s.number))
}

// Differs says what in s is not that of the certificate, or returns "" if both are. A name in text
// is compared as by [Name.IsText].
func (s *IssuerSerial) Differs(c *Certificate) string {
	var sameIssuer, sameSerial bool
	if s.serial != nil {
		sameIssuer, sameSerial = SameName(s.issuer, c.RawIssuer), SameInteger(s.serial, c.SerialNumber)
	} else {
		sameIssuer, sameSerial = c.Issuer.IsText(s.name), c.isSerialText(s.number)
	}
	switch {
	case !sameIssuer && !sameSerial:
		return "the issuer and the serial number"
	case !sameIssuer:
		return "the issuer"
	case !sameSerial:
		return "the serial number"
	}
	return ""
}

// maxSerialText limits the digits of a serial number in text.
const maxSerialText = 1000

// isSerialText compares the serial number with a decimal number. Programs write a negative one
// as the positive number with the same bytes, too.
func (c *Certificate) isSerialText(text string) bool {
	if len(text) > maxSerialText {
		return false
	}
	n, ok := new(big.Int).SetString(text, 10)
	return ok && (n.Cmp(decodeInteger(c.SerialNumber)) == 0 || n.Cmp(new(big.Int).SetBytes(c.SerialNumber)) == 0)
}

// SerialDecimal returns the serial number in decimal, the form of X509SerialNumber in XML. The
// number is negative if the first bit of its DER is set.
func (c *Certificate) SerialDecimal() string { return decodeInteger(c.SerialNumber).String() }

// decodeInteger returns the number in the contents of an INTEGER.
func decodeInteger(content []byte) *big.Int {
	n := new(big.Int).SetBytes(content)
	if len(content) > 0 && content[0]&0x80 != 0 {
		n.Sub(n, new(big.Int).Lsh(big.NewInt(1), uint(8*len(content))))
	}
	return n
}
