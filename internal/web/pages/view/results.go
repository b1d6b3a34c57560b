// SPDX-License-Identifier: Apache-2.0

package view

import (
	"cmp"
	"context"
	"strconv"

	"tamga/internal/domain/audit"
	"tamga/internal/domain/document"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/operation"
	"tamga/internal/web/rest"
)

// Stored opens stored documents; see [document.Service].
type Stored interface {
	Open(ctx context.Context, who audit.Principal, id string) (*document.Stored, error)
}

// Download answers one stored document of the caller. A browser saves it and never shows it, because its
// content is untrusted. named, if not nil, returns the name of the file.
func Download(ctx context.Context, from Stored, ref string, named func(*document.Stored) (string, error)) (rest.File, error) {
	d, err := from.Open(ctx, rest.Caller(ctx), ref)
	if err != nil {
		return rest.File{}, err
	}
	rest.Afterwards(ctx, d)
	rest.Concerning(ctx, "document "+d.ID)
	name := d.Name
	if named != nil {
		if name, err = named(d); err != nil {
			return rest.File{}, err
		}
	}
	return rest.File{Content: d, Name: cmp.Or(name, "document")}, nil
}

// DownloadAll answers every result of an operation as one archive with a name.
func DownloadAll(ctx context.Context, from Stored, o *operation.Operation, name string) (rest.File, error) {
	var files []Archived
	for _, d := range o.Documents {
		if d.RefID == "" {
			continue
		}
		if len(files) == MaxFiles { // each is open until the archive is sent
			return rest.File{}, fault.Newf(fault.TooLarge, "an archive has at most %d documents: download them one by one", MaxFiles)
		}
		f, err := from.Open(ctx, rest.Caller(ctx), d.RefID)
		if err != nil {
			return rest.File{}, err
		}
		rest.Afterwards(ctx, f)
		files = append(files, Archived{Stored: f, Name: f.Name, Of: -1})
	}
	if len(files) == 0 {
		return rest.File{}, fault.New(fault.NotFound, "the operation has no documents")
	}
	z, err := NewArchive(files, nil)
	if err != nil {
		return rest.File{}, err
	}
	rest.Concerning(ctx, strconv.Itoa(len(files))+" documents")
	return rest.File{Content: z, Name: name, Type: "application/zip"}, nil
}
