// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"bytes"
	"context"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// OATH is oathtool and pskctool of the OATH Toolkit (packages oathtool, pskctool). They
// support SHA-1, SHA-256 and SHA-512, but HOTP only with SHA-1.
type OATH struct {
	t             testing.TB
	tool, pskc    string
	dir           string
	signKey, cert string // created for the first signature
}

// OATHToolkit finds the programs oathtool and pskctool.
func OATHToolkit(t testing.TB) *OATH {
	t.Helper()
	o := &OATH{t: t, dir: t.TempDir()}
	for name, path := range map[string]*string{"oathtool": &o.tool, "pskctool": &o.pskc} {
		var err error
		if *path, err = exec.LookPath(name); err != nil {
			missing(t, name+" is not installed (package "+name+")")
		}
	}
	return o
}

// HOTP returns the codes of count steps beginning with step, computed by oathtool.
func (o *OATH) HOTP(secret []byte, digits int, step int64, count int) []string {
	o.t.Helper()
	out, err := o.run(o.tool, o.secret(secret), "--hotp", "-d", strconv.Itoa(digits), "-c", strconv.FormatInt(step, 10), "-w", strconv.Itoa(count-1))
	if err != nil {
		o.t.Fatal(err)
	}
	return strings.Fields(out)
}

// TOTP returns the codes of count steps beginning at a time, computed by oathtool.
func (o *OATH) TOTP(algorithm string, secret []byte, digits int, period time.Duration, at time.Time, count int) []string {
	o.t.Helper()
	out, err := o.run(o.tool, o.secret(secret), "--totp="+algorithm, "-d", strconv.Itoa(digits), "-s", seconds(period), "-N", clock(at), "-w", strconv.Itoa(count-1))
	if err != nil {
		o.t.Fatal(err)
	}
	return strings.Fields(out)
}

// AcceptsHOTP reports whether oathtool accepts a code within a window of steps, and the
// number of steps from the first.
func (o *OATH) AcceptsHOTP(secret []byte, digits int, step int64, window int, code string) (int, bool) {
	o.t.Helper()
	return o.accepts(o.secret(secret), "--hotp", "-d", strconv.Itoa(digits), "-c", strconv.FormatInt(step, 10), "-w", strconv.Itoa(window), "-", code)
}

// AcceptsTOTP reports whether oathtool accepts a code at a time or at most window steps
// away from it, and the number of steps.
func (o *OATH) AcceptsTOTP(algorithm string, secret []byte, digits int, period time.Duration, at time.Time, window int, code string) (int, bool) {
	o.t.Helper()
	return o.accepts(o.secret(secret), "--totp="+algorithm, "-d", strconv.Itoa(digits), "-s", seconds(period), "-N", clock(at), "-w", strconv.Itoa(window), "-", code)
}

func (o *OATH) accepts(secret string, args ...string) (int, bool) {
	o.t.Helper()
	// The secret is the first operand; "-" means standard input.
	out, err := o.run(o.tool, secret, args...)
	if err != nil {
		return 0, false
	}
	n, err := strconv.Atoi(strings.TrimSpace(out))
	if err != nil {
		o.t.Fatalf("oathtool says %q", out)
	}
	return n, true
}

// PSKC returns the fields that pskctool reads in a container of one key, by the names it
// prints. An invalid container fails the test.
func (o *OATH) PSKC(container []byte) map[string]string {
	o.t.Helper()
	o.ValidPSKC(container)
	out, err := o.run(o.pskc, "", "--strict", "--info", o.write(container))
	if err != nil {
		o.t.Fatal(err)
	}
	said := map[string]string{}
	for line := range strings.Lines(out) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ": "); ok {
			said[name] = value
		}
	}
	return said
}

// ValidPSKC fails the test if a container does not match the schema of RFC 6030.
func (o *OATH) ValidPSKC(container []byte) {
	o.t.Helper()
	if out, err := o.run(o.pskc, "", "--validate", o.write(container)); err != nil || !strings.Contains(out, "OK") {
		o.t.Fatalf("pskctool --validate: %v: %s", err, out)
	}
}

// SignPSKC returns the container as pskctool writes it, with an XML signature.
func (o *OATH) SignPSKC(container []byte) []byte {
	o.t.Helper()
	if o.cert == "" {
		o.signKey, o.cert = filepath.Join(o.dir, "key.pem"), filepath.Join(o.dir, "cert.pem")
		if _, err := o.run("openssl", "", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", o.signKey, "-out", o.cert, "-subj", "/CN=tokens", "-days", "2"); err != nil {
			missing(o.t, fmt.Sprintf("no key to sign with: %v", err))
		}
	}
	out, err := o.run(o.pskc, "", "--sign", "--sign-key", o.signKey, "--sign-crt", o.cert, o.write(container))
	if err != nil {
		o.t.Fatal(err)
	}
	return []byte(out)
}

func (o *OATH) write(container []byte) string {
	o.t.Helper()
	file := filepath.Join(o.dir, "tokens.xml")
	if err := os.WriteFile(file, container, 0o600); err != nil {
		o.t.Fatal(err)
	}
	return file
}

func (o *OATH) secret(secret []byte) string { return hex.EncodeToString(secret) }

func seconds(d time.Duration) string { return strconv.Itoa(int(d/time.Second)) + "s" }

func clock(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 UTC") }

func (o *OATH) run(program, stdin string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(o.t.Context(), patience)
	defer cancel()
	if program == o.tool && !strings.Contains(strings.Join(args, " "), " - ") {
		args = append(args, "-") // the secret is on standard input
	}
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Stdin = strings.NewReader(stdin + "\n")
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		return out.String(), fmt.Errorf("judge: %s: %w: %s", filepath.Base(program), err, errs.String())
	}
	return out.String(), nil
}
