// SPDX-License-Identifier: Apache-2.0

package ooxml

import (
	"encoding/base64"
	"slices"
	"strings"
	"time"

	"tamga/pki/suite"
	"tamga/pki/x509gost"
	"tamga/sig/xmltree"
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
}

// Declarations that are in scope in a Signature, and in its properties.
const (
	inSignature  = ` xmlns="` + nsDS + `"`
	inProperties = ` xmlns:xd="` + nsXAdES + `"`
)

// render returns the parts before and after the signature value, and the digest of
// SignedInfo. The digested elements are rendered such that canonical gives their canonical
// form, so that nothing of it must be parsed.
func (s *signatureXML) render() (head, tail []byte, digest suite.Digest, err error) {
	objects := [...]struct{ kind, id, transforms, text, scope string }{
		{typeObject, idPackage, "", s.packageObject(), inSignature},
		{typeObject, idOffice, "", s.officeObject(), inSignature},
		{typeSignedProperties, idProperties, algorithm("Transform", algC14N), s.properties(), inSignature + inProperties},
	}
	room := 1 << 10 // about what is needed besides
	for _, c := range s.certs {
		room += base64.StdEncoding.EncodedLen(len(c.Raw)) + 64
	}
	for _, o := range objects {
		room += len(o.text)
	}
	b := make([]byte, 0, room)
	b = append(b, "</SignatureValue><KeyInfo><X509Data>"...)
	for _, c := range s.certs {
		b = append(b, "<X509Certificate>"...)
		b = base64.StdEncoding.AppendEncode(b, c.Raw)
		b = append(b, "</X509Certificate>"...)
	}
	for _, text := range []string{
		"</X509Data></KeyInfo>", objects[0].text, objects[1].text,
		"<Object><xd:QualifyingProperties" + inProperties + ` Target="#` + idSignature + `">`, objects[2].text, "</xd:QualifyingProperties></Object></Signature>",
	} {
		b = append(b, text...)
	}
	tail = b
	if len(tail) > maxXML-maxValue-maxHead {
		return nil, nil, suite.Digest{}, unfit(nil, "has so many parts and relationships that the signature would have %d bytes; at most %d are accepted", len(tail)+maxHead, maxXML)
	}

	forms := make([][]byte, len(objects))
	for i, o := range objects {
		forms[i] = canonical(o.text, o.scope)
	}
	info := "<SignedInfo>" + algorithm("CanonicalizationMethod", algC14N) + algorithm("SignatureMethod", s.suite.XML[0])
	for i, d := range s.suite.Hash.SumMany(forms) {
		info += s.reference(objects[i].kind, "#"+objects[i].id, objects[i].transforms, d.Sum)
	}
	info += "</SignedInfo>"
	head = []byte(`<?xml version="1.0" encoding="UTF-8" standalone="yes"?>` + "\r\n" +
		"<Signature" + inSignature + ` Id="` + idSignature + `">` + info + "<SignatureValue>")
	return head, tail, s.suite.Hash.Digest(canonical(info, inSignature)), s.readable(head, tail)
}

// readable returns an error if programs could not read the signature. Text below maxXMLNodes
// bytes cannot have more than that many nodes.
func (s *signatureXML) readable(head, tail []byte) error {
	if len(head)+len(tail) <= maxXMLNodes {
		return nil
	}
	_, err := parseXML(nil, "the signature", slices.Concat(head, tail))
	return err
}

// canonical returns the canonical form of an element. In its text, attributes are in order,
// and characters are written as Canonical XML writes them. Two things differ: empty
// elements, which get an end tag, and declarations of the elements around it, which the
// start tag gets.
func canonical(text, declarations string) []byte {
	at := strings.IndexAny(text, " >")
	b := make([]byte, 0, len(text)+len(text)/4+len(declarations))
	b = append(append(b, text[:at]...), declarations...)
	for begin := 0; ; {
		// at is in the tag that begins at begin, after its name or after a value.
		i := at + strings.IndexAny(text[at:], `">`)
		if text[i] == '"' {
			i += 2 + strings.IndexByte(text[i+1:], '"')
			b, at = append(b, text[at:i]...), i
			continue
		}
		if text[i-1] == '/' {
			b = append(append(b, text[at:i-1]...), "></"...)
			name := text[begin+1 : i-1]
			if n := strings.IndexByte(name, ' '); n >= 0 {
				name = name[:n]
			}
			b = append(append(b, name...), '>')
		} else {
			b = append(b, text[at:i+1]...)
		}
		next := strings.IndexByte(text[i:], '<')
		if next < 0 {
			return b
		}
		begin = i + next
		b, at = append(b, text[i+1:begin]...), begin
	}
}

func algorithm(name, uri string) string { return "<" + name + ` Algorithm="` + uri + `"/>` }

// reference renders a Reference. transforms is the content of its Transforms.
func (s *signatureXML) reference(kind, uri, transforms string, digest []byte) string {
	if kind != "" {
		kind = ` Type="` + kind + `"`
	}
	if transforms != "" {
		transforms = "<Transforms>" + transforms + "</Transforms>"
	}
	return "<Reference" + kind + ` URI="` + attributeText(uri) + `">` + transforms +
		algorithm("DigestMethod", s.suite.Hash.XML[0]) + "<DigestValue>" + base64.StdEncoding.EncodeToString(digest) + "</DigestValue></Reference>"
}

// attributeText returns a value for an attribute in its canonical form.
func attributeText(s string) string {
	if !strings.ContainsAny(s, "&<\"\t\n\r") {
		return s
	}
	var b strings.Builder
	xmltree.WriteValue(&b, s)
	return b.String()
}

// elementText writes text without control characters as the content of an element, in its
// canonical form.
var elementText = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")

// packageObject returns the manifest and the time.
func (s *signatureXML) packageObject() string {
	room := 1 << 10 // about what is needed besides
	for _, r := range s.refs {
		room += 384 + len(r.uri)
		for _, id := range r.ids {
			room += 64 + len(id)
		}
	}
	var b strings.Builder
	b.Grow(room)
	b.WriteString(`<Object xmlns:mdssi="` + nsMDSSI + `" Id="` + idPackage + `"><Manifest>`)
	for _, r := range s.refs {
		transforms := ""
		if r.ids != nil {
			var t strings.Builder
			t.WriteString(`<Transform Algorithm="` + algRelationships + `">`)
			for _, id := range r.ids {
				t.WriteString(`<mdssi:RelationshipReference SourceId="` + attributeText(id) + `"/>`)
			}
			t.WriteString("</Transform>" + algorithm("Transform", algC14N))
			transforms = t.String()
		}
		b.WriteString(s.reference("", r.uri, transforms, r.digest))
	}
	b.WriteString(`</Manifest><SignatureProperties><SignatureProperty Id="idSignatureTime" Target="#` + idSignature + `">`)
	b.WriteString(`<mdssi:SignatureTime><mdssi:Format>` + timeFormat + `</mdssi:Format><mdssi:Value>` + s.time() + `</mdssi:Value></mdssi:SignatureTime>`)
	b.WriteString(`</SignatureProperty></SignatureProperties></Object>`)
	return b.String()
}

func (s *signatureXML) time() string { return s.at.UTC().Format(time.RFC3339) }

// officeObject returns what Office says about itself (MS-OFFCRYPTO 2.5.2.5). The schema
// requires every element but the last two. There is no Office and no screen here, so
// versions and screen are those of a common installation. No reader compares them with
// anything.
func (s *signatureXML) officeObject() string {
	var b strings.Builder
	b.Grow(2 << 10)
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
	return b.String()
}

// properties returns the XAdES properties as Office writes them: the time, the signer's
// certificate by digest, issuer and serial number, and no policy (MS-OFFCRYPTO 2.5.2.6).
func (s *signatureXML) properties() string {
	c := s.certs[0]
	return `<xd:SignedProperties Id="` + idProperties + `"><xd:SignedSignatureProperties>` +
		"<xd:SigningTime>" + s.time() + "</xd:SigningTime><xd:SigningCertificate><xd:Cert><xd:CertDigest>" +
		algorithm("DigestMethod", s.suite.Hash.XML[0]) + "<DigestValue>" + base64.StdEncoding.EncodeToString(c.Digest(s.suite.Hash)) + "</DigestValue></xd:CertDigest>" +
		"<xd:IssuerSerial><X509IssuerName>" + elementText.Replace(c.Issuer.RFC4514()) + "</X509IssuerName><X509SerialNumber>" + c.SerialDecimal() + "</X509SerialNumber></xd:IssuerSerial>" +
		"</xd:Cert></xd:SigningCertificate><xd:SignaturePolicyIdentifier><xd:SignaturePolicyImplied/></xd:SignaturePolicyIdentifier></xd:SignedSignatureProperties></xd:SignedProperties>"
}
