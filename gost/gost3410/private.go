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

// A PrivateKey is a number d with 0 < d < q. It implements crypto.Signer, may be
// used by many goroutines until it is wiped, and never prints its number.
type PrivateKey struct {
	set    *Set
	hidden *hidden

	// The public key costs as much as a signature, so it waits until it is asked for.
	once   sync.Once
	public *PublicKey
}

// hidden keeps the number behind two pointers. A copy of the key's struct has no
// Format, and package fmt follows one pointer of an unexported field when a verb
// does not fit, but never two.
type hidden struct{ d *field.Scalar }

func newPrivateKey(s *Set, d *field.Scalar) *PrivateKey {
	return &PrivateKey{set: s, hidden: &hidden{d}}
}

// ErrWiped is the error of a key that was used after Wipe.
var ErrWiped = errors.New("gost3410: the private key was wiped")

// draws bounds the attempts to get a scalar below q from a random source. One
// attempt succeeds with more than one half; a source that fails this often repeats
// itself.
const draws = 256

// GenerateKey draws a private key of the set from rand; nil means the system's
// generator. Numbers out of range are drawn again, not reduced. It returns the
// error of a rand that fails.
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
	return nil, errors.New("gost3410: the random source yields no number in range")
}

// candidate reads random octets as a number of as many bits as q has and reports
// whether it is in range.
func candidate(order *field.Modulus, b []byte) (z field.Scalar, ok bool) {
	z.SetBytes(b)
	top := order.BitLen() - 1
	z[top/64] &= 1<<(top%64+1) - 1
	return z, order.Less(&z)&(1-z.IsZero()) == 1
}

// NewPrivateKey reads a private key from s.Size() little-endian octets. A number
// that is 0 or not below q is an error.
func NewPrivateKey(s *Set, d []byte) (*PrivateKey, error) {
	if len(d) != s.Size() {
		return nil, fmt.Errorf("gost3410: a private key of %s has %d octets, not %d", s.name, s.Size(), len(d))
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

// Bytes returns the key as Size little-endian octets, a copy the caller wipes.
func (k *PrivateKey) Bytes() []byte {
	b := make([]byte, k.set.Size())
	k.hidden.d.PutBytes(b)
	return b
}

// PublicKey returns the public key. The first call computes it; a key wiped before
// that has none and returns nil.
func (k *PrivateKey) PublicKey() *PublicKey {
	k.once.Do(func() {
		if k.hidden.d.IsZero() == 1 {
			return
		}
		xy := make([]byte, 2*k.set.Size())
		ok := k.set.curve.MulBase(xy, k.hidden.d)
		point, err := k.set.curve.ParseMultiple(xy)
		if !ok || err != nil {
			// d is in range, so d*G is a good point: only a broken machine comes here.
			panic("gost3410: computed a public key that is no point of the curve")
		}
		k.public = &PublicKey{set: k.set, octets: xy, point: point}
	})
	return k.public
}

// Public returns PublicKey as crypto.Signer wants it, nil where that is nil.
func (k *PrivateKey) Public() crypto.PublicKey {
	if p := k.PublicKey(); p != nil {
		return p
	}
	return nil
}

// Equal reports whether x is a *PrivateKey of the same set and number, in constant
// time for keys of one set.
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

// Wipe overwrites the number with zeros. The key signs and agrees no more.
func (k *PrivateKey) Wipe() { clear(k.hidden.d[:]) }

// String says what the key is, never its number.
func (k *PrivateKey) String() string { return "private key of " + k.set.name }

// Format writes String for every verb and flag, so that no form of printing reaches
// the number.
func (k *PrivateKey) Format(f fmt.State, _ rune) {
	if k == nil {
		io.WriteString(f, "<nil>")
		return
	}
	io.WriteString(f, k.String())
}
