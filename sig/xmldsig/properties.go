// SPDX-License-Identifier: Apache-2.0

package xmldsig

import (
	"bytes"
	"errors"
	"slices"
	"strings"

	"tamga/pki/cms"
	"tamga/pki/suite"
	"tamga/pki/x509gost"
	"tamga/sig"
	"tamga/sig/xmltree"
)

// properties reads the XAdES properties and checks the signature by them. It uses only
// those that a reference of this signature covers unchanged.
func (v *verification) properties() {
	t := v.tree
	found := propertiesOf(v.sig)
	if len(found) == 0 {
		for _, r := range v.sig.refs {
			if r.kind == typeProperties {
				v.flaw(flawAt(t, r.node, codeProperties, "the reference URI=%s has the type of signed properties, but this signature has none", quote(r.uri)))
			}
		}
		return
	}
	if len(found) > 1 {
		v.flaw(flawAt(t, found[1], codeProperties, "the signature has QualifyingProperties twice"))
		return
	}
	q := found[0]
	if of, _ := t.Get(q, "Target"); v.sig.id == "" || of != "#"+v.sig.id {
		v.flaw(flawAt(t, q, codeProperties, "QualifyingProperties have the Target %s, not the signature that contains them", quote(of)))
		return
	}
	signed := t.Child(q, nsXAdES, "SignedProperties")
	if signed == xmltree.None {
		v.flaw(flawAt(t, q, codeProperties, "QualifyingProperties have no SignedProperties"))
		return
	}
	if !v.covered(signed) {
		v.flaw(flawAt(t, signed, codeProperties, "no reference of the signature covers its SignedProperties unchanged"))
		return
	}
	first := t.Child(signed, nsXAdES, "SignedSignatureProperties")
	named := first != xmltree.None && v.signedSignatureProperties(first)
	if v.dataObjectFormats(signed) && named {
		v.out.Level = xadesBES
	}
	v.timeStamps()
}

// unsignedProperties returns the unsigned properties of a signature in their order.
func unsignedProperties(s *signature) (list []xmltree.Node) {
	t := s.tree
	for _, q := range propertiesOf(s) {
		unsigned := t.Child(q, nsXAdES, "UnsignedProperties")
		if unsigned == xmltree.None {
			continue
		}
		if of := t.Child(unsigned, nsXAdES, "UnsignedSignatureProperties"); of != xmltree.None {
			list = slices.AppendSeq(list, t.Elements(of))
		}
	}
	return list
}

// dataObjectFormats reports whether the signed properties describe the formats of signed
// objects correctly (TS 101 903, 7.2.5, and EN 319 132-1, 5.2.4): each DataObjectFormat
// must refer to a Reference of this signature and must not be empty. A signature without
// any is XAdES-BES by TS 101 903, as Office and many services make it. It is not a
// baseline signature by EN 319 132-1, which requires one for each object.
func (v *verification) dataObjectFormats(signed xmltree.Node) bool {
	t := v.tree
	about := map[string]bool{}
	for _, r := range v.sig.refs {
		if r.id != "" {
			about["#"+r.id] = false
		}
	}
	right, any := true, false
	if list := t.Child(signed, nsXAdES, "SignedDataObjectProperties"); list != xmltree.None {
		for n := range t.Elements(list) {
			if !t.Is(n, nsXAdES, "DataObjectFormat") {
				continue
			}
			any = true
			of, _ := t.Get(n, "ObjectReference")
			_, known := about[of]
			says := false
			for _, local := range []string{"Description", "ObjectIdentifier", "MimeType"} {
				c := t.Child(n, nsXAdES, local)
				says = says || c != xmltree.None && !(isBlank(t, c) && strings.TrimSpace(t.StringValue(c)) == "")
			}
			switch {
			case !known:
				v.tell(flawAt(t, n, codeFormat, "DataObjectFormat refers to %s, which is no Reference of this signature; therefore the signature is not XAdES-BES", quote(of)), false)
				right = false
			case !says:
				v.tell(flawAt(t, n, codeFormat, "DataObjectFormat for %s is empty; MimeType, Description or ObjectIdentifier expected; therefore the signature is not XAdES-BES", quote(of)), false)
				right = false
			default:
				about[of] = t.Child(n, nsXAdES, "MimeType") != xmltree.None
			}
		}
	}
	for _, r := range v.sig.refs {
		if any && right && r.kind != typeProperties && !about["#"+r.id] && !v.nested {
			v.tell(flawAt(t, r.node, codeFormat, "no DataObjectFormat gives the MimeType of the reference URI=%s; a baseline signature of EN 319 132-1 would have one", quote(r.uri)), false)
			break
		}
	}
	return right
}

// covered reports whether a reference of the type of signed properties covers the whole
// element.
func (v *verification) covered(n xmltree.Node) bool {
	for r, to := range v.intact {
		if to == n && r.kind == typeProperties && r.isCanonical() {
			return true
		}
	}
	return false
}

// signedSignatureProperties reads the signing time and checks the signing certificate. It
// reports whether the properties name the signer's certificate.
func (v *verification) signedSignatureProperties(n xmltree.Node) bool {
	t := v.tree
	if at := t.Child(n, nsXAdES, "SigningTime"); at != xmltree.None {
		var ok bool
		if v.out.SigningTime, ok = claimed(t.StringValue(at)); !ok {
			v.tell(flawAt(t, at, codeProperties, "SigningTime is not a valid XML Schema time"), false)
		}
	}
	list := signingCertificateIn(t, n)
	if list == xmltree.None {
		v.add(codeNoSigning, "the signed properties do not name the signer's certificate; it could be replaced by another one with the same key", false)
		return false
	}
	weak := false
	for c := range t.Elements(list) {
		h, want, ok := v.certDigest(c)
		if v.budget().Spend(2*int64(len(v.out.Signer.Raw))) != nil {
			return false // the caller sees the error of the budget
		}
		if !ok || !bytes.Equal(v.out.Signer.Digest(h), want) {
			continue
		}
		if !weak { // each finding once
			v.issuerSerial(c)
		}
		if h.Weak() {
			weak = true
			continue
		}
		return true
	}
	if weak {
		v.add(codeSigningCert, "the signed properties name the signer's certificate by a digest that can be forged", false)
		return false
	}
	v.flaw(flawAt(t, list, codeSigningCert, "the signed properties name a different certificate than the one whose key made the value"))
	return false
}

// signingCertificateIn returns the element of SignedSignatureProperties that names the signer's
// certificate, or None.
func signingCertificateIn(t *xmltree.Tree, n xmltree.Node) xmltree.Node {
	if list := t.Child(n, nsXAdES, "SigningCertificateV2"); list != xmltree.None {
		return list
	}
	return t.Child(n, nsXAdES, "SigningCertificate")
}

// signingCertificates is signingCertificateIn for the properties of the signature, if its
// references cover them.
func (v *verification) signingCertificates() xmltree.Node {
	t := v.tree
	for _, q := range propertiesOf(v.sig) {
		signed := t.Child(q, nsXAdES, "SignedProperties")
		if signed == xmltree.None || !v.covered(signed) {
			continue
		}
		if n := t.Child(signed, nsXAdES, "SignedSignatureProperties"); n != xmltree.None {
			return signingCertificateIn(t, n)
		}
	}
	return xmltree.None
}

// certDigest reads the digest of a certificate in an element Cert. It returns false if there is
// none, or one by an unknown algorithm.
func (v *verification) certDigest(cert xmltree.Node) (h *suite.Hash, sum []byte, ok bool) {
	t := v.tree
	digest := t.Child(cert, nsXAdES, "CertDigest")
	if digest == xmltree.None {
		return nil, nil, false
	}
	method, value := t.Child(digest, nsDS, "DigestMethod"), t.Child(digest, nsDS, "DigestValue")
	if method == xmltree.None || value == xmltree.None {
		return nil, nil, false
	}
	algorithm, _ := t.Get(method, "Algorithm")
	h, known := suite.HashByXML(algorithm)
	sum, err := base64Text(t, value, maxValue)
	return h, sum, known && err == nil
}

// issuerSerial compares the issuer and the serial number beside a digest of the signer's
// certificate, in an element Cert, with those of the certificate.
func (v *verification) issuerSerial(cert xmltree.Node) {
	id, name, err := readIssuerSerial(v.tree, cert)
	if err != nil {
		v.tell(err, false)
		return
	}
	if id == nil || v.budget().Spend(id.Cost()) != nil {
		return // the caller sees the error of the budget
	}
	if f, other := cms.OtherIssuer(name, id, v.out.Signer); other {
		v.out.Findings = append(v.out.Findings, sig.OtherIssuer(f))
	}
}

// readIssuerSerial reads the issuer and the serial number in an element Cert, which are optional,
// and in DER in the properties of EN 319 132-1. name is that of the element around Cert.
func readIssuerSerial(t *xmltree.Tree, cert xmltree.Node) (id *x509gost.IssuerSerial, name string, err error) {
	if n := t.Child(cert, nsXAdES, "IssuerSerialV2"); n != xmltree.None {
		der, err := base64Text(t, n, 2*x509gost.MaxCertificate)
		if err == nil {
			id, err = x509gost.ParseIssuerSerial(der)
		}
		if err != nil {
			text := "it " + err.Error()
			if f := (*flaw)(nil); errors.As(err, &f) {
				text = f.text
			}
			return nil, "", flawAt(t, n, cms.CodeOtherIssuer, "IssuerSerialV2 was ignored: %s", text)
		}
		return id, "SigningCertificateV2", nil
	}
	n := t.Child(cert, nsXAdES, "IssuerSerial")
	if n == xmltree.None {
		return nil, "", nil
	}
	if id = textIssuerSerial(t, n); id == nil {
		return nil, "", flawAt(t, n, cms.CodeOtherIssuer, "IssuerSerial was ignored: it has no X509IssuerName or no X509SerialNumber")
	}
	return id, "SigningCertificate", nil
}

// textIssuerSerial reads X509IssuerName and X509SerialNumber in an element. It returns nil if one is
// missing.
func textIssuerSerial(t *xmltree.Tree, n xmltree.Node) *x509gost.IssuerSerial {
	name, number := t.Child(n, nsDS, "X509IssuerName"), t.Child(n, nsDS, "X509SerialNumber")
	if name == xmltree.None || number == xmltree.None {
		return nil
	}
	return x509gost.TextIssuerSerial(t.StringValue(name), t.StringValue(number))
}
