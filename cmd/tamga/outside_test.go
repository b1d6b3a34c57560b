// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tamga/internal/judge"
	"tamga/internal/tamgatest"
)

// outsideCA is a certificate authority that OpenSSL runs, with a revocation list on the network.
type outsideCA struct {
	*judge.Tool
	t    *testing.T
	list string // address of the revocation list
}

func newOutsideCA(t *testing.T) *outsideCA {
	t.Helper()
	ca := &outsideCA{Tool: judge.OpenSSL(t), t: t}
	ca.must("req", "-x509", "-newkey", "gost2012_512", "-pkeyopt", "paramset:A", "-nodes", "-keyout", "root.key", "-out", "root.pem",
		"-subj", "/O=Accredited/CN=Accredited Root", "-days", "3650", "-addext", "basicConstraints=critical,CA:TRUE", "-addext", "keyUsage=critical,keyCertSign,cRLSign",
		"-addext", "subjectKeyIdentifier=hash")
	ca.Write("index.txt", nil)
	ca.Write("crlnumber", []byte("01\n"))
	ca.Write("ca.cnf", []byte("[ca]\ndefault_ca = outside\n[outside]\ndatabase = index.txt\ncrlnumber = crlnumber\ndefault_md = md_gost12_512\ndefault_crl_days = 7\ncrl_extensions = list\n[list]\nauthorityKeyIdentifier = keyid\n"))
	ca.must("ca", "-config", "ca.cnf", "-gencrl", "-keyfile", "root.key", "-cert", "root.pem", "-out", "root.crl.pem")
	ca.must("crl", "-in", "root.crl.pem", "-outform", "DER", "-out", "root.crl")
	der := ca.Read("root.crl")
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Write(der) }))
	t.Cleanup(server.Close)
	ca.list = server.URL + "/root.crl"
	return ca
}

func (ca *outsideCA) must(args ...string) string {
	ca.t.Helper()
	out, err := ca.Run(args...)
	if err != nil {
		ca.t.Fatal(err)
	}
	return out
}

// certify checks a request, signs it and returns the file of the certificate.
func (ca *outsideCA) certify(request string) string {
	ca.t.Helper()
	ca.Write("request.pem", tamgatest.ReadFile(ca.t, request))
	ca.must("req", "-verify", "-noout", "-in", "request.pem")
	ca.Write("extensions", fmt.Appendf(nil, "authorityKeyIdentifier = keyid\ncrlDistributionPoints = URI:%s\n", ca.list))
	ca.must("x509", "-req", "-in", "request.pem", "-CA", "root.pem", "-CAkey", "root.key", "-CAcreateserial", "-days", "1000",
		"-copy_extensions", "copyall", "-extfile", "extensions", "-out", "certificate.pem")
	return filepath.Join(ca.Dir, "certificate.pem")
}

// der returns the first certificate of a file.
func (ca *outsideCA) der(name string) []byte {
	ca.t.Helper()
	block, _ := pem.Decode(ca.Read(name))
	if block == nil {
		ca.t.Fatalf("%s has no certificate", name)
	}
	return block.Bytes
}

// report is what init --json prints.
type initReport struct {
	Steps []struct {
		What, Name string
		Made       bool
	}
	Next []string
}

func (i *installation) again(flags ...string) (r initReport) {
	i.t.Helper()
	if err := json.Unmarshal([]byte(i.run(append([]string{"init", "--json"}, flags...)...)), &r); err != nil {
		i.t.Fatal(err)
	}
	return r
}

// TestInitUnderOutsideAuthority goes from nothing to signatures that OpenSSL verifies under the root of an outside
// authority alone.
func TestInitUnderOutsideAuthority(t *testing.T) {
	t.Parallel()
	ca := newOutsideCA(t)
	root := filepath.Join(ca.Dir, "root.pem")
	i := initializeEmpty(t, "--parent", root, "--subject", "CN=Example Signing CA", "--subject", "OGRN=1027700132195",
		"--allow-network", "127.0.0.1", "--tsp", "outside=http://127.0.0.1:1/tsp")
	request := filepath.Join(i.dir, "etc", "requests", "gost.csr")
	for name, want := range map[string]os.FileMode{"etc/requests": 0o755, "etc/requests/gost.csr": 0o644} {
		if info, err := os.Stat(filepath.Join(i.dir, name)); err != nil || info.Mode().Perm() != want {
			t.Fatalf("%s: %v, want mode %o", name, err, want)
		}
	}
	if text := read(t, i.config); !strings.Contains(text, "old_lists_for_authorities: true ") || !strings.Contains(text, "evidence:\n  root_files: [\"outside-1-roots.pem\"]") {
		t.Errorf("the configuration does not trust the authority:\n%s", text)
	}
	// Until the certificate is there, init says what to do. A repeated init changes nothing, and makes a request that
	// was lost.
	text := read(t, request)
	said := i.again()
	for _, s := range said.Steps {
		if s.Made {
			t.Errorf("a repeated init made: %s", s.What)
		}
	}
	next := "tamga ca install gost FILE --config " + i.config
	if !strings.Contains(strings.Join(said.Next, "\n"), "Send "+request+" ") || !strings.Contains(strings.Join(said.Next, "\n"), next) {
		t.Errorf("what comes next: %q, want %q", said.Next, next)
	}
	if !strings.Contains(strings.Join(said.Next, "\n"), "Give the root of the outside authority") {
		t.Errorf("what comes next: %q", said.Next)
	}
	if read(t, request) != text {
		t.Error("a repeated init changed the request")
	}
	if err := os.Remove(request); err != nil {
		t.Fatal(err)
	}
	i.again("--parent", root, "--subject", "CN=Example Signing CA", "--subject", "OGRN=1027700132195")

	out := ca.must("x509", "-in", ca.certify(request), "-noout", "-text")
	for _, want := range []string{"Example Signing CA", "1027700132195", "CA:TRUE, pathlen:0", "Certificate Sign, CRL Sign"} {
		if !strings.Contains(out, want) {
			t.Errorf("the certificate lacks %q:\n%s", want, out)
		}
	}
	certificate := filepath.Join(ca.Dir, "certificate.pem")
	if r := i.try("ca", "install", "gost", root); r.Failure == nil || !strings.Contains(r.Failure.Error(), "for the key of gost") {
		t.Errorf("the root itself: %v", r.Failure)
	}
	if out := i.run("ca", "install", "gost", certificate); !strings.Contains(out, "Accredited Root") {
		t.Errorf("install says: %s", out)
	}
	if r := i.try("ca", "renew", "gost"); r.Failure == nil || !strings.Contains(r.Failure.Error(), "tamga ca request gost") {
		t.Errorf("a renewal: %v", r.Failure)
	}
	if said := i.again(); strings.Contains(strings.Join(said.Next, "\n"), "ca install") || strings.Contains(strings.Join(said.Next, "\n"), "ca export") {
		t.Errorf("what comes next after that: %q", said.Next)
	}

	i.people()
	server := i.serve()
	token, err := i.token(server)
	if err != nil {
		t.Fatal(err)
	}
	ca.Write("document", []byte("document"))
	for level, parameters := range map[string]map[string]string{
		"BES":  {"CADESType": "BES", "IsDetached": "True"},
		"XLT1": {"CADESType": "XLT1", "IsDetached": "True", "TSPAddress": "http://sign.example.org/pki/tsp"},
	} {
		body, err := json.Marshal(map[string]any{
			"Content":   []byte("document"),
			"Signature": map[string]any{"Type": "CAdES", "Parameters": parameters, "CertificateId": i.plain, "PinCode": ""},
		})
		if err != nil {
			t.Fatal(err)
		}
		message, err := sign(server, token, body)
		if err != nil {
			t.Errorf("%s: %v", level, err)
			continue
		}
		ca.Write("message", message)
		if _, err := ca.Run("cms", "-verify", "-binary", "-inform", "DER", "-in", "message", "-content", "document", "-CAfile", "root.pem", "-out", "out"); err != nil {
			t.Errorf("%s: %v", level, err)
		}
		file := filepath.Join(t.TempDir(), "message.sig")
		tamgatest.WriteFile(t, file, string(message))
		document := tamgatest.WriteFile(t, filepath.Join(t.TempDir(), "document"), "document")
		if r := tamgatest.Run(t.Context(), "", "verify", file, "--original", document, "--ca", root, "--ca", certificate); level == "XLT1" && r.Failure != nil {
			t.Errorf("%s: tamga verify: %v\n%s", level, r.Failure, r.Out)
		}
	}
	// Relying parties find the certificate at the address that users' certificates name.
	response, err := http.Get(server.URL + "/pki/gost.crt")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	var served bytes.Buffer
	if _, err := served.ReadFrom(response.Body); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(strings.ReplaceAll(read(t, certificate), "\n", ""), base64.StdEncoding.EncodeToString(served.Bytes())) {
		t.Error("the address of the authority has another certificate")
	}
	// A new certificate for the same name may be installed beside the server.
	i.run("ca", "request", "gost", "-o", request+".2")
	if out := i.run("ca", "install", "gost", ca.certify(request+".2")); !strings.Contains(out, "at once after SIGHUP") {
		t.Errorf("install beside a server says: %s", out)
	}
	newer := ca.der("certificate.pem")
	signed := func() []byte {
		t.Helper()
		message, err := sign(server, token, signingBody(t, i.plain, ""))
		if err != nil {
			t.Fatal(err)
		}
		return message
	}
	signed() // the server keeps its path
	hangUp(t, server, "read the configuration again")
	if !bytes.Contains(signed(), newer) {
		t.Error("after a SIGHUP a signature has the former certificate of the authority")
	}
	if _, now := get(t, server.URL+"/pki/gost.crt"); !bytes.Equal(now, newer) {
		t.Error("after a SIGHUP the address of the authority has the former certificate")
	}

	// The front end shows its clients the path to the outside root.
	front := filepath.Join(i.dir, "front")
	i.run("gost-tls", "init", "--dir", front, "--name", "localhost", "--set", "gost_tls.socket="+filepath.Join(i.dir, "gost.sock"), "--set", "operator_certificates.built_in=true")
	for _, name := range []string{"server-ca.pem", "server.bundle.pem", "operators-ca.pem"} {
		ca.Write(name, tamgatest.ReadFile(t, filepath.Join(front, name)))
	}
	if !bytes.Equal(ca.der("server-ca.pem"), ca.der("root.pem")) {
		t.Error("the front end gives its clients another root")
	}
	ca.must("verify", "-CAfile", "root.pem", "-untrusted", "server.bundle.pem", "server.bundle.pem")
	ca.must("verify", "-CAfile", "operators-ca.pem", "server.bundle.pem")
	if err := server.Stop(); err != nil {
		t.Error(err)
	}
	if out := i.run("doctor", "--offline"); !strings.Contains(out, "Faults: 0,") {
		t.Errorf("doctor says:\n%s", out)
	}
}

// TestInitOutsideAuthority makes an installation without a built-in authority for users, from a file with a root and an
// authority below it.
func TestInitOutsideAuthority(t *testing.T) {
	t.Parallel()
	ca := newOutsideCA(t)
	root := filepath.Join(ca.Dir, "root.pem")
	parent := initializeEmpty(t, "--parent", root)
	bundle := tamgatest.WriteFile(t, filepath.Join(ca.Dir, "both.pem"),
		read(t, ca.certify(filepath.Join(parent.dir, "etc", "requests", "gost.csr")))+read(t, root))
	i := initializeEmpty(t, "--authority", "Accredited="+bundle, "--tsp", "outside=http://tsp.example.org/tsp")
	text := read(t, i.config)
	for _, want := range []string{"built_in: false", `root_files: ["outside-1-roots.pem"]`, `authority_files: ["outside-1-authorities.pem"]`, "url: \"http://tsp.example.org/tsp\""} {
		if !strings.Contains(text, want) {
			t.Errorf("the configuration lacks %q:\n%s", want, text)
		}
	}
	i.run("config", "check")
	if said := strings.Join(i.again().Next, "\n"); strings.Contains(said, "ca install") || strings.Contains(said, "ca export") {
		t.Errorf("what comes next: %s", said)
	}
	// Files without a root are refused, and nothing is left.
	dir := t.TempDir()
	for _, flags := range [][]string{{"--parent", filepath.Join(ca.Dir, "certificate.pem")}, {"--subject", "CN=x"}, {"--parent", filepath.Join(dir, "gone.pem")}} {
		r := tamgatest.Run(t.Context(), "", append([]string{"init", "--yes", "--public-url", "http://sign.example.org", "--config", filepath.Join(dir, "tamga.yaml")}, flags...)...)
		if names := tamgatest.Listing(t, dir); r.Failure == nil || len(names) > 0 {
			t.Errorf("%v: %v leaves %q", flags, r.Failure, names)
		}
	}
}
