// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"tamga/internal/domain/document"
)

// Documents implements document.Store.
type Documents struct{ *DB }

var (
	_ document.Store       = Documents{}
	_ document.UploadStore = Documents{}
)

var (
	// errNoQuota rolls back uploads that exceed a quota.
	errNoQuota = errors.New("store: a quota of documents is used up")
	// errNoUpload rolls back documents made of uploads if one of the uploads has ended.
	errNoUpload = errors.New("store: an upload has ended")
)

// allUsers is the row of document_usage that counts all users. Every change of the usage
// begins with it, so that transactions lock rows in the same order.
const allUsers = ""

// use adds objects and bytes to the usage if the quotas allow it.
func (s Documents) use(ctx context.Context, userID string, objects, size int64, q document.Quotas) error {
	if userID == allUsers {
		return errors.New("store: a document without a user")
	}
	for _, u := range []struct {
		user  string
		quota document.Quota
	}{{allUsers, q.All}, {userID, q.Own}} {
		if objects > u.quota.Objects || size > u.quota.Bytes {
			return errNoQuota
		}
		n, err := s.exec(ctx, `INSERT INTO document_usage AS u (user_id, objects, octets) VALUES ($1, $2, $3)
			ON CONFLICT (user_id) DO UPDATE SET objects = u.objects + excluded.objects, octets = u.octets + excluded.octets
			WHERE u.objects + excluded.objects <= $4 AND u.octets + excluded.octets <= $5`,
			u.user, objects, size, u.quota.Objects, u.quota.Bytes)
		if err != nil {
			return err
		}
		if n == 0 {
			return errNoQuota
		}
	}
	return nil
}

// giveBack subtracts objects and bytes from the usage of a user and of all.
func (s Documents) giveBack(ctx context.Context, userID string, objects, size int64) error {
	if objects == 0 && size == 0 {
		return nil
	}
	for _, u := range []string{allUsers, userID} {
		if _, err := s.exec(ctx, "UPDATE document_usage SET objects = objects - $2, octets = octets - $3 WHERE user_id = $1", u, objects, size); err != nil {
			return err
		}
	}
	_, err := s.exec(ctx, "DELETE FROM document_usage WHERE user_id = $1 AND objects = 0", userID)
	return err
}

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
	err := s.Unit(ctx, func(ctx context.Context) error {
		if err := s.use(ctx, user, int64(len(uploads)), size, q); err != nil {
			return err
		}
		for _, u := range uploads {
			if _, err := s.exec(ctx, `INSERT INTO documents (id, user_id, state, leased_until, bytes, octets,
				name, type, parent, linked, extra, size, hash, hash_name, uploaded_at, accessed_at, expires_at)
				VALUES ($1, $2, 0, $3, $4, $5, '', '', '', '', '', 0, $6, '', $7, 0, 0)`,
				u.ID, u.UserID, millis(until), u.Bytes, u.Counted, []byte{}, millis(now)); err != nil {
				return err
			}
		}
		return nil
	})
	if errors.Is(err, errNoQuota) {
		return false, nil
	}
	return err == nil, err
}

// ExtendUpload implements document.UploadStore.
func (s Documents) ExtendUpload(ctx context.Context, u document.Upload, more int64, until time.Time, q document.Quotas) (document.Extension, error) {
	err := s.Unit(ctx, func(ctx context.Context) error {
		if more > 0 {
			if err := s.use(ctx, u.UserID, 0, more, q); err != nil {
				return err
			}
		}
		n, err := s.exec(ctx, "UPDATE documents SET octets = octets + $2, leased_until = $3 WHERE id = $1 AND user_id = $4 AND state = 0",
			u.ID, more, millis(until), u.UserID)
		if err == nil && n == 0 {
			err = errNoUpload
		}
		return err
	})
	switch {
	case errors.Is(err, errNoQuota):
		return document.Full, nil
	case errors.Is(err, errNoUpload):
		return document.Lost, nil
	}
	return document.Extended, err
}

// KeepDocuments implements document.Store.
func (s Documents) KeepDocuments(ctx context.Context, records []document.Record) (bool, error) {
	err := s.Unit(ctx, func(ctx context.Context) error {
		spare := map[string]int64{}
		for _, r := range records {
			reserved, found, err := one(ctx, s.DB, scalar[int64], "SELECT octets FROM documents WHERE id = $1 AND user_id = $2 AND state = 0", r.ID, r.UserID)
			if err != nil {
				return err
			}
			if !found || reserved < r.Size {
				return errNoUpload
			}
			n, err := s.exec(ctx, `UPDATE documents SET state = 1, leased_until = 0, octets = $3,
				name = $4, type = $5, parent = $6, linked = $7, extra = $8, size = $9, hash = $10, hash_name = $11,
				uploaded_at = $12, accessed_at = $13, expires_at = $14
				WHERE id = $1 AND user_id = $2 AND state = 0`,
				r.ID, r.UserID, r.Size, r.Name, r.Type, r.Parent, r.Linked, r.Extra, r.Size, r.Hash, r.HashName,
				millis(r.Uploaded), millis(r.Accessed), millis(r.Expires))
			if err != nil {
				return err
			}
			if n == 0 {
				return errNoUpload
			}
			spare[r.UserID] += reserved - r.Size
		}
		for user, size := range spare {
			if err := s.giveBack(ctx, user, 0, size); err != nil {
				return err
			}
		}
		return nil
	})
	if errors.Is(err, errNoUpload) {
		return false, nil
	}
	return err == nil, err
}

const documentColumns = "id, user_id, bytes, name, type, parent, linked, extra, size, hash, hash_name, uploaded_at, accessed_at, expires_at"

// documentVisible is the condition that a row is a document at the time $2.
const documentVisible = "user_id = $1 AND state = 1 AND (expires_at = 0 OR expires_at > $2)"

func scanDocument(r row) (d document.Record, err error) {
	err = r.Scan(&d.ID, &d.UserID, &d.Bytes, &d.Name, &d.Type, &d.Parent, &d.Linked, &d.Extra, &d.Size, &d.Hash, &d.HashName,
		(*timeField)(&d.Uploaded), (*timeField)(&d.Accessed), (*timeField)(&d.Expires))
	return d, err
}

// FindDocuments implements document.Store.
func (s Documents) FindDocuments(ctx context.Context, userID string, ids []string, now time.Time) ([]document.Record, error) {
	if len(ids) == 1 {
		return all(ctx, s.DB, scanDocument, "SELECT "+documentColumns+" FROM documents WHERE "+documentVisible+" AND id = $3", userID, millis(now), ids[0])
	}
	const portion = 500
	var list []document.Record
	for len(ids) > 0 {
		part := ids[:min(portion, len(ids))]
		ids = ids[len(part):]
		args := []any{userID, millis(now)}
		var places strings.Builder
		for i, id := range part {
			if i > 0 {
				places.WriteByte(',')
			}
			places.WriteString("$" + strconv.Itoa(i+3))
			args = append(args, id)
		}
		found, err := allUnprepared(ctx, s.DB, scanDocument, "SELECT "+documentColumns+" FROM documents WHERE "+documentVisible+" AND id IN ("+places.String()+")", args...)
		if err != nil {
			return nil, err
		}
		list = append(list, found...)
	}
	return list, nil
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

// ChangeDocument implements document.Store.
func (s Documents) ChangeDocument(ctx context.Context, i document.Info, now time.Time) (bool, error) {
	n, err := s.exec(ctx, "UPDATE documents SET name = $4, type = $5, parent = $6, linked = $7, extra = $8, expires_at = $9 WHERE "+documentVisible+" AND id = $3",
		i.UserID, millis(now), i.ID, i.Name, i.Type, i.Parent, i.Linked, i.Extra, millis(i.Expires))
	return n == 1, err
}

// TouchDocument implements document.Store.
func (s Documents) TouchDocument(ctx context.Context, id string, at time.Time) error {
	_, err := s.exec(ctx, "UPDATE documents SET accessed_at = $2 WHERE id = $1 AND state = 1 AND accessed_at < $2", id, millis(at))
	return err
}

func scanGone(r row) (g document.Gone, err error) {
	err = r.Scan(&g.ID, &g.Bytes)
	return g, err
}

// RemoveDocument implements document.Store.
func (s Documents) RemoveDocument(ctx context.Context, userID, id string, now time.Time) (document.Gone, bool, error) {
	return returning(ctx, s.DB, scanGone, "UPDATE documents SET state = 2 WHERE "+documentVisible+" AND id = $3 RETURNING id, bytes", userID, millis(now), id)
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
	if err != nil {
		return nil, err
	}
	return all(ctx, s.DB, scanGone, "SELECT id, bytes FROM documents WHERE state = 2 ORDER BY id LIMIT $1", n)
}

// ForgetDocuments implements document.Store.
func (s Documents) ForgetDocuments(ctx context.Context, ids []string) error {
	return s.Unit(ctx, func(ctx context.Context) error {
		if _, err := s.exec(ctx, "UPDATE document_usage SET objects = objects WHERE user_id = $1", allUsers); err != nil {
			return err
		}
		type sum struct{ objects, size int64 }
		sums := map[string]sum{}
		for _, id := range ids {
			held, found, err := returning(ctx, s.DB, func(r row) (u usage, err error) {
				err = r.Scan(&u.caller, &u.size)
				return u, err
			}, "DELETE FROM documents WHERE id = $1 AND state = 2 RETURNING user_id, octets", id)
			if err != nil {
				return err
			}
			if found { // another process may have deleted it
				sums[held.caller] = sum{sums[held.caller].objects + 1, sums[held.caller].size + held.size}
			}
		}
		for user, held := range sums {
			if err := s.giveBack(ctx, user, held.objects, held.size); err != nil {
				return fmt.Errorf("store: giving back a quota: %w", err)
			}
		}
		return nil
	})
}
