// SPDX-License-Identifier: Apache-2.0

package client

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"tamga/internal/cli"
	"tamga/internal/domain/encryption"
	"tamga/internal/files"
	"tamga/pki/cms"
	"tamga/pki/x509gost"
)

// Encrypt is the sub-command encrypt. A running server encrypts, or with --offline this program.
type Encrypt struct {
	Files []string `arg:"" name:"file" help:"Files to encrypt. - for standard input."`

	Output string `short:"o" placeholder:"FILE" help:"Output file. Default: FILE.p7m, with --type XML FILE.enc; standard output if FILE is -. The file appears only when it is complete."`
	Force  bool   `help:"Overwrite the output file. Without this flag an existing file is not changed."`
	JSON   bool   `name:"json" help:"Print JSON instead of text."`

	To            []string `group:"Encryption:" required:"" sep:"none" placeholder:"FILE" help:"Certificates of the recipients: a file, PEM or DER, or a directory with such files. May be repeated."`
	Type          string   `group:"Encryption:" default:"CMS" help:"Format of the message: CMS, or XML for XML documents. Default: ${default}."`
	Algorithm     string   `group:"Encryption:" placeholder:"NAME" help:"Cipher of a CMS message: 28147-89, Magma, Kuznyechik, AES256-CBC or AES256-GCM. Default: 28147-89 if a recipient has a GOST key, otherwise AES256-CBC. Magma, Kuznyechik and AES256-GCM detect changes."`
	Integrity     string   `group:"Encryption:" placeholder:"NAME" help:"OMAC or None, for Magma and Kuznyechik. Default: OMAC."`
	KeyManagement string   `group:"Encryption:" placeholder:"NAME" help:"Transport or Agreement, for GOST keys in a CMS message. Default: Transport."`
	Part          string   `group:"Encryption:" placeholder:"NAME" help:"Part of an XML document to encrypt: Element, which is the root element, or Content, which is everything in it. Default: Element."`
	KeyTransport  string   `group:"Encryption:" placeholder:"NAME" help:"Name of the encrypted keys of an XML document: gost2001, gost2012-256 or gost2012-512. Default: the name of each key."`
	AllowInvalid  bool     `group:"Encryption:" help:"Encrypt for certificates that are expired or revoked, too."`
	Offline       bool     `group:"Encryption:" help:"Encrypt in this program, without a server. Dates of certificates are checked, revocation is not."`

	connectionFlags
}

// Help returns the text above the flags.
func (Encrypt) Help() string {
	return `Encrypts FILE to FILE.p7m for the owners of the certificates, each of whom can decrypt it with tamga decrypt or with another program. ` +
		`Include your own certificate to be able to read it yourself. ` +
		`The server checks whether the certificates are revoked. With --offline no server is needed. Documents of any size are encrypted while they are read. ` +
		`The default cipher is what most programs read, and it does not show changes on the way; --algorithm Kuznyechik does.`
}

// recipients are the certificates to encrypt for, and the files that they are from.
type recipients struct {
	list []*x509gost.Certificate
	from []string
}

// name returns a recipient for people.
func (r *recipients) name(i int) string {
	return fmt.Sprintf("%s, %s", r.from[i], cli.Printable(r.list[i].Subject.String()))
}

// encrypted is what became of a file.
type encrypted struct {
	Input      string `json:"input"`
	File       string `json:"file"`
	Type       string `json:"type"`
	Bytes      int64  `json:"bytes"`
	Recipients int    `json:"recipients"`
}

// Run reads the recipients and encrypts one file after the other.
func (e *Encrypt) Run(c *cli.Console) error {
	kind, err := encryption.ParseType("--type", e.Type)
	if err != nil {
		return plainly(err)
	}
	jobs, err := e.jobs(c, kind)
	if err != nil {
		return err
	}
	to, err := readRecipients(e.To)
	if err != nil {
		return err
	}
	var one func(content source, dst io.Writer) (int64, error)
	bar := cli.NewProgress(c)
	defer bar.Clear()
	if e.Offline {
		if e.Server != "" {
			return errors.New("--offline needs no server; omit --server")
		}
		one, err = e.here(c, bar, kind, to)
	} else {
		one, err = e.there(c, bar, kind, to)
	}
	if err != nil {
		return err
	}
	var done []encrypted
	for _, job := range jobs {
		size, err := e.write(c, job, bar, one)
		bar.Clear()
		if err != nil {
			return named(jobs, job, err)
		}
		if job.output == "-" {
			return nil
		}
		done = append(done, encrypted{job.name, job.output, string(kind), size, len(to.list)})
		if !e.JSON {
			if err := c.Print("%s: written, %s; recipients: %d\n", job.output, files.Size(size), len(to.list)); err != nil {
				return err
			}
		}
	}
	if e.JSON {
		return printJSON(c, done)
	}
	return nil
}

// named names the file of several that an error is about.
func named(jobs []job, job job, err error) error {
	if len(jobs) == 1 {
		return err
	}
	return fmt.Errorf("%s: %w", job.name, err)
}

// printJSON prints what became of the files: an object for one file, a list for several.
func printJSON[T any](c *cli.Console, done []T) error {
	var all any = done
	if len(done) == 1 {
		all = done[0]
	}
	return json.NewEncoder(c.Stdout).Encode(all)
}

// jobs returns the files with their outputs, which do not exist or may be overwritten.
func (e *Encrypt) jobs(c *cli.Console, kind encryption.Type) ([]job, error) {
	ending := ".p7m"
	if kind == encryption.XML {
		ending = ".enc"
	}
	return outputs(c, e.Files, e.Output, e.Force, e.JSON, func(name string) (string, error) { return name + ending, nil })
}

// write encrypts a file to its output. After an error there is no output file.
func (e *Encrypt) write(c *cli.Console, job job, bar *cli.Progress, one func(content source, dst io.Writer) (int64, error)) (int64, error) {
	content, closeContent, err := openSource(c, job.name)
	if err != nil {
		return 0, err
	}
	defer closeContent()
	content.Reader = bar.Reader(content.Reader)
	if job.output == "-" {
		return one(content, c.Stdout)
	}
	out, err := cli.CreateOutfile(job.output, e.Force)
	if err != nil {
		return 0, err
	}
	defer out.Discard()
	size, err := one(content, out)
	if err != nil {
		return 0, err
	}
	return size, out.Commit()
}

// parameters returns the Encryption.Parameters of the flags.
func (e *Encrypt) parameters() map[string]string {
	p := map[string]string{}
	for name, value := range map[string]string{
		encryption.ParamAlgorithm: e.Algorithm, encryption.ParamIntegrity: e.Integrity, encryption.ParamManagement: e.KeyManagement,
		encryption.ParamPart: e.Part, encryption.ParamTransport: e.KeyTransport,
	} {
		if value != "" {
			p[name] = value
		}
	}
	return p
}

// here returns a function that encrypts in this program.
func (e *Encrypt) here(c *cli.Console, bar *cli.Progress, kind encryption.Type, to *recipients) (func(content source, dst io.Writer) (int64, error), error) {
	now := time.Now()
	for i, cert := range to.list {
		switch {
		case e.AllowInvalid:
		case now.Before(cert.NotBefore):
			return nil, fmt.Errorf("%s: the certificate is not valid before %s; --allow-invalid encrypts for it all the same", to.name(i), cert.NotBefore.UTC().Format(time.DateOnly))
		case now.After(cert.NotAfter):
			return nil, fmt.Errorf("%s: the certificate expired on %s; --allow-invalid encrypts for it all the same", to.name(i), cert.NotAfter.UTC().Format(time.DateOnly))
		}
	}
	form, err := kind.Encrypter(rand.Reader, e.parameters())
	if err != nil {
		return nil, plainly(err)
	}
	return func(content source, dst io.Writer) (int64, error) {
		bar.Stage(c.Text("encrypting"), content.size)
		if kind == encryption.XML && content.size < 0 {
			if content, err = inMemory(content); err != nil {
				return 0, err
			}
		}
		counted := &countingWriter{Writer: dst}
		err := form.Encrypt(c.Context, counted, content, content.size, to.list)
		if refused, is := errors.AsType[*cms.RecipientError](err); is {
			err = fmt.Errorf("%s: %w", to.name(refused.Index), refused.Err)
		}
		return counted.n, plainly(err)
	}, nil
}

// maxXML is the largest size in bytes of an XML document that is read from a pipe: it is in memory as a whole.
const maxXML = 256 << 20

// inMemory reads a document whose size is not known.
func inMemory(s source) (source, error) {
	text, err := io.ReadAll(io.LimitReader(s, maxXML+1))
	if err == nil && len(text) > maxXML {
		err = fmt.Errorf("an XML document from a pipe may have %s; name a file", files.Size(maxXML))
	}
	return source{strings.NewReader(string(text)), int64(len(text))}, err
}

// countingWriter counts the bytes written.
type countingWriter struct {
	io.Writer
	n int64
}

func (w *countingWriter) Write(p []byte) (int, error) {
	n, err := w.Writer.Write(p)
	w.n += int64(n)
	return n, err
}

// there returns a function that has the server encrypt.
func (e *Encrypt) there(c *cli.Console, bar *cli.Progress, kind encryption.Type, to *recipients) (func(content source, dst io.Writer) (int64, error), error) {
	var list [][]byte
	for _, cert := range to.list {
		list = append(list, cert.Raw)
	}
	parameters := e.parameters()
	if e.AllowInvalid {
		parameters[encryption.ParamAllowInvalid] = "True"
	}
	tail, err := json.Marshal(struct {
		Type         string
		Certificates [][]byte
		Parameters   map[string]string
	}{string(kind), list, parameters})
	if err != nil {
		return nil, err
	}
	cl, _, err := connect(c, e.connectionFlags, secretPIN{}, errors.New("or encrypt without a server with --offline"))
	if err != nil {
		return nil, err
	}
	return func(content source, dst io.Writer) (int64, error) {
		bar.Stage(c.Text("sending"), content.size)
		body, size := joined([]source{literal(`{"Content":"`), encoded(content), literal(`","Encryption":`), literal(string(tail)), literal("}")})
		answer, err := cl.post(c.Context, "/api/documents/encrypt", body, size)
		if err != nil {
			return 0, aboutRecipients(err, to)
		}
		defer answer.Body.Close()
		bar.Stage(c.Text("receiving"), -1)
		n, err := cli.CopyAnswer(dst, bar.Reader(answer.Body))
		switch {
		case c.Context.Err() != nil:
			err = c.Context.Err()
		case err == nil && n == 0:
			err = errors.New("the server answered with an empty message")
		}
		return n, err
	}, nil
}

// indexed is a recipient in the description of a refusal.
var indexed = regexp.MustCompile(`Encryption\.Certificates\[(\d+)\]`)

// aboutRecipients names the recipients that a refusal is about, and adds advice about flags of this command.
func aboutRecipients(err error, to *recipients) error {
	if r, is := errors.AsType[*refusal](err); is {
		r.hint = encryptHints[r.code]
		r.description = indexed.ReplaceAllStringFunc(r.description, func(found string) string {
			i, err := strconv.Atoi(indexed.FindStringSubmatch(found)[1])
			if err != nil || i >= len(to.list) {
				return found
			}
			return to.name(i)
		})
	}
	return err
}

// certificateEndings are those of files in a directory of certificates.
var certificateEndings = []string{".pem", ".crt", ".cer", ".der"}

// readRecipients reads certificates from files and directories. One that is there twice counts once.
func readRecipients(paths []string) (*recipients, error) {
	r, seen := &recipients{}, map[string]bool{}
	for _, path := range paths {
		list := []string{path}
		if info, err := os.Stat(path); err == nil && info.IsDir() {
			if list, err = certificateFiles(path); err != nil {
				return nil, fmt.Errorf("--to: %w", err)
			}
		}
		for _, file := range list {
			certs, err := files.Certificates(file)
			if err != nil {
				return nil, fmt.Errorf("--to: %w", err)
			}
			for _, cert := range withoutAuthorities(certs) {
				if !seen[string(cert.Raw)] {
					seen[string(cert.Raw)] = true
					r.list, r.from = append(r.list, cert), append(r.from, file)
				}
			}
		}
	}
	return r, nil
}

// certificateFiles returns the files with certificates in a directory.
func certificateFiles(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var list []string
	for _, e := range entries {
		if !e.IsDir() && slices.Contains(certificateEndings, strings.ToLower(filepath.Ext(e.Name()))) {
			list = append(list, filepath.Join(dir, e.Name()))
		}
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("%s has no certificates: want files that end with %s", dir, strings.Join(certificateEndings, ", "))
	}
	return list, nil
}

// withoutAuthorities returns the certificates of a file without those of authorities: a file of a person often has the
// whole chain, and authorities are not to read the document. A file of authorities alone has those that issued no other
// certificate in it.
func withoutAuthorities(certs []*x509gost.Certificate) []*x509gost.Certificate {
	isAuthority := func(c *x509gost.Certificate) bool { return c.IsCA }
	if !slices.ContainsFunc(certs, func(c *x509gost.Certificate) bool { return !c.IsCA }) {
		isAuthority = func(authority *x509gost.Certificate) bool {
			return slices.ContainsFunc(certs, func(c *x509gost.Certificate) bool {
				return !c.Subject.Equal(c.Issuer) && c.Issuer.Equal(authority.Subject)
			})
		}
	}
	return slices.DeleteFunc(slices.Clone(certs), isAuthority)
}
