// SPDX-License-Identifier: Apache-2.0

package vault

import (
	"context"
	"crypto"
	"errors"

	"tamga/gost/gost3410"
	"tamga/pki/suite"
)

// ErrPIN reports that the PIN is not the one the key was sealed with.
var ErrPIN = errors.New("vault: the PIN does not open the key")

// MaxPIN is the greatest length of a PIN in bytes of UTF-8.
const MaxPIN = 256

// Key is a private key as its owner stores it. It contains nothing in the clear.
type Key struct {
	// ID names the key in the installation as "TABLE:ROW", the table without a
	// colon. It is bound into the seal: a key copied to another row, or from the
	// authority's table into the users', does not open.
	ID string
	// Holder is the name of the Holder that keeps the key; see Holders. A Holder neither reads
	// nor sets it.
	Holder string
	// Suite is the suite the key signs with.
	Suite *suite.Suite
	// Sealed is the Holder's own form: a sealed record, or a reference into a
	// device.
	Sealed []byte
	// HasPIN is true when the key opens only with a PIN. The Holder compares it with the
	// sealed record.
	HasPIN bool
	// Mark names the circumstances under which the Holder may recognize a PIN that was right a
	// moment ago: a PIN is recognized only with the same mark. "" keeps the Holder from
	// remembering anything of this use. It is not stored.
	Mark string
}

// ErrNotReady reports that a Holder cannot be used now and may be later: its service does not
// answer, its device is gone. Every method of a Holder may return an error that wraps it.
var ErrNotReady = errors.New("vault: the holder of the key is not ready")

// Holder makes and uses private keys. Only the Holder sees them in the clear. It is safe
// for concurrent use.
type Holder interface {
	// Generate makes a key of suite s and returns it with its public half. set is the
	// parameter set of a GOST key, nil for the default one of the suite. An empty pin makes a
	// key without one. The id is as in Key.
	Generate(ctx context.Context, id string, s *suite.Suite, set *gost3410.Set, pin []byte) (Key, crypto.PublicKey, error)

	// Import stores a key that was made elsewhere. The caller still owns and wipes its
	// copy.
	Import(ctx context.Context, id string, s *suite.Suite, key crypto.Signer, pin []byte) (Key, crypto.PublicKey, error)

	// Sign signs digests of the key's suite and returns as many values in the form of
	// suite.Sign, in the same order: all or none. It does not verify the values. They are
	// verified once, against the certificate, when a value is put into a document. A key
	// without a PIN ignores pin. A wrong pin is ErrPIN; an error of ctx means that the
	// caller learnt nothing about the pin.
	Sign(ctx context.Context, k Key, pin []byte, digests []suite.Digest) ([][]byte, error)

	// Rewrap gives a key another PIN: sets one, changes it, or removes it with an
	// empty newPIN. ErrPIN as in Sign. The key is also moved to the active master
	// key.
	Rewrap(ctx context.Context, k Key, oldPIN, newPIN []byte) (Key, error)

	// Delete destroys what the Holder keeps of a key besides Key.Sealed. It is called after the
	// row of the key is gone, again after a failure, and possibly by several processes at once:
	// a key that is gone already is no error.
	Delete(ctx context.Context, k Key) error

	// Ready reports whether keys can be used now: nil, or an error that wraps ErrNotReady and
	// says why not. It answers within the deadline of ctx.
	Ready(ctx context.Context) error
}
