// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"bytes"
	"context"
	"fmt"
	"image"
	"image/png"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// Viewers are the programs that read a PDF as a person's viewer does: pdftotext, pdftoppm
// and pdffonts of Poppler, mutool of MuPDF, and qpdf, which reads its structure.
type Viewers struct {
	t   testing.TB
	dir string
}

// viewers maps the programs to their Debian packages.
var viewers = map[string]string{
	"pdftotext": "poppler-utils", "pdftoppm": "poppler-utils", "pdffonts": "poppler-utils",
	"mutool": "mupdf-tools", "qpdf": "qpdf",
}

// PDFViewers finds the viewers.
func PDFViewers(t testing.TB) *Viewers {
	t.Helper()
	for program, debian := range viewers {
		if _, err := exec.LookPath(program); err != nil {
			missing(t, fmt.Sprintf("the %s program is not installed (Debian: %s)", program, debian))
		}
	}
	return &Viewers{t: t, dir: t.TempDir()}
}

// Text returns the text that pdftotext reads from the pages, in their layout.
func (v *Viewers) Text(pdf []byte) string {
	v.t.Helper()
	return string(v.run("pdftotext", "-layout", "-enc", "UTF-8", v.write(pdf), "-"))
}

// Fonts returns the table of pdffonts.
func (v *Viewers) Fonts(pdf []byte) string {
	v.t.Helper()
	return string(v.run("pdffonts", v.write(pdf)))
}

// Picture returns a page, counted from 1, as Poppler draws it.
func (v *Viewers) Picture(pdf []byte, page, dpi int) image.Image {
	v.t.Helper()
	n := strconv.Itoa(page)
	return v.decode(v.run("pdftoppm", "-png", "-r", strconv.Itoa(dpi), "-cropbox", "-f", n, "-l", n, v.write(pdf)))
}

// PictureByMuPDF returns a page, counted from 1, as MuPDF draws it.
func (v *Viewers) PictureByMuPDF(pdf []byte, page, dpi int) image.Image {
	v.t.Helper()
	return v.decode(v.run("mutool", "draw", "-q", "-F", "png", "-r", strconv.Itoa(dpi), "-o", "-", v.write(pdf), strconv.Itoa(page)))
}

// Check fails the test if qpdf finds a fault in the structure.
func (v *Viewers) Check(pdf []byte) {
	v.t.Helper()
	v.run("qpdf", "--check", v.write(pdf))
}

func (v *Viewers) decode(data []byte) image.Image {
	v.t.Helper()
	m, err := png.Decode(bytes.NewReader(data))
	if err != nil {
		v.t.Fatalf("judge: the picture of a page: %v", err)
	}
	return m
}

// run runs a viewer. Output on standard error fails the test, because viewers draw broken
// files as well as they can and report the faults there.
func (v *Viewers) run(program string, args ...string) []byte {
	v.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir = v.dir
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	said := strings.ReplaceAll(errs.String(), harmless, "")
	if err != nil || strings.TrimSpace(said) != "" {
		v.t.Fatalf("judge: %s: %v: %s", program, err, said)
	}
	return out.Bytes()
}

// harmless is a warning of MuPDF as Debian builds it. It is about MuPDF, not about the
// file.
const harmless = "warning: ICC support is not available"

func (v *Viewers) write(pdf []byte) string {
	v.t.Helper()
	path := filepath.Join(v.dir, "document.pdf")
	if err := os.WriteFile(path, pdf, 0o600); err != nil {
		v.t.Fatalf("judge: writing a PDF: %v", err)
	}
	return path
}
