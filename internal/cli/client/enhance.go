// SPDX-License-Identifier: Apache-2.0

package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"tamga/internal/adapter/evidence"
	"tamga/internal/adapter/guard"
	"tamga/internal/app"
	"tamga/internal/cli"
	"tamga/internal/config"
	"tamga/internal/domain/policy"
	"tamga/internal/files"
	"tamga/pki/x509gost"
	"tamga/sig"
)

// Enhance is the sub-command enhance. A running server raises signatures, or with --tsa this program.
type Enhance struct {
	Files []string `arg:"" name:"file" help:"Signed messages (CAdES), signed XML or PDF documents, by any program. - for standard input. Of a folder, all files with signatures in it and below it."`

	Level    string `default:"A" placeholder:"LEVEL" help:"T: a time stamp. LT: also certificates and revocation data, so that the signature can be verified when its certificate has ended. A: also an archive time stamp over all of it; with a signature that has one, its renewal. XLT1 and LTA are other names of LT and A. Default: ${default}."`
	Document string `placeholder:"FILE" help:"Document of a detached signature. Default for NAME.sig: NAME, if it exists. Without it the document is taken as it was signed."`

	Output       string `short:"o" placeholder:"FILE" help:"Output file. Default: NAME.enhanced.pdf for NAME.pdf; standard output if FILE is -. The file appears only when it is complete. In a folder, files whose output is there already are left out, so that the same command goes on where it was stopped."`
	InPlace      bool   `help:"Replace FILE by the result. It is replaced at once and only when the result is complete."`
	Force        bool   `help:"Overwrite the output file. Without this flag an existing file is not changed."`
	JSON         bool   `name:"json" help:"Print JSON instead of text. Of folders, one line for each file that was raised, has the level already or failed."`
	EndingWithin *int   `placeholder:"DAYS" help:"Leave out files whose signatures have the level A and can be verified for more days than this, so that a folder is renewed by the same command each month. Needs --ca, also with a server."`

	SignatureIndex *int   `group:"Signature:" placeholder:"N" help:"Index of the signature to raise, from 0. Default: all. Not for PDF, where all are raised."`
	TSP            string `name:"tsp" group:"Signature:" placeholder:"URL" help:"Address of the time-stamp service that the server asks. Default: the first service of the server."`
	PDFPassword    string `name:"pdf-password-file" group:"Signature:" placeholder:"FILE" help:"File with the password of an encrypted PDF."`

	TSA          string   `name:"tsa" group:"Without a server:" placeholder:"URL" help:"Address of a time-stamp service (RFC 3161). This program then raises the signatures itself, without a server, and fetches revocation data from the addresses in certificates."`
	CA           []string `name:"ca" group:"Without a server:" sep:"none" placeholder:"FILE" help:"Trusted root certificates, PEM or DER, also the root of the time-stamp service. May be repeated. Default: those of a server started with --dev in --data, if there is one."`
	Intermediate []string `group:"Without a server:" sep:"none" placeholder:"FILE" help:"Certificates of authorities between a certificate and a root, PEM or DER. May be repeated."`
	CRL          []string `name:"crl" group:"Without a server:" sep:"none" placeholder:"FILE" help:"Revocation lists, PEM or DER, that are taken if they are new enough. May be repeated."`
	AllowNetwork []string `group:"Without a server:" sep:"none" placeholder:"NETWORK" help:"Network, address or host outside of the public internet that may be asked, for instance 10.1.0.0/16. May be repeated. The one of --tsa may be asked in any case."`

	connectionFlags

	looks  bool       // files without signatures are errUnsigned: most files of a folder may have none
	trusts *sig.Check // the trust of --ca, for EndingWithin; nil: it is not asked
}

// Help returns the text above the flags.
func (Enhance) Help() string {
	return `Raises the signatures in FILE, which any program may have made, with keys of RSA, ECDSA or GOST, to a level that keeps them valid longer. ` +
		`No key is needed. The first archive time stamp must come while the certificate of the signer is valid or its revocation data can be had, ` +
		`each further one while the certificate of the last one is valid: tamga enhance --level A contract.pdf --in-place, run each year, keeps a contract valid for decades. ` +
		`A running server does the work, with its time-stamp services and the rights of the user. With --tsa no server is needed. ` +
		`Signatures in Office documents have no levels.`
}

// raisedLevels are the levels by the names of all formats.
var raisedLevels = map[string]sig.Level{
	"t": sig.LevelTime, "lt": sig.LevelLongTerm, "xlt1": sig.LevelLongTerm, "a": sig.LevelArchive, "lta": sig.LevelArchive,
}

// raised is what became of a file.
type raised struct {
	Input  string   `json:"input"`
	File   string   `json:"file,omitempty"` // absent if none was written
	Format string   `json:"format"`
	Bytes  int64    `json:"bytes"`
	Levels []string `json:"levels,omitempty"` // of the signatures in their order, without a server only
	// Unchanged reports that the signatures have the level already.
	Unchanged bool `json:"unchanged,omitempty"`
}

// print prints what became of a file in one line.
func (r *raised) print(c *cli.Console) error {
	switch {
	case r.Unchanged:
		return c.Print("%s: has this level already\n", r.Input)
	case len(r.Levels) > 0:
		return c.Print("%s: written, %s; levels: %s\n", r.File, files.Size(r.Bytes), strings.Join(r.Levels, ", "))
	}
	return c.Print("%s: written, %s\n", r.File, files.Size(r.Bytes))
}

// Run raises one file after the other, or those of folders several at once.
func (e *Enhance) Run(c *cli.Console) error {
	level, known := raisedLevels[strings.ToLower(strings.TrimSpace(e.Level))]
	if !known {
		return fmt.Errorf("--level: %q is no level; want T, LT or A", e.Level)
	}
	if e.Document != "" && len(e.Files) > 1 {
		return errors.New("--document is the document of one signature; raise several signatures one by one, or name each NAME.sig beside NAME")
	}
	if e.EndingWithin != nil {
		if level != sig.LevelArchive {
			return errors.New("--ending-within is for the level A, which is renewed")
		}
		check := sig.Check{At: time.Now()}
		trust := cli.Trust{CA: e.CA, Intermediate: e.Intermediate, CRL: e.CRL, Data: e.Data}
		if _, err := trust.Read(&check); err != nil {
			return err
		}
		if len(check.Roots) == 0 {
			return errors.New("--ending-within needs --ca: a file with the roots of the time-stamp service and of the signers")
		}
		e.trusts = &check
	}
	if e.EndingWithin != nil && !e.InPlace && (e.Output != "" || slices.Contains(e.Files, "-")) {
		return errors.New("--ending-within leaves files out; use it with --in-place or without -o")
	}
	if e.InPlace && (e.Output != "" || slices.Contains(e.Files, "-")) {
		return errors.New("--in-place replaces FILE; leave out -o, and name files")
	}
	if cli.HasFolder(e.Files) {
		return e.inFolders(c, level)
	}
	jobs, err := outputs(c, e.Files, e.Output, e.Force || e.InPlace, e.JSON, e.outputOf)
	if err != nil {
		return err
	}
	bar := cli.NewProgress(c)
	defer bar.Clear()
	one, done, err := e.worker(c, bar)
	if err != nil {
		return err
	}
	defer done()
	var all []raised
	for _, j := range jobs {
		out, err := e.one(c, bar, j, level, one)
		bar.Clear()
		if err != nil {
			return named(jobs, j, err)
		}
		if j.output == "-" {
			return nil
		}
		all = append(all, *out)
		if e.JSON {
			continue
		}
		if err := out.print(c); err != nil {
			return err
		}
	}
	if e.JSON {
		return printJSON(c, all)
	}
	return nil
}

// enhancedMark is the end of the names of outputs, before their extension.
const enhancedMark = ".enhanced"

// outputOf returns the output of a file.
func (e *Enhance) outputOf(name string) (string, error) {
	if e.InPlace {
		return name, nil
	}
	ext := filepath.Ext(name)
	return strings.TrimSuffix(name, ext) + enhancedMark + ext, nil
}

// Errors of files that are counted, and not errors, in folders.
var (
	errUnsigned = errors.New("not a signed document")
	errNoLevels = errors.New("no higher levels")
)

// order is one file to raise.
type order struct {
	format   sig.Described
	document *cli.Document
	original *cli.Document // nil: none
	kind     string        // SignatureType
	params   sig.Params
}

// enhancing raises the signatures of an order and writes the result.
type enhancing func(ctx context.Context, o *order, dst io.Writer) (bytes int64, levels []string, err error)

// one raises the signatures of one file.
func (e *Enhance) one(c *cli.Console, bar *cli.Progress, j job, level sig.Level, do enhancing) (*raised, error) {
	var before fs.FileInfo
	if e.InPlace { // before it is read, to see every change after
		var err error
		if before, err = os.Stat(j.name); err != nil {
			return nil, err
		}
	}
	in, err := cli.OpenInput(c.Context, j.name, c.Stdin, bar)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	o := &order{document: in.Document, params: sig.Params{"TSPAddress": e.TSP}}
	if e.TSA != "" {
		o.params["TSPAddress"] = e.TSA
	}
	formats := app.Formats(&config.Config{})
	if o.format, err = formats.Recognise(c.Context, in.Document); err != nil {
		return nil, err
	}
	if o.format == nil || o.format.Describe().Bare { // a bare value has nothing to know it by
		return nil, fmt.Errorf("%s is %w; a signed message (CAdES), signed XML or a signed PDF expected", j.name, errUnsigned)
	}
	about := o.format.Describe()
	var param, value string
	_, enhancer := o.format.(sig.Enhancer)
	var ok bool
	if o.kind, param, value, ok = about.Raised(level); !ok || !enhancer {
		return nil, fmt.Errorf("%s: signatures of this kind (%s) have %w", j.name, about.Noun, errNoLevels)
	}
	o.params[param] = value
	if e.SignatureIndex != nil {
		o.params["SignatureIndex"] = fmt.Sprint(*e.SignatureIndex)
	}
	if e.PDFPassword != "" {
		if o.params["PDFPassword"], err = files.ReadSecret(e.PDFPassword, "--pdf-password-file"); err != nil {
			return nil, err
		}
	}
	if e.Document != "" && about.Inspect == nil {
		return nil, fmt.Errorf("--document is the document of a detached signature; in %s (%s) signatures are inside of it", j.name, about.Noun)
	}
	if path := e.documentOf(j.name, in.Document, &about); path != "" {
		if o.original, err = cli.OpenDocument(path, bar); err != nil {
			return nil, fmt.Errorf("--document: %w", err)
		}
		defer o.original.Close()
	}
	done := &raised{Input: j.name, File: j.output, Format: about.Kind}
	if lasts, err := e.look(c, o, level); err != nil || lasts {
		done.Unchanged, done.File = true, ""
		return done, err
	}
	if j.output == "-" {
		done.Bytes, done.Levels, err = do(c.Context, o, c.Stdout)
		return done, err
	}
	var out *cli.Outfile
	if e.InPlace {
		out, err = cli.CreateReplacement(j.output, before)
	} else {
		out, err = cli.CreateOutfile(j.output, e.Force)
	}
	if err != nil {
		return nil, err
	}
	defer out.Discard()
	if done.Bytes, done.Levels, err = do(c.Context, o, out); err != nil {
		return nil, err
	}
	if done.Bytes == in.Document.Size() && level < sig.LevelArchive { // nothing is ever removed or replaced
		done.Unchanged = true
		if e.InPlace {
			return done, nil
		}
	}
	return done, out.Commit()
}

// look verifies a file before it is raised, if that is asked for. It returns true if its signatures have the level and last, and
// errUnsigned for a file of a folder that has none. What else is wrong, raising says.
func (e *Enhance) look(c *cli.Console, o *order, level sig.Level) (lasts bool, err error) {
	if !e.looks && e.trusts == nil {
		return false, nil
	}
	check := sig.Check{At: time.Now()}
	if e.trusts != nil {
		check = *e.trusts
	}
	check.Document, check.Describe, check.Password = o.document, true, []byte(o.params["PDFPassword"])
	if o.original != nil {
		check.Original = o.original
	}
	report, err := o.format.Verify(c.Context, &check)
	switch {
	case err != nil:
		return false, c.Context.Err()
	case e.looks && report.Unsigned():
		return false, errUnsigned
	case e.trusts == nil:
		return false, nil
	}
	return report.Lasts(&check, level, check.At.AddDate(0, 0, *e.EndingWithin)), nil
}

// documentOf returns the document of a detached signature, empty for none.
func (e *Enhance) documentOf(name string, d sig.Document, about *sig.Description) string {
	if e.Document != "" || about.Inspect == nil {
		return e.Document
	}
	contents, err := about.Inspect(d)
	path, is := strings.CutSuffix(name, about.Suffix)
	if err != nil || !contents.Detached || !is || about.Suffix == "" {
		return ""
	}
	if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() {
		return ""
	}
	return path
}

// worker returns what raises signatures: the server, or this program. The caller calls done.
func (e *Enhance) worker(c *cli.Console, bar *cli.Progress) (one enhancing, done func(), err error) {
	if e.TSA != "" {
		if e.Server != "" || e.TSP != "" {
			return nil, nil, errors.New("--tsa needs no server; leave out --server and --tsp")
		}
		return e.here(bar, c)
	}
	if e.trusts == nil && len(e.CA)+len(e.Intermediate)+len(e.CRL) > 0 || len(e.AllowNetwork) > 0 {
		return nil, nil, errors.New("--ca, --intermediate, --crl and --allow-network are for --tsa; a server has its own")
	}
	cl, _, err := connect(c, e.connectionFlags, secretPIN{}, errors.New("or raise signatures without a server with --tsa"))
	if err != nil {
		return nil, nil, err
	}
	return func(ctx context.Context, o *order, dst io.Writer) (int64, []string, error) {
		n, err := e.there(ctx, c, bar, cl, o, dst)
		return n, nil, err
	}, func() {}, nil
}

// there has the server raise signatures.
func (e *Enhance) there(ctx context.Context, c *cli.Console, bar *cli.Progress, cl *client, o *order, dst io.Writer) (int64, error) {
	if err := cl.fresh(ctx); err != nil { // a folder may take longer than a token is valid
		return 0, err
	}
	params, err := json.Marshal(o.params)
	if err != nil {
		return 0, err
	}
	kind, err := json.Marshal(o.kind)
	if err != nil {
		return 0, err
	}
	whole := func(d *cli.Document) source { return source{io.NewSectionReader(d, 0, d.Size()), d.Size()} }
	parts := []source{
		literal(`{"Signature":"`), encoded(whole(o.document)), literal(`","SignatureType":` + string(kind) + `,"SignatureParams":` + string(bytes.TrimSuffix(params, []byte("}")))),
	}
	if o.original != nil {
		parts = append(parts, literal(`,"OriginalDocument":"`), encoded(whole(o.original)), literal(`"`))
	}
	body, size := joined(append(parts, literal("}}")))
	bar.Stage(c.Text("sending"), size)
	answer, err := cl.post(ctx, "/api/signatures/enhance", body, size)
	if err != nil {
		return 0, err
	}
	defer answer.Body.Close()
	bar.Stage(c.Text("receiving"), -1)
	n, err := cli.CopyAnswer(dst, bar.Reader(answer.Body))
	return n, received(ctx, n, err)
}

// here returns what raises signatures in this program.
func (e *Enhance) here(bar *cli.Progress, c *cli.Console) (enhancing, func(), error) {
	check := sig.Check{At: time.Now()}
	trust := cli.Trust{CA: e.CA, Intermediate: e.Intermediate, CRL: e.CRL, Data: e.Data}
	if _, err := trust.Read(&check); err != nil {
		return nil, nil, err
	}
	if len(check.Roots) == 0 {
		return nil, nil, errors.New("--tsa needs --ca: a file with the roots of the time-stamp service and of the signers")
	}
	address, err := url.Parse(e.TSA)
	if err != nil || address.Scheme != "http" && address.Scheme != "https" || address.Hostname() == "" {
		return nil, nil, fmt.Errorf("--tsa: %q is no address; want http://HOST/PATH or https://HOST/PATH", e.TSA)
	}
	exceptions := make([]guard.Exception, 0, 1+len(e.AllowNetwork))
	service, err := guard.ExceptionFor(address)
	if err != nil {
		return nil, nil, fmt.Errorf("--tsa: %w", err)
	}
	exceptions = append(exceptions, service)
	for _, text := range e.AllowNetwork {
		one, err := guard.ParseException(text)
		if err != nil {
			return nil, nil, fmt.Errorf("--allow-network: %w", err)
		}
		exceptions = append(exceptions, one)
	}
	source, err := evidence.New(evidence.Config{
		Services:           func(context.Context) ([]policy.TSPService, error) { return nil, nil },
		AllowThirdPartyTSP: true,
		Anchors: func(context.Context) (roots, intermediates []*x509gost.Certificate, err error) {
			return check.Roots, check.Intermediates, nil
		},
		Exceptions: exceptions,
	})
	if err != nil {
		return nil, nil, err
	}
	from := &fromFiles{source, check.CRLs}
	return func(ctx context.Context, o *order, dst io.Writer) (int64, []string, error) {
		bar.Stage(c.Text("raising"), -1)
		j := &sig.Job{Document: o.document, Params: o.params, TSPAddress: e.TSA, Time: time.Now(), Evidence: from,
			Chain: slices.Concat(check.Intermediates, check.Roots), Roots: check.Roots}
		if o.original != nil {
			j.Original = o.original
		}
		result, err := o.format.(sig.Enhancer).Enhance(ctx, j) // one has checked that it is
		if err != nil {
			return 0, nil, err
		}
		var levels []string
		if d, is := result.(sig.Document); is {
			again := check
			again.Document, again.At, again.Describe = d, time.Now(), true
			if password := o.params["PDFPassword"]; password != "" {
				again.Password = []byte(password)
			}
			if o.original != nil {
				again.Original = o.original
			}
			report, err := o.format.Verify(ctx, &again)
			if err != nil {
				return 0, nil, err
			}
			for _, s := range report.Signatures {
				if !s.IsStamp() {
					levels = append(levels, s.Level)
				}
			}
		}
		n, err := result.WriteTo(dst)
		return n, levels, err
	}, source.Close, nil
}

// fromFiles is evidence from the network and from revocation lists in files.
type fromFiles struct {
	sig.Evidence
	lists []*x509gost.RevocationList
}

// Revocation implements sig.Evidence.
func (f *fromFiles) Revocation(ctx context.Context, cert, issuer *x509gost.Certificate, notBefore time.Time) (sig.Proof, error) {
	for _, l := range f.lists {
		// The import checks signature and content of the list.
		if l.Issuer.Equal(cert.Issuer) && l.Scope.Covers(cert) && !l.ThisUpdate.Before(notBefore) && l.CheckSignatureFrom(issuer) == nil {
			return sig.Proof{CRL: l.Raw}, nil
		}
	}
	return f.Evidence.Revocation(ctx, cert, issuer, notBefore)
}
