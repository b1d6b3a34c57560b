// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tamga/internal/app"
	"tamga/internal/config"

	"tamga/internal/tamgatest"
)

// serverFiles writes a certificate of a server and its key.
func serverFiles(t testing.TB, dir string) (certificate, key string, roots *x509.CertPool) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	x := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "localhost"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, x, x, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	certificate, key = filepath.Join(dir, "server.pem"), filepath.Join(dir, "server.key")
	for file, block := range map[string]*pem.Block{certificate: {Type: "CERTIFICATE", Bytes: der}, key: {Type: "PRIVATE KEY", Bytes: pkcs8}} {
		if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	parsed, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	roots = x509.NewCertPool()
	roots.AddCert(parsed)
	return certificate, key, roots
}

// TestClientCertificates: operators with RSA and ECDSA certificates need no front end.
func TestClientCertificates(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	certificate, key, roots := serverFiles(t, dir)
	server := tamgatest.Start(t, "--set", "tls.certificate_file="+certificate, "--set", "tls.key_file="+key, "--set", "tls.client_certificates=true")
	policy := strings.Replace(server.URL, "http://", "https://", 1) + "/STS/ums/policy"
	ask := func(own ...tls.Certificate) (int, string) {
		t.Helper()
		client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, Certificates: own}, DisableKeepAlives: true}}
		response, err := client.Get(policy)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		body, err := io.ReadAll(response.Body)
		if err != nil {
			t.Fatal(err)
		}
		return response.StatusCode, string(body)
	}
	if status, body := ask(); status != 401 {
		t.Errorf("without a certificate: %d %s", status, body)
	}
	ecdsaKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	for name, private := range map[string]crypto.Signer{"ecdsa": ecdsaKey, "rsa": rsaKey} {
		csr, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: pkix.Name{CommonName: name}}, private)
		if err != nil {
			t.Fatal(err)
		}
		request, file := filepath.Join(dir, name+".csr"), filepath.Join(dir, name+".pem")
		if err := os.WriteFile(request, csr, 0o600); err != nil {
			t.Fatal(err)
		}
		server.MustRun("gost-tls", "certify", request, "-o", file, "--data", server.Dir)
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		block, _ := pem.Decode(text)
		own := tls.Certificate{Certificate: [][]byte{block.Bytes}, PrivateKey: private}
		if status, body := ask(own); status != 401 || strings.Contains(body, "registered") {
			t.Errorf("%s before it is registered: %d %s", name, status, body)
		}
		server.MustRun("operator", "certificate", "add", server.Dev.Operator.Login, file, "--data", server.Dir)
		if status, body := ask(own); status != 200 {
			t.Errorf("%s: %d %s", name, status, body)
		}
		server.MustRun("gost-tls", "revoke", file, "--data", server.Dir)
		if status, body := ask(own); status != 401 {
			t.Errorf("%s after its revocation: %d %s", name, status, body)
		}
	}
	// A certificate of one's own making with the name of an operator.
	self, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "operator"}, NotAfter: time.Now().Add(time.Hour)},
		&x509.Certificate{Subject: pkix.Name{CommonName: "Tamga ECDSA Issuing CA", Organization: []string{"Tamga"}}}, ecdsaKey.Public(), ecdsaKey)
	if err != nil {
		t.Fatal(err)
	}
	if status, body := ask(tls.Certificate{Certificate: [][]byte{self}, PrivateKey: ecdsaKey}); status != 401 {
		t.Errorf("a certificate of one's own: %d %s", status, body)
	}
}

// TestSocketOfTheFrontEnd: the socket takes connections of its user alone, and gives
// way to no other process.
func TestSocketOfTheFrontEnd(t *testing.T) {
	t.Parallel()
	dir, err := os.MkdirTemp("", "tamga")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	config := config.Dev(dir, false, app.Parts())
	config.GOSTTLS.Socket = "gost.sock"
	log := app.NewLogger(io.Discard, config)
	open := func(user string) (net.Listener, error) {
		config.GOSTTLS.FrontEndUser = user
		return app.ListenFrontEnd(config, log)
	}
	if _, err := open("unknown-user-name"); err == nil {
		t.Error("a missing user is accepted")
	}
	l, err := open("")
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(filepath.Join(dir, "gost.sock")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	if _, err := open(""); err == nil || !strings.Contains(err.Error(), "another process") {
		t.Errorf("a second process: %v", err)
	}
	accept := func(l net.Listener) chan net.Conn {
		accepted := make(chan net.Conn, 1)
		go func() {
			if conn, err := l.Accept(); err == nil {
				accepted <- conn
			}
			close(accepted)
		}()
		return accepted
	}
	accepted := accept(l)
	conn, err := net.Dial("unix", filepath.Join(dir, "gost.sock"))
	if err != nil {
		t.Fatal(err)
	}
	if <-accepted == nil {
		t.Error("our own connection was not taken")
	}
	conn.Close()
	l.Close()

	// Now everybody but us may connect.
	if l, err = open("12345"); err != nil {
		t.Fatal(err)
	}
	accepted = accept(l)
	if conn, err = net.Dial("unix", filepath.Join(dir, "gost.sock")); err != nil {
		t.Fatal(err)
	}
	if n, err := conn.Read(make([]byte, 1)); err == nil {
		t.Errorf("%d bytes for a client without a certificate", n)
	}
	conn.Close()
	l.Close()
	if <-accepted != nil {
		t.Error("a connection of another user was taken")
	}

	// The files of a killed process are removed. A file of another program is not.
	stale, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(dir, "gost.sock"), Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	stale.SetUnlinkOnClose(false)
	stale.Close()
	if l, err = open(""); err != nil {
		t.Fatalf("over a socket of a process that is no more: %v", err)
	}
	l.Close()
	if err := os.WriteFile(filepath.Join(dir, "gost.sock"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := open(""); err == nil || !strings.Contains(err.Error(), "not a socket") {
		t.Errorf("over a file: %v", err)
	}
}
