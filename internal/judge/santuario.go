package judge

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Santuario is the XML signature of the Java platform, which is Apache Santuario. It does
// not use libxml2, on which xmlsec1 is based.
type Santuario struct {
	t    testing.TB
	dir  string
	java string
	args []string // of java; the last one is the program
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
	s := newSantuario(t)
	s.args = []string{s.write("XMLJudge.java", xmlJudgeSource)}
	return s
}

// NewSantuarioGOST is NewSantuario with the GOST algorithms of Bouncy Castle (Debian
// package libbcprov-java). This judge supports only GOST.
func NewSantuarioGOST(t testing.TB) *Santuario {
	t.Helper()
	s := newSantuario(t)
	if _, err := os.Stat(jars[0]); err != nil {
		missing(t, "Bouncy Castle is not installed ("+jars[0]+")")
	}
	for _, p := range []string{"", ".algorithms", ".signature"} {
		s.args = append(s.args, "--add-exports=java.xml.crypto/com.sun.org.apache.xml.internal.security"+p+"=ALL-UNNAMED")
	}
	s.args = append(s.args, "-cp", jars[0], s.write("GOSTXMLJudge.java", gostXMLJudgeSource))
	return s
}

func newSantuario(t testing.TB) *Santuario {
	t.Helper()
	java, err := exec.LookPath("java")
	if err != nil {
		missing(t, "the java program is not installed")
	}
	if _, err := exec.LookPath("javac"); err != nil {
		missing(t, "the Java compiler is not installed (a JDK, not only a runtime)")
	}
	return &Santuario{t: t, dir: t.TempDir(), java: java}
}

// Verify verifies the first signature of each document with the first certificate in it,
// all in one run. Elements are identified by their attribute Id. The results are in the
// order of the documents, nil for a valid signature.
func (s *Santuario) Verify(documents ...[]byte) []error {
	s.t.Helper()
	args := append([]string{"-Xmx512m", "-XX:+UseSerialGC"}, s.args...)
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
