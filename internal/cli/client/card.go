// SPDX-License-Identifier: Apache-2.0

package client

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"tamga/internal/app"
	"tamga/internal/cli"
	"tamga/internal/config"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/signing"
	"tamga/internal/files"
	"tamga/sig"
)

// CardMake is the sub-command card make. A running server makes the card, or with --offline this program.
type CardMake struct {
	File       string   `arg:"" name:"file" help:"Signed document of any kind."`
	Signatures []string `arg:"" optional:"" name:"signature" help:"Files with its detached signatures. Default: FILE.sig or FILE.p7s, if there is one. None for a document with its signatures inside."`

	Output   string `short:"o" placeholder:"FILE" help:"Output file. Default: FILE.card.pdf. The file appears only when it is complete."`
	Force    bool   `help:"Overwrite the output file. Without this flag an existing file is not changed."`
	JSON     bool   `name:"json" help:"Print JSON instead of text."`
	Language string `placeholder:"NAME" help:"Language of the sheet of signatures: ru or en. Default: that of the server, with --offline that of this program. The marks are in Russian."`

	PDFPasswordFile string `name:"pdf-password-file" placeholder:"FILE" help:"File with the password of an encrypted PDF, to verify the signatures inside of it."`

	Report bool `group:"Card:" help:"Store a report of the verification on the server. A QR code on the card leads to it."`

	Offline      bool     `group:"Card:" help:"Make the card in this program, without a server. Nothing is fetched."`
	CA           []string `group:"Card:" name:"ca" sep:"none" placeholder:"FILE" help:"With --offline: trusted root certificates, PEM or DER. May be repeated. Default: those of a server started with --dev in --data, if there is one."`
	Intermediate []string `group:"Card:" sep:"none" placeholder:"FILE" help:"With --offline: certificates of authorities between the signer and a root, PEM or DER. May be repeated."`
	CRL          []string `group:"Card:" name:"crl" sep:"none" placeholder:"FILE" help:"With --offline: revocation lists, PEM or DER. May be repeated."`

	connectionFlags
}

// Help returns the text above the flags.
func (CardMake) Help() string {
	return `Verifies the signatures of FILE and makes its card: one PDF with the pages of the document, the marks of its signatures, a sheet of signatures with digests, and FILE and its signatures as attachments, byte for byte. ` +
		`A document that is neither PDF nor a picture gets a sheet in place of its pages. A card is made only if every signature holds. ` +
		`tamga card open gives the files back, and so do other programs that read attachments of PDF.`
}

// cardMade is what became of a card.
type cardMade struct {
	File  string `json:"file"`
	Bytes int64  `json:"bytes"`
}

// Run makes the card.
func (m *CardMake) Run(c *cli.Console) error {
	if m.Offline {
		switch {
		case m.Server != "":
			return errors.New("--offline needs no server; omit --server")
		case m.Report:
			return errors.New("--report stores a report on a server; omit --offline")
		}
	} else if len(m.CA)+len(m.Intermediate)+len(m.CRL) > 0 {
		return errors.New("--ca, --intermediate and --crl are for --offline: a server verifies by its own settings")
	}
	if m.Language != "" && m.Language != "ru" && m.Language != "en" {
		return fmt.Errorf("--language: %q is not known; want ru or en", m.Language)
	}
	output := cmp.Or(m.Output, m.File+".card.pdf")
	if err := cli.CheckTarget(output, m.Force); err != nil {
		return err
	}
	password := ""
	if m.PDFPasswordFile != "" {
		var err error
		if password, err = files.ReadSecret(m.PDFPasswordFile, "--pdf-password-file"); err != nil {
			return err
		}
	}
	bar := cli.NewProgress(c)
	defer bar.Clear()
	var inputs []*cli.Document
	for _, path := range append([]string{m.File}, m.signatures()...) {
		d, err := cli.OpenDocument(path, bar)
		if err != nil {
			return err
		}
		defer d.Close()
		inputs = append(inputs, d)
	}
	write := m.there
	if m.Offline {
		write = m.here
	}
	out, err := cli.CreateOutfile(output, m.Force)
	if err != nil {
		return err
	}
	defer out.Discard()
	size, err := write(c, bar, inputs, password, out)
	if err == nil {
		err = out.Commit()
	}
	bar.Clear()
	if err != nil {
		return err
	}
	if m.JSON {
		return json.NewEncoder(c.Stdout).Encode(cardMade{output, size})
	}
	return c.Print("%s: written, %s\n", output, files.Size(size))
}

// signatures returns the files of the detached signatures.
func (m *CardMake) signatures() []string {
	if len(m.Signatures) > 0 {
		return m.Signatures
	}
	for _, end := range []string{".sig", ".p7s"} {
		if info, err := os.Stat(m.File + end); err == nil && info.Mode().IsRegular() {
			return []string{m.File + end}
		}
	}
	return nil
}

// here makes the card in this program.
func (m *CardMake) here(c *cli.Console, bar *cli.Progress, inputs []*cli.Document, password string, dst io.Writer) (int64, error) {
	check := sig.Check{At: time.Now(), RequireRevocation: true}
	trust := cli.Trust{CA: m.CA, Intermediate: m.Intermediate, CRL: m.CRL, Data: m.Data}
	notes, err := trust.Read(&check)
	if err != nil {
		return 0, err
	}
	for _, n := range notes {
		fmt.Fprintln(c.Stderr, cli.Printable(c.Say(n)))
	}
	bar.Stage(c.Text("checking"), -1)
	order := &signing.CardOrder{Language: cmp.Or(m.Language, c.Language, "en"), Zone: time.Local, Password: password}
	order.Document = sig.File{Name: filepath.Base(inputs[0].Name()), Document: inputs[0]}
	for _, d := range inputs[1:] {
		order.Signatures = append(order.Signatures, sig.File{Name: filepath.Base(d.Name()), Document: d})
	}
	card, err := signing.MakeCard(c.Context, app.Formats(&config.Config{}), check, order)
	if err != nil {
		return 0, asText(err)
	}
	return card.WriteTo(dst)
}

// asText returns the message of a fault as an error of a command.
func asText(err error) error {
	if f, is := fault.As(err); is {
		return errors.New(f.Message)
	}
	return err
}

// there has the server make the card.
func (m *CardMake) there(c *cli.Console, bar *cli.Progress, inputs []*cli.Document, password string, dst io.Writer) (int64, error) {
	cl, _, err := connect(c, m.connectionFlags, secretPIN{}, errors.New("or make the card without a server with --offline"))
	if err != nil {
		return 0, err
	}
	head, err := json.Marshal(struct {
		Language    string `json:",omitempty"`
		PDFPassword string `json:",omitempty"`
		Report      bool
	}{m.Language, password, m.Report})
	if err != nil {
		return 0, err
	}
	parts := []source{literal(string(head[:len(head)-1]))}
	for i, d := range inputs {
		name, err := json.Marshal(filepath.Base(d.Name()))
		if err != nil {
			return 0, err
		}
		before := map[int]string{0: `,"Document":`, 1: `},"Signatures":[`}[i]
		if i > 1 {
			before = "},"
		}
		parts = append(parts, literal(before+`{"Name":`+string(name)+`,"Content":"`), encoded(source{io.NewSectionReader(d, 0, d.Size()), d.Size()}), literal(`"`))
	}
	end := "}}"
	if len(inputs) > 1 {
		end = "}]}"
	}
	body, size := joined(append(parts, literal(end)))
	bar.Stage(c.Text("sending"), size)
	answer, err := cl.post(c.Context, "/api/tamga/card", body, size)
	if err != nil {
		return 0, err
	}
	defer answer.Body.Close()
	bar.Stage(c.Text("receiving"), -1)
	n, err := io.Copy(dst, bar.Reader(answer.Body))
	if c.Context.Err() != nil {
		err = c.Context.Err()
	}
	return n, err
}
