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

// Santuario is the XML signature of the Java platform, which is Apache Santuario,
// without GOST. It knows nothing of libxml2, by which xmlsec1 reads.
type Santuario struct {
	t      testing.TB
	dir    string
	java   string
	source string
}

//go:embed java/XMLJudge.java
var xmlJudgeSource []byte

// NewSantuario finds java and prepares a directory.
func NewSantuario(t testing.TB) *Santuario {
	t.Helper()
	java, err := exec.LookPath("java")
	if err != nil {
		missing(t, "the java program is not installed")
	}
	if _, err := exec.LookPath("javac"); err != nil {
		missing(t, "the Java compiler is not installed (a JDK, not only a runtime)")
	}
	s := &Santuario{t: t, dir: t.TempDir(), java: java}
	s.source = s.write("XMLJudge.java", xmlJudgeSource)
	return s
}

// Verify judges the first signature of each document by the first certificate in
// it, all in one run; elements are identified by their attribute Id. The answers
// are in the order of the documents, nil for one that holds.
func (s *Santuario) Verify(documents ...[]byte) []error {
	s.t.Helper()
	args := []string{"-Xmx512m", "-XX:+UseSerialGC", s.source}
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
		s.t.Fatalf("judge: java judged %d of %d documents: %s", len(lines), len(documents), out)
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
