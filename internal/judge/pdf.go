// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// PDFTools is qpdf, mutool of MuPDF and pdfsig of Poppler, with their own directory.
// certutil of NSS tells pdfsig which roots to trust.
type PDFTools struct {
	// Dir is the working directory of the programs. Relative paths in their arguments
	// start there. It is deleted with the test.
	Dir string

	t                              testing.TB
	qpdf, mutool, pdfsig, certutil string
}

// PDF finds the programs and prepares a directory for them.
func PDF(t testing.TB) *PDFTools {
	t.Helper()
	p := &PDFTools{Dir: t.TempDir(), t: t}
	for _, program := range []struct {
		name string
		path *string
	}{{"qpdf", &p.qpdf}, {"mutool", &p.mutool}, {"pdfsig", &p.pdfsig}, {"certutil", &p.certutil}} {
		path, err := exec.LookPath(program.name)
		if err != nil {
			missing(t, "the "+program.name+" program is not installed")
		}
		*program.path = path
	}
	return p
}

// Trust sets the roots (PEM) that pdfsig trusts.
func (p *PDFTools) Trust(roots ...[]byte) {
	p.t.Helper()
	if err := os.MkdirAll(filepath.Join(p.Dir, "nss"), 0o700); err != nil {
		p.t.Fatal(err)
	}
	if _, err := p.run(p.certutil, "-N", "-d", "sql:nss", "--empty-password"); err != nil {
		p.t.Fatal(err)
	}
	for i, root := range roots {
		file := p.Write(fmt.Sprintf("root%d.pem", i), root)
		if _, err := p.run(p.certutil, "-A", "-d", "sql:nss", "-n", fmt.Sprintf("root%d", i), "-t", "CT,C,C", "-a", "-i", file); err != nil {
			p.t.Fatal(err)
		}
	}
}

// QPDF converts a document with qpdf. args are between input and output.
func (p *PDFTools) QPDF(document []byte, args ...string) ([]byte, error) {
	p.t.Helper()
	in := p.Write("in.pdf", document)
	out := filepath.Join(p.Dir, "out.pdf")
	_, err := p.run(p.qpdf, append(append([]string{in}, args...), out)...)
	if err != nil {
		return nil, err
	}
	return os.ReadFile(out)
}

// QPDFShow runs qpdf on a file in place.
func (p *PDFTools) QPDFShow(file string, args ...string) (string, error) {
	p.t.Helper()
	return p.run(p.qpdf, append(args, file)...)
}

// Rewritten returns the document as other programs write what it shows: Ghostscript and Cairo, with fonts, forms and
// clips of their own.
func (p *PDFTools) Rewritten(document []byte) map[string][]byte {
	p.t.Helper()
	in := p.Write("in.pdf", document)
	list := map[string][]byte{}
	for name, args := range map[string][]string{
		"Ghostscript": {"gs", "-q", "-dSAFER", "-dNOPAUSE", "-dBATCH", "-sDEVICE=pdfwrite", "-sOutputFile=" + filepath.Join(p.Dir, "out.pdf"), in},
		"Cairo":       {"pdftocairo", "-pdf", in, filepath.Join(p.Dir, "out.pdf")},
	} {
		program, err := exec.LookPath(args[0])
		if err != nil {
			missing(p.t, "the "+args[0]+" program is not installed")
		}
		if _, err := p.run(program, args[1:]...); err != nil {
			continue // it refuses the document
		}
		if list[name], err = os.ReadFile(filepath.Join(p.Dir, "out.pdf")); err != nil {
			p.t.Fatal(err)
		}
	}
	return list
}

// CheckQPDF checks the structure of a document with qpdf. password may be empty.
func (p *PDFTools) CheckQPDF(document []byte, password string) error {
	p.t.Helper()
	_, err := p.run(p.qpdf, "--check", "--password="+password, p.Write("check.pdf", document))
	return err
}

// CheckMuPDF checks that mutool reads a document without repairing it.
func (p *PDFTools) CheckMuPDF(document []byte, password string) error {
	p.t.Helper()
	file := p.Write("check.pdf", document)
	out, err := p.run(p.mutool, "show", "-p", password, file, "trailer", "pages")
	if err == nil && (strings.Contains(out, "error:") || strings.Contains(out, "warning:")) {
		err = errors.New("judge: mutool: " + out)
	}
	return err
}

// PDFSignature is the result of pdfsig for one signature.
type PDFSignature struct {
	Name    string // of the signer
	Type    string // SubFilter
	Valid   bool   // the value is valid for the covered bytes
	Trusted bool   // the certificate is trusted
	Whole   bool   // the whole document is covered
	Text    string // the whole output of pdfsig
}

// Signatures runs pdfsig and returns its result for every signature of a document.
func (p *PDFTools) Signatures(document []byte, password string) ([]PDFSignature, error) {
	p.t.Helper()
	file := p.Write("signed.pdf", document)
	args := []string{"-nssdir", "nss"}
	if password != "" {
		args = append(args, "-upw", password)
	}
	out, err := p.run(p.pdfsig, append(args, file)...)
	parts := strings.Split(out, "\nSignature #")
	if len(parts) < 2 {
		return nil, fmt.Errorf("judge: pdfsig: %w: %s", err, out)
	}
	var list []PDFSignature
	for _, part := range parts[1:] {
		s := PDFSignature{
			Valid:   strings.Contains(part, "Signature is Valid."),
			Trusted: strings.Contains(part, "Certificate is Trusted."),
			Whole:   strings.Contains(part, "Total document signed"),
			Text:    part,
		}
		for _, line := range strings.Split(part, "\n") {
			if _, v, ok := strings.Cut(line, "Signer Certificate Common Name: "); ok {
				s.Name = v
			}
			if _, v, ok := strings.Cut(line, "Signature Type: "); ok {
				s.Type = v
			}
		}
		list = append(list, s)
	}
	return list, nil // the list has what the exit code says
}

// Text returns the text of all pages as MuPDF reads it.
func (p *PDFTools) Text(document []byte, password string) (string, error) {
	p.t.Helper()
	return p.run(p.mutool, "draw", "-q", "-p", password, "-F", "txt", p.Write("draw.pdf", document))
}

// run runs a program and returns its output on both streams.
func (p *PDFTools) run(program string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir = p.Dir
	cmd.Env = append(os.Environ(), "TZ=UTC", "LC_ALL=C")
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.WaitDelay = time.Second
	if err := cmd.Run(); err != nil {
		return out.String(), fmt.Errorf("judge: %s: %w: %s", filepath.Base(program), err, out.String())
	}
	return out.String(), nil
}

// Write writes a file into Dir and returns its path.
func (p *PDFTools) Write(name string, data []byte) string {
	p.t.Helper()
	path := filepath.Join(p.Dir, name)
	if err := os.WriteFile(path, data, 0o600); err != nil {
		p.t.Fatalf("judge: writing %s: %v", name, err)
	}
	return path
}

// Attached returns the content of an attachment by its key, as qpdf reads it.
func (p *PDFTools) Attached(document []byte, key string) ([]byte, error) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, p.qpdf, "--show-attachment="+key, p.Write("card.pdf", document))
	cmd.Env = append(os.Environ(), "LC_ALL=C.UTF-8")
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("judge: qpdf: %w: %s", err, said.String())
	}
	return out.Bytes(), nil
}

// Detached returns all attachments of a document by their names, as pdfdetach of Poppler writes them.
func (p *PDFTools) Detached(document []byte) map[string][]byte {
	p.t.Helper()
	program, err := exec.LookPath("pdfdetach")
	if err != nil {
		missing(p.t, "the pdfdetach program is not installed")
	}
	dir, err := os.MkdirTemp(p.Dir, "attached")
	if err != nil {
		p.t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, "-enc", "UTF-8", "-saveall", "-o", dir, p.Write("card.pdf", document))
	cmd.Env = append(os.Environ(), "LC_ALL=C.UTF-8")
	if out, err := cmd.CombinedOutput(); err != nil {
		p.t.Fatalf("judge: pdfdetach: %v: %s", err, out)
	}
	list, err := os.ReadDir(dir)
	if err != nil {
		p.t.Fatal(err)
	}
	files := map[string][]byte{}
	for _, e := range list {
		if files[e.Name()], err = os.ReadFile(filepath.Join(dir, e.Name())); err != nil {
			p.t.Fatal(err)
		}
	}
	return files
}
