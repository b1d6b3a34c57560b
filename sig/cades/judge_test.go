// SPDX-License-Identifier: Apache-2.0

package cades_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"tamga/internal/judge"
	"tamga/internal/sigtest"
	"tamga/internal/testsize"
	"tamga/pki/cms"
	"tamga/pki/suite"
	"tamga/pki/x509gost"
	"tamga/sig"
	"tamga/sig/cades"
)

// jury is all programs that check a message: OpenSSL with gost-engine, Bouncy Castle, and
// this package.
type jury struct {
	openssl *judge.Tool
	castle  *judge.Castle
}

// ask returns each program's verdict on a message of a signer under root, with its
// content if it is detached, nil otherwise.
func (j *jury) ask(t *testing.T, message, content []byte, root *sigtest.Party) map[string]error {
	t.Helper()
	verdicts := map[string]error{}
	if j.castle != nil {
		verdicts["castle"] = j.castle.VerifyCMS(message, content, root.PEM())
	}
	j.openssl.Write("message.der", message)
	j.openssl.Write("root.pem", root.PEM())
	args := []string{
		"cms", "-verify", "-binary", "-inform", "DER", "-in", "message.der", "-out", "content.out",
		"-CAfile", "root.pem", "-purpose", "any", "-attime", fmt.Sprint(sigtest.Time.Unix()),
	}
	if content != nil {
		j.openssl.Write("content.bin", content)
		args = append(args, "-content", "content.bin")
	}
	_, verdicts["openssl"] = j.openssl.Run(args...)
	if r := verify(t, message, content, root); !r.Passed() {
		verdicts["ours"] = fmt.Errorf("%v", sigtest.Codes(r))
	} else {
		verdicts["ours"] = nil
	}
	return verdicts
}

// Every suite in every mode is accepted by all programs, and refused by all with one bit
// changed in the content, a signed attribute, or the value.
func TestJury(t *testing.T) {
	j := &jury{openssl: judge.OpenSSL(t)}
	if testsize.Of() > testsize.Quick {
		j.castle = judge.BouncyCastle(t)
	}
	for n, s := range suite.All() {
		root := sigtest.Root(t, s)
		signer := root.Signer(t, s, "Иван Петров")
		for i, mode := range modes {
			if leftOut(n, i) {
				continue
			}
			t.Run(s.Name+"/"+mode.name, func(t *testing.T) {
				message := sign(t, signer, i)
				var content []byte
				if mode.detached {
					content = text
				}
				for who, err := range j.ask(t, message, content, root) {
					if err != nil {
						t.Errorf("refused by %s: %v", who, err)
					}
				}
				if !mode.detached {
					if got := j.openssl.Read("content.out"); string(got) != string(text) {
						t.Errorf("openssl took out %q", got)
					}
				}
				for _, b := range breakAll(t, signer, i) {
					for who, err := range j.ask(t, b.message, b.content, root) {
						if err == nil {
							t.Errorf("%s changed, accepted by %s", b.name, who)
						}
					}
				}
			})
		}
	}
}

// Messages made by OpenSSL are read and verified.
func TestMadeByOpenSSL(t *testing.T) {
	o := judge.OpenSSL(t)
	for _, s := range suite.All() {
		root := sigtest.Root(t, s)
		signer := root.Signer(t, s, "Signer")
		key, err := x509gost.MarshalPrivateKey(signer.Key, s)
		if err != nil {
			t.Fatal(err)
		}
		o.Write("key.der", key)
		o.Write("signer.pem", signer.PEM())
		o.Write("text", text)
		if _, err := o.Run("pkey", "-inform", "DER", "-in", "key.der", "-out", "key.pem"); err != nil {
			t.Fatal(err)
		}
		for _, form := range []struct {
			name     string
			args     []string
			detached bool
			level    string
			codes    []string
		}{
			{"detached", []string{"-binary"}, true, "CMS", nil},
			{"cades", []string{"-binary", "-cades"}, true, "BES", nil},
			{"attached", []string{"-binary", "-nodetach", "-cades"}, false, "BES", nil},
			{"stream", []string{"-binary", "-nodetach", "-stream", "-cades"}, false, "BES", nil},
			{"no attributes", []string{"-binary", "-nodetach", "-noattr"}, false, "CMS", nil},
			{"key identifier", []string{"-binary", "-nodetach", "-keyid"}, false, "CMS", nil},
			{"no certificates", []string{"-binary", "-nodetach", "-nocerts"}, false, "CMS", []string{"certificate-missing"}},
		} {
			t.Run(s.Name+"/"+form.name, func(t *testing.T) {
				args := append([]string{
					"cms", "-sign", "-in", "text", "-signer", "signer.pem", "-inkey", "key.pem",
					"-md", digestNames[s], "-outform", "DER", "-out", "message.der",
				}, form.args...)
				if _, err := o.Run(args...); err != nil {
					t.Fatal(err)
				}
				var original []byte
				if form.detached {
					original = text
				}
				message := o.Read("message.der")
				// OpenSSL signs with the present time, which a test must not depend on:
				// only the certificates are checked at the time of the test.
				r := verify(t, message, original, root)
				if codes := sigtest.Codes(r); fmt.Sprint(codes) != fmt.Sprint(form.codes) || r.Signatures[0].Level != form.level {
					t.Errorf("%v, level %s: %+v", codes, r.Signatures[0].Level, r.Signatures[0].Findings)
				}
				if original == nil {
					original = change(t, message, text)
					message, original = original, nil
				} else {
					original = change(t, text, text)
				}
				if r := verify(t, message, original, root); r.Passed() {
					t.Error("valid over a changed text")
				}
			})
		}
	}
}

// TestWeakSignersKey: a signer's key of 512 bits is named as the weak one, whether the root is
// trusted or not. OpenSSL refuses it, too.
func TestWeakSignersKey(t *testing.T) {
	o := judge.OpenSSL(t)
	root := sigtest.Root(t, suite.RSASHA256)
	key, err := x509gost.MarshalPrivateKey(root.Key, root.Suite)
	if err != nil {
		t.Fatal(err)
	}
	o.Write("root.der", key)
	o.Write("root.pem", root.PEM())
	o.Write("text", text)
	o.Write("ext", []byte("keyUsage=digitalSignature\n"))
	for _, args := range [][]string{
		{"pkey", "-inform", "DER", "-in", "root.der", "-out", "root.key"},
		{"genrsa", "-out", "leaf.key", "512"},
		{"req", "-new", "-key", "leaf.key", "-subj", "/CN=Weak leaf", "-out", "leaf.req"},
		{"x509", "-req", "-in", "leaf.req", "-CA", "root.pem", "-CAkey", "root.key", "-set_serial", "5", "-days", "3000", "-extfile", "ext", "-out", "leaf.pem"},
		{"cms", "-sign", "-in", "text", "-signer", "leaf.pem", "-inkey", "leaf.key", "-md", "sha256", "-outform", "DER", "-out", "m.der", "-nodetach", "-binary"},
	} {
		if _, err := o.Run(args...); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := o.Run("cms", "-verify", "-binary", "-inform", "DER", "-in", "m.der", "-CAfile", "root.pem", "-purpose", "any", "-auth_level", "2", "-out", "out"); err == nil {
		t.Error("OpenSSL takes the key")
	}
	for trusted, roots := range map[bool][]*x509gost.Certificate{true: {root.Certificate}, false: nil} {
		leaf := mustParse(t, o.Read("m.der"))
		certs, err := leaf.X509()
		if err != nil {
			t.Fatal(err)
		}
		r, err := cades.New().Verify(t.Context(), &sig.Check{Document: sigtest.Document(o.Read("m.der")), Roots: roots, At: certs[0].NotBefore})
		if err != nil {
			t.Fatal(err)
		}
		one := r.Signatures[0]
		i := slices.IndexFunc(one.Findings, func(f sig.Finding) bool { return f.Code == "certificate-algorithm-weak" })
		if r.Verdict() != sig.Indeterminate || i < 0 || !strings.Contains(one.Findings[i].Text, "Weak leaf") || !strings.Contains(one.Findings[i].Text, "512 bits") {
			t.Errorf("trusted %t: %v %+v", trusted, r.Verdict(), one.Findings)
		}
	}
}

var digestNames = map[*suite.Suite]string{
	suite.GOST2001:     "md_gost94",
	suite.GOST2012x256: "md_gost12_256",
	suite.GOST2012x512: "md_gost12_512",
	suite.RSASHA256:    "sha256",
	suite.ECDSAP256:    "sha256",
}

// OpenSSL also checks a large document, whose headers have longer lengths.
func TestLargeByOpenSSL(t *testing.T) {
	o := judge.OpenSSL(t)
	s := suite.GOST2012x256
	root := sigtest.Root(t, s)
	signer := root.Signer(t, s, "Signer")
	doc := sigtest.Zeros(1<<24 + 1)
	message := sigtest.Make(t, newFormat(), signer, &sig.Job{Document: doc})
	m, err := cms.Parse(sigtest.Document(message), int64(len(message)))
	if err != nil || m.ContentSize() != int64(doc) {
		t.Fatalf("%v", err)
	}
	o.Write("message.der", message)
	o.Write("root.pem", root.PEM())
	if _, err := o.Run("cms", "-verify", "-binary", "-inform", "DER", "-in", "message.der", "-out", "content.out",
		"-CAfile", "root.pem", "-purpose", "any", "-attime", fmt.Sprint(sigtest.Time.Unix())); err != nil {
		t.Error(err)
	}
}
