// SPDX-License-Identifier: Apache-2.0

package cades_test

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"testing"

	"tamga/internal/judge"
	"tamga/internal/sigtest"
	"tamga/pki/cms"
	"tamga/pki/suite"
	"tamga/pki/x509gost"
	"tamga/sig"
	"tamga/sig/cades"
)

// change returns message with one bit of the first occurrence of part changed.
func change(t testing.TB, message, part []byte) []byte {
	t.Helper()
	i := bytes.Index(message, part)
	if i < 0 {
		t.Fatal("the part to change is not in the message")
	}
	out := bytes.Clone(message)
	out[i+len(part)/2] ^= 1
	return out
}

// broken is one message with a changed bit, and its content.
type broken struct {
	name             string
	message, content []byte
	code             string
}

// breakAll changes a bit in everything that a signature covers.
func breakAll(t testing.TB, p *sigtest.Party, mode int) []broken {
	t.Helper()
	message := sign(t, p, mode)
	m, err := cms.Parse(bytes.NewReader(message), int64(len(message)))
	if err != nil {
		t.Fatal(err)
	}
	si := m.Signers[0]
	digest, _, _ := si.SignedAttribute(cms.OIDMessageDigest)
	signingTime, _, _ := si.SignedAttribute(cms.OIDSigningTime)
	list := []broken{
		{"content", message, change(t, text, text), cms.CodeMessageDigest},
		{"message-digest", change(t, message, digest[2:]), text, cms.CodeMessageDigest},
		{"signing-time", change(t, message, signingTime[2:8]), text, cms.CodeSignature},
		{"value", change(t, message, si.Signature), text, cms.CodeSignature},
	}
	if !modes[mode].detached {
		list[0] = broken{"content", change(t, message, text), nil, cms.CodeMessageDigest}
		for i := range list {
			list[i].content = nil
		}
	}
	return list
}

func TestChangedByte(t *testing.T) {
	for _, s := range suite.All() {
		root := sigtest.Root(t, s)
		signer := root.Signer(t, s, "Signer")
		for i := range modes {
			for _, b := range breakAll(t, signer, i) {
				r := verify(t, b.message, b.content, root)
				if codes := sigtest.Codes(r); r.Passed() || !slices.Contains(codes, b.code) {
					t.Errorf("%s %s, %s changed: %v, want %s", s.Name, modes[i].name, b.name, codes, b.code)
				}
			}
		}
	}
}

// Any changed byte of a whole message causes an error or a finding, or is harmless
// because it is not signed. It never causes a crash.
func TestEveryByteChanged(t *testing.T) {
	s := suite.ECDSAP256
	root := sigtest.Root(t, s)
	message := sign(t, root.Signer(t, s, "Signer"), 0)
	m, err := cms.Parse(bytes.NewReader(message), int64(len(message)))
	if err != nil {
		t.Fatal(err)
	}
	signed := m.Signers[0].RawSignedAttrs[1:]
	start := bytes.Index(message, signed)
	for i := range message {
		b := bytes.Clone(message)
		b[i] ^= 0x41
		r, err := cades.New().Verify(context.Background(), &sig.Check{
			Document: sigtest.Document(b), Original: sigtest.Document(text),
			Roots: []*x509gost.Certificate{root.Certificate}, At: sigtest.Time,
		})
		inContent := i >= int(m.Content[0].Offset) && i < int(m.Content[0].Offset+m.Content[0].Length)
		if (inContent || i >= start && i < start+len(signed)) && err == nil && r.Passed() {
			t.Errorf("byte %d is changed and the signature valid", i)
		}
	}
}

// build makes a message from parts, so that each rule can be broken separately.
func build(t testing.TB, p *sigtest.Party, contentType x509gost.OID, certs [][]byte, attrs ...cms.Attribute) []byte {
	t.Helper()
	set := cms.BuildSignedAttributes(attrs...)
	d := p.Suite.Hash.Digest(set)
	if attrs == nil {
		set, d = nil, p.Suite.Hash.Digest(text)
	}
	head, tail, err := cms.Encode(contentType, int64(len(text)), certs, nil, []cms.Signer{{
		Certificate: p.Certificate, Suite: p.Suite, SignedAttrs: set, Signature: p.Sign(t, d),
	}})
	if err != nil {
		t.Fatal(err)
	}
	return slices.Concat(head, text, tail)
}

func TestRules(t *testing.T) {
	s := suite.GOST2012x256
	root := sigtest.Root(t, s)
	signer, other := root.Signer(t, s, "Signer"), root.Signer(t, s, "Other")
	certs := [][]byte{signer.Certificate.Raw}
	plain := cms.ContentType(cms.OIDData)
	digest := cms.MessageDigest(s.Hash.Digest(text))
	signingTime, err := cms.SigningTime(sigtest.Time)
	if err != nil {
		t.Fatal(err)
	}
	id := cms.SigningCertificateV2(signer.Certificate, s.Hash)
	foreign := cms.SigningCertificateV2(other.Certificate, s.Hash)
	two := cms.NewAttribute(cms.OIDMessageDigest, digest.Values[0], digest.Values[0])
	wrapped := cms.NewAttribute(cms.OIDSigningCertificateV2, append([]byte{4, byte(len(id.Values[0]))}, id.Values[0]...))
	v1 := cms.NewAttribute(cms.OIDSigningCertificate, essV1(signer.Certificate))
	foreignV1 := cms.NewAttribute(cms.OIDSigningCertificate, essV1(other.Certificate))
	// The digest of the right certificate with the issuer and number of another one.
	issuerSerial := cms.NewAttribute(cms.OIDSigningCertificateV2, bytes.Replace(id.Values[0],
		slices.Concat([]byte{2, 2}, signer.Certificate.SerialNumber), slices.Concat([]byte{2, 2}, other.Certificate.SerialNumber), 1))
	twoNames := cms.NewAttribute(cms.OIDContentType, plain.Values[0], plain.Values[0])
	tstInfo := x509gost.OID{1, 2, 840, 113549, 1, 9, 16, 1, 4}

	tests := []struct {
		name    string
		message []byte
		codes   []string // fatal
		level   string
	}{
		{"all in order", build(t, signer, cms.OIDData, certs, plain, digest, signingTime, id), nil, "BES"},
		{"no attributes", build(t, signer, cms.OIDData, certs), nil, "CMS"},
		{"no signing-certificate-v2", build(t, signer, cms.OIDData, certs, plain, digest), nil, "CMS"},
		{"signing-certificate v1", build(t, signer, cms.OIDData, certs, plain, digest, v1), nil, "CMS"},
		{"both signing certificates", build(t, signer, cms.OIDData, certs, plain, digest, v1, id), nil, "BES"},
		{"v1 names another certificate", build(t, signer, cms.OIDData, certs, plain, digest, foreignV1, id), []string{cms.CodeSigningCertificate}, "CMS"},
		{"v2 names another certificate", build(t, signer, cms.OIDData, certs, plain, digest, v1, foreign), []string{cms.CodeSigningCertificate}, "CMS"},
		{"other content type", build(t, signer, tstInfo, certs, cms.ContentType(tstInfo), digest, id), nil, "BES"},
		{"no attributes, other content type", build(t, signer, tstInfo, certs), []string{cms.CodeAttributesMissing}, "CMS"},
		{"content-type differs", build(t, signer, tstInfo, certs, plain, digest, id), []string{cms.CodeContentType}, "BES"},
		{"no content-type", build(t, signer, cms.OIDData, certs, digest, id), []string{cms.CodeContentType}, "BES"},
		{"no message-digest", build(t, signer, cms.OIDData, certs, plain, id), []string{cms.CodeMessageDigestForm}, "BES"},
		{"two digest values", build(t, signer, cms.OIDData, certs, plain, two, id), []string{cms.CodeMessageDigestForm}, "BES"},
		{"two digest attributes", build(t, signer, cms.OIDData, certs, plain, digest, digest, id), []string{cms.CodeMessageDigestForm}, "BES"},
		{"another certificate named", build(t, signer, cms.OIDData, certs, plain, digest, foreign), []string{cms.CodeSigningCertificate}, "CMS"},
		{"another issuerSerial", build(t, signer, cms.OIDData, certs, plain, digest, issuerSerial), nil, "BES"},
		{"two content types", build(t, signer, cms.OIDData, certs, twoNames, digest, id), []string{cms.CodeContentType}, "BES"},
		{"two signing times", build(t, signer, cms.OIDData, certs, plain, digest, signingTime, signingTime, id), []string{cms.CodeSigningTime}, "BES"},
		{"bytes around signing-certificate-v2", build(t, signer, cms.OIDData, certs, plain, digest, wrapped), []string{cms.CodeSigningCertificate}, "CMS"},
		{"two signing certificates", build(t, signer, cms.OIDData, certs, plain, digest, id, id), []string{cms.CodeSigningCertificate}, "CMS"},
		{"no certificate", build(t, signer, cms.OIDData, nil, plain, digest, id), []string{"certificate-missing"}, "CMS"},
	}
	for _, test := range tests {
		r := verify(t, test.message, nil, root)
		if codes := sigtest.Codes(r); !slices.Equal(codes, test.codes) || r.Signatures[0].Level != test.level {
			t.Errorf("%s: %v, level %s; want %v, %s", test.name, codes, r.Signatures[0].Level, test.codes, test.level)
		}
		// EN 319 102-1, 5.2.3.4: the digest decides, and the reader is warned.
		if warned := slices.Contains(r.Headlines(), "another issuer or serial number is named"); warned != (test.name == "another issuerSerial") {
			t.Errorf("%s: warned %t", test.name, warned)
		}
	}
}

// encoded makes a message whose signed attributes are stored as one sequence of bytes and signed
// as another. Both are SETs.
func encoded(t testing.TB, p *sigtest.Party, stored, signed []byte) []byte {
	t.Helper()
	head, tail, err := cms.Encode(cms.OIDData, int64(len(text)), [][]byte{p.Certificate.Raw}, nil, []cms.Signer{{
		Certificate: p.Certificate, Suite: p.Suite, SignedAttrs: bytes.Clone(stored), Signature: p.Sign(t, p.Suite.Hash.Digest(signed)),
	}})
	if err != nil {
		t.Fatal(err)
	}
	return slices.Concat(head, text, tail)
}

// TestSignedAttributesNotInDER: a value over the attributes as they are stored, if that is not
// DER, or over their DER where they are stored otherwise, is indeterminate and named. Any other
// value fails. OpenSSL and Bouncy Castle differ about most of them.
func TestSignedAttributesNotInDER(t *testing.T) {
	s := suite.RSASHA256
	root := sigtest.Root(t, s)
	p := root.Signer(t, s, "Signer")
	digest, plain := cms.MessageDigest(s.Hash.Digest(text)), cms.ContentType(cms.OIDData)
	id := cms.SigningCertificateV2(p.Certificate, s.Hash)
	own := func(value ...byte) cms.Attribute { return cms.NewAttribute(x509gost.OID{1, 2, 643, 7}, value) }
	set := func(list ...cms.Attribute) []byte {
		var body []byte
		for _, a := range list {
			body = append(body, a.Raw...)
		}
		return element(0x31, body)
	}
	der := cms.BuildSignedAttributes(digest, plain, id)
	longer := func(set []byte, attr cms.Attribute) []byte { // the length of one attribute takes one byte more
		at := bytes.Index(set, attr.Raw)
		if at < 0 || attr.Raw[1] >= 0x80 {
			t.Fatal("no attribute of a short length")
		}
		body := slices.Concat(set[headerOf(set):at], []byte{0x30, 0x81}, attr.Raw[1:], set[at+len(attr.Raw):])
		return element(0x31, body)
	}
	endless := func(set []byte, attr cms.Attribute) []byte {
		at := bytes.Index(set, attr.Raw)
		body := slices.Concat(set[headerOf(set):at], []byte{0x30, 0x80}, attr.Raw[2:], []byte{0, 0}, set[at+len(attr.Raw):])
		return element(0x31, body)
	}
	with := func(a cms.Attribute) []byte { return cms.BuildSignedAttributes(digest, plain, id, a) }
	j := &jury{openssl: judge.OpenSSL(t), castle: judge.BouncyCastle(t)}
	for name, c := range map[string]struct {
		stored, signed []byte
		code           string
		verdict        sig.Verdict
	}{
		"in order":                       {der, der, "", sig.Passed},
		"signed as stored":               {set(digest, plain, id), set(digest, plain, id), cms.CodeOrder, sig.Indeterminate},
		"signed in order":                {set(digest, plain, id), der, cms.CodeStoredOrder, sig.Indeterminate},
		"in a third order":               {set(digest, plain, id), set(id, digest, plain), cms.CodeSignature, sig.Failed},
		"long length, signed as DER":     {longer(der, plain), der, cms.CodeNotDER, sig.Indeterminate},
		"long length, signed as stored":  {longer(der, plain), longer(der, plain), cms.CodeSignature, sig.Failed},
		"indefinite, signed as DER":      {endless(der, plain), der, cms.CodeNotDER, sig.Indeterminate},
		"boolean of 01":                  {with(own(1, 1, 1)), with(own(1, 1, 1)), cms.CodeNotDER, sig.Indeterminate},
		"boolean of FF":                  {with(own(1, 1, 0xff)), with(own(1, 1, 0xff)), "", sig.Passed},
		"number with a zero":             {with(own(2, 2, 0, 1)), with(own(2, 2, 0, 1)), cms.CodeNotDER, sig.Indeterminate},
		"set inside not in order":        {with(own(0x31, 6, 2, 1, 2, 2, 1, 1)), with(own(0x31, 6, 2, 1, 2, 2, 1, 1)), cms.CodeNotDER, sig.Indeterminate},
		"set inside in order":            {with(own(0x31, 6, 2, 1, 1, 2, 1, 2)), with(own(0x31, 6, 2, 1, 1, 2, 1, 2)), "", sig.Passed},
		"bits after the end":             {with(own(3, 2, 7, 0xff)), with(own(3, 2, 7, 0xff)), cms.CodeNotDER, sig.Indeterminate},
		"identifier with a leading zero": {with(own(6, 3, 0x2a, 0x80, 1)), with(own(6, 3, 0x2a, 0x80, 1)), cms.CodeNotDER, sig.Indeterminate},
	} {
		message := encoded(t, p, c.stored, c.signed)
		r := verify(t, message, nil, root)
		one := r.Signatures[0]
		if r.Verdict() != c.verdict || c.code != "" && !slices.Contains(sigtest.Codes(r), c.code) {
			t.Errorf("%s: %v %v %+v", name, r.Verdict(), sigtest.Codes(r), one.Findings)
		}
		refused := 0
		for who, err := range j.ask(t, message, nil, root) {
			if err != nil && who != "ours" {
				refused++
			}
		}
		if c.verdict == sig.Passed && refused != 0 || c.verdict == sig.Failed && refused != 2 {
			t.Errorf("%s: %d of two programs refuse", name, refused)
		}
	}
	// The same message with a changed value fails, whatever its encoding.
	message := encoded(t, p, longer(der, plain), der)
	message[len(message)-1] ^= 1
	if r := verify(t, message, nil, root); r.Verdict() != sig.Failed {
		t.Errorf("changed: %v", r.Verdict())
	}
}

// TestAlgorithmProtection checks the attribute cms-algorithm-protection (RFC 6211) of signatures
// and countersignatures. Bouncy Castle compares it as well.
func TestAlgorithmProtection(t *testing.T) {
	s := suite.RSASHA256
	root := sigtest.Root(t, s)
	p := root.Signer(t, s, "Signer")
	digest, plain := cms.MessageDigest(s.Hash.Digest(text)), cms.ContentType(cms.OIDData)
	id := cms.SigningCertificateV2(p.Certificate, s.Hash)
	message := encoded(t, p, cms.BuildSignedAttributes(digest, plain, id), cms.BuildSignedAttributes(digest, plain, id))
	info := mustParse(t, message).Signers[0]
	hash, signature := info.DigestAlgorithm.Raw, info.SignatureAlgorithm.Raw
	identifier := hash[2:13] // of SHA-256
	bare := element(0x30, identifier)
	null := element(0x30, identifier, []byte{5, 0})
	implicit := func(algorithm []byte) []byte { return slices.Concat([]byte{0xa1}, algorithm[1:]) }
	sha512 := element(0x30, []byte{6, 9, 0x60, 0x86, 0x48, 1, 0x65, 3, 4, 2, 3}, []byte{5, 0})
	ecdsa := element(0x30, []byte{6, 8, 0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 3, 2})
	castle := judge.BouncyCastle(t)
	for name, c := range map[string]struct {
		values  [][]byte
		passes  bool
		castles bool // the verdict of Bouncy Castle
	}{
		"right":                       {[][]byte{element(0x30, hash, implicit(signature))}, true, true},
		"without NULL":                {[][]byte{element(0x30, bare, implicit(signature))}, true, true},
		"with NULL":                   {[][]byte{element(0x30, null, implicit(signature))}, true, true},
		"another digest":              {[][]byte{element(0x30, sha512, implicit(signature))}, false, false},
		"another signature algorithm": {[][]byte{element(0x30, hash, implicit(ecdsa))}, false, false},
		"other parameters":            {[][]byte{element(0x30, element(0x30, identifier, []byte{2, 1, 1}), implicit(signature))}, false, false},
		"no signature algorithm":      {[][]byte{element(0x30, hash)}, false, false},
		"a code's algorithm":          {[][]byte{element(0x30, hash, slices.Concat([]byte{0xa2}, signature[1:]))}, false, false},
		"twice":                       {[][]byte{element(0x30, hash, implicit(signature)), element(0x30, hash, implicit(signature))}, false, false},
		"not a SEQUENCE":              {[][]byte{{5, 0}}, false, false},
	} {
		set := cms.BuildSignedAttributes(digest, plain, id, cms.NewAttribute(cms.OIDAlgorithmProtection, c.values...))
		message := encoded(t, p, set, set)
		r := verify(t, message, nil, root)
		if want := map[bool]sig.Verdict{true: sig.Passed, false: sig.Failed}[c.passes]; r.Verdict() != want ||
			!c.passes && !slices.Contains(sigtest.Codes(r), cms.CodeProtection) {
			t.Errorf("%s: %v %v", name, r.Verdict(), sigtest.Codes(r))
		}
		if err := castle.VerifyCMS(message, nil, root.PEM()); (err == nil) != c.castles {
			t.Errorf("%s: Bouncy Castle: %v", name, err)
		}
		if !c.passes {
			// The same attribute in a countersignature: its digest is that of the value.
			counter := s.Hash.Digest(info.Signature)
			set := cms.BuildSignedAttributes(cms.MessageDigest(counter), id, cms.NewAttribute(cms.OIDAlgorithmProtection, c.values...))
			inner := mustParse(t, encoded(t, p, set, set)).Signers[0].Raw
			both := unsigned(t, encoded(t, p, cms.BuildSignedAttributes(digest, plain, id), cms.BuildSignedAttributes(digest, plain, id)), 0,
				func([]cms.Attribute) []cms.Attribute {
					return []cms.Attribute{cms.NewAttribute(cms.OIDCountersignature, inner)}
				})
			r := verify(t, both, nil, root)
			if len(r.Signatures[0].Countersigners) != 1 || r.Signatures[0].Countersigners[0].Own() != sig.Failed {
				t.Errorf("%s: countersignature %+v", name, r.Signatures[0].Countersigners)
			}
		}
	}
}

// TestOtherStringType: the issuer in ESSCertIDv2 and in the signer's identifier may have
// another string type, another letter case and other spaces than in the certificate.
// Another name is a warning in ESSCertIDv2, and means another certificate in the identifier.
func TestOtherStringType(t *testing.T) {
	s := suite.GOST2012x256
	root := sigtest.Root(t, s)
	p := root.Authority(t, "Authority").Signer(t, s, "Signer")
	c := p.Certificate
	digest, plain := cms.MessageDigest(s.Hash.Digest(text)), cms.ContentType(cms.OIDData)
	for name, holds := range map[string]bool{"\x0c\x09Authority": true, "\x13\x09Authority": true, "\x16\x09AUTHORITY": true, "\x13\x09Authoritz": false} {
		issuer := bytes.Replace(c.RawIssuer, []byte("\x0c\x09Authority"), []byte(name), 1)
		if !bytes.Contains(issuer, []byte(name)) {
			t.Fatalf("%x", c.RawIssuer)
		}
		as := &x509gost.Certificate{Raw: c.Raw, RawIssuer: issuer, SerialNumber: c.SerialNumber}
		set := cms.BuildSignedAttributes(digest, plain, cms.SigningCertificateV2(as, s.Hash))
		for _, sid := range []*x509gost.Certificate{c, as} {
			head, tail, err := cms.Encode(cms.OIDData, int64(len(text)), [][]byte{c.Raw}, nil, []cms.Signer{{
				Certificate: sid, Suite: s, SignedAttrs: bytes.Clone(set), Signature: p.Sign(t, s.Hash.Digest(set)),
			}})
			if err != nil {
				t.Fatal(err)
			}
			r, err := cades.New().Verify(context.Background(), &sig.Check{
				Document: sigtest.Document(slices.Concat(head, text, tail)), Roots: []*x509gost.Certificate{root.Certificate},
				Intermediates: p.Chain, At: sigtest.Time,
			})
			if err != nil || r.Passed() != (holds || sid == c) {
				t.Errorf("%q: %v %v", name, err, sigtest.Codes(r))
			}
			if warned := slices.Contains(r.Headlines(), "another issuer or serial number is named"); warned != (!holds && sid == c) {
				t.Errorf("%q: warned %t", name, warned)
			}
		}
	}
}

// TestPaddedMessage: zero bytes after a message are noted, also after one of indefinite
// length. The verified data stays the same.
func TestPaddedMessage(t *testing.T) {
	s := suite.GOST2012x256
	root := sigtest.Root(t, s)
	p := root.Signer(t, s, "Signer")
	message := sign(t, p, 0)
	for _, n := range []int{1, 4095, 4096, 10000} {
		r := verify(t, append(bytes.Clone(message), make([]byte, n)...), nil, root)
		if !r.Passed() || !slices.ContainsFunc(r.Findings, func(f sig.Finding) bool { return f.Code == "message-padding" }) {
			t.Errorf("%d zeros: %+v", n, r)
		}
	}
	bad := append(bytes.Clone(message), 0, 0, 1)
	if _, err := cades.New().Verify(context.Background(), &sig.Check{Document: sigtest.Document(bad), At: sigtest.Time}); err == nil {
		t.Error("a message followed by other bytes is accepted")
	}
}

// TestBrokenCountersignature: a broken countersignature fails the file, by every suite
// and at every depth, although the signature under it is valid. A malformed one and one
// that is nested too deeply fail it too.
func TestBrokenCountersignature(t *testing.T) {
	for _, s := range suite.All() {
		root := sigtest.Root(t, s)
		signer := root.Signer(t, s, "Signer")
		message := sign(t, signer, 0)
		at := "0"
		for _, name := range []string{"First", "Second", "Third"} {
			message = sigtest.Make(t, cades.New(), root.Signer(t, s, name), &sig.Job{Document: sigtest.Document(message),
				Params: sig.Params{"CmsSignatureType": "Countersign", "SignatureIndex": at}})
			at += ".0"
		}
		if r := verify(t, message, nil, root); !r.Passed() {
			t.Fatalf("%s: %+v", s.Name, r)
		}
		info := mustParse(t, message).Signers[0]
		for depth := 1; depth <= 3; depth++ {
			inner, err := info.Countersignatures()
			if err != nil || len(inner) != 1 {
				t.Fatalf("%s: %v", s.Name, err)
			}
			info = inner[0]
			digest, _, _ := info.SignedAttribute(cms.OIDMessageDigest)
			for what, part := range map[string][]byte{"value": info.Signature, "digest": digest} {
				r := verify(t, change(t, message, part), nil, root)
				if r.Verdict() != sig.Failed || r.Signatures[0].Own() != sig.Passed || r.Signatures[0].Passed() {
					t.Errorf("%s: %s of depth %d: %v", s.Name, what, depth, r.Verdict())
				}
			}
		}
		for what, value := range map[string][]byte{"no SignerInfo": {0x30, 0}, "an OCTET STRING": {4, 0}} {
			r := verify(t, unsigned(t, message, 0, func([]cms.Attribute) []cms.Attribute {
				return []cms.Attribute{cms.NewAttribute(cms.OIDCountersignature, value)}
			}), nil, root)
			if r.Verdict() != sig.Failed {
				t.Errorf("%s: %s: %v", s.Name, what, r.Verdict())
			}
		}
	}
}

// TestDeepCountersignatures: countersignatures are read and checked at every depth that
// can be written. The innermost one counts.
func TestDeepCountersignatures(t *testing.T) {
	s := suite.GOST2012x256
	root := sigtest.Root(t, s)
	p := root.Signer(t, s, "Signer")
	for depth := 1; depth <= cms.MaxCountersignatures+3; depth++ {
		for _, broken := range []bool{false, true} {
			// From the outside in: each is over the value of the one before.
			var sets, values [][]byte
			for i := range depth + 1 {
				target, attrs := text, []cms.Attribute{cms.SigningCertificateV2(p.Certificate, s.Hash)}
				if i == 0 {
					attrs = append(attrs, cms.ContentType(cms.OIDData))
				} else {
					target = values[i-1]
				}
				set := cms.BuildSignedAttributes(append(attrs, cms.MessageDigest(s.Hash.Digest(target)))...)
				sets, values = append(sets, set), append(values, p.Sign(t, s.Hash.Digest(set)))
			}
			if broken {
				values[depth][5] ^= 1
			}
			var counter []cms.Attribute
			for i := depth; i > 0; i-- {
				one := cms.Signer{Certificate: p.Certificate, Suite: s, SignedAttrs: bytes.Clone(sets[i]), Signature: values[i], UnsignedAttrs: counter}
				counter = []cms.Attribute{cms.NewAttribute(cms.OIDCountersignature, one.Marshal())}
			}
			head, tail, err := cms.Encode(cms.OIDData, int64(len(text)), [][]byte{p.Certificate.Raw}, nil, []cms.Signer{{
				Certificate: p.Certificate, Suite: s, SignedAttrs: bytes.Clone(sets[0]), Signature: values[0], UnsignedAttrs: counter,
			}})
			if (err != nil) != (depth > cms.MaxCountersignatures) {
				t.Errorf("%d deep are written: %v", depth, err)
			}
			if err != nil {
				continue
			}
			r, err := cades.New().Verify(context.Background(), &sig.Check{
				Document: sigtest.Document(slices.Concat(head, text, tail)), Roots: []*x509gost.Certificate{root.Certificate}, At: sigtest.Time,
			})
			if err != nil || r.Passed() == broken || broken && r.Verdict() != sig.Failed {
				t.Errorf("%d deep, broken %v: %v %v", depth, broken, err, r)
			}
		}
	}
}

// TestTrustNeedsAnchor: a trust anchor with the issuer's name but another key does not
// match, and a path without a trust anchor is not reported.
func TestTrustNeedsAnchor(t *testing.T) {
	w := newWorld(t, suite.GOST2012x256)
	message := w.make(t, w.signer, "T", &sig.Job{Document: sigtest.Document(text)})
	namesake := sigtest.Root(t, suite.GOST2012x512).Authority(t, "Test Root "+suite.GOST2012x256.Name)
	if !namesake.Certificate.Subject.Equal(w.root.Certificate.Subject) {
		t.Fatal("not of one name")
	}
	for name, roots := range map[string][]*x509gost.Certificate{"none": nil, "a namesake": {namesake.Certificate}} {
		r, err := cades.New().Verify(context.Background(), &sig.Check{Document: sigtest.Document(message), Roots: roots, At: sigtest.Time})
		if err != nil {
			t.Fatal(err)
		}
		s := &r.Signatures[0]
		if s.Trusted() || len(s.Chain) > 0 || s.TimeStamps[0].Trusted() || len(s.TimeStamps[0].Chain) > 0 || r.Verdict() != sig.Indeterminate {
			t.Errorf("%s: trusted %v, chain %d; stamp trusted %v, chain %d; %v", name, s.Trusted(), len(s.Chain), s.TimeStamps[0].Trusted(), len(s.TimeStamps[0].Chain), r.Verdict())
		}
	}
}

// essV1 is a SigningCertificate with one ESSCertID: SHA-1 only.
func essV1(c *x509gost.Certificate) []byte {
	sum := c.Digest(suite.SHA1)
	return slices.Concat([]byte{0x30, 26, 0x30, 24, 0x30, 22, 0x04, 20}, sum)
}

func TestSignedByAnother(t *testing.T) {
	s := suite.GOST2012x256
	root, foreign := sigtest.Root(t, s), sigtest.Root(t, suite.GOST2001)
	signer, other := root.Signer(t, s, "Signer"), root.Signer(t, s, "Other")

	t.Run("key of another", func(t *testing.T) {
		job := &sig.Job{Document: sigtest.Document(text), Certificate: signer.Certificate, Chain: signer.Chain, Time: sigtest.Time}
		prepared, err := cades.New().Prepare(t.Context(), job)
		if err != nil {
			t.Fatal(err)
		}
		result, err := cades.New().Finish(t.Context(), job, prepared.State, other.Sign(t, prepared.Digest))
		if err != nil {
			t.Fatal(err)
		}
		var forged bytes.Buffer
		if _, err := result.WriteTo(&forged); err != nil {
			t.Fatal(err)
		}
		if codes := sigtest.Codes(verify(t, forged.Bytes(), nil, root)); !slices.Contains(codes, cms.CodeSignature) {
			t.Error(codes)
		}
	})
	t.Run("unknown root", func(t *testing.T) {
		if r := verify(t, sign(t, signer, 0), nil, foreign); r.Passed() || len(r.Signatures[0].Chain) != 0 {
			t.Errorf("valid without a trust anchor: %+v", r.Signatures[0])
		}
	})
	t.Run("expired", func(t *testing.T) {
		r, err := cades.New().Verify(context.Background(), &sig.Check{
			Document: sigtest.Document(sign(t, signer, 0)),
			Roots:    []*x509gost.Certificate{root.Certificate}, At: sigtest.Time.AddDate(20, 0, 0),
		})
		if err != nil || r.Passed() {
			t.Error("valid after the certificate's end", err)
		}
	})
	t.Run("key for certificates only", func(t *testing.T) {
		if codes := sigtest.Codes(verify(t, sign(t, root, 0), nil, root)); !slices.Equal(codes, []string{"certificate-usage"}) {
			t.Error(codes)
		}
	})
	t.Run("suites mixed", func(t *testing.T) {
		// A 256-bit key of 2012 in a message that names 2001 and 34.11-94.
		mixed := *signer
		mixed.Suite = suite.GOST2001
		digest := cms.MessageDigest(suite.GOST94.Digest(text))
		message := build(t, &mixed, cms.OIDData, [][]byte{signer.Certificate.Raw}, cms.ContentType(cms.OIDData), digest)
		if codes := sigtest.Codes(verify(t, message, nil, root)); !slices.Contains(codes, cms.CodeAlgorithmMismatch) {
			t.Error(codes)
		}
	})
	t.Run("revoked", func(t *testing.T) {
		der, err := x509gost.CreateRevocationList(&x509gost.CRLTemplate{
			ThisUpdate: sigtest.Time.AddDate(0, 0, -1), NextUpdate: sigtest.Time.AddDate(0, 0, 1), Number: []byte{1},
			Revoked: []x509gost.RevokedEntry{{SerialNumber: signer.Certificate.SerialNumber, At: sigtest.Time.AddDate(0, 0, -2), Reason: 1}},
		}, root.Certificate, s, x509gost.SignWith(sigtest.Random(9), root.Key, s))
		if err != nil {
			t.Fatal(err)
		}
		list, err := x509gost.ParseRevocationList(der)
		if err != nil {
			t.Fatal(err)
		}
		r, err := cades.New().Verify(context.Background(), &sig.Check{
			Document: sigtest.Document(sign(t, signer, 0)), At: sigtest.Time,
			Roots: []*x509gost.Certificate{root.Certificate}, CRLs: []*x509gost.RevocationList{list},
		})
		if err != nil || r.Passed() {
			t.Errorf("valid although revoked: %v", err)
		}
	})
}

func TestQuestions(t *testing.T) {
	s := suite.GOST2012x256
	root := sigtest.Root(t, s)
	signer := root.Signer(t, s, "Signer")
	attached, detached := sign(t, signer, 0), sign(t, signer, 1)
	good, other := s.Hash.Digest(text), s.Hash.Digest(text[1:])
	sha := suite.SHA256.Digest(text)
	short := suite.Digest{Hash: s.Hash, Sum: good.Sum[1:]}
	ask := func(c sig.Check) (*sig.Report, error) {
		c.Roots, c.At = []*x509gost.Certificate{root.Certificate}, sigtest.Time
		return cades.New().Verify(context.Background(), &c)
	}
	tests := []struct {
		name   string
		check  sig.Check
		codes  []string
		faults []string
	}{
		{"detached by hash", sig.Check{Document: sigtest.Document(detached), Hash: &good}, nil, nil},
		{"detached by a wrong hash", sig.Check{Document: sigtest.Document(detached), Hash: &other}, []string{cms.CodeMessageDigest}, nil},
		{"detached by another algorithm", sig.Check{Document: sigtest.Document(detached), Hash: &sha}, []string{"hash-algorithm-mismatch"}, nil},
		{"detached by a short hash", sig.Check{Document: sigtest.Document(detached), Hash: &short}, nil, []string{"Hash"}},
		{"detached alone", sig.Check{Document: sigtest.Document(detached)}, nil, []string{"OriginalDocument"}},
		{"detached by document and a wrong hash", sig.Check{Document: sigtest.Document(detached), Original: sigtest.Document(text), Hash: &other}, []string{"original-mismatch"}, nil},
		{"attached with its original", sig.Check{Document: sigtest.Document(attached), Original: sigtest.Document(text)}, nil, nil},
		{"attached with its hash", sig.Check{Document: sigtest.Document(attached), Hash: &sha}, nil, nil},
		{"attached with another original", sig.Check{Document: sigtest.Document(attached), Original: sigtest.Document(text[1:])}, []string{"original-mismatch"}, nil},
		{"attached with another hash", sig.Check{Document: sigtest.Document(attached), Hash: &other}, []string{"original-mismatch"}, nil},
	}
	for _, test := range tests {
		r, err := ask(test.check)
		if got := sigtest.Faults(err); !slices.Equal(got, test.faults) {
			t.Errorf("%s: faults %v, want %v (%v)", test.name, got, test.faults, err)
		} else if err == nil {
			if codes := sigtest.Codes(r); !slices.Equal(codes, test.codes) {
				t.Errorf("%s: %v, want %v", test.name, codes, test.codes)
			}
		}
	}

	var bad *sig.ErrDocument
	if _, err := ask(sig.Check{Document: sigtest.Document(text)}); !errors.As(err, &bad) {
		t.Errorf("no message: %v", err)
	}
	head, tail, err := cms.Encode(cms.OIDData, -1, [][]byte{signer.Certificate.Raw}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	r, err := ask(sig.Check{Document: sigtest.Document(append(head, tail...))})
	if err != nil || r.Passed() || !slices.Equal(sigtest.Codes(r), []string{"no-signature"}) {
		t.Errorf("certificates only: %v %v", r, err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := cades.New().Verify(ctx, &sig.Check{Document: sigtest.Document(attached)}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

// Countersignatures in every shape: two values of one attribute, two
// attributes, one on another.
func TestCountersignatures(t *testing.T) {
	s := suite.GOST2012x256
	root := sigtest.Root(t, s)
	signer, second, third := root.Signer(t, s, "Signer"), root.Signer(t, s, "Second"), root.Signer(t, suite.GOST2012x512, "Third")
	counter := func(p *sigtest.Party, target []byte, more ...cms.Attribute) (raw, value []byte) {
		attrs := cms.BuildSignedAttributes(cms.MessageDigest(p.Suite.Hash.Digest(target)), cms.SigningCertificateV2(p.Certificate, p.Suite.Hash))
		value = p.Sign(t, p.Suite.Hash.Digest(attrs))
		head, tail, err := cms.Encode(cms.OIDData, -1, nil, nil, []cms.Signer{{
			Certificate: p.Certificate, Suite: p.Suite, SignedAttrs: attrs, Signature: value, UnsignedAttrs: more,
		}})
		if err != nil {
			t.Fatal(err)
		}
		all := append(head, tail...)
		m, err := cms.Parse(bytes.NewReader(all), int64(len(all)))
		if err != nil {
			t.Fatal(err)
		}
		return m.Signers[0].Raw, value
	}
	attrs := cms.BuildSignedAttributes(cms.ContentType(cms.OIDData), cms.MessageDigest(s.Hash.Digest(text)), cms.SigningCertificateV2(signer.Certificate, s.Hash))
	value := signer.Sign(t, s.Hash.Digest(attrs))

	_, secondValue := counter(second, value)
	nested, _ := counter(third, secondValue)
	// The same value again, now with the countersignature on it: the nonce is drawn from
	// the same numbers. With another nonce the nested one would fail.
	one, again := counter(second, value, cms.NewAttribute(cms.OIDCountersignature, nested))
	if !bytes.Equal(again, secondValue) {
		t.Fatal("the test needs a signature that repeats")
	}
	two, _ := counter(third, value)
	wrong, _ := counter(third, value[1:])
	// Encode refuses a malformed countersignature. It is added as another attribute whose
	// identifier is changed afterwards.
	placeholder := cms.NewAttribute(x509gost.OID{1, 2, 840, 113549, 1, 9, 7}, []byte{5, 0})
	malformed := cms.NewAttribute(cms.OIDCountersignature, []byte{5, 0})
	head, tail, err := cms.Encode(cms.OIDData, int64(len(text)),
		[][]byte{signer.Certificate.Raw, second.Certificate.Raw, third.Certificate.Raw}, nil,
		[]cms.Signer{{Certificate: signer.Certificate, Suite: s, SignedAttrs: attrs, Signature: value, UnsignedAttrs: []cms.Attribute{
			cms.NewAttribute(cms.OIDCountersignature, one, two),
			cms.NewAttribute(cms.OIDCountersignature, wrong),
			placeholder,
		}}})
	if err != nil {
		t.Fatal(err)
	}
	message := bytes.Replace(slices.Concat(head, text, tail), placeholder.Raw, malformed.Raw, 1)
	r := verify(t, message, nil, root)
	if r.Verdict() != sig.Failed || !slices.Equal(sigtest.Codes(r), []string{"countersignature-malformed"}) {
		t.Fatalf("%v %q: a signature is as good as what hangs on it", r.Verdict(), sigtest.Codes(r))
	}
	got := r.Signatures[0].Countersigners
	if len(got) != 3 || !got[0].Passed() || !got[1].Passed() || got[2].Passed() {
		t.Fatalf("countersigners: %+v", got)
	}
	if len(got[0].Countersigners) != 1 || !got[0].Countersigners[0].Passed() || !got[0].Countersigners[0].Signer.Equal(third.Certificate) {
		t.Errorf("countersigner of the countersigner: %+v", got[0].Countersigners)
	}

	// Without the malformed one, only the wrong one matters.
	readable := bytes.Replace(message, malformed.Raw, placeholder.Raw, 1)
	if r := verify(t, readable, nil, root); r.Verdict() != sig.Failed || r.Signatures[0].Own() != sig.Passed {
		t.Errorf("with a wrong countersignature: %v, the signature alone %v", r.Verdict(), r.Signatures[0].Own())
	}
}
