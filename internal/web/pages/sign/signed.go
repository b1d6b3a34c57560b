// SPDX-License-Identifier: Apache-2.0

package sign

import (
	"cmp"
	"context"
	"encoding/json"
	"net/url"
	"path"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"tamga/internal/domain/document"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/operation"
	"tamga/internal/domain/signing"
	"tamga/internal/domain/waiting"
	"tamga/internal/web/pages/view"
	"tamga/internal/web/rest"
)

// signedView is the state of what was signed.
type signedView struct {
	Operation signedOperation
	Verdict   string // of the seal
	Headline  string
	Sentence  string
	Ready     []signedDocument
	Bad       []signedDocument  // that could not be signed
	Others    []signedDocument  // that wait or were declined
	Until     time.Time         // when the results are deleted; zero: not by themselves
	Kept      bool              // they have just been made permanent
	Verifies  bool              // there is a page to verify at
	Cards     string            // key of what a card is; "": none are made
	All       string            // address of all results together; "" for fewer than two
	Retry     string            // address of the form with the documents that are not signed; "" for none
	By        *view.Certificate // that signed; nil: not known
	Confirmed string            // how the person has confirmed; "": without a confirmation, or not known
	Here      string            // address of this page
	Again     string            // address of the form with the same choices
	Running   bool              // it is carried out
	Wait      view.Wait         // for its end, or for its confirmation
}

type signedOperation struct {
	Format    string // for people; "": not known
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
	Record              string // address of its entry in the register; "": not known
	Failed, Detail      string
	Kind, Hint          string
	way                 int
}

func (a *API) signed(ctx context.Context, r struct {
	Operation string `query:"operation"`
	Again     string `query:"again"`
	Done      string `query:"done"`
}) (view.View, error) {
	wait, err := view.WaitFor(ctx, waiting.Operation, r.Operation)
	if err != nil {
		return view.View{}, err
	}
	o, err := a.Operations.Find(ctx, rest.Caller(ctx), r.Operation)
	if err != nil {
		return view.View{}, err
	}
	rest.Afterwards(ctx, o)
	var query []string // of the form
	if choices, err := url.ParseQuery(r.Again); err == nil && len(r.Again) <= maxKept {
		query = append(query, keep(choices.Get))
	}
	w := view.VisitorOf(ctx).Words
	v := signedView{Operation: shownOperation(w, a.Forms, o), Again: formAt(query), Here: view.VisitorOf(ctx).Here, Verifies: a.Verifier != nil, Cards: a.cardHint(ctx)}
	s := &v.Operation
	s.AwaitsPIN = o.AwaitsPIN != nil && o.Owner.ClientID == a.ClientID
	v.Running = o.State == operation.Confirmed && o.StartsAlone() && o.AwaitsPIN == nil
	for _, d := range s.Documents {
		switch {
		case d.State == "document.signed":
			v.Ready = append(v.Ready, d)
		case d.State == "document.failed":
			v.Bad = append(v.Bad, d)
		default:
			v.Others = append(v.Others, d)
		}
	}
	if err := a.recorded(ctx, w, o.ID, &v); err != nil {
		return view.View{}, err
	}
	v.say(w, o)
	if v.Until, err = a.expiry(ctx, v.Ready); err != nil {
		return view.View{}, err
	}
	v.Kept = r.Done == "kept" && v.Until.IsZero()
	if len(v.Ready) > 1 {
		v.All = "/signed/all.zip?operation=" + url.QueryEscape(o.ID)
	}
	if len(s.left) > 0 && len(s.left) <= maxRetried {
		v.Retry = formAt(append(query, storedQuery(s.left)))
	}
	shown := view.View{Template: "sign/signed", Title: "signed.title", Content: v}
	if v.Running || !s.Before.IsZero() {
		v.Wait = wait
		shown.Content = v
		shown.Script = view.WaitScript
	}
	return shown, nil
}

// recorded adds what the register has of the signatures: their entries, the certificate and how they were confirmed.
func (a *API) recorded(ctx context.Context, w *view.Words, operation string, v *signedView) error {
	if len(v.Ready) == 0 {
		return nil
	}
	list, err := a.Registered(ctx, rest.Caller(ctx), operation)
	if _, refused := fault.As(err); refused || err == nil && len(list) == 0 { // the log may be kept for a shorter time
		return nil
	}
	if err != nil {
		return err
	}
	for i := range v.Ready {
		if at := slices.IndexFunc(list, func(s signing.Signature) bool { return s.Result == v.Ready[i].RefID && s.Result != "" }); at >= 0 {
			v.Ready[i].Record = "/signatures/" + list[at].Operation + "/" + list[at].Document
		}
	}
	v.Confirmed = w.ConfirmedBy(list[0].Method, list[0].Label)
	certificates, err := view.CertificatesOf(ctx, a.Certificates, a.Now())
	if err != nil {
		return err
	}
	if i := slices.IndexFunc(certificates, func(c view.Certificate) bool { return c.ID == list[0].Certificate }); i >= 0 {
		v.By = &certificates[i]
	}
	return nil
}

// say says what the case is.
func (v *signedView) say(w *view.Words, o *operation.Operation) {
	done, bad := len(v.Ready), len(v.Bad)
	switch {
	case done > 0:
		v.Verdict, v.Headline = passed, w.Count("signed.done", done)
		if bad > 0 {
			v.Headline += ", " + w.Count("signed.failed", bad)
		}
		if !o.CompletedAt.IsZero() {
			v.Sentence = w.Text("signed.at", w.When(o.CompletedAt))
			if v.By != nil {
				v.Sentence += " " + w.Text("verify.owner", v.By.Owner)
			}
		}
	case bad > 0:
		v.Verdict, v.Headline = failed, w.Count("signed.failed_title", bad)
	case !v.Operation.Before.IsZero():
		v.Verdict, v.Headline = indeterminate, w.Count("signed.waiting", len(v.Others))
	case o.State == operation.Confirmed:
		v.Verdict, v.Headline = indeterminate, w.Text("signed.under_way")
	default:
		v.Verdict, v.Headline = failed, w.Text(v.Operation.State)
	}
}

// expiry returns when the first of the results is deleted, zero if none of those that are stored is.
func (a *API) expiry(ctx context.Context, ready []signedDocument) (first time.Time, err error) {
	for i := range ready {
		if ready[i].RefID == "" {
			continue
		}
		info, err := a.Documents.Info(ctx, rest.Caller(ctx), ready[i].RefID)
		switch {
		case fault.Is(err, fault.NotFound): // it is deleted
			ready[i].RefID = ""
		case err != nil:
			return first, err
		case info.Temporary() && (first.IsZero() || info.Expires.Before(first)):
			first = info.Expires
		}
	}
	return first, nil
}

// keepSigned makes the results of an operation permanent.
func (a *API) keepSigned(ctx context.Context, r struct{ Body rest.Form }) (rest.Redirect, error) {
	who, temporary := rest.Caller(ctx), false
	o, err := a.Operations.Find(ctx, who, r.Body.Get("operation"))
	if err != nil {
		return rest.Redirect{}, err
	}
	rest.Afterwards(ctx, o)
	rest.Concerning(ctx, o.ID)
	for _, d := range o.Documents {
		if d.RefID == "" {
			continue
		}
		if err := a.Documents.Patch(ctx, who, d.RefID, document.Change{Temporary: &temporary}); err != nil && !fault.Is(err, fault.NotFound) {
			return rest.Redirect{}, err
		}
	}
	return view.SeeOther(view.SignedAt(o.ID) + "&done=kept"), nil
}

// isSignature reports whether a name is that of a signature in a file of its own.
func isSignature(name string) bool {
	return slices.Contains(signatureEndings, strings.ToLower(path.Ext(name)))
}

// resultName returns the name of a result for people. A result whose signature is inside the document has the name of
// the document, and both may be in one folder.
func resultName(w *view.Words, original, result string) string {
	if result == "" || result != original || isSignature(result) {
		return result
	}
	return view.Numbered(result, " ("+w.Text("signed.suffix")+")")
}

// hint says where the signature of a result is.
func hint(w *view.Words, original, result string) string {
	switch {
	case result == "":
		return ""
	case stemOf(result) == original && original != "":
		return w.Text("signed.beside", view.Visible(original))
	case isSignature(result):
		return ""
	}
	return w.Text("signed.inside")
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
		one := signedDocument{Name: view.Visible(d.OriginalName), Result: view.Visible(resultName(w, d.OriginalName, d.Name)), Kind: view.KindIn(d.OriginalName), Hint: hint(w, d.OriginalName, d.Name), RefID: d.RefID, State: "document.waits", way: d.Way}
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
	if len(in) > 1 {
		var kinds []string
		for _, f := range in {
			if f != nil {
				kinds = append(kinds, wayToSign(w, *f))
			}
		}
		s.Format = strings.Join(kinds, "; ")
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

// download answers one signed document. A browser saves it and never shows it, because its
// content is untrusted.
func (a *API) download(ctx context.Context, r struct {
	Ref string `path:"ref"`
}) (rest.File, error) {
	return view.Download(ctx, a.Documents, r.Ref, func(d *document.Stored) (string, error) {
		if d.Parent == "" || isSignature(d.Name) {
			return d.Name, nil
		}
		from, err := a.Documents.Info(ctx, rest.Caller(ctx), d.Parent)
		if err != nil && !fault.Is(err, fault.NotFound) {
			return "", err
		}
		return resultName(view.VisitorOf(ctx).Words, from.Name, d.Name), nil
	})
}

// wayToSign returns a way to sign in words: a format that the pages have no words for says it itself.
func wayToSign(w *view.Words, f signing.Form) string {
	if text, ok := w.Lookup("format." + f.Name); ok {
		return text
	}
	first, size := utf8.DecodeRuneInString(f.Noun)
	return string(unicode.ToUpper(first)) + f.Noun[size:]
}
