// SPDX-License-Identifier: Apache-2.0

package sign

import (
	"bytes"
	"cmp"
	"encoding/json"
	"time"

	"tamga/internal/web/pages/view"
	"tamga/internal/web/rest"
)

// Line is a part of a printed document: a title, a text, or a field with its label. Kind is
// "title", "text" or "field".
type Line struct{ Kind, Label, Text string }

// maxPrinted is how many signatures a printed report has. The JSON report has all.
const maxPrinted = 100

// print returns a report as PDF.
func (a *API) print(w *view.Words, r *report) (rest.File, error) {
	lines := []Line{
		{Kind: "title", Text: w.Text("report.title")},
		{Kind: "text", Text: w.Text(r.Title())},
		{Kind: "text", Text: w.Text("report.at", r.Name, w.When(r.At))},
	}
	field := func(key, text string) {
		if text != "" {
			lines = append(lines, Line{"field", w.Text(key), view.Visible(text)})
		}
	}
	for i, s := range r.Signatures {
		if i == maxPrinted {
			lines = append(lines, Line{Kind: "text", Text: w.Count("report.more", len(r.Signatures)-maxPrinted)})
			break
		}
		if s.Number != "" {
			lines = append(lines, Line{Kind: "title", Text: w.Text("verify.signature", s.Number) + ": " + w.Text("verdict.short."+s.Verdict)})
		}
		if s.Signer != nil {
			field("verify.signer", s.Signer.Subject)
			field("verify.issuer", s.Signer.Issuer)
			field("verify.serial", s.Signer.Serial)
			field("verify.validity", w.Day(s.Signer.NotBefore)+" – "+w.Day(s.Signer.NotAfter))
		}
		field("verify.claimed", w.When(s.ClaimedTime))
		field("verify.stamped", w.When(s.StampedTime))
		field("verify.level", s.Level)
		field("verify.covers", cmp.Or(w.Own(s.Covers), s.Covers))
		for _, f := range s.Findings() {
			text := f.Text
			if f.Code != "" {
				text = w.Text(f.Code)
				if w.Language == "en" {
					text += ": " + f.Text
				}
			}
			field(f.Key, w.Text(f.Mend)+" ("+text+")")
		}
	}
	content, err := a.PDF(w.Language, w.Text("report.title"), r.At, lines)
	return rest.File{Content: bytes.NewReader(content), Name: "report.pdf", Type: "application/pdf"}, err
}

// json returns a report for programs.
func (r *report) json() (rest.File, error) {
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
		At         time.Time   `json:"verified_at"`
		Verdict    string      `json:"verdict"`
		Signatures []signature `json:"signatures"`
	}{r.Name, r.At.UTC(), r.Verdict, []signature{}}
	for _, s := range r.Signatures {
		one := signature{
			Number: s.Number, Verdict: s.Verdict, Level: s.Level, Covers: s.Covers,
			ClaimedTime: optional(s.ClaimedTime), StampedTime: optional(s.StampedTime), Findings: []finding{},
		}
		if c := s.Signer; c != nil {
			one.Signer = &signer{Subject: c.Subject, Issuer: c.Issuer, Serial: c.Serial, NotBefore: c.NotBefore, NotAfter: c.NotAfter, DER: c.DER}
		}
		for _, f := range s.SignatureReport.Findings {
			one.Findings = append(one.Findings, finding{Indication: f.Indication, Code: f.Code, Text: f.Text})
		}
		out.Signatures = append(out.Signatures, one)
	}
	content, err := json.MarshalIndent(out, "", "  ")
	return rest.File{Content: bytes.NewReader(content), Name: "report.json", Type: "application/json"}, err
}

// finding is a finding for people.
type finding struct {
	Key, Mend string // keys of what it means and of how to mend it
	Code      string // key of what the verifier found, "" if it has no code
	Verdict   string
	Text      string // of the verifier, in English
}

// changed are the codes of findings that fail a signature because of what is beside the signed bytes: it came to the
// document after signing. The interface has one indication for them and for malformed signatures.
var changed = map[string]bool{
	"later-metadata": true, "later-signature": true, "later-form-filling": true, "later-annotations": true, "later-change": true,
	"byte-range": true, "covers-no-revision": true, "trailing-bytes": true, // PDF
	"hidden-entry": true, "part-not-covered": true, "relationship-not-covered": true, // Office
}

// Findings returns the findings for people.
func (s signature) Findings() (list []finding) {
	for _, f := range s.SignatureReport.Findings {
		name := f.Indication
		if name == "" {
			name = "note"
		}
		if name == "FORMAT_FAILURE" && changed[f.Code] {
			name = "changed"
		}
		one := finding{Key: "finding." + name, Mend: "mend." + name, Verdict: f.Verdict, Text: f.Text}
		if key := "code." + f.Code; view.HasText(key) {
			one.Code = key
			if key == noSignature {
				one.Mend = "mend.no_signature"
			}
		}
		list = append(list, one)
	}
	return list
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
