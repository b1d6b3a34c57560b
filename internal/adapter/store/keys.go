// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"errors"
	"time"

	"tamga/internal/domain/keys"
	"tamga/internal/domain/lock"
)

// Keys stores keys and certificates of users. It implements the stores of keys.Options.
type Keys struct{ *DB }

var (
	_ keys.Store          = Keys{}
	_ keys.RequestStore   = Keys{}
	_ keys.StatusStore    = Keys{}
	_ keys.ParameterStore = Keys{}
	_ keys.PINStore       = Keys{}
	_ keys.DeletionStore  = Keys{}
)

// Atomic implements keys.Store.
func (s Keys) Atomic(ctx context.Context, set lock.Set, fn func(ctx context.Context) error) error {
	return s.locked(ctx, set, fn)
}

// AddKey adds a key.
func (s Keys) AddKey(ctx context.Context, k keys.KeyRecord) error {
	_, err := s.exec(ctx, `INSERT INTO keys (id, user_id, holder, suite, sealed, has_pin, pin_failures, created_at)
		VALUES ($1, $2, $3, $4, $5, $6, 0, $7)`, k.ID, k.UserID, k.Holder, k.Suite, k.Sealed, k.HasPIN, millis(k.CreatedAt))
	return err
}

// Key returns the key with this id.
func (s Keys) Key(ctx context.Context, id string) (keys.KeyRecord, bool, error) {
	return one(ctx, s.DB, func(r row) (k keys.KeyRecord, err error) {
		err = r.Scan(keyFields(&k)...)
		return k, err
	}, "SELECT "+keyColumns+" FROM keys k WHERE k.id = $1", id)
}

const keyColumns = "k.id, k.user_id, k.holder, k.suite, k.sealed, k.has_pin, k.pin_failures, k.created_at"

// keyFields returns the destinations of keyColumns, in their order. NULL becomes the zero
// value.
func keyFields(k *keys.KeyRecord) []any {
	return []any{orZero(&k.ID), orZero(&k.UserID), orZero(&k.Holder), orZero(&k.Suite), &k.Sealed, orZero(&k.HasPIN), orZero(&k.PINFailures), (*nullTime)(&k.CreatedAt)}
}

// AddCertificate adds a certificate and returns its number.
func (s Keys) AddCertificate(ctx context.Context, c keys.NewCertificate) (int64, error) {
	id, found, err := returning(ctx, s.DB, scalar[int64], `INSERT INTO certificates
			(user_id, key_id, certificate, serial, friendly_name, created_at, outside)
		VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT DO NOTHING RETURNING id`,
		c.UserID, c.KeyID, c.DER, c.Serial, c.FriendlyName, millis(c.CreatedAt), c.Outside)
	if err == nil && !found {
		err = keys.ErrDuplicate
	}
	return id, err
}

const (
	// certificateColumns are the columns of a certificate c with its current status: k is
	// its key, d the default certificate of its user, and i comes from issuedJoin.
	certificateColumns = `c.id, c.user_id, c.key_id, c.certificate, c.serial, c.friendly_name, c.created_at,
		k.has_pin, d.certificate_id IS NOT NULL, COALESCE(i.revoked_at, c.status_revoked_at), COALESCE(i.reason, c.status_reason), c.revocation_comment, c.outside`
	issuedJoin = "LEFT JOIN issued_certificates i ON i.serial = c.serial AND NOT c.outside"
	// certificateKnown is true unless the built-in authority has no record of the
	// certificate.
	certificateKnown = "(c.outside OR i.serial IS NOT NULL)"
	// certificateQuery selects certificates. A condition must follow.
	certificateQuery   = "SELECT " + certificateColumns + certificateTables
	certificateWithKey = "SELECT " + certificateColumns + ", " + keyColumns + certificateTables + "c.id = $1"
	certificateTables  = `
	FROM certificates c
	JOIN keys k ON k.id = c.key_id
	` + issuedJoin + `
	LEFT JOIN default_certificates d ON d.user_id = c.user_id AND d.certificate_id = c.id
	WHERE ` + certificateKnown + " AND "
)

// certificateFields returns the destinations of certificateColumns, in their order. NULL
// becomes the zero value.
func certificateFields(c *keys.CertificateRecord) []any {
	return []any{orZero(&c.ID), orZero(&c.UserID), orZero(&c.KeyID), &c.DER, &c.Serial, orZero(&c.FriendlyName), (*nullTime)(&c.CreatedAt),
		orZero(&c.HasPIN), orZero(&c.Default), (*nullTime)(&c.RevokedAt), orZero(&c.Reason), orZero(&c.Comment), orZero(&c.Outside)}
}

func scanCertificate(r row) (c keys.CertificateRecord, err error) {
	err = r.Scan(certificateFields(&c)...)
	return c, err
}

// Certificates returns the first certificates of a user by number.
func (s Keys) Certificates(ctx context.Context, userID string) ([]keys.CertificateRecord, error) {
	return all(ctx, s.DB, scanCertificate, certificateQuery+`c.user_id = $1 ORDER BY c.id LIMIT 1000`, userID)
}

// Certificate returns the certificate with this number and its key.
func (s Keys) Certificate(ctx context.Context, id int64) (keys.CertificateRecord, keys.KeyRecord, bool, error) {
	type pair struct {
		certificate keys.CertificateRecord
		key         keys.KeyRecord
	}
	p, found, err := one(ctx, s.DB, func(r row) (p pair, err error) {
		err = r.Scan(append(certificateFields(&p.certificate), keyFields(&p.key)...)...)
		return p, err
	}, certificateWithKey, id)
	return p.certificate, p.key, found, err
}

// DefaultCertificate returns the default certificate of a user.
func (s Keys) DefaultCertificate(ctx context.Context, userID string) (keys.CertificateRecord, bool, error) {
	return one(ctx, s.DB, scanCertificate, certificateQuery+`d.user_id = $1`, userID)
}

// NoteStatus implements keys.StatusStore.
func (s Keys) NoteStatus(ctx context.Context, id int64, st keys.OutsideStatus) error {
	_, err := s.exec(ctx, `UPDATE certificates SET status_revoked_at = $2, status_reason = $3, status_due_at = $4
		WHERE id = $1 AND outside`, id, millis(st.RevokedAt), int64(st.Reason), millis(st.DueAt))
	return err
}

// NoteComment implements keys.StatusStore.
func (s Keys) NoteComment(ctx context.Context, id int64, comment string) error {
	_, err := s.exec(ctx, "UPDATE certificates SET revocation_comment = $2 WHERE id = $1", id, comment)
	return err
}

// DueStatuses implements keys.StatusStore.
func (s Keys) DueStatuses(ctx context.Context, now time.Time, after int64, limit int) ([]keys.CertificateRecord, error) {
	return all(ctx, s.DB, scanCertificate, certificateQuery+`c.outside AND c.id > $1 AND c.status_due_at <= $2
		ORDER BY c.id LIMIT $3`, after, millis(now), limit)
}

// SetDefault makes one of the user's certificates the default one. The primary key
// ensures that there is only one: of two concurrent calls the later one wins.
func (s Keys) SetDefault(ctx context.Context, userID string, id int64) (bool, error) {
	n, err := s.exec(ctx, `INSERT INTO default_certificates (user_id, certificate_id)
		SELECT user_id, id FROM certificates WHERE id = $1 AND user_id = $2
		ON CONFLICT (user_id) DO UPDATE SET certificate_id = excluded.certificate_id`, id, userID)
	return n == 1, err
}

// ReservePIN takes an attempt. When it returns, the attempt is on disk.
func (s Keys) ReservePIN(ctx context.Context, keyID string, limit int) (bool, error) {
	if s.transaction(ctx) != nil {
		return false, errors.New("store: a PIN attempt inside a transaction: a rollback would give it back")
	}
	n, err := s.exec(ctx, `UPDATE keys SET pin_failures = pin_failures + 1
		WHERE id = $1 AND pin_failures < $2`, keyID, limit)
	return n == 1, err
}

// ReturnPIN gives one attempt back.
func (s Keys) ReturnPIN(ctx context.Context, keyID string) error {
	_, err := s.exec(ctx, `UPDATE keys SET pin_failures = pin_failures - 1
		WHERE id = $1 AND pin_failures > 0`, keyID)
	return err
}

// ResetPIN gives all attempts back.
func (s Keys) ResetPIN(ctx context.Context, keyID string) error {
	_, err := s.exec(ctx, `UPDATE keys SET pin_failures = 0 WHERE id = $1`, keyID)
	return err
}
