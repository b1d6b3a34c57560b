// SPDX-License-Identifier: Apache-2.0

package pages

import (
	"cmp"
	"context"
	"encoding/json"
	"net/url"
	"slices"
	"strings"
	"time"

	"tamga/internal/domain/fault"
	"tamga/internal/domain/operation"
	"tamga/internal/web/rest"
)

// operations returns the operations of the caller that an address names.
func (a *API) operations(ctx context.Context, text string) (list []*operation.Operation, err error) {
	ids := strings.FieldsFunc(text, func(r rune) bool { return r == ',' })
	for _, id := range ids[:min(len(ids), maxOperations)] {
		o, err := a.Operations.Find(ctx, rest.Caller(ctx), id)
		if err != nil {
			return nil, err
		}
		rest.Afterwards(ctx, o)
		list = append(list, o)
	}
	if len(list) == 0 {
		err = fault.New(fault.NotFound, "the address names no operation")
	}
	return list, err
}

// signedView is the state of what was signed.
type signedView struct {
	Operations []signedOperation
	All        string // address of all results together; "" for fewer than two
	Done       int    // documents that are signed
	Failed     int    // documents that are not signed, without those that a person declined
	Retry      string // address of the form with the documents that are not signed; "" for none
	Again      string // address of the form with the same choices
	Waits      bool   // at least one operation waits for a confirmation
	Running    bool   // at least one operation is carried out
}

type signedOperation struct {
	Number    int    // on the page, from 1
	Format    string // key of the word; "": not known
	ID        string
	State     string // key of the word
	Failed    string // why the whole operation failed; "" if it did not
	Detail    string
	Documents []signedDocument
	Before    time.Time // zero, or the time until which it must be confirmed
	AwaitsPIN bool      // it is confirmed, and waits for the PIN of the key
	left      []string  // identifiers of the stored documents that are not signed, and of those beside them
	failed    int       // documents that are not signed
}

type signedDocument struct {
	Name, Result, RefID string
	State               string // key of the word
	Failed, Detail      string
}

func (a *API) signed(ctx context.Context, r struct {
	Operations string `query:"operations"`
	Again      string `query:"again"`
}) (view, error) {
	list, err := a.operations(ctx, r.Operations)
	if err != nil {
		return view{}, err
	}
	var v signedView
	var query []string // of the form
	if choices, err := url.ParseQuery(r.Again); err == nil && len(r.Again) <= maxKept {
		query = append(query, keep(choices.Get))
	}
	v.Again = formAt(query)
	var ids, left []string
	for _, o := range list {
		s := shownOperation(visitorOf(ctx).words, o)
		s.Number = len(v.Operations) + 1
		s.AwaitsPIN = o.AwaitsPIN != nil && o.Owner.ClientID == a.settings.ClientID
		v.Running = v.Running || o.State == operation.Confirmed && o.StartsAlone() && o.AwaitsPIN == nil
		for _, d := range s.Documents {
			if d.RefID != "" {
				v.Done++
			}
		}
		v.Failed += s.failed
		left = append(left, s.left...)
		v.Waits = v.Waits || !s.Before.IsZero()
		v.Operations = append(v.Operations, s)
		ids = append(ids, o.ID)
	}
	if v.Done > 1 {
		v.All = "/signed/all.zip?" + queryOf(ids)
	}
	if len(left) > 0 && len(left) <= maxRetried {
		v.Retry = formAt(append(query, storedQuery(left)))
	}
	shown := view{template: "sign/signed", title: "signed.title", content: v}
	if v.Running {
		shown.script = waitScript
	}
	return shown, nil
}

// shownOperation describes an operation and its documents.
func shownOperation(w *words, o *operation.Operation) signedOperation {
	s := signedOperation{ID: o.ID, State: "operation." + string(o.State)}
	if name := formatIn(o); name != "" {
		s.Format = "format." + name
	}
	if o.State == operation.Created || o.State == operation.Challenged {
		s.Before = o.ConfirmBefore
	}
	if o.Fault != nil {
		s.Failed, s.Detail = w.refusal(o.Fault)
	}
	for i := range o.Documents {
		d := &o.Documents[i]
		one := signedDocument{Name: visible(d.OriginalName), Result: visible(d.Name), RefID: d.RefID, State: "document.waits"}
		switch {
		case d.Declined:
			one.State = "document.declined"
		case d.Fault == nil && d.Name != "":
			one.State = "document.signed"
		case d.Fault != nil || !o.State.Active():
			one.State = "document.failed"
			if d.Fault != nil {
				one.Failed, one.Detail = w.refusal(d.Fault)
			}
			s.failed++
			for _, id := range []string{d.OriginalRef, d.Related} {
				if id != "" && !slices.Contains(s.left, id) {
					s.left = append(s.left, id)
				}
			}
		}
		s.Documents = append(s.Documents, one)
	}
	switch {
	case o.State != operation.Completed || s.failed == 0:
	case s.failed == len(s.Documents):
		s.State = "operation." + string(operation.Error)
	default:
		s.State = "operation.Partly"
	}
	return s
}

// formatIn returns the name of the format that an operation signs in, "" if its parameters do not
// say it: those of Office documents have none.
func formatIn(o *operation.Operation) string {
	var params map[string]string
	if err := json.Unmarshal([]byte(o.Parameters), &params); err != nil {
		return ""
	}
	for i := range formats {
		for _, level := range formats[i].params {
			same := len(level) > 0
			for key, value := range level {
				same = same && params[key] == value
			}
			if same {
				return formats[i].Name
			}
		}
	}
	if len(o.Documents) > 0 {
		if f := formatOf(o.Documents[0].OriginalName); f.Type == "MSOffice" && len(params) == 0 {
			return f.Name
		}
	}
	return ""
}

// download answers one signed document. A browser saves it and never shows it, because its
// content may be a stranger's.
func (a *API) download(ctx context.Context, r struct {
	Ref string `path:"ref"`
}) (rest.File, error) {
	d, err := a.Documents.Open(ctx, rest.Caller(ctx), r.Ref)
	if err != nil {
		return rest.File{}, err
	}
	rest.Afterwards(ctx, d)
	rest.Concerning(ctx, "document "+d.ID)
	return rest.File{Content: d, Name: cmp.Or(d.Name, "document")}, nil
}
