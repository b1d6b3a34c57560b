// SPDX-License-Identifier: Apache-2.0

package encryption

import (
	"context"
	"errors"
	"slices"
	"strings"

	"tamga/internal/domain/document"
	"tamga/internal/domain/encryption"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/notify"
	"tamga/internal/domain/operation"
	"tamga/internal/web/pages/view"
	"tamga/internal/web/rest"
)

// maxFields bounds the bytes of the fields beside the files: certificates are among them.
const maxFields = 256 << 10

// storedFile is a file that is on the server already, so that a form can be sent again without it.
type storedFile struct {
	ID, Name string
	Size     int64
	Kind     string // ending of the name, for its sign

	Opens   []view.Certificate // of the reader, the one that is taken first
	Problem string             // why none opens it
}

// describeFile returns a stored file for a form.
func describeFile(info *document.Info) storedFile {
	return storedFile{ID: info.ID, Name: view.Visible(info.Name), Size: info.Size, Kind: view.KindIn(info.Name)}
}

// upload is what a form has sent. Files are stored as soon as they are here.
type upload struct {
	fields rest.Form
	small  []smallFile
	stored []document.Info
	empty  []string // names of files without content
	wrong  []error  // why the form is refused
}

// refuse keeps a refusal, since a form says all that is wrong with it. An error that is none is returned.
func (u *upload) refuse(err error) error {
	_, refused := fault.As(err)
	if _, away := fault.AsOutage(err); err == nil || !refused || away {
		return err
	}
	u.wrong = append(u.wrong, err)
	return nil
}

// smallFile is a file that is not a document, such as a certificate.
type smallFile struct {
	name    string
	content []byte
}

// read reads a form and stores its files, in the field "file" and in a folder. Files that were stored before are named in
// the field "stored". small is the field for certificates. A file whose name is refused is left out, and the others are
// kept.
func (a *API) read(ctx context.Context, docs *rest.Documents[*document.Intake], parts rest.Parts, small string, u *upload) (err error) {
	var sent []document.New
	refused := 0 // more than a form takes
	form := view.Upload[*document.Intake]{
		Most: maxFields, Folder: "folder", At: a.Now(), Small: small,
		Refuse: func(err error) error { return u.refuse(ofField{err, "file", ""}) },
		Take: func(name string, content []byte) error {
			if len(content) > 0 {
				u.small = append(u.small, smallFile{name, content})
			}
			return nil
		},
		Each: func(_, name string, content *document.Intake) error {
			d := document.New{Content: content, Description: document.Description{Name: name, Temporary: true}}
			if content.Size() == 0 {
				if name != "" {
					u.empty = append(u.empty, notify.OneLine(name))
				}
				return nil
			}
			if err := document.Check(&d.Description); err != nil {
				return u.refuse(fault.Newf(fault.DocumentInfoInvalid, "the name of the file %.64q is too long, or has characters that no name may have: rename it", notify.OneLine(name)).With(err))
			}
			if len(sent) == view.MaxFiles {
				refused++
				return nil
			}
			sent = append(sent, d)
			return nil
		},
	}
	if u.fields, err = form.Read(parts, docs); err != nil {
		return err
	}
	who := rest.Caller(ctx)
	for _, id := range u.fields["stored"] {
		info, err := a.Documents.Info(ctx, who, id)
		switch {
		case fault.Is(err, fault.NotFound): // its time is over
		case err != nil:
			return err
		default:
			u.stored = append(u.stored, info)
		}
	}
	if free := max(0, view.MaxFiles-len(u.stored)); len(sent) > free {
		refused += len(sent) - free
		sent = sent[:free]
	}
	if refused > 0 {
		u.wrong = append(u.wrong, ofField{fault.Newf(fault.InvalidParameters, "at most %d files are taken at once: those beyond are left out", view.MaxFiles), "file", ""})
	}
	if len(sent) == 0 {
		return nil
	}
	kept, err := a.Documents.Keep(ctx, who, sent)
	u.stored = append(u.stored, kept...)
	return err
}

// check refuses an upload without files, and one with empty files.
func (u *upload) check() error {
	switch {
	case len(u.wrong) > 0: // a file may be missing because of that
		return nil
	case len(u.empty) > 0:
		return fault.Newf(fault.ContentRequired, "the file %.64q is empty: leave it out", u.empty[0])
	case len(u.stored) == 0:
		return fault.New(fault.ContentRequired, "choose at least one file")
	}
	return nil
}

// inputs returns the documents of an order.
func (u *upload) inputs() []encryption.Input {
	list := make([]encryption.Input, len(u.stored))
	for i := range u.stored {
		list[i] = encryption.Input{RefID: u.stored[i].ID, Name: u.stored[i].Name}
	}
	return list
}

// problems are what is wrong with a form, by its fields; "" is the form as a whole.
type problems map[string]string

// ofField is a refusal of which the field is known. before is what its text begins with.
type ofField struct {
	error
	field, before string
}

// Unwrap returns the refusal.
func (o ofField) Unwrap() error { return o.error }

// problemsOf puts refusals beside their fields. codes name the fields by the codes of faults.
func (u *upload) problemsOf(w *view.Words, codes map[string]string) problems {
	list := problems{}
	for _, err := range u.wrong {
		f, _ := fault.As(err)
		field, text := codes[f.Code], w.Say(f)
		if of, one := errors.AsType[operation.OfDocument](err); one && of.Index < len(u.stored) {
			field, text = "file", view.Visible(u.stored[of.Index].Name)+": "+text
		}
		if of, known := errors.AsType[ofField](err); known {
			field, text = of.field, of.before+text
		}
		if list[field] != "" {
			text = list[field] + " " + text
		}
		list[field] = text
	}
	return list
}

// sentForm is a form of this area that was sent.
type sentForm interface {
	sent() *upload
	// read reads the fields besides the files. What is wrong with them is refused, and what is right is kept.
	read(ctx context.Context) error
	// looks reports whether the form is only shown again, with what is known now.
	looks() bool
	// order begins the operation, and returns where its page is.
	order(ctx context.Context) (*operation.Operation, string, error)
	// page returns the form with its state.
	page(ctx context.Context) (view.View, error)
}

// submit does what a form says. Whatever it refuses, its page is the form with all that was sent but secrets. small is
// the field for certificates.
func (a *API) submit(ctx context.Context, docs *rest.Documents[*document.Intake], parts rest.Parts, small string, form sentForm) (any, error) {
	u := form.sent()
	if err := u.refuse(a.read(ctx, docs, parts, small, u)); err != nil {
		return nil, err
	}
	if err := form.read(ctx); err != nil {
		return nil, err
	}
	if len(u.wrong) == 0 && form.looks() {
		v, err := form.page(ctx)
		if err != nil {
			return nil, err
		}
		return v.Render(ctx)
	}
	if len(u.wrong) == 0 {
		o, to, err := form.order(ctx)
		if err == nil {
			rest.Afterwards(ctx, o)
			return rest.Redirect{Location: to, See: true}, nil
		}
		if err := u.refuse(err); err != nil {
			return nil, err
		}
	}
	v, err := form.page(ctx)
	if err != nil {
		return nil, err
	}
	return nil, again{u.wrong[0], v}
}

// again is a refusal whose page is the form with everything that was sent.
type again struct {
	error
	view view.View
}

func (r again) Unwrap() error { return r.error }

// Again implements view.Refused.
func (r again) Again(view.Refusal) view.View { return r.view }

// storedOf returns the files of an address, without those that are not stored any more.
func (a *API) storedOf(ctx context.Context, ids string) (list []document.Info, err error) {
	named := strings.FieldsFunc(ids, func(r rune) bool { return r == ',' })
	for _, id := range named[:min(len(named), maxRetried)] {
		info, err := a.Documents.Info(ctx, rest.Caller(ctx), id)
		switch {
		case err == nil:
			list = append(list, info)
		case !fault.Is(err, fault.NotFound):
			return nil, err
		}
	}
	return list, nil
}

// maxRetried are the stored files that an address names, at most.
const maxRetried = 50

// leftOf returns the address of a form with the files that have no result, "" for none.
func leftOf(form string, o *operation.Operation) string {
	var ids []string
	for i := range o.Documents {
		if d := &o.Documents[i]; d.Fault != nil && d.OriginalRef != "" && !slices.Contains(ids, d.OriginalRef) {
			ids = append(ids, d.OriginalRef)
		}
	}
	if len(ids) == 0 || len(ids) > maxRetried {
		return ""
	}
	return form + "?stored=" + strings.Join(ids, ",")
}
