// SPDX-License-Identifier: Apache-2.0

package pdf

import (
	"bytes"
	"crypto/x509"
	"slices"
	"strings"

	"tamga/sig"
)

// Flags of seed values that must be met (ISO 32000-1, tables 234 and 235).
const (
	seedFilter = 1 << iota
	seedSubFilter
	seedVersion
	seedReasons
	seedLegal
	seedRevocation
	seedDigest

	seedCertSubject   = 1
	seedCertIssuer    = 2
	seedCertPolicies  = 4
	seedCertSubjectDN = 8
	seedCertKeyUsage  = 32
)

// seed applies the seed values of a field: the demands of its author on a signature. It
// returns the certification level that they demand, 0 for none. A demand that this
// signature cannot meet is an error.
func (m *maker) seed(d *field) (certification int, err error) {
	f := m.file
	sv := f.resolveDict(d.dict.get("SV"))
	if sv == nil {
		return 0, nil
	}
	flags := f.intOf(sv.get("Ff"))
	must := func(flag int64) bool { return flags&flag != 0 }
	refused := func(what string) error {
		return &sig.ErrDocument{What: "Document", Text: "the signature field " + printable(textString(d.name)) + " demands " + what}
	}
	if filter, ok := f.resolve(sv.get("Filter")).(name); ok && must(seedFilter) && filter != "Adobe.PPKLite" {
		return 0, refused("the signature handler " + printable(filter) + ", but only Adobe.PPKLite is supported")
	}
	if list := f.resolveArray(sv.get("SubFilter")); must(seedSubFilter) && len(list) > 0 &&
		!slices.ContainsFunc(list, func(o object) bool { return f.resolve(o) == m.subFilter() }) {
		return 0, refused("one of the formats " + f.listed(list) + ", but PDFFormat=" + m.params.format + " is " + string(m.subFilter()))
	}
	if v, ok := real(f.resolve(sv.get("V"))); ok && must(seedVersion) && v > 2 {
		return 0, refused("seed values of an unknown version")
	}
	if list := f.resolveArray(sv.get("Reasons")); len(list) > 0 {
		allowed := f.texts(list)
		switch {
		case len(allowed) == 1 && allowed[0] == ".": // no reason may be given
			if m.params.reason != "" && must(seedReasons) {
				return 0, refused("that no PDFReason is given")
			}
		case slices.Contains(allowed, m.params.reason):
		case m.params.reason == "" && must(seedReasons) && len(allowed) == 1:
			m.params.reason = allowed[0]
		case must(seedReasons):
			return 0, refused("a PDFReason out of " + f.listed(list))
		}
	}
	if list := f.resolveArray(sv.get("DigestMethod")); len(list) > 0 && must(seedDigest) &&
		!slices.ContainsFunc(f.texts(list), func(s string) bool { return sameDigest(s, m.suite.Hash.Name) }) {
		return 0, refused("one of the digests " + f.listed(list) + ", but the certificate's key signs " + m.suite.Hash.Name)
	}
	if must(seedRevocation) && f.resolve(sv.get("AddRevInfo")) == true && m.params.level < sig.LevelLongTerm {
		return 0, refused("revocation data in the signature: PDFFormat=CAdES expected")
	}
	if ts := f.resolveDict(sv.get("TimeStamp")); f.intOf(ts.get("Ff"))&1 != 0 && m.params.level < sig.LevelTime {
		return 0, refused("a time stamp: PDFFormat=CAdEST or CAdES expected")
	}
	if err := m.seedCertificate(f.resolveDict(sv.get("Cert")), refused); err != nil {
		return 0, err
	}
	if mdp := f.resolveDict(sv.get("MDP")); mdp != nil {
		if n := f.intOf(mdp.get("P")); n >= 1 && n <= 3 {
			return int(n), nil
		} else if n == 0 && m.params.certification != 0 {
			return 0, refused("a signature without certification: PDFCertificationLevel=NOT_CERTIFIED expected")
		}
	}
	return 0, nil
}

// seedCertificate checks the demands on the signer's certificate.
func (m *maker) seedCertificate(d dict, refused func(string) error) error {
	f, cert := m.file, m.job.Certificate
	flags := f.intOf(d.get("Ff"))
	has := func(key name, is func(data []byte) bool) bool {
		list := f.resolveArray(d.get(key))
		return len(list) == 0 || slices.ContainsFunc(list, func(o object) bool { return is(f.textOf(o)) })
	}
	if flags&seedCertSubject != 0 && !has("Subject", func(der []byte) bool { return bytes.Equal(der, cert.Raw) }) {
		return refused("one of the certificates that it names, but the signer's is not among them")
	}
	issued := func(der []byte) bool {
		if bytes.Equal(der, cert.Raw) {
			return true
		}
		return slices.ContainsFunc(m.chain(), func(c []byte) bool { return bytes.Equal(der, c) })
	}
	if flags&seedCertIssuer != 0 && !has("Issuer", issued) {
		return refused("a certificate of one of the issuers that it names, but the signer's has another issuer")
	}
	if list := f.resolveArray(d.get("KeyUsage")); flags&seedCertKeyUsage != 0 && len(list) > 0 &&
		!slices.ContainsFunc(f.texts(list), func(s string) bool { return usageFits(cert.KeyUsage, s) }) {
		return refused("a certificate with another key usage")
	}
	if flags&(seedCertPolicies|seedCertSubjectDN) != 0 && (d.has("OID") || d.has("SubjectDN")) {
		return refused("policies or parts of a name in the certificate, which are not supported")
	}
	return nil
}

func (m *maker) chain() [][]byte {
	var list [][]byte
	for _, c := range m.job.Chain {
		list = append(list, c.Raw)
	}
	return list
}

// usageBits are the bits of keyUsage in the order of the characters.
var usageBits = []x509.KeyUsage{
	x509.KeyUsageDigitalSignature, x509.KeyUsageContentCommitment, x509.KeyUsageKeyEncipherment,
	x509.KeyUsageDataEncipherment, x509.KeyUsageKeyAgreement, x509.KeyUsageCertSign,
	x509.KeyUsageCRLSign, x509.KeyUsageEncipherOnly, x509.KeyUsageDecipherOnly,
}

// usageFits compares key usage with one character for each bit: 1 (must), 0 (must not) or
// X.
func usageFits(have x509.KeyUsage, want string) bool {
	for i, c := range want {
		if i < len(usageBits) && (c == '1' && have&usageBits[i] == 0 || c == '0' && have&usageBits[i] != 0) {
			return false
		}
	}
	return true
}

// sameDigest compares "SHA256" with "SHA-256".
func sameDigest(a, b string) bool {
	clean := func(s string) string {
		return strings.ToUpper(strings.NewReplacer("-", "", " ", "", ".", "").Replace(s))
	}
	return clean(a) == clean(b)
}

func (f *file) texts(list array) []string {
	out := make([]string, 0, len(list))
	for _, o := range list {
		out = append(out, readTextString(f.textOf(o)))
	}
	return out
}

// listed joins the first few values of a list from outside.
func (f *file) listed(list array) string {
	var parts []string
	for i, o := range list {
		if i == 5 {
			parts = append(parts, "...")
			break
		}
		parts = append(parts, printable(f.resolve(o)))
	}
	return strings.Join(parts, ", ")
}
