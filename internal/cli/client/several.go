// SPDX-License-Identifier: Apache-2.0

package client

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"tamga/internal/cli"
	"tamga/internal/files"
)

// inputFile is one of the files that one operation signs or decrypts.
type inputFile struct {
	name, output string
	kind         string            // Signature.Type, or the format of an encrypted message
	parameters   map[string]string // of its signature
	content      source
	written      *outputFile // nil: not yet
}

// several signs several files in one operation, each by its own type and parameters.
func (s *Sign) several(c *cli.Console, jobs []job) error {
	if s.Original != "" {
		return errors.New("--original is the document of one message; sign several messages one by one")
	}
	list := make([]*inputFile, len(jobs))
	for i, j := range jobs {
		var err error
		if list[i], err = s.one(c, j); err != nil {
			return err
		}
	}
	if (s.Stamp || s.StampBeside != "") && !slices.ContainsFunc(list, func(f *inputFile) bool { return f.parameters["PdfSignatureAppearance"] != "" }) {
		return errors.New("--stamp and --stamp-beside are for PDF signatures, and no file gets one")
	}
	cl, pin, err := s.connect(c)
	if err != nil {
		return err
	}
	defer clear(pin)
	return s.together(c, cl, pin, list)
}

// together signs files in one operation. If the user must confirm it, it waits for that.
func (s *Sign) together(c *cli.Console, cl *client, pin []byte, list []*inputFile) error {
	request := &signRequest{certificate: strings.TrimSpace(s.Cert), pin: pin, files: list}
	defer request.wipe()
	b := &batch{Console: c, client: cl, files: list, force: s.Force, done: "signed", confirm: func(address string) string {
		return c.Text("To confirm the signatures, open %s and choose how. This program waits; Ctrl-C cancels them.\n", address)
	}}
	results, err := b.carryOut("/api/tamga/operations", request.operation)
	if err != nil {
		return err
	}
	return s.report(c, results)
}

// one returns a file with the type and the parameters that the flags say for it.
func (s *Sign) one(c *cli.Console, j job) (*inputFile, error) {
	one := *s
	one.File = j.name
	if err := one.chooseType(c.Context); err != nil {
		return nil, err
	}
	name := j.name
	f := &inputFile{name: name, output: j.output, kind: one.Type}
	var err error
	if f.parameters, err = one.parameters(); err != nil {
		return nil, err
	}
	if s.Hash && !one.extends() {
		content, closeContent, err := one.open(c, name)
		if err != nil {
			return nil, err
		}
		f.content = content
		return f, closeContent()
	}
	info, err := os.Stat(name)
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is not a regular file; sign it alone", name)
	}
	if err != nil {
		return nil, err
	}
	f.content = source{&lazyFile{name: name}, info.Size()}
	return f, nil
}

// lazyFile is a file that is open while it is read, since there may be more files than a process may open.
type lazyFile struct {
	name string
	file *os.File
}

func (l *lazyFile) Read(p []byte) (int, error) {
	if l.file == nil {
		var err error
		if l.file, err = os.Open(l.name); err != nil {
			return 0, err
		}
	}
	n, err := l.file.Read(p)
	if err != nil {
		l.file.Close()
	}
	return n, err
}

// connect reads the PIN and signs in. The caller clears the PIN.
func (s *Sign) connect(c *cli.Console) (cl *client, pin []byte, err error) {
	return connect(c, s.connectionFlags, secretPIN{s.Cert, s.Pin, s.PinFile}, nil)
}

// operation returns the JSON of POST /api/tamga/operations and its length in bytes.
func (r *signRequest) operation() (io.Reader, int64, error) {
	r.quoted = quoteSecret(r.pin)
	parts := []source{
		literal(`{"Signature":{"CertificateId":` + string(certificateID(r.certificate)) + `,"PinCode":`),
		{bytes.NewReader(r.quoted), int64(len(r.quoted))}, literal(`},"Documents":[`),
	}
	for i, f := range r.files {
		type signature struct {
			Type       string
			Parameters map[string]string
		}
		head, err := json.Marshal(struct {
			Name      string
			Signature signature
		}{filepath.Base(f.name), signature{f.kind, f.parameters}})
		if err != nil {
			return nil, 0, err
		}
		text := strings.TrimSuffix(string(head), "}") + `,"Content":"`
		if i > 0 {
			text = "," + text
		}
		parts = append(parts, literal(text), encoded(f.content), literal(`"}`))
	}
	body, size := joined(append(parts, literal("]}")))
	return body, size, nil
}

// report prints what became of the files. The error is for those that are not signed.
func (s *Sign) report(c *cli.Console, done []outputFile) error {
	failed := 0
	for _, f := range done {
		if f.File == "" {
			failed++
		}
	}
	if s.JSON {
		var all any = done
		if len(s.Files) == 1 {
			all = done[0]
		}
		if err := json.NewEncoder(c.Stdout).Encode(all); err != nil {
			return err
		}
	} else {
		for _, f := range done {
			if f.File != "" {
				if err := c.Print("%s: written, %s\n", f.File, files.Size(*f.Bytes)); err != nil {
					return err
				}
				continue
			}
			fmt.Fprint(c.Stderr, c.Text("%s: not signed: %s\n", cli.Printable(f.Input), cli.Printable(strings.TrimSpace(f.Error+" "+f.Reason))))
		}
	}
	if failed > 0 {
		return fmt.Errorf("%d of %d files are not signed", failed, len(done))
	}
	return nil
}
