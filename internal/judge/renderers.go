// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"image"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"
	"time"
)

// Renderer is a program that draws the pages of PDF documents: MuPDF, Poppler or
// Ghostscript.
type Renderer struct {
	// Name is that of the project, such as MuPDF.
	Name string

	program string
	args    []string // before the file; %d is the resolution
	errors  *regexp.Regexp
}

// Drawing is what a program made of a document.
type Drawing struct {
	Pages []*image.Gray
	// Complaint is the first line in which the program reports an error, without the names
	// and the numbers in it, empty for none. A program may draw pages in spite of it.
	Complaint string
}

var renderers = []Renderer{
	{"MuPDF", "mutool", []string{"draw", "-q", "-r", "%d", "-c", "gray", "-F", "pgm", "-o", "-"}, regexp.MustCompile(`(?m)^error: .*`)},
	{"Poppler", "pdftoppm", []string{"-gray", "-r", "%d"}, regexp.MustCompile(`(?m)^(Syntax Error|Internal Error|I/O Error|Command Line Error).*`)},
	{"Ghostscript", "gs", []string{"-q", "-dSAFER", "-dNOPAUSE", "-dBATCH", "-sDEVICE=pgmraw", "-r%d", "-sstdout=%stderr", "-sOutputFile=-"}, regexp.MustCompile(`(?m)^.*\bError.*`)},
}

// Renderers finds the programs.
func Renderers(t testing.TB) []Renderer {
	t.Helper()
	for _, r := range renderers {
		if _, err := exec.LookPath(r.program); err != nil {
			missing(t, r.program+" of "+r.Name+" is not installed")
		}
	}
	return renderers
}

// Draw draws all pages in gray with so many pixels to the inch. dir is where it writes the
// document. If ctx ends before, the test is skipped.
func (r Renderer) Draw(ctx context.Context, t testing.TB, dir string, document []byte, resolution int) Drawing {
	t.Helper()
	file := filepath.Join(dir, "draw.pdf")
	if err := os.WriteFile(file, document, 0o600); err != nil {
		t.Fatalf("judge: %v", err)
	}
	args := make([]string, len(r.args), len(r.args)+1)
	for i, a := range r.args {
		args[i] = string(bytes.ReplaceAll([]byte(a), []byte("%d"), []byte(strconv.Itoa(resolution))))
	}
	limited, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	cmd := exec.CommandContext(limited, r.program, append(args, file)...)
	cmd.Env = append(os.Environ(), "TZ=UTC", "LC_ALL=C")
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	cmd.WaitDelay = time.Second
	failed := cmd.Run()
	if ctx.Err() != nil {
		t.Skip("judge: drawing was ended: ", ctx.Err())
	}
	d := Drawing{Complaint: r.complaint(errs.Bytes())}
	var err error
	if d.Pages, err = graymaps(out.Bytes()); d.Complaint == "" && (failed != nil || err != nil) {
		d.Complaint = fmt.Sprint("failed: ", errors.Join(failed, err))
	}
	return d
}

var varying = regexp.MustCompile(`[0-9]+|0x[0-9a-f]+`)

func (r Renderer) complaint(said []byte) string {
	return string(varying.ReplaceAll(r.errors.Find(said), []byte("N")))
}

// graymaps reads binary portable graymaps that follow each other.
func graymaps(data []byte) (list []*image.Gray, err error) {
	for len(data) > 0 {
		var fields []int
		rest, ok := bytes.CutPrefix(data, []byte("P5"))
		for ok && len(fields) < 3 {
			rest = bytes.TrimLeft(rest, " \t\r\n")
			if bytes.HasPrefix(rest, []byte("#")) {
				_, rest, ok = bytes.Cut(rest, []byte("\n"))
				continue
			}
			n := 0
			for n < len(rest) && rest[n] >= '0' && rest[n] <= '9' {
				n++
			}
			v, err := strconv.Atoi(string(rest[:n]))
			ok = err == nil && n < len(rest)
			fields, rest = append(fields, v), rest[n:]
		}
		if !ok || fields[2] != 255 || fields[0]*fields[1] > len(rest)-1 {
			return list, fmt.Errorf("page %d is not a portable graymap", len(list)+1)
		}
		size := fields[0] * fields[1]
		list = append(list, &image.Gray{Pix: rest[1 : 1+size], Stride: fields[0], Rect: image.Rect(0, 0, fields[0], fields[1])})
		data = rest[1+size:]
	}
	return list, nil
}
