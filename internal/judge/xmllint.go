// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Lint is xmllint of libxml2 with its own directory.
type Lint struct {
	t       testing.TB
	program string
	dir     string
}

// XMLLint finds the xmllint program.
func XMLLint(t testing.TB) *Lint {
	t.Helper()
	program, err := exec.LookPath("xmllint")
	if err != nil {
		missing(t, "the xmllint program is not installed (Debian: libxml2-utils)")
	}
	return &Lint{t: t, program: program, dir: t.TempDir()}
}

// between is a document put between the checked documents: its canonical form shows where
// the output for one of them ends.
const between = "<between-the-documents></between-the-documents>"

// Canonical returns the canonical forms of documents, made by one run of xmllint with the
// option: "--c14n", "--c14n11" or "--exc-c14n", all of which keep comments. The result
// for a refused document is nil.
func (l *Lint) Canonical(option string, documents ...[]byte) [][]byte {
	l.t.Helper()
	separator := l.write("between.xml", []byte(between))
	args := []string{"--nonet", option}
	for i, d := range documents {
		args = append(args, l.write(fmt.Sprintf("%d.xml", i), d), separator)
	}
	stdout, _ := l.run(args...)
	parts := bytes.Split(stdout, []byte(between))
	if len(parts) != len(documents)+1 || len(parts[len(documents)]) != 0 {
		l.t.Fatalf("judge: xmllint %s gave %d outputs for %d documents", option, len(parts)-1, len(documents))
	}
	parts = parts[:len(documents)]
	for i, p := range parts {
		if len(p) == 0 {
			parts[i] = nil
		}
	}
	return parts
}

// Expand returns a document as a validating reader has it: with the entities and default
// attributes of its document type filled in, without the document type. It is nil if
// xmllint fails.
func (l *Lint) Expand(document []byte) []byte {
	l.t.Helper()
	stdout, _ := l.run("--nonet", "--noent", "--dtdattr", "--dropdtd", l.write("document.xml", document))
	if len(stdout) == 0 {
		return nil
	}
	return stdout
}

// beyond are errors of libxml2 that are not errors by XML 1.0 and Namespaces in XML 1.0.
var beyond = []string{"is not a valid URI", "xml:id : attribute value"}

// Accepts reports for each document whether xmllint considers it well-formed with correct
// namespaces. Warnings are ignored.
func (l *Lint) Accepts(documents ...[]byte) []bool {
	l.t.Helper()
	args := []string{"--nonet", "--noout"}
	for i, d := range documents {
		args = append(args, l.write(fmt.Sprintf("%d.xml", i), d))
	}
	_, stderr := l.run(args...)
	accepts := make([]bool, len(documents))
	for i := range documents {
		accepts[i] = true
		prefix := filepath.Join(l.dir, fmt.Sprintf("%d.xml", i)) + ":"
		for line := range strings.SplitSeq(stderr, "\n") {
			rest, ours := strings.CutPrefix(line, prefix)
			if ours && strings.Contains(rest, " error : ") && !slices.ContainsFunc(beyond, func(s string) bool { return strings.Contains(rest, s) }) {
				accepts[i] = false
			}
		}
	}
	return accepts
}

// Schema validates documents against an XML Schema, which needs no other files. It returns the errors of each document, ""
// for a valid one.
func (l *Lint) Schema(schema []byte, documents ...[]byte) []string {
	l.t.Helper()
	return l.SchemaFile(l.write("schema.xsd", schema), documents...)
}

// SchemaFile is Schema with a file, which may refer to files beside it.
func (l *Lint) SchemaFile(of string, documents ...[]byte) []string {
	l.t.Helper()
	list := make([]string, len(documents))
	for i, d := range documents {
		path := l.write(fmt.Sprintf("%d.xml", i), d)
		_, stderr := l.run("--nonet", "--noout", "--schema", of, path)
		if strings.TrimSpace(stderr) != path+" validates" {
			list[i] = stderr
		}
	}
	return list
}

// run runs xmllint. A refused document is a result and does not fail the test.
func (l *Lint) run(args ...string) (stdout []byte, stderr string) {
	l.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, l.program, args...)
	cmd.Dir = l.dir
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil && cmd.ProcessState.ExitCode() < 0 {
		l.t.Fatalf("judge: xmllint: %v: %s", err, errs.String())
	}
	return out.Bytes(), errs.String()
}

func (l *Lint) write(name string, data []byte) string {
	l.t.Helper()
	path := filepath.Join(l.dir, name)
	if err := os.WriteFile(path, data, 0o600); err != nil {
		l.t.Fatalf("judge: writing %s: %v", name, err)
	}
	return path
}
