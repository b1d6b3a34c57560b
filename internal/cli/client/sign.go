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
	"strconv"
	"strings"
	"sync"
	"unicode"

	"tamga/internal/app"
	"tamga/internal/cli"
	"tamga/internal/config"
	"tamga/internal/files"
)

// Sign asks a running server for a signature. Whatever the flags say is
// passed on: the server judges it, so that a newer server can do more than this
// program knows of.
type Sign struct {
	File string `arg:"" help:"What to sign: a document, its hash with --hash, or a signed message with --cms-signature-type; - for standard input."`

	Output string `short:"o" placeholder:"FILE" help:"Where the answer goes. Default: FILE.sig; standard output when FILE is -. A file appears only when it is complete."`
	Force  bool   `help:"Overwrite the output file. Without this a file that exists is left alone."`

	Type             string            `group:"Signature:" default:"CAdES" help:"GOST3410 (the bare value), CAdES, CMS, XMLDSig, MSOffice, PDF, or another type of the server. Default: ${default}."`
	Cert             string            `group:"Signature:" default:"0" placeholder:"ID" help:"Number of the certificate; 0 is the user's default one. Default: 0."`
	Pin              bool              `group:"Signature:" xor:"pin" help:"Ask for the PIN of the key on the terminal."`
	PinFile          string            `group:"Signature:" xor:"pin" placeholder:"FILE" help:"File with the PIN of the key."`
	Hash             bool              `group:"Signature:" help:"FILE holds the hash of the document, and --original too."`
	Hex              bool              `group:"Signature:" help:"The hash is hexadecimal text, not octets."`
	CadesType        string            `name:"cades-type" group:"Signature:" placeholder:"TYPE" help:"BES, T or XLT1. Default for CAdES: BES."`
	Detached         bool              `group:"Signature:" xor:"attachment" help:"The signature does not hold the document. Default for CAdES and CMS, unless a message is extended."`
	Attached         bool              `group:"Signature:" xor:"attachment" help:"The signature holds the document."`
	CmsSignatureType string            `name:"cms-signature-type" group:"Signature:" placeholder:"TYPE" help:"Sign, Cosign or Countersign; the last two extend the signed message in FILE."`
	Original         string            `group:"Signature:" placeholder:"FILE" help:"The document that the message to extend was made over."`
	HashAlgorithm    string            `group:"Signature:" placeholder:"NAME" help:"Algorithm of the hash, for instance \"GR 34.11-2012 256\"."`
	SignatureIndex   *int              `group:"Signature:" placeholder:"N" help:"Which signature to countersign, from 0."`
	TSP              *string           `name:"tsp" group:"Signature:" placeholder:"URL" help:"Time-stamp service, needed for T and XLT1; empty text takes the first one of the server."`
	XMLDSigType      string            `name:"xmldsig-type" group:"Signature:" placeholder:"TYPE" help:"XMLEnveloping, XMLEnveloped or XMLTemplate."`
	PDFFormat        string            `name:"pdf-format" group:"Signature:" placeholder:"FORMAT" help:"CMS, CAdES or CAdEST."`
	Attribute        map[string]string `group:"Signature:" mapsep:"none" placeholder:"OID=BASE64" help:"A signed attribute of a CMS signature with its value; may be repeated."`
	Param            map[string]string `group:"Signature:" mapsep:"none" placeholder:"KEY=VALUE" help:"Any other parameter of the interface; may be repeated."`

	connectionFlags
}

// Help is shown above the flags.
func (Sign) Help() string {
	return `Makes a detached CAdES-BES signature of FILE beside it, as FILE.sig, with the default certificate of the user. ` +
		`FILE.sig is never overwritten without --force. Documents of any size are sent as they are read. ` +
		`PINs and passwords come from files or from the terminal, never from the command line.`
}

// Run checks what can be checked here, then signs in, sends and writes.
func (s *Sign) Run(c *cli.Console) error {
	parameters, err := s.parameters()
	if err != nil {
		return err
	}
	output, err := s.target(c)
	if err != nil {
		return err
	}
	request := &signRequest{kind: s.Type, certificate: strings.TrimSpace(s.Cert), parameters: parameters}
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
	cl, err := newClient(c.Context, s.connectionFlags)
	if err != nil {
		return err
	}
	switch {
	case s.PinFile != "":
		request.pin, err = files.ReadSecretBytes(s.PinFile, "--pin-file")
	case s.Pin:
		request.pin, err = cli.AskSecretBytes(c.Context, "PIN of certificate "+cli.Printable(request.certificate)+": ", "--pin-file")
	}
	if err != nil {
		return err
	}
	defer request.wipe()
	if err := cl.signIn(c.Context); err != nil {
		return err
	}
	return s.exchange(c, cl, request, output)
}

// exchange sends the request and writes the answer. Whatever ends it early
// leaves no output file.
func (s *Sign) exchange(c *cli.Console, cl *client, request *signRequest, output string) error {
	bar := cli.NewProgress(c)
	defer bar.Clear()
	total := request.content.size
	if request.original != nil {
		total = sum(total, request.original.size)
		request.original.Reader = bar.Reader(request.original.Reader)
	}
	bar.Stage("sending", total)
	request.content.Reader = bar.Reader(request.content.Reader)

	answer, err := cl.sign(c.Context, request)
	if err != nil {
		return err
	}
	defer answer.Close()
	bar.Stage("receiving", -1)

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
	_, err = fmt.Fprintf(c.Stdout, "%s: written, %s\n", output, files.Octets(n))
	return err
}

// received judges what copyAnswer reports.
func received(ctx context.Context, n int64, err error) error {
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err == nil && n == 0:
		return errors.New("the server answered with an empty signature")
	}
	return err
}

func sum(a, b int64) int64 {
	if a < 0 || b < 0 {
		return -1
	}
	return a + b
}

// target is where the answer goes, "-" for standard output.
func (s *Sign) target(c *cli.Console) (string, error) {
	switch {
	case s.Output == "-":
		return "-", nil
	case s.Output != "":
		return s.Output, cli.CheckTarget(s.Output, s.Force)
	case s.File != "-":
		return s.File + ".sig", cli.CheckTarget(s.File+".sig", s.Force)
	case cli.IsTerminal(c.Stdout):
		return "", errors.New("a signature is not text for a terminal: name a file with -o, or say -o - if you mean it")
	}
	return "-", nil
}

// maxHash bounds a file that is said to hold a hash: 64 octets, or their text.
const maxHash = 1 << 10

// open opens FILE or --original; with --hash it reads the hash instead.
func (s *Sign) open(c *cli.Console, path string) (source, func() error, error) {
	in, closer, size := c.Stdin, func() error { return nil }, int64(-1)
	if path != "-" {
		f, err := os.Open(path)
		if err != nil {
			return source{}, nil, err
		}
		info, err := f.Stat()
		if err == nil && info.IsDir() {
			err = fmt.Errorf("%s is a directory: name a file", path)
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
	// An extended message is no hash, whatever --hash says of its original.
	if !s.Hash || s.extends() && path == s.File {
		return source{in, size}, closer, nil
	}
	defer closer()
	text, err := io.ReadAll(io.LimitReader(in, maxHash+1))
	if err != nil {
		return source{}, nil, err
	}
	value, err := readHash(text, s.Hex)
	if err != nil {
		return source{}, nil, fmt.Errorf("%s: %w", path, err)
	}
	return source{bytes.NewReader(value), int64(len(value))}, func() error { return nil }, nil
}

// interruptible reads a pipe or a terminal, which may stay silent for ever, in
// such a way that ctx ends the wait. The first Read starts a goroutine, not
// earlier, since a password may be asked for on the same terminal before; it
// stays until r yields or the program ends.
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

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(b []byte) (int, error) { return f(b) }

// readHash takes the content of a file as a hash value.
func readHash(text []byte, isHex bool) ([]byte, error) {
	if len(text) > maxHash {
		return nil, errors.New("too long for a hash: without --hash the document itself is signed")
	}
	compact := bytes.Join(bytes.Fields(text), nil)
	value, err := hex.DecodeString(string(compact))
	switch {
	case isHex && err != nil:
		return nil, errors.New("not hexadecimal text alone, as --hex says")
	case isHex:
		return value, nil
	case err == nil && len(compact) >= 2*20: // no hash is shorter than SHA-1
		return nil, errors.New("this is hexadecimal text: say so with --hex")
	}
	return text, nil
}

func (s *Sign) extends() bool {
	return s.CmsSignatureType != "" && !strings.EqualFold(s.CmsSignatureType, "Sign")
}

// parameters translates the flags into Signature.Parameters. What a person need
// not say is a default; --param replaces a default, but not another flag.
func (s *Sign) parameters() (map[string]string, error) {
	if s.Hex && !s.Hash {
		return nil, errors.New("--hex says how a hash is written: it needs --hash")
	}
	if s.File == "-" && s.Original == "-" {
		return nil, errors.New("FILE and --original cannot both be standard input")
	}
	attributes, err := authenticatedAttributes(s.Attribute)
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
		{"AuthenticatedAttributes", attributes, attributes != ""},
		{"OriginalDocument", "", s.Original != ""}, // sent apart, as a stream
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
			continue // the message to extend is detached or not
		}
		if !byParam(key) {
			out[key] = value
		}
	}
	for key, value := range s.Param {
		if strings.IndexFunc(key, unicode.IsSpace) >= 0 || key == "" {
			return nil, fmt.Errorf("--param %q: a key has no spaces and is not empty", key)
		}
		out[key] = value
	}
	for _, r := range rows {
		switch {
		case r.given && byParam(r.key):
			return nil, fmt.Errorf("%s is given twice, by its flag and by --param: give it once", r.key)
		case r.given && r.key != "OriginalDocument":
			out[r.key] = r.value
		}
	}
	return out, nil
}

// authenticatedAttributes is the Base64 of a JSON object that the parameter of
// this name holds, empty when there are none.
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
