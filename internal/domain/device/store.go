// SPDX-License-Identifier: Apache-2.0

package device

import (
	"context"
	"time"

	"tamga/internal/domain/lock"
)

// Record is a device as it is stored. Sealed contains everything else, and copies of
// these fields except the message number.
type Record struct {
	Kid       string
	UserID    string // "" for a device without a user
	Number    int64  // of the last message
	NotAfter  time.Time
	CreatedAt time.Time
	Sealed    []byte
}

// KInitRecord is a K-init as it is stored.
type KInitRecord struct {
	UserID    string
	Kid       string // of the new device
	ExpiresAt time.Time
	Sealed    []byte
}

// NonceRecord is a pending verification of a device as it is stored.
type NonceRecord struct {
	Kid       string
	Hash      []byte // SHA-256 of the nonce
	ExpiresAt time.Time
	Sealed    []byte
}

// Store keeps devices. The transactions of Atomic include the calls that fn makes to
// KInitStore and NonceStore.
type Store interface {
	// Atomic locks the set first. A nested Atomic joins the transaction and may name only
	// what is locked already.
	Atomic(ctx context.Context, locked lock.Set, fn func(ctx context.Context) error) error

	// AddDevice adds a device. It reports false when the kid is taken.
	AddDevice(ctx context.Context, r Record) (bool, error)
	Device(ctx context.Context, kid string) (r Record, found bool, err error)
	Devices(ctx context.Context, userID string) ([]Record, error) // the oldest first
	// CountDevices counts the devices of all users, or those without a user.
	CountDevices(ctx context.Context, anonymous bool) (int, error)
	// OwnDevice gives a device without a user to a user, with a new sealed record. It
	// reports false when the device has a user or is missing. It is one atomic statement.
	OwnDevice(ctx context.Context, r Record) (bool, error)
	// ChangeDevice replaces the sealed record before by after. It reports false when the
	// stored record is not before.
	ChangeDevice(ctx context.Context, kid string, before, after []byte) (bool, error)
	// CountMessage spends a message number of a device. It reports false when the device
	// has spent this number or a later one, or is missing. It is one atomic statement.
	CountMessage(ctx context.Context, kid string, number int64) (Record, bool, error)
	DeleteDevice(ctx context.Context, kid string) (bool, error)
	// SweepDevices deletes what has expired by now: K-inits, nonces, devices without a
	// user, former keys of the service.
	SweepDevices(ctx context.Context, now time.Time) error
}

// KInitStore keeps K-inits.
type KInitStore interface {
	// AddKInit adds the K-init of a user, in place of an expired one. It reports false
	// when the user has a valid one.
	AddKInit(ctx context.Context, r KInitRecord, now time.Time) (bool, error)
	KInit(ctx context.Context, userID string, now time.Time) (r KInitRecord, found bool, err error)
	KInitByKid(ctx context.Context, kid string, now time.Time) (r KInitRecord, found bool, err error)
	ChangeKInit(ctx context.Context, kid string, before, after []byte) (bool, error)
	// SpendKInit deletes a valid K-init. It reports true once.
	SpendKInit(ctx context.Context, kid string, now time.Time) (bool, error)
}

// ServiceKeyRecord is a key of the service as it is stored.
type ServiceKeyRecord struct {
	Algorithm string // name of the suite
	Sealed    []byte
	CreatedAt time.Time
}

// FormerKeyRecord is a key of the service that was replaced, as it is stored.
type FormerKeyRecord struct {
	Algorithm string // name of the suite
	Digest    []byte // SHA-256 of the public key
	Sealed    []byte
	Statement string    // message.Successor as JSON
	Until     time.Time // end of the key
}

// ServiceKeyStore keeps the keys by which devices know the service: one for each algorithm,
// and at most one that it has replaced.
type ServiceKeyStore interface {
	ServiceKey(ctx context.Context, algorithm string) (r ServiceKeyRecord, found bool, err error)
	// AddServiceKey adds a key. It reports false if the algorithm has one.
	AddServiceKey(ctx context.Context, r ServiceKeyRecord) (bool, error)
	// ReplaceServiceKey replaces the key of an algorithm. It reports false if the sealed
	// record that is stored is not before.
	ReplaceServiceKey(ctx context.Context, before []byte, r ServiceKeyRecord) (bool, error)
	// SetFormerKey stores a key that was replaced, in place of the former one of the algorithm.
	SetFormerKey(ctx context.Context, r FormerKeyRecord) error
	// FormerKey finds a former key by its digest, and FormerKeyOf by its algorithm, until its
	// end.
	FormerKey(ctx context.Context, digest []byte, now time.Time) (r FormerKeyRecord, found bool, err error)
	FormerKeyOf(ctx context.Context, algorithm string, now time.Time) (r FormerKeyRecord, found bool, err error)
	DeleteFormerKey(ctx context.Context, algorithm string) error
}

// NonceStore keeps pending verifications of devices.
type NonceStore interface {
	// SetNonce begins a verification, in place of a previous one.
	SetNonce(ctx context.Context, r NonceRecord) error
	Nonce(ctx context.Context, kid string, now time.Time) (r NonceRecord, found bool, err error)
	// SpendNonce ends the verification with this nonce if it is valid. It reports true
	// once.
	SpendNonce(ctx context.Context, kid string, hash []byte, now time.Time) (bool, error)
	DeleteNonce(ctx context.Context, kid string) error
}
