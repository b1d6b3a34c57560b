// SPDX-License-Identifier: Apache-2.0

package sign

import (
	"archive/zip"
	"bytes"
	"cmp"
	"context"
	"encoding/csv"
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"tamga/internal/domain/fault"
	"tamga/internal/web/pages/view"
	"tamga/internal/web/rest"
)

// Line is a part of a printed document: a title, a text, or a field with its label. Kind is
// "title", "text" or "field".
type Line struct{ Kind, Label, Text string }

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

// reportFile prints reports of a page. Nothing is stored, so the page has them.
func (a *API) reportFile(ctx context.Context, r struct{ Body rest.Form }) (rest.File, error) {
	var list []*report
	if !a.Open(r.Body.Get("reports"), &list) || len(list) == 0 {
		return rest.File{}, fault.New(fault.InvalidParameters, "the reports of this page are damaged: verify the files again")
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
		row := []string{r.Name, one.Tag, one.Cause, one.Signers, w.When(one.Signed), r.Digest}
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
	lines := []Line{
		{Kind: "title", Text: w.Text("report.title")},
		{Kind: "text", Text: view.Visible(one.Headline)},
		{Kind: "text", Text: view.Visible(one.Sentence)},
	}
	field := func(label, text string) {
		if text != "" {
			lines = append(lines, Line{"field", label, view.Visible(text)})
		}
	}
	field(w.Text("verify.mend"), one.Mend)
	field(w.Text("report.file"), r.Name+", "+w.Size(r.Size))
	field(w.Text("report.document"), r.Document)
	field(w.Text("verify.digest"), r.Digest)
	field(w.Text("report.when"), w.When(r.When))
	for i, s := range one.Parts {
		if i == maxPrinted {
			lines = append(lines, Line{Kind: "text", Text: w.Count("report.more", len(one.Parts)-maxPrinted)})
			break
		}
		lines = append(lines, Line{Kind: "title", Text: w.Text("verify.signature", s.Number) + ": " + w.Text("verdict.short."+s.Verdict)})
		field(w.Text("verify.cause"), s.Text)
		if s.Signer != nil {
			field(w.Text("verify.signer"), s.Signer.Subject)
			field(w.Text("verify.issuer"), s.Signer.Issuer)
			field(w.Text("verify.serial"), s.Signer.Serial)
			field(w.Text("verify.validity"), w.Day(s.Signer.NotBefore)+" – "+w.Day(s.Signer.NotAfter))
		}
		field(w.Text("verify.claimed"), w.When(s.ClaimedTime))
		field(w.Text("verify.stamped"), w.When(s.StampedTime))
		field(w.Text("verify.kind_of"), s.Kind)
		field(w.Text("verify.covers"), cmp.Or(w.Own(s.Covers), s.Covers))
		for _, f := range s.Exact {
			text := f.Text
			if own := w.Own(f.Detail); own != "" && text != "" && w.Language == "en" {
				text += ": " + own
			}
			field(w.Text("verify.finding"), cmp.Or(text, f.Detail))
		}
	}
	return a.PDF(w.Language, w.Text("report.title"), r.When, lines)
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
	type signature struct {
		Number      string     `json:"number"`
		Verdict     string     `json:"verdict"`
		Level       string     `json:"level,omitempty"`
		Algorithm   string     `json:"algorithm,omitempty"`
		Covers      string     `json:"covers,omitempty"`
		ClaimedTime *time.Time `json:"claimed_time,omitempty"`
		StampedTime *time.Time `json:"stamped_time,omitempty"`
		Signer      *signer    `json:"signer,omitempty"`
		Findings    []finding  `json:"findings"`
	}
	optional := func(t time.Time) *time.Time {
		if t.IsZero() {
			return nil
		}
		return &t
	}
	out := struct {
		File       string      `json:"file"`
		Document   string      `json:"document,omitempty"`
		Size       int64       `json:"size"`
		Digest     string      `json:"streebog256,omitempty"`
		At         time.Time   `json:"verified_at"`
		Verdict    string      `json:"verdict"`
		Problem    string      `json:"problem,omitempty"`
		Signatures []signature `json:"signatures"`
	}{r.Name, r.Document, r.Size, r.Digest, r.When.UTC(), r.Verdict, cmp.Or(r.Detail, r.Problem), []signature{}}
	for _, s := range r.Signatures {
		one := signature{
			Number: s.Number, Verdict: s.Verdict, Level: s.Level, Algorithm: s.Algorithm, Covers: s.Covers,
			ClaimedTime: optional(s.ClaimedTime), StampedTime: optional(s.StampedTime), Findings: []finding{},
		}
		if c := s.Signer; c != nil {
			one.Signer = &signer{Subject: c.Subject, Issuer: c.Issuer, Serial: c.Serial, NotBefore: c.NotBefore, NotAfter: c.NotAfter, DER: c.DER}
		}
		for _, f := range s.Findings {
			one.Findings = append(one.Findings, finding{Indication: f.Indication, Code: f.Code, Text: f.Text})
		}
		out.Signatures = append(out.Signatures, one)
	}
	return json.MarshalIndent(out, "", "  ")
}

// Finding returns what a finding means by its code, or else by its indication of EN 319 102-1, in
// a language of the pages, for commands. It returns "" for a note without a known code.
func Finding(language, code, indication string) string {
	w := view.WordsIn(language)
	if text, ok := w.Lookup("code." + code); ok || indication == "" {
		return text
	}
	return w.Text("finding." + indication)
}
