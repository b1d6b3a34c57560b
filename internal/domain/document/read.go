// SPDX-License-Identifier: Apache-2.0

package document

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"time"

	"tamga/internal/domain/audit"
	"tamga/internal/domain/fault"
)

// Stored is a document, open for reading.
type Stored struct {
	Info
	object Object
}

// Size returns the length in bytes.
func (d *Stored) Size() int64 { return d.Info.Size }

// ReadAt implements io.ReaderAt.
func (d *Stored) ReadAt(p []byte, off int64) (int, error) { return d.object.ReadAt(p, off) }

// WriteTo implements io.WriterTo, any number of times.
func (d *Stored) WriteTo(w io.Writer) (int64, error) {
	n, err := io.CopyBuffer(struct{ io.Writer }{w}, struct{ io.Reader }{io.NewSectionReader(d.object, 0, d.Info.Size)}, make([]byte, min(d.Info.Size+1, 256<<10)))
	if err == nil && n != d.Info.Size {
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

// Close ends reading.
func (d *Stored) Close() error { return d.object.Close() }

// Open opens a document of who for reading. Faults: object_not_found, document_lost.
func (s *Service) Open(ctx context.Context, who audit.Principal, id string) (*Stored, error) {
	found, err := s.Find(ctx, who, []string{id})
	if err != nil {
		return nil, err
	}
	return found.Open(ctx, id)
}

// Selection is a number of documents of one user that were found together, to be read.
type Selection struct {
	s    *Service
	byID map[string]*Record
}

// Find finds documents of who by their identifiers, by one statement. A selection has the content of
// small documents, so it should not be of more than some hundred.
func (s *Service) Find(ctx context.Context, who audit.Principal, ids []string) (*Selection, error) {
	var list []string
	found := &Selection{s, map[string]*Record{}}
	for _, id := range ids {
		id, ok := identifier(id)
		if _, twice := found.byID[id]; ok && !twice {
			found.byID[id] = nil
			list = append(list, id)
		}
	}
	if len(list) == 0 {
		return found, nil
	}
	now := s.Now()
	records, err := s.Store.FindContents(ctx, who.UserID, list, now)
	if err != nil {
		return nil, err
	}
	var touched []string
	for i := range records {
		r := &records[i]
		found.byID[r.ID] = r
		if now.Sub(r.Accessed) >= accessStep {
			touched = append(touched, r.ID)
		}
	}
	if len(touched) > 0 {
		err = s.Store.TouchDocuments(ctx, touched, now)
	}
	return found, err
}

// Open opens one of the documents for reading. Faults: object_not_found, document_lost.
func (l *Selection) Open(ctx context.Context, id string) (*Stored, error) {
	id, ok := identifier(id)
	if r := l.byID[id]; ok && r != nil {
		return l.s.open(ctx, r)
	}
	return nil, notFound()
}

// open opens a document. If its row has the content, r has it.
func (s *Service) open(ctx context.Context, r *Record) (*Stored, error) {
	var o Object
	var err error
	if r.Content != nil {
		o, err = s.Bytes.Unpack(ctx, r.Bytes, r.Content)
	} else {
		o, err = s.Bytes.Open(ctx, r.Bytes)
	}
	if errors.Is(err, fs.ErrNotExist) {
		// Deleted or renewed just now, or lost: only another look at the record can tell.
		again, missing := s.find(ctx, audit.Principal{UserID: r.UserID}, r.ID)
		if missing != nil {
			return nil, missing
		}
		if again.Bytes != r.Bytes {
			return s.Open(ctx, audit.Principal{UserID: r.UserID}, r.ID)
		}
	}
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, ErrDamaged) {
		return nil, lost(r, err)
	}
	if err != nil {
		return nil, err
	}
	if o.Size() != r.Size {
		o.Close()
		return nil, lost(r, fmt.Errorf("it has %d bytes, want the %d that were written", o.Size(), r.Size))
	}
	return &Stored{r.Info, o}, nil
}

// lost is the fault of a document without its bytes. Its cause names the document and the object, by
// which an administrator finds them.
func lost(r *Record, err error) error {
	return fault.New(fault.Lost, "the content of the document is lost or damaged in the storage; tell the administrator, or upload the document again").
		With(fmt.Errorf("document: document %s of user %s, object %s: %w", r.ID, r.UserID, r.Bytes, err))
}

func (s *Service) find(ctx context.Context, who audit.Principal, id string) (*Record, error) {
	id, ok := identifier(id)
	if !ok {
		return nil, notFound()
	}
	found, err := s.Store.FindDocuments(ctx, who.UserID, []string{id}, s.Now())
	if err != nil {
		return nil, err
	}
	if len(found) == 0 {
		return nil, notFound()
	}
	return &found[0], nil
}

// Info describes a document of who. The fault is object_not_found.
func (s *Service) Info(ctx context.Context, who audit.Principal, id string) (Info, error) {
	r, err := s.find(ctx, who, id)
	if err != nil {
		return Info{}, err
	}
	return r.Info, nil
}

// Found is the result of Infos for one identifier.
type Found struct {
	ID     string  // as given to Infos
	Record *Record // nil: there is no such document
}

// Infos finds up to Many documents at once and returns them in the order of ids. A
// malformed identifier is the fault invalid_parameters.
func (s *Service) Infos(ctx context.Context, who audit.Principal, ids []string) ([]Found, error) {
	if len(ids) == 0 {
		return nil, fault.New(fault.InvalidParameters, "DocumentIds is missing or empty")
	}
	if len(ids) > Many {
		return nil, fault.Newf(fault.InvalidParameters, "DocumentIds has %d identifiers: want at most %d", len(ids), Many)
	}
	asked := make([]string, len(ids))
	seen := map[string]bool{}
	var list []string
	for i, id := range ids {
		known, ok := identifier(id)
		if !ok {
			return nil, fault.Newf(fault.InvalidParameters, "DocumentIds[%d] is not a document's identifier: want a GUID", i)
		}
		if asked[i] = known; !seen[known] {
			seen[known] = true
			list = append(list, known)
		}
	}
	records, err := s.Store.FindDocuments(ctx, who.UserID, list, s.Now())
	if err != nil {
		return nil, err
	}
	byID := map[string]*Record{}
	for i := range records {
		byID[records[i].ID] = &records[i]
	}
	found := make([]Found, len(ids))
	for i, id := range asked {
		found[i] = Found{ids[i], byID[id]}
	}
	return found, nil
}

// ByHash finds the youngest document of who with this hash.
func (s *Service) ByHash(ctx context.Context, who audit.Principal, hash []byte) (Info, error) {
	if len(hash) == 0 {
		return Info{}, notFound()
	}
	r, found, err := s.Store.FindByHash(ctx, who.UserID, bytes.Clone(hash), s.Now())
	if err != nil {
		return Info{}, err
	}
	if !found {
		return Info{}, notFound()
	}
	return r.Info, nil
}

// List calls each for all documents of who.
func (s *Service) List(ctx context.Context, who audit.Principal, each func(Info) error) error {
	const portion = 500
	for behind := ""; ; {
		list, err := s.Store.ListDocuments(ctx, who.UserID, behind, portion, s.Now())
		if err != nil {
			return err
		}
		for i := range list {
			if err := each(list[i].Info); err != nil {
				return err
			}
			behind = list[i].ID
		}
		if len(list) < portion {
			return nil
		}
	}
}

// maxPage is the most documents of one call of Newest.
const maxPage = 200

// Newest returns up to n documents of who, the newest first. older is the place of the last
// document of the page before.
func (s *Service) Newest(ctx context.Context, who audit.Principal, older Position, n int) ([]Info, error) {
	records, err := s.Store.NewestDocuments(ctx, who.UserID, older, min(max(n, 1), maxPage), s.Now())
	list := make([]Info, len(records))
	for i := range records {
		list[i] = records[i].Info
	}
	return list, err
}

// Patch changes the description and the lifetime of a document of who. A document that is
// made temporary expires as late as one stored now, and one that is made permanent is kept as long as one stored now. Faults: object_not_found,
// document_info_invalid.
func (s *Service) Patch(ctx context.Context, who audit.Principal, id string, c Change) error {
	return s.change(ctx, who, id, func(ctx context.Context, i *Info) error {
		for _, field := range []struct {
			from *string
			to   *string
		}{{c.Name, &i.Name}, {c.Type, &i.Type}, {c.Extra, &i.Extra}} {
			if field.from != nil {
				*field.to = *field.from
			}
		}
		if c.Parent != nil {
			if *c.Parent != "" {
				if strings.EqualFold(*c.Parent, i.ID) {
					return fault.New(fault.DocumentInfoInvalid, "ParentDocumentId is the document itself")
				}
				if err := s.own(ctx, who, []string{*c.Parent}, "ParentDocumentId"); err != nil {
					return err
				}
			}
			i.Parent = strings.ToLower(*c.Parent)
		}
		if c.Temporary != nil && *c.Temporary != i.Temporary() {
			if *c.Temporary && i.Retained(s.Now()) {
				return retained(i)
			}
			if *c.Temporary {
				i.Expires = s.Now().Add(s.Rules.withDefaults().TemporaryLife)
			} else {
				i.Expires = time.Time{}
			}
		}
		return Check(&Description{Name: i.Name, Type: i.Type, Extra: i.Extra})
	})
}

// Link records that a document of who belongs to another document of who. Faults:
// object_not_found, document_info_invalid.
func (s *Service) Link(ctx context.Context, who audit.Principal, id, to string) error {
	return s.change(ctx, who, id, func(ctx context.Context, i *Info) error {
		if strings.EqualFold(to, i.ID) {
			return fault.New(fault.DocumentInfoInvalid, "DocumentId is the document itself: name the one to link it to")
		}
		if err := s.own(ctx, who, []string{to}, "DocumentId"); err != nil {
			return err
		}
		i.Linked = strings.ToLower(to)
		return nil
	})
}

// change reads, changes and writes a document in one transaction.
func (s *Service) change(ctx context.Context, who audit.Principal, id string, do func(ctx context.Context, i *Info) error) error {
	return s.Store.Atomic(ctx, func(ctx context.Context) error {
		r, err := s.find(ctx, who, id)
		if err != nil {
			return err
		}
		temporary := r.Temporary()
		if err := do(ctx, &r.Info); err != nil {
			return fault.Rollback(err)
		}
		now := s.Now()
		changed, err := s.Store.ChangeDocument(ctx, r.Info, now)
		if err == nil && !changed {
			err = notFound()
		}
		if err != nil || !temporary || r.Temporary() {
			return err
		}
		// It is permanent from now on, as one that is stored now.
		if r.KeepUntil = s.keepUntil(who, now); r.KeepUntil.IsZero() {
			return nil
		}
		if err := s.Retain(ctx, who, r.ID, r.KeepUntil); err != nil {
			return fault.Rollback(err)
		}
		return s.Kept(ctx, []Info{r.Info})
	})
}

// Delete ends a document of who. Faults: object_not_found; invalid_object_state while it is retained.
func (s *Service) Delete(ctx context.Context, who audit.Principal, id string) error {
	id, ok := identifier(id)
	if !ok {
		return notFound()
	}
	gone, removed, err := s.Store.RemoveDocument(ctx, who.UserID, id, s.Now())
	if err != nil {
		return err
	}
	if !removed {
		r, err := s.find(ctx, who, id)
		if err == nil && r.Retained(s.Now()) {
			err = retained(&r.Info)
		} else if err == nil {
			err = notFound()
		}
		return err
	}
	// It is deleted for all users. Its bytes are removed now or by the next sweep.
	_, _ = s.erase(context.WithoutCancel(ctx), gone)
	return nil
}
