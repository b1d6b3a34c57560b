// SPDX-License-Identifier: Apache-2.0

package document

import (
	"context"
	"errors"
	"io"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/google/uuid"

	"tamga/internal/domain/audit"
	"tamga/internal/domain/fault"
)

// New is a document to keep: its finished content and its description.
type New struct {
	Content     *Intake
	Description Description
}

// Limits of a description.
const (
	maxName  = 255     // characters
	maxType  = 255     // characters
	maxExtra = 4 << 10 // bytes
)

// atOnce is how many documents of a request that are in memory are written concurrently.
const atOnce = 8

// Keep turns finished intakes of one request into documents, all of them or none, and
// returns their descriptions. Faults: content_required, document_info_invalid,
// invalid_object_state when a quota is used up, temporarily_unavailable.
func (s *Service) Keep(ctx context.Context, who audit.Principal, documents []New) ([]Info, error) {
	var parents []string
	for _, d := range documents {
		if d.Description.Parent != "" {
			parents = append(parents, d.Description.Parent)
		}
	}
	if err := s.own(ctx, who, parents, "ParentDocumentId"); err != nil {
		return nil, err
	}
	records, err := s.settle(ctx, who, documents, s.Rules.InRow)
	if err != nil {
		return nil, err
	}
	if err := s.record(ctx, records); err != nil {
		return nil, err
	}
	infos := make([]Info, len(documents))
	for i, d := range documents {
		d.Content.settled = true
		infos[i] = records[i].Info
	}
	return infos, nil
}

// record makes documents of records whose bytes are durable, or are in the records.
func (s *Service) record(ctx context.Context, records []Record) error {
	var kept []Info
	for i := range records {
		if !records[i].KeepUntil.IsZero() {
			kept = append(kept, records[i].Info)
		}
	}
	if kept == nil {
		return s.put(ctx, records)
	}
	return s.Store.Atomic(ctx, func(ctx context.Context) error {
		if err := s.put(ctx, records); err != nil {
			return err
		}
		return s.Kept(ctx, kept)
	})
}

func (s *Service) put(ctx context.Context, records []Record) error {
	outcome, err := s.Store.KeepDocuments(ctx, records, s.quotas())
	switch {
	case err != nil:
		return err
	case outcome == Full:
		return fault.Rollback(quotaFault())
	case outcome == Lost:
		return fault.Rollback(errLost)
	}
	return nil
}

// batchMemory is how many bytes of small documents a batch keeps in memory until Record. Further ones go
// to Bytes.
const batchMemory = 8 << 20

// Batch is a number of documents that the service made for one purpose. They cannot be found before Record.
// It must be used by one goroutine at a time.
type Batch struct {
	s       *Service
	who     audit.Principal
	first   *Intake // has what the documents share; nil: there is no document yet
	left    *Quota  // room in the quotas that this batch has not used; nil: not known yet
	memory  int64   // bytes in records
	records []Record
}

// NewBatch begins a batch of documents of who.
func (s *Service) NewBatch(who audit.Principal) *Batch { return &Batch{s: s, who: who} }

// Save stores a document durably, or keeps a small one in memory until Record, and returns its identifier.
// The parent is a document that was opened; it may have been deleted since. Faults are those of Keep.
func (b *Batch) Save(ctx context.Context, d Description, src io.WriterTo) (id string, err error) {
	var in *Intake
	if b.first == nil {
		in, err = b.s.NewIntake(ctx, b.who)
		b.first = in
	} else {
		in, err = b.first.Sibling()
	}
	if err != nil {
		return "", err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, in.Close())
		}
	}()
	in.private = d.Private
	if _, err := src.WriteTo(in); err != nil {
		return "", err
	}
	if err := in.Finish(); err != nil {
		return "", err
	}
	inRow := b.s.Rules.InRow
	if b.memory+in.size > batchMemory {
		inRow = 0
	}
	records, err := b.s.settle(ctx, b.who, []New{{in, d}}, inRow)
	if err != nil {
		return "", err
	}
	if in.content != nil {
		if err := b.fits(ctx, in.size); err != nil {
			return "", err
		}
		b.memory += in.size
	}
	in.free()
	b.records = append(b.records, records...)
	return in.id, nil
}

// fits refuses a document for which the quotas have no room. Record compares them once more, when they may
// be used up by others, but then all documents are refused together.
func (b *Batch) fits(ctx context.Context, size int64) error {
	if b.left == nil {
		left, err := b.s.Uploads.Room(ctx, b.who.UserID, b.s.quotas())
		if err != nil {
			return err
		}
		b.left = &left
	}
	if b.left.Objects < 1 || b.left.Bytes < size {
		return quotaFault()
	}
	b.left.Objects--
	b.left.Bytes -= size
	return nil
}

// Record makes the documents of a batch visible, all or none. Call it within leaseTime of the first
// Save, in the transaction that records the purpose of the documents. Without it, what Save stored is swept.
func (b *Batch) Record(ctx context.Context) error {
	if len(b.records) == 0 {
		return nil
	}
	return b.s.record(ctx, b.records)
}

// settle checks documents and makes their bytes durable. Small ones, of up to inRow bytes, it packs for
// their rows.
func (s *Service) settle(ctx context.Context, who audit.Principal, documents []New, inRow int64) ([]Record, error) {
	if len(documents) == 0 {
		return nil, fault.New(fault.ContentRequired, "there is no document")
	}
	if len(documents) > Many {
		return nil, fault.Newf(fault.InvalidParameters, "%d documents at a time: send at most %d", len(documents), Many)
	}
	var larger []*Intake
	for i := range documents {
		in := documents[i].Content
		switch {
		case in == nil || in.size == 0 && !in.private:
			return nil, fault.New(fault.ContentRequired, "a document is missing or empty")
		case in.room.s != s || in.room.userID != who.UserID || !in.finished || in.settled || in.err != nil:
			return nil, errIntakeState
		case in.to != nil: // its bytes are durable
		case in.size <= inRow:
			var err error
			if in.content, err = s.Bytes.Pack(in.name(), in.memory); err != nil {
				return nil, err
			}
		default:
			larger = append(larger, in)
		}
		if err := Check(&documents[i].Description); err != nil {
			return nil, err
		}
	}
	if err := s.write(ctx, larger); err != nil {
		return nil, err
	}
	now := s.Now()
	records := make([]Record, len(documents))
	for i, d := range documents {
		records[i] = d.Content.record(d.Description, now)
		if !s.replacing && !d.Description.Temporary {
			records[i].KeepUntil = s.keepUntil(who, now)
		}
	}
	return records, nil
}

// write moves documents from memory to Bytes.
func (s *Service) write(ctx context.Context, larger []*Intake) error {
	if len(larger) == 0 {
		return nil
	}
	uploads := make([]Upload, len(larger))
	for i, in := range larger {
		uploads[i] = in.describe(in.size)
	}
	now := s.Now()
	added, err := s.Uploads.AddUploads(ctx, uploads, now, now.Add(leaseTime), s.quotas())
	if err != nil {
		return err
	}
	if !added {
		return quotaFault()
	}
	for i, in := range larger {
		in.upload = uploads[i] // from here on Close removes it
	}
	errs := make([]error, min(atOnce, len(larger)))
	var all sync.WaitGroup
	for worker := range errs {
		all.Go(func() {
			for i := worker; i < len(larger) && errs[worker] == nil; i += len(errs) {
				errs[worker] = larger[i].flush(ctx)
			}
		})
	}
	all.Wait()
	return noRoom(errors.Join(errs...))
}

func (in *Intake) flush(ctx context.Context) (err error) {
	if in.to, err = in.room.s.Bytes.Create(ctx, in.upload.Bytes); err != nil {
		return err
	}
	if _, err := in.to.Write(in.memory); err != nil {
		return err
	}
	return in.to.Commit()
}

// Check checks the description that a client gave. Fault: document_info_invalid.
func Check(d *Description) error {
	if err := CheckText("the file name", d.Name, maxName); err != nil {
		return err
	}
	if err := CheckText("FileType", d.Type, maxType); err != nil {
		return err
	}
	if len(d.Extra) > maxExtra {
		return fault.Newf(fault.DocumentInfoInvalid, "AdditionalInfo has %d bytes: want at most %d", len(d.Extra), maxExtra)
	}
	return nil
}

// CheckText refuses characters that do harm where a text is shown, sorted or put into a
// header: control characters, line and paragraph separators, and the characters that
// change the direction of writing and so disguise a name such as "exe.txt". what names the text. Fault: document_info_invalid.
func CheckText(what, text string, most int) error {
	if n := utf8.RuneCountInString(text); n > most {
		return fault.Newf(fault.DocumentInfoInvalid, "%s has %d characters: want at most %d", what, n, most)
	}
	for _, c := range text {
		if unicode.IsControl(c) || c == '\u2028' || c == '\u2029' || c >= '\u202a' && c <= '\u202e' || c >= '\u2066' && c <= '\u2069' || c == utf8.RuneError {
			return fault.Newf(fault.DocumentInfoInvalid, "%s contains the character U+%04X: want letters, digits, signs and spaces", what, c)
		}
	}
	return nil
}

// own checks that the other documents a client names belong to its user.
func (s *Service) own(ctx context.Context, who audit.Principal, ids []string, key string) error {
	if len(ids) == 0 {
		return nil
	}
	wanted := map[string]bool{}
	for _, id := range ids {
		id, ok := identifier(id)
		if !ok {
			return fault.Newf(fault.DocumentInfoInvalid, "%s is not a document's identifier: want a GUID", key)
		}
		wanted[id] = true
	}
	list := make([]string, 0, len(wanted))
	for id := range wanted {
		list = append(list, id)
	}
	found, err := s.Store.FindDocuments(ctx, who.UserID, list, s.Now())
	if err != nil {
		return err
	}
	if len(found) != len(wanted) {
		return fault.Newf(fault.NotFound, "%s: there is no such document", key)
	}
	return nil
}

// identifier returns a GUID in the form it is stored in. Any other text, such as a path,
// is not an identifier.
func identifier(text string) (string, bool) {
	if len(text) != 36 {
		return "", false
	}
	id, err := uuid.Parse(text)
	if err != nil {
		return "", false
	}
	return id.String(), true
}

// IsIdentifier reports whether a text has the form of an identifier: a GUID of 36
// characters in either letter case.
func IsIdentifier(text string) bool {
	id, ok := identifier(text)
	return ok && strings.EqualFold(id, text)
}

// notFound is the fault for a missing document and for one of another user.
func notFound() error {
	return fault.New(fault.NotFound, "there is no such document")
}
