// SPDX-License-Identifier: Apache-2.0

package xmlenc_test

import (
	"bytes"
	"context"
	"crypto"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"tamga/gost/gost3410"
	"tamga/internal/judge"
	"tamga/pki/cms"
	"tamga/pki/suite"
	"tamga/pki/x509gost"
	"tamga/sig/budget"
	"tamga/sig/xmlenc"
)

// party is a recipient with its private key.
type party struct {
	certificate     *x509gost.Certificate
	key             cms.RecipientKey
	certPEM, keyPEM []byte
}

func (p party) opening() cms.Opening { return cms.Opening{Certificate: p.certificate, Key: p.key} }

var parties sync.Map // by name: RSA keys are slow to make

// newParty returns the same recipient for the same arguments. set is nil for the default set.
func newParty(t testing.TB, s *suite.Suite, set *gost3410.Set, serial byte) (p party) {
	t.Helper()
	id := fmt.Sprint(s.Name, set, serial)
	if p, ok := parties.Load(id); ok {
		return p.(party)
	}
	var private crypto.Signer
	var err error
	if set != nil {
		private, err = gost3410.GenerateKey(set, nil)
	} else {
		private, err = s.Generate(nil)
	}
	must(t, err)
	name, err := x509gost.BuildName([]x509gost.Attribute{{OID: x509gost.OIDCommonName, Value: "Recipient " + s.Name}})
	must(t, err)
	der, err := x509gost.CreateCertificate(&x509gost.Template{
		Subject: name, SerialNumber: []byte{serial},
		NotBefore: time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC), NotAfter: time.Date(2049, 1, 1, 0, 0, 0, 0, time.UTC),
	}, nil, private.Public(), s, s, x509gost.SignWith(nil, private, s))
	must(t, err)
	p.certificate, err = x509gost.ParseCertificate(der)
	must(t, err)
	p.key, err = cms.NewRecipientKey(private)
	must(t, err)
	pkcs8, err := x509gost.MarshalPrivateKey(private, s)
	must(t, err)
	p.certPEM = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	p.keyPEM = pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8})
	parties.Store(id, p)
	return p
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func encrypt(t testing.TB, document string, o xmlenc.Encryption, to ...party) string {
	t.Helper()
	var certificates []*x509gost.Certificate
	for _, p := range to {
		certificates = append(certificates, p.certificate)
	}
	var out bytes.Buffer
	must(t, xmlenc.Encrypt(t.Context(), &out, []byte(document), certificates, o))
	return out.String()
}

func decrypt(ctx context.Context, document string, p party) (string, cms.Integrity, error) {
	e, err := xmlenc.Parse(ctx, []byte(document))
	if err != nil {
		return "", cms.NotVerified, err
	}
	sink := &cms.Buffer{Limit: 1 << 20}
	integrity, err := e.Decrypt(ctx, p.opening(), sink)
	return string(sink.Bytes()), integrity, err
}

// forms are the keys that documents are encrypted for.
var forms = []struct {
	suite     *suite.Suite
	set       *gost3410.Set
	integrity cms.Integrity
}{
	{suite.GOST2001, nil, cms.NotVerified},
	{suite.GOST2012x256, nil, cms.NotVerified},
	{suite.GOST2012x256, gost3410.TC26256A, cms.NotVerified},
	{suite.GOST2012x512, nil, cms.NotVerified},
	{suite.GOST2012x512, gost3410.TC26512C, cms.NotVerified},
	{suite.RSASHA256, nil, cms.Verified},
}

// documentOf returns a document with a root element of about n bytes.
func documentOf(n int) string {
	return "<?xml version=\"1.0\"?>\n<!-- before -->\n<r xmlns='urn:r' xmlns:p=\"urn:p\"><p:a>" + strings.Repeat("Ж<b x='1'/>", n/12) + "</p:a></r>\n<?after?>"
}

// TestRoundTrip decrypts what was encrypted: both parts, every kind of key, and sizes around the 1024 bytes
// after which the key is meshed.
func TestRoundTrip(t *testing.T) {
	for _, f := range forms {
		p := newParty(t, f.suite, f.set, 1)
		for _, part := range []xmlenc.Part{xmlenc.Element, xmlenc.Content} {
			for _, size := range []int{0, 12, 900, 1023, 1024, 1025, 1100, 100_000} {
				document := documentOf(size)
				encrypted := encrypt(t, document, xmlenc.Encryption{Part: part}, p)
				if strings.Contains(encrypted, "urn:p\"><p:a>") || strings.Contains(encrypted, "Ж") {
					t.Fatalf("the plaintext is there: %.300s", encrypted)
				}
				if part == xmlenc.Content && !strings.Contains(encrypted, "<r xmlns='urn:r'") || !strings.HasSuffix(encrypted, "\n<?after?>") {
					t.Errorf("what is outside the part has changed: %.300s", encrypted)
				}
				got, integrity, err := decrypt(t.Context(), encrypted, p)
				if err != nil || got != document || integrity != cms.NotVerified { // nothing covers what is around it
					t.Errorf("%s, part %d, %d bytes: %v, %v, %d bytes", f.suite.Name, part, size, integrity, err, len(got))
				}
			}
		}
	}
}

// TestAround checks that a document is verified only if the code covers all of it.
func TestAround(t *testing.T) {
	p := newParty(t, suite.RSASHA256, nil, 1)
	const document = "<r a='1'>text</r>"
	whole := encrypt(t, document, xmlenc.Encryption{Part: xmlenc.Element}, p)
	for _, c := range []struct {
		encrypted, want string
		integrity       cms.Integrity
	}{
		{whole, document, cms.Verified},
		{"<?xml version='1.0'?>\n" + whole + "\n", "<?xml version='1.0'?>\n" + document + "\n", cms.Verified},
		{"<!-- note -->" + whole, "<!-- note -->" + document, cms.NotVerified},
		{whole + "<?after?>", document + "<?after?>", cms.NotVerified},
		{"<w><pay to='b'/>" + whole + "</w>", "<w><pay to='b'/>" + document + "</w>", cms.NotVerified},
		{encrypt(t, document, xmlenc.Encryption{Part: xmlenc.Content}, p), document, cms.NotVerified},
	} {
		got, integrity, err := decrypt(t.Context(), c.encrypted, p)
		if err != nil || got != c.want || integrity != c.integrity {
			t.Errorf("%.60s: %q, %v, %v", c.encrypted, got, integrity, err)
		}
	}
}

// Documents in other encodings keep them, and an empty element has a content.
func TestEncodings(t *testing.T) {
	p := newParty(t, suite.GOST2012x256, nil, 1)
	for _, document := range []string{
		"<?xml version=\"1.0\" encoding=\"windows-1251\"?><a>\xcf\xf0\xe8\xe2\xe5\xf2</a>",
		"\xef\xbb\xbf<a>Привет</a>",
		"\xff\xfe<\x00a\x00>\x00\x1f\x04<\x00/\x00a\x00>\x00",
	} {
		for _, part := range []xmlenc.Part{xmlenc.Element, xmlenc.Content} {
			if got, _, err := decrypt(t.Context(), encrypt(t, document, xmlenc.Encryption{Part: part}, p), p); err != nil || got != document {
				t.Errorf("%q: %q, %v", document, got, err)
			}
		}
	}
	if got, _, err := decrypt(t.Context(), encrypt(t, "<a/>", xmlenc.Encryption{Part: xmlenc.Content}, p), p); err != nil || got != "<a></a>" {
		t.Errorf("%q, %v", got, err)
	}
}

// OpenSSL, with a reader of XML in another language before it, reads what we encrypt, and we read what it
// encrypts, whatever suite the identifier of the encrypted key names.
func TestGOSTJudge(t *testing.T) {
	j := judge.NewXMLEncryption(t)
	names := []*suite.Suite{suite.GOST2001, suite.GOST2012x256, suite.GOST2012x512}
	for i, f := range forms {
		if !f.suite.IsGOST() {
			continue
		}
		p := newParty(t, f.suite, f.set, 1)
		set := "id-tc26-gost-28147-param-Z"
		if f.suite == suite.GOST2001 {
			set = "id-Gost28147-89-CryptoPro-A-ParamSet"
		}
		for _, size := range []int{0, 900, 1100, 100_000} {
			document := documentOf(size)
			root := document[strings.Index(document, "<r"):strings.Index(document, "\n<?after")]
			ours := encrypt(t, document, xmlenc.Encryption{Transport: names[i%len(names)]}, p)
			if got, err := j.Decrypt([]byte(ours), p.certPEM, p.keyPEM); err != nil || string(got) != root {
				t.Errorf("%s, %d bytes: the judge does not read ours: %d bytes, %v", f.suite.Name, size, len(got), err)
			}
			theirs, err := j.Encrypt([]byte(root), p.certificate.Raw, p.certPEM, "http://www.w3.org/2001/04/xmlenc#Element",
				"urn:ietf:params:xml:ns:cpxmlsec:algorithms:transport-gost"+[]string{"2001", "2012-256", "2012-512"}[i%len(names)], set)
			must(t, err)
			if got, _, err := decrypt(t.Context(), string(theirs), p); err != nil || got != "<?xml version=\"1.0\"?>\n"+root {
				t.Errorf("%s, %d bytes: we do not read the judge's: %d bytes, %v", f.suite.Name, size, len(got), err)
			}
		}
	}
}

// One document for keys of three kinds, of which each opens it.
func TestSeveralRecipients(t *testing.T) {
	j := judge.NewXMLEncryption(t)
	all := []party{newParty(t, suite.GOST2012x256, nil, 1), newParty(t, suite.GOST2001, nil, 2), newParty(t, suite.GOST2012x512, nil, 3)}
	document := documentOf(5000)
	encrypted := encrypt(t, document, xmlenc.Encryption{}, all...)
	for _, p := range all {
		if got, _, err := decrypt(t.Context(), encrypted, p); err != nil || got != document {
			t.Errorf("%s: %v", p.certificate.Subject, err)
		}
		if got, err := j.Decrypt([]byte(encrypted), p.certPEM, p.keyPEM); err != nil || !strings.Contains(document, string(got)) || len(got) < 5000 {
			t.Errorf("%s: the judge: %v", p.certificate.Subject, err)
		}
	}
	if _, _, err := decrypt(t.Context(), encrypted, newParty(t, suite.GOST2012x256, nil, 9)); !errors.Is(err, cms.ErrNotRecipient) {
		t.Errorf("another certificate: %v", err)
	}
}

// xmlsec1 reads what we encrypt for RSA, and we read what it encrypts.
func TestXMLSec(t *testing.T) {
	j := judge.XMLSec(t)
	p := newParty(t, suite.RSASHA256, nil, 1)
	for _, part := range []xmlenc.Part{xmlenc.Element, xmlenc.Content} {
		document := documentOf(3000)
		got, err := j.Decrypt([]byte(encrypt(t, document, xmlenc.Encryption{Part: part}, p)), p.keyPEM)
		if err != nil || !strings.Contains(string(got), strings.Repeat("&#x416;<b x=\"1\"/>", 250)) {
			t.Errorf("part %d: xmlsec1 does not read ours: %v: %.200s", part, err, got)
		}
	}
	for _, size := range []string{"128", "256"} {
		template := `<EncryptedData xmlns="http://www.w3.org/2001/04/xmlenc#" Type="http://www.w3.org/2001/04/xmlenc#Element">
<EncryptionMethod Algorithm="http://www.w3.org/2009/xmlenc11#aes` + size + `-gcm"/>
<KeyInfo xmlns="http://www.w3.org/2000/09/xmldsig#"><EncryptedKey xmlns="http://www.w3.org/2001/04/xmlenc#">
<EncryptionMethod Algorithm="http://www.w3.org/2001/04/xmlenc#rsa-oaep-mgf1p"><DigestMethod xmlns="http://www.w3.org/2000/09/xmldsig#" Algorithm="http://www.w3.org/2000/09/xmldsig#sha1"/></EncryptionMethod>
<KeyInfo xmlns="http://www.w3.org/2000/09/xmldsig#"><X509Data><X509Certificate>` + base64.StdEncoding.EncodeToString(p.certificate.Raw) + `</X509Certificate></X509Data></KeyInfo>
<CipherData><CipherValue/></CipherData></EncryptedKey></KeyInfo>
<CipherData><CipherValue/></CipherData></EncryptedData>`
		theirs, err := j.Encrypt([]byte(template), []byte("<a>text<b/></a>"), p.certPEM, "aes-"+size)
		must(t, err)
		if got, integrity, err := decrypt(t.Context(), string(theirs), p); err != nil || !strings.Contains(got, "<a>text<b/></a>") || integrity != cms.Verified {
			t.Errorf("AES-%s: we do not read xmlsec1's: %q, %v, %v\n%s", size, got, integrity, err, theirs)
		}
	}
}

// TestFlippedBits changes single bits. In an encrypted key, and in a content with a code, each change that
// counts is refused and releases no byte; a content without a code decrypts to other bytes.
func TestFlippedBits(t *testing.T) {
	for _, f := range []struct {
		suite *suite.Suite
		code  bool
	}{{suite.GOST2012x256, false}, {suite.RSASHA256, true}} {
		p := newParty(t, f.suite, nil, 1)
		document := documentOf(2000)
		encrypted := encrypt(t, document, xmlenc.Encryption{}, p)
		values := strings.Split(encrypted, "CipherValue>")
		for place, at := range map[string]int{"key": 1, "content": 3} {
			raw, err := base64.StdEncoding.DecodeString(strings.TrimSuffix(values[at], "</xenc:"))
			must(t, err)
			same := 0
			for i := 0; i < len(raw); i += max(1, len(raw)/60) {
				changed := bytes.Clone(raw)
				changed[i] ^= 1 << (i % 8)
				parts := append([]string(nil), values...)
				parts[at] = base64.StdEncoding.EncodeToString(changed) + "</xenc:"
				got, _, err := decrypt(t.Context(), strings.Join(parts, "CipherValue>"), p)
				if place == "content" && !f.code {
					if err != nil || got == document {
						t.Errorf("%s, byte %d of the content: %v", f.suite.Name, i, err)
					}
					continue
				}
				switch {
				case err != nil && got == "":
				case place == "key" && !f.code && got == document: // the parameters of the sender's key are not covered
					same++
				default:
					t.Errorf("%s, byte %d of the %s: %d bytes, %v", f.suite.Name, i, place, len(got), err)
				}
			}
			if same > 12 {
				t.Errorf("%s: %d changed bytes of the %s do not count", f.suite.Name, same, place)
			}
		}
	}
}

// A wrong key has the answer of a changed one.
func TestWrongKey(t *testing.T) {
	for _, s := range []*suite.Suite{suite.GOST2012x256, suite.GOST2012x512, suite.RSASHA256} {
		p, other := newParty(t, s, nil, 1), newParty(t, s, nil, 7)
		p.key = other.key
		if got, _, err := decrypt(t.Context(), encrypt(t, documentOf(10), xmlenc.Encryption{}, p), p); !errors.Is(err, cms.ErrDecrypt) || got != "" {
			t.Errorf("%s: %q, %v", s.Name, got, err)
		}
	}
}

// TestRefused checks documents that are not decrypted, and certificates that receive nothing.
func TestRefused(t *testing.T) {
	p := newParty(t, suite.GOST2012x256, nil, 1)
	good := encrypt(t, "<a>text</a>", xmlenc.Encryption{}, p)
	inner := good[strings.Index(good, "<xenc:EncryptedKey"):strings.Index(good, "</ds:KeyInfo><xenc:CipherData>")]
	swap := func(from, to string) string {
		if !strings.Contains(good, from) {
			t.Fatalf("%q is not there", from)
		}
		return strings.Replace(good, from, to, 1)
	}
	for name, document := range map[string]string{
		"no encrypted data":       "<a/>",
		"not XML":                 "a",
		"a document type":         "<!DOCTYPE a [<!ENTITY e SYSTEM 'file:///etc/passwd'>]>" + good,
		"two encrypted data":      "<a>" + good + good + "</a>",
		"another place":           swap("<xenc:CipherData><xenc:CipherValue>", "<xenc:CipherData><xenc:CipherReference URI='http://127.0.0.1/'/><xenc:CipherValue>"),
		"another place of keys":   swap("<xenc:EncryptedKey>", "<ds:RetrievalMethod URI='#k'/><xenc:EncryptedKey>"),
		"a list of references":    swap("</xenc:EncryptedKey>", "<xenc:ReferenceList/></xenc:EncryptedKey>"),
		"two methods":             swap("<xenc:EncryptionMethod", "<xenc:EncryptionMethod Algorithm='x'/><xenc:EncryptionMethod"),
		"no method":               swap("<xenc:EncryptionMethod Algorithm=\"urn:ietf:params:xml:ns:cpxmlsec:algorithms:gost28147\"/>", ""),
		"another method":          swap("algorithms:gost28147", "algorithms:gost28148"),
		"a method of RSA":         swap("urn:ietf:params:xml:ns:cpxmlsec:algorithms:transport-gost2012-256", "http://www.w3.org/2001/04/xmlenc#rsa-oaep-mgf1p"),
		"PKCS #1 v1.5":            swap("urn:ietf:params:xml:ns:cpxmlsec:algorithms:transport-gost2012-256", "http://www.w3.org/2001/04/xmlenc#rsa-1_5"),
		"a content of AES":        swap("urn:ietf:params:xml:ns:cpxmlsec:algorithms:gost28147", "http://www.w3.org/2009/xmlenc11#aes256-gcm"),
		"a parameter":             swap("gost28147\"/>", "gost28147\"><xenc:KeySize>256</xenc:KeySize></xenc:EncryptionMethod>"),
		"no key":                  strings.Replace(good, inner, "", 1),
		"no Base64":               swap("</xenc:CipherValue>", "!</xenc:CipherValue>"),
		"two certificates":        swap("</ds:X509Certificate>", "</ds:X509Certificate><ds:X509Certificate>AA==</ds:X509Certificate>"),
		"an element in a value":   swap("</xenc:CipherValue>", "<b/></xenc:CipherValue>"),
		"bytes inside a document": "<a>" + strings.Replace(good, "xmlenc#Element", "xmlenc#Other", 1) + "</a>",
		"a short content":         good[:strings.LastIndex(good, "<xenc:CipherValue>")] + "<xenc:CipherValue>AAAA</xenc:CipherValue></xenc:CipherData></xenc:EncryptedData>",
	} {
		if got, _, err := decrypt(t.Context(), document, p); err == nil || got != "" {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	if _, err := xmlenc.Parse(t.Context(), []byte("<a/>")); !errors.Is(err, xmlenc.ErrNotEncrypted) {
		t.Errorf("without encrypted data: %v", err)
	}
	// Bytes that are no part of a document are returned alone.
	if got, _, err := decrypt(t.Context(), strings.Replace(good, ` Type="http://www.w3.org/2001/04/xmlenc#Element"`, "", 1), p); err != nil || got != "<a>text</a>" {
		t.Errorf("without a type: %q, %v", got, err)
	}
	for name, c := range map[string]struct {
		to    []*x509gost.Certificate
		index int
	}{
		"a key of ECDSA":  {[]*x509gost.Certificate{p.certificate, newParty(t, suite.ECDSAP256, nil, 1).certificate}, 1},
		"RSA beside GOST": {[]*x509gost.Certificate{newParty(t, suite.RSASHA256, nil, 1).certificate, p.certificate}, 1},
	} {
		var out bytes.Buffer
		var refused *cms.RecipientError
		if err := xmlenc.Encrypt(t.Context(), &out, []byte("<a/>"), c.to, xmlenc.Encryption{}); !errors.As(err, &refused) || refused.Index != c.index || out.Len() > 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
	var out bytes.Buffer
	if err := xmlenc.Encrypt(t.Context(), &out, []byte(good), []*x509gost.Certificate{p.certificate}, xmlenc.Encryption{}); err == nil {
		t.Error("encrypted data was encrypted again")
	}
	if err := xmlenc.Encrypt(t.Context(), &out, []byte("<a/>"), nil, xmlenc.Encryption{}); err == nil {
		t.Error("encrypted for no recipient")
	}
}

// TestBudget checks that memory is charged before it is allocated.
func TestBudget(t *testing.T) {
	p := newParty(t, suite.GOST2012x256, nil, 1)
	encrypted := encrypt(t, documentOf(1<<20), xmlenc.Encryption{}, p)
	for _, memory := range []int64{4 << 20, 6 << 20} {
		ctx := budget.With(t.Context(), budget.Limits{Steps: 1 << 30, Memory: memory})
		if got, _, err := decrypt(ctx, encrypted, p); !errors.Is(err, budget.ErrMemory) || got != "" {
			t.Errorf("%d bytes of memory: %d bytes, %v", memory, len(got), err)
		}
		if err := xmlenc.Encrypt(ctx, &bytes.Buffer{}, []byte(documentOf(4<<20)), []*x509gost.Certificate{p.certificate}, xmlenc.Encryption{}); !errors.Is(err, budget.ErrMemory) {
			t.Errorf("%d bytes of memory: encrypting: %v", memory, err)
		}
	}
}

// FuzzDecrypt reads changed documents: no panic, and nothing is released after an error.
func FuzzDecrypt(f *testing.F) {
	p, q := newParty(f, suite.GOST2012x256, nil, 1), newParty(f, suite.RSASHA256, nil, 1)
	for _, to := range []party{p, q} {
		for _, part := range []xmlenc.Part{xmlenc.Element, xmlenc.Content} {
			f.Add([]byte(encrypt(f, "<a b='c'>text</a>", xmlenc.Encryption{Part: part}, to)))
		}
	}
	f.Add([]byte("<a/>"))
	f.Fuzz(func(t *testing.T, document []byte) {
		for _, p := range []party{p, q} {
			if got, _, err := decrypt(t.Context(), string(document), p); err != nil && got != "" {
				t.Fatalf("%q after %v", got, err)
			}
		}
	})
}

func ExampleEncrypted_Decrypt() {
	document := []byte("<order>5 apples</order>")
	private, _ := suite.GOST2012x256.Generate(nil)
	name, _ := x509gost.BuildName([]x509gost.Attribute{{OID: x509gost.OIDCommonName, Value: "Recipient"}})
	der, _ := x509gost.CreateCertificate(&x509gost.Template{
		Subject: name, SerialNumber: []byte{1}, NotBefore: time.Unix(0, 0), NotAfter: time.Unix(1<<32, 0),
	}, nil, private.Public(), suite.GOST2012x256, suite.GOST2012x256, x509gost.SignWith(nil, private, suite.GOST2012x256))
	certificate, _ := x509gost.ParseCertificate(der)

	var encrypted bytes.Buffer
	if err := xmlenc.Encrypt(context.Background(), &encrypted, document, []*x509gost.Certificate{certificate}, xmlenc.Encryption{}); err != nil {
		fmt.Println(err)
		return
	}
	e, err := xmlenc.Parse(context.Background(), encrypted.Bytes())
	if err != nil {
		fmt.Println(err)
		return
	}
	key, _ := cms.NewRecipientKey(private)
	plain := &cms.Buffer{Limit: 1 << 20}
	integrity, err := e.Decrypt(context.Background(), cms.Opening{Certificate: certificate, Key: key}, plain)
	fmt.Println(string(plain.Bytes()), integrity, err)
	// Output: <order>5 apples</order> None <nil>
}
