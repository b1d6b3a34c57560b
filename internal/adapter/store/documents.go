// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"tamga/internal/domain/document"
)

// Documents implements document.Store.
type Documents struct{ *DB }

var (
	_ document.Store          = Documents{}
	_ document.UploadStore    = Documents{}
	_ document.RetentionStore = Documents{}
)

// errNoUpload rolls back documents made of uploads if one of the uploads has ended.
var errNoUpload = errors.New("store: an upload has ended")

func holdingOf(q document.Quota) holding { return holding{q.Objects, q.Bytes} }

// AddUploads implements document.UploadStore. The uploads must be of one user.
func (s Documents) AddUploads(ctx context.Context, uploads []document.Upload, now, until time.Time, q document.Quotas) (bool, error) {
	if len(uploads) == 0 {
		return true, nil
	}
	user, size := uploads[0].UserID, int64(0)
	for _, u := range uploads {
		if u.UserID != user {
			return false, errors.New("store: uploads of several users at once")
		}
		size += u.Counted
	}
	more := holding{int64(len(uploads)), size}
	return s.documents.adding(ctx, s.DB, user, more, holdingOf(q.All), func() error {
		return s.Unit(ctx, func(ctx context.Context) error {
			for _, u := range uploads {
				if _, err := s.exec(ctx, `INSERT INTO documents (id, user_id, state, leased_until, blob, bytes,
					name, type, parent, linked, extra, size, hash, hash_name, uploaded_at, accessed_at, expires_at)
					VALUES ($1, $2, 0, $3, $4, $5, '', '', '', '', '', 0, $6, '', $7, 0, 0)`,
					u.ID, u.UserID, millis(until), u.Bytes, u.Counted, []byte{}, millis(now)); err != nil {
					return err
				}
			}
			return s.documents.take(ctx, s.DB, user, more, holdingOf(q.Own))
		})
	})
}

// ExtendUpload implements document.UploadStore.
func (s Documents) ExtendUpload(ctx context.Context, u document.Upload, more int64, until time.Time, q document.Quotas) (document.Outcome, error) {
	extend := func() error {
		return s.Unit(ctx, func(ctx context.Context) error {
			n, err := s.exec(ctx, `UPDATE documents SET bytes = bytes + $2, leased_until = $3
				WHERE id = $1 AND user_id = $4 AND state = 0`, u.ID, more, millis(until), u.UserID)
			if err == nil && n == 0 {
				err = errNoUpload
			}
			if err != nil || more <= 0 {
				return err
			}
			return s.documents.take(ctx, s.DB, u.UserID, holding{0, more}, holdingOf(q.Own))
		})
	}
	room, err := true, error(nil)
	if more > 0 {
		room, err = s.documents.adding(ctx, s.DB, u.UserID, holding{0, more}, holdingOf(q.All), extend)
	} else {
		err = extend()
	}
	return outcomeOf(room, err)
}

// outcomeOf returns the outcome of a change of uploads, for which the quotas had room or not.
func outcomeOf(room bool, err error) (document.Outcome, error) {
	switch {
	case errors.Is(err, errNoUpload):
		return document.Lost, nil
	case err == nil && !room:
		return document.Full, nil
	}
	return document.Done, err
}

// Room implements document.UploadStore.
func (s Documents) Room(ctx context.Context, userID string, q document.Quotas) (document.Quota, error) {
	left, err := s.documents.room(ctx, s.DB, userID, holdingOf(q.Own), holdingOf(q.All))
	return document.Quota{Objects: left.objects, Bytes: left.size}, err
}

const sizeColumns = "user_id, bytes"

func scanSize(r row) (u usage, err error) {
	err = r.Scan(&u.caller, &u.size)
	return u, err
}

// KeepDocuments implements document.Store.
func (s Documents) KeepDocuments(ctx context.Context, records []document.Record, q document.Quotas) (document.Outcome, error) {
	if len(records) == 0 {
		return document.Done, nil
	}
	user, added := records[0].UserID, holding{}
	var uploads, inRows []document.Record
	for _, r := range records {
		switch {
		case r.UserID != user:
			return document.Lost, errors.New("store: documents of several users at once")
		case r.Content != nil:
			inRows = append(inRows, r)
			added = added.plus(holding{1, r.Size})
		default:
			uploads = append(uploads, r)
		}
	}
	keep := func() error {
		return s.Unit(ctx, func(ctx context.Context) error {
			if err := s.keepUploads(ctx, uploads); err != nil || len(inRows) == 0 {
				return err
			}
			if err := s.insertDocuments(ctx, inRows); err != nil {
				return err
			}
			return s.documents.take(ctx, s.DB, user, added, holdingOf(q.Own))
		})
	}
	room, err := true, error(nil)
	if len(inRows) > 0 {
		room, err = s.documents.adding(ctx, s.DB, user, added, holdingOf(q.All), keep)
	} else {
		err = keep()
	}
	return outcomeOf(room, err)
}

// keepUploads turns uploads of one user into documents, in the transaction of ctx.
func (s Documents) keepUploads(ctx context.Context, records []document.Record) error {
	spare := back{}
	for _, r := range records {
		reserved, found, err := one(ctx, s.DB, scanSize, "SELECT "+sizeColumns+" FROM documents WHERE id = $1 AND user_id = $2 AND state = 0", r.ID, r.UserID)
		if err != nil {
			return err
		}
		if !found || reserved.size < r.Size {
			return errNoUpload
		}
		n, err := s.exec(ctx, `UPDATE documents SET state = 1, leased_until = 0, bytes = $3,
			name = $4, type = $5, parent = $6, linked = $7, extra = $8, size = $9, hash = $10, hash_name = $11,
			uploaded_at = $12, accessed_at = $13, expires_at = $14, keep_until = $15
			WHERE id = $1 AND user_id = $2 AND state = 0`,
			r.ID, r.UserID, r.Size, r.Name, r.Type, r.Parent, r.Linked, r.Extra, r.Size, r.Hash, r.HashName,
			millis(r.Uploaded), millis(r.Accessed), millis(r.Expires), millis(r.KeepUntil))
		if err != nil {
			return err
		}
		if n == 0 {
			return errNoUpload
		}
		spare.add(r.UserID, holding{0, reserved.size - r.Size})
	}
	return s.documents.giveBack(ctx, s.DB, spare)
}

// The columns of a document in the order of insertDocument, and how many documents one statement inserts.
const (
	insertDocument  = "INSERT INTO documents (" + documentColumns + ", state, leased_until, bytes, content) VALUES "
	insertedColumns = 19
	insertedAtOnce  = 50
)

// insertMany inserts insertedAtOnce documents.
var insertMany = insertDocument + rowMarks(insertedAtOnce)

// rowMarks returns the placeholders of inserted rows.
func rowMarks(rows int) string {
	list := make([]string, rows)
	for i := range list {
		list[i] = "(" + marksFrom(1+i*insertedColumns, insertedColumns) + ")"
	}
	return strings.Join(list, ", ")
}

// insertDocuments adds documents whose content is in their rows.
func (s Documents) insertDocuments(ctx context.Context, records []document.Record) error {
	for len(records) > 0 {
		n, query := 1, insertDocument+rowMarks(1)
		if len(records) >= insertedAtOnce {
			n, query = insertedAtOnce, insertMany
		}
		args := make([]any, 0, n*insertedColumns)
		for _, r := range records[:n] {
			args = append(args, r.ID, r.UserID, r.Bytes, r.Name, r.Type, r.Parent, r.Linked, r.Extra, r.Size, r.Hash, r.HashName,
				millis(r.Uploaded), millis(r.Accessed), millis(r.Expires), millis(r.KeepUntil), 1, 0, r.Size, r.Content)
		}
		if _, err := s.exec(ctx, query, args...); err != nil {
			return err
		}
		records = records[n:]
	}
	return nil
}

const documentColumns = "id, user_id, blob, name, type, parent, linked, extra, size, hash, hash_name, uploaded_at, accessed_at, expires_at, keep_until"

// inRow is SQL: the row of a document has its content.
const inRow = "length(content) > 0"

// documentVisible is the condition that a row is a document at the time $2.
const documentVisible = "user_id = $1 AND state = 1 AND (expires_at = 0 OR expires_at > $2)"

func scanDocument(r row) (d document.Record, err error) {
	err = r.Scan(documentFields(&d)...)
	return d, err
}

// documentFields are the fields of documentColumns.
func documentFields(d *document.Record) []any {
	return []any{&d.ID, &d.UserID, &d.Bytes, &d.Name, &d.Type, &d.Parent, &d.Linked, &d.Extra, &d.Size, &d.Hash, &d.HashName,
		(*timeField)(&d.Uploaded), (*timeField)(&d.Accessed), (*timeField)(&d.Expires), (*timeField)(&d.KeepUntil)}
}

func scanContent(r row) (d document.Record, err error) {
	err = r.Scan(append(documentFields(&d), &d.Content)...)
	if len(d.Content) == 0 {
		d.Content = nil
	}
	return d, err
}

// FindContents implements document.Store.
func (s Documents) FindContents(ctx context.Context, userID string, ids []string, now time.Time) ([]document.Record, error) {
	return s.find(ctx, documentColumns+", content", scanContent, userID, ids, now)
}

// FindDocuments implements document.Store.
func (s Documents) FindDocuments(ctx context.Context, userID string, ids []string, now time.Time) ([]document.Record, error) {
	return s.find(ctx, documentColumns, scanDocument, userID, ids, now)
}

func (s Documents) find(ctx context.Context, columns string, scan func(row) (document.Record, error), userID string, ids []string, now time.Time) ([]document.Record, error) {
	query := "SELECT " + columns + " FROM documents WHERE " + documentVisible + " AND id "
	if len(ids) == 1 {
		return all(ctx, s.DB, scan, query+"= $3", userID, millis(now), ids[0])
	}
	const portion = 500
	var list []document.Record
	for part := range slices.Chunk(ids, portion) {
		args := []any{userID, millis(now)}
		for _, id := range part {
			args = append(args, id)
		}
		found, err := allUnprepared(ctx, s.DB, scan, query+"IN ("+marksFrom(3, len(part))+")", args...)
		if err != nil {
			return nil, err
		}
		list = append(list, found...)
	}
	return list, nil
}

// marksFrom returns n placeholders, the first one with a number.
func marksFrom(first, n int) string {
	marks := make([]string, n)
	for i := range marks {
		marks[i] = "$" + strconv.Itoa(first+i)
	}
	return strings.Join(marks, ", ")
}

// FindByHash implements document.Store.
func (s Documents) FindByHash(ctx context.Context, userID string, hash []byte, now time.Time) (document.Record, bool, error) {
	return one(ctx, s.DB, scanDocument, "SELECT "+documentColumns+" FROM documents WHERE "+documentVisible+" AND hash = $3 ORDER BY uploaded_at DESC, id DESC LIMIT 1",
		userID, millis(now), hash)
}

// ListDocuments implements document.Store.
func (s Documents) ListDocuments(ctx context.Context, userID, behind string, n int, now time.Time) ([]document.Record, error) {
	return all(ctx, s.DB, scanDocument, "SELECT "+documentColumns+" FROM documents WHERE "+documentVisible+" AND id > $3 ORDER BY id LIMIT $4",
		userID, millis(now), behind, n)
}

// NewestDocuments implements document.Store.
func (s Documents) NewestDocuments(ctx context.Context, userID string, older document.Position, n int, now time.Time) ([]document.Record, error) {
	query, args := "", []any{userID, millis(now), n}
	if !older.At.IsZero() {
		query, args = " AND (uploaded_at, id) < ($4, $5)", append(args, millis(older.At), older.ID)
	}
	return all(ctx, s.DB, scanDocument, "SELECT "+documentColumns+" FROM documents WHERE "+documentVisible+query+" ORDER BY uploaded_at DESC, id DESC LIMIT $3", args...)
}

// ChangeDocument implements document.Store.
func (s Documents) ChangeDocument(ctx context.Context, i document.Info, now time.Time) (bool, error) {
	n, err := s.exec(ctx, "UPDATE documents SET name = $4, type = $5, parent = $6, linked = $7, extra = $8, expires_at = CAST($9 AS BIGINT) WHERE "+documentVisible+
		" AND id = $3 AND (CAST($9 AS BIGINT) = 0 OR keep_until <= $2)",
		i.UserID, millis(now), i.ID, i.Name, i.Type, i.Parent, i.Linked, i.Extra, millis(i.Expires))
	return n == 1, err
}

// TouchDocuments implements document.Store.
func (s Documents) TouchDocuments(ctx context.Context, ids []string, at time.Time) error {
	ids = slices.Sorted(slices.Values(ids)) // two requests may touch the same documents
	for part := range slices.Chunk(ids, 500) {
		args := []any{millis(at)}
		for _, id := range part {
			args = append(args, id)
		}
		if _, err := s.exec(ctx, "UPDATE documents SET accessed_at = $1 WHERE id IN ("+marksFrom(2, len(part))+") AND state = 1 AND accessed_at < $1", args...); err != nil {
			return err
		}
	}
	return nil
}

const goneColumns = "id, CASE WHEN " + inRow + " THEN '' ELSE blob END"

func scanGone(r row) (g document.Gone, err error) {
	err = r.Scan(&g.ID, &g.Bytes)
	return g, err
}

// RemoveDocument implements document.Store.
func (s Documents) RemoveDocument(ctx context.Context, userID, id string, now time.Time) (document.Gone, bool, error) {
	return returning(ctx, s.DB, scanGone, "UPDATE documents SET state = 2 WHERE "+documentVisible+" AND id = $3 AND keep_until <= $2 RETURNING "+goneColumns, userID, millis(now), id)
}

// RetainDocument implements document.RetentionStore.
func (s Documents) RetainDocument(ctx context.Context, userID, id string, until, now time.Time) (bool, error) {
	n, err := s.exec(ctx, "UPDATE documents SET keep_until = CAST($4 AS BIGINT), expires_at = CASE WHEN CAST($4 AS BIGINT) > 0 THEN 0 ELSE expires_at END WHERE "+documentVisible+" AND id = $3",
		userID, millis(now), id, millis(until))
	return n == 1, err
}

// ReplaceContent implements document.RetentionStore.
func (s Documents) ReplaceContent(ctx context.Context, userID, id, by string, now time.Time) (bool, error) {
	n, err := s.exec(ctx, `UPDATE documents SET blob = o.blob, bytes = o.bytes, size = o.size, hash = o.hash, hash_name = o.hash_name,
			sealed_key = o.sealed_key, content = o.content
		FROM (SELECT CASE id WHEN $1 THEN $2 ELSE $1 END AS other, blob, bytes, size, hash, hash_name, sealed_key, content FROM documents WHERE id IN ($1, $2)) o
		WHERE documents.id = o.other AND documents.user_id = $3 AND documents.state = 1 AND (documents.id <> $1 OR documents.expires_at = 0 OR documents.expires_at > $4)`,
		id, by, userID, millis(now))
	if err == nil && n == 1 {
		err = errors.New("store: one of two contents was replaced")
	}
	return n == 2, err
}

// EndUpload implements document.UploadStore.
func (s Documents) EndUpload(ctx context.Context, id string) (bool, error) {
	n, err := s.exec(ctx, "UPDATE documents SET state = 2 WHERE id = $1 AND state = 0", id)
	return n == 1, err
}

// ClaimGone implements document.Store.
func (s Documents) ClaimGone(ctx context.Context, now, expired time.Time, n int) (gone []document.Gone, err error) {
	err = s.Unit(ctx, func(ctx context.Context) error {
		if _, err := s.exec(ctx, `UPDATE documents SET state = 2 WHERE state = 0 AND id IN
			(SELECT id FROM documents WHERE state = 0 AND leased_until <= $1 ORDER BY leased_until LIMIT $2`+s.skipLocked()+`) AND leased_until <= $1`,
			millis(now), n); err != nil {
			return err
		}
		_, err := s.exec(ctx, `UPDATE documents SET state = 2 WHERE state = 1 AND id IN
			(SELECT id FROM documents WHERE state = 1 AND expires_at > 0 AND expires_at <= $1 ORDER BY expires_at LIMIT $2`+s.skipLocked()+`)
			AND expires_at > 0 AND expires_at <= $1`, millis(expired), n)
		return err
	})
	if err == nil {
		err = s.documents.sweep(ctx, s.DB)
	}
	if err != nil {
		return nil, err
	}
	return all(ctx, s.DB, scanGone, "SELECT "+goneColumns+" FROM documents WHERE state = 2 ORDER BY id LIMIT $1", n)
}

// ForgetDocuments implements document.Store.
func (s Documents) ForgetDocuments(ctx context.Context, ids []string) error {
	ids = slices.Sorted(slices.Values(ids)) // two processes may forget the same documents
	return s.Unit(ctx, func(ctx context.Context) error {
		held := back{}
		for _, id := range ids {
			u, found, err := returning(ctx, s.DB, scanSize, "DELETE FROM documents WHERE id IN (SELECT id FROM documents WHERE id = $1 AND state = 2"+
				s.skipLocked()+") RETURNING "+sizeColumns, id)
			if err != nil {
				return err
			}
			if found { // another process may have deleted it, or may be about to
				held.add(u.caller, holding{1, u.size})
			}
		}
		if err := s.documents.giveBack(ctx, s.DB, held); err != nil {
			return fmt.Errorf("store: giving back a quota: %w", err)
		}
		return nil
	})
}
