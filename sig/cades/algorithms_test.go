// SPDX-License-Identifier: Apache-2.0

package cades_test

import (
	"bytes"
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"tamga/internal/judge"
	"tamga/internal/sigtest"
	"tamga/internal/testsize"
	"tamga/pki/chain"
	"tamga/pki/cms"
	"tamga/pki/ocsp"
	"tamga/pki/suite"
	"tamga/pki/tsp"
	"tamga/pki/x509gost"
	"tamga/sig"
	"tamga/sig/cades"
)

// workshop makes certificates, lists, answers, messages and tokens with OpenSSL, by one
// algorithm after another.
type workshop struct {
	t    *testing.T
	tool *judge.Tool
	keys map[string]bool
}

// algorithm is one row: a key and how it signs.
type algorithm struct {
	name  string
	key   []string // arguments of genpkey
	md    string
	opts  []string // -sigopt
	want  string   // name of the scheme
	noTSP bool     // OpenSSL cannot make tokens with it
	noCMS bool     // nor messages: OpenSSL signs attributes that are made here
}

func (w *workshop) run(args ...string) string {
	w.t.Helper()
	out, err := w.tool.Run(args...)
	if err != nil {
		w.t.Fatal(err)
	}
	return out
}

// key returns the file of a key, which is made once.
func (w *workshop) key(args []string) string {
	name := keyName(args)
	if !w.keys[name] {
		w.run(append([]string{"genpkey", "-out", name}, args...)...)
		w.keys[name] = true
	}
	return name
}

func keyName(args []string) string {
	return strings.NewReplacer(":", "", " ", "", "-", "").Replace(strings.Join(args, "")) + ".key"
}

func (a *algorithm) digest() []string {
	if a.md == "" {
		return nil
	}
	return []string{"-" + a.md}
}

func (a *algorithm) options(flag string) (list []string) {
	for _, o := range a.opts {
		list = append(list, flag, o)
	}
	return list
}

// certificate makes a certificate, self-signed without an issuer.
func (w *workshop) certificate(a *algorithm, name, extensions string) *x509gost.Certificate {
	w.t.Helper()
	key := w.key(a.key)
	w.tool.Write(name+".ext", []byte(extensions))
	request := a.digest()
	if a.key[1] == "EC" { // OpenSSL does not read its own requests with SHA-3
		request = nil
	}
	w.run(slices.Concat([]string{"req", "-new", "-key", key, "-subj", "/O=Algorithms/CN=" + name, "-out", name + ".csr"}, request, a.options("-sigopt"))...)
	by := []string{"-CA", "root.pem", "-CAkey", key}
	if name == "root" {
		by = []string{"-signkey", key}
	}
	serial := map[string]string{"root": "1", "leaf": "2", "tsa": "3"}[name]
	w.run(slices.Concat([]string{"x509", "-req", "-in", name + ".csr", "-days", "3000", "-set_serial", serial, "-extfile", name + ".ext", "-out", name + ".pem"}, by, a.digest(), a.options("-sigopt"))...)
	block, _ := pem.Decode(w.tool.Read(name + ".pem"))
	c, err := x509gost.ParseCertificate(block.Bytes)
	if err != nil {
		w.t.Fatal(err)
	}
	return c
}

const shopConf = `[ca]
default_ca = x
[x]
database = index.txt
[tsa_config]
serial = serial.txt
default_policy = 1.2.3.4
digests = sha256, sha384, sha512
ess_cert_id_alg = sha256
crypto_device = builtin
signer_digest = %s
`

var (
	rsa2048 = []string{"-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048"}
	rsaPSS  = []string{"-algorithm", "RSA-PSS", "-pkeyopt", "rsa_keygen_bits:2048"}
	ed25519 = []string{"-algorithm", "ED25519"}
)

func curve(name string) []string {
	return []string{"-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:" + name}
}

func pss(salt string, more ...string) []string {
	return append([]string{"rsa_padding_mode:pss", "rsa_pss_saltlen:" + salt}, more...)
}

// algorithms are verified and no suite signs by them.
var algorithms = []algorithm{
	{name: "RSA SHA-224", key: rsa2048, md: "sha224", want: "RSA with SHA-224"},
	{name: "RSA SHA-384", key: rsa2048, md: "sha384", want: "RSA with SHA-384"},
	{name: "RSA SHA-512", key: rsa2048, md: "sha512", want: "RSA with SHA-512"},
	{name: "RSA SHA3-256", key: rsa2048, md: "sha3-256", want: "RSA with SHA3-256"},
	{name: "RSA SHA3-384", key: rsa2048, md: "sha3-384", want: "RSA with SHA3-384"},
	{name: "RSA SHA3-512", key: rsa2048, md: "sha3-512", want: "RSA with SHA3-512"},
	{name: "PSS SHA-256", key: rsa2048, md: "sha256", opts: pss("digest"), want: "RSA-PSS with SHA-256", noTSP: true},
	{name: "PSS SHA-384 long salt", key: rsa2048, md: "sha384", opts: pss("max"), want: "RSA-PSS with SHA-384", noTSP: true},
	{name: "PSS SHA-512 no salt", key: rsa2048, md: "sha512", opts: pss("0"), want: "RSA-PSS with SHA-512", noTSP: true},
	{name: "PSS SHA-256 MGF1 SHA-512", key: rsa2048, md: "sha256", opts: pss("20", "rsa_mgf1_md:sha512"), want: "RSA-PSS with SHA-256 and MGF1 of SHA-512", noTSP: true},
	{name: "PSS key", key: rsaPSS, md: "sha256", opts: pss("digest"), want: "RSA-PSS with SHA-256", noTSP: true},
	{name: "PSS key with limits", key: slices.Concat(rsaPSS, []string{"-pkeyopt", "rsa_pss_keygen_md:sha384", "-pkeyopt", "rsa_pss_keygen_mgf1_md:sha384", "-pkeyopt", "rsa_pss_keygen_saltlen:32"}),
		md: "sha384", opts: pss("digest"), want: "RSA-PSS with SHA-384", noTSP: true},
	{name: "P-256 SHA-512", key: curve("P-256"), md: "sha512", want: "ECDSA with SHA-512"},
	{name: "P-384 SHA-384", key: curve("P-384"), md: "sha384", want: "ECDSA with SHA-384"},
	{name: "P-384 SHA-256", key: curve("P-384"), md: "sha256", want: "ECDSA with SHA-256"},
	{name: "P-521 SHA-512", key: curve("P-521"), md: "sha512", want: "ECDSA with SHA-512"},
	{name: "P-256 SHA3-256", key: curve("P-256"), md: "sha3-256", want: "ECDSA with SHA3-256", noCMS: true, noTSP: true},
	{name: "P-384 SHA3-384", key: curve("P-384"), md: "sha3-384", want: "ECDSA with SHA3-384", noCMS: true, noTSP: true},
	{name: "P-521 SHA3-512", key: curve("P-521"), md: "sha3-512", want: "ECDSA with SHA3-512", noCMS: true, noTSP: true},
	{name: "Ed25519", key: ed25519, want: "Ed25519", noCMS: true, noTSP: true},
}

// TestAlgorithmsOfOthers: everything that OpenSSL signs is verified completely:
// certificates, a list, an answer, a message and a token. With one bit changed it is
// refused.
func TestAlgorithmsOfOthers(t *testing.T) {
	w := &workshop{tool: judge.OpenSSL(t), keys: map[string]bool{}}
	for i, a := range algorithms {
		if testsize.Of() < testsize.Whole && i%4 != 0 && w.keys[keyName(a.key)] {
			continue // each kind of key is tried
		}
		t.Run(a.name, func(t *testing.T) {
			w.t = t
			w.judge(&a)
		})
	}
}

func (w *workshop) judge(a *algorithm) {
	t := w.t
	root := w.certificate(a, "root", "basicConstraints=critical,CA:TRUE\nkeyUsage=critical,keyCertSign,cRLSign,digitalSignature\nsubjectKeyIdentifier=hash\n")
	leaf := w.certificate(a, "leaf", "keyUsage=critical,digitalSignature\nauthorityKeyIdentifier=keyid\n")
	key := w.key(a.key)
	w.tool.Write("shop.cnf", fmt.Appendf(nil, shopConf, a.md))
	w.tool.Write("index.txt", []byte("V\t350101000000Z\t\t02\tunknown\t/CN=leaf\n"))
	w.tool.Write("document", text)

	list := w.list(a, key)
	answer := w.answer(a, key, leaf, root)
	roots := []*x509gost.Certificate{root}
	at := answer.ProducedAt.Add(time.Second)
	if at.Before(list.ThisUpdate) {
		at = list.ThisUpdate
	}
	for what, o := range map[string]chain.Options{
		"list":   {Roots: roots, CRLs: []*x509gost.RevocationList{list}, At: at, RequireRevocation: true},
		"answer": {Roots: roots, OCSP: []*ocsp.Basic{answer}, At: at, RequireRevocation: true},
	} {
		if v, err := chain.Build(leaf, o); err != nil {
			t.Errorf("%s: %v", what, err)
		} else if len(v.Findings) != 0 {
			t.Errorf("%s: %+v", what, v.Findings)
		}
	}
	for name, scheme := range map[string]func() (*suite.Scheme, error){"certificate": leaf.Scheme, "list": list.Scheme, "answer": answer.Scheme} {
		if s, err := scheme(); err != nil || s.Name != a.want {
			t.Errorf("%s: %v, %v", name, s, err)
		}
	}
	changed := func(der []byte) []byte {
		out := bytes.Clone(der)
		out[len(out)-1] ^= 1
		return out
	}
	if c, err := x509gost.ParseCertificate(changed(leaf.Raw)); err == nil && c.CheckSignatureFrom(root) == nil {
		t.Error("a changed certificate holds")
	}
	if l, err := x509gost.ParseRevocationList(changed(list.Raw)); err == nil && l.CheckSignatureFrom(root) == nil {
		t.Error("a changed list holds")
	}
	b := bytes.Clone(answer.Raw)
	b[bytes.Index(b, answer.Signature)+len(answer.Signature)-1] ^= 1
	if o, err := ocsp.ParseBasic(b); err == nil {
		if _, err := o.Responder(root); err == nil {
			t.Error("a changed answer holds")
		}
	}

	w.message(a, key, roots, at)
	if !a.noTSP {
		w.token(a, key, roots)
	}
}

func (w *workshop) list(a *algorithm, key string) *x509gost.RevocationList {
	w.t.Helper()
	md := a.md
	if md == "" {
		md = "default"
	}
	w.run(slices.Concat([]string{"ca", "-gencrl", "-config", "shop.cnf", "-keyfile", key, "-cert", "root.pem", "-md", md, "-crldays", "30", "-out", "list.pem"}, a.options("-sigopt"))...)
	block, _ := pem.Decode(w.tool.Read("list.pem"))
	l, err := x509gost.ParseRevocationList(block.Bytes)
	if err != nil {
		w.t.Fatal(err)
	}
	return l
}

func (w *workshop) answer(a *algorithm, key string, leaf, root *x509gost.Certificate) *ocsp.Basic {
	w.t.Helper()
	request, err := ocsp.CreateRequest(leaf, root, suite.SHA1, nil)
	if err != nil {
		w.t.Fatal(err)
	}
	w.tool.Write("req.der", request)
	args := []string{"ocsp", "-index", "index.txt", "-CA", "root.pem", "-rsigner", "root.pem", "-rkey", key, "-reqin", "req.der", "-respout", "resp.der", "-ndays", "30"}
	if a.md != "" {
		args = append(args, "-rmd", a.md)
	}
	w.run(append(args, a.options("-rsigopt")...)...)
	r, err := ocsp.Parse(w.tool.Read("resp.der"))
	if err != nil || r.Basic == nil {
		w.t.Fatalf("%+v, %v", r, err)
	}
	return r.Basic
}

func (w *workshop) message(a *algorithm, key string, roots []*x509gost.Certificate, at time.Time) {
	t := w.t
	var message []byte
	if a.noCMS {
		message = w.assembled(a, key)
	} else {
		args := []string{"cms", "-sign", "-binary", "-nodetach", "-cades", "-in", "document", "-signer", "leaf.pem", "-inkey", key, "-outform", "DER", "-out", "message.der", "-md", a.md}
		w.run(append(args, a.options("-keyopt")...)...)
		message = w.tool.Read("message.der")
	}
	verify := func(message []byte) *sig.Report {
		r, err := cades.New().Verify(context.Background(), &sig.Check{Document: sigtest.Document(message), Roots: roots, At: at})
		if err != nil {
			return &sig.Report{}
		}
		return r
	}
	r := verify(message)
	if !r.Passed() || r.Signatures[0].Scheme == nil || r.Signatures[0].Scheme.Name != a.want || r.Signatures[0].Level != "BES" {
		t.Errorf("message: %+v", r)
	}
	m, err := cms.Parse(bytes.NewReader(message), int64(len(message)))
	if err != nil {
		t.Fatal(err)
	}
	for name, part := range map[string][]byte{"document": text, "value": m.Signers[0].Signature, "attributes": m.Signers[0].RawSignedAttrs[8:]} {
		bad := bytes.Clone(message)
		bad[bytes.Index(bad, part)+len(part)-1] ^= 1
		if verify(bad).Passed() {
			t.Errorf("message: the %s changed and it passes", name)
		}
	}
}

// assembled returns a message whose attributes OpenSSL signed.
func (w *workshop) assembled(a *algorithm, key string) []byte {
	t := w.t
	block, _ := pem.Decode(w.tool.Read("leaf.pem"))
	leaf, err := x509gost.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	scheme, err := leaf.Scheme()
	if err != nil {
		t.Fatal(err)
	}
	attrs := cms.BuildSignedAttributes(cms.ContentType(cms.OIDData), cms.MessageDigest(scheme.Hash.Digest(text)), cms.SigningCertificateV2(leaf, suite.SHA256))
	w.tool.Write("attrs", attrs)
	if a.md == "" {
		w.run("pkeyutl", "-sign", "-rawin", "-inkey", key, "-in", "attrs", "-out", "value")
	} else {
		w.run("dgst", "-"+a.md, "-sign", key, "-out", "value", "attrs")
	}
	head, tail, err := cms.Encode(cms.OIDData, int64(len(text)), [][]byte{leaf.Raw}, nil, []cms.Signer{{
		Certificate: leaf, Suite: &suite.Suite{Hash: scheme.Hash, CMSSignatureOID: scheme.OID}, SignedAttrs: attrs, Signature: w.tool.Read("value"),
	}})
	if err != nil {
		t.Fatal(err)
	}
	return slices.Concat(head, text, tail)
}

func (w *workshop) token(a *algorithm, key string, roots []*x509gost.Certificate) {
	t := w.t
	tsa := w.certificate(a, "tsa", "keyUsage=critical,digitalSignature\nextendedKeyUsage=critical,timeStamping\n")
	w.tool.Write("serial.txt", []byte("80\n"))
	request := tsp.Request{Digest: suite.SHA384.Digest(text), CertReq: true}
	der, err := request.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	w.tool.Write("req.tsq", der)
	w.run("ts", "-reply", "-config", "shop.cnf", "-section", "tsa_config", "-queryfile", "req.tsq", "-signer", "tsa.pem", "-inkey", key, "-out", "resp.tsr")
	token, err := tsp.ParseResponse(w.tool.Read("resp.tsr"))
	if err != nil {
		t.Fatal(err)
	}
	if err := token.Answers(&request); err != nil {
		t.Error(err)
	}
	if c, err := token.CheckSignature(nil); err != nil || !c.Equal(tsa) {
		t.Errorf("token: %v", err)
	}
	if _, err := chain.Build(tsa, chain.Options{Roots: roots, At: token.Info.Time, Usage: []x509gost.OID{x509gost.UsageTimeStamping}}); err != nil {
		t.Error(err)
	}
	bad := bytes.Clone(token.Raw)
	bad[len(bad)-1] ^= 1
	if b, err := tsp.ParseToken(bad); err == nil {
		if _, err := b.CheckSignature(nil); err == nil {
			t.Error("a changed token holds")
		}
	}
}

// TestWeakAlgorithms: SHA-1, MD5 and short keys are recognised and prove nothing, in the
// signature and in the certificate.
func TestWeakAlgorithms(t *testing.T) {
	w := &workshop{t: t, tool: judge.OpenSSL(t), keys: map[string]bool{}}
	rsa1024 := []string{"-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:1024"}
	for name, c := range map[string]struct {
		certificates, message algorithm
		code                  string
	}{
		"message by SHA-1":      {algorithm{key: rsa2048, md: "sha256"}, algorithm{key: rsa2048, md: "sha1"}, sig.CodeWeak},
		"message by MD5":        {algorithm{key: rsa2048, md: "sha256"}, algorithm{key: rsa2048, md: "md5"}, sig.CodeWeak},
		"message by ECDSA":      {algorithm{key: curve("P-256"), md: "sha256"}, algorithm{key: curve("P-256"), md: "sha1"}, sig.CodeWeak},
		"certificates by SHA-1": {algorithm{key: rsa2048, md: "sha1"}, algorithm{key: rsa2048, md: "sha256"}, "certificate-" + chain.CodeWeak},
		"short key":             {algorithm{key: rsa1024, md: "sha256"}, algorithm{key: rsa1024, md: "sha256"}, "certificate-" + chain.CodeWeak},
	} {
		root := w.certificate(&c.certificates, "root", "basicConstraints=critical,CA:TRUE\nkeyUsage=critical,keyCertSign\n")
		leaf := w.certificate(&c.certificates, "leaf", "keyUsage=critical,digitalSignature\n")
		w.tool.Write("document", text)
		w.run("cms", "-sign", "-binary", "-nodetach", "-in", "document", "-signer", "leaf.pem", "-inkey", w.key(c.message.key), "-md", c.message.md, "-outform", "DER", "-out", "message.der")
		r, err := cades.New().Verify(context.Background(), &sig.Check{
			Document: sigtest.Document(w.tool.Read("message.der")), Roots: []*x509gost.Certificate{root}, At: leaf.NotBefore.Add(time.Hour),
		})
		if err != nil {
			t.Fatal(err)
		}
		i := slices.IndexFunc(r.Signatures[0].Findings, func(f sig.Finding) bool { return f.Code == c.code })
		if r.Verdict() != sig.Indeterminate || i < 0 || r.Signatures[0].Findings[i].Indication != sig.CryptoConstraintsFailureNoPOE {
			t.Errorf("%s: %v %+v", name, r.Verdict(), r.Signatures[0].Findings)
		}
	}
}

// TestWeakListClearsNothing: a revocation list and an OCSP answer with SHA-1 can prove
// that a certificate was revoked, but not that it was not.
func TestWeakListClearsNothing(t *testing.T) {
	w := &workshop{t: t, tool: judge.OpenSSL(t), keys: map[string]bool{}}
	strong, weak := &algorithm{key: rsa2048, md: "sha256"}, &algorithm{key: rsa2048, md: "sha1"}
	root := w.certificate(strong, "root", "basicConstraints=critical,CA:TRUE\nkeyUsage=critical,keyCertSign,cRLSign,digitalSignature\n")
	leaf := w.certificate(strong, "leaf", "keyUsage=critical,digitalSignature\n")
	w.tool.Write("shop.cnf", fmt.Appendf(nil, shopConf, "sha256"))
	for line, want := range map[string]error{
		"V\t350101000000Z\t\t02\tunknown\t/CN=leaf\n":                         chain.ErrRevocationUnknown,
		"R\t350101000000Z\t200101000000Z,superseded\t02\tunknown\t/CN=leaf\n": chain.ErrRevoked,
	} {
		w.tool.Write("index.txt", []byte(line))
		list, answer := w.list(weak, w.key(rsa2048)), w.answer(weak, w.key(rsa2048), leaf, root)
		for name, o := range map[string]chain.Options{"list": {CRLs: []*x509gost.RevocationList{list}}, "answer": {OCSP: []*ocsp.Basic{answer}}} {
			o.Roots, o.At, o.RequireRevocation = []*x509gost.Certificate{root}, list.ThisUpdate.Add(time.Second), true
			if _, err := chain.Build(leaf, o); !errors.Is(err, want) {
				t.Errorf("%s: %v, want %v", name, err, want)
			}
		}
	}
}
