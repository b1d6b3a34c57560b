// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"bufio"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// Castle is Bouncy Castle, a second GOST implementation independent of OpenSSL, behind a
// small Java program that answers one question at a time. The program passes GOST keys to
// it in the older form, with digestParamSet: version 1.72 does not read the form of RFC
// 9215.
type Castle struct {
	t     testing.TB
	dir   string
	mu    sync.Mutex // one question at a time; guards the fields below
	in    io.WriteCloser
	out   *bufio.Reader
	kill  func() error
	files int
}

//go:embed java/Judge.java
var judgeSource []byte

// jars are the libraries of the Debian packages libbcprov-java and libbcpkix-java.
var jars = []string{
	"/usr/share/java/bcprov.jar",
	"/usr/share/java/bcpkix.jar",
	"/usr/share/java/bcutil.jar",
}

// BouncyCastle starts the judge. It ends with the test.
func BouncyCastle(t testing.TB) *Castle {
	t.Helper()
	java, args := javaProgram(t, "Judge", judgeSource, jars)
	c := &Castle{t: t, dir: t.TempDir()}
	cmd := exec.Command(java, args...)
	var errs strings.Builder
	cmd.Stderr = &errs
	var err error
	if c.in, err = cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	c.out = bufio.NewReader(out)
	if err := cmd.Start(); err != nil {
		t.Fatalf("judge: starting java: %v", err)
	}
	c.kill = cmd.Process.Kill
	t.Cleanup(func() {
		c.in.Close() // ends the program: it reads questions until the end of its input
		if err := cmd.Wait(); err != nil {
			t.Errorf("judge: java: %v: %s", err, errs.String())
		}
	})
	if line, err := c.line(); err != nil || line != "READY" {
		t.Fatalf("judge: java answered %q, %v: %s", line, err, errs.String())
	}
	return c
}

// VerifyCMS verifies a signed message with its content (nil if the message contains it),
// and the signers' certificates up to one of the root certificates (PEM).
func (c *Castle) VerifyCMS(cms, content, caPEM []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	beside := "-"
	if content != nil {
		beside = c.fresh(content)
	}
	return c.ask("cms", c.fresh(cms), beside, c.fresh(caPEM))
}

// VerifyCAdES is VerifyCMS for every countersignature too, nested ones included, and for
// every time stamp of the signatures and of their references. Bouncy Castle computes the
// imprints itself. counts is the number of signers, countersignatures and time stamps.
func (c *Castle) VerifyCAdES(cms, content, caPEM []byte, counts [3]int) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	beside := "-"
	if content != nil {
		beside = c.fresh(content)
	}
	return c.ask("cades", c.fresh(cms), beside, c.fresh(caPEM), fmt.Sprintf("%d,%d,%d", counts[0], counts[1], counts[2]))
}

// VerifyRaw verifies a bare signature over data with the key of a certificate.
func (c *Castle) VerifyRaw(certDER, data, value []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ask("raw", c.fresh(certDER), c.fresh(data), c.fresh(value))
}

// VerifyCertificate checks that a certificate has a path to one of the root certificates
// (PEM).
func (c *Castle) VerifyCertificate(certDER, caPEM []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ask("cert", c.fresh(certDER), c.fresh(caPEM))
}

// Decrypt decrypts an encrypted message with the key of its only recipient, in PKCS #8. A GOST key is
// an OCTET STRING in that of PKCS #8, with digestParamSet.
func (c *Castle) Decrypt(message, pkcs8 []byte) ([]byte, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	text := c.fresh(nil)
	if err := c.ask("decrypt", c.fresh(message), c.fresh(pkcs8), text); err != nil {
		return nil, err
	}
	return os.ReadFile(text)
}

// Encrypt encrypts a text for a certificate, which it names by key identifier. form is "transport",
// "oaep" or "agreement", a space and "28147-89", "AES256-CBC" or "AES256-GCM". The last one has
// authenticated attributes.
func (c *Castle) Encrypt(form string, certDER, text []byte) ([]byte, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	message := c.fresh(nil)
	if err := c.ask("encrypt", form, c.fresh(certDER), c.fresh(text), message); err != nil {
		return nil, err
	}
	return os.ReadFile(message)
}

// ask sends one question and returns nil for OK.
func (c *Castle) ask(fields ...string) error {
	c.t.Helper()
	if _, err := io.WriteString(c.in, strings.Join(fields, "\t")+"\n"); err != nil {
		c.t.Fatalf("judge: asking java: %v", err)
	}
	answer, err := c.line()
	switch {
	case err != nil:
		c.t.Fatalf("judge: no answer from java: %v", err)
	case answer == "OK":
		return nil
	case !strings.HasPrefix(answer, "FAIL "):
		c.t.Fatalf("judge: java answered %q", answer)
	}
	return errors.New("judge: Bouncy Castle: " + strings.TrimPrefix(answer, "FAIL "))
}

// line reads one answer. It ends a program that does not answer.
func (c *Castle) line() (string, error) {
	timer := time.AfterFunc(patience, func() { c.kill() })
	defer timer.Stop()
	line, err := c.out.ReadString('\n')
	return strings.TrimRight(line, "\r\n"), err
}

// fresh writes a file with a unique name and returns its path.
func (c *Castle) fresh(data []byte) string {
	c.files++
	return c.write(fmt.Sprintf("%d.bin", c.files), data)
}

func (c *Castle) write(name string, data []byte) string {
	c.t.Helper()
	path := filepath.Join(c.dir, name)
	if err := os.WriteFile(path, data, 0o600); err != nil {
		c.t.Fatal(err)
	}
	return path
}
