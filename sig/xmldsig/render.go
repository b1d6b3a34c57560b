// SPDX-License-Identifier: Apache-2.0

package xmldsig

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"strings"
	"time"

	"tamga/pki/suite"
	"tamga/pki/x509gost"
	"tamga/sig"
	"tamga/sig/xmltree"
)

// element is a Signature that this package renders itself, with the prefix ds and the
// exclusive canonical form. No text in it needs escaping: it consists of identifiers,
// Base64 and names of this package.
type element struct {
	suite *suite.Suite
	id    string // Id of the Signature, "" for none
	refs  []renderedReference
	certs []*x509gost.Certificate
	// object is an Object with the document. It comes before the Object of the
	// properties.
	object string
	// properties are the SignedProperties, "" without XAdES.
	properties string
}

type renderedReference struct {
	id, uri, kind string
	transforms    []string
	digest        suite.Digest
}

const dsDeclaration = ` xmlns:ds="` + nsDS + `"`

// render renders the element, with slots for the value and the unsigned properties.
func (e *element) render() string {
	room := 2<<10 + len(e.object) + len(e.properties)
	for _, c := range e.certs {
		room += base64.StdEncoding.EncodedLen(len(c.Raw))
	}
	var b strings.Builder
	b.Grow(room)
	b.WriteString("<ds:Signature" + dsDeclaration + attribute("Id", e.id) + ">")
	e.signedInfo(&b, "")
	b.WriteString("<ds:SignatureValue>" + slot(slotValue) + "</ds:SignatureValue>")
	b.WriteString("<ds:KeyInfo>" + keyInfo("ds:", e.certs) + "</ds:KeyInfo>")
	b.WriteString(e.object)
	if e.properties != "" {
		b.WriteString(`<ds:Object><xades:QualifyingProperties` + xadesDeclaration + ` Target="#` + e.id + `">`)
		b.WriteString(e.properties + slot(slotUnsigned) + "</xades:QualifyingProperties></ds:Object>")
	}
	b.WriteString("</ds:Signature>")
	return b.String()
}

// signedInfo renders the SignedInfo, with declarations in its start tag.
func (e *element) signedInfo(b *strings.Builder, declarations string) {
	b.WriteString("<ds:SignedInfo" + declarations + ">" + algorithm("CanonicalizationMethod", algExcC14N) + algorithm("SignatureMethod", e.suite.XML[0]))
	for _, r := range e.refs {
		b.WriteString("<ds:Reference" + attribute("Id", r.id) + attribute("Type", r.kind) + ` URI="` + r.uri + `">`)
		if len(r.transforms) > 0 {
			b.WriteString("<ds:Transforms>")
			for _, tr := range r.transforms {
				b.WriteString(algorithm("Transform", tr))
			}
			b.WriteString("</ds:Transforms>")
		}
		b.WriteString(algorithm("DigestMethod", r.digest.Hash.XML[0]))
		b.WriteString("<ds:DigestValue>" + base64.StdEncoding.EncodeToString(r.digest.Sum) + "</ds:DigestValue></ds:Reference>")
	}
	b.WriteString("</ds:SignedInfo>")
}

// digest returns the digest of SignedInfo. With its declaration it is in the exclusive canonical
// form, in which nothing depends on the elements around it.
func (e *element) digest() suite.Digest {
	var b strings.Builder
	b.Grow(2 << 10)
	e.signedInfo(&b, dsDeclaration)
	return e.suite.Hash.Digest([]byte(b.String()))
}

func attribute(name, value string) string {
	if value == "" {
		return ""
	}
	return " " + name + `="` + value + `"`
}

func algorithm(name, uri string) string {
	return "<ds:" + name + ` Algorithm="` + uri + `"></ds:` + name + ">"
}

// signedValue returns the canonical form of the SignatureValue of such an element. A time
// stamp covers it.
func signedValue(value string) string {
	return "<ds:SignatureValue" + dsDeclaration + ">" + value + "</ds:SignatureValue>"
}

// identifiers are the Id values of one signature.
type identifiers struct{ signature, reference, object, properties string }

// newIdentifiers returns identifiers that are not in the document. They are derived from
// the job, so that the same job gives the same signature.
func newIdentifiers(job *sig.Job, document []byte, t *xmltree.Tree) identifiers {
	for i := 0; ; i++ {
		h := sha256.Sum256(fmt.Appendf(nil, "%x %x %d %d", job.Certificate.Digest(suite.SHA256), document, job.Time.UnixNano(), i))
		name := hex.EncodeToString(h[:8])
		ids := identifiers{"signature-" + name, "reference-" + name, "object-" + name, "properties-" + name}
		if t == nil || !hasAny(t, ids.signature, ids.reference, ids.object, ids.properties) {
			return ids
		}
	}
}

// referenceTo returns the Id of the reference at an index.
func (ids identifiers) referenceTo(i int) string {
	if i == 0 {
		return ids.reference
	}
	return fmt.Sprintf("%s-%d", ids.reference, i)
}

func hasAny(t *xmltree.Tree, ids ...string) bool {
	for _, found := range t.ByIDs(ids...) {
		if len(found) > 0 {
			return true
		}
	}
	return false
}

// spelling is how XAdES elements are written in their place: the prefixes of both
// namespaces with their colons, "" for a default namespace.
type spelling struct {
	ds, xades string
	// declare is a declaration of ds for each outermost element of that namespace, "" if
	// an element around it has one.
	declare string
}

// ownSpelling is the spelling of signatures that this package renders itself.
var ownSpelling = spelling{ds: "ds:", xades: "xades:"}

// signedProperties renders the SignedProperties of XAdES (EN 319 132-1, 4.3.3): the
// signing time, the certificate, and the formats of the data, in the order of the references.
func signedProperties(ids identifiers, job *sig.Job, h *suite.Hash, mimeTypes []string) string {
	var formats strings.Builder
	for i, mimeType := range mimeTypes {
		formats.WriteString(`<xades:DataObjectFormat ObjectReference="#` + ids.referenceTo(i) + `">` +
			"<xades:MimeType>" + mimeType + "</xades:MimeType></xades:DataObjectFormat>")
	}
	return `<xades:SignedProperties Id="` + ids.properties + `"><xades:SignedSignatureProperties>` +
		ownSpelling.signedSignatureProperties(job, h) + "</xades:SignedSignatureProperties>" +
		"<xades:SignedDataObjectProperties>" + formats.String() + "</xades:SignedDataObjectProperties>" +
		"</xades:SignedProperties>"
}

// signedSignatureProperties renders the content of the element SignedSignatureProperties.
func (s spelling) signedSignatureProperties(job *sig.Job, h *suite.Hash) string {
	return s.wrap("SigningTime", signingTime(job)) + s.wrap("SigningCertificateV2", s.signingCertificate(job.Certificate, h))
}

func (s spelling) wrap(local, content string) string {
	return "<" + s.xades + local + ">" + content + "</" + s.xades + local + ">"
}

func signingTime(job *sig.Job) string { return job.Time.UTC().Format(time.RFC3339) }

// signingCertificate renders the content of SigningCertificateV2.
func (s spelling) signingCertificate(c *x509gost.Certificate, h *suite.Hash) string {
	return s.wrap("Cert", s.certDigest(c, h))
}

func (s spelling) certDigest(c *x509gost.Certificate, h *suite.Hash) string {
	return s.wrap("CertDigest", "<"+s.ds+"DigestMethod"+s.declare+` Algorithm="`+h.XML[0]+`"></`+s.ds+"DigestMethod>"+
		"<"+s.ds+"DigestValue"+s.declare+">"+base64.StdEncoding.EncodeToString(c.Digest(h))+"</"+s.ds+"DigestValue>")
}

// signingCertificateV1 renders the content of SigningCertificate, the element of TS 101
// 903, which also has the issuer's name as text.
func (s spelling) signingCertificateV1(c *x509gost.Certificate, h *suite.Hash) string {
	return s.wrap("Cert", s.certDigest(c, h)+s.wrap("IssuerSerial",
		"<"+s.ds+"X509IssuerName"+s.declare+">"+xmlText.Replace(c.Issuer.RFC4514())+"</"+s.ds+"X509IssuerName>"+
			"<"+s.ds+"X509SerialNumber"+s.declare+">"+c.SerialDecimal()+"</"+s.ds+"X509SerialNumber>"))
}

// xmlText writes text as the content of an element. Package ooxml has replacements of its
// own, which also replace quotes and tabs: the two write different bytes.
var xmlText = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", "\r", "&#13;")

// unsignedElement renders the element with the unsigned properties.
func unsignedElement(stamp string) string {
	return "<xades:UnsignedProperties><xades:UnsignedSignatureProperties>" + stamp +
		"</xades:UnsignedSignatureProperties></xades:UnsignedProperties>"
}

// signatureTimeStamp renders a time stamp over a SignatureValue. declarations are added
// if its prefixes may be undeclared at that place.
func signatureTimeStamp(token []byte, declarations string) string {
	return "<xades:SignatureTimeStamp" + declarations + ">" + algorithm("CanonicalizationMethod", algExcC14N) +
		"<xades:EncapsulatedTimeStamp>" + base64.StdEncoding.EncodeToString(token) + "</xades:EncapsulatedTimeStamp>" +
		"</xades:SignatureTimeStamp>"
}

const xadesDeclaration = ` xmlns:xades="` + nsXAdES + `"`
