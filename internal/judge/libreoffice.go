// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Office is LibreOffice without a window, with its own profile and certificates. It makes
// Office documents and verifies their signatures by RSA and ECDSA.
type Office struct {
	t                              testing.TB
	dir, python, soffice, certutil string
}

//go:embed libreoffice.py
var libreOfficeScript []byte

// OfficeSignature is the result of LibreOffice for one signature.
type OfficeSignature struct {
	Valid       bool   // the signed content is unchanged and the value is valid
	Certificate int    // 0 if the certificate has a path to a trusted root
	Signer      string // subject of the certificate
}

// LibreOffice finds the program, Python with its UNO bridge, and certutil. roots (PEM)
// are trusted.
func LibreOffice(t testing.TB, roots ...[]byte) *Office {
	t.Helper()
	o := &Office{t: t, dir: t.TempDir()}
	for _, p := range []struct {
		name string
		path *string
	}{{"soffice", &o.soffice}, {"certutil", &o.certutil}} {
		path, err := exec.LookPath(p.name)
		if err != nil {
			missing(t, "the "+p.name+" program is not installed")
		}
		*p.path = path
	}
	// The bridge belongs to the Python of the distribution, which may not be the first in
	// the PATH.
	for _, python := range []string{"/usr/bin/python3", "python3"} {
		if exec.Command(python, "-c", "import uno").Run() == nil {
			o.python = python
			break
		}
	}
	if o.python == "" {
		missing(t, "Python has no bridge to LibreOffice (python3-uno)")
	}
	for _, d := range []string{"nss", "profile"} {
		if err := os.Mkdir(filepath.Join(o.dir, d), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	o.write("libreoffice.py", libreOfficeScript)
	database := "sql:" + filepath.Join(o.dir, "nss")
	o.run(o.certutil, "-N", "-d", database, "--empty-password")
	for i, pem := range roots {
		o.run(o.certutil, "-A", "-d", database, "-n", fmt.Sprintf("root %d", i), "-t", "CT,C,C", "-a", "-i", o.write("root.pem", pem))
	}
	return o
}

// Verify verifies the signatures of documents, all in one run of the program. names are
// their file names, and the extensions decide the types.
func (o *Office) Verify(names []string, documents ...[]byte) [][]OfficeSignature {
	o.t.Helper()
	args := []string{"verify"}
	for i, d := range documents {
		args = append(args, o.write(fmt.Sprintf("%d-%s", i, filepath.Base(names[i])), d))
	}
	lines := strings.Split(strings.TrimSpace(o.ask(args...)), "\n")
	if len(lines) != len(documents) {
		o.t.Fatalf("judge: LibreOffice checked %d of %d documents", len(lines), len(documents))
	}
	out := make([][]OfficeSignature, len(lines))
	for i, line := range lines {
		if err := json.Unmarshal([]byte(line), &out[i]); err != nil {
			o.t.Logf("judge: LibreOffice on %s: %s", names[i], line)
		}
	}
	return out
}

// Make returns a new document of each kind (docx, xlsx or pptx) that contains text.
func (o *Office) Make(text string, kinds ...string) [][]byte {
	o.t.Helper()
	args := []string{"make", text}
	for i, kind := range kinds {
		args = append(args, filepath.Join(o.dir, fmt.Sprintf("made%d.%s", i, kind)))
	}
	o.ask(args...)
	made := make([][]byte, len(kinds))
	for i, path := range args[2:] {
		var err error
		if made[i], err = os.ReadFile(path); err != nil {
			o.t.Fatalf("judge: LibreOffice made no document: %v", err)
		}
	}
	return made
}

func (o *Office) ask(args ...string) string {
	o.t.Helper()
	return o.run(o.python, append([]string{filepath.Join(o.dir, "libreoffice.py"), o.soffice, filepath.Join(o.dir, "profile"), filepath.Join(o.dir, "nss")}, args...)...)
}

func (o *Office) run(program string, args ...string) string {
	o.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir = o.dir
	// The script starts other programs and ends them when it is interrupted.
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 10 * time.Second
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		o.t.Fatalf("judge: %s: %v: %s", filepath.Base(program), err, errs.String())
	}
	return out.String()
}

func (o *Office) write(name string, data []byte) string {
	o.t.Helper()
	path := filepath.Join(o.dir, name)
	if err := os.WriteFile(path, data, 0o600); err != nil {
		o.t.Fatalf("judge: writing %s: %v", name, err)
	}
	return path
}
