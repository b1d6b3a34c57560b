// SPDX-License-Identifier: Apache-2.0

package gost3410

import (
	"crypto"
	crand "crypto/rand"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"sync"

	"tamga/gost/gost3410/internal/field"
)

// A PrivateKey is a number d with 0 < d < q. It implements crypto.Signer. It is safe
// for concurrent use until it is wiped. It never prints its number.
type PrivateKey struct {
	set    *Set
	hidden *hidden

	// Computing the public key costs as much as a signature, so the first call of
	// PublicKey does it.
	once   sync.Once
	public *PublicKey
}

// hidden keeps the number behind two pointers so that package fmt cannot print it. A
// copy of the struct PrivateKey has no method Format. For a verb that does not fit,
// package fmt follows one pointer of an unexported field, but never two.
type hidden struct{ d *field.Scalar }

func newPrivateKey(s *Set, d *field.Scalar) *PrivateKey {
	return &PrivateKey{set: s, hidden: &hidden{d}}
}

// ErrWiped is returned by Sign, SignMany and VKO for a key that was wiped.
var ErrWiped = errors.New("gost3410: the private key was wiped")

// draws is the maximum number of attempts to get a scalar below q from a random
// source. One attempt succeeds with a probability above 1/2, so a source that fails
// this often is broken.
const draws = 256

// GenerateKey returns a new private key of the set from random bytes of rand. A nil
// rand means the system's generator. Numbers out of range are drawn again, not
// reduced. It returns an error if rand fails or returns no number in range in 256
// attempts.
func GenerateKey(s *Set, rand io.Reader) (*PrivateKey, error) {
	if rand == nil {
		rand = crand.Reader
	}
	b := make([]byte, s.Size())
	defer clear(b)
	for range draws {
		if _, err := io.ReadFull(rand, b); err != nil {
			return nil, fmt.Errorf("gost3410: random source: %w", err)
		}
		if d, ok := candidate(s.curve.Order(), b); ok {
			return newPrivateKey(s, &d), nil
		}
	}
	return nil, errors.New("gost3410: the random source returned no number between 0 and q in any attempt")
}

// candidate reads random bytes as a number with as many bits as q and reports whether
// it is between 0 and q.
func candidate(order *field.Modulus, b []byte) (z field.Scalar, ok bool) {
	z.SetBytes(b)
	top := order.BitLen() - 1
	z[top/64] &= 1<<(top%64+1) - 1
	return z, order.Less(&z)&(1-z.IsZero()) == 1
}

// NewPrivateKey reads a private key from s.Size() little-endian bytes. It returns an
// error for another length and for a number that is 0 or not below q.
func NewPrivateKey(s *Set, d []byte) (*PrivateKey, error) {
	if len(d) != s.Size() {
		return nil, fmt.Errorf("gost3410: a private key of %s must have %d bytes, got %d", s.name, s.Size(), len(d))
	}
	z := new(field.Scalar)
	z.SetBytes(d)
	if s.curve.Order().Less(z)&(1-z.IsZero()) == 0 {
		clear(z[:])
		return nil, fmt.Errorf("gost3410: the private key is not between 0 and the order of %s", s.name)
	}
	return newPrivateKey(s, z), nil
}

// Set returns the parameter set of the key.
func (k *PrivateKey) Set() *Set { return k.set }

// Bytes returns the key as Size little-endian bytes. The caller wipes this copy.
func (k *PrivateKey) Bytes() []byte {
	b := make([]byte, k.set.Size())
	k.hidden.d.PutBytes(b)
	return b
}

// PublicKey returns the public key. The first call computes it. It returns nil if the
// key was wiped before the first call.
func (k *PrivateKey) PublicKey() *PublicKey {
	k.once.Do(func() {
		if k.hidden.d.IsZero() == 1 {
			return
		}
		xy := make([]byte, 2*k.set.Size())
		ok := k.set.curve.MulBase(xy, k.hidden.d)
		point, err := k.set.curve.ParseMultiple(xy)
		if !ok || err != nil {
			// d is in range, so d*G is a valid point. Only a hardware fault gets here.
			panic("gost3410: the computed public key is not on the curve: hardware fault")
		}
		k.public = &PublicKey{set: k.set, xy: xy, point: point}
	})
	return k.public
}

// Public returns the result of PublicKey, as crypto.Signer requires. It returns nil if
// PublicKey returns nil.
func (k *PrivateKey) Public() crypto.PublicKey {
	if p := k.PublicKey(); p != nil {
		return p
	}
	return nil
}

// Equal reports whether x is a *PrivateKey of the same set with the same number. It
// compares the numbers in constant time.
func (k *PrivateKey) Equal(x crypto.PrivateKey) bool {
	other, ok := x.(*PrivateKey)
	if !ok || other == nil || k.set != other.set {
		return false
	}
	a, b := k.Bytes(), other.Bytes()
	defer clear(a)
	defer clear(b)
	return subtle.ConstantTimeCompare(a, b) == 1
}

// Wipe overwrites the number with zeros. After that Sign, SignMany and VKO return
// ErrWiped.
func (k *PrivateKey) Wipe() { clear(k.hidden.d[:]) }

// String returns "private key of " and the name of the set, never the number.
func (k *PrivateKey) String() string { return "private key of " + k.set.name }

// Format writes String for every verb and flag, so that no verb prints the number.
func (k *PrivateKey) Format(f fmt.State, _ rune) {
	if k == nil {
		io.WriteString(f, "<nil>")
		return
	}
	io.WriteString(f, k.String())
}
