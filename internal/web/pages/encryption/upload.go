// SPDX-License-Identifier: Apache-2.0

package encryption

import (
	"context"
	"errors"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"tamga/internal/domain/document"
	"tamga/internal/domain/encryption"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/notify"
	"tamga/internal/domain/operation"
	"tamga/internal/web/pages/view"
	"tamga/internal/web/rest"
)

const (
	maxFields = 256 << 10 // bytes of the fields beside the files: certificates are among them
	maxName   = 255       // characters of the name of a stored document
)

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
	f := storedFile{ID: info.ID, Name: view.Visible(info.Name), Size: info.Size}
	if ending := strings.TrimPrefix(path.Ext(info.Name), "."); len(ending) > 0 && len(ending) <= 5 && !strings.ContainsFunc(ending, func(r rune) bool { return r > '~' || r <= ' ' }) {
		f.Kind = strings.ToUpper(ending)
	}
	return f
}

// upload is what a form has sent. Files are stored as soon as they are here.
type upload struct {
	fields rest.Form
	small  []smallFile
	stored []document.Info
	empty  []string // names of files without content
}

// smallFile is a file that is not a document, such as a certificate.
type smallFile struct {
	name    string
	content []byte
}

// read reads a form and stores its files, in the field "file" and in a folder. Files that were stored before are named in
// the field "stored". small is the field for certificates.
func (a *API) read(ctx context.Context, docs *rest.Documents[*document.Intake], parts rest.Parts, small string) (u upload, err error) {
	tooMany := fault.Newf(fault.InvalidParameters, "at most %d files are taken at once", view.MaxFiles)
	var sent []document.New
	form := view.Upload[*document.Intake]{
		Most: maxFields, Folder: "folder", At: a.Now(), Small: small,
		Take: func(name string, content []byte) error {
			if len(content) > 0 {
				u.small = append(u.small, smallFile{name, content})
			}
			return nil
		},
		Each: func(_, name string, content *document.Intake) error {
			if content.Size() == 0 {
				if name != "" {
					u.empty = append(u.empty, notify.OneLine(name))
				}
				return nil
			}
			if len(sent) == view.MaxFiles {
				return tooMany
			}
			sent = append(sent, document.New{Content: content, Description: document.Description{Name: name, Temporary: true}})
			return nil
		},
	}
	if u.fields, err = form.Read(parts, docs); err != nil {
		return u, err
	}
	who := rest.Caller(ctx)
	for _, id := range u.fields["stored"] {
		info, err := a.Documents.Info(ctx, who, id)
		switch {
		case fault.Is(err, fault.NotFound): // its time is over
			continue
		case err != nil:
			return u, err
		}
		u.stored = append(u.stored, info)
	}
	if len(u.stored)+len(sent) > view.MaxFiles {
		return u, tooMany
	}
	if len(sent) == 0 {
		return u, nil
	}
	kept, err := a.Documents.Keep(ctx, who, sent)
	if fault.Is(err, fault.DocumentInfoInvalid) { // a name
		for _, d := range sent {
			if name := d.Description.Name; utf8.RuneCountInString(name) > maxName || notify.OneLine(name) != strings.TrimSpace(name) {
				u.empty = nil
				return u, fault.Newf(fault.DocumentInfoInvalid, "the name of the file %.64q is too long, or has characters that no name may have: rename it", notify.OneLine(name)).With(err)
			}
		}
	}
	u.stored = append(u.stored, kept...)
	return u, err
}

// check refuses an upload without files, and one with empty files.
func (u *upload) check() error {
	switch {
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

// problemOf puts a fault of an order beside its field. codes name the fields by the codes of faults. Any other error is
// returned.
func problemOf(w *view.Words, err error, files []document.Info, codes map[string]string) (problems, error) {
	f, refused := fault.As(err)
	if _, away := fault.AsOutage(err); !refused || away {
		return nil, err
	}
	field := codes[f.Code]
	text := sayProblem(w, f)
	if of, one := errors.AsType[operation.OfDocument](err); one && of.Index < len(files) {
		field, text = "file", view.Visible(files[of.Index].Name)+": "+text
	}
	return problems{field: text}, nil
}

// sayProblem returns a fault in words.
func sayProblem(w *view.Words, f *fault.Error) string {
	sentence, detail := w.Refusal(f)
	if detail == "" {
		return sentence
	}
	if own := w.Own(detail); own != "" {
		return sentence + " " + own
	}
	return sentence + " " + w.Text("fault.english") + " " + detail
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
