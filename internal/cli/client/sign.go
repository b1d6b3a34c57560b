// SPDX-License-Identifier: Apache-2.0

package client

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"unicode"

	"tamga/internal/app"
	"tamga/internal/cli"
	"tamga/internal/config"
	"tamga/internal/files"
)

// Sign is the sub-command sign, which requests a signature from a running server. It does not check the
// values of parameters: the server does, and a newer server may know more of them.
type Sign struct {
	Files []string `arg:"" name:"file" help:"Files to sign: documents, their hashes with --hash, or signed messages with --cms-signature-type. Several files are signed in one operation, and with --type asic they become one container. - for standard input."`
	File  string   `kong:"-"` // one of Files

	Output string `short:"o" placeholder:"FILE" help:"Output file. Default: FILE.sig; NAME.signed.pdf for NAME.pdf if the signature is part of the file; standard output if FILE is -. The file appears only when it is complete."`
	Force  bool   `help:"Overwrite the output file. Without this flag an existing file is not changed."`
	JSON   bool   `name:"json" help:"Print JSON instead of text."`

	Type             string            `group:"Signature:" default:"CAdES" help:"Type of the signature: GOST3410 (the bare value), CAdES, CMS, XMLDSig, MSOffice, PDF, ASiC (a container with the files and the signature), or another type of the server; auto takes PDF, MSOffice or XMLDSig if a FILE is such a document, otherwise CAdES. Default: ${default}."`
	Cert             string            `group:"Signature:" default:"0" placeholder:"ID" help:"Number of the certificate; 0 is the default certificate of the user. Default: 0."`
	Pin              bool              `group:"Signature:" xor:"pin" help:"Ask for the PIN of the key at the terminal."`
	PinFile          string            `group:"Signature:" xor:"pin" placeholder:"FILE" help:"File with the PIN of the key."`
	Hash             bool              `group:"Signature:" help:"FILE has the hash of the document instead of the document. The same for --original."`
	Hex              bool              `group:"Signature:" help:"The hash is hexadecimal text, not bytes."`
	CadesType        string            `name:"cades-type" group:"Signature:" placeholder:"TYPE" help:"Level of a CAdES signature: BES, T, XLT1 or A. Default: BES."`
	Detached         bool              `group:"Signature:" xor:"attachment" help:"Make a signature without the document in it. Default for CAdES and CMS, unless a message is extended."`
	Attached         bool              `group:"Signature:" xor:"attachment" help:"Make a signature with the document in it."`
	CmsSignatureType string            `name:"cms-signature-type" group:"Signature:" placeholder:"TYPE" help:"Sign, Cosign or Countersign. The last two add a signature to the signed message in FILE."`
	Original         string            `group:"Signature:" placeholder:"FILE" help:"Document of the detached message in FILE, for Cosign and Countersign."`
	HashAlgorithm    string            `group:"Signature:" placeholder:"NAME" help:"Algorithm of the hash, for instance \"GR 34.11-2012 256\"."`
	SignatureIndex   *int              `group:"Signature:" placeholder:"N" help:"Index of the signature to countersign, from 0."`
	TSP              *string           `name:"tsp" group:"Signature:" placeholder:"URL" help:"Address of the time-stamp service, for T, XLT1 and A. An empty text means the first service of the server."`
	XMLDSigType      string            `name:"xmldsig-type" group:"Signature:" placeholder:"TYPE" help:"Type of an XML signature: XMLEnveloping, XMLEnveloped or XMLTemplate. Default: XMLEnveloped."`
	PDFFormat        string            `name:"pdf-format" group:"Signature:" placeholder:"FORMAT" help:"Format of a PDF signature: CMS, CAdEST, CAdES or CAdESA. Default: CMS."`
	Stamp            bool              `group:"Signature:" help:"Put the visible mark of the signature into a free place of the PDF, from the last page back. A document without space gets a sheet for marks."`
	StampBeside      string            `group:"Signature:" placeholder:"WORD" help:"Put the visible mark of the signature beside a word of the PDF, or into a free place if the word is not there."`
	StampForm        string            `group:"Signature:" placeholder:"FORM" help:"Form of the visible mark: full (70 by 25 mm) or compact (60 by 12 mm). Default: full."`
	Attribute        map[string]string `group:"Signature:" mapsep:"none" placeholder:"OID=BASE64" help:"Signed attribute of a CMS signature with its value. May be repeated."`
	Param            map[string]string `group:"Signature:" mapsep:"none" placeholder:"KEY=VALUE" help:"Another parameter of the interface. May be repeated."`

	connectionFlags
}

// Help returns the text above the flags.
func (Sign) Help() string {
	return `Makes a detached CAdES-BES signature of FILE in FILE.sig with the default certificate of the user. ` +
		`An existing FILE.sig is not overwritten without --force. Documents of any size are sent while they are read. ` +
		`Several files are signed in one operation with one certificate, each with an output of its own: tamga sign --type auto contract.pdf act.xml note.txt. ` +
		`PINs and passwords are read from files or from the terminal, never from the command line.`
}

// Run checks the flags and files, signs in, sends the request and writes the answer.
func (s *Sign) Run(c *cli.Console) error {
	if len(s.Files) > 1 && s.container() {
		return s.contain(c)
	}
	jobs, err := outputs(c, s.Files, s.Output, s.Force, s.JSON, func(name string) (string, error) { return s.outputOf(c.Context, name) })
	if err != nil {
		return err
	}
	if len(jobs) > 1 {
		return s.several(c, jobs)
	}
	output := jobs[0].output
	s.File = s.Files[0]
	if err := s.chooseType(c.Context); err != nil {
		return err
	}
	parameters, err := s.parameters()
	if err != nil {
		return err
	}
	request := &signRequest{name: s.nameIn(s.File), kind: s.Type, certificate: strings.TrimSpace(s.Cert), parameters: parameters}
	content, closeContent, err := s.open(c, s.File)
	if err != nil {
		return err
	}
	defer closeContent()
	request.content = content
	if s.Original != "" {
		original, closeOriginal, err := s.open(c, s.Original)
		if err != nil {
			return fmt.Errorf("--original: %w", err)
		}
		defer closeOriginal()
		request.original = &original
	}
	cl, pin, err := s.connect(c)
	if err != nil {
		return err
	}
	request.pin = pin
	defer request.wipe()
	err = s.exchange(c, cl, request, output)
	var refused *refusal
	if errors.As(err, &refused) && refused.code == "authn_method_not_confirmed" && s.confirmable(output) {
		file, err := s.one(c, jobs[0])
		if err != nil {
			return err
		}
		return s.together(c, cl, pin, []*inputFile{file})
	}
	return err
}

// container reports whether all FILEs become files of one container.
func (s *Sign) container() bool {
	_, format := app.Formats(&config.Config{}).Named(s.Type)
	if format == nil || s.extends() {
		return false
	}
	given, err := s.parameters()
	return err == nil && format.Read(given).Several
}

// nameIn returns the name of a file in a container, "" for other signatures.
func (s *Sign) nameIn(file string) string {
	_, format := app.Formats(&config.Config{}).Named(s.Type)
	if file == "-" || format == nil || format.Describe().SuffixFor == nil || s.extends() {
		return ""
	}
	return filepath.Base(file)
}

// contain makes one container of all files.
func (s *Sign) contain(c *cli.Console) error {
	s.File = s.Files[0]
	output := s.Output
	if output == "" {
		output = s.defaultOutput()
	}
	jobs, err := outputs(c, s.Files[:1], output, s.Force, s.JSON, nil)
	if err != nil {
		return err
	}
	if s.Original != "" {
		return errors.New("--original is the document of a message; a container holds its documents")
	}
	parameters, err := s.parameters()
	if err != nil {
		return err
	}
	request := &signRequest{name: s.nameIn(s.File), kind: s.Type, certificate: strings.TrimSpace(s.Cert), parameters: parameters}
	names := map[string]string{}
	for i, file := range s.Files {
		if file == "-" {
			return errors.New("standard input is read alone, not beside files")
		}
		name := s.nameIn(file)
		if other, twice := names[name]; twice {
			return fmt.Errorf("%s and %s have the same name in the container; rename one of them", other, file)
		}
		names[name] = file
		info, err := os.Stat(file)
		if err == nil && !info.Mode().IsRegular() {
			err = fmt.Errorf("%s is not a regular file; sign it alone", file)
		}
		if err != nil {
			return err
		}
		content := source{&lazyFile{name: file}, info.Size()}
		if i == 0 {
			request.content = content
		} else {
			request.more = append(request.more, inputFile{name: name, content: content})
		}
	}
	cl, pin, err := s.connect(c)
	if err != nil {
		return err
	}
	request.pin = pin
	defer request.wipe()
	return s.exchange(c, cl, request, jobs[0].output)
}

// confirmable reports whether the file can be sent a second time, in an operation that the user confirms.
func (s *Sign) confirmable(output string) bool {
	info, err := os.Stat(s.File)
	return err == nil && info.Mode().IsRegular() && s.Original == "" && output != "-"
}

// exchange sends the request and writes the answer. After an error there is no output file.
func (s *Sign) exchange(c *cli.Console, cl *client, request *signRequest, output string) error {
	bar := cli.NewProgress(c)
	defer bar.Clear()
	total := request.content.size
	for i := range request.more {
		f := &request.more[i]
		total = sum(total, f.content.size)
		f.content.Reader = bar.Reader(f.content.Reader)
	}
	if request.original != nil {
		total = sum(total, request.original.size)
		request.original.Reader = bar.Reader(request.original.Reader)
	}
	bar.Stage(c.Text("sending"), total)
	request.content.Reader = bar.Reader(request.content.Reader)

	answer, err := cl.sign(c.Context, request)
	if err != nil {
		return err
	}
	defer answer.Close()
	bar.Stage(c.Text("receiving"), -1)

	if output == "-" {
		n, err := cli.CopyAnswer(c.Stdout, bar.Reader(answer))
		return received(c.Context, n, err)
	}
	out, err := cli.CreateOutfile(output, s.Force)
	if err != nil {
		return err
	}
	defer out.Discard()
	n, err := cli.CopyAnswer(out, bar.Reader(answer))
	if err := received(c.Context, n, err); err != nil {
		return err
	}
	if err := out.Commit(); err != nil {
		return err
	}
	bar.Clear()
	if s.JSON {
		return json.NewEncoder(c.Stdout).Encode(map[string]any{"file": output, "type": s.Type, "bytes": n})
	}
	return c.Print("%s: written, %s\n", output, files.Size(n))
}

// chooseType replaces the type auto with the one of FILE.
func (s *Sign) chooseType(ctx context.Context) error {
	if !strings.EqualFold(s.Type, "auto") {
		return nil
	}
	s.Type = "CAdES"
	switch {
	case s.File == "-":
		return errors.New("--type auto needs a file; name the type of a document from standard input")
	case s.Hash || s.extends():
		return nil
	}
	info, err := os.Stat(s.File)
	if err != nil || !info.Mode().IsRegular() {
		return err // open names the fault; a pipe can be opened once
	}
	f, err := os.Open(s.File)
	if err != nil {
		return err
	}
	defer f.Close()
	format, err := app.Formats(&config.Config{}).Recognise(ctx, io.NewSectionReader(f, 0, info.Size()))
	if err != nil || format == nil {
		return err
	}
	// A message or a bare value is a document like any other: only a signature inside of the document
	// needs its format.
	if d := format.Describe(); d.Suffix == "" {
		s.Type = d.Types[0].Name
	}
	return nil
}

// defaultOutput returns the name of the output file if none is given.
func (s *Sign) defaultOutput() string {
	_, format := app.Formats(&config.Config{}).Named(s.Type)
	suffix := ".sig" // of a type that only the server knows
	if format != nil {
		d := format.Describe()
		given, err := s.parameters()
		if suffix = d.Suffix; err == nil && d.SuffixFor != nil {
			suffix = d.SuffixFor(given)
		}
	}
	if suffix != "" && !s.extends() {
		return s.File + suffix
	}
	ending := filepath.Ext(s.File)
	return strings.TrimSuffix(s.File, ending) + ".signed" + ending
}

// received returns the error of an exchange after CopyAnswer returned n and err.
func received(ctx context.Context, n int64, err error) error {
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err == nil && n == 0:
		return errors.New("the server answered with an empty signature")
	}
	return err
}

// sum adds two sizes. It returns -1 if one of them is not known.
func sum(a, b int64) int64 {
	if a < 0 || b < 0 {
		return -1
	}
	return a + b
}

// outputOf returns the output of a file without -o.
func (s *Sign) outputOf(ctx context.Context, name string) (string, error) {
	one := *s
	one.File = name
	if err := one.chooseType(ctx); err != nil {
		return "", err
	}
	return one.defaultOutput(), nil
}

// maxHash is the largest size in bytes of a file with a hash. A hash has up to 64 bytes, its text
// more.
const maxHash = 1 << 10

// open opens FILE or --original. With --hash it reads the hash in the file. The caller calls the
// returned function to close the file.
func (s *Sign) open(c *cli.Console, path string) (source, func() error, error) {
	opened, closer, err := openSource(c, path)
	if err != nil {
		return source{}, nil, err
	}
	// With --hash the original is a hash. A message to extend never is.
	if !s.Hash || s.extends() && path == s.File {
		return opened, closer, nil
	}
	defer closer()
	text, err := io.ReadAll(io.LimitReader(opened, maxHash+1))
	if err != nil {
		return source{}, nil, err
	}
	value, err := readHash(text, s.Hex)
	if err != nil {
		return source{}, nil, fmt.Errorf("%s: %w", path, err)
	}
	return source{bytes.NewReader(value), int64(len(value))}, func() error { return nil }, nil
}

// openSource opens a file, or standard input for "-". The caller calls the returned function to close it.
func openSource(c *cli.Console, path string) (source, func() error, error) {
	in, closer, size := c.Stdin, func() error { return nil }, int64(-1)
	if path != "-" {
		f, err := os.Open(path)
		if err != nil {
			return source{}, nil, err
		}
		info, err := f.Stat()
		if err == nil && info.IsDir() {
			err = fmt.Errorf("%s is a directory; name a file", path)
		}
		if err != nil {
			f.Close()
			return source{}, nil, err
		}
		if in, closer = f, f.Close; info.Mode().IsRegular() {
			size = info.Size()
		}
	}
	if size < 0 {
		in = interruptible(c.Context, in)
	}
	return source{in, size}, closer, nil
}

// interruptible returns a reader of a pipe or terminal whose Read returns when ctx ends. The first Read
// starts a goroutine: not earlier, since a password may be read from the same terminal before. The
// goroutine ends with r or with the program.
func interruptible(ctx context.Context, r io.Reader) io.Reader {
	out, in := io.Pipe()
	var start sync.Once
	return readerFunc(func(b []byte) (int, error) {
		start.Do(func() {
			context.AfterFunc(ctx, func() { in.CloseWithError(ctx.Err()) })
			go func() {
				_, err := io.Copy(in, r)
				in.CloseWithError(err)
			}()
		})
		return out.Read(b)
	})
}

// readerFunc implements io.Reader.
type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(b []byte) (int, error) { return f(b) }

// readHash returns the hash in the content of a file. isHex is --hex.
func readHash(text []byte, isHex bool) ([]byte, error) {
	if len(text) > maxHash {
		return nil, errors.New("too long for a hash; omit --hash to sign the document itself")
	}
	compact := bytes.Join(bytes.Fields(text), nil)
	value, err := hex.DecodeString(string(compact))
	switch {
	case isHex && err != nil:
		return nil, errors.New("not hexadecimal text; omit --hex if the file has the bytes of the hash")
	case isHex:
		return value, nil
	case err == nil && len(compact) >= 2*20: // no hash is shorter than SHA-1
		return nil, errors.New("the hash is hexadecimal text: add --hex")
	}
	return text, nil
}

// extends reports whether FILE is a signed message that gets another signature.
func (s *Sign) extends() bool {
	return s.CmsSignatureType != "" && !strings.EqualFold(s.CmsSignatureType, "Sign")
}

// parameters returns the Signature.Parameters of the flags, with defaults. --param replaces a default. It
// is an error if --param and a flag set the same parameter.
func (s *Sign) parameters() (map[string]string, error) {
	if s.Hex && !s.Hash {
		return nil, errors.New("--hex needs --hash")
	}
	if s.File == "-" && s.Original == "-" {
		return nil, errors.New("FILE and --original cannot both be standard input")
	}
	attributes, err := authenticatedAttributes(s.Attribute)
	if err != nil {
		return nil, err
	}
	stamp, err := s.stamp()
	if err != nil {
		return nil, err
	}
	text := map[bool]string{true: "True", false: "False"}
	var index, tsp string
	if s.SignatureIndex != nil {
		index = strconv.Itoa(*s.SignatureIndex)
	}
	if s.TSP != nil {
		tsp = *s.TSP
	}
	rows := []struct {
		key, value string
		given      bool // by a flag
	}{
		{"Hash", text[s.Hash], s.Hash},
		{"CADESType", s.CadesType, s.CadesType != ""},
		{"IsDetached", text[!s.Attached], s.Detached || s.Attached},
		{"CmsSignatureType", s.CmsSignatureType, s.CmsSignatureType != ""},
		{"HashAlgorithm", s.HashAlgorithm, s.HashAlgorithm != ""},
		{"SignatureIndex", index, s.SignatureIndex != nil},
		{"TSPAddress", tsp, s.TSP != nil},
		{"XMLDsigType", s.XMLDSigType, s.XMLDSigType != ""},
		{"PDFFormat", s.PDFFormat, s.PDFFormat != ""},
		{"PdfSignatureAppearance", stamp, stamp != ""},
		{"AuthenticatedAttributes", attributes, attributes != ""},
		{"OriginalDocument", "", s.Original != ""}, // sent separately, as a stream
	}
	byParam := func(key string) bool {
		for k := range s.Param {
			if strings.EqualFold(k, key) {
				return true
			}
		}
		return false
	}
	out := map[string]string{}
	for key, value := range app.Formats(&config.Config{}).Usual(s.Type) {
		if key == "IsDetached" && s.extends() {
			continue // the message to extend decides
		}
		if !byParam(key) {
			out[key] = value
		}
	}
	for key, value := range s.Param {
		if strings.IndexFunc(key, unicode.IsSpace) >= 0 || key == "" {
			return nil, fmt.Errorf("--param %q: the key is empty or has a space", key)
		}
		out[key] = value
	}
	for _, r := range rows {
		switch {
		case r.given && byParam(r.key):
			return nil, fmt.Errorf("%s is given twice, by its flag and by --param; give it once", r.key)
		case r.given && r.key != "OriginalDocument":
			out[r.key] = r.value
		}
	}
	return out, nil
}

// stamp returns the value of the parameter PdfSignatureAppearance: the Base64 of a JSON object, or "" if there is no stamp.
func (s *Sign) stamp() (string, error) {
	if format := app.Formats(&config.Config{}).Usual(s.Type); (s.Stamp || s.StampBeside != "") && format["PDFFormat"] == "" {
		if len(s.Files) > 1 {
			return "", nil // beside PDFs, which several has seen
		}
		return "", fmt.Errorf("--stamp and --stamp-beside are for PDF signatures, and the type is %s", s.Type)
	}
	if !s.Stamp && s.StampBeside == "" {
		if s.StampForm != "" {
			return "", errors.New("--stamp-form needs --stamp or --stamp-beside")
		}
		return "", nil
	}
	appearance := map[string]string{"Place": "auto"}
	if s.StampBeside != "" {
		appearance["Beside"] = s.StampBeside
	}
	if s.StampForm != "" {
		appearance["Mark"] = s.StampForm
	}
	data, err := json.Marshal(appearance)
	return base64.StdEncoding.EncodeToString(data), err
}

// authenticatedAttributes returns the value of the parameter AuthenticatedAttributes: the Base64 of a
// JSON object, or "" if there are no attributes.
func authenticatedAttributes(values map[string]string) (string, error) {
	if len(values) == 0 {
		return "", nil
	}
	for oid, value := range values {
		if _, err := base64.StdEncoding.DecodeString(value); err != nil {
			return "", fmt.Errorf("--attribute %s: the value is not Base64", oid)
		}
	}
	text, err := json.Marshal(values)
	return base64.StdEncoding.EncodeToString(text), err
}
