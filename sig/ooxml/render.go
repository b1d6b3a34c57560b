// SPDX-License-Identifier: Apache-2.0

package ooxml

import (
	"encoding/base64"
	"math/big"
	"strings"
	"time"

	"tamga/pki/suite"
	"tamga/pki/x509gost"
)

// Namespaces and identifiers of a signature.
const (
	nsDS     = "http://www.w3.org/2000/09/xmldsig#"
	nsXAdES  = "http://uri.etsi.org/01903/v1.3.2#"
	nsMDSSI  = "http://schemas.openxmlformats.org/package/2006/digital-signature"
	nsOffice = "http://schemas.microsoft.com/office/2006/digsig"

	algC14N              = "http://www.w3.org/TR/2001/REC-xml-c14n-20010315"
	algRelationships     = "http://schemas.openxmlformats.org/package/2006/RelationshipTransform"
	typeObject           = nsDS + "Object"
	typeSignedProperties = "http://uri.etsi.org/01903#SignedProperties"

	idSignature  = "idPackageSignature"
	idPackage    = "idPackageObject"
	idOffice     = "idOfficeObject"
	idProperties = "idSignedProperties"

	// timeFormat is the name in SignatureTime of the form that time.RFC3339 makes of a
	// time in UTC (ECMA-376 part 2, 13.2.4.20).
	timeFormat = "YYYY-MM-DDThh:mm:ssTZD"
)

// signatureXML is a Signature as Office writes it: the XMLDSig namespace without a
// prefix, Canonical XML 1.0 throughout, and three references of SignedInfo to three
// objects (MS-OFFCRYPTO 2.5.2).
type signatureXML struct {
	suite *suite.Suite
	at    time.Time
	certs []*x509gost.Certificate // the signer's is the first
	refs  []reference
	// Digests of the three objects, "" until they are computed.
	packageDigest, officeDigest, propertiesDigest string
}

// around returns the parts before and after the signature value.
func (s *signatureXML) around() (head, tail string) {
	var b strings.Builder
	b.Grow(2 << 10)
	b.WriteString(`<?xml version="1.0" encoding="UTF-8" standalone="yes"?>` + "\r\n")
	b.WriteString(`<Signature xmlns="` + nsDS + `" Id="` + idSignature + `"><SignedInfo>`)
	b.WriteString(algorithm("CanonicalizationMethod", algC14N) + algorithm("SignatureMethod", s.suite.XML[0]))
	b.WriteString(s.reference(typeObject, "#"+idPackage, "", s.packageDigest))
	b.WriteString(s.reference(typeObject, "#"+idOffice, "", s.officeDigest))
	b.WriteString(s.reference(typeSignedProperties, "#"+idProperties, algorithm("Transform", algC14N), s.propertiesDigest))
	b.WriteString("</SignedInfo><SignatureValue>")
	head = b.String()

	b.Reset()
	room := 4 << 10 // about what is needed besides
	for _, c := range s.certs {
		room += len(c.Raw)*4/3 + 64
	}
	for _, r := range s.refs {
		room += 384 + len(r.uri)
		for _, id := range r.ids {
			room += 64 + len(id)
		}
	}
	b.Grow(room)
	b.WriteString("</SignatureValue><KeyInfo><X509Data>")
	for _, c := range s.certs {
		b.WriteString("<X509Certificate>" + base64.StdEncoding.EncodeToString(c.Raw) + "</X509Certificate>")
	}
	b.WriteString("</X509Data></KeyInfo>")
	s.packageObject(&b)
	s.officeObject(&b)
	s.properties(&b)
	b.WriteString("</Signature>")
	return head, b.String()
}

func algorithm(name, uri string) string { return "<" + name + ` Algorithm="` + uri + `"/>` }

// reference renders a Reference. transforms is the content of its Transforms.
func (s *signatureXML) reference(kind, uri, transforms, digest string) string {
	var b strings.Builder
	b.WriteString("<Reference")
	if kind != "" {
		b.WriteString(` Type="` + kind + `"`)
	}
	b.WriteString(` URI="` + escape(uri) + `">`)
	if transforms != "" {
		b.WriteString("<Transforms>" + transforms + "</Transforms>")
	}
	b.WriteString(algorithm("DigestMethod", s.suite.Hash.XML[0]) + "<DigestValue>" + digest + "</DigestValue></Reference>")
	return b.String()
}

// packageObject writes the manifest and the time.
func (s *signatureXML) packageObject(b *strings.Builder) {
	b.WriteString(`<Object xmlns:mdssi="` + nsMDSSI + `" Id="` + idPackage + `"><Manifest>`)
	for _, r := range s.refs {
		transforms := ""
		if r.ids != nil {
			var t strings.Builder
			t.WriteString(`<Transform Algorithm="` + algRelationships + `">`)
			for _, id := range r.ids {
				t.WriteString(`<mdssi:RelationshipReference SourceId="` + escape(id) + `"/>`)
			}
			t.WriteString("</Transform>" + algorithm("Transform", algC14N))
			transforms = t.String()
		}
		b.WriteString(s.reference("", r.uri, transforms, base64.StdEncoding.EncodeToString(r.digest)))
	}
	b.WriteString(`</Manifest><SignatureProperties><SignatureProperty Id="idSignatureTime" Target="#` + idSignature + `">`)
	b.WriteString(`<mdssi:SignatureTime><mdssi:Format>` + timeFormat + `</mdssi:Format><mdssi:Value>` + s.time() + `</mdssi:Value></mdssi:SignatureTime>`)
	b.WriteString(`</SignatureProperty></SignatureProperties></Object>`)
}

func (s *signatureXML) time() string { return s.at.UTC().Format(time.RFC3339) }

// officeObject writes what Office says about itself (MS-OFFCRYPTO 2.5.2.5). The schema
// requires every element but the last two. There is no Office and no screen here, so
// versions and screen are those of a common installation. No reader compares them with
// anything.
func (s *signatureXML) officeObject(b *strings.Builder) {
	b.WriteString(`<Object Id="` + idOffice + `"><SignatureProperties><SignatureProperty Id="idOfficeV1Details" Target="#` + idSignature + `">`)
	b.WriteString(`<SignatureInfoV1 xmlns="` + nsOffice + `">`)
	for _, e := range [][2]string{
		{"SetupID", ""}, {"SignatureText", ""}, {"SignatureImage", ""}, {"SignatureComments", ""},
		{"WindowsVersion", "10.0"}, {"OfficeVersion", "16.0"}, {"ApplicationVersion", "16.0"},
		{"Monitors", "1"}, {"HorizontalResolution", "1920"}, {"VerticalResolution", "1080"}, {"ColorDepth", "32"},
		{"SignatureProviderId", "{00000000-0000-0000-0000-000000000000}"}, {"SignatureProviderUrl", ""},
		// 9 means a signature without a signature line, made with the default provider.
		{"SignatureProviderDetails", "9"},
		{"ManifestHashAlgorithm", s.suite.Hash.XML[0]},
		{"SignatureType", "1"},
	} {
		b.WriteString("<" + e[0] + ">" + e[1] + "</" + e[0] + ">")
	}
	b.WriteString("</SignatureInfoV1></SignatureProperty></SignatureProperties></Object>")
}

// properties writes the XAdES properties as Office does: the time, the signer's
// certificate by digest, issuer and serial number, and no policy (MS-OFFCRYPTO 2.5.2.6).
func (s *signatureXML) properties(b *strings.Builder) {
	c := s.certs[0]
	b.WriteString(`<Object><xd:QualifyingProperties xmlns:xd="` + nsXAdES + `" Target="#` + idSignature + `"><xd:SignedProperties Id="` + idProperties + `"><xd:SignedSignatureProperties>`)
	b.WriteString("<xd:SigningTime>" + s.time() + "</xd:SigningTime><xd:SigningCertificate><xd:Cert><xd:CertDigest>")
	b.WriteString(algorithm("DigestMethod", s.suite.Hash.XML[0]) + "<DigestValue>" + base64.StdEncoding.EncodeToString(c.Digest(s.suite.Hash)) + "</DigestValue></xd:CertDigest>")
	b.WriteString("<xd:IssuerSerial><X509IssuerName>" + escape(c.Issuer.String()) + "</X509IssuerName><X509SerialNumber>" + decimal(c.SerialNumber) + "</X509SerialNumber></xd:IssuerSerial>")
	b.WriteString("</xd:Cert></xd:SigningCertificate><xd:SignaturePolicyIdentifier><xd:SignaturePolicyImplied/></xd:SignaturePolicyIdentifier></xd:SignedSignatureProperties></xd:SignedProperties></xd:QualifyingProperties></Object>")
}

// decimal returns a serial number, in two's complement, as the decimal text that the
// schema of XMLDSig requires.
func decimal(serial []byte) string {
	n := new(big.Int).SetBytes(serial)
	if len(serial) > 0 && serial[0]&0x80 != 0 {
		n.Sub(n, new(big.Int).Lsh(big.NewInt(1), uint(8*len(serial))))
	}
	return n.String()
}
