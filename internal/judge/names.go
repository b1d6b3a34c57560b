// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"context"
	_ "embed"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

//go:embed java/NameJudge.java
var nameJudgeSource []byte

// IssuerText is a certificate (DER) with the text of its issuer's name and of its serial number.
type IssuerText struct {
	Certificate  []byte
	Name, Number string
}

// JavaNames has the Java platform read the texts. The results are in their order: errs is nil where
// Java finds the issuer and the serial number of the certificate in the texts, and own is the name
// of the issuer as Java writes it (RFC 2253).
func JavaNames(t testing.TB, texts ...IssuerText) (errs []error, own []string) {
	t.Helper()
	java, args := javaProgram(t, "NameJudge", nameJudgeSource, nil)
	dir := t.TempDir()
	for i, x := range texts {
		for kind, data := range map[string][]byte{"certificate": x.Certificate, "name": []byte(x.Name), "number": []byte(x.Number)} {
			if err := os.WriteFile(filepath.Join(dir, fmt.Sprint(kind, i)), data, 0o600); err != nil {
				t.Fatalf("judge: %v", err)
			}
		}
		for _, kind := range []string{"certificate", "name", "number"} {
			args = append(args, filepath.Join(dir, fmt.Sprint(kind, i)))
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var faults strings.Builder
	cmd := exec.CommandContext(ctx, java, args...)
	cmd.Stderr = &faults
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("judge: java: %v: %s", err, faults.String())
	}
	lines := strings.Split(strings.TrimSuffix(string(out), "\n"), "\n")
	if len(lines) != len(texts) {
		t.Fatalf("judge: java read %d of %d names: %s", len(lines), len(texts), out)
	}
	for _, line := range lines {
		verdict, encoded, _ := strings.Cut(line, "\t")
		name, err := base64.StdEncoding.DecodeString(encoded)
		if err != nil {
			t.Fatalf("judge: java: %v: %s", err, line)
		}
		own = append(own, string(name))
		if verdict == "OK" {
			errs = append(errs, nil)
		} else {
			errs = append(errs, errors.New("judge: Java: "+strings.TrimPrefix(verdict, "FAIL ")))
		}
	}
	return errs, own
}
