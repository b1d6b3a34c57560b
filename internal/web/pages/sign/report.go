// SPDX-License-Identifier: Apache-2.0

package sign

import (
	"archive/zip"
	"bytes"
	"cmp"
	"context"
	"encoding/csv"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"

	"tamga/internal/domain/fault"
	"tamga/internal/domain/signing"
	"tamga/internal/web/pages/view"
	"tamga/internal/web/rest"
)

// Line is a part of a printed document.
type Line = view.Line

const (
	// maxPrinted is how many signatures a printed report has. The JSON report has all.
	maxPrinted = 100
	// maxSealed is the longest text with reports that a page carries to the form that prints them, in bytes.
	maxSealed = 1 << 20
	// maxReports is the largest body of that form.
	maxReports = maxSealed + 64<<10
)

// sealReports returns reports as a text that only this installation can make, "" if it is too long for a page.
func (a *API) sealReports(list []*report) (string, error) {
	sealed, err := a.Seal(list)
	if len(sealed) > maxSealed {
		return "", err
	}
	return sealed, err
}

// carried returns the reports that a page has carried to a form.
func (a *API) carried(f rest.Form) (list []*report, err error) {
	if !a.Open(f.Get("reports"), &list) || len(list) == 0 {
		return nil, fault.New(fault.InvalidParameters, "the reports of this page are damaged: verify the files again")
	}
	return list, nil
}

// reportFile prints reports of a page. Only stored ones are elsewhere, so the page has them.
func (a *API) reportFile(ctx context.Context, r struct{ Body rest.Form }) (rest.File, error) {
	list, err := a.carried(r.Body)
	if err != nil {
		return rest.File{}, err
	}
	w := view.VisitorOf(ctx).Words
	form, at, _ := strings.Cut(r.Body.Get("answer"), ".")
	if form == "zip" {
		return a.reportsTogether(w, list)
	}
	if form == "csv" {
		return a.reportsTable(w, list)
	}
	i, err := strconv.Atoi(at)
	if err != nil || i < 0 || i >= len(list) {
		return rest.File{}, fault.New(fault.InvalidParameters, "there is no report with this number")
	}
	content, err := a.reportAs(w, form, list[i])
	kind := map[string]string{"pdf": "application/pdf", "json": "application/json"}[form]
	return rest.File{Content: bytes.NewReader(content), Name: "report." + form, Type: kind}, err
}

func (a *API) reportAs(w *view.Words, form string, r *report) ([]byte, error) {
	switch form {
	case "pdf":
		return a.print(w, r)
	case "json":
		return r.json()
	}
	return nil, fault.New(fault.InvalidParameters, "a report is PDF or JSON")
}

// reportsTogether returns an archive with both reports of each file.
func (a *API) reportsTogether(w *view.Words, list []*report) (rest.File, error) {
	var out bytes.Buffer
	z := zip.NewWriter(&out)
	taken := map[string]bool{}
	for _, r := range list {
		for _, form := range []string{"pdf", "json"} {
			name := view.FreeName(r.Name+"."+form, taken)
			taken[strings.ToLower(name)] = true
			content, err := a.reportAs(w, form, r)
			if err != nil {
				return rest.File{}, err
			}
			to, err := z.CreateHeader(&zip.FileHeader{Name: name, Method: zip.Deflate, Modified: r.When})
			if err == nil {
				_, err = to.Write(content)
			}
			if err != nil {
				return rest.File{}, err
			}
		}
	}
	err := z.Close()
	return rest.File{Content: bytes.NewReader(out.Bytes()), Name: "reports.zip", Type: "application/zip"}, err
}

// reportsTable returns a line for each file.
func (a *API) reportsTable(w *view.Words, list []*report) (rest.File, error) {
	out := bytes.NewBufferString("\ufeff") // spreadsheets read UTF-8 by it
	c := csv.NewWriter(out)
	c.Comma = ';'
	c.Write([]string{w.Text("verify.column.file"), w.Text("verify.column.verdict"), w.Text("verify.column.cause"), w.Text("verify.column.signer"), w.Text("verify.column.when"), w.Text("verify.digest")})
	for _, r := range list {
		one := a.inWords(w, r)
		row := []string{r.Name, one.Tag, one.Cause, one.Signers, w.Moment(one.Signed), r.Digest}
		for i := range row { // a cell that begins so would be a formula
			if row[i] = view.Visible(row[i]); row[i] != "" && strings.ContainsRune("=+-@\t\r", rune(row[i][0])) {
				row[i] = "'" + row[i]
			}
		}
		c.Write(row)
	}
	c.Flush() // a Buffer never returns an error
	return rest.File{Content: bytes.NewReader(out.Bytes()), Name: "reports.csv", Type: "text/csv; charset=utf-8"}, nil
}

// print returns a report as PDF.
func (a *API) print(w *view.Words, r *report) ([]byte, error) {
	one := a.inWords(w, r)
	head := w.Text("report.verified_at", w.When(r.When), a.Address)
	if r.Number != "" {
		head = w.Text("report.number", r.Number, w.When(r.When), a.Address)
	}
	lines := []Line{
		{Kind: "title", Text: w.Text("report.title")},
		{Kind: "note", Text: head},
		{Kind: "verdict", Label: view.Visible(one.Headline), Text: view.Visible(one.Sentence), Tone: one.Tone()},
	}
	heading := func(text string) { lines = append(lines, Line{Kind: "heading", Text: view.Visible(text)}) }
	fact := func(label, text string) {
		if text != "" {
			lines = append(lines, Line{Kind: "fact", Label: label, Text: view.Visible(text)})
		}
	}
	fact(w.Text("verify.mend"), one.Mend)
	heading(w.Text("report.of"))
	fact(w.Text("report.file"), r.Name+", "+w.Size(r.Size))
	fact(w.Text("report.document"), r.Document)
	fact(w.Text("verify.digest"), grouped(r.Digest))
	for i, s := range one.Parts {
		if i == maxPrinted {
			lines = append(lines, Line{Kind: "note", Text: w.Count("report.more", len(one.Parts)-maxPrinted)})
			break
		}
		heading(w.Text("verify.signature", s.Number) + ": " + w.Text("verdict.short."+s.Verdict))
		if len(one.Parts) > 1 {
			fact(w.Text("verify.cause"), s.Text)
		}
		if s.Signer != nil {
			fact(w.Text("verify.signer"), view.PersonIn(s.Signer.Subject))
			fact(w.Text("verify.subject"), s.Signer.Subject)
			fact(w.Text("report.certificate"), w.Text("report.certificate_of", s.Signer.Serial, w.Day(s.Signer.NotBefore), w.Day(s.Signer.NotAfter)))
			fact(w.Text("verify.issuer"), s.Signer.Issuer)
		}
		fact(w.Text("verify.kind_of"), strings.Join(filled(s.Kind, s.Level), ", "))
		fact(w.Text("report.quality"), strings.Join(s.Qualified, ". "))
		fact(w.Text("report.power"), strings.Join(s.Power, ". "))
		fact(w.Text("verify.claimed"), w.When(s.ClaimedTime))
		fact(w.Text("verify.stamped"), w.When(s.StampedTime))
		if u := s.Until; u != nil {
			fact(w.Text("moment.until"), w.When(u.Time)+". "+w.Text("until."+u.By))
		}
		fact(w.Text("verify.covers"), cmp.Or(w.Own(s.Covers), s.Covers))
		for j, c := range (speaker{w, a.Asks, r.Document != ""}).checks(s.signature) {
			if j == 0 {
				heading(w.Text("report.checks"))
			}
			lines = append(lines, Line{Kind: "check", Label: c.Text, Text: view.Visible(strings.Join(filled(w.Text("report.check."+c.Tone), c.Because), ": ")), Tone: c.Tone})
		}
		for _, f := range s.Exact {
			text := f.Text
			if own := w.Own(f.Detail); own != "" && text != "" && w.Language == "en" {
				text += ": " + own
			}
			fact(w.Text("verify.finding"), cmp.Or(text, f.Detail))
		}
	}
	if r.Number != "" {
		picture, err := a.Paint(a.reportAddress(r))
		if err != nil {
			return nil, err
		}
		lines = append(lines, Line{Kind: "picture", Picture: picture, Text: w.Text("report.compare", a.Address+reportAt, r.Number, checkOf(r), w.Day(r.Until))})
	}
	return a.PDF(w.Language, w.Text("report.title"), r.When, lines)
}

// filled returns the texts that are not empty.
func filled(texts ...string) []string {
	return slices.DeleteFunc(texts, func(text string) bool { return text == "" })
}

// grouped returns a digest in groups of eight characters, as people compare it.
func grouped(digest string) string {
	var groups []string
	for part := range slices.Chunk([]byte(digest), 8) {
		groups = append(groups, string(part))
	}
	return strings.Join(groups, " ")
}

// check is one thing that a verification has looked at. Tone is good, bad or warn: yes, no, not established.
type check struct{ Text, Tone, Because string }

// checkOfRow are the checks that findings of a row are about. Other rows are about the document and its signature.
var checkOfRow = map[string]string{
	"unknown_authority": "owner", "certificate_missing": "owner", "forged": "owner",
	"expired": "term", "expired_later": "term", "after_term": "term", "not_yet": "term",
	"revoked": "status", "revocation": "status", "revocation_off": "status",
	"usage": "usage", "stamp": "stamp", "evidence": "evidence",
}

// checks returns what was looked at, and what came of it.
func (w speaker) checks(s *signature) (list []check) {
	if s.Signer == nil {
		return nil
	}
	worst := map[string]string{}
	for i := range s.Findings {
		if f := &s.Findings[i]; f.Verdict != passed {
			of := cmp.Or(checkOfRow[w.rowOf(&s.SignatureReport, f)], "unchanged")
			if verdicts[f.Verdict] > verdicts[worst[of]] {
				worst[of] = f.Verdict
			}
		}
	}
	if len(s.Path) == 0 { // without it nothing about the certificate is established
		for _, of := range []string{"owner", "term", "status", "usage"} {
			worst[of] = cmp.Or(worst[of], indeterminate)
		}
	}
	add := func(of, because string) {
		tone := map[string]string{"": "good", failed: "bad", indeterminate: "warn"}[worst[of]]
		if tone != "good" && of != "term" {
			because = ""
		}
		list = append(list, check{w.Text("verify.known." + of), tone, because})
	}
	add("unchanged", "")
	authority := ""
	if n := len(s.Path); n > 0 {
		authority = view.NameIn(s.Path[n-1].Subject)
	}
	add("owner", authority)
	add("term", w.Text("moment.term", w.Day(s.Signer.NotBefore), w.Day(s.Signer.NotAfter)))
	add("status", "")
	add("usage", "")
	if worst["stamp"] != "" || !s.StampedTime.IsZero() {
		add("stamp", w.When(s.StampedTime))
	}
	return list
}

// json returns a report for programs.
func (r *report) json() ([]byte, error) {
	type finding struct {
		Indication string `json:"indication,omitempty"`
		Code       string `json:"code,omitempty"`
		Text       string `json:"text"`
	}
	type signer struct {
		Subject   string    `json:"subject"`
		Issuer    string    `json:"issuer"`
		Serial    string    `json:"serial"`
		NotBefore time.Time `json:"not_before"`
		NotAfter  time.Time `json:"not_after"`
		DER       []byte    `json:"certificate"`
	}
	type until struct {
		Time        time.Time `json:"time"`
		By          string    `json:"by"`
		Certificate string    `json:"certificate,omitempty"`
		Algorithm   string    `json:"algorithm,omitempty"`
	}
	type signature struct {
		Number      string       `json:"number"`
		Verdict     string       `json:"verdict"`
		Status      string       `json:"status,omitempty"`
		Sub         string       `json:"sub_indication,omitempty"`
		Level       string       `json:"level,omitempty"`
		Algorithm   string       `json:"algorithm,omitempty"`
		Covers      string       `json:"covers,omitempty"`
		ClaimedTime *time.Time   `json:"claimed_time,omitempty"`
		StampedTime *time.Time   `json:"stamped_time,omitempty"`
		GoodUntil   *until       `json:"good_until,omitempty"`
		Signer      *signer      `json:"signer,omitempty"`
		Quality     *QualityJSON `json:"quality,omitempty"`
		Power       *MandateJSON `json:"power,omitempty"`
		Findings    []finding    `json:"findings"`
	}
	optional := func(t time.Time) *time.Time {
		if t.IsZero() {
			return nil
		}
		return &t
	}
	out := struct {
		Number     string      `json:"number,omitempty"`
		File       string      `json:"file"`
		Document   string      `json:"document,omitempty"`
		Size       int64       `json:"size"`
		Digest     string      `json:"streebog256,omitempty"`
		At         time.Time   `json:"verified_at"`
		Verdict    string      `json:"verdict"`
		Problem    string      `json:"problem,omitempty"`
		Signatures []signature `json:"signatures"`
	}{r.Number, r.Name, r.Document, r.Size, r.Digest, r.When.UTC(), r.Verdict, cmp.Or(r.Detail, r.Problem), []signature{}}
	for _, s := range r.Signatures {
		one := signature{
			Number: s.Number, Verdict: s.Verdict, Status: s.Main, Sub: s.Sub, Level: s.Level, Algorithm: s.Algorithm, Covers: s.Covers,
			ClaimedTime: optional(s.ClaimedTime), StampedTime: optional(s.StampedTime), Quality: QualityOf(s.Quality), Power: MandateOf(s.Mandate), Findings: []finding{},
		}
		if c := s.Signer; c != nil {
			one.Signer = &signer{Subject: c.Subject, Issuer: c.Issuer, Serial: c.Serial, NotBefore: c.NotBefore, NotAfter: c.NotAfter, DER: c.DER}
		}
		if u := s.Until; u != nil {
			one.GoodUntil = &until{u.Time.UTC(), u.By, u.Subject, u.Algorithm}
		}
		for _, f := range s.Findings {
			one.Findings = append(one.Findings, finding{Indication: f.Indication, Code: f.Code, Text: f.Text})
		}
		out.Signatures = append(out.Signatures, one)
	}
	return json.MarshalIndent(out, "", "  ")
}

// QualityJSON is what a list of accredited authorities says about a signature, as reports of commands and pages have it.
type QualityJSON struct {
	Qualified bool   `json:"qualified"`
	Code      string `json:"code"` // qualified, advanced-no-issuer, advanced-unlisted, advanced-at-issue or advanced-at-signed
	Text      string `json:"text"`
	// The authority of the list that issued the certificate.
	Authority string `json:"authority,omitempty"`
	INN       string `json:"inn,omitempty"`
	Number    string `json:"registry_number,omitempty"`
	// At is when the signature was made, by a time stamp (basis stamp), by the signer's word (claim), or it is not known and
	// At is the time of the check (check).
	At       time.Time `json:"at"`
	Basis    string    `json:"basis"`
	ListDate time.Time `json:"list_date"`
	Old      bool      `json:"list_old"` // the list was older than 30 days then
}

// QualityOf returns a quality for a report in JSON, nil for nil.
func QualityOf(q *signing.Quality) *QualityJSON {
	if q == nil {
		return nil
	}
	return &QualityJSON{
		Qualified: q.Qualified, Code: q.Code, Text: q.Text, Authority: q.Authority, INN: q.INN, Number: q.Number,
		At: q.At.UTC(), Basis: q.Basis.String(), ListDate: q.ListDate, Old: q.Old,
	}
}

// Quality returns what a list of accredited authorities says by a code of sig.Quality, in a language of the pages, for
// commands.
func Quality(language, code string) string { return view.WordsIn(language).Text("quality." + code) }

// Finding returns what a finding means by its code, or else by its indication of EN 319 102-1, in
// a language of the pages, for commands. It returns "" for a note without a known code.
func Finding(language, code, indication string) string {
	w := view.WordsIn(language)
	if text, ok := w.Lookup("code." + code); ok || indication == "" {
		return text
	}
	return w.Text("finding." + indication)
}
