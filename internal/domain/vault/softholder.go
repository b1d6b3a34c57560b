// SPDX-License-Identifier: Apache-2.0

package vault

import (
	"context"
	"crypto"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"golang.org/x/sync/semaphore"

	"tamga/gost/gost3410"
	"tamga/pki/suite"
	"tamga/pki/suite/gather"
	"tamga/pki/x509gost"
)

// purposeKey is the purpose of the outer seal of a private key.
const purposeKey = "private key"

// column is where tables keep vault.Key.Sealed.
const column = "sealed"

// Content of the outer seal of a private key: one of these bytes, then PKCS #8 in DER or
// the output of sealPIN.
const (
	innerPlain = 0
	innerPIN   = 1
)

// SoftOptions are the costs of a PIN.
type SoftOptions struct {
	MemoryKiB uint32 // memory of one derivation: 64 to 1048576 KiB; 0 means 19456
	Passes    uint32 // passes over it: 1 to 16; 0 means 2
	Parallel  int    // derivations at a time in this process; 0 means 4

	// Remember is how long a right PIN is recognized without a derivation; see Key.Mark.
	// 0 means never.
	Remember time.Duration
	// Warn is called if nothing is remembered because no memory can be locked. It may be nil.
	Warn func(error)
}

// SoftHolder is the Holder that stores private keys as records sealed by a Ring. The
// outer seal is that of the master key. A key with a PIN has an inner seal, under a key
// derived from the PIN (Argon2id, RFC 9106). So a stolen database is useless without the
// master key, the master key can be replaced without any PIN, and an attacker who has
// both must still find the PIN.
//
// Derivations use at most MemoryKiB times Parallel; further calls wait. A key that was
// sealed at a cost above that limit waits for all of it and then uses the memory that it
// needs.
//
// A key that was derived from a right PIN may be remembered for a bounded time, in locked
// memory of the process; see Key.Mark.
type SoftHolder struct {
	ring     *Ring
	rand     io.Reader
	cost     pinCost
	capacity int64 // KiB
	memory   *semaphore.Weighted
	pins     *pinMemory // nil: PINs are not remembered
	signs    *gather.Calls[signature]
}

// signature is one signature with an opened GOST key.
type signature struct {
	gost3410.SignItem
	value []byte
	err   error
}

const (
	signsMost  = 8 // signatures at a time: the lanes of the widest vectors
	signsLeast = 4 // from which lanes are faster than one after another
)

// sign makes the signatures of callers who came at the same moment, each with a key of its own.
func (h *SoftHolder) sign(asked []*signature) {
	if len(asked) >= signsLeast {
		items := make([]gost3410.SignItem, len(asked))
		for i, s := range asked {
			items[i] = s.SignItem
		}
		if values, err := gost3410.SignMany(h.rand, items); err == nil {
			for i, s := range asked {
				s.value = values[i]
			}
			return
		}
		// One of them failed. The others must not.
	}
	for _, s := range asked {
		s.value, s.err = s.Key.Sign(h.rand, s.Digest, nil)
	}
}

// NewSoftHolder makes a holder over a ring. rand must be a secure source that
// is safe for concurrent use. Costs out of bounds are an error.
func NewSoftHolder(ring *Ring, rand io.Reader, o SoftOptions) (*SoftHolder, error) {
	if ring == nil || rand == nil {
		return nil, errors.New("vault: a holder needs a ring and a source of randomness")
	}
	if o.MemoryKiB == 0 {
		o.MemoryKiB = 19 << 10
	}
	if o.Passes == 0 {
		o.Passes = 2
	}
	if o.Parallel == 0 {
		o.Parallel = 4
	}
	cost := pinCost{memoryKiB: o.MemoryKiB, passes: o.Passes, lanes: 1}
	if !cost.bounded() || o.Parallel < 0 {
		return nil, fmt.Errorf("vault: cost of a PIN: want %d to %d KiB of memory, 1 to %d passes, and at least one derivation at a time",
			minMemoryKiB, maxMemoryKiB, maxPasses)
	}
	capacity := int64(o.MemoryKiB) * int64(o.Parallel)
	h := &SoftHolder{
		ring: ring, rand: rand, cost: cost,
		capacity: capacity, memory: semaphore.NewWeighted(capacity),
	}
	h.signs = gather.New(signsMost, h.sign)
	if o.Remember > 0 {
		pins, err := newPINMemory(o.Remember)
		if err != nil && o.Warn != nil {
			o.Warn(err)
		}
		h.pins = pins
	}
	return h, nil
}

// Knows reports whether a PIN opened k, with the same mark, not longer ago than
// SoftOptions.Remember. If it did, Sign needs no derivation.
func (h *SoftHolder) Knows(k Key, pin []byte) bool {
	d, ok := h.pins.digest(k, pin)
	return ok && h.pins.knows(d)
}

// Close wipes the remembered keys. The holder remembers nothing after that.
func (h *SoftHolder) Close() error {
	h.pins.close()
	return nil
}

var _ Holder = (*SoftHolder)(nil)

// Format implements fmt.Formatter. It prints no secret for any verb.
func (h *SoftHolder) Format(s fmt.State, _ rune) { io.WriteString(s, "vault.SoftHolder") }

// Generate implements Holder.
func (h *SoftHolder) Generate(ctx context.Context, id string, s *suite.Suite, set *gost3410.Set, pin []byte) (Key, crypto.PublicKey, error) {
	if s == nil {
		return Key{}, nil, errors.New("vault: a key has a suite")
	}
	var key crypto.Signer
	var err error
	if set == nil {
		key, err = s.Generate(h.rand)
	} else {
		key, err = gost3410.GenerateKey(set, h.rand)
	}
	if err != nil {
		return Key{}, nil, err
	}
	defer wipe(key)
	return h.Import(ctx, id, s, key, pin)
}

// Import implements Holder.
func (h *SoftHolder) Import(ctx context.Context, id string, s *suite.Suite, key crypto.Signer, pin []byte) (Key, crypto.PublicKey, error) {
	if s == nil || key == nil {
		return Key{}, nil, errors.New("vault: want a suite and a key of it")
	}
	if err := s.Accepts(key.Public()); err != nil {
		return Key{}, nil, err
	}
	pkcs8, err := x509gost.MarshalPrivateKey(key, s)
	if err != nil {
		return Key{}, nil, err
	}
	defer clear(pkcs8)
	k, err := h.seal(ctx, Key{ID: id, Suite: s}, pkcs8, pin)
	return k, key.Public(), err
}

// Sign implements Holder.
func (h *SoftHolder) Sign(ctx context.Context, k Key, pin []byte, digests []suite.Digest) ([][]byte, error) {
	if k.Suite == nil {
		return nil, errors.New("vault: a key has a suite")
	}
	// Checked before the PIN, so that a wrong digest reveals nothing about the PIN.
	for _, d := range digests {
		if d.Hash != k.Suite.Hash || len(d.Sum) != k.Suite.Hash.Size {
			return nil, fmt.Errorf("vault: a key of suite %s signs digests of %s, %d bytes each", k.Suite.Name, k.Suite.Hash.Name, k.Suite.Hash.Size)
		}
	}
	pkcs8, err := h.open(ctx, k, pin)
	if err != nil {
		return nil, err
	}
	key, err := parseKey(pkcs8, k.Suite)
	clear(pkcs8)
	if err != nil {
		return nil, err
	}
	defer wipe(key)
	if gost, ok := key.(*gost3410.PrivateKey); ok {
		// The value of a GOST suite is what the algorithm returns. Suite.Sign would
		// ask the key for its public half, which costs as much as a signature.
		if len(digests) == 1 {
			s := &signature{SignItem: gost3410.SignItem{Key: gost, Digest: digests[0].Sum}}
			if h.signs.Do(s); s.err != nil {
				return nil, s.err
			}
			return [][]byte{s.value}, nil
		}
		items := make([]gost3410.SignItem, len(digests))
		for i, d := range digests {
			items[i] = gost3410.SignItem{Key: gost, Digest: d.Sum}
		}
		return gost3410.SignMany(h.rand, items)
	}
	values := make([][]byte, len(digests))
	for i, d := range digests {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if values[i], err = k.Suite.Sign(h.rand, key, d); err != nil {
			return nil, err
		}
	}
	return values, nil
}

// Rewrap implements Holder.
func (h *SoftHolder) Rewrap(ctx context.Context, k Key, oldPIN, newPIN []byte) (Key, error) {
	pkcs8, err := h.open(ctx, k, oldPIN)
	if err != nil {
		return Key{}, err
	}
	defer clear(pkcs8)
	return h.seal(ctx, k, pkcs8, newPIN)
}

// Delete implements Holder: all of a key is in its row.
func (h *SoftHolder) Delete(context.Context, Key) error { return nil }

// Ready implements Holder: the ring is in memory.
func (h *SoftHolder) Ready(context.Context) error { return nil }

// Reseal moves a key to the active master key; no PIN is needed. A key that is
// under it already is returned as it is.
func (h *SoftHolder) Reseal(k Key) (Key, error) {
	place, err := placeOf(k.ID)
	if err != nil {
		return Key{}, err
	}
	k.Sealed, err = h.ring.Reseal(place, k.Sealed)
	return k, err
}

// placeOf reads the id of a key: "TABLE:ROW".
func placeOf(id string) (Place, error) {
	table, row, _ := strings.Cut(id, ":")
	if table == "" || row == "" {
		return Place{}, fmt.Errorf("vault: key id %q: want TABLE:ROW", id)
	}
	return Place{Purpose: purposeKey, Table: table, Row: row, Column: column}, nil
}

// seal puts the inner seal, if there is a PIN, and the outer seal around a key.
func (h *SoftHolder) seal(ctx context.Context, k Key, pkcs8, pin []byte) (Key, error) {
	place, err := placeOf(k.ID)
	if err != nil {
		return Key{}, err
	}
	inner := make([]byte, 1, 1+len(pkcs8)+pinOverhead)
	defer func() { clear(inner) }()
	k.HasPIN = len(pin) > 0
	if k.HasPIN {
		inner[0] = innerPIN
		if inner, err = h.sealPIN(ctx, inner, k, pkcs8, pin); err != nil {
			return Key{}, err
		}
	} else {
		inner[0] = innerPlain
		inner = append(inner, pkcs8...)
	}
	k.Sealed, err = h.ring.Seal(place, inner)
	return k, err
}

// open removes both seals. The caller wipes the PKCS #8 that it returns.
func (h *SoftHolder) open(ctx context.Context, k Key, pin []byte) ([]byte, error) {
	place, err := placeOf(k.ID)
	if err != nil {
		return nil, err
	}
	inner, err := h.ring.Open(place, k.Sealed)
	if err != nil {
		return nil, err
	}
	// HasPIN is stored unsealed in the row of the key. A changed value fails here.
	switch {
	case inner[0] == innerPlain && !k.HasPIN:
		return inner[1:], nil
	case inner[0] == innerPIN && k.HasPIN:
		return h.openPIN(ctx, inner[1:], k, pin)
	}
	clear(inner)
	return nil, fmt.Errorf("%w: the row has HasPIN %t, the sealed record has the opposite", ErrSealed, k.HasPIN)
}

func parseKey(pkcs8 []byte, s *suite.Suite) (crypto.Signer, error) {
	key, found, err := x509gost.ParsePrivateKey(pkcs8)
	if err != nil {
		return nil, fmt.Errorf("vault: a sealed key: %w", err)
	}
	if found != s {
		wipe(key)
		return nil, fmt.Errorf("%w: the key is of suite %s, its row says %s", ErrSealed, found.Name, s.Name)
	}
	return key, nil
}
