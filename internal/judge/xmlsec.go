// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// XMLTools is xmlsec1 and xmllint, which share libxml2, with their own directory. The
// tools of XMLSec do not support GOST, those of XMLSecGOST do.
type XMLTools struct {
	// Dir is the working directory of the programs. Relative paths in their arguments
	// start there. It is deleted with the test.
	Dir string

	t            testing.TB
	xmlsec, lint string
	env          []string // in addition to that of the test
}

// XMLSec finds both programs and prepares a directory for them.
func XMLSec(t testing.TB) *XMLTools {
	t.Helper()
	tools := &XMLTools{Dir: t.TempDir(), t: t}
	// Without these xmlsec1 reads all authorities of the system in each run, which takes
	// several times longer than the verification.
	tools.env = []string{"SSL_CERT_FILE=" + os.DevNull, "SSL_CERT_DIR=" + tools.Dir}
	for _, p := range []struct {
		name string
		path *string
	}{{"xmlsec1", &tools.xmlsec}, {"xmllint", &tools.lint}} {
		path, err := exec.LookPath(p.name)
		if err != nil {
			missing(t, "the "+p.name+" program is not installed")
		}
		*p.path = path
	}
	return tools
}

// Verify verifies the first signature of a document at a time with the root certificates
// (PEM). ids are names of elements, in any namespace, that are identified by their
// attribute Id.
func (x *XMLTools) Verify(document, rootPEM []byte, at time.Time, ids ...string) error {
	x.t.Helper()
	return x.VerifyAmong(document, rootPEM, nil, at, ids...)
}

// VerifyAmong is Verify with other certificates (PEM) among which the signer's and its issuers' may
// be.
func (x *XMLTools) VerifyAmong(document, rootPEM []byte, others [][]byte, at time.Time, ids ...string) error {
	x.t.Helper()
	return x.verify("empty,same-doc", document, rootPEM, others, at, ids)
}

// VerifyBeside is Verify for a signature that also refers to files in Dir. xmlsec1 calls a relative URI remote.
func (x *XMLTools) VerifyBeside(document, rootPEM []byte, at time.Time, ids ...string) error {
	x.t.Helper()
	return x.verify("empty,same-doc,local,remote", document, rootPEM, nil, at, ids)
}

func (x *XMLTools) verify(uris string, document, rootPEM []byte, others [][]byte, at time.Time, ids []string) error {
	x.t.Helper()
	x.Write("root.pem", rootPEM)
	args := []string{
		"--verify", "--trusted-pem", "root.pem",
		"--verification-gmt-time", at.UTC().Format(time.DateTime),
		"--enabled-reference-uris", uris,
	}
	for i, other := range others {
		args = append(args, "--untrusted-pem", x.Write(fmt.Sprintf("other%d.pem", i), other))
	}
	_, err := x.run(x.xmlsec, append(append(args, idArguments(ids)...), x.Write("signed.xml", document))...)
	return err
}

func idArguments(ids []string) (args []string) {
	for _, id := range ids {
		args = append(args, "--id-attr:Id", id)
	}
	return args
}

// Sign fills in the first template of a document with a key and its certificate (both
// PEM) and returns the document. ids are as for Verify.
func (x *XMLTools) Sign(template, keyPEM, certPEM []byte, ids ...string) ([]byte, error) {
	x.t.Helper()
	x.Write("key.pem", keyPEM)
	x.Write("cert.pem", certPEM)
	args := append([]string{"--sign", "--privkey-pem", "key.pem,cert.pem"}, idArguments(ids)...)
	return x.run(x.xmlsec, append(args, x.Write("template.xml", template))...)
}

// Canonical returns the canonical form of a whole document with its comments. form is
// "--c14n", "--c14n11" or "--exc-c14n".
func (x *XMLTools) Canonical(form string, document []byte) ([]byte, error) {
	x.t.Helper()
	return x.run(x.lint, form, x.Write("plain.xml", document))
}

func (x *XMLTools) run(program string, args ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir = x.Dir
	cmd.Env = append(os.Environ(), x.env...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("judge: %s: %w: %s", filepath.Base(program), err, errs.String())
	}
	return out.Bytes(), nil
}

// Write writes a file into Dir and returns its path.
func (x *XMLTools) Write(name string, data []byte) string {
	x.t.Helper()
	path := filepath.Join(x.Dir, name)
	if err := os.WriteFile(path, data, 0o600); err != nil {
		x.t.Fatalf("judge: writing %s: %v", name, err)
	}
	return path
}

// Decrypt decrypts the only EncryptedData of a document with a key (PEM).
func (x *XMLTools) Decrypt(document, keyPEM []byte) ([]byte, error) {
	x.t.Helper()
	x.Write("key.pem", keyPEM)
	return x.run(x.xmlsec, "--decrypt", "--privkey-pem", "key.pem", x.Write("encrypted.xml", document))
}

// Encrypt fills in a template of an EncryptedData for the root element of a document and a certificate
// (PEM).
func (x *XMLTools) Encrypt(template, document, certPEM []byte, session string) ([]byte, error) {
	x.t.Helper()
	return x.run(x.xmlsec, "--encrypt", "--pubkey-cert-pem", x.Write("cert.pem", certPEM), "--session-key", session,
		"--xml-data", x.Write("plain.xml", document), x.Write("template.xml", template))
}
