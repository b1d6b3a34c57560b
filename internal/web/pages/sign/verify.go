// SPDX-License-Identifier: Apache-2.0

package sign

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"tamga/internal/domain/fault"
	"tamga/internal/domain/signing"
	"tamga/internal/web/pages/view"
	"tamga/internal/web/rest"
)

// verifyView is the form, and below it what was found.
type verifyView struct {
	MaxBytes view.Bytes
	Report   *report // nil: nothing was verified yet
}

// report is what a verification found.
type report struct {
	Name       string // of the file
	At         time.Time
	Verdict    string // the worst of all signatures: passed, indeterminate or failed
	Signatures []signature
}

// signature is one signature of a file.
type signature struct {
	signing.SignatureReport
	Number string // "1", and "1.2" for a countersignature
}

// Count returns the number of signatures. Faults of a whole document come as one without a number.
func (r *report) Count() (n int) {
	for _, s := range r.Signatures {
		if s.Number != "" {
			n++
		}
	}
	return n
}

// noSignature is the key of the word of a finding.
const noSignature = "code.no-signature"

// Title returns the key of the verdict in words.
func (r *report) Title() string {
	for _, s := range r.Signatures {
		if slices.ContainsFunc(s.Findings(), func(f finding) bool { return f.Code == noSignature }) && r.Count() == 0 {
			return noSignature
		}
	}
	return "verdict." + r.Verdict
}

func (a *API) verifyForm(_ context.Context, _ struct{}) (view.View, error) {
	return view.View{Template: "sign/verify", Title: "verify.title", Script: view.UploadScript, Content: verifyView{MaxBytes: view.Bytes(a.MostVerified)}}, nil
}

// verify verifies a file, with the document beside it if the signature is detached.
func (a *API) verify(ctx context.Context, docs *rest.Documents[*signing.Intake], r struct{ Body rest.Parts }) (any, error) {
	var file, original *signing.Intake
	name := ""
	fields, err := view.ReadUpload(r.Body, docs, maxField, func(field, called string, content *signing.Intake) error {
		switch {
		case content.Size() == 0:
		case field == "original":
			original = content
		default:
			file, name = content, called
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if file == nil {
		return nil, fault.New(fault.ContentRequired, "choose the file to verify")
	}
	kind, err := a.Verifier.TypeOf(file)
	if err != nil {
		return nil, err
	}
	if kind == "" && original != nil { // the two files in the other order
		if kind, err = a.Verifier.TypeOf(original); err != nil {
			return nil, err
		}
		file, original = original, file
	}
	if kind == "" {
		return nil, fault.New(fault.InvalidContent, "the file is not a signed document of a kind that is known here")
	}
	found, err := a.Verifier.Verify(ctx, &signing.VerifyOrder{Type: kind, Content: file, Original: original, Password: fields.Get("password")})
	if err != nil {
		return nil, err
	}
	result := reportOf(name, found)
	switch result.At = a.Now(); fields.Get("answer") {
	case "json":
		return result.json()
	case "pdf":
		return a.print(view.VisitorOf(ctx).Words, result)
	}
	v := view.View{Template: "sign/verify", Title: "verify.title", Script: view.UploadScript, Content: verifyView{MaxBytes: view.Bytes(a.MostVerified), Report: result}}
	return v.Render(ctx)
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

// verdicts are ordered from the best to the worst.
var verdicts = map[string]int{"passed": 0, "indeterminate": 1, "failed": 2}

func reportOf(name string, found []signing.SignatureReport) *report {
	r := &report{Name: name, Verdict: "indeterminate"}
	if len(found) > 0 {
		r.Verdict = "passed"
	}
	for _, v := range found {
		if verdicts[v.Verdict] > verdicts[r.Verdict] {
			r.Verdict = v.Verdict
		}
		r.Signatures = append(r.Signatures, signature{v, numberOf(v.ID)})
	}
	return r
}
