// SPDX-License-Identifier: Apache-2.0

package verify_test

import (
	"bytes"
	"crypto/x509"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf16"

	"github.com/google/go-cmp/cmp"

	"tamga/internal/cli/verify"
	"tamga/internal/sigtest"
	"tamga/pki/cms"
	"tamga/pki/suite"
	"tamga/pki/x509gost"
	"tamga/sig"
	"tamga/sig/cades"
	"tamga/sig/raw"
	"tamga/sig/xmldsig"

	"tamga/internal/tamgatest"
)

// signedFiles has the parties of a directory with a document, its signatures, and the certificates
// and lists to verify them.
type signedFiles struct {
	root, signer *sigtest.Party
	document     string
	detached     []byte
}

func newSignedFiles(t *testing.T) *signedFiles {
	t.Helper()
	dir := t.TempDir()
	t.Chdir(dir)
	root := sigtest.Root(t, suite.GOST2012x256)
	authority := root.Authority(t, "Issuing")
	f := &signedFiles{root: root, signer: person(t, authority), document: "Договор\n"}
	made := func(format sig.Format, params sig.Params) []byte {
		return sigtest.Make(t, format, f.signer, &sig.Job{Document: sigtest.Document([]byte(f.document)), Params: params})
	}
	f.detached = made(cades.New(), sig.Params{"CADESType": "BES", "IsDetached": "True"})
	attached := made(cades.New(), sig.Params{"CADESType": "BES", "IsDetached": "False"})
	countersigned := sigtest.Make(t, cades.New(), f.signer, &sig.Job{
		Document: sigtest.Document(attached), Params: sig.Params{"CmsSignatureType": "Countersign"},
	})
	value := made(raw.New(), nil)
	for name, text := range map[string][]byte{
		"doc": []byte(f.document), "doc.sig": f.detached, "alone.p7s": f.detached, "attached": attached, "value": value,
		"countersigned": countersigned, "broken": breakCountersignature(t, countersigned),
		"pem":       pem.EncodeToMemory(&pem.Block{Type: "CMS", Bytes: f.detached}),
		"base64":    []byte("\xef\xbb\xbf\r\n" + wrap(base64.StdEncoding.EncodeToString(attached))),
		"answer":    []byte(`"` + base64.StdEncoding.EncodeToString(attached) + `"`),
		"value.b64": []byte(base64.StdEncoding.EncodeToString(value) + "\n"),
		"other":     []byte("Договор!\n"),
		"root.pem":  root.PEM(), "bundle.pem": append(authority.PEM(), root.PEM()...), "issuing.pem": authority.PEM(),
		"signer.pem": f.signer.PEM(), "foreign.pem": sigtest.Root(t, suite.ECDSAP256).PEM(),
		"revoked.crl": revoked(t, authority, f.signer), "clean.crl": revoked(t, root, f.signer),
		"empty": nil, "text": []byte(strings.Repeat("Lorem ipsum. ", 1000)),
		"pdf": []byte("%PDF-1.7\n"), "docx": []byte("PK\x03\x04..."),
		"cut.pem": []byte("-----BEGIN CMS-----\nMIIB\n"), "cut": f.detached[:len(f.detached)/2],
	} {
		tamgatest.WriteFile(t, filepath.Join(dir, name), string(text))
	}
	return f
}

// breakCountersignature changes one bit of the value of the countersignature.
func breakCountersignature(t *testing.T, message []byte) []byte {
	t.Helper()
	m, err := cms.Parse(bytes.NewReader(message), int64(len(message)))
	if err != nil {
		t.Fatal(err)
	}
	counters, err := m.Signers[0].Countersignatures()
	if err != nil || len(counters) != 1 {
		t.Fatal(err, len(counters))
	}
	broken := bytes.Clone(counters[0].Signature)
	broken[0] ^= 1
	return bytes.Replace(message, counters[0].Signature, broken, 1)
}

func wrap(s string) string {
	var b strings.Builder
	for ; len(s) > 64; s = s[64:] {
		b.WriteString(s[:64] + "\r\n")
	}
	return b.String() + s + "\r\n"
}

// person is a signer with identifiers of Russian registers and a name with characters that could
// rewrite the terminal.
func person(t *testing.T, authority *sigtest.Party) *sigtest.Party {
	t.Helper()
	name, err := x509gost.BuildName([]x509gost.Attribute{
		{OID: x509gost.OIDCommonName, Value: "Иванов \u202eИван"},
		{OID: x509gost.OIDINN, Value: "123456789012"},
		{OID: x509gost.OIDSNILS, Value: "12345678901"},
	})
	if err != nil {
		t.Fatal(err)
	}
	s := suite.GOST2012x512
	key, err := s.Generate(sigtest.Random(99))
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509gost.CreateCertificate(&x509gost.Template{
		Subject: name, SerialNumber: []byte{0x0a, 0xbc}, NotBefore: sigtest.Time.AddDate(0, -1, 0), NotAfter: sigtest.Time.AddDate(1, 0, 0),
		KeyUsage: x509.KeyUsageDigitalSignature,
	}, authority.Certificate, key.Public(), s, authority.Suite, x509gost.SignWith(sigtest.Random(98), authority.Key, authority.Suite))
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509gost.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return &sigtest.Party{Certificate: cert, Suite: s, Key: key, Chain: append([]*x509gost.Certificate{authority.Certificate}, authority.Chain...)}
}

// revoked is a revocation list with the number of the certificate.
func revoked(t *testing.T, authority, p *sigtest.Party) []byte {
	t.Helper()
	der, err := x509gost.CreateRevocationList(&x509gost.CRLTemplate{
		ThisUpdate: sigtest.Time.Add(-time.Hour), NextUpdate: sigtest.Time.Add(24 * time.Hour), Number: []byte{1},
		Revoked: []x509gost.RevokedEntry{{SerialNumber: p.Certificate.SerialNumber, At: sigtest.Time.Add(-2 * time.Hour)}},
	}, authority.Certificate, authority.Suite, x509gost.SignWith(sigtest.Random(97), authority.Key, authority.Suite))
	if err != nil {
		t.Fatal(err)
	}
	return der
}

const at = " --at 2025-03-14T09:30:00Z"

func TestVerifyVerdicts(t *testing.T) {
	f := newSignedFiles(t)
	read := func(name string) string {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	wide := func(text string, order binary.AppendByteOrder) string {
		var out []byte
		for _, unit := range utf16.Encode([]rune(text)) {
			out = order.AppendUint16(out, unit)
		}
		return string(out)
	}
	attached := read("attached")
	mime := func(message string) string {
		return "MIME-Version: 1.0\r\nContent-Type: application/pkcs7-mime; smime-type=signed-data; name=\"smime.p7m\"\r\n" +
			"Content-Transfer-Encoding: base64\r\n\r\n" + base64.StdEncoding.EncodeToString([]byte(message)) + "\r\n"
	}
	tamgatest.WriteFile(t, "pem.commented", "Комментарий: 0 - 9\n\n"+read("pem"))
	tamgatest.WriteFile(t, "pem.utf16", wide("\ufeffКомментарий\r\n"+read("pem"), binary.LittleEndian))
	tamgatest.WriteFile(t, "base64.utf16", wide("\ufeff"+read("base64"), binary.LittleEndian))
	tamgatest.WriteFile(t, "base64.utf16be", wide(read("base64"), binary.BigEndian))
	tamgatest.WriteFile(t, "smime", mime(attached))
	tamgatest.WriteFile(t, "smime.changed", mime(strings.Replace(attached, f.document, strings.ToUpper(f.document), 1)))
	sum := func(h *suite.Hash) string { return hex.EncodeToString(h.Digest([]byte(f.document)).Sum) }
	const trusted = " --ca root.pem" + at
	for _, c := range []struct {
		name string
		args string
		code int
		want []string // in what is printed
	}{
		{"the document is beside", "doc.sig" + trusted, 0, []string{"note: the document is taken from doc\n", "Signature: passed; revocation not checked\n"}},
		{"document named", "alone.p7s --original doc" + trusted, 0, []string{"Signature: passed; revocation not checked\n"}},
		{"attached", "attached" + trusted, 0, []string{"Signature: passed; revocation not checked\n", "the attached document, 15 bytes"}},
		{"attached, the same document", "attached --original doc" + trusted, 0, []string{"Signature: passed; revocation not checked\n"}},
		{"attached, another document", "attached --original other" + trusted, 1, []string{"attached: FAILED; revocation not checked ("}},
		{"hash", "alone.p7s --hash " + sum(suite.Streebog512) + trusted, 0, []string{"Signature: passed; revocation not checked\n"}},
		{"hash of another document", "alone.p7s --hash " + strings.Repeat("00", 64) + trusted, 1, []string{"Signature: FAILED; revocation not checked\n", "wrong"}},
		{"PEM", "pem --original doc" + trusted, 0, []string{"note: pem is PEM text: it was decoded first", "Signature: passed; revocation not checked\n"}},
		{"PEM below text", "pem.commented --original doc" + trusted, 0, []string{"note: pem.commented is PEM text: it was decoded first", "Signature: passed; revocation not checked\n"}},
		{"PEM in UTF-16", "pem.utf16 --original doc" + trusted, 0, []string{"note: pem.utf16 is text in UTF-16: it was decoded first", "is PEM text", "Signature: passed; revocation not checked\n"}},
		{"Base64 in UTF-16", "base64.utf16" + trusted, 0, []string{"text in UTF-16", "Base64 text", "Signature: passed; revocation not checked\n"}},
		{"Base64 in UTF-16, the other order", "base64.utf16be" + trusted, 0, []string{"text in UTF-16", "Base64 text", "Signature: passed; revocation not checked\n"}},
		{"S/MIME", "smime" + trusted, 0, []string{"note: smime is S/MIME: it was decoded first", "Signature: passed; revocation not checked\n"}},
		{"S/MIME changed", "smime.changed" + trusted, 1, []string{"Signature: FAILED"}},
		{"Base64", "base64" + trusted, 0, []string{"Base64 text", "Signature: passed; revocation not checked\n"}},
		{"answer of the server", "answer" + trusted, 0, []string{"in quotes", "Signature: passed; revocation not checked\n"}},
		{"bare", "value --original doc --cert signer.pem --intermediate issuing.pem" + trusted, 0, []string{"(bare signature, 1 signature)", "Signature: passed; revocation not checked\n"}},
		{"bare, in Base64", "value.b64 --original doc --cert signer.pem --ca bundle.pem" + at, 0, []string{"Signature: passed; revocation not checked\n"}},
		{"bare, over a hash", "value --cert signer.pem --ca bundle.pem --hash " + sum(suite.Streebog512) + at, 0, []string{"Signature: passed; revocation not checked\n"}},
		{"bare, another document", "value --original other --cert signer.pem --ca bundle.pem" + at, 1, []string{"Signature: FAILED; revocation not checked\n"}},
		{"another document", "doc.sig --original other" + trusted, 1, []string{"Signature: FAILED; revocation not checked\n", "wrong    the signed digest is"}},
		{"countersigned", "countersigned" + trusted, 0, []string{"countersigned: passed; revocation not checked (signed message, 1 signature)\n"}},
		{"countersignature broken", "broken" + trusted, 1, []string{"broken: FAILED; revocation not checked (signed message, 1 signature)\n", "  Countersignature: FAILED"}},
		{"status unknown and required", "doc.sig --revocation require" + trusted, 3, []string{"doc.sig: INDETERMINATE (signed message, 1 signature)\n", "unclear"}},
		{"no root trusted", "doc.sig" + at, 3, []string{"only the cryptography can hold", "INDETERMINATE; the signature holds, but its signer is not trusted"}},
		{"another root trusted", "doc.sig --ca foreign.pem" + at, 3, []string{"INDETERMINATE; the signature holds, but its signer is not trusted"}},
		{"the issuing authority alone trusted", "doc.sig --ca issuing.pem" + at, 0, []string{"Signature: passed; revocation not checked\n"}},
		{"expired", "doc.sig --ca root.pem --at 2030-01-01", 3, []string{"INDETERMINATE; revocation not checked; the signature holds", "was valid until"}},
		{"revoked", "doc.sig --crl revoked.crl" + trusted, 1, []string{"FAILED; revocation not checked; the signature holds", "revoked"}},
		{"a list of another authority", "doc.sig --crl clean.crl" + trusted, 0, []string{"Signature: passed; revocation not checked\n"}},
		{"a date alone", "doc.sig --at 2025-03-14 --ca root.pem", 0, []string{"Signature: passed; revocation not checked\n"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := tamgatest.Run(t.Context(), "", append([]string{"verify"}, strings.Fields(c.args)...)...)
			if r.Code != c.code || r.Err != "" {
				t.Errorf("exit code %d, want %d; %s", r.Code, c.code, r.Err)
			}
			for _, want := range c.want {
				if !strings.Contains(r.Out, want) {
					t.Errorf("printed\n%s\nwithout %q", r.Out, want)
				}
			}
		})
	}
}

// TestVerifyCannotJudge checks exit code 2, whose reason is printed to standard error or in the JSON.
// TestVerifyStandardInput checks that - is standard input, which is read like a file.
// TestVerifyQuality says which signatures are qualified, by a list of accredited authorities.
func TestVerifyQuality(t *testing.T) {
	f := newSignedFiles(t)
	ministry := f.root.Signer(t, f.root.Suite, "Ministry")
	issuer := f.signer.Chain[0]
	since := f.signer.Certificate.NotBefore
	for name, list := range map[string][]byte{
		"on.xml":    ministry.AuthorityList(t, xmldsig.New(), 1, since, "Действует", since, issuer),
		"ended.xml": ministry.AuthorityList(t, xmldsig.New(), 1, since, "Прекращена", since, issuer),
		"ministry":  ministry.PEM(),
	} {
		if err := os.WriteFile(name, list, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"--trust-list", "on.xml", "--trust-list-signer", "ministry"}, `qualified: Listed was accredited`},
		{[]string{"--trust-list", "ended.xml", "--trust-list-signer", "ministry"}, `advanced, not qualified: Listed was not accredited`},
		{[]string{"--trust-list", "on.xml", "--trust-list-signer", "root.pem"}, "another key"},
		{[]string{"--trust-list", "on.xml"}, "needs --trust-list-signer"},
		{[]string{"--trust-list-signer", "ministry"}, "needs --trust-list"},
		{[]string{"--trust-list", "doc", "--trust-list-signer", "ministry"}, "--trust-list: "},
	} {
		args := append(strings.Fields("verify --ca root.pem attached"+at), c.args...)
		r := tamgatest.Run(t.Context(), "", args...)
		if text := r.Out + r.Err; !strings.Contains(text, c.want) || strings.Contains(c.want, "accredited") != (r.Code == 0) {
			t.Errorf("%q exited %d: %s, want %q", c.args, r.Code, text, c.want)
		}
		if !strings.Contains(c.want, "accredited") {
			continue
		}
		r = tamgatest.Run(t.Context(), "", append(args, "--json")...)
		var report struct {
			Signatures []struct {
				Quality struct {
					Qualified      bool
					Code, INN      string
					RegistryNumber string `json:"registry_number"`
				}
			}
		}
		if err := json.Unmarshal([]byte(r.Out), &report); err != nil || report.Signatures[0].Quality.Qualified != (c.args[1] == "on.xml") || report.Signatures[0].Quality.RegistryNumber != "12" {
			t.Errorf("%q: %v %s", c.args, err, r.Out)
		}
	}
}

// TestVerifyFolder verifies all files of a folder. Documents without signatures are counted alone, and links are not followed.
func TestVerifyFolder(t *testing.T) {
	newSignedFiles(t)
	move := func(to string, names ...string) {
		t.Helper()
		if err := os.MkdirAll(to, 0o700); err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			data, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(to, name), data, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	move("good", "doc", "doc.sig", "attached", "value", "text", "empty")
	move("good/below", "pem")
	move("mixed", "attached", "broken", "alone.p7s", "doc")
	move("none", "doc", "text")
	if err := os.WriteFile("good/plain.xml", []byte("<a/>"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("../broken", "good/link"); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args string
		code int
		want []string
		not  string
	}{
		{"good --ca root.pem --intermediate issuing.pem", 2, []string{"good/attached: passed", "good/doc.sig: passed", "good/below/pem does not hold the document", "2 passed, 0 failed, 0 indeterminate, 1 unreadable; 5 files without signatures"}, "link"},
		{"good", 2, []string{"good/attached: INDETERMINATE", "0 passed, 0 failed, 2 indeterminate"}, "passed\n"},
		{"mixed/broken good/attached --ca root.pem --intermediate issuing.pem", 1, []string{"Signature: FAILED"}, "files without signatures"},
		{"mixed --ca root.pem --intermediate issuing.pem", 2, []string{"mixed/broken: FAILED", "1 passed, 1 failed, 0 indeterminate, 1 unreadable; 1 files"}, ""},
		{"none", 2, []string{"no file with signatures in none"}, ""},
		{"good --original doc", 2, []string{"are for single files"}, ""},
	} {
		r := tamgatest.Run(t.Context(), "", strings.Fields("verify "+c.args+at)...)
		text := r.Out + r.Err
		for _, want := range c.want {
			if !strings.Contains(text, want) {
				t.Errorf("%s: %s, want %q", c.args, text, want)
			}
		}
		if int(r.Code) != c.code || c.not != "" && strings.Contains(text, c.not) {
			t.Errorf("%s exited %d, want %d: %s", c.args, r.Code, c.code, text)
		}
	}
	r := tamgatest.Run(t.Context(), "", strings.Fields("verify mixed --json --ca root.pem --intermediate issuing.pem"+at)...)
	var names []string
	for line := range strings.Lines(r.Out) {
		var one struct{ File, Verdict string }
		if err := json.Unmarshal([]byte(line), &one); err != nil {
			t.Fatal(err)
		}
		names = append(names, filepath.Base(one.File)+" "+one.Verdict)
	}
	if got, want := strings.Join(names, ", "), "alone.p7s unreadable, attached passed, broken failed"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func TestVerifyStandardInput(t *testing.T) {
	f := newSignedFiles(t)
	for _, c := range []struct {
		name, stdin, args string
		code              int
		want              string
	}{
		{"detached", string(f.detached), "--original doc", 0, "standard input: passed"},
		{"changed document", string(f.detached), "--original other", 1, "standard input: FAILED"},
		{"text", "-----BEGIN CMS-----\n" + wrap(base64.StdEncoding.EncodeToString(f.detached)) + "-----END CMS-----\n", "--original doc", 0, "note: standard input is PEM"},
		{"no document", string(f.detached), "", 2, "standard input does not hold the document"},
		{"empty", "", "", 2, "standard input is empty"},
		{"JSON", string(f.detached), "--original doc --json", 0, `"file":"standard input"`},
	} {
		r := tamgatest.Run(t.Context(), c.stdin, append([]string{"verify", "-", "--ca", "bundle.pem", "--at", "2025-06-01"}, strings.Fields(c.args)...)...)
		if r.Code != c.code || !strings.Contains(r.Out+r.Err, c.want) {
			t.Errorf("%s: exit code %d\n%s%s", c.name, r.Code, r.Out, r.Err)
		}
	}
}

func TestVerifyCannotJudge(t *testing.T) {
	newSignedFiles(t)
	for _, c := range []struct{ name, args, want string }{
		{"no file", "nowhere", "no such file"},
		{"empty", "empty", "is empty"},
		{"text", "text", "of another kind"},
		{"PDF", "pdf", "PDF"},
		{"Office", "docx", "archive"},
		{"cut PEM", "cut.pem", "looks like PEM text, but cannot be decoded"},
		{"cut", "cut", "cut:"},
		{"no document", "alone.p7s", "--original"},
		{"no certificate", "value --original doc", "--cert"},
		{"document and hash", "doc.sig --original doc --hash 00", "give one"},
		{"hash too short", "doc.sig --hash 00", "has 64"},
		{"hash in letters", "doc.sig --hash x", "hexadecimal"},
		{"unknown algorithm", "doc.sig --hash 00 --hash-algorithm ROT13", "not known"},
		{"algorithm without a hash", "doc.sig --hash-algorithm SHA-256", "needs --hash"},
		{"time", "doc.sig --at yesterday", "--at"},
		{"revocation", "doc.sig --revocation maybe", "want known or require"},
		{"no root", "doc.sig --ca doc", "--ca"},
		{"no intermediate", "doc.sig --intermediate nowhere", "--intermediate"},
		{"no list", "doc.sig --crl root.pem", "no revocation list"},
		{"two signers", "value --original doc --cert bundle.pem", "2 certificates"},
	} {
		t.Run(c.name, func(t *testing.T) {
			args := append([]string{"verify"}, strings.Fields(c.args)...)
			r := tamgatest.Run(t.Context(), "", args...)
			if r.Code != 2 || r.Out != "" || !strings.Contains(r.Err, c.want) {
				t.Errorf("exit code %d, printed %q and %q, want 2 and %q", r.Code, r.Out, r.Err, c.want)
			}
			r = tamgatest.Run(t.Context(), "", append(args, "--json")...)
			var got verify.UnknownVerdict
			if err := json.Unmarshal([]byte(r.Out), &got); err != nil {
				t.Fatalf("%v: %s", err, r.Out)
			}
			if r.Code != 2 || got.Verdict != "unreadable" || got.File != strings.Fields(c.args)[0] || !strings.Contains(got.Error, c.want) {
				t.Errorf("exit code %d, %+v", r.Code, got)
			}
		})
	}
}

// TestVerifyNamesForgeNothing checks names of files with line breaks and controls of a terminal, in errors and reports.
func TestVerifyNamesForgeNothing(t *testing.T) {
	f := newSignedFiles(t)
	const forged = "x\x1b[2J\npassed.sig: passed\u202e"
	tamgatest.WriteFile(t, forged, "nothing")
	tamgatest.WriteFile(t, forged+".sig", string(f.detached))
	for _, args := range [][]string{{forged}, {forged + ".sig"}, {"nowhere" + forged}, {"alone.p7s", "--original", "nowhere" + forged}, {"doc.sig", "--ca", forged}} {
		r := tamgatest.Run(t.Context(), "", append([]string{"verify"}, args...)...)
		if text := r.Out + r.Err; r.Code == 0 || strings.ContainsAny(text, "\x1b\u202e") || strings.Contains(text, "\npassed.sig") || !strings.Contains(text, "x\ufffd[2J\ufffdpassed.sig: passed\ufffd") {
			t.Errorf("%q: exit code %d, %q", args, r.Code, text)
		}
	}
}

// TestVerifyPrintsForPeople checks the text for people, with names that are safe for a terminal.
func TestVerifyPrintsForPeople(t *testing.T) {
	newSignedFiles(t)
	defer func(z *time.Location) { time.Local = z }(time.Local)
	time.Local = time.FixedZone("MSK", 3*60*60)
	r := tamgatest.Run(t.Context(), "", append([]string{"verify", "doc.sig", "--ca", "root.pem"}, strings.Fields(at)...)...)
	const want = `doc.sig: passed; revocation not checked (signed message, 1 signature)
note: the document is taken from doc

Signature: passed; revocation not checked
  signer   SNILS=12345678901,INN=123456789012,CN=Иванов �Иван
           INN 123456789012, SNILS 12345678901
  serial   0abc
  issuer   CN=Issuing,C=RU
  signed   2025-03-14 12:26:53 +03:00 (2025-03-14 09:26:53 UTC), as the signer says
  good     until 2026-03-14 12:26:53 +03:00 (2026-03-14 09:26:53 UTC): then the certificate of its signer, or one above it, ends
           before that: tamga enhance doc.sig --level A
  with     GOST R 34.10-2012 512 bit, hash GR 34.11-2012 512, level BES
  covers   the detached document, 15 bytes
  chain    1. SNILS=12345678901,INN=123456789012,CN=Иванов �Иван, valid 2025-02-14 to 2026-03-14
           2. CN=Issuing,C=RU, valid 2024-03-14 to 2035-03-14
           3. CN=Test Root gost2012-256,C=RU, valid 2024-03-14 to 2035-03-14, trusted
`
	got, notes, _ := strings.Cut(r.Out, "  note ")
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	// Without a list the status is unknown, and the output says so.
	if !strings.Contains(notes, "revocation list") {
		t.Errorf("notes: %s", notes)
	}
}

// TestVerifyPrintsForPrograms checks the form of the JSON.
func TestVerifyPrintsForPrograms(t *testing.T) {
	f := newSignedFiles(t)
	r := tamgatest.Run(t.Context(), "", append([]string{"verify", "doc.sig", "--json", "--original", "other", "--ca", "root.pem"}, strings.Fields(at)...)...)
	var got map[string]any
	if err := json.Unmarshal([]byte(r.Out), &got); err != nil {
		t.Fatal(err)
	}
	signature := got["signatures"].([]any)[0].(map[string]any)
	var codes []string
	for _, x := range signature["findings"].([]any) {
		if x := x.(map[string]any); x["verdict"] == "failed" {
			codes = append(codes, x["code"].(string))
		}
	}
	if diff := cmp.Diff(1, len(codes)); diff != "" {
		t.Errorf("fatal findings %v", codes)
	}
	delete(signature, "findings")
	if n := len(signature["chain"].([]any)); n != 3 {
		t.Errorf("the chain has %d certificates", n)
	}
	delete(signature, "chain")
	want := map[string]any{
		"file": "doc.sig", "format": "cms", "original": "other", "verdict": "failed", "status": "TOTAL-FAILED", "sub_indication": "HASH_FAILURE", "headlines": []any{"revocation not checked"}, "judged_at": "2025-03-14T09:30:00Z",
		"signatures": []any{map[string]any{
			"index": 0.0, "verdict": "failed", "status": "TOTAL-FAILED", "sub_indication": "HASH_FAILURE", "headlines": []any{"revocation not checked"}, "signature_holds": false, "trusted": true, "level": "BES",
			"suite": "gost2012-512", "hash": "GR 34.11-2012 512", "covers": "the detached document, 16 bytes",
			"signing_time": "2025-03-14T09:26:53Z",
			"signer": map[string]any{
				"subject": "SNILS=12345678901,INN=123456789012,CN=Иванов \u202eИван", "issuer": "CN=Issuing,C=RU",
				"identifiers": map[string]any{"INN": "123456789012", "SNILS": "12345678901"}, "serial": "0abc",
				"not_before": "2025-02-14T09:26:53Z", "not_after": "2026-03-14T09:26:53Z",
				"thumbprint": f.signer.Certificate.Thumbprint(),
			},
		}},
	}
	if diff := cmp.Diff(want, got); diff != "" || r.Code != 1 {
		t.Errorf("exit code %d, -want +got:\n%s", r.Code, diff)
	}
}

// TestVerifySeveralFiles checks that each file gets one line of JSON, and that the gravest file decides
// the exit code, whatever the order of the files.
func TestVerifySeveralFiles(t *testing.T) {
	newSignedFiles(t)
	passed, failed, unclear, unreadable := "doc.sig", "broken", "pem", "cut"
	for _, c := range []struct {
		files string
		code  int
		want  string // verdicts
	}{
		{passed, 0, "passed"},
		{passed + " attached", 0, "passed passed"},
		{unclear + " " + passed, 3, "indeterminate passed"},
		{passed + " " + failed + " " + unclear, 1, "passed failed indeterminate"},
		{unclear + " " + failed, 1, "indeterminate failed"},
		{unreadable + " " + failed + " " + unclear, 2, "unreadable failed indeterminate"},
		{passed + " nowhere " + passed, 2, "passed unreadable passed"},
	} {
		args := append([]string{"verify", "--ca", "root.pem", "--original", "doc"}, strings.Fields(at)...)
		if strings.Contains(c.files, unclear) { // the certificate of its signer is not trusted
			args[2] = "foreign.pem"
			c.want = strings.ReplaceAll(c.want, "passed", "indeterminate")
		}
		files := strings.Fields(c.files)
		r := tamgatest.Run(t.Context(), "", append(append(args, "--json"), files...)...)
		lines := strings.Split(strings.TrimSuffix(r.Out, "\n"), "\n")
		var got []string
		for i, line := range lines {
			var one struct{ File, Verdict string }
			if err := json.Unmarshal([]byte(line), &one); err != nil || i < len(files) && one.File != files[i] {
				t.Errorf("%s: line %d is %s (%v)", c.files, i+1, line, err)
			}
			got = append(got, one.Verdict)
		}
		if r.Code != c.code || strings.Join(got, " ") != c.want {
			t.Errorf("%s: exit code %d and %v, want %d and %s", c.files, r.Code, got, c.code, c.want)
		}
		r = tamgatest.Run(t.Context(), "", append(args, files...)...)
		for _, f := range files {
			if !strings.Contains("\n"+r.Out+r.Err, "\n"+f+":") && !strings.Contains(r.Err, f) {
				t.Errorf("%s: no report of %s:\n%s%s", c.files, f, r.Out, r.Err)
			}
		}
		if r.Code != c.code {
			t.Errorf("%s as text: exit code %d, want %d", c.files, r.Code, c.code)
		}
	}
	if r := tamgatest.Run(t.Context(), "", "verify", "-", "doc.sig", "-"); r.Code != 2 || !strings.Contains(r.Err, "twice") {
		t.Errorf("standard input twice: exit code %d, %s", r.Code, r.Err)
	}
}

// TestVerifyTrustsTheDevServerBeside checks that --ca is not needed with a dev.json, and that the
// output names the trusted authority.
func TestVerifyTrustsTheDevServerBeside(t *testing.T) {
	f := newSignedFiles(t)
	tamgatest.WriteFile(t, "tamga-data/dev.json", `{"ca_pem":"ca.pem"}`)
	tamgatest.WriteFile(t, "tamga-data/ca.pem", string(f.root.PEM()))
	r := tamgatest.Run(t.Context(), "", append([]string{"verify", "doc.sig"}, strings.Fields(at)...)...)
	if r.Code != 0 || !strings.Contains(r.Out, "note: no --ca is given: the authority of the server in ./tamga-data is trusted") {
		t.Errorf("exit code %d:\n%s%s", r.Code, r.Out, r.Err)
	}
	r = tamgatest.Run(t.Context(), "", append([]string{"verify", "doc.sig", "--ca", "foreign.pem"}, strings.Fields(at)...)...)
	if r.Code != 3 {
		t.Errorf("with --ca that server must not count: exit code %d", r.Code)
	}
}

// TestVerifyDecodedTextLeavesNothing checks that the temporary file is removed.
func TestVerifyDecodedTextLeavesNothing(t *testing.T) {
	newSignedFiles(t)
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	for _, file := range []string{"base64", "cut.pem"} {
		tamgatest.Run(t.Context(), "", "verify", file)
		if left := tamgatest.Listing(t, dir); len(left) > 0 {
			t.Errorf("%s left %v", file, left)
		}
	}
}

// TestVerifyEverySuite signs with the algorithms of all certificates dev makes.
func TestVerifyEverySuite(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, s := range suite.All() {
		root := sigtest.Root(t, s)
		signer := root.Signer(t, s, "signer")
		message := sigtest.Make(t, cades.New(), signer, &sig.Job{
			Document: sigtest.Document([]byte("document")), Params: sig.Params{"IsDetached": "True"},
		})
		for name, text := range map[string][]byte{"doc": []byte("document"), "doc.sig": message, "root": root.PEM()} {
			if err := os.WriteFile(name, text, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		r := tamgatest.Run(t.Context(), "", append([]string{"verify", "doc.sig", "--ca", "root"}, strings.Fields(at)...)...)
		if want := fmt.Sprintf("with     %s, hash %s, level BES", verify.Algorithm(s.Name), s.Hash.Name); r.Code != 0 || !strings.Contains(r.Out, want) {
			t.Errorf("%s: exit code %d, %q not in\n%s%s", s.Name, r.Code, want, r.Out, r.Err)
		}
	}
}

// FuzzVerifyInput gives verify files of all kinds: it must return one of its
// exit codes and never accept a signature of another signer.
func FuzzVerifyInput(f *testing.F) {
	for _, s := range []string{"", "-----BEGIN CMS-----\nMIIB\n-----END CMS-----\n", `"MIIB"`, "\xef\xbb\xbfMIIB", "%PDF-", "<a/>",
		"\x30\x80\x06\x09\x2a\x86\x48\x86\xf7\x0d\x01\x07\x02\xa0\x80\x00\x00\x00\x00"} {
		f.Add([]byte(s))
	}
	dir := f.TempDir()
	file, document := filepath.Join(dir, "file"), filepath.Join(dir, "document")
	if err := os.WriteFile(document, []byte("document"), 0o600); err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		if err := os.WriteFile(file, in, 0o600); err != nil {
			t.Fatal(err)
		}
		r := tamgatest.Run(t.Context(), "", "verify", file, "--original", document, "--data", dir)
		if r.Code < 1 || r.Code > 3 {
			t.Errorf("exit code %d:\n%s%s", r.Code, r.Out, r.Err)
		}
	})
}
