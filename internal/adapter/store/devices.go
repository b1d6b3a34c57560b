// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"database/sql"
	"time"

	"tamga/internal/domain/device"
	"tamga/internal/domain/lock"
)

// Devices implements device.Store, device.KInitStore, device.NonceStore and
// device.ServiceKeyStore.
type Devices struct{ *DB }

var (
	_ device.Store           = Devices{}
	_ device.KInitStore      = Devices{}
	_ device.NonceStore      = Devices{}
	_ device.ServiceKeyStore = Devices{}
)

// Atomic implements device.Store; see DB.locked.
func (s Devices) Atomic(ctx context.Context, set lock.Set, fn func(ctx context.Context) error) error {
	return s.locked(ctx, set, fn)
}

const deviceColumns = "kid, user_id, number, not_after, created_at, sealed"

func scanDevice(r row) (d device.Record, err error) {
	var user sql.NullString
	err = r.Scan(&d.Kid, &user, &d.Number, (*timeField)(&d.NotAfter), (*timeField)(&d.CreatedAt), &d.Sealed)
	d.UserID = user.String
	return d, err
}

// orNone returns the stored form of an owner: NULL for no owner, because a reference must
// have a row.
func orNone(userID string) any {
	if userID == "" {
		return nil
	}
	return userID
}

// AddDevice implements device.Store.
func (s Devices) AddDevice(ctx context.Context, r device.Record) (bool, error) {
	n, err := s.exec(ctx, "INSERT INTO devices ("+deviceColumns+") VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT DO NOTHING",
		r.Kid, orNone(r.UserID), r.Number, millis(r.NotAfter), millis(r.CreatedAt), r.Sealed)
	return n == 1, err
}

// Device implements device.Store.
func (s Devices) Device(ctx context.Context, kid string) (device.Record, bool, error) {
	return one(ctx, s.DB, scanDevice, "SELECT "+deviceColumns+" FROM devices WHERE kid = $1", kid)
}

// Devices implements device.Store.
func (s Devices) Devices(ctx context.Context, userID string) ([]device.Record, error) {
	return all(ctx, s.DB, scanDevice, "SELECT "+deviceColumns+" FROM devices WHERE user_id = $1 ORDER BY created_at, kid LIMIT 1000", userID)
}

// CountDevices implements device.Store.
func (s Devices) CountDevices(ctx context.Context, anonymous bool) (int, error) {
	query := "SELECT COUNT(*) FROM devices WHERE user_id IS NOT NULL"
	if anonymous {
		query = "SELECT COUNT(*) FROM devices WHERE user_id IS NULL"
	}
	n, _, err := one(ctx, s.DB, scalar[int64], query)
	return int(n), err
}

// OwnDevice implements device.Store.
func (s Devices) OwnDevice(ctx context.Context, r device.Record) (bool, error) {
	n, err := s.exec(ctx, "UPDATE devices SET user_id = $2, not_after = $3, sealed = $4 WHERE kid = $1 AND user_id IS NULL",
		r.Kid, r.UserID, millis(r.NotAfter), r.Sealed)
	return n == 1, err
}

// ChangeDevice implements device.Store.
func (s Devices) ChangeDevice(ctx context.Context, kid string, before, after []byte) (bool, error) {
	n, err := s.exec(ctx, "UPDATE devices SET sealed = $3 WHERE kid = $1 AND sealed = $2", kid, before, after)
	return n == 1, err
}

// CountMessage implements device.Store.
func (s Devices) CountMessage(ctx context.Context, kid string, number int64) (device.Record, bool, error) {
	return returning(ctx, s.DB, scanDevice, "UPDATE devices SET number = $2 WHERE kid = $1 AND number < $2 RETURNING "+deviceColumns, kid, number)
}

// DeleteDevice implements device.Store.
func (s Devices) DeleteDevice(ctx context.Context, kid string) (bool, error) {
	n, err := s.exec(ctx, "DELETE FROM devices WHERE kid = $1", kid)
	return n == 1, err
}

const kinitColumns = "user_id, kid, expires_at, sealed"

func scanKInit(r row) (k device.KInitRecord, err error) {
	err = r.Scan(&k.UserID, &k.Kid, (*timeField)(&k.ExpiresAt), &k.Sealed)
	return k, err
}

// AddKInit implements device.KInitStore.
func (s Devices) AddKInit(ctx context.Context, r device.KInitRecord, now time.Time) (bool, error) {
	n, err := s.exec(ctx, "INSERT INTO device_kinits ("+kinitColumns+`) VALUES ($1, $2, $3, $4)
		ON CONFLICT (user_id) DO UPDATE SET kid = excluded.kid, expires_at = excluded.expires_at, sealed = excluded.sealed
		WHERE device_kinits.expires_at <= $5`,
		r.UserID, r.Kid, millis(r.ExpiresAt), r.Sealed, millis(now))
	return n == 1, err
}

// KInit implements device.KInitStore.
func (s Devices) KInit(ctx context.Context, userID string, now time.Time) (device.KInitRecord, bool, error) {
	return one(ctx, s.DB, scanKInit, "SELECT "+kinitColumns+" FROM device_kinits WHERE user_id = $1 AND expires_at > $2", userID, millis(now))
}

// KInitByKid implements device.KInitStore.
func (s Devices) KInitByKid(ctx context.Context, kid string, now time.Time) (device.KInitRecord, bool, error) {
	return one(ctx, s.DB, scanKInit, "SELECT "+kinitColumns+" FROM device_kinits WHERE kid = $1 AND expires_at > $2", kid, millis(now))
}

// ChangeKInit implements device.KInitStore.
func (s Devices) ChangeKInit(ctx context.Context, kid string, before, after []byte) (bool, error) {
	n, err := s.exec(ctx, "UPDATE device_kinits SET sealed = $3 WHERE kid = $1 AND sealed = $2", kid, before, after)
	return n == 1, err
}

// SpendKInit implements device.KInitStore.
func (s Devices) SpendKInit(ctx context.Context, kid string, now time.Time) (bool, error) {
	n, err := s.exec(ctx, "DELETE FROM device_kinits WHERE kid = $1 AND expires_at > $2", kid, millis(now))
	return n == 1, err
}

// SetNonce implements device.NonceStore.
func (s Devices) SetNonce(ctx context.Context, r device.NonceRecord) error {
	_, err := s.exec(ctx, `INSERT INTO device_nonces (kid, hash, expires_at, sealed) VALUES ($1, $2, $3, $4)
		ON CONFLICT (kid) DO UPDATE SET hash = excluded.hash, expires_at = excluded.expires_at, sealed = excluded.sealed`,
		r.Kid, r.Hash, millis(r.ExpiresAt), r.Sealed)
	return err
}

// Nonce implements device.NonceStore.
func (s Devices) Nonce(ctx context.Context, kid string, now time.Time) (device.NonceRecord, bool, error) {
	return one(ctx, s.DB, func(r row) (n device.NonceRecord, err error) {
		err = r.Scan(&n.Kid, &n.Hash, (*timeField)(&n.ExpiresAt), &n.Sealed)
		return n, err
	}, "SELECT kid, hash, expires_at, sealed FROM device_nonces WHERE kid = $1 AND expires_at > $2", kid, millis(now))
}

// SpendNonce implements device.NonceStore.
func (s Devices) SpendNonce(ctx context.Context, kid string, hash []byte, now time.Time) (bool, error) {
	n, err := s.exec(ctx, "DELETE FROM device_nonces WHERE kid = $1 AND hash = $2 AND expires_at > $3", kid, hash, millis(now))
	return n == 1, err
}

// DeleteNonce implements device.NonceStore.
func (s Devices) DeleteNonce(ctx context.Context, kid string) error {
	_, err := s.exec(ctx, "DELETE FROM device_nonces WHERE kid = $1", kid)
	return err
}

// ServiceKey implements device.ServiceKeyStore.
func (s Devices) ServiceKey(ctx context.Context, algorithm string) (device.ServiceKeyRecord, bool, error) {
	return one(ctx, s.DB, func(r row) (k device.ServiceKeyRecord, err error) {
		err = r.Scan(&k.Algorithm, &k.Sealed, (*timeField)(&k.CreatedAt))
		return k, err
	}, "SELECT algorithm, sealed, created_at FROM device_service_keys WHERE algorithm = $1", algorithm)
}

// AddServiceKey implements device.ServiceKeyStore.
func (s Devices) AddServiceKey(ctx context.Context, r device.ServiceKeyRecord) (bool, error) {
	n, err := s.exec(ctx, "INSERT INTO device_service_keys (algorithm, sealed, created_at) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING",
		r.Algorithm, r.Sealed, millis(r.CreatedAt))
	return n == 1, err
}

// ReplaceServiceKey implements device.ServiceKeyStore.
func (s Devices) ReplaceServiceKey(ctx context.Context, before []byte, r device.ServiceKeyRecord) (bool, error) {
	n, err := s.exec(ctx, "UPDATE device_service_keys SET sealed = $3, created_at = $4 WHERE algorithm = $1 AND sealed = $2",
		r.Algorithm, before, r.Sealed, millis(r.CreatedAt))
	return n == 1, err
}

const formerKeyColumns = "algorithm, digest, sealed, statement, until_at"

func scanFormerKey(r row) (k device.FormerKeyRecord, err error) {
	err = r.Scan(&k.Algorithm, &k.Digest, &k.Sealed, &k.Statement, (*timeField)(&k.Until))
	return k, err
}

// SetFormerKey implements device.ServiceKeyStore.
func (s Devices) SetFormerKey(ctx context.Context, r device.FormerKeyRecord) error {
	_, err := s.exec(ctx, "INSERT INTO former_device_service_keys ("+formerKeyColumns+`) VALUES ($1, $2, $3, $4, $5)
		ON CONFLICT (algorithm) DO UPDATE SET digest = excluded.digest, sealed = excluded.sealed, statement = excluded.statement,
		until_at = excluded.until_at`, r.Algorithm, r.Digest, r.Sealed, r.Statement, millis(r.Until))
	return err
}

// FormerKey implements device.ServiceKeyStore.
func (s Devices) FormerKey(ctx context.Context, digest []byte, now time.Time) (device.FormerKeyRecord, bool, error) {
	return one(ctx, s.DB, scanFormerKey, "SELECT "+formerKeyColumns+" FROM former_device_service_keys WHERE digest = $1 AND until_at > $2", digest, millis(now))
}

// FormerKeyOf implements device.ServiceKeyStore.
func (s Devices) FormerKeyOf(ctx context.Context, algorithm string, now time.Time) (device.FormerKeyRecord, bool, error) {
	return one(ctx, s.DB, scanFormerKey, "SELECT "+formerKeyColumns+" FROM former_device_service_keys WHERE algorithm = $1 AND until_at > $2", algorithm, millis(now))
}

// DeleteFormerKey implements device.ServiceKeyStore.
func (s Devices) DeleteFormerKey(ctx context.Context, algorithm string) error {
	_, err := s.exec(ctx, "DELETE FROM former_device_service_keys WHERE algorithm = $1", algorithm)
	return err
}

// SweepDevices implements device.Store. Devices of users stay after their keys have
// expired, because operators see them.
func (s Devices) SweepDevices(ctx context.Context, now time.Time) error {
	for _, query := range []string{
		"DELETE FROM device_kinits WHERE expires_at <= $1",
		"DELETE FROM device_nonces WHERE expires_at <= $1",
		"DELETE FROM devices WHERE user_id IS NULL AND not_after <= $1",
		"DELETE FROM former_device_service_keys WHERE until_at <= $1",
	} {
		if _, err := s.exec(ctx, query, millis(now)); err != nil {
			return err
		}
	}
	return nil
}
