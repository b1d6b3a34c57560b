// SPDX-License-Identifier: Apache-2.0

package signing

import (
	"context"
	"errors"

	"tamga/internal/domain/audit"
	"tamga/internal/domain/confirm"
	"tamga/internal/domain/confirm/what"
	"tamga/internal/domain/fault"
)

// ShownDocument is an open document of an operation that its user must confirm.
type ShownDocument struct {
	section
	blob Blob
}

// Close closes what the document is read from.
func (d *ShownDocument) Close() error { return d.blob.Close() }

// ConfirmedDocument opens the document with an index of an operation of who that is not
// confirmed yet: the bytes whose digest the user confirms. original opens the content of a
// signed message that is signed again. The caller checks that the operation waits for its
// reader, and closes the document.
//
// Faults: invalid_transaction for an operation that does not wait for its user;
// invalid_parameters for an index without a document; object_not_found for a hash that was
// sent instead of its document, and for a stored document that was deleted or changed.
func (s *Operations) ConfirmedDocument(ctx context.Context, who audit.Principal, id string, index int, original bool) (*ShownDocument, error) {
	if s.Confirming == nil {
		return nil, notWaiting()
	}
	r, err := s.Confirming.Records.Find(ctx, who, id)
	if err != nil {
		return nil, err
	}
	c, err := s.Confirming.Records.Content(ctx, who, id)
	if err != nil {
		return nil, err
	}
	if r.Purpose != confirm.ForOperation || r.State != confirm.Created && r.State != confirm.Challenged || len(c.Plan) == 0 {
		return nil, notWaiting()
	}
	if index < 0 || index >= len(c.Fields.Documents) {
		return nil, fault.Newf(fault.InvalidParameters, "index: the operation has %d documents, want the index of one of them", len(c.Fields.Documents))
	}
	p, err := readConfirmPlan(c.Plan)
	if err != nil {
		return nil, err
	}
	if len(p.Documents) != len(c.Fields.Documents) {
		return nil, errors.New("signing: the plan of a confirmed operation has other documents than its fields")
	}
	d, err := s.shown(ctx, who, p, &p.Documents[index], &c.Fields.Documents[index], original)
	if fault.Is(err, fault.Lost) { // the end of an operation deletes its documents
		if r, e := s.Confirming.Records.Find(ctx, who, id); e == nil && r.State != confirm.Created && r.State != confirm.Challenged {
			err = notWaiting()
		}
	}
	return d, err
}

// shown opens a document of a plan, or its original. The size is that of the fields.
func (s *Operations) shown(ctx context.Context, who audit.Principal, p *confirmPlan, d *plannedDocument, f *what.Document, original bool) (*ShownDocument, error) {
	part, ref, size := d.Content, d.RefID, f.Size
	switch {
	case original && f.Original == nil:
		return nil, fault.New(fault.NotFound, "the document has no original")
	case original:
		part, ref, size = p.Original, d.Related, f.Original.Size
	case f.Hash != "":
		return nil, fault.New(fault.NotFound, "the client sent a hash: the document is unknown")
	}
	var blob Blob
	var err error
	at := int64(0)
	if ref != "" {
		blob, _, err = s.Documents.Open(ctx, who, ref)
	} else if part != nil {
		at = part.At
		blob, err = openKept(ctx, s.Signer.Blobs, p.Contents)
	} else {
		err = errors.New("signing: the plan of a confirmed operation lacks a document")
	}
	if err != nil {
		return nil, err
	}
	if ref != "" && blob.Size() != size || ref == "" && part.Size != size {
		return nil, errors.Join(fault.New(fault.NotFound, "the stored document was changed: the operation cannot be confirmed any more"), blob.Close())
	}
	return &ShownDocument{newSection(blob, at, size), blob}, nil
}

func notWaiting() error {
	return fault.New(fault.InvalidTransaction, "no operation with this identifier waits for the confirmation of its user")
}
