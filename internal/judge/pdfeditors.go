// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"bytes"
	"context"
	"crypto"
	"crypto/x509"
	_ "embed"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

var (
	//go:embed java/PDFEditors.java
	pdfEditorsSource []byte
	//go:embed mupdf/edit.js
	muPDFEdit []byte
	//go:embed node/pdflib.js
	pdfLibProgram []byte
)

// editorJars are the libraries of the Debian packages libitext5-java and libpdfbox2-java, and
// what they need.
var editorJars = append([]string{
	"/usr/share/java/itext5.jar",
	"/usr/share/java/pdfbox2.jar",
	"/usr/share/java/fontbox2.jar",
	"/usr/share/java/commons-logging.jar",
}, jars...)

// PDFEdit is one incremental update of a PDF document by another program.
type PDFEdit struct {
	// Program is iText, PDFBox, MuPDF or pdf-lib.
	Program string
	// Edit is fill (the text field gets the value), content (a black rectangle on the first
	// page), sign (iText, PDFBox) or information (PDFBox, pdf-lib).
	Edit     string
	Document []byte
}

// PDFEditOrder is what the programs need.
type PDFEditOrder struct {
	Field, Value string // name and new value of the text field
	// Key (RSA) and Chain (DER, the signer's certificate first) are for sign, at Time.
	Key   crypto.Signer
	Chain [][]byte
	Time  time.Time
}

// EditPDF adds revisions to documents with other programs, each of which runs once for all
// documents if it can. The results are in the order of the edits.
func EditPDF(t testing.TB, order PDFEditOrder, edits []PDFEdit) [][]byte {
	t.Helper()
	java, javaArgs := javaProgram(t, "PDFEditors", pdfEditorsSource, editorJars)
	node, mutool := Program(t, "node"), Program(t, "mutool")
	modules := filepath.Join(judges(t), "pdf-lib", "node_modules")
	if _, err := os.Stat(filepath.Join(modules, "@cantoo", "pdf-lib")); err != nil {
		missing(t, "the npm package @cantoo/pdf-lib is not there (npm install --prefix ~/.cache/tamga-judges/pdf-lib @cantoo/pdf-lib@2.11.1)")
	}
	dir := t.TempDir()
	key, err := x509.MarshalPKCS8PrivateKey(order.Key)
	if err != nil {
		t.Fatalf("judge: %v", err)
	}
	for name, data := range map[string][]byte{"key.der": key, "chain.der": bytes.Join(order.Chain, nil), "edit.js": muPDFEdit, "pdflib.js": pdfLibProgram} {
		write(t, filepath.Join(dir, name), data)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	javaArgs = append(javaArgs, dir, strconv.FormatInt(order.Time.UnixMilli(), 10), order.Field, order.Value)
	type job struct {
		Edit string `json:"edit"`
		In   string `json:"in"`
		Out  string `json:"out"`
	}
	var javaNames []string
	var nodeJobs []job
	outputs := make([]string, len(edits))
	for i, e := range edits {
		in, out := filepath.Join(dir, fmt.Sprintf("in%d.pdf", i)), filepath.Join(dir, fmt.Sprintf("out%d.pdf", i))
		outputs[i] = out
		write(t, in, e.Document)
		switch e.Program {
		case "iText", "PDFBox":
			javaArgs = append(javaArgs, e.Program+" "+e.Edit, in, out)
			javaNames = append(javaNames, e.Program+" "+e.Edit)
		case "pdf-lib":
			nodeJobs = append(nodeJobs, job{e.Edit, in, out})
		case "MuPDF": // it appends to a file in place
			write(t, out, e.Document)
			cmd := exec.CommandContext(ctx, mutool, "run", filepath.Join(dir, "edit.js"), out, e.Edit, order.Value)
			if said, err := cmd.CombinedOutput(); err != nil || bytes.Contains(said, []byte("rror")) {
				t.Fatalf("judge: mutool run %s: %v: %s", e.Edit, err, said)
			}
		default:
			t.Fatalf("judge: unknown program %q", e.Program)
		}
	}
	var errs bytes.Buffer
	if len(javaNames) > 0 {
		cmd := exec.CommandContext(ctx, java, javaArgs...)
		cmd.Stderr = &errs
		said, err := cmd.Output()
		lines := strings.Split(strings.TrimSpace(string(said)), "\n")
		if err != nil || len(lines) != len(javaNames) {
			t.Fatalf("judge: java: %v: %s%s", err, said, errs.Bytes())
		}
		for i, line := range lines {
			if line != "OK" {
				t.Errorf("judge: %s: %s", javaNames[i], line)
			}
		}
	}
	if len(nodeJobs) > 0 {
		input, err := json.Marshal(map[string]any{"field": order.Field, "value": order.Value, "jobs": nodeJobs})
		if err != nil {
			t.Fatalf("judge: %v", err)
		}
		cmd := exec.CommandContext(ctx, node, filepath.Join(dir, "pdflib.js"))
		cmd.Env, cmd.Stdin = append(os.Environ(), "NODE_PATH="+modules), bytes.NewReader(input)
		if said, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("judge: pdf-lib: %v: %s", err, said)
		}
	}
	results := make([][]byte, len(edits))
	for i, out := range outputs {
		if results[i], err = os.ReadFile(out); err != nil {
			t.Fatalf("judge: %v", err)
		}
	}
	return results
}
