// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"tamga/internal/app"
	"tamga/internal/cli"
	"tamga/internal/config"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/signing"
	"tamga/internal/files"
	"tamga/sig"
)

// CardOpen is the sub-command card open.
type CardOpen struct {
	Card string `arg:"" name:"card" help:"Card, as tamga card make writes it."`

	Output string `short:"o" placeholder:"DIR" help:"Directory for the files. It is made if it does not exist. Default: the card without .pdf."`
	Force  bool   `help:"Overwrite files. Without this flag an existing file is not changed."`
	JSON   bool   `name:"json" help:"Print one line of JSON instead of text."`

	CA           []string `name:"ca" sep:"none" placeholder:"FILE" help:"Trusted root certificates, PEM or DER. May be repeated. Default: those of a server started with --dev in --data, if there is one."`
	Intermediate []string `sep:"none" placeholder:"FILE" help:"Certificates of authorities between the signer and a root, PEM or DER. May be repeated."`
	CRL          []string `name:"crl" sep:"none" placeholder:"FILE" help:"Revocation lists, PEM or DER. May be repeated. Nothing is fetched."`
	At           string   `placeholder:"TIME" help:"Time for which certificates are verified: 2006-01-02, \"2006-01-02 15:04:05\" (local time) or RFC 3339. Default: now."`
	Revocation   string   `default:"known" placeholder:"RULE" help:"Meaning of an unknown revocation status. known: the signature passes, and the first line says that revocation was not checked. require: the signature is indeterminate. A revoked certificate always fails. Default: known."`
	PasswordFile string   `placeholder:"FILE" help:"File with the password of an encrypted PDF. Default: ask at the terminal if the PDF needs a password."`
	Data         string   `default:"./tamga-data" placeholder:"DIR" help:"Directory of a server started with --dev. Default: ./tamga-data."`
}

// Help returns the text above the flags.
func (CardOpen) Help() string {
	return `Gives back the document and its signatures, byte for byte, says what was changed in the card after it was made, and verifies the signatures as tamga verify does. No server is needed.` +
		"\n\n" + `A card with an attachment whose name leads out of the directory, or with two attachments of one name, is refused, and nothing is written.` +
		"\n\n" + `Exit codes: as of tamga verify. 1 also if the card was changed after it was made. 2 if the card cannot be opened.`
}

// cardReport is what a card has.
type cardReport struct {
	Card       string       `json:"card"`
	MadeAt     *time.Time   `json:"made_at,omitempty"`
	Report     string       `json:"report,omitempty"` // number of the report of the verification
	Address    string       `json:"address,omitempty"`
	Files      []cardFile   `json:"files"`
	Changes    []cardChange `json:"changes"`
	Signatures []any        `json:"verified"` // a report for each file with signatures
}

type cardFile struct {
	Name      string `json:"name"`
	File      string `json:"file"`
	Bytes     int64  `json:"bytes"`
	Streebog  string `json:"streebog256"`
	shortened bool
}

type cardChange struct {
	Change string `json:"change"`
	Name   string `json:"name,omitempty"`
}

// sentence returns a change for people.
func (change cardChange) sentence(c *cli.Console) string {
	name := cli.Printable(change.Name)
	switch sig.CardChangeKind(change.Change) {
	case sig.CardFileChanged:
		return c.Text("the file %s was changed after the card was made", name)
	case sig.CardFileMissing:
		return c.Text("the file %s was removed after the card was made", name)
	case sig.CardFileAdded:
		return c.Text("the file %s was added after the card was made", name)
	case sig.CardExtended:
		return c.Text("bytes were added after the card was made: its pages may show something else")
	}
	return c.Text("the card was written again after it was made: its pages may show something else")
}

// Run opens a card. Its error is the exit code.
func (o *CardOpen) Run(c *cli.Console) error {
	code, err := o.open(c)
	if err != nil {
		if f, is := fault.As(err); is {
			err = errors.New(f.Message)
		}
		complain(c, err)
		return ExitUnreadable
	}
	if code == 0 {
		return nil
	}
	return code
}

func (o *CardOpen) open(c *cli.Console) (cli.ExitCode, error) {
	flags := &Command{CA: o.CA, Intermediate: o.Intermediate, CRL: o.CRL, At: o.At, Revocation: o.Revocation, PasswordFile: o.PasswordFile, Data: o.Data}
	common, err := flags.Common(c)
	if err != nil {
		return 0, err
	}
	known := app.Formats(&config.Config{})
	bar := cli.NewProgress(c)
	defer bar.Clear()
	document, err := cli.OpenDocument(o.Card, bar)
	if err != nil {
		return 0, err
	}
	defer document.Close()
	bar.Stage(c.Text("checking"), -1)
	card, err := signing.OpenCard(c.Context, known, document)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", o.Card, err)
	}
	report := &cardReport{Card: o.Card, Report: card.Report.Number, Address: card.Report.Address, Files: []cardFile{}, Changes: []cardChange{}, Signatures: []any{}}
	if !card.Made.IsZero() {
		report.MadeAt = &card.Made
	}
	code := cli.ExitCode(0)
	for _, change := range card.Changes {
		report.Changes = append(report.Changes, cardChange{string(change.Kind), change.Name})
		code = exitCodes[sig.Failed] // also if only its pages may show something else: they are what people read
	}
	if err := o.write(c, card, report); err != nil {
		return 0, err
	}
	bar.Clear()
	if !o.JSON {
		o.print(c, report)
	}
	for _, job := range o.jobs(card, report) {
		flags.Original, common.asksNothing = job.original, job.inside
		one, err := flags.Judge(c, known, common, job.file)
		switch {
		case job.inside && (err != nil || len(one.Signatures) == 0):
			// A document without signatures is one like any other. Of a broken or encrypted one its detached signatures count.
			if err != nil && holdsSignatures(c, known, job.file) {
				complain(c, fmt.Errorf("signatures inside of the document were not verified: %w", err))
			}
		case err == nil:
			report.Signatures = append(report.Signatures, one)
			code = graver(code, exitCodes[one.verdict])
			if !o.JSON {
				fmt.Fprintln(c.Stdout)
				if err := one.Print(c); err != nil {
					return 0, err
				}
			}
		default:
			report.Signatures = append(report.Signatures, UnknownVerdict{File: job.file, Verdict: "unreadable", Error: err.Error()})
			code = ExitUnreadable
			if !o.JSON {
				complain(c, err)
			}
		}
	}
	if len(report.Signatures) == 0 { // such a card proves nothing
		code = graver(code, exitCodes[sig.Failed])
		if !o.JSON {
			fmt.Fprintln(c.Stdout, c.Text("no signature of the document was found"))
		}
	}
	if o.JSON {
		return code, writeJSON(c.Stdout, report)
	}
	return code, nil
}

// graver returns the graver of two exit codes.
func graver(a, b cli.ExitCode) cli.ExitCode {
	if slices.Index(gravity, b) > slices.Index(gravity, a) {
		return b
	}
	return a
}

// cardJob is a file to verify.
type cardJob struct {
	file, original string
	inside         bool // the document beside its signatures, which may have others inside
}

// jobs lists the files to verify: the document itself, whose signatures may be inside, and the signatures over it.
func (o *CardOpen) jobs(card *sig.OpenedCard, report *cardReport) (list []cardJob) {
	at := map[string]string{}
	for _, f := range report.Files {
		at[f.Name] = f.File
	}
	if card.Original == nil {
		return nil
	}
	document := at[card.Original.Name]
	list = append(list, cardJob{file: document, inside: len(card.Signatures) > 0})
	for _, s := range card.Signatures {
		list = append(list, cardJob{file: at[s.Name], original: document})
	}
	return list
}

// holdsSignatures reports whether a file is of a format that has signatures inside of documents.
func holdsSignatures(c *cli.Console, known sig.Formats, file string) bool {
	in, err := openSigned(c.Context, file, nil, known, nil)
	if err != nil {
		return false
	}
	defer in.Close()
	return !in.format.Describe().Bare && !in.contents.Detached
}

// write writes the files of a card. Their names are safe: a card with others is not opened.
func (o *CardOpen) write(c *cli.Console, card *sig.OpenedCard, report *cardReport) error {
	dir := o.Output
	if dir == "" {
		if dir = trimEnd(o.Card, ".pdf"); dir == o.Card {
			dir += ".files"
		}
	}
	var list []*sig.CardFile
	if card.Original != nil {
		list = append(list, card.Original)
	}
	list = append(append(list, card.Signatures...), card.Others...)
	taken := map[string]bool{}
	for _, f := range list {
		name := fitting(f.Name, taken)
		if !filepath.IsLocal(name) || filepath.Base(name) != name {
			return fmt.Errorf("%s: the name %q means something else than a file on this system", o.Card, f.Name)
		}
		taken[sig.NameKey(name)] = true
		target := filepath.Join(dir, name)
		if err := cli.CheckTarget(target, o.Force); err != nil {
			return err
		}
		report.Files = append(report.Files, cardFile{f.Name, target, f.Size, hex.EncodeToString(f.Digest.Sum), name != f.Name})
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for i, f := range list {
		if err := writeFile(c, f, report.Files[i].File, o.Force); err != nil {
			return err
		}
	}
	return nil
}

func writeFile(c *cli.Console, f *sig.CardFile, target string, force bool) error {
	out, err := cli.CreateOutfile(target, force)
	if err != nil {
		return err
	}
	defer out.Discard()
	if err := f.WriteTo(c.Context, out); err != nil {
		return err
	}
	return out.Commit()
}

// trimEnd removes an end of a name, unless the name has nothing else.
func trimEnd(name, end string) string {
	if len(name) > len(end) && name[len(name)-len(end):] == end {
		return name[:len(name)-len(end)]
	}
	return name
}

// most is the longest name of a file that file systems take, in bytes, with space for a number.
const most = 240

// fitting returns a name that file systems take: shorter if it is too long, with its ending.
func fitting(name string, taken map[string]bool) string {
	if len(name) <= most && !taken[sig.NameKey(name)] {
		return name
	}
	end := filepath.Ext(name)
	if len(end) > 20 {
		end = ""
	}
	stem := []rune(name[:len(name)-len(end)])
	for i := 1; ; i++ {
		tail := end
		if i > 1 {
			tail = fmt.Sprintf(" (%d)%s", i, end)
		}
		for len(string(stem))+len(tail) > most {
			stem = stem[:len(stem)-1]
		}
		if shorter := string(stem) + tail; !taken[sig.NameKey(shorter)] {
			return shorter
		}
	}
}

func (o *CardOpen) print(c *cli.Console, report *cardReport) {
	var lines []string
	if report.MadeAt != nil {
		lines = append(lines, c.Text("%s: card, made %s", cli.Printable(report.Card), moment(*report.MadeAt)))
	}
	if report.Address != "" {
		lines = append(lines, c.Text("report of the verification: %s", cli.Printable(report.Address)))
	}
	for _, f := range report.Files {
		lines = append(lines, c.Text("%s: written, %s", cli.Printable(f.File), files.Size(f.Bytes)))
		if f.shortened {
			lines = append(lines, c.Text("note: the name in the card is longer: %s", cli.Printable(f.Name)))
		}
	}
	for _, change := range report.Changes {
		lines = append(lines, change.sentence(c))
	}
	if len(report.Changes) == 0 {
		lines = append(lines, c.Text("no change since the card was made was found; its digest has no key, so only the signatures are proof, and only of the document"))
	}
	fmt.Fprintln(c.Stdout, strings.Join(lines, "\n"))
}
