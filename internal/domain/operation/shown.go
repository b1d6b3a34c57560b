// SPDX-License-Identifier: Apache-2.0

package operation

import (
	"context"
	"errors"
	"fmt"

	"tamga/internal/domain/audit"
	"tamga/internal/domain/confirm/what"
	"tamga/internal/domain/fault"
)

// ShownDocument is an open document of an operation that its user must confirm.
type ShownDocument struct {
	Section
	blob Blob
}

// Close closes what the document is read from.
func (d *ShownDocument) Close() error { return d.blob.Close() }

// Shown opens the document with an index of an operation of who that is not
// confirmed yet: the bytes whose digest the user confirms. original opens the content of a
// signed message that is signed again. The caller checks that the operation waits for its
// reader, and closes the document.
//
// Faults: invalid_transaction for an operation that does not wait for its user;
// invalid_parameters for an index without a document; object_not_found for a hash that was
// sent instead of its document, and for a stored document that was deleted or changed.
func (s *Service) Shown(ctx context.Context, who audit.Principal, id string, index int, original bool) (*ShownDocument, error) {
	row, err := s.waits(ctx, who, id)
	if err != nil {
		return nil, err
	}
	c, err := s.deps.Confirmations.Content(ctx, who, row.ID)
	if err != nil {
		return nil, err
	}
	if index < 0 || index >= len(c.Fields.Documents) {
		return nil, fault.Newf(fault.InvalidParameters, "index: the operation has %d documents, want the index of one of them", len(c.Fields.Documents))
	}
	if len(row.Documents) != len(c.Fields.Documents) {
		return nil, errors.New("operation: the plan of a confirmed operation has other documents than its fields")
	}
	d, err := s.shown(ctx, row, &row.Documents[index], &c.Fields.Documents[index], original)
	if fault.Is(err, fault.Lost) { // the end of an operation deletes its documents
		if _, e := s.waits(ctx, who, id); e != nil {
			err = e
		}
	}
	return d, err
}

// waits returns an operation of who that is not confirmed yet.
func (s *Service) waits(ctx context.Context, who audit.Principal, id string) (*Stored, error) {
	row, err := s.own(ctx, who, id)
	if fault.Is(err, fault.NotFound) || err == nil && row.State != Created && row.State != Challenged {
		return nil, fault.New(fault.InvalidTransaction, "no operation with this identifier waits for the confirmation of its user")
	}
	return row, err
}

// shown opens a document of an operation, or its original. The size is that of the fields.
func (s *Service) shown(ctx context.Context, row *Stored, d *Document, f *what.Document, original bool) (*ShownDocument, error) {
	ref, size, in := d.OriginalRef, f.Size, d.in
	switch {
	case original && f.Original == nil:
		return nil, fault.New(fault.NotFound, "the document has no original")
	case original:
		if ref, size, in = d.Related, f.Original.Size, nil; ref == "" {
			in = &part{row.original(), size}
		}
	case f.Hash != "":
		return nil, fault.New(fault.NotFound, "the client sent a hash: the document is unknown")
	}
	var blob Blob
	var err error
	at := int64(0)
	switch {
	case ref != "":
		blob, _, err = openStored(ctx, s.docs.Documents, row.Owner, ref)
	case in != nil:
		at = in.At
		blob, err = OpenKept(ctx, s.docs.Blobs, row.Contents)
	default:
		err = fmt.Errorf("operation: %s lacks a document", row.ID)
	}
	if err != nil {
		return nil, err
	}
	if ref != "" && blob.Size() != size || ref == "" && in.Size != size {
		return nil, errors.Join(fault.New(fault.NotFound, "the stored document was changed: the operation cannot be confirmed any more"), blob.Close())
	}
	return &ShownDocument{NewSection(blob, at, size), blob}, nil
}
