// SPDX-License-Identifier: Apache-2.0

package view

import (
	"errors"
	"io"
	"strings"
	"time"

	"tamga/internal/domain/fault"
	"tamga/internal/web/rest"
)

// MaxFiles are the files of one upload, at most.
const MaxFiles = 200

// The fields of a form with files take memory besides their texts: sizeOfField bytes each. There is
// room for it and for the names in roomOfFields: for a form with maxFiles stored documents and more.
const (
	sizeOfField  = 128
	roomOfFields = 64 << 10
)

// ReadUpload reads the parts of a form in the order in which the browser sends them, and
// calls each with every file. It returns the other fields, whose names and texts have at most so many
// bytes together, besides roomOfFields.
func ReadUpload[S rest.Sink[S]](parts rest.Parts, docs *rest.Documents[S], most int64, each func(field, name string, content S) error) (rest.Form, error) {
	u := Upload[S]{Most: most, Each: each}
	return u.Read(parts, docs)
}

// Upload reads a form with files that are not all documents; see [ReadUpload].
type Upload[S rest.Sink[S]] struct {
	Most int64 // bytes of the other fields and of small files
	Each func(field, name string, content S) error

	Folder string    // field for a folder, whose files become one archive: Each gets it after all files
	At     time.Time // of the files in the archive
	Small  string    // field for small files
	// Take gets each file of Small.
	Take func(name string, content []byte) error
	// Refuse keeps the refusal of files that are too many, so that the fields after them are read; nil: reading ends with it.
	// A folder of which a file is refused is left out.
	Refuse func(err error) error

	left    int64
	folder  *folder[S]
	dropped bool // the folder is left out
	full    bool // files are left out
}

// Read reads the form.
func (u *Upload[S]) Read(parts rest.Parts, docs *rest.Documents[S]) (rest.Form, error) {
	fields := rest.Form{}
	u.left = u.Most + roomOfFields
	for {
		p, err := parts.Next()
		switch {
		case err == io.EOF && u.folder == nil:
			return fields, nil
		case err == io.EOF:
			if err := u.folder.close(); err != nil {
				return nil, err
			}
			return fields, u.Each(u.Folder, u.folder.name+".zip", u.folder.content)
		case err == nil && p.FileName != "":
			err = u.keepOn(u.file(p, docs))
		case err == nil:
			var text string
			text, err = u.text(p)
			if text != "" {
				fields[p.Name] = append(fields[p.Name], text)
			}
		}
		if err != nil {
			return nil, err
		}
	}
}

// keepOn returns an error of a file unless the rest of the form can be read. Each refusal is kept once.
func (u *Upload[S]) keepOn(err error) error {
	_, ofFolder := errors.AsType[folderFault](err)
	if u.Refuse == nil || !ofFolder && !rest.Full(err) {
		return err
	}
	said := u.full
	if ofFolder {
		u.folder, u.dropped, said = nil, true, false
	} else {
		u.full = true
	}
	if said {
		return nil
	}
	return u.Refuse(err)
}

// text reads a part that stays in memory. The number of parts has a limit, but it is that of documents, which are not
// in memory.
func (u *Upload[S]) text(p *rest.Part) (string, error) {
	text, err := p.Text(u.Most)
	if err == nil {
		if u.left -= int64(len(p.Name) + len(text) + sizeOfField); u.left < 0 {
			err = fault.Newf(fault.TooLarge, "the fields of the form take more than %d bytes besides its files", u.Most+roomOfFields)
		}
	}
	return text, err
}

// file reads a file.
func (u *Upload[S]) file(p *rest.Part, docs *rest.Documents[S]) (err error) {
	switch {
	case u.Take != nil && p.Name == u.Small:
		content, err := u.text(p)
		if err != nil {
			return err
		}
		return u.Take(baseName(p.FileName), []byte(content))
	case u.Folder != "" && p.Name == u.Folder:
		if u.dropped {
			return nil
		}
		if u.folder == nil {
			if u.folder, err = newFolder(docs, u.At); err != nil {
				return err
			}
		}
		return u.folder.add(p)
	}
	content, err := docs.Open(p)
	if err != nil {
		return err
	}
	return u.Each(p.Name, baseName(p.FileName), content)
}

// escaped undoes what browsers do to the name of a file in a form (HTML standard, "multipart form
// data": https://html.spec.whatwg.org/#multipart-form-data). They escape no percent sign. Line
// breaks are left out: no stored name may have one.
var escaped = strings.NewReplacer("%22", `"`, "%0D", "", "%0A", "")

// baseName returns the last element of a name. Some browsers send a path.
func baseName(name string) string {
	name = escaped.Replace(name)
	if i := strings.LastIndexAny(name, `/\`); i >= 0 {
		name = name[i+1:]
	}
	return name
}
