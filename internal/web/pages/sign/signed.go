// SPDX-License-Identifier: Apache-2.0

package sign

import (
	"cmp"
	"context"
	"encoding/json"
	"net/url"
	"slices"
	"time"
	"unicode"
	"unicode/utf8"

	"tamga/internal/domain/operation"
	"tamga/internal/domain/signing"
	"tamga/internal/web/pages/view"
	"tamga/internal/web/rest"
)

// signedView is the state of what was signed.
type signedView struct {
	Operation signedOperation
	All       string // address of all results together; "" for fewer than two
	Done      int    // documents that are signed
	Failed    int    // documents that are not signed, without those that a person declined
	Retry     string // address of the form with the documents that are not signed; "" for none
	Again     string // address of the form with the same choices
	Running   bool   // it is carried out
}

type signedOperation struct {
	Format    string // key of the word; "": not known, or several
	ID        string
	State     string // key of the word
	Failed    string // why the whole operation failed; "" if it did not
	Detail    string
	Documents []signedDocument // by their formats
	Before    time.Time        // zero, or the time until which it must be confirmed
	AwaitsPIN bool             // it is confirmed, and waits for the PIN of the key
	left      []string         // identifiers of the stored documents that are not signed, and of those beside them
	failed    int              // documents that are not signed
}

type signedDocument struct {
	Name, Result, RefID string
	State               string // key of the word
	Failed, Detail      string
	Format              string // for people, of the first document in one of several formats
	way                 int
}

func (a *API) signed(ctx context.Context, r struct {
	Operation string `query:"operation"`
	Again     string `query:"again"`
}) (view.View, error) {
	o, err := a.Operations.Find(ctx, rest.Caller(ctx), r.Operation)
	if err != nil {
		return view.View{}, err
	}
	rest.Afterwards(ctx, o)
	var query []string // of the form
	if choices, err := url.ParseQuery(r.Again); err == nil && len(r.Again) <= maxKept {
		query = append(query, keep(choices.Get))
	}
	v := signedView{Operation: shownOperation(view.VisitorOf(ctx).Words, a.Forms, o), Again: formAt(query)}
	s := &v.Operation
	s.AwaitsPIN = o.AwaitsPIN != nil && o.Owner.ClientID == a.ClientID
	v.Running = o.State == operation.Confirmed && o.StartsAlone() && o.AwaitsPIN == nil
	for _, d := range s.Documents {
		if d.RefID != "" {
			v.Done++
		}
	}
	if v.Failed = s.failed; v.Done > 1 {
		v.All = "/signed/all.zip?operation=" + url.QueryEscape(o.ID)
	}
	if len(s.left) > 0 && len(s.left) <= maxRetried {
		v.Retry = formAt(append(query, storedQuery(s.left)))
	}
	shown := view.View{Template: "sign/signed", Title: "signed.title", Content: v}
	if v.Running {
		shown.Script = view.WaitScript
	}
	return shown, nil
}

// shownOperation describes an operation and its documents.
func shownOperation(w *view.Words, forms []signing.Form, o *operation.Operation) signedOperation {
	s := signedOperation{ID: o.ID, State: "operation." + string(o.State)}
	in := formsIn(forms, o)
	if len(in) == 1 && in[0] != nil {
		s.Format = wayToSign(w, *in[0])
	}
	if o.State == operation.Created || o.State == operation.Challenged {
		s.Before = o.ConfirmBefore
	}
	if o.Fault != nil {
		s.Failed, s.Detail = w.Refusal(o.Fault)
	}
	for i := range o.Documents {
		d := &o.Documents[i]
		one := signedDocument{Name: view.Visible(d.OriginalName), Result: view.Visible(d.Name), RefID: d.RefID, State: "document.waits", way: d.Way}
		switch {
		case d.Declined:
			one.State = "document.declined"
		case d.Fault == nil && d.Name != "":
			one.State = "document.signed"
		case d.Fault != nil || !o.State.Active():
			one.State = "document.failed"
			if d.Fault != nil {
				one.Failed, one.Detail = w.Refusal(d.Fault)
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
	slices.SortStableFunc(s.Documents, func(a, b signedDocument) int { return cmp.Compare(a.way, b.way) })
	for i := range s.Documents {
		d := &s.Documents[i]
		if len(in) > 1 && d.way < len(in) && in[d.way] != nil && (i == 0 || s.Documents[i-1].way != d.way) {
			d.Format = wayToSign(w, *in[d.way])
		}
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

// formsIn returns the forms in which an operation signs, by the ways of its documents. One is nil if the
// parameters do not say it.
func formsIn(forms []signing.Form, o *operation.Operation) (list []*signing.Form) {
	var several struct {
		Ways []struct {
			Type       string
			Parameters map[string]string
		}
	}
	if err := json.Unmarshal([]byte(o.Parameters), &several); err == nil && len(several.Ways) > 0 {
		for _, w := range several.Ways {
			list = append(list, formWith(forms, w.Type, w.Parameters))
		}
		return list
	}
	var params map[string]string
	if err := json.Unmarshal([]byte(o.Parameters), &params); err != nil {
		return []*signing.Form{nil}
	}
	if len(params) == 0 && len(o.Documents) > 0 { // some formats have no parameters
		if f := signing.FormOf(forms, o.Documents[0].OriginalName); f != nil && len(f.Params[signing.LevelBasic]) == 0 {
			return []*signing.Form{f}
		}
	}
	return []*signing.Form{formWith(forms, "", params)}
}

// formWith returns the form with a type and parameters, nil if there is none. Without a type the
// parameters decide.
func formWith(forms []signing.Form, signatureType string, params map[string]string) *signing.Form {
	for i := range forms {
		if signatureType != "" && signatureType != forms[i].Type {
			continue
		}
		for _, level := range forms[i].Params {
			same := len(level) > 0 || signatureType != ""
			for key, value := range level {
				same = same && params[key] == value
			}
			if same {
				return &forms[i]
			}
		}
	}
	return nil
}

// download answers one signed document.
func (a *API) download(ctx context.Context, r struct {
	Ref string `path:"ref"`
}) (rest.File, error) {
	return view.Download(ctx, a.Documents, r.Ref)
}

// downloadAll answers every signed document of an operation as one archive.
func (a *API) downloadAll(ctx context.Context, r struct {
	Operation string `query:"operation"`
}) (rest.File, error) {
	o, err := a.Operations.Find(ctx, rest.Caller(ctx), r.Operation)
	if err != nil {
		return rest.File{}, err
	}
	rest.Afterwards(ctx, o)
	return view.DownloadAll(ctx, a.Documents, o, "signed.zip")
}

// wayToSign returns a way to sign in words: a format that the pages have no words for says it itself.
func wayToSign(w *view.Words, f signing.Form) string {
	if text, ok := w.Lookup("format." + f.Name); ok {
		return text
	}
	first, size := utf8.DecodeRuneInString(f.Noun)
	return string(unicode.ToUpper(first)) + f.Noun[size:]
}
