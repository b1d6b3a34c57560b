// SPDX-License-Identifier: Apache-2.0

package sign

import (
	"context"
	"path"
	"slices"
	"strings"

	"tamga/internal/domain/audit"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/signing"
	"tamga/internal/web/pages/view"
	"tamga/internal/web/rest"
)

// Raiser raises signatures to higher levels; see [signing.Service].
type Raiser interface {
	Raise(ctx context.Context, who audit.Principal, o *signing.RaiseOrder) (signing.Result, error)
	// Raises reports whether signatures of a type have higher levels.
	Raises(signatureType string) bool
}

// offerRaise has the results lead people who are signed in to the form that raises signatures.
func (a *API) offerRaise(ctx context.Context, v *verifyView) {
	if a.Raiser == nil || view.CallerOf(ctx).UserID == "" {
		return
	}
	for i := range v.Results {
		r := &v.Results[i]
		r.Raise = r.Verdict == passed && len(r.Signatures) > 0 && a.Raiser.Raises(r.kind)
	}
}

// enhanceView is the form that raises signatures.
type enhanceView struct {
	MaxBytes view.Bytes
	Levels   []level // the highest first: it is what a person comes for
	Services []string
}

func (a *API) enhanceForm(ctx context.Context, _ struct{}) (view.View, error) {
	services, err := a.TSPServices(ctx)
	if err != nil {
		return view.View{}, err
	}
	v := enhanceView{MaxBytes: view.Bytes(a.MostVerified)}
	for _, s := range services {
		v.Services = append(v.Services, s.URL)
	}
	for _, l := range slices.Backward(levels) {
		if l.of > signing.LevelBasic {
			v.Levels = append(v.Levels, l)
		}
	}
	return view.View{Template: "sign/enhance", Title: "enhance.title", Script: view.DropScript + view.UploadScript, Content: v}, nil
}

// enhance raises the signatures of a file of a form and answers the file. A detached signature may come with its document.
func (a *API) enhance(ctx context.Context, docs *rest.Documents[*signing.Intake], r struct {
	Body rest.Parts `many:"file"`
}) (rest.File, error) {
	var files []sent
	fields, err := view.ReadUpload(r.Body, docs, maxField, func(_, name string, content *signing.Intake) error {
		if content.Size() == 0 && name == "" {
			return nil // the browser sends an empty part for no file
		}
		if len(files) == 2 {
			return fault.New(fault.InvalidParameters, "choose one signed file, and its document if the signature is in a file of its own")
		}
		files = append(files, sent{name: name, content: content})
		return nil
	})
	if err != nil {
		return rest.File{}, err
	}
	signed, order, err := a.raiseOrder(ctx, files)
	if err != nil {
		return rest.File{}, err
	}
	order.Service, order.Password = fields.Get("service"), fields.Get("password")
	at := slices.IndexFunc(levels, func(l level) bool { return l.Name == fields.Get("level") })
	if at < 0 || levels[at].of <= signing.LevelBasic {
		return rest.File{}, fault.New(fault.InvalidParameters, "choose the level")
	}
	order.Level = levels[at].of
	result, err := a.Raiser.Raise(ctx, view.CallerOf(ctx), order)
	if err != nil {
		return rest.File{}, err
	}
	return rest.File{Content: result, Name: raisedName(view.VisitorOf(ctx).Words, signed.name), Type: "application/octet-stream"}, nil
}

// raiseOrder finds the signed file of a form. The other file is its document.
func (a *API) raiseOrder(ctx context.Context, files []sent) (signed *sent, o *signing.RaiseOrder, err error) {
	if len(files) == 0 {
		return nil, nil, fault.New(fault.ContentRequired, "choose the signed file")
	}
	for i := range files {
		if files[i].kind, err = a.Verifier.TypeOf(ctx, files[i].content); err != nil {
			return nil, nil, err
		}
	}
	at := slices.IndexFunc(files, func(f sent) bool { return f.kind != "" })
	if len(files) == 2 && at == 0 && strings.EqualFold(stemOf(files[1].name), files[0].name) && files[1].kind != "" {
		at = 1 // the document has signatures of its own
	}
	if at < 0 {
		return nil, nil, fault.New(fault.InvalidContent, "the file is not a signed document: choose a signature, or a file with signatures")
	}
	o = &signing.RaiseOrder{Content: files[at].content}
	if len(files) == 2 {
		o.Original = files[1-at].content
	}
	return &files[at], o, nil
}

// raisedName returns the name of a raised file. A detached signature keeps the name that leads to its document.
func raisedName(w *view.Words, name string) string {
	name = rest.FileName(name)
	if stemOf(name) != "" {
		return name
	}
	ext := path.Ext(name)
	return strings.TrimSuffix(name, ext) + " (" + w.Text("enhance.suffix") + ")" + ext
}
