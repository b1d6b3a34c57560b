// SPDX-License-Identifier: Apache-2.0

package view

import (
	"io"
	"strings"

	"tamga/internal/domain/fault"
	"tamga/internal/web/rest"
)

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
	return ReadUploadWith(parts, docs, most, "", each)
}

// ReadUploadWith is ReadUpload for a form with a field for a folder, whose files become one archive. each gets it after
// all files.
func ReadUploadWith[S rest.Sink[S]](parts rest.Parts, docs *rest.Documents[S], most int64, folderField string, each func(field, name string, content S) error) (rest.Form, error) {
	fields, left := rest.Form{}, most+roomOfFields
	var folder *folder[S]
	for {
		p, err := parts.Next()
		if err == io.EOF {
			if folder == nil {
				return fields, nil
			}
			if err := folder.close(); err != nil {
				return nil, err
			}
			return fields, each(folderField, folder.name+".zip", folder.content)
		}
		if err != nil {
			return nil, err
		}
		if p.FileName != "" && p.Name == folderField && folderField != "" {
			if folder == nil {
				if folder, err = newFolder(docs); err != nil {
					return nil, err
				}
			}
			if err := folder.add(p); err != nil {
				return nil, err
			}
			continue
		}
		if p.FileName == "" {
			text, err := p.Text(most)
			if err != nil {
				return nil, err
			}
			// The number of parts has a limit, but it is that of documents, which are not in memory.
			if left -= int64(len(p.Name) + len(text) + sizeOfField); left < 0 {
				return nil, fault.Newf(fault.TooLarge, "the fields of the form take more than %d bytes besides its files", most+roomOfFields)
			}
			if text != "" {
				fields[p.Name] = append(fields[p.Name], text)
			}
			continue
		}
		content, err := docs.Open(p)
		if err != nil {
			return nil, err
		}
		if err := each(p.Name, baseName(p.FileName), content); err != nil {
			return nil, err
		}
	}
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
