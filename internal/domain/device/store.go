package device

import (
	"context"
	"time"
)

// Record is a device as it is stored. Sealed holds everything else, and again what
// stands here beside the message number.
type Record struct {
	Kid       string
	UserID    string // "" for nobody's
	Number    int64  // of the last message
	NotAfter  time.Time
	CreatedAt time.Time
	Sealed    []byte
}

// KInitRecord is a K-init as it is stored.
type KInitRecord struct {
	UserID    string
	Kid       string // of the device to be
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
	Atomic(ctx context.Context, fn func(ctx context.Context) error) error

	// AddDevice adds a device; false when the kid is taken.
	AddDevice(ctx context.Context, r Record) (bool, error)
	Device(ctx context.Context, kid string) (r Record, found bool, err error)
	Devices(ctx context.Context, userID string) ([]Record, error) // the oldest first
	// CountDevices counts the devices of all users, or those of nobody.
	CountDevices(ctx context.Context, anonymous bool) (int, error)
	// OwnDevice gives a device of nobody to a user, with a new sealed record; false
	// when it has an owner or is not there. One statement decides.
	OwnDevice(ctx context.Context, r Record) (bool, error)
	// ChangeDevice puts a sealed record in the place of the one that was read; false
	// when that one is not there any more.
	ChangeDevice(ctx context.Context, kid string, before, after []byte) (bool, error)
	// CountMessage takes a message number for a device, once: false when the device
	// has had this one or a later one, or is not there. One statement decides.
	CountMessage(ctx context.Context, kid string, number int64) (Record, bool, error)
	DeleteDevice(ctx context.Context, kid string) (bool, error)
	// SweepDevices deletes what has expired by now: K-inits, nonces, devices of nobody.
	SweepDevices(ctx context.Context, now time.Time) error
}

// KInitStore keeps K-inits.
type KInitStore interface {
	// AddKInit adds the K-init of a user in the place of an expired one; false when
	// the user has one that lives.
	AddKInit(ctx context.Context, r KInitRecord, now time.Time) (bool, error)
	KInit(ctx context.Context, userID string, now time.Time) (r KInitRecord, found bool, err error)
	KInitByKid(ctx context.Context, kid string, now time.Time) (r KInitRecord, found bool, err error)
	ChangeKInit(ctx context.Context, kid string, before, after []byte) (bool, error)
	// SpendKInit deletes a K-init that lives; true is told once.
	SpendKInit(ctx context.Context, kid string, now time.Time) (bool, error)
}

// NonceStore keeps pending verifications of devices.
type NonceStore interface {
	// SetNonce begins a verification in the place of a former one.
	SetNonce(ctx context.Context, r NonceRecord) error
	Nonce(ctx context.Context, kid string, now time.Time) (r NonceRecord, found bool, err error)
	// SpendNonce ends the verification with this nonce if it lives; true is told once.
	SpendNonce(ctx context.Context, kid string, hash []byte, now time.Time) (bool, error)
	DeleteNonce(ctx context.Context, kid string) error
}
