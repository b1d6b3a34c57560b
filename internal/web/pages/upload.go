// SPDX-License-Identifier: Apache-2.0

package pages

import (
	"bytes"
	"context"
	"io"
	"maps"
	"slices"
	"strings"

	"tamga/internal/domain/audit"
	"tamga/internal/domain/fault"
	"tamga/internal/web/rest"
)

// The fields of a form with files take memory besides their texts: sizeOfField bytes each. There is
// room for it and for the names in roomOfFields: for a form with maxFiles stored documents and more.
const (
	sizeOfField  = 128
	roomOfFields = 64 << 10
)

// readUpload reads the parts of a form in the order in which the browser sends them, and
// calls each with every file. It returns the other fields, whose names and texts have at most so many
// bytes together, besides roomOfFields.
func readUpload[S rest.Sink[S]](parts rest.Parts, docs *rest.Documents[S], most int64, each func(field, name string, content S) error) (rest.Form, error) {
	fields, left := rest.Form{}, most+roomOfFields
	for {
		p, err := parts.Next()
		if err == io.EOF {
			return fields, nil
		}
		if err != nil {
			return nil, err
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

// memory is a file of a form of operators. It may hold secrets, so it is never on the disk.
type memory struct{ content bytes.Buffer }

func newMemory(context.Context, audit.Principal) (*memory, error) { return &memory{}, nil }

// Write implements rest.Sink.
func (m *memory) Write(p []byte) (int, error) {
	if m.content.Len()+len(p) > maxArea {
		return 0, fault.Newf(fault.TooLarge, "the file is larger than %d MiB", maxArea>>20)
	}
	return m.content.Write(p)
}

// Finish implements rest.Sink.
func (*memory) Finish() error { return nil }

// Close implements rest.Sink.
func (*memory) Close() error { return nil }

// Sibling implements rest.Sink.
func (*memory) Sibling() (*memory, error) { return &memory{}, nil }

// readForm reads the form of a command that takes files. A file becomes the value of its field.
func (d *command) readForm(parts rest.Parts, docs *rest.Documents[*memory]) (rest.Form, error) {
	files := rest.Form{}
	form, err := readUpload(parts, docs, maxArea, func(name, _ string, content *memory) error {
		if !slices.ContainsFunc(d.fields, func(f field) bool { return f.name == name && f.kind == kindFile }) {
			return fault.Newf(fault.InvalidParameters, "the field %.64q takes no file", name)
		}
		files[name] = []string{content.content.String()}
		return nil
	})
	if err != nil {
		return nil, err
	}
	maps.Copy(form, files)
	return form, nil
}
