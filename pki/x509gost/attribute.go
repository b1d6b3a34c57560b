// SPDX-License-Identifier: Apache-2.0

package x509gost

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"golang.org/x/crypto/cryptobyte"
	cbasn1 "golang.org/x/crypto/cryptobyte/asn1"
)

// Attribute types of names. The numeric ones identify people and organisations
// in Russian qualified certificates.
var (
	OIDCommonName         = OID{2, 5, 4, 3}
	OIDSurname            = OID{2, 5, 4, 4}
	OIDSerialNumber       = OID{2, 5, 4, 5}
	OIDCountry            = OID{2, 5, 4, 6}
	OIDLocality           = OID{2, 5, 4, 7}
	OIDProvince           = OID{2, 5, 4, 8}
	OIDStreet             = OID{2, 5, 4, 9}
	OIDOrganization       = OID{2, 5, 4, 10}
	OIDOrganizationalUnit = OID{2, 5, 4, 11}
	OIDTitle              = OID{2, 5, 4, 12}
	OIDGivenName          = OID{2, 5, 4, 42}
	OIDInitials           = OID{2, 5, 4, 43}
	OIDEmail              = OID{1, 2, 840, 113549, 1, 9, 1}
	OIDDomainComponent    = OID{0, 9, 2342, 19200300, 100, 1, 25}
	OIDOGRN               = OID{1, 2, 643, 100, 1}       // registration number of an organisation, 13 digits
	OIDSNILS              = OID{1, 2, 643, 100, 3}       // insurance number of a person, 11 digits
	OIDINNLE              = OID{1, 2, 643, 100, 4}       // taxpayer number of an organisation, 10 digits
	OIDOGRNIP             = OID{1, 2, 643, 100, 5}       // registration number of an entrepreneur, 15 digits
	OIDINN                = OID{1, 2, 643, 3, 131, 1, 1} // taxpayer number of a person, 12 digits
)

// attributeTypes has the names and the string type of attributes. A type that is not
// in the table is written as UTF8String.
var attributeTypes = []struct {
	oid    OID
	names  []string // the first is written by String
	tag    cbasn1.Tag
	length int // exact number of characters, 0: any
}{
	{OIDCommonName, []string{"CN"}, cbasn1.UTF8String, 0},
	{OIDSurname, []string{"SN"}, cbasn1.UTF8String, 0},
	{OIDSerialNumber, []string{"SERIALNUMBER"}, cbasn1.PrintableString, 0},
	{OIDCountry, []string{"C"}, cbasn1.PrintableString, 2},
	{OIDLocality, []string{"L"}, cbasn1.UTF8String, 0},
	{OIDProvince, []string{"S", "ST"}, cbasn1.UTF8String, 0},
	{OIDStreet, []string{"STREET"}, cbasn1.UTF8String, 0},
	{OIDOrganization, []string{"O"}, cbasn1.UTF8String, 0},
	{OIDOrganizationalUnit, []string{"OU"}, cbasn1.UTF8String, 0},
	{OIDTitle, []string{"T"}, cbasn1.UTF8String, 0},
	{OIDGivenName, []string{"G", "GN"}, cbasn1.UTF8String, 0},
	{OIDInitials, []string{"I"}, cbasn1.UTF8String, 0},
	{OIDEmail, []string{"E", "EMAILADDRESS"}, cbasn1.IA5String, 0},
	{OIDDomainComponent, []string{"DC"}, cbasn1.IA5String, 0},
	{OIDOGRN, []string{"OGRN"}, tagNumericString, 13},
	{OIDSNILS, []string{"SNILS"}, tagNumericString, 11},
	{OIDINNLE, []string{"INNLE"}, tagNumericString, 10},
	{OIDOGRNIP, []string{"OGRNIP"}, tagNumericString, 15},
	{OIDINN, []string{"INN"}, tagNumericString, 12},
}

// AttributeByName returns the type of an attribute with the name that String writes, or
// another usual name. Case does not matter.
func AttributeByName(name string) (OID, bool) {
	for _, row := range attributeTypes {
		for _, n := range row.names {
			if strings.EqualFold(n, name) {
				return row.oid, true
			}
		}
	}
	return nil, false
}

// AttributeName returns the short name of a type of attributes of names, such as "CN", or its
// dotted form.
func AttributeName(oid OID) string {
	for _, row := range attributeTypes {
		if row.oid.Equal(oid) {
			return row.names[0]
		}
	}
	return oid.String()
}

// maxValue limits one value of a name that BuildName encodes, in bytes.
const maxValue = 1024

// BuildName encodes a name with one attribute per RDN, in the order given. INN, SNILS,
// OGRN, OGRNIP and INNLE become NumericString and must have their exact length. C and
// serialNumber become PrintableString, E and DC IA5String, all others UTF8String.
func BuildName(attrs []Attribute) (Name, error) {
	if len(attrs) > maxAttributes {
		return Name{}, fmt.Errorf("x509gost: name: %d attributes are more than the %d allowed", len(attrs), maxAttributes)
	}
	var b cryptobyte.Builder
	var fault error
	b.AddASN1(cbasn1.SEQUENCE, func(b *cryptobyte.Builder) {
		for _, a := range attrs {
			tag, err := attributeTag(a)
			if err != nil {
				fault = fmt.Errorf("x509gost: name: %s: %w", AttributeName(a.OID), err)
				return
			}
			b.AddASN1(cbasn1.SET, func(b *cryptobyte.Builder) {
				b.AddASN1(cbasn1.SEQUENCE, func(b *cryptobyte.Builder) {
					b.AddASN1ObjectIdentifier(a.OID)
					b.AddASN1(tag, func(b *cryptobyte.Builder) { b.AddBytes([]byte(a.Value)) })
				})
			})
		}
	})
	if fault != nil {
		return Name{}, fault
	}
	der, err := b.Bytes()
	if err != nil {
		return Name{}, fmt.Errorf("x509gost: name: %w", err)
	}
	return ParseName(der)
}

// attributeTag returns the string type of an attribute and checks its value.
func attributeTag(a Attribute) (cbasn1.Tag, error) {
	if a.Value == "" || len(a.Value) > maxValue || !utf8.ValidString(a.Value) {
		return 0, fmt.Errorf("the value must be 1 to %d bytes of valid UTF-8", maxValue)
	}
	for _, row := range attributeTypes {
		if !row.oid.Equal(a.OID) {
			continue
		}
		if row.length != 0 && len(a.Value) != row.length {
			return 0, fmt.Errorf("the value must have %d characters; it has %d", row.length, len(a.Value))
		}
		if row.tag == tagNumericString && strings.Contains(a.Value, " ") {
			return 0, errors.New("the value must have digits only")
		}
		if set, ok := narrow[row.tag]; ok {
			for i := range len(a.Value) {
				if !set.has(a.Value[i]) {
					return 0, fmt.Errorf("the value has characters that %s does not allow", set.name)
				}
			}
		}
		return row.tag, nil
	}
	return cbasn1.UTF8String, nil
}
