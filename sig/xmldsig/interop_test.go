// SPDX-License-Identifier: Apache-2.0

package xmldsig

import (
	"bytes"
	"context"
	"crypto"
	"crypto/dsa" //lint:ignore SA1019 the collections are of 2002, and this only verifies them
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/hmac"
	"crypto/rsa"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"crypto/x509"
	"errors"
	"flag"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"maps"
	"math/big"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"tamga/internal/judge"
	"tamga/pki/suite"
	"tamga/pki/x509gost"
	"tamga/sig/xmltree"
)

// -interop names a directory of signatures made by other programs; all files below it are
// checked. The Apache Santuario tree is such a directory (src/test/resources).
var interop = flag.String("interop", "", "a directory of XML signatures by others to verify")

// The signatures of the interoperability rounds use RSA with SHA-1, DSA and HMAC, and
// many sign the content of a separate file. The product refuses all that. These tests
// check the product's transforms, canonical forms and digests; the rest of what
// verification takes is only in this file. References are read one by one, so that a
// refused one does not hide the others.

// outcomes counts the results of signatures and references.
type outcomes struct {
	files, subsets, unread int
	signatures, whole      int // whole: read by the product unchanged
	values                 int
	references, beside     int // beside: to other files, which the product refuses
	digests                int
	named                  int // with id() written as a path, which the product refuses
	refused                map[string]int
	unjudged               map[string]int // values, by the reason
	wrong                  []string
}

func (o *outcomes) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d files: %d with an internal subset, %d not read\n", o.files, o.subsets, o.unread)
	fmt.Fprintf(&b, "%d signatures, %d read by the product as they are; %d values verified\n", o.signatures, o.whole, o.values)
	fmt.Fprintf(&b, "%d references, %d of them to files beside: %d digests verified, %d of them with id() written as a path; %d wrong\n", o.references, o.beside, o.digests, o.named, len(o.wrong))
	for what, reasons := range map[string]map[string]int{"refused": o.refused, "values not judged": o.unjudged} {
		for _, reason := range slices.Sorted(maps.Keys(reasons)) {
			fmt.Fprintf(&b, "  %s %3d: %s\n", what, reasons[reason], reason)
		}
	}
	return b.String()
}

// examine checks all signatures below a directory. expand replaces the entities of an
// internal subset first.
func examine(t *testing.T, dir string, expand func([]byte) []byte) *outcomes {
	t.Helper()
	o := &outcomes{refused: map[string]int{}, unjudged: map[string]int{}}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".xml" || strings.Contains(path, "template") {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil || !bytes.Contains(data, []byte("SignatureValue>")) || !bytes.Contains(data, []byte(nsDS)) {
			return err
		}
		name, err := filepath.Rel(dir, path)
		o.files++
		tree, bad := xmltree.Parse(data, New().options(nil))
		if errors.Is(bad, xmltree.ErrDoctype) {
			o.subsets++
			if expand == nil {
				return err
			}
			data = expand(data)
			tree, bad = xmltree.Parse(data, New().options(nil))
		}
		if bad != nil {
			o.unread++
			o.refused["document: "+bad.Error()]++
			return err
		}
		for i, n := range signatures(tree) {
			x := exhibit{outcomes: o, name: name, dir: filepath.Dir(path), data: data, expand: expand}
			x.signature(tree, n, i)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// exhibit is one signature with its checks.
type exhibit struct {
	*outcomes
	name, dir string
	data      []byte
	expand    func([]byte) []byte
}

func (x *exhibit) signature(t *xmltree.Tree, n xmltree.Node, ordinal int) {
	x.signatures++
	if _, err := readSignature(t, n, ordinal); err == nil {
		x.whole++
	}
	s := &signature{tree: t, node: n, ordinal: ordinal}
	s.info, s.value, s.keyInfo = t.Child(n, nsDS, "SignedInfo"), t.Child(n, nsDS, "SignatureValue"), t.Child(n, nsDS, "KeyInfo")
	if s.info == xmltree.None || s.value == xmltree.None || isBlank(t, s.value) {
		x.refused["signature: incomplete"]++
		return
	}
	for r := range t.Find(n, nsDS, "Reference") {
		if parent := t.Parent(r); parent == s.info || t.Is(parent, nsDS, "Manifest") {
			x.reference(s, r)
		}
	}
	algorithm, _ := t.Get(t.Child(s.info, nsDS, "CanonicalizationMethod"), "Algorithm")
	form, ok := canonicalForms[algorithm]
	method := t.Child(s.info, nsDS, "SignatureMethod")
	s.algorithm, _ = t.Get(method, "Algorithm")
	s.scheme, _ = suite.SchemeByXML(s.algorithm)
	switch {
	case !ok:
		x.unjudged["canonical form "+algorithm]++
		return
	case !isBlank(t, method):
		x.unjudged["a truncated HMAC"]++
		return
	}
	s.method = form
	why, err := checkValue(s, x.dir)
	switch {
	case err != nil:
		x.wrong = append(x.wrong, fmt.Sprintf("%s: value: %v", x.name, err))
	case why != "":
		x.unjudged[why]++
	default:
		x.values++
	}
}

// idCall is the function of XPath that the product refuses.
var idCall = regexp.MustCompile(`id\((?:"|')([A-Za-z0-9]+)(?:"|')\)`)

func (x *exhibit) reference(s *signature, n xmltree.Node) {
	x.references++
	t := s.tree
	r, err := readReference(t, n)
	if err != nil && strings.Contains(err.Error(), "function id()") {
		// The same reference of a copy in which the call is written as a path.
		rewritten := idCall.ReplaceAll(x.data, []byte(`(//*[@Id="$1" or @id="$1" or @xml:id="$1"])`))
		copied, bad := xmltree.Parse(rewritten, New().options(nil))
		if bad != nil {
			x.wrong = append(x.wrong, x.name+": "+bad.Error())
			return
		}
		s = &signature{tree: copied, node: s.node, ordinal: s.ordinal, info: s.info, value: s.value, keyInfo: s.keyInfo}
		if r, err = readReference(copied, n); err == nil {
			x.named++
		}
		t = copied
	}
	var got suite.Digest
	if err == nil && r.hash == nil {
		err = flawAt(t, n, "DigestMethod "+r.algorithm, "not known")
	}
	if err == nil {
		got, err = x.digest(s, r)
	}
	if err == nil {
		var want []byte
		if want, err = base64Text(t, r.digest, maxValue); err == nil && !bytes.Equal(got.Sum, want) {
			x.wrong = append(x.wrong, fmt.Sprintf("%s: the reference in line %d, URI=%s", x.name, line(t, n), quote(r.uri)))
			return
		}
	}
	if err == nil {
		x.digests++
		return
	}
	reason := err.Error()
	var f *flaw
	if errors.As(err, &f) {
		reason = f.code + ": " + f.text
	}
	for _, known := range []string{"namespace::", "mod", "RelationshipTransform", "xptr", "decrypt#", "XSLT", "2002/04/xmldsig-filter2", "leaves the document", "has no target", "ambiguous", "id()", "has no URI"} {
		if strings.Contains(reason, known) {
			reason = known
		}
	}
	x.refused["reference: "+reason]++
	if testing.Verbose() {
		fmt.Printf("    %s: %v\n", x.name, err)
	}
}

func line(t *xmltree.Tree, n xmltree.Node) int {
	l, _ := t.Position(t.Span(n).Start)
	return l
}

// digest returns the digest of the product, or that of the separate file that a reference refers to.
func (x *exhibit) digest(s *signature, r *reference) (suite.Digest, error) {
	d := digester{ctx: context.Background(), sig: s, ref: r, options: New().options(nil)}
	find := newResolver(s.tree, []*signature{{refs: []*reference{r}}})
	to, err := find.resolve(r)
	var raw []byte
	for _, place := range []string{".", "..", "../external-data"} {
		name := r.uri
		if strings.Contains(name, ":") {
			name = name[strings.LastIndexByte(name, '/')+1:]
		}
		if raw == nil && err != nil && name != "" && !strings.Contains(name, "#") {
			raw, _ = os.ReadFile(filepath.Join(x.dir, place, name))
		}
	}
	if raw == nil {
		if err != nil {
			return suite.Digest{}, err
		}
		got, _, err := d.digest(to)
		return got, err
	}
	x.beside++
	if _, err := xmltree.Parse(raw, New().options(nil)); errors.Is(err, xmltree.ErrDoctype) && x.expand != nil && len(r.transforms) > 0 {
		raw = x.expand(raw)
	}
	m := material{data: raw}
	for _, tr := range r.transforms {
		if m, err = tr.apply(&d, m); err != nil {
			return suite.Digest{}, err
		}
	}
	if set := m.set; set != nil {
		m.finish = func(w io.Writer) error { return set.Canonicalize(w, xmltree.Method{}) }
	}
	h := r.hash.New()
	err = d.emit(m, h)
	return suite.Digest{Hash: r.hash, Sum: h.Sum(nil)}, err
}

type valueHash struct {
	suffix string
	hash   crypto.Hash
	new    func() hash.Hash
}

// valueHashes are the hashes of signature algorithms by the end of their identifiers.
var valueHashes = []valueHash{
	{"-sha1", crypto.SHA1, sha1.New}, {"-sha224", crypto.SHA224, sha256.New224}, {"-sha256", crypto.SHA256, sha256.New},
	{"-sha384", crypto.SHA384, sha512.New384}, {"-sha512", crypto.SHA512, sha512.New},
}

// checkValue checks SignatureValue over the canonical SignedInfo. why is the reason if it
// cannot be checked.
func checkValue(s *signature, dir string) (why string, err error) {
	t := s.tree
	var info bytes.Buffer
	if err := t.Subtree(s.info).Canonicalize(&info, s.method); err != nil {
		return "", err
	}
	value, err := base64Text(t, s.value, maxValue)
	if err != nil {
		return "", err
	}
	if strings.Contains(s.algorithm, "gost") && s.scheme != nil {
		return checkGOST(s, info.Bytes(), value)
	}
	family := s.algorithm[strings.LastIndexByte(s.algorithm, '#')+1:]
	at := slices.IndexFunc(valueHashes, func(h valueHash) bool { return strings.HasSuffix(family, h.suffix) })
	if at < 0 {
		return "algorithm " + family, nil
	}
	family = strings.TrimSuffix(family, valueHashes[at].suffix)
	h := valueHashes[at].new()
	h.Write(info.Bytes())
	sum := h.Sum(nil)
	if family == "hmac" {
		for _, key := range []string{"secret", "test"} { // of merlin, of phaos
			mac := hmac.New(valueHashes[at].new, []byte(key))
			mac.Write(info.Bytes())
			if hmac.Equal(mac.Sum(nil), value) {
				return "", nil
			}
		}
		return "the HMAC key is not known", nil
	}
	verified := func(keys []crypto.PublicKey) bool {
		return slices.ContainsFunc(keys, func(key crypto.PublicKey) bool {
			r, v := new(big.Int).SetBytes(value[:len(value)/2]), new(big.Int).SetBytes(value[len(value)/2:])
			switch key := key.(type) {
			case *rsa.PublicKey:
				return family == "rsa" && rsa.VerifyPKCS1v15(key, valueHashes[at].hash, sum, value) == nil
			case *dsa.PublicKey:
				return family == "dsa" && dsa.Verify(key, sum[:min((key.Q.BitLen()+7)/8, len(sum))], r, v)
			case *ecdsa.PublicKey:
				return family == "ecdsa" && ecdsa.Verify(key, sum, r, v)
			}
			return false
		})
	}
	inside := keysInside(s)
	switch {
	case !slices.Contains([]string{"rsa", "dsa", "ecdsa"}, family):
		return "algorithm " + family, nil
	case len(inside) == 0 && verified(keysBeside(dir)), len(inside) > 0 && verified(inside):
		return "", nil
	case len(inside) == 0:
		return "the key is only named", nil
	}
	return "", errors.New("does not belong to SignedInfo and any of the keys")
}

func checkGOST(s *signature, info, value []byte) (string, error) {
	c, _ := readKeyInfo(s)
	if len(c.certs) == 0 {
		return "no GOST certificate", nil
	}
	for _, cert := range c.certs {
		if cert.PublicKey != nil && verifyXML(s.scheme, cert, s.scheme.Hash.Digest(info), value) == nil {
			return "", nil
		}
	}
	return "", errors.New("does not belong to SignedInfo and the certificate")
}

// keysInside are the keys of a KeyInfo: their values and those of certificates.
func keysInside(s *signature) (keys []crypto.PublicKey) {
	t := s.tree
	if s.keyInfo == xmltree.None {
		return nil
	}
	raw := func(n xmltree.Node) []byte {
		b, _ := base64Text(t, n, 2*x509gost.MaxCertificate)
		return b
	}
	number := func(n xmltree.Node, local string) *big.Int {
		if c := t.Child(n, nsDS, local); c != xmltree.None {
			return new(big.Int).SetBytes(raw(c))
		}
		return new(big.Int)
	}
	for n := range t.Find(s.keyInfo, nsDS, "RSAKeyValue") {
		keys = append(keys, &rsa.PublicKey{N: number(n, "Modulus"), E: int(number(n, "Exponent").Int64())})
	}
	for n := range t.Find(s.keyInfo, nsDS, "DSAKeyValue") {
		keys = append(keys, &dsa.PublicKey{Parameters: dsa.Parameters{P: number(n, "P"), Q: number(n, "Q"), G: number(n, "G")}, Y: number(n, "Y")})
	}
	const ns11 = "http://www.w3.org/2009/xmldsig11#"
	for n := range t.Find(s.keyInfo, ns11, "ECKeyValue") {
		named, point := t.Child(n, ns11, "NamedCurve"), t.Child(n, ns11, "PublicKey")
		if named == xmltree.None || point == xmltree.None {
			continue
		}
		uri, _ := t.Get(named, "URI")
		if curve := curves[uri]; curve != nil {
			if key, err := ecdsa.ParseUncompressedPublicKey(curve, raw(point)); err == nil {
				keys = append(keys, key)
			}
		}
	}
	for n := range t.Find(s.keyInfo, ns11, "DEREncodedKeyValue") {
		if key, err := x509.ParsePKIXPublicKey(raw(n)); err == nil {
			keys = append(keys, key)
		}
	}
	for n := range t.Find(s.keyInfo, nsDS, "X509Certificate") {
		if c, err := x509.ParseCertificate(raw(n)); err == nil {
			keys = append(keys, c.PublicKey)
		}
	}
	return keys
}

// curves are the named curves of XML Signature 1.1.
var curves = map[string]elliptic.Curve{
	"urn:oid:1.2.840.10045.3.1.7": elliptic.P256(), "urn:oid:1.3.132.0.34": elliptic.P384(), "urn:oid:1.3.132.0.35": elliptic.P521(),
}

// keysBeside are the keys of the certificates in the directories where these collections
// keep them.
func keysBeside(dir string) (keys []crypto.PublicKey) {
	for _, pattern := range []string{"certs/*.crt", "certs/*.der", "../keys/*.der", "../keys/*/*.der"} {
		files, _ := filepath.Glob(filepath.Join(dir, pattern))
		for _, f := range files {
			der, _ := os.ReadFile(f)
			if c, err := x509.ParseCertificate(der); err == nil {
				keys = append(keys, c.PublicKey)
			}
		}
	}
	return keys
}

// TestForeign is a small TestInterop that always runs: samples of each kind, each of
// which must fail with a change.
func TestForeign(t *testing.T) {
	const dir = "testdata/interop"
	o := examine(t, dir, nil)
	if o.files != 8 || o.whole != 8 || o.values != 8 || o.references != 16 || o.digests != 16 || len(o.wrong) != 0 {
		t.Errorf("%s%v", o, o.wrong)
	}
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		data, err := os.ReadFile(filepath.Join(dir, f.Name()))
		if err != nil {
			t.Fatal(err)
		}
		bad := strings.NewReplacer("Болт", "Болд", " 10 ", " 11 ", "AAEC", "AAED", `a="b"`, `a="c"`, "&#x442;&#x435;", "&#x435;").Replace(string(data))
		info := strings.Replace(string(data), "<SignedInfo>", "<SignedInfo >\n", 1)
		for what, changed := range map[string]string{"what is signed": bad, "SignedInfo": info} {
			x := t.TempDir()
			if err := os.WriteFile(filepath.Join(x, f.Name()), []byte(changed), 0o600); err != nil {
				t.Fatal(err)
			}
			o := examine(t, x, nil)
			if len(o.wrong) == 0 && o.unjudged["the HMAC key is not known"] == 0 {
				t.Errorf("%s: %s changed, and everything verifies", f.Name(), what)
			}
		}
	}
}

// spoiled matches signatures that are wrong on purpose or are no signatures: bad ones of
// the collections themselves, keys in a Signature, signatures that were cut or edited for
// an attack, and a document of the Santuario tree whose line ends have changed since it
// was signed.
var spoiled = regexp.MustCompile(`bad-|invalid|keysstore\.xml|signatureStripped|/dsig/signature[123]\.xml: value|^com/phaos/.*URI="document\.xml"`)

// TestInterop verifies the test signatures of xmlsec and those in the directory of the
// flag, as they are and once more with internal subsets expanded. No digest and no value
// may be wrong except those that were made wrong on purpose.
func TestInterop(t *testing.T) {
	// Some of the keys have 512 bits.
	t.Setenv("GODEBUG", "rsa1024min=0")
	dirs := []string{judge.XMLSecVectors(t)}
	if *interop != "" {
		dirs = append(dirs, *interop)
	}
	lint := judge.XMLLint(t)
	for i, dir := range dirs {
		first := examine(t, dir, nil)
		t.Logf("%s, as they are:\n%s", dir, first)
		again := examine(t, dir, lint.Expand)
		t.Logf("%s, internal subsets expanded beforehand:\n%s", dir, again)
		for _, wrong := range again.wrong {
			if !spoiled.MatchString(wrong) {
				t.Errorf("%s", wrong)
			}
		}
		if i == 0 && (again.values < 80 || again.digests < 80) {
			t.Errorf("too little was verified")
		}
	}
}
