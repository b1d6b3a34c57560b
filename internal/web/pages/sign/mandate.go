// SPDX-License-Identifier: Apache-2.0

package sign

import (
	"slices"
	"strings"

	"tamga/internal/domain/signing"
	"tamga/internal/web/pages/view"
)

// MandateJSON is the power of attorney by which a signer acts, as reports of commands and pages have it. A verdict is passed,
// failed or indeterminate.
type MandateJSON struct {
	Number string   `json:"number"`
	Chain  []string `json:"passed_on_from,omitempty"` // numbers, the nearest first
	// The principals of the first power, and the party that the signer is, with INN.
	Principals     []string `json:"principals"`
	Representative string   `json:"representative"`
	From           string   `json:"valid_from"`  // first day, in Moscow
	Until          string   `json:"valid_until"` // last day, in Moscow
	Codes          []string `json:"codes,omitempty"`
	Words          []string `json:"words,omitempty"` // powers that are granted in words
	Joint          bool     `json:"joint,omitempty"` // the representatives act only together
	Parts          Parts    `json:"parts"`
}

// Parts are the verdicts on a power, on the signer as its representative, on the powers granted, and on the signature without the
// power.
type Parts struct {
	Power    string `json:"power"`
	Signer   string `json:"signer"`
	Rights   string `json:"rights"`
	Document string `json:"document"`
}

// MandateOf returns a power for a report in JSON, nil for nil.
func MandateOf(m *signing.Mandate) *MandateJSON {
	if m == nil {
		return nil
	}
	from, until := m.Days()
	return &MandateJSON{
		Number: m.Number, Chain: m.Chain, Principals: m.Principals, Representative: m.Representative, From: from, Until: until,
		Codes: m.Codes, Words: m.Words, Joint: m.Joint,
		Parts: Parts{m.Power.String(), m.Signer.String(), m.Rights.String(), m.Document.String()},
	}
}

// maxGranted is how many granted powers a page names.
const maxGranted = 10

// power returns the power of attorney by which a signer acts in words, nothing without one.
func (w speaker) power(m *signing.Mandate) (lines []string) {
	if m == nil {
		return nil
	}
	from, until := m.Days()
	lines = append(lines, w.Text("power.number", view.Visible(m.Number), from, until))
	lines = append(lines, w.Text("power.of", view.Visible(strings.Join(m.Principals, ", ")), view.Visible(m.Representative)))
	for _, number := range m.Chain {
		lines = append(lines, w.Text("power.passed_on", view.Visible(number)))
	}
	if granted := slices.Concat(m.Codes, m.Words); len(granted) > 0 {
		if len(granted) > maxGranted {
			granted = append(granted[:maxGranted:maxGranted], "...")
		}
		lines = append(lines, w.Text("power.grants", view.Visible(strings.Join(granted, ", "))))
	}
	short := func(v string) string { return w.Text("power.verdict." + v) }
	return append(lines, w.Text("power.parts", short(m.Power.String()), short(m.Signer.String()), short(m.Rights.String()), short(m.Document.String())))
}
