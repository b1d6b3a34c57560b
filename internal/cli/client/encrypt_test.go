// SPDX-License-Identifier: Apache-2.0

package client_test

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tamga/internal/judge"
	"tamga/internal/tamgatest"
	"tamga/pki/pfx"
	"tamga/pki/suite"
	"tamga/pki/x509gost"
)

// newPerson makes a key with a certificate, and in a directory the files NAME.pem, NAME.p12 with the password of the
// file "password", and NAME.key, which OpenSSL reads. years is how long the certificate is valid from 2020 on.
func newPerson(t *testing.T, dir, name string, s *suite.Suite, years int) *x509gost.Certificate {
	t.Helper()
	key, err := s.Generate(nil)
	if err != nil {
		t.Fatal(err)
	}
	subject, err := x509gost.BuildName([]x509gost.Attribute{{OID: x509gost.OIDCommonName, Value: name}})
	if err != nil {
		t.Fatal(err)
	}
	from := time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)
	der, err := x509gost.CreateCertificate(&x509gost.Template{
		Subject: subject, SerialNumber: []byte(name), NotBefore: from, NotAfter: from.AddDate(years, 0, 0),
	}, nil, key.Public(), s, s, x509gost.SignWith(nil, key, s))
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509gost.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	file, err := pfx.Create(rand.Reader, &pfx.Bundle{Key: key, Suite: s, Certificate: cert}, "secret", pfx.Options{Iterations: 1000})
	if err != nil {
		t.Fatal(err)
	}
	pkcs8, err := x509gost.MarshalPrivateKey(key, s)
	if err != nil {
		t.Fatal(err)
	}
	for ending, text := range map[string][]byte{
		".p12": file, ".pem": pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), ".key": pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8}),
	} {
		tamgatest.WriteFile(t, filepath.Join(dir, name+ending), string(text))
	}
	tamgatest.WriteFile(t, filepath.Join(dir, "password"), "secret\n")
	return cert
}

// command runs a command line with spaces between its words.
func command(t *testing.T, stdin, line string) tamgatest.Result {
	t.Helper()
	return tamgatest.Run(t.Context(), stdin, strings.Fields(line)...)
}

// must runs a command line that succeeds and returns what it prints.
func must(t *testing.T, line string) string {
	t.Helper()
	r := command(t, "", line)
	if r.Failure != nil {
		t.Fatalf("%s: %v\n%s%s", line, r.Failure, r.Out, r.Err)
	}
	return r.Out
}

// Without a server, OpenSSL decrypts what we encrypt and we decrypt what it encrypts: DER, BER, PEM, S/MIME.
func TestEncryptOfflineBesideOpenSSL(t *testing.T) {
	tool := judge.OpenSSL(t)
	t.Chdir(tool.Dir)
	const size = 5000 // key meshing begins behind 1024 bytes
	text := bytes.Repeat([]byte("0123456789"), size/10)
	tamgatest.WriteFile(t, "doc", string(text))
	for _, c := range []struct {
		suite  *suite.Suite
		ours   string
		theirs []string
	}{
		{suite.GOST2012x256, "", []string{"-gost89"}},
		{suite.GOST2012x512, "", []string{"-gost89"}},
		{suite.GOST2001, "", []string{"-gost89"}},
		{suite.RSASHA256, "", []string{"-aes-256-cbc"}},
		{suite.RSASHA256, "--algorithm AES256-GCM", []string{"-aes-256-gcm"}},
		{suite.ECDSAP256, "", []string{"-aes-256-cbc", "-keyopt", "ecdh_kdf_md:sha256"}},
		{suite.GOST2012x256, "--algorithm kuznyechik --integrity none", []string{"-kuznyechik-ctr-acpkm"}},
	} {
		name := c.suite.Name
		newPerson(t, tool.Dir, name, c.suite, 40)
		for _, from := range []string{"doc", "-"} {
			line := "encrypt " + from + " --offline --force -o doc.p7m --to " + name + ".pem " + c.ours
			if r := command(t, string(text), line); r.Failure != nil {
				t.Fatalf("%s: %v", line, r.Failure)
			}
			if strings.Contains(c.ours, "kuznyechik") {
				break // gost-engine reads its long messages with other sections
			}
			if _, err := tool.Run("cms", "-decrypt", "-binary", "-inform", "DER", "-in", "doc.p7m", "-recip", name+".pem", "-inkey", name+".key", "-out", "got"); err != nil || !bytes.Equal(tool.Read("got"), text) {
				t.Errorf("%s: OpenSSL does not read ours: %v", line, err)
			}
		}
		for _, form := range [][]string{{"-outform", "DER"}, {"-outform", "DER", "-stream"}, {"-outform", "PEM"}, {"-outform", "SMIME"}} {
			args := append([]string{"cms", "-encrypt", "-binary", "-in", "doc", "-out", "theirs.P7M", "-recip", name + ".pem"}, form...)
			if _, err := tool.Run(append(args, c.theirs...)...); err != nil {
				t.Fatal(err)
			}
			must(t, "decrypt theirs.P7M --force --key "+name+".p12 --key-password-file password")
			if !bytes.Equal(tool.Read("theirs"), text) {
				t.Errorf("%s %v: we do not read OpenSSL's", name, form)
			}
			os.Remove("theirs")
		}
	}
}

// A message that was changed leaves no file and prints nothing of the document.
func TestDecryptOfflineRefuses(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	newPerson(t, dir, "anna", suite.GOST2012x256, 40)
	newPerson(t, dir, "boris", suite.GOST2012x256, 40)
	if err := os.Mkdir("sub", 0o700); err != nil {
		t.Fatal(err)
	}
	tamgatest.WriteFile(t, "doc", strings.Repeat("the document ", 100_000))
	must(t, "encrypt doc --offline --to anna.pem --algorithm Kuznyechik")
	message := tamgatest.ReadFile(t, "doc.p7m")
	key := " --key anna.p12 --key-password-file password"
	before := tamgatest.Listing(t, dir)
	for _, at := range []int{len(message) / 2, len(message) - 1} {
		changed := bytes.Clone(message)
		changed[at] ^= 1
		tamgatest.WriteFile(t, "changed.p7m", string(changed))
		for _, line := range []string{"decrypt changed.p7m" + key, "decrypt changed.p7m -o -" + key, "decrypt changed.p7m --json" + key} {
			if r := command(t, "", line); r.Failure == nil || !strings.Contains(r.Failure.Error(), "does not decrypt") || r.Out != "" {
				t.Errorf("byte %d, %s: %v, %d bytes printed", at, line, r.Failure, len(r.Out))
			}
		}
	}
	tamgatest.WriteFile(t, "short.p7m", string(message[:len(message)-100]))
	tamgatest.WriteFile(t, "text.p7m", "no message")
	tamgatest.WriteFile(t, "empty.p7m", "")
	tamgatest.WriteFile(t, "wrong", "other\n")
	for _, c := range []struct{ line, want string }{
		{"decrypt short.p7m" + key, "no encrypted message"},
		{"decrypt text.p7m" + key, "no encrypted message"},
		{"decrypt empty.p7m" + key, "no encrypted message"},
		{"decrypt doc.p7m -o new --key boris.p12 --key-password-file password", "not encrypted for the certificate in boris.p12"},
		{"decrypt doc.p7m -o new --key anna.p12 --key-password-file wrong", "password is wrong"},
		{"decrypt doc.p7m -o new --key anna.pem --key-password-file password", "--key: anna.pem"},
		{"decrypt doc.p7m -o new --key anna.p12", "--key-password-file"},
		{"decrypt doc.p7m" + key, "doc already exists"},
		{"decrypt anna.pem" + key, "does not end with .p7m, .p7e, .enc; name the output with -o"},
		{"decrypt p7m" + key, "does not end with"},
		{"decrypt doc.p7m missing.p7m --force" + key, "1 of 2 files are not decrypted"},
		{"decrypt doc.p7m ./doc.p7m --force" + key, "same output"},
		{"decrypt doc.p7m text.p7m -o new" + key, "-o names the output of one file"},
		{"decrypt doc.p7m - --force" + key, "standard input is read alone"},
		{"decrypt doc.p7m --json -o -" + key, "--json"},
		{"decrypt doc.p7m --pin-file password" + key, "omit --server"},
		{"decrypt doc.p7m --key-password-file password", "needs --key"},
		{"decrypt doc.p7m --force --type PGP" + key, "want CMS (0) or XML (1)"},
		{"decrypt doc.p7m --force --type XML" + key, "no encrypted message"},
		{"decrypt doc.p7m --force", "or decrypt without a server with --key"},
	} {
		if r := command(t, "", c.line); r.Failure == nil || !strings.Contains(r.Failure.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.line, r.Failure, c.want)
		}
	}
	want := append(before, "changed.p7m", "short.p7m", "text.p7m", "empty.p7m", "wrong")
	slices.Sort(want)
	if diff := cmp.Diff(want, tamgatest.Listing(t, dir)); diff != "" {
		t.Error(diff)
	}

	// A name in the message says nothing, and the file is for its owner alone.
	tamgatest.WriteFile(t, "inner.p7m", string(message))
	if out := must(t, "decrypt inner.p7m --json"+key); out != fmt.Sprintf(`{"input":"inner.p7m","file":"inner","type":"CMS","bytes":%d,"integrity":"Verified"}`+"\n", 1_300_000) {
		t.Error(out)
	}
	for _, name := range []string{"sub/.p7m", "sub/...p7m"} { // an ending alone, and dots that would lead to another directory
		tamgatest.WriteFile(t, name, string(message))
		if out := must(t, "decrypt "+name+" --force"+key); !strings.HasPrefix(out, "sub/document: written, ") {
			t.Errorf("%s: %s", name, out)
		}
	}
	if info, err := os.Stat("inner"); err != nil || info.Mode() != 0o600 {
		t.Errorf("%v %v", info, err)
	}
	if out := must(t, "decrypt inner.p7m --force"+key); out != "inner: written, 1.2 MiB; its authentication code is right\n" {
		t.Error(out)
	}
	r := command(t, string(message), "decrypt -"+key)
	if r.Failure != nil || r.Out != strings.Repeat("the document ", 100_000) || r.Err != "" {
		t.Errorf("%v %q", r.Failure, r.Err)
	}
}

// Recipients are files and directories. A certificate that cannot receive is named.
func TestEncryptOfflineRecipients(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	for _, sub := range []string{"team", "none"} {
		if err := os.Mkdir(sub, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	anna := newPerson(t, filepath.Join(dir, "team"), "anna", suite.GOST2012x256, 40)
	newPerson(t, filepath.Join(dir, "team"), "boris", suite.RSASHA256, 40)
	newPerson(t, dir, "old", suite.GOST2012x512, 1)
	newPerson(t, dir, "ec", suite.ECDSAP256, 40)
	tamgatest.WriteFile(t, "anna.der", string(anna.Raw))
	tamgatest.WriteFile(t, "doc", "")
	tamgatest.WriteFile(t, "doc.xml", "<a>pears</a>")
	if out := must(t, "encrypt doc --offline --to team --to anna.der --json"); !strings.Contains(out, `"file":"doc.p7m","type":"CMS",`) || !strings.Contains(out, `"recipients":2`) {
		t.Error(out)
	}
	for _, name := range []string{"anna", "boris"} {
		want := "got: written, 0 bytes; the message has no authentication code, so that a change on the way shows only in the document\n"
		if out := must(t, "decrypt doc.p7m --force -o got --key team/"+name+".p12 --key-password-file team/password"); out != want {
			t.Error(out)
		}
	}
	if r := command(t, "", "decrypt doc.p7m -o - --key team/anna.p12 --key-password-file team/password"); r.Failure != nil || !strings.HasPrefix(r.Err, "note: the message has no authentication code") {
		t.Errorf("%v %s", r.Failure, r.Err)
	}
	for _, c := range []struct{ line, want string }{
		{"encrypt doc --offline --to team", "doc.p7m already exists"},
		{"encrypt doc --offline --force --to none", "none has no certificates: want files that end with .pem"},
		{"encrypt doc --offline --force --to missing.pem", "--to: "},
		{"encrypt doc --offline --force --to old.pem", "old.pem, CN=old: the certificate expired on 2021-01-01; --allow-invalid"},
		{"encrypt doc --offline --force --to anna.der --to ec.pem", "ec.pem, CN=ec: the cipher 28147-89 does not serve keys of"},
		{"encrypt doc --offline --force --to anna.der --algorithm DES", "want 28147-89, Magma, Kuznyechik"},
		{"encrypt doc --offline --force --to anna.der --part Content", "unknown"},
		{"encrypt doc --offline --force --to anna.der --type XML", "cannot be encrypted as XML"},
		{"encrypt doc --offline --force --to anna.der --server https://sign.example.org", "omit --server"},
		{"encrypt doc --force --to anna.der", "or encrypt without a server with --offline"},
		{"encrypt missing --offline --to anna.der", "missing: no such file"},
		{"encrypt doc.xml missing --offline --force --to anna.der", "missing: "},
		{"encrypt team --offline --to anna.der", "is a directory"},
		{"encrypt doc", "--to=FILE"},
	} {
		if r := command(t, "", c.line); r.Failure == nil || !strings.Contains(r.Failure.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.line, r.Failure, c.want)
		}
	}
	must(t, "encrypt doc --offline --force --to old.pem --allow-invalid")
	must(t, "decrypt doc.p7m --force -o got --key old.p12 --key-password-file password")

	// An XML document stays one. From a pipe it is the same.
	must(t, "encrypt doc.xml --offline --to anna.der --type xml")
	piped := command(t, "<a>pears</a>", "encrypt - --offline --to anna.der --type XML --part content")
	if piped.Failure != nil || !strings.HasPrefix(piped.Out, "<a><xenc:EncryptedData") {
		t.Errorf("%v %s", piped.Failure, piped.Out)
	}
	if out := must(t, "decrypt doc.xml.enc --force --key team/anna.p12 --key-password-file team/password --json"); !strings.Contains(out, `"file":"doc.xml","type":"XML","bytes":`) {
		t.Error(out)
	}
	back := command(t, piped.Out, "decrypt - --key team/anna.p12 --key-password-file team/password")
	if back.Failure != nil || back.Out != "<a>pears</a>" || string(tamgatest.ReadFile(t, "doc.xml")) != "<a>pears</a>" {
		t.Errorf("%v %s", back.Failure, back.Out)
	}
}

// A file with a chain has one recipient: the authorities in it do not read the document.
func TestEncryptLeavesAuthoritiesOut(t *testing.T) {
	s := tamgatest.Start(t)
	dir := t.TempDir()
	t.Chdir(dir)
	own := tamgatest.ReadFile(t, s.Path("certs/7.pem"))
	s.Command("ca", "export", "--all", "-o", filepath.Join(dir, "all.pem"))
	tamgatest.WriteFile(t, "chain.pem", string(own)+string(tamgatest.ReadFile(t, "all.pem")))
	tamgatest.WriteFile(t, "doc", "document")
	out := must(t, "encrypt doc --offline --to chain.pem --json")
	var done struct{ Recipients int }
	if err := json.Unmarshal([]byte(out), &done); err != nil || done.Recipients < 1 {
		t.Fatal(out, err)
	}
	if done.Recipients != 1 {
		t.Errorf("%d recipients, want 1", done.Recipients)
	}
}

// Through the service: each way back, several files in one operation, a PIN, refusals that name files and flags.
func TestEncryptThroughTheService(t *testing.T) {
	s := tamgatest.Start(t)
	dir := t.TempDir()
	t.Chdir(dir)
	newPerson(t, dir, "old", suite.GOST2012x512, 1)
	pin := s.Cert("gost2012-256", true)
	for _, name := range []string{"a", "b"} {
		tamgatest.WriteFile(t, name, strings.Repeat(name, 3000))
	}
	tamgatest.WriteFile(t, "pin", pin.PIN+"\n")
	data := " --data " + s.Dir
	to := " --to " + s.Path("certs/7.pem")
	if out := must(t, "encrypt a b --algorithm Magma"+to+data); out != "a.p7m: written, 3.3 KiB; recipients: 1\nb.p7m: written, 3.3 KiB; recipients: 1\n" {
		t.Error(out)
	}
	must(t, "decrypt a.p7m -o one"+data)
	os.Remove("a")
	os.Remove("b")
	out := must(t, "decrypt a.p7m b.p7m --json"+data)
	if out != `[{"input":"a.p7m","file":"a","type":"CMS","bytes":3000,"integrity":"Verified"},{"input":"b.p7m","file":"b","type":"CMS","bytes":3000,"integrity":"Verified"}]`+"\n" {
		t.Error(out)
	}
	for _, name := range []string{"one", "a", "b"} {
		info, err := os.Stat(name)
		if err != nil || info.Mode() != 0o600 || string(tamgatest.ReadFile(t, name)) != strings.Repeat(map[string]string{"one": "a"}[name]+strings.Trim(name, "one"), 3000) {
			t.Errorf("%s: %v %v", name, info, err)
		}
	}
	must(t, "encrypt a --to "+s.Path(pin.PEM)+" -o pinned.enc"+data)
	if r := command(t, "", "decrypt pinned.enc"+data); r.Failure == nil || !strings.Contains(r.Failure.Error(), "invalid_pin") {
		t.Errorf("without a PIN: %v", r.Failure)
	}
	if out := must(t, "decrypt pinned.enc --pin-file pin"+data); !strings.Contains(out, "pinned: written, 2.9 KiB; the message has no authentication code") {
		t.Error(out)
	}
	if r := command(t, string(tamgatest.ReadFile(t, "a.p7m")), "decrypt -"+data); r.Failure != nil || r.Out != strings.Repeat("a", 3000) {
		t.Errorf("from a pipe: %v, %d bytes", r.Failure, len(r.Out))
	}
	changed := tamgatest.ReadFile(t, "a.p7m")
	changed[len(changed)/2] ^= 1
	tamgatest.WriteFile(t, "changed.p7m", string(changed))
	tamgatest.WriteFile(t, "empty", "")
	must(t, "encrypt a --offline --to old.pem --allow-invalid -o other.p7m")
	for _, c := range []struct{ line, want string }{
		{"encrypt a --force --to old.pem", "old.pem, CN=old: the certificate expired on 2021-01-01"},
		{"encrypt empty" + to, "--offline encrypts empty documents"},
		{"encrypt a --force --algorithm Rot13" + to, "want 28147-89"},
		{"decrypt changed.p7m", "invalid_content"},
		{"decrypt other.p7m", "invalid_certificate"},
		{"decrypt a.p7m --cert 1 --force", "invalid_certificate"},
		{"decrypt a.p7m changed.p7m --force", "1 of 2 files are not decrypted"},
	} {
		if r := command(t, "", c.line+data); r.Failure == nil || !strings.Contains(r.Failure.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.line, r.Failure, c.want)
		}
	}
	for _, name := range []string{"changed", "other", "empty.p7m"} {
		if _, err := os.Stat(name); err == nil {
			t.Errorf("%s exists", name)
		}
	}
}

// What a server sends wrong leaves no file. The request has what the flags say.
func TestDecryptAnswers(t *testing.T) {
	s, dir := atDev(t)
	var body map[string]any
	answer := ""
	s.Config.Handler.(*http.ServeMux).HandleFunc("POST /SignServer/api/documents/decrypt", func(w http.ResponseWriter, r *http.Request) {
		text, err := io.ReadAll(r.Body)
		body = nil
		if err == nil {
			err = json.Unmarshal(text, &body)
		}
		if err != nil {
			t.Error(err)
		}
		w.Header().Set("Tamga-Integrity", "None")
		io.WriteString(w, answer)
	})
	sender := newPerson(t, dir, "sender", suite.GOST2012x256, 40)
	tamgatest.WriteFile(t, filepath.Join(dir, "m.p7m"), "\x30\x00")
	before := tamgatest.Listing(t, dir)
	for _, wrong := range []string{"", `"QUJD`, `"QUJ"`, "{}", `"QUJD" 1`} {
		answer = wrong
		if r := command(t, "", "decrypt m.p7m --data data"); r.Failure == nil || !strings.Contains(r.Failure.Error(), "not a complete JSON string") {
			t.Errorf("%q: %v", wrong, r.Failure)
		}
	}
	if diff := cmp.Diff(before, tamgatest.Listing(t, dir)); diff != "" {
		t.Error(diff)
	}
	answer = `"QUJD"`
	tamgatest.WriteFile(t, filepath.Join(dir, "pin"), "12\"34\n")
	must(t, "decrypt m.p7m --data data --cert 7 --pin-file pin --originator sender.pem")
	want := map[string]any{"Content": "MAA=", "Decryption": map[string]any{
		"Type": "CMS", "CertificateId": 7.0, "PinCode": `12"34`, "Parameters": map[string]any{"OriginatorCertificate": base64.StdEncoding.EncodeToString(sender.Raw)},
	}}
	if diff := cmp.Diff(want, body); diff != "" {
		t.Error(diff)
	}
	if got := string(tamgatest.ReadFile(t, "m")); got != "ABC" {
		t.Error(got)
	}
}

// TestHeldCertificate: a certificate that is put on hold is not called revoked, and a decryption with another one says what
// --cert takes.
func TestHeldCertificate(t *testing.T) {
	s := tamgatest.Start(t)
	rsa, gost := s.Cert("rsa-2048", false), s.Cert("gost2012-256", false)
	document, message := filepath.Join(s.Dir, "doc"), filepath.Join(s.Dir, "doc.p7m")
	tamgatest.WriteFile(t, document, "the document")
	must(t, "encrypt "+document+" --to "+s.Path(gost.PEM)+" --data "+s.Dir)
	r := command(t, "", fmt.Sprint("decrypt ", message, " --force --cert ", rsa.ID, " --data ", s.Dir))
	if r.Failure == nil || !strings.Contains(r.Failure.Error(), "that the message was encrypted for; 0 is one that opens it") {
		t.Errorf("a certificate that is no recipient: %v", r.Failure)
	}
	for reason, want := range map[string]string{"6": fmt.Sprintf("Certificate %d is on hold.\n", rsa.ID), "4": fmt.Sprintf("Certificate %d is revoked.\n", gost.ID)} {
		id := rsa.ID
		if reason == "4" {
			id = gost.ID
		}
		if out := s.Command("cert", "revoke", fmt.Sprint(id), "--reason", reason); out != want {
			t.Errorf("reason %s: %q, want %q", reason, out, want)
		}
	}
}
