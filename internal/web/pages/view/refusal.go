// SPDX-License-Identifier: Apache-2.0

package view

// Refusal says why a form was refused.
type Refusal struct {
	Code     string // of the fault
	Sentence string // in the language of the reader
	Detail   string // the message of the fault
	Back     string // page to go on at
}

// Refused is a fault of a form with a page of its own, such as the form with what was typed.
type Refused interface {
	error
	// Again returns the page with the reason.
	Again(r Refusal) View
}

// RefusalPage is the page of a refusal.
type RefusalPage struct {
	Sentence string // in the language of the reader
	Detail   string // the message of the fault
	Back     string // page to go on at
	BackKey  string // of what leads there

	Files []string // that the refusal is about, if it is not about all of an upload
	Again bool     // the same upload may be sent again
	Kept  bool     // the page to go on at has its files
	Field string   // of the upload that is wrong; "" for none or several
}

// View returns the page.
func (v RefusalPage) View() View {
	return View{Template: "refused", Title: "refused.title", Content: v}
}
