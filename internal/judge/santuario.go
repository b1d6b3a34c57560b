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

// Santuario is the XML signature of the Java platform, which is Apache Santuario. It
// knows nothing of libxml2, by which xmlsec1 reads.
type Santuario struct {
	t    testing.TB
	dir  string
	java string
	args []string // of java, the last the program
}

var (
	//go:embed java/XMLJudge.java
	xmlJudgeSource []byte
	//go:embed java/GOSTXMLJudge.java
	gostXMLJudgeSource []byte
)

// NewSantuario finds java and prepares a directory. This judge knows no GOST.
func NewSantuario(t testing.TB) *Santuario {
	t.Helper()
	s := newSantuario(t)
	s.args = []string{s.write("XMLJudge.java", xmlJudgeSource)}
	return s
}

// NewSantuarioGOST is NewSantuario with the algorithms of GOST, which it gets from
// Bouncy Castle (Debian's libbcprov-java). This judge knows nothing else.
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

// Verify judges the first signature of each document by the first certificate in
// it, all in one run; elements are identified by their attribute Id. The answers
// are in the order of the documents, nil for one that holds.
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
