// SPDX-License-Identifier: Apache-2.0

package client

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"tamga/internal/cli"
	"tamga/internal/domain/encryption"
	"tamga/internal/files"
	"tamga/pki/cms"
	"tamga/pki/x509gost"
)

// Decrypt is the sub-command decrypt. A running server decrypts with a key of the user, or this program with a key
// from a file.
type Decrypt struct {
	Files []string `arg:"" name:"file" help:"Encrypted messages: CMS in DER, BER, PEM, Base64 or S/MIME, or XML documents. Several files are decrypted in one operation. - for standard input."`

	Output string `short:"o" placeholder:"FILE" help:"Output file. Default: FILE without its ending .p7m, .p7e or .enc; standard output if FILE is -. The name is never taken from the message. The file appears only when it is complete, and only its owner may read it."`
	Force  bool   `help:"Overwrite the output file. Without this flag an existing file is not changed."`
	JSON   bool   `name:"json" help:"Print JSON instead of text."`

	Type       string `group:"Decryption:" default:"auto" help:"Format of the message: CMS or XML; auto takes XML if FILE begins as XML does. Default: ${default}."`
	Cert       string `group:"Decryption:" default:"0" placeholder:"ID" help:"Number of the user's certificate; 0 is one that opens the message. Default: 0."`
	Pin        bool   `group:"Decryption:" xor:"pin" help:"Ask for the PIN of the key at the terminal."`
	PinFile    string `group:"Decryption:" xor:"pin" placeholder:"FILE" help:"File with the PIN of the key."`
	Originator string `group:"Decryption:" placeholder:"FILE" help:"Certificate of the sender, for a message that only names it."`

	Key             string `group:"Without a server:" placeholder:"FILE" help:"PKCS #12 file with the key and its certificate. With it this program decrypts, without a server."`
	KeyPasswordFile string `group:"Without a server:" placeholder:"FILE" help:"File with the password of the PKCS #12 file. Default: ask at the terminal."`

	connectionFlags
}

// Help returns the text above the flags.
func (Decrypt) Help() string {
	return `Decrypts FILE.p7m to FILE with the key of a certificate that is among its recipients: a key of the user on the server, or with --key one from a file. ` +
		`Nothing is written before the whole message is checked; with --key it is read twice for that, so it may be larger than memory. ` +
		`The answer says whether the message has an authentication code. Without one, changes on the way show only in the document itself. ` +
		`PINs and passwords are read from files or from the terminal, never from the command line.`
}

// message is a file to decrypt.
type message struct {
	job
	kind encryption.Type
	in   *cli.Input
}

// Run opens the messages and decrypts them.
func (d *Decrypt) Run(c *cli.Console) error {
	if d.Key == "" && d.KeyPasswordFile != "" {
		return errors.New("--key-password-file needs --key")
	}
	if d.Key != "" && (d.Server != "" || d.Pin || d.PinFile != "") {
		return errors.New("--key decrypts in this program; omit --server, --pin and --pin-file")
	}
	var originator *x509gost.Certificate
	if d.Originator != "" {
		certs, err := files.Certificates(d.Originator)
		if err == nil && len(certs) != 1 {
			err = fmt.Errorf("%s has %d certificates; give the one of the sender only", d.Originator, len(certs))
		}
		if err != nil {
			return fmt.Errorf("--originator: %w", err)
		}
		originator = certs[0]
	}
	jobs, err := outputs(c, d.Files, d.Output, d.Force, d.JSON, plainName)
	if err != nil {
		return err
	}
	if d.Key != "" {
		return d.here(c, jobs, originator)
	}
	return d.there(c, jobs, originator)
}

// plainName returns the name of the document that a file is the message of, in the same directory.
func plainName(name string) (string, error) {
	base := filepath.Base(name)
	plain, ended := encryption.PlainName(base)
	if !ended {
		return "", fmt.Errorf("%s does not end with %s; name the output with -o", name, strings.Join(encryption.Endings, ", "))
	}
	return strings.TrimSuffix(name, base) + plain, nil
}

// open opens a message. The caller closes it.
func (d *Decrypt) open(c *cli.Console, j job, bar *cli.Progress) (*message, error) {
	in, err := cli.OpenInput(c.Context, j.name, c.Stdin, bar)
	if err != nil {
		return nil, err
	}
	m := &message{job: j, in: in}
	if m.kind, err = d.kindOf(in); err != nil {
		in.Close()
		return nil, err
	}
	return m, nil
}

// kindOf returns the format of a message.
func (d *Decrypt) kindOf(in *cli.Input) (encryption.Type, error) {
	if !strings.EqualFold(d.Type, "auto") {
		kind, err := encryption.ParseType("--type", d.Type)
		return kind, plainly(err)
	}
	head, err := in.Head()
	if bytes.HasPrefix(bytes.TrimLeft(bytes.TrimPrefix(head, []byte("\xef\xbb\xbf")), " \t\r\n"), []byte("<")) {
		return encryption.XML, err
	}
	return encryption.CMS, err
}

// content returns a reader of a message from its beginning.
func (m *message) content() source {
	size := m.in.Document.Size()
	return source{io.NewSectionReader(m.in.Document, 0, size), size}
}

// say prints what became of a message.
func say(c *cli.Console, one outputFile) error {
	if one.Integrity == cms.Verified.String() {
		return c.Print("%s: written, %s; its authentication code is right\n", one.File, files.Size(*one.Bytes))
	}
	return c.Print("%s: written, %s; the message has no authentication code, so that a change on the way shows only in the document\n", one.File, files.Size(*one.Bytes))
}

// warn says on standard error that a document on standard output has no authentication code.
func warn(c *cli.Console, integrity string) {
	if integrity != cms.Verified.String() {
		fmt.Fprintln(c.Stderr, c.Text("note: %s", c.Text("the message has no authentication code, so that a change on the way shows only in the document")))
	}
}

// there has the server decrypt.
func (d *Decrypt) there(c *cli.Console, jobs []job, originator *x509gost.Certificate) error {
	var list []*message
	defer func() {
		for _, m := range list {
			m.in.Close()
		}
	}()
	for _, job := range jobs {
		m, err := d.open(c, job, nil)
		if err != nil {
			return err
		}
		if list = append(list, m); m.kind != list[0].kind {
			return fmt.Errorf("%s is of the format %s and %s of %s; decrypt them separately", list[0].name, list[0].kind, m.name, m.kind)
		}
	}
	cl, pin, err := connect(c, d.connectionFlags, secretPIN{d.Cert, d.Pin, d.PinFile}, errors.New("or decrypt without a server with --key"))
	if err != nil {
		return err
	}
	r := &decryptRequest{kind: list[0].kind, certificate: strings.TrimSpace(d.Cert), pin: pin, originator: originator}
	defer r.wipe()
	if len(list) > 1 {
		return d.together(c, cl, r, list)
	}
	err = d.exchange(c, cl, r, list[0])
	if refused, is := errors.AsType[*refusal](err); is && refused.code == "authn_method_not_confirmed" && list[0].output != "-" {
		return d.together(c, cl, r, list)
	}
	return err
}

// exchange has the server decrypt one message and writes the answer. After an error there is no output file.
func (d *Decrypt) exchange(c *cli.Console, cl *client, r *decryptRequest, m *message) error {
	bar := cli.NewProgress(c)
	defer bar.Clear()
	content := m.content()
	bar.Stage(c.Text("sending"), content.size)
	content.Reader = bar.Reader(content.Reader)
	body, size, err := r.body(content)
	if err != nil {
		return err
	}
	answer, err := cl.post(c.Context, "/api/documents/decrypt", body, size)
	if err != nil {
		return advised(err)
	}
	defer answer.Body.Close()
	integrity := answer.Header.Get("Tamga-Integrity")
	bar.Stage(c.Text("receiving"), -1)
	receive := func(dst io.Writer) (int64, error) {
		n, err := cli.CopyAnswer(dst, bar.Reader(answer.Body))
		if c.Context.Err() != nil {
			err = c.Context.Err()
		}
		return n, err
	}
	if m.output == "-" {
		if _, err := receive(c.Stdout); err != nil {
			return err
		}
		bar.Clear()
		warn(c, integrity)
		return nil
	}
	out, err := cli.CreatePrivateOutfile(m.output, d.Force)
	if err != nil {
		return err
	}
	defer out.Discard()
	n, err := receive(out)
	if err != nil {
		return err
	}
	if err := out.Commit(); err != nil {
		return err
	}
	bar.Clear()
	return d.report(c, []outputFile{{Input: m.name, File: m.output, Type: string(m.kind), Bytes: &n, Integrity: integrity}})
}

// together has messages decrypted in one operation. If the user must confirm it, it waits for that.
func (d *Decrypt) together(c *cli.Console, cl *client, r *decryptRequest, list []*message) error {
	b := &batch{Console: c, client: cl, force: d.Force, private: true, done: "decrypted", confirm: func(address string) string {
		return c.Text("To confirm the decryption, open %s and choose how. This program waits; Ctrl-C cancels it.\n", address)
	}}
	for _, m := range list {
		b.files = append(b.files, &inputFile{name: m.name, output: m.output, kind: string(m.kind), content: m.content()})
	}
	results, err := b.carryOut("/api/tamga/decryption", func() (io.Reader, int64, error) { return r.operation(b.files) })
	if err != nil {
		return advised(err)
	}
	return d.report(c, results)
}

// advised adds advice about flags of this command to a refusal.
func advised(err error) error {
	if r, is := errors.AsType[*refusal](err); is {
		r.hint = decryptHints[r.code]
	}
	return err
}

// report prints what became of the messages. The error is for those that are not decrypted.
func (d *Decrypt) report(c *cli.Console, done []outputFile) error {
	failed := 0
	for _, one := range done {
		switch {
		case one.File == "":
			failed++
			if !d.JSON {
				fmt.Fprint(c.Stderr, c.Text("%s: not decrypted: %s\n", cli.Printable(one.Input), cli.Printable(strings.TrimSpace(one.Error+" "+one.Reason))))
			}
		case !d.JSON:
			if err := say(c, one); err != nil {
				return err
			}
		}
	}
	if d.JSON {
		if err := printJSON(c, done); err != nil {
			return err
		}
	}
	if failed > 0 {
		return fmt.Errorf("%d of %d files are not decrypted", failed, len(done))
	}
	return nil
}

// decryptRequest is the Decryption of a request.
type decryptRequest struct {
	kind        encryption.Type
	certificate string // a number or another identifier
	originator  *x509gost.Certificate
	pin         []byte // cleared by wipe
	quoted      []byte // pin as JSON
}

// wipe clears the PIN in memory. It cannot clear the buffers of the connection.
func (r *decryptRequest) wipe() {
	clear(r.pin)
	clear(r.quoted)
}

// decryption returns the parts of the field Decryption.
func (r *decryptRequest) decryption() ([]source, error) {
	parameters := map[string]string{}
	if r.originator != nil {
		parameters[encryption.ParamOriginator] = base64.StdEncoding.EncodeToString(r.originator.Raw)
	}
	head, err := json.Marshal(struct {
		Type          string
		CertificateID json.RawMessage `json:"CertificateId"`
		Parameters    map[string]string
	}{string(r.kind), certificateID(r.certificate), parameters})
	clear(r.quoted)
	r.quoted = quoteSecret(r.pin)
	return []source{
		literal(`"Decryption":` + strings.TrimSuffix(string(head), "}") + `,"PinCode":`), {bytes.NewReader(r.quoted), int64(len(r.quoted))}, literal("}"),
	}, err
}

// body returns the JSON of POST /api/documents/decrypt and its length in bytes.
func (r *decryptRequest) body(content source) (io.Reader, int64, error) {
	parts, err := r.decryption()
	body, size := joined(append(append([]source{literal(`{"Content":"`), encoded(content), literal(`",`)}, parts...), literal("}")))
	return body, size, err
}

// operation returns the JSON of POST /api/tamga/decryption and its length in bytes.
func (r *decryptRequest) operation(list []*inputFile) (io.Reader, int64, error) {
	parts, err := r.decryption()
	if err != nil {
		return nil, 0, err
	}
	parts = append([]source{literal("{")}, parts...)
	separator := `,"BinaryData":[`
	for _, f := range list {
		name, err := json.Marshal(filepath.Base(f.name))
		if err != nil {
			return nil, 0, err
		}
		parts = append(parts, literal(separator+`{"ContentInfo":`+string(name)+`,"Content":"`), encoded(f.content), literal(`"}`))
		separator = ","
	}
	body, size := joined(append(parts, literal("]}")))
	return body, size, nil
}
