// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"bytes"
	"context"
	"maps"
	"slices"

	"tamga/internal/domain/audit"
	"tamga/internal/domain/fault"
	"tamga/internal/web/pages/view"
	"tamga/internal/web/rest"
)

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
	form, err := view.ReadUpload(parts, docs, maxArea, func(name, _ string, content *memory) error {
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
