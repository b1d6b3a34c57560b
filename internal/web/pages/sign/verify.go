// SPDX-License-Identifier: Apache-2.0

package sign

import (
	"cmp"
	"context"
	_ "embed" // for the script
	"encoding/base64"
	"encoding/hex"
	"io"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"tamga/internal/domain/fault"
	"tamga/internal/domain/signing"
	"tamga/internal/web/pages/pdfjs"
	"tamga/internal/web/pages/view"
	"tamga/internal/web/rest"
)

// maxCarried is the largest signature that a page asks to be sent again with its document, in bytes of Base64.
const maxCarried = 64 << 10

// compareScript shows the signed version of a PDF beside the present one.
//
//go:embed compare.js
var compareScript string

func (a *API) verifyForm(_ context.Context, _ struct{}) (view.View, error) {
	return a.verifyPage(verifyView{}), nil
}

func (a *API) verifyPage(v verifyView) view.View {
	v.MaxBytes, v.PDFScript, v.PDFWorker = view.Bytes(a.MostVerified), pdfjs.Main, pdfjs.Worker
	return view.View{Template: "sign/verify", Title: "verify.title", Script: view.DropScript + compareScript + view.UploadScript, Modules: pdfjs.Modules(a.Address), Content: v}
}

// sent is a file of a verification.
type sent struct {
	name    string
	content *signing.Intake
	kind    string // type of signature, "" for a file without one
	taken   bool   // it is the document of a signature
	power   bool   // it is a power of attorney
}

// verify verifies the files of a form. A detached signature is verified with its document, wherever that was dropped.
func (a *API) verify(ctx context.Context, docs *rest.Documents[*signing.Intake], r struct {
	Body rest.Parts `many:"file"`
}) (any, error) {
	var files []sent
	fields, err := view.ReadUpload(r.Body, docs, maxCarried+maxField, func(_, name string, content *signing.Intake) error {
		if content.Size() == 0 && name == "" {
			return nil // the browser sends an empty part for no file
		}
		if len(files) == MaxFiles {
			return fault.Newf(fault.InvalidParameters, "at most %d files are verified at once", MaxFiles)
		}
		files = append(files, sent{name: name, content: content})
		return nil
	})
	if err != nil {
		return nil, err
	}
	if len(files) == 0 {
		return nil, fault.New(fault.ContentRequired, "choose the file to verify")
	}
	text := fields.Get("carried")
	if text != "" {
		carried, err := carriedFile(files[0].content, fields.Get("carried_name"), text)
		if err != nil {
			return nil, err
		}
		defer carried.content.Close()
		files = append(files, carried)
	}
	for i := range files {
		if files[i].kind, err = a.Verifier.TypeOf(ctx, files[i].content); err != nil {
			return nil, err
		}
	}
	if at, ok := strings.CutPrefix(fields.Get("answer"), "signed."); ok {
		return a.signedVersion(ctx, files, at, fields.Get("password"))
	}
	if at, ok := strings.CutPrefix(fields.Get("answer"), "taken."); ok {
		return a.takenOut(ctx, files, at)
	}
	list, err := a.verifyFiles(ctx, files, fields.Get("password"))
	if err != nil {
		return nil, err
	}
	if at, ok := strings.CutPrefix(fields.Get("answer"), "card."); ok && a.Cards != nil {
		return a.cardOfUpload(ctx, files, list, at, fields.Get("password"))
	}
	if at, ok := strings.CutPrefix(fields.Get("answer"), "etsi."); ok {
		return a.etsiOf(ctx, files, list, at, fields.Get("password"))
	}
	for _, r := range list {
		r.here = text == "" // the form of the answer has none that was carried
	}
	v, err := a.results(view.VisitorOf(ctx).Words, list, a.keeps(ctx))
	if err != nil {
		return nil, err
	}
	a.offerRaise(ctx, &v)
	return a.verifyPage(v).Render(ctx)
}

// carriedFile returns the signature that a page has carried to the form with its document.
func carriedFile(beside *signing.Intake, name, text string) (sent, error) {
	data, err := base64.StdEncoding.DecodeString(text)
	if err != nil || len(name) > maxFileName*4 {
		return sent{}, fault.New(fault.InvalidParameters, "the signature of an earlier page is damaged: choose it again")
	}
	content, err := beside.Sibling()
	if err == nil {
		_, err = content.Write(data)
	}
	if err == nil {
		err = content.Finish()
	}
	return sent{name: name, content: content}, err
}

// signatureEndings are the ends of the names of detached signatures, which follow the name of their document.
var signatureEndings = []string{".sig", ".p7s", ".sgn", ".sign", ".p7m"}

// stemOf returns the name of the document of a detached signature by the name of the signature, "" if it says nothing.
func stemOf(name string) string {
	ending := path.Ext(name)
	if !slices.Contains(signatureEndings, strings.ToLower(ending)) {
		return ""
	}
	return strings.TrimSuffix(name, ending)
}

// powersAmong returns the powers of attorney among files, with their signatures, nil unless there are others to verify by them. pairs
// are documents by signature. It takes the powers away from what is verified.
func powersAmong(files []sent, pairs map[int]int) (powers []signing.File, taken map[int]bool) {
	taken = map[int]bool{}
	for i := range files {
		if at, paired := pairs[i]; files[i].power || paired && files[at].power {
			taken[i] = true
			powers = append(powers, signing.File{Name: files[i].name, Content: files[i].content})
		}
	}
	for i := range files {
		if !taken[i] && (files[i].kind != "" || !files[i].taken) {
			return powers, taken
		}
	}
	return nil, nil // the powers are what is verified
}

// verifyFiles verifies files and returns what was found, what needs attention first.
func (a *API) verifyFiles(ctx context.Context, files []sent, password string) ([]*report, error) {
	pairs, lone := map[int]int{}, map[int][]signing.SignatureReport{} // documents and descriptions by signature
	for i := range files {
		if stem := stemOf(files[i].name); stem != "" && a.Verifier.Beside(files[i].kind) {
			if at := slices.IndexFunc(files, func(f sent) bool { return strings.EqualFold(f.name, stem) }); at >= 0 && at != i {
				pairs[i], files[at].taken = at, true
			}
		}
	}
	found := map[int]*report{}
	for i := range files {
		var err error
		if files[i].power, err = a.Verifier.IsPower(ctx, files[i].content); err != nil {
			return nil, err
		}
		if _, paired := pairs[i]; paired || files[i].kind == "" {
			continue
		}
		r, err := a.verifyOne(ctx, &files[i], nil, nil, password)
		if err != nil {
			return nil, err
		}
		if found[i] = r; r.needsDocument() {
			lone[i] = r.found
		}
	}
	if err := a.pairByDigest(ctx, files, lone, pairs); err != nil {
		return nil, err
	}
	powers, taken := powersAmong(files, pairs)
	var list []*report
	for i := range files {
		f := &files[i]
		r := found[i]
		var err error
		switch at, paired := pairs[i]; {
		case taken[i]:
			continue
		case paired:
			if r, err = a.verifyOne(ctx, f, &files[at], powers, password); err == nil {
				r.document = at
			}
		case f.kind != "" && powers != nil:
			r, err = a.verifyOne(ctx, f, nil, powers, password)
		case f.kind == "" && f.taken:
			continue
		case f.content.Size() == 0:
			r = a.problem(f, "empty")
		case f.kind == "":
			r = a.problem(f, "none")
			r.Digest, err = a.digestOf(ctx, f.content)
		}
		if err != nil {
			return nil, err
		}
		r.At, r.powers = i, powers
		if r.needsDocument() {
			if r.carry, err = carry(f.content); err != nil {
				return nil, err
			}
		}
		list = append(list, r)
	}
	sortReports(list)
	return list, nil
}

// pairByDigest finds documents of the signatures that no name leads to. One signature and one document that remain
// belong together for the person who chose them, so the answer is that the document is another one.
func (a *API) pairByDigest(ctx context.Context, files []sent, lone map[int][]signing.SignatureReport, pairs map[int]int) error {
	var signatures, documents []int
	var described [][]signing.SignatureReport
	var contents []*signing.Intake
	for i := range files {
		switch {
		case lone[i] != nil:
			signatures, described = append(signatures, i), append(described, lone[i])
		case files[i].content.Size() > 0:
			documents, contents = append(documents, i), append(contents, files[i].content)
		}
	}
	if len(signatures) == 0 || len(documents) == 0 {
		return nil
	}
	at, err := a.Verifier.Match(ctx, described, contents)
	if err != nil {
		return err
	}
	for n, i := range signatures {
		if at[n] < 0 && len(files) == 2 {
			at[n] = 0
		}
		if at[n] >= 0 {
			pairs[i], files[documents[at[n]]].taken = documents[at[n]], true
		}
	}
	return nil
}

// carry returns a small signature as Base64, so that its document can be sent alone; "" for a large one.
func carry(content *signing.Intake) (string, error) {
	if content.Size() > maxCarried*3/4 {
		return "", nil
	}
	data, err := io.ReadAll(io.NewSectionReader(content, 0, content.Size()))
	return base64.StdEncoding.EncodeToString(data), err
}

// verifyOne verifies one file, with its document beside it or without one, and by powers of attorney if there are any.
func (a *API) verifyOne(ctx context.Context, f, document *sent, powers []signing.File, password string) (*report, error) {
	order := &signing.VerifyOrder{Type: f.kind, Content: f.content, Password: password, Describe: document == nil, WithPath: true, Powers: powers}
	if document != nil {
		order.Original = document.content
	}
	found, err := a.Verifier.Verify(ctx, order)
	if fault.Is(err, fault.InvalidContent) || fault.Is(err, fault.InvalidParameters) { // others are about this moment
		refused, _ := fault.As(err)
		r := a.problem(f, "broken")
		switch {
		case signing.NeedsPassword(err):
			r.Problem = "password"
		case signing.TooMuchWork(err):
			r.Problem = "work"
		}
		r.Detail = refused.Message
		r.Digest, err = a.digestOf(ctx, f.content)
		return r, err
	}
	if err != nil {
		return nil, err
	}
	r := a.reportOf(f, found)
	contained, err := a.Verifier.Contained(ctx, f.kind, f.content)
	if err != nil {
		return nil, err
	}
	covered := map[int]bool{}
	for i := range found {
		if found[i].IsStamp() {
			continue
		}
		for _, place := range found[i].Files {
			covered[place] = true
		}
	}
	for i := range contained[:min(len(contained), maxContained)] {
		r.Contained = append(r.Contained, containedFile{i, contained[i].Name, contained[i].Size(), covered[i]})
	}
	of := f.content
	if document != nil {
		r.Document, of = document.name, document.content
	}
	r.Digest, err = a.digestOf(ctx, of)
	return r, err
}

// VerifyCopies verifies copies of stored documents and returns the page of the results, what needs attention first.
func (a *API) VerifyCopies(ctx context.Context, copies []view.Copy) (view.View, error) {
	var list []*report
	for i := range copies {
		c := &copies[i]
		f := sent{name: c.Name, content: c.Content}
		if c.Content == nil {
			list = append(list, &report{Name: c.Name, At: i, When: a.Now(), Verdict: indeterminate, Problem: "gone", document: -1})
			continue
		}
		var err error
		if f.kind, err = a.Verifier.TypeOf(ctx, f.content); err != nil {
			return view.View{}, err
		}
		r := a.problem(&f, "none")
		if f.kind != "" {
			r, err = a.verifyOne(ctx, &f, nil, nil, "")
		}
		if err == nil && r.needsDocument() && c.Original != nil {
			r, err = a.verifyOne(ctx, &f, &sent{name: c.Document, content: c.Original}, nil, "")
		}
		if err == nil && r.needsDocument() {
			r.carry, err = carry(f.content)
		}
		if err != nil {
			return view.View{}, err
		}
		r.At, r.stored = i, c.Ref
		list = append(list, r)
	}
	sortReports(list)
	v, err := a.results(view.VisitorOf(ctx).Words, list, a.keeps(ctx))
	a.offerRaise(ctx, &v)
	return a.verifyPage(v), err
}

// sortReports puts what needs attention first.
func sortReports(list []*report) {
	slices.SortStableFunc(list, func(x, y *report) int { return verdicts[y.Verdict] - verdicts[x.Verdict] })
}

func (a *API) digestOf(ctx context.Context, content *signing.Intake) (string, error) {
	sum, err := a.Verifier.Digest(ctx, content)
	return hex.EncodeToString(sum), err
}

// signedVersion returns the signed version of a PDF that was changed later.
func (a *API) signedVersion(ctx context.Context, files []sent, at, password string) (rest.File, error) {
	i, err := strconv.Atoi(at)
	if err != nil || i < 0 || i >= len(files) || files[i].kind == "" {
		return rest.File{}, fault.New(fault.InvalidParameters, "choose the file with the changes again")
	}
	f := &files[i]
	found, err := a.Verifier.Verify(ctx, &signing.VerifyOrder{Type: f.kind, Content: f.content, Password: password, Describe: true, WithPath: true})
	if err != nil {
		return rest.File{}, err
	}
	size := a.reportOf(f, found).Revision()
	if size == 0 {
		return rest.File{}, fault.New(fault.InvalidContent, "the file has no signed version besides the present one")
	}
	return rest.File{Content: section{io.NewSectionReader(f.content, 0, size)}, Name: versionName(view.VisitorOf(ctx).Words, f.name), Type: "application/pdf"}, nil
}

// maxContained is how many files of a container the page offers.
const maxContained = 200

// takenOut returns a file of a container. at has the place of the container, and the place of the file in it.
func (a *API) takenOut(ctx context.Context, files []sent, at string) (rest.File, error) {
	gone := fault.New(fault.InvalidParameters, "choose the container again")
	of, which, _ := strings.Cut(at, ".")
	i, err := strconv.Atoi(of)
	n, wrong := strconv.Atoi(which)
	if err != nil || wrong != nil || i < 0 || i >= len(files) {
		return rest.File{}, gone
	}
	list, err := a.Verifier.Contained(ctx, files[i].kind, files[i].content)
	if err != nil {
		return rest.File{}, err
	}
	if n < 0 || n >= len(list) {
		return rest.File{}, gone
	}
	return rest.File{Content: list[n], Name: rest.FileName(path.Base(list[n].Name)), Type: "application/octet-stream"}, nil
}

// section is the beginning of a file.
type section struct{ *io.SectionReader }

// WriteTo implements io.WriterTo.
func (s section) WriteTo(w io.Writer) (int64, error) {
	return io.Copy(w, io.NewSectionReader(s.SectionReader, 0, s.Size()))
}

// versionName returns the name of the signed version of a file.
func versionName(w *view.Words, name string) string {
	return view.Numbered(rest.FileName(name), " ("+w.Text("verify.version")+")")
}

// numberOf returns the number of a signature for people, who count from 1.
func numberOf(id string) string {
	parts := strings.Split(id, ".")
	for i, part := range parts {
		if n, err := strconv.Atoi(part); err == nil {
			parts[i] = strconv.Itoa(n + 1)
		}
	}
	return strings.Join(parts, ".")
}

// The verdicts, as package signing spells them.
const (
	passed        = "passed"
	indeterminate = "indeterminate"
	failed        = "failed"
)

// verdicts are ordered from the best to the worst.
var verdicts = map[string]int{passed: 0, indeterminate: 1, failed: 2}

// problem returns the report of a file that could not be verified.
func (a *API) problem(f *sent, row string) *report {
	return &report{Name: f.name, Size: f.content.Size(), When: a.Now(), Verdict: indeterminate, Problem: row, document: -1}
}

func (a *API) reportOf(f *sent, found []signing.SignatureReport) *report {
	for _, v := range found {
		if v.ID == "" && slices.ContainsFunc(v.Findings, func(f signing.Finding) bool { return f.Code == "no-signature" || f.Code == "" }) {
			return a.problem(f, "none")
		}
	}
	r := newReport(f.name, f.content.Size(), found, a.Now())
	r.found, r.kind = found, f.kind
	return r
}

func newReport(name string, size int64, found []signing.SignatureReport, now time.Time) *report {
	r := &report{Name: name, Size: size, When: now, Verdict: passed, document: -1}
	for _, v := range found {
		if verdicts[v.Whole] > verdicts[r.Verdict] { // a card has several files
			r.Verdict = v.Whole
		}
		v.Signed = nil
		for i := range v.Path { // reports have the certificate of the signer, and not those above it
			above := *v.Path[i]
			above.DER = nil
			v.Path[i] = &above
		}
		r.Signatures = append(r.Signatures, signature{v, cmp.Or(numberOf(v.ID), "1")})
	}
	return r
}
