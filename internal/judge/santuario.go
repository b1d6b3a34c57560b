// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Santuario is the XML signature of the Java platform, which is Apache Santuario. It does
// not use libxml2, on which xmlsec1 is based.
type Santuario struct {
	t    testing.TB
	dir  string
	java string
	args []string // of java, the last is the class
}

var (
	//go:embed java/XMLJudge.java
	xmlJudgeSource []byte
	//go:embed java/GOSTXMLJudge.java
	gostXMLJudgeSource []byte
)

// NewSantuario finds java and prepares a directory. This judge does not support GOST.
func NewSantuario(t testing.TB) *Santuario {
	t.Helper()
	java, args := javaProgram(t, "XMLJudge", xmlJudgeSource, nil)
	return &Santuario{t: t, dir: t.TempDir(), java: java, args: args}
}

// NewSantuarioGOST is NewSantuario with the GOST algorithms of Bouncy Castle (Debian
// package libbcprov-java). This judge supports only GOST.
func NewSantuarioGOST(t testing.TB) *Santuario {
	t.Helper()
	var options []string
	for _, p := range []string{"", ".algorithms", ".signature"} {
		options = append(options, "--add-exports=java.xml.crypto/com.sun.org.apache.xml.internal.security"+p+"=ALL-UNNAMED")
	}
	java, args := javaProgram(t, "GOSTXMLJudge", gostXMLJudgeSource, jars[:1], options...)
	return &Santuario{t: t, dir: t.TempDir(), java: java, args: args}
}

// Verify verifies the first signature of each document with the first certificate in it,
// all in one run. Elements are identified by their attribute Id. The results are in the
// order of the documents, nil for a valid signature.
func (s *Santuario) Verify(documents ...[]byte) []error {
	s.t.Helper()
	args := slices.Clone(s.args)
	for i, d := range documents {
		args = append(args, s.write(fmt.Sprintf("%d.xml", i), d))
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var errs strings.Builder
	cmd := exec.CommandContext(ctx, s.java, args...)
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		s.t.Fatalf("judge: java: %v: %s", err, errs.String())
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	if len(lines) != len(documents) {
		s.t.Fatalf("judge: java checked %d of %d documents: %s", len(lines), len(documents), out)
	}
	verdicts := make([]error, len(lines))
	for i, line := range lines {
		if line = strings.TrimSpace(line); line != "OK" {
			verdicts[i] = errors.New("judge: Santuario: " + strings.TrimPrefix(line, "FAIL "))
		}
	}
	return verdicts
}

func (s *Santuario) write(name string, data []byte) string {
	s.t.Helper()
	path := filepath.Join(s.dir, name)
	if err := os.WriteFile(path, data, 0o600); err != nil {
		s.t.Fatalf("judge: writing %s: %v", name, err)
	}
	return path
}
