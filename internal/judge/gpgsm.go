// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"bytes"
	"context"
	"crypto/sha1"
	"encoding/pem"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// GPGSM is the S/MIME program of GnuPG, which has its own implementation of CMS. It encrypts and
// decrypts with RSA here, and knows no GOST.
type GPGSM struct {
	t       testing.TB
	program string
	home    string // of its keys
}

// NewGPGSM finds the program and gives it a directory for keys. Its agent ends with the test.
func NewGPGSM(t testing.TB) *GPGSM {
	t.Helper()
	program, conf := Program(t, "gpgsm"), Program(t, "gpgconf")
	// A socket in this directory must have a short path.
	home, err := os.MkdirTemp("", "gpgsm")
	if err != nil {
		t.Fatal(err)
	}
	g := &GPGSM{t, program, home}
	g.write("gpgsm.conf", []byte("disable-crl-checks\ndisable-dirmngr\n"))
	g.write("gpg-agent.conf", []byte("allow-loopback-pinentry\n"))
	t.Cleanup(func() {
		cmd := exec.Command(conf, "--homedir", home, "--kill", "gpg-agent")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("judge: gpgconf: %v: %s", err, out)
		}
		os.RemoveAll(home)
	})
	return g
}

func (g *GPGSM) write(name string, data []byte) string {
	g.t.Helper()
	path := filepath.Join(g.home, name)
	if err := os.WriteFile(path, data, 0o600); err != nil {
		g.t.Fatal(err)
	}
	return path
}

// run returns the standard output. The passphrase of the file of keys is the only input.
func (g *GPGSM) run(args ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, g.program, append([]string{"--homedir", g.home, "--batch", "--yes", "--pinentry-mode", "loopback", "--passphrase-fd", "0"}, args...)...)
	cmd.Stdin = strings.NewReader("x\n")
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("judge: gpgsm %s: %w: %s", strings.Join(args, " "), err, errs.String())
	}
	return out.Bytes(), nil
}

// Import gives the program a self-signed certificate and its private key (PKCS #8) and has it trust
// the certificate. OpenSSL makes the file that the program reads.
func (g *GPGSM) Import(openssl *Tool, certDER, pkcs8 []byte) {
	g.t.Helper()
	openssl.Write("gpgsm.pem", pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certDER}))
	openssl.Write("gpgsm.key", pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8}))
	if _, err := openssl.Run("pkcs12", "-export", "-in", "gpgsm.pem", "-inkey", "gpgsm.key", "-passout", "pass:x", "-out", "gpgsm.p12",
		"-keypbe", "PBE-SHA1-3DES", "-certpbe", "PBE-SHA1-3DES", "-macalg", "sha1"); err != nil {
		g.t.Fatal(err)
	}
	trusted, _ := os.ReadFile(filepath.Join(g.home, "trustlist.txt"))
	g.write("trustlist.txt", fmt.Appendf(trusted, "%X S relax\n", sha1.Sum(certDER)))
	if _, err := g.run("--import", filepath.Join(openssl.Dir, "gpgsm.p12")); err != nil {
		g.t.Fatal(err)
	}
}

// Decrypt decrypts a message with one of the imported keys.
func (g *GPGSM) Decrypt(message []byte) ([]byte, error) {
	return g.run("--decrypt", g.write("message", message))
}

// Encrypt encrypts a text for an imported certificate.
func (g *GPGSM) Encrypt(certDER, text []byte) ([]byte, error) {
	return g.run("--recipient", fmt.Sprintf("%X", sha1.Sum(certDER)), "--encrypt", g.write("text", text))
}
