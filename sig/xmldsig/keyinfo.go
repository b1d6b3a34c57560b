// SPDX-License-Identifier: Apache-2.0

package xmldsig

import (
	"encoding/base64"
	"errors"
	"iter"
	"slices"
	"strings"

	"tamga/pki/ocsp"
	"tamga/pki/x509gost"
	"tamga/sig"
	"tamga/sig/budget"
	"tamga/sig/xmltree"
)

// keyInfo renders the content of a KeyInfo: the signer's certificate, then those of its
// issuers except the root, which a verifier must have already. prefix is the prefix of
// the XMLDSig namespace with its colon.
func keyInfo(prefix string, certs []*x509gost.Certificate) string {
	return "<" + prefix + "X509Data>" + x509Data(prefix, certs) + "</" + prefix + "X509Data>"
}

func x509Data(prefix string, certs []*x509gost.Certificate) string {
	var b strings.Builder
	for _, c := range certs {
		b.WriteString("<" + prefix + "X509Certificate>")
		b.WriteString(base64.StdEncoding.EncodeToString(c.Raw))
		b.WriteString("</" + prefix + "X509Certificate>")
	}
	return b.String()
}

// certificates returns the certificates that go into the signature.
func certificates(job *sig.Job, withChain bool) []*x509gost.Certificate {
	out := []*x509gost.Certificate{job.Certificate}
	if !withChain {
		return out
	}
	for _, c := range job.Chain {
		if c == nil || c.IsSelfIssued() || slices.ContainsFunc(out, c.Equal) {
			continue
		}
		out = append(out, c)
	}
	return out
}

// fillKeyInfo returns the changes that fill the KeyInfo of a template, or the security
// token that it refers to (WS-Security, X.509 token profile). A KeyInfo with content
// stays as it is.
func fillKeyInfo(s *signature, certs []*x509gost.Certificate) []change {
	t := s.tree
	if s.keyInfo == xmltree.None {
		return nil
	}
	if isBlank(t, s.keyInfo) {
		return []change{contentOf(t, s.keyInfo, keyInfo(prefixOf(t, s.keyInfo), certs))}
	}
	if data := t.Child(s.keyInfo, nsDS, "X509Data"); data != xmltree.None {
		if isBlank(t, data) {
			return []change{contentOf(t, data, x509Data(prefixOf(t, data), certs))}
		}
		if c := t.Child(data, nsDS, "X509Certificate"); c != xmltree.None && isBlank(t, c) {
			return []change{contentOf(t, c, base64.StdEncoding.EncodeToString(certs[0].Raw))}
		}
	}
	if token := securityToken(s); token != xmltree.None && isBlank(t, token) {
		return []change{contentOf(t, token, base64.StdEncoding.EncodeToString(certs[0].Raw))}
	}
	return nil
}

// securityToken returns the BinarySecurityToken that KeyInfo refers to, or None.
func securityToken(s *signature) xmltree.Node {
	t := s.tree
	str := t.Child(s.keyInfo, nsWSSE, "SecurityTokenReference")
	if str == xmltree.None {
		return xmltree.None
	}
	ref := t.Child(str, nsWSSE, "Reference")
	if ref == xmltree.None {
		return xmltree.None
	}
	uri, _ := t.Get(ref, "URI")
	id, _, ok := uriID(uri)
	if !ok || id == "" {
		return xmltree.None
	}
	found := t.ByID(id)
	if len(found) != 1 || !t.Is(found[0], nsWSSE, "BinarySecurityToken") {
		return xmltree.None
	}
	return found[0]
}

// prefixOf returns the prefix of an element with its colon, "" if it has none.
func prefixOf(t *xmltree.Tree, n xmltree.Node) string {
	if p := t.Name(n).Prefix; p != "" {
		return p + ":"
	}
	return ""
}

// carried is the data about the signer and its time stamps that a signature contains.
type carried struct {
	certs   []*x509gost.Certificate
	crls    []*x509gost.RevocationList
	answers []*ocsp.Basic
	// named are the certificates of certs among which the signer is searched for.
	named []*x509gost.Certificate
	// before is how much there is before each unsigned property.
	before []amounts
}

type amounts struct{ certs, crls, answers int }

// found returns the data before the unsigned property at a place; -1: all.
func (c *carried) found(place int) sig.Found {
	if place < 0 || place >= len(c.before) {
		return sig.Found{Certificates: c.certs, CRLs: c.crls, OCSP: c.answers}
	}
	n := c.before[place]
	return sig.Found{Certificates: c.certs[:n.certs:n.certs], CRLs: c.crls[:n.crls:n.crls], OCSP: c.answers[:n.answers:n.answers]}
}

// readKeyInfo reads the certificates and CRLs of KeyInfo, then the ones of the XAdES properties
// CertificateValues, RevocationValues and TimeStampValidationData. An unreadable one is not an error of
// the signature: it matters only if it is needed.
func readKeyInfo(s *signature) (c carried, unreadable []*flaw) {
	t := s.tree
	looked, most, full := 0, maxCertificates, false
	read := func(n xmltree.Node) {
		kind, known := carriedKinds[t.Name(n).Local]
		if !known || !t.Is(n, kind.space, t.Name(n).Local) || full {
			return
		}
		if looked++; looked > most {
			full = true
			unreadable = append(unreadable, flawAt(t, n, codeUnreadable, "the signature has more than %d certificates and lists; the others were ignored", most))
			return
		}
		if err := c.add(t, n, kind.what); err != nil {
			unreadable = append(unreadable, flawAt(t, n, codeUnreadable, "%s", err))
		}
	}
	if s.keyInfo != xmltree.None {
		for data := range t.Elements(s.keyInfo) {
			if t.Is(data, nsDS, "X509Data") {
				for n := range t.Elements(data) {
					read(n)
				}
			}
		}
		if token := securityToken(s); token != xmltree.None {
			read(token)
		}
	}
	most = maxValues
	for _, n := range unsignedProperties(s) {
		c.before = append(c.before, amounts{len(c.certs), len(c.crls), len(c.answers)})
		parts := []xmltree.Node{n}
		if t.Is(n, nsLater, "TimeStampValidationData") || t.Is(n, nsLater, "AnyValidationData") {
			parts = slices.Collect(t.Elements(n))
		}
		for _, part := range parts {
			lists := []xmltree.Node{part}
			switch {
			case t.Is(part, nsXAdES, "CertificateValues"):
			case t.Is(part, nsXAdES, "RevocationValues"):
				lists = slices.Collect(t.Elements(part))
			default:
				continue
			}
			for _, list := range lists {
				for value := range t.Elements(list) {
					read(value)
				}
			}
		}
	}
	c.named = c.certs[:min(len(c.certs), maxCertificates)]
	return c, unreadable
}

// carriedKind is what an element with certificates or revocation data has.
type carriedKind uint8

const (
	aCertificate carriedKind = iota
	aList
	anAnswer
)

// carriedKinds are the elements that are read, by their names.
var carriedKinds = map[string]struct {
	space string
	what  carriedKind
}{
	"X509Certificate": {nsDS, aCertificate}, "X509CRL": {nsDS, aList}, "BinarySecurityToken": {nsWSSE, aCertificate},
	"EncapsulatedX509Certificate": {nsXAdES, aCertificate}, "EncapsulatedCRLValue": {nsXAdES, aList}, "EncapsulatedOCSPValue": {nsXAdES, anAnswer},
}

// issuerSerials yields what KeyInfo says of the signer's certificate by X509IssuerSerial.
func issuerSerials(s *signature) iter.Seq[*x509gost.IssuerSerial] {
	t := s.tree
	return func(yield func(*x509gost.IssuerSerial) bool) {
		if s.keyInfo == xmltree.None {
			return
		}
		for data := range t.Elements(s.keyInfo) {
			if !t.Is(data, nsDS, "X509Data") {
				continue
			}
			for n := range t.Elements(data) {
				if !t.Is(n, nsDS, "X509IssuerSerial") {
					continue
				}
				if id := textIssuerSerial(t, n); id != nil && !yield(id) {
					return
				}
			}
		}
	}
}

// maxListText is the limit for a CRL or an OCSP answer, in characters: enough for tens of
// thousands of entries.
const maxListText = 4 << 20

func (c *carried) add(t *xmltree.Tree, n xmltree.Node, what carriedKind) error {
	most := 2 * x509gost.MaxCertificate
	if what != aCertificate {
		most = maxListText
	}
	der, err := base64Text(t, n, most)
	if err != nil {
		var f *flaw
		if errors.As(err, &f) {
			return errors.New(f.text) // the caller adds the place
		}
		return err
	}
	b := t.Budget()
	if err := errors.Join(b.Spend(budget.Certificate+int64(len(der))), b.Hold(4*int64(len(der)))); err != nil {
		return err
	}
	switch what {
	case aList:
		list, err := x509gost.ParseRevocationList(der)
		if err == nil {
			c.crls = append(c.crls, list)
		}
		return err
	case anAnswer:
		// Some programs write the BasicOCSPResponse alone.
		basic, err := ocsp.ParseBasic(der)
		if r, whole := ocsp.Parse(der); whole == nil && r.Basic != nil {
			basic, err = r.Basic, nil
		}
		if err == nil {
			c.answers = append(c.answers, basic)
		}
		return err
	}
	cert, err := x509gost.ParseCertificate(der)
	if err == nil {
		c.certs = append(c.certs, cert)
	}
	return err
}
