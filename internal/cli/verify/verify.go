// SPDX-License-Identifier: Apache-2.0

// Package verify has the sub-command verify, which verifies the signatures of files offline and
// explains the result. Command is the sub-command, and Report is what it prints with --json.
//
// It asks no server and fetches nothing. The rules of verification are in package sig.
package verify

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"tamga/internal/app"
	"tamga/internal/cli"
	"tamga/internal/config"
	"tamga/internal/files"
	"tamga/pki/suite"
	"tamga/pki/x509gost"
	"tamga/sig"
	"tamga/sig/trustlist"
)

// Command is the sub-command verify. It uses only the trusted certificates and revocation lists that
// the flags name.
type Command struct {
	Files []string `arg:"" name:"file" help:"Signed message (CMS or CAdES in DER, BER, PEM or Base64), signed XML, PDF or Office document, container (ASiC), or bare signature value. - for standard input. Of a folder, all files with signatures in it and below it."`

	Original       string   `placeholder:"FILE" help:"Document of detached or bare signatures. Default for NAME.sig: NAME, if it exists."`
	Hash           string   `placeholder:"HEX" help:"Hash of the document, in place of --original."`
	HashAlgorithm  string   `placeholder:"NAME" help:"Algorithm of --hash, for instance \"GR 34.11-2012 256\". Default: the one of the signature."`
	Cert           string   `placeholder:"FILE" help:"Certificate of the signer, for a bare signature or a message without certificates."`
	CA             []string `name:"ca" sep:"none" placeholder:"FILE" help:"Trusted root certificates, PEM or DER. May be repeated. Default: those of a server started with --dev in --data, if there is one."`
	Intermediate   []string `sep:"none" placeholder:"FILE" help:"Certificates of authorities between the signer and a root, PEM or DER. May be repeated."`
	CRL            []string `name:"crl" sep:"none" placeholder:"FILE" help:"Revocation lists, PEM or DER. May be repeated. Nothing is fetched."`
	TrustList      string   `placeholder:"FILE" help:"List of accredited authorities of the ministry of digital development (XML). The report then says which signatures are qualified. It makes no certificate trusted."`
	ListSigner     []string `name:"trust-list-signer" sep:"none" placeholder:"FILE" help:"Certificate that the list is signed with, PEM or DER. May be repeated."`
	Power          []string `placeholder:"FILE" help:"Machine-readable powers of attorney (XML) and the signatures of their principals, separated by commas; NAME.sig beside NAME is found. Each signer then needs one of them, except organizations and sole traders themselves. May be repeated."`
	PowerCode      []string `placeholder:"CODE" help:"Power that the signers must have, by its code. May be repeated."`
	PowerWithdrawn string   `placeholder:"FILE" help:"List of withdrawn powers: a number in each line, and the time of the withdrawal behind it."`
	At             string   `placeholder:"TIME" help:"Time for which certificates are verified: 2006-01-02, \"2006-01-02 15:04:05\" (local time) or RFC 3339. Default: now."`
	Revocation     string   `default:"known" placeholder:"RULE" help:"Meaning of an unknown revocation status. known: the signature passes, and the first line says that revocation was not checked. require: the signature is indeterminate. A revoked certificate always fails. Default: known."`
	AlgorithmEnd   []string `sep:"none" placeholder:"NAME=DATE" help:"End of an algorithm: GOST R 34.10-2001, SHA-224, RSA-2048 (keys below 3072 bits) or ECDSA-224. From this day (UTC) on a signature by it passes only if a time stamp proves that it is older. May be repeated."`
	TimeStamps     string   `default:"own" placeholder:"RULE" help:"When a time stamp without an archive time stamp over it is judged. own: at its own time, so that it proves that time even after its certificate has ended. now: at the time of the verification, as EN 319 102-1 has it. Default: own."`
	Strict         bool     `help:"Fail signatures that cover only a part of the document."`
	Covers         string   `placeholder:"PATH" help:"Fail signatures of an XML document that cover neither this element nor the whole document, for instance /Envelope/Body."`
	PasswordFile   string   `placeholder:"FILE" help:"File with the password of an encrypted PDF. Default: ask at the terminal if the PDF needs a password."`
	ETSI           string   `name:"etsi" placeholder:"FILE" help:"Also write the validation report of ETSI TS 119 102-2 (XML) to this file. For one FILE. An existing file is not changed."`
	JSON           bool     `name:"json" help:"Print one line of JSON for each file instead of text."`
	Data           string   `default:"./tamga-data" placeholder:"DIR" help:"Directory of a server started with --dev. Default: ./tamga-data."`
}

// Help returns the text above the flags.
func (Command) Help() string {
	return `Exit codes: 0 all signatures passed; 1 a signature failed; 2 a file cannot be read or written, or a flag is wrong; 3 indeterminate: the data given is not enough to decide, for instance because no trusted root is known. The worst signature or countersignature decides, and of several files the worst file, in the order 2, 1, 3, 0.`
}

// ExitUnreadable is the exit code for a file that cannot be read.
const ExitUnreadable = cli.ExitCode(2)

// exitCodes are the exit codes by verdict. Passed is 0.
var exitCodes = map[sig.Verdict]cli.ExitCode{sig.Failed: 1, sig.Indeterminate: 3}

// gravity orders the exit codes: the gravest of all files is the exit code of the command.
var gravity = []cli.ExitCode{0, exitCodes[sig.Indeterminate], exitCodes[sig.Failed], ExitUnreadable}

// Run prints a report for each file. Its error is the exit code.
func (v *Command) Run(c *cli.Console) error {
	known := app.Formats(&config.Config{})
	common, err := v.Common(c)
	if err != nil && !v.JSON { // the flags are wrong for every file
		complain(c, err)
		return ExitUnreadable
	}
	if err == nil && cli.HasFolder(v.Files) {
		return v.runFolders(c, known, common)
	}
	worst := 0
	for i, file := range v.Files {
		if i > 0 && !v.JSON {
			fmt.Fprintln(c.Stdout)
		}
		code := v.one(c, known, common, err, file)
		worst = max(worst, slices.Index(gravity, code))
		if c.Context.Err() != nil {
			worst = len(gravity) - 1 // files that were not judged are left
			break
		}
	}
	if worst > 0 {
		return gravity[worst]
	}
	return nil
}

// one prints the report of one file and returns its exit code. wrong is the error of the flags.
func (v *Command) one(c *cli.Console, known sig.Formats, common *Common, wrong error, file string) cli.ExitCode {
	var r *Report
	err := wrong
	if err == nil {
		r, err = v.Judge(c, known, common, file)
	}
	if err != nil {
		v.printError(c, file, err)
		return ExitUnreadable
	}
	if v.JSON {
		err = writeJSON(c.Stdout, r)
	} else {
		err = r.Print(c)
	}
	if err != nil {
		complain(c, err)
		return ExitUnreadable
	}
	return exitCodes[r.verdict]
}

// complain prints an error in one line, whatever names of files it has.
func complain(c *cli.Console, err error) {
	fmt.Fprintln(c.Stderr, "tamga:", cli.Printable(err.Error()))
}

// writeJSON writes a value as one line.
func writeJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	return e.Encode(v)
}

// display returns the name of a file for people.
func display(file string) string {
	if file == "-" {
		return "standard input"
	}
	return file
}

// Common is what the flags give for every file.
type Common struct {
	check       sig.Check
	list        *trustlist.List // nil without --trust-list
	powers      *powers         // nil without --power
	notes       []cli.Sentence
	asksNothing bool // the person is asked for no password
	silent      bool // files of folders: no line of progress for each, and files without signatures are errUnsigned
}

// Common checks the flags and reads the files that they name.
func (v *Command) Common(c *cli.Console) (*Common, error) {
	if v.Original != "" && v.Hash != "" {
		return nil, errors.New("--original and --hash name the same document; give one of them")
	}
	if v.HashAlgorithm != "" && v.Hash == "" {
		return nil, errors.New("--hash-algorithm needs --hash")
	}
	if i := slices.Index(v.Files, "-"); i >= 0 && slices.Contains(v.Files[i+1:], "-") {
		return nil, errors.New("- names standard input twice; it can be read once")
	}
	if !slices.Contains([]string{"", "known", "require"}, v.Revocation) { // here, so that --json has a line for each file
		return nil, fmt.Errorf("--revocation: %q is no rule; want known or require", v.Revocation)
	}
	if v.ETSI != "" && len(v.Files) != 1 || v.ETSI != "" && cli.HasFolder(v.Files) {
		return nil, errors.New("--etsi is the report of one file; name one")
	}
	if !slices.Contains([]string{"", "own", "now"}, v.TimeStamps) {
		return nil, fmt.Errorf("--time-stamps: %q is no rule; want own or now", v.TimeStamps)
	}
	ends, err := suite.ParseEnds(v.AlgorithmEnd)
	if err != nil {
		return nil, fmt.Errorf("--algorithm-end: %w", err)
	}
	if v.ETSI != "" {
		if err := cli.CheckTarget(v.ETSI, false); err != nil {
			return nil, fmt.Errorf("--etsi: %w", err)
		}
	}
	at, err := cli.ParseTime("--at", v.At)
	if err != nil {
		return nil, err
	}
	common := &Common{check: sig.Check{At: at, RequireRevocation: v.Revocation == "require", Strict: v.Strict, Expect: v.Covers, Ends: ends, LivingStamps: v.TimeStamps == "now"}}
	trust := cli.Trust{CA: v.CA, Intermediate: v.Intermediate, CRL: v.CRL, Data: v.Data}
	if common.notes, err = trust.Read(&common.check); err != nil {
		return nil, err
	}
	if common.list, err = v.trustList(c); err != nil {
		return nil, err
	}
	if common.powers, err = v.powers(c, common); err != nil {
		return nil, err
	}
	if v.PasswordFile != "" {
		password, err := files.ReadSecret(v.PasswordFile, "--password-file")
		if err != nil {
			return nil, err
		}
		common.check.Password = []byte(password)
	}
	if v.Cert != "" {
		certs, err := files.Certificates(v.Cert)
		if err != nil {
			return nil, fmt.Errorf("--cert: %w", err)
		}
		if len(certs) != 1 {
			return nil, fmt.Errorf("--cert: %s has %d certificates; give the one of the signer only, and the others with --intermediate", v.Cert, len(certs))
		}
		common.check.Certificate = certs[0]
	}
	return common, nil
}

// trustList reads the list of accredited authorities, nil if none is given.
func (v *Command) trustList(c *cli.Console) (*trustlist.List, error) {
	switch {
	case v.TrustList == "" && len(v.ListSigner) == 0:
		return nil, nil
	case v.TrustList == "":
		return nil, errors.New("--trust-list-signer needs --trust-list")
	case len(v.ListSigner) == 0:
		return nil, errors.New("--trust-list needs --trust-list-signer: the certificate that the list is signed with")
	}
	var signers []*x509gost.Certificate
	for _, path := range v.ListSigner {
		certs, err := files.Certificates(path)
		if err != nil {
			return nil, fmt.Errorf("--trust-list-signer: %w", err)
		}
		signers = append(signers, certs...)
	}
	in, err := os.Open(v.TrustList)
	if err != nil {
		return nil, fmt.Errorf("--trust-list: %w", err)
	}
	defer in.Close()
	bar := cli.NewProgress(c)
	defer bar.Clear()
	bar.Stage(c.Text("reading the list of authorities"), -1)
	list, err := trustlist.Read(c.Context, in, signers...)
	if err != nil {
		return nil, fmt.Errorf("--trust-list: %w", err)
	}
	return list, nil
}

// Judge verifies a file by its format and returns the report.
func (v *Command) Judge(c *cli.Console, known sig.Formats, common *Common, file string) (*Report, error) {
	check := common.check // the format gets its own
	r := &Report{File: display(file), JudgedAt: check.At.UTC(), Notes: slices.Clone(common.notes)}

	var bar *cli.Progress
	if !common.silent {
		bar = cli.NewProgress(c)
	}
	defer bar.Clear()
	in, err := openSigned(c.Context, file, c.Stdin, known, bar)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	check.Document = in.Document
	about := in.format.Describe()
	if common.silent && about.Bare && check.Certificate == nil { // any file of a certain size is such a value
		return nil, errUnsigned
	}
	r.Format, r.noun, r.Notes = about.Kind, cli.Word(about.Noun), append(r.Notes, in.Notes...)
	if about.Bare && check.Certificate == nil {
		return nil, fmt.Errorf("%s has %d bytes and is not a CMS message; to verify it as a bare signature, name the certificate of the signer with --cert", display(file), in.Document.Size())
	}

	original := v.Original
	if original == "" && v.Hash == "" && in.contents.Detached {
		var ok bool
		if original, ok = strings.CutSuffix(file, about.Suffix); !ok || about.Suffix == "" || !isFile(original) {
			return nil, fmt.Errorf("%s does not hold the document; name it with --original, or give its hash with --hash", display(file))
		}
		r.note("the document is taken from %s", original)
	}
	if original != "" {
		d, err := cli.OpenDocument(original, bar)
		if err != nil {
			return nil, fmt.Errorf("--original: %w", err)
		}
		defer d.Close()
		check.Original, r.Original = d, original
	}
	if v.Hash != "" {
		if check.Hash, err = v.digest(in, check.Certificate); err != nil {
			return nil, err
		}
	}

	report, err := v.verify(c, in.format, &check, bar, file, !common.asksNothing)
	if err != nil {
		return nil, explain(display(file), err)
	}
	if common.silent && report.Unsigned() {
		return nil, errUnsigned
	}
	if common.list != nil {
		common.list.Qualify(report, check.At)
	}
	if p := common.powers; p != nil {
		if err := p.set.Judge(c.Context, report, check.At, p.rules); err != nil {
			return nil, err
		}
	}
	_, r.raises = in.format.(sig.Enhancer)
	r.fill(report, &check)
	if v.ETSI != "" {
		return r, v.writeETSI(report, &check)
	}
	return r, nil
}

// writeETSI writes the validation report of ETSI.
func (v *Command) writeETSI(report *sig.Report, check *sig.Check) error {
	out, err := cli.CreateOutfile(v.ETSI, false)
	if err != nil {
		return fmt.Errorf("--etsi: %w", err)
	}
	defer out.Discard()
	if err := report.WriteETSI(out, check); err != nil {
		return fmt.Errorf("--etsi: %w", err)
	}
	return out.Commit()
}

// verify calls the format. It asks for the password of an encrypted document only after the format has
// reported that it needs one.
func (v *Command) verify(c *cli.Console, format sig.Described, check *sig.Check, bar *cli.Progress, file string, asks bool) (*sig.Report, error) {
	bar.Stage(c.Text("checking"), -1)
	report, err := format.Verify(c.Context, check)
	var params *sig.ErrParams
	if asks && v.PasswordFile == "" && errors.As(err, &params) && len(params.Faults) == 1 && (sig.Formats{format}).Param(params.Faults[0].Key).Secret {
		bar.Clear()
		password, err := c.AskSecret(c.Text("Password of %s: ", cli.Printable(file)), "--password-file")
		if err != nil {
			return nil, fmt.Errorf("%s is encrypted: %w", file, err)
		}
		check.Password = []byte(password)
		return format.Verify(c.Context, check)
	}
	return report, err
}

// explain adds the file to the errors of formats.
func explain(file string, err error) error {
	var params *sig.ErrParams
	var document *sig.ErrDocument
	switch {
	case errors.As(err, &document):
		return fmt.Errorf("%s: %w", file, err)
	case errors.As(err, &params):
		return fmt.Errorf("%s cannot be verified: %w", file, err)
	}
	return err
}

// digest reads --hash. Its algorithm is --hash-algorithm, otherwise the algorithm of this length among
// those of the signatures, otherwise the one of the certificate.
func (v *Command) digest(in *signedInput, cert *x509gost.Certificate) (*suite.Digest, error) {
	sum, err := hex.DecodeString(strings.TrimSpace(v.Hash))
	if err != nil || len(sum) == 0 {
		return nil, errors.New("--hash: not hexadecimal; want two digits for each byte")
	}
	var candidates []*suite.Hash
	switch {
	case v.HashAlgorithm != "":
		h, ok := suite.HashByName(v.HashAlgorithm)
		if !ok {
			return nil, fmt.Errorf("--hash-algorithm: %q is not known; want a name such as %q", v.HashAlgorithm, suite.Streebog256.Name)
		}
		candidates = append(candidates, h)
	case in.contents.Hashes != nil:
		candidates = in.contents.Hashes
	case cert != nil && cert.Suite != nil:
		candidates = append(candidates, cert.Suite.Hash)
	}
	for _, h := range candidates {
		if h.Size == len(sum) {
			return &suite.Digest{Hash: h, Sum: sum}, nil
		}
	}
	if len(candidates) == 0 {
		return nil, errors.New("--hash: the signature does not name the algorithm; name it with --hash-algorithm")
	}
	return nil, fmt.Errorf("--hash: %d bytes given, but a %s hash has %d", len(sum), candidates[0].Name, candidates[0].Size)
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}
