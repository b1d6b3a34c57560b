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
	"strings"

	"tamga/internal/cli"
	"tamga/internal/files"
)

// signFile is one of several files that one operation signs.
type signFile struct {
	name, output string
	kind         string // Signature.Type
	parameters   map[string]string
	content      source
	written      *signedFile // nil: not yet
}

// several signs several files in one operation, each by its own type and parameters.
func (s *Sign) several(c *cli.Console) error {
	switch {
	case s.Output != "":
		return errors.New("-o names the output of one file; several files have outputs of their own, such as FILE.sig")
	case s.Original != "":
		return errors.New("--original is the document of one message; sign several messages one by one")
	}
	list := make([]*signFile, len(s.Files))
	outputs := map[string]string{}
	for i, name := range s.Files {
		f, err := s.one(c, name)
		if err != nil {
			return err
		}
		output := filepath.Clean(f.output)
		if other, twice := outputs[output]; twice {
			return fmt.Errorf("%s and %s have the same output, %s; sign one of them alone", other, name, f.output)
		}
		list[i], outputs[output] = f, name
	}
	cl, pin, err := s.connect(c)
	if err != nil {
		return err
	}
	defer clear(pin)
	return s.together(c, cl, pin, list)
}

// together signs files in one operation. If the user must confirm it, it waits for that.
func (s *Sign) together(c *cli.Console, cl *client, pin []byte, list []*signFile) error {
	request := &signRequest{certificate: strings.TrimSpace(s.Cert), pin: pin, files: list}
	defer request.wipe()

	bar := cli.NewProgress(c)
	defer bar.Clear()
	total := int64(0)
	for _, f := range list {
		total = sum(total, f.content.size)
		f.content.Reader = bar.Reader(f.content.Reader)
	}
	bar.Stage(c.Text("sending"), total)
	body, size, err := request.operation()
	if err != nil {
		return err
	}
	answer, err := cl.post(c.Context, "/api/tamga/operations", body, size)
	if err != nil {
		return err
	}
	bar.Stage(c.Text("receiving"), -1)
	op, done, err := s.receive(c, bar.Reader(answer), list)
	err = errors.Join(err, answer.Close())
	bar.Clear()
	if err == nil && op.waits() {
		op, done, err = s.await(c, cl, op, list)
	}
	switch {
	case err != nil:
		return err
	case op.Error != "":
		return fmt.Errorf("nothing is signed: %s", cli.Printable(strings.TrimSpace(op.Error+" "+op.ErrorDescription)))
	case len(done) != len(list):
		return errors.New("the server answered with fewer documents than files were sent")
	}
	return s.report(c, done)
}

// receive reads the answer of an operation, and writes the results in it.
func (s *Sign) receive(c *cli.Console, answer io.Reader, list []*signFile) (op operationHead, done []signedFile, err error) {
	var failed error // of an output, which is no fault of the answer
	op, err = readOperation(answer, func(d *processedDocument) error {
		if len(done) == len(list) {
			return errors.New("more documents than files were sent")
		}
		one, err := list[len(done)].write(d, s.Force)
		done, failed = append(done, one), err
		return err
	})
	switch {
	case c.Context.Err() != nil:
		return op, done, c.Context.Err()
	case failed != nil:
		return op, done, failed
	case err != nil:
		return op, done, fmt.Errorf("the answer of the signing service: %w", err)
	}
	return op, done, nil
}

// one returns a file with the type and the parameters that the flags say for it.
func (s *Sign) one(c *cli.Console, name string) (*signFile, error) {
	if name == "-" {
		return nil, errors.New("standard input is signed alone, not beside files")
	}
	one := *s
	one.File = name
	if err := one.chooseType(); err != nil {
		return nil, err
	}
	f := &signFile{name: name, kind: one.Type}
	var err error
	if f.parameters, err = one.parameters(); err != nil {
		return nil, err
	}
	if f.output, err = one.target(c); err != nil {
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
	if cl, err = newClient(c, s.connectionFlags); err != nil {
		return nil, nil, err
	}
	switch {
	case s.PinFile != "":
		pin, err = files.ReadSecretBytes(s.PinFile, "--pin-file")
	case s.Pin:
		pin, err = c.AskSecretBytes(c.Text("PIN of certificate %s: ", cli.Printable(strings.TrimSpace(s.Cert))), "--pin-file")
	}
	if err == nil {
		err = cl.signIn(c.Context)
	}
	if err != nil {
		clear(pin)
		return nil, nil, err
	}
	return cl, pin, nil
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

// signedFile is what became of a file.
type signedFile struct {
	Input  string `json:"input"`
	File   string `json:"file,omitempty"`
	Type   string `json:"type"`
	Bytes  int    `json:"bytes,omitempty"`
	Error  string `json:"error,omitempty"` // code
	Reason string `json:"error_description,omitempty"`
}

// write writes the result of a file, if it has one.
func (f *signFile) write(d *processedDocument, force bool) (signedFile, error) {
	one := signedFile{Input: f.name, Type: f.kind}
	if f.written != nil { // by an answer that broke off later
		return *f.written, nil
	}
	if d.Error != nil {
		one.Error = *d.Error
	}
	if d.ErrorDescription != nil {
		one.Reason = *d.ErrorDescription
	}
	switch {
	case one.Error != "" || d.Status == "Created" || d.Status == "InProgress":
		return one, nil
	case d.Status == "Declined":
		one.Error = "authentication_declined"
		return one, nil
	}
	if len(d.Content) == 0 {
		return one, errors.New("the server answered with an empty signature")
	}
	out, err := cli.CreateOutfile(f.output, force)
	if err != nil {
		return one, err
	}
	defer out.Discard()
	if _, err := out.Write(d.Content); err != nil {
		return one, err
	}
	if err := out.Commit(); err != nil {
		return one, err
	}
	one.File, one.Bytes = f.output, len(d.Content)
	f.written = &one
	return one, nil
}

// report prints what became of the files. The error is for those that are not signed.
func (s *Sign) report(c *cli.Console, done []signedFile) error {
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
				if err := c.Print("%s: written, %s\n", f.File, files.Size(int64(f.Bytes))); err != nil {
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
