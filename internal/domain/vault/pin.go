// SPDX-License-Identifier: Apache-2.0

package vault

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"

	"golang.org/x/crypto/argon2"

	"tamga/gost/kuznyechik"
)

// Limits of a cost, also of one read from a record. A record may come from a release or a
// configuration with other costs, but it must not exhaust the machine.
const (
	minMemoryKiB = 64
	maxMemoryKiB = 1 << 20 // 1 GiB, what the configuration allows
	maxPasses    = 16
	maxLanes     = 16

	saltSize    = 16
	costSize    = 4 + 4 + 1
	pinOverhead = costSize + saltSize + nonceSize + tagSize
)

// pinCost are the parameters of Argon2id (RFC 9106, section 3.1).
type pinCost struct {
	memoryKiB uint32 // m
	passes    uint32 // t
	lanes     uint8  // p
}

func (c pinCost) bounded() bool {
	return c.memoryKiB >= minMemoryKiB && c.memoryKiB <= maxMemoryKiB &&
		c.passes >= 1 && c.passes <= maxPasses &&
		c.lanes >= 1 && c.lanes <= maxLanes
}

// sealPIN appends the seal of a PIN to dst: memory in KiB and passes (4 bytes each,
// big-endian), lanes (1), salt (16), nonce (16), and PKCS #8 under Kuznyechik in MGM with
// the derived key, followed by its tag.
func (h *SoftHolder) sealPIN(ctx context.Context, dst []byte, k Key, pkcs8, pin []byte) ([]byte, error) {
	if len(pin) > MaxPIN {
		return dst, fmt.Errorf("vault: a PIN has at most %d bytes", MaxPIN)
	}
	start := len(dst)
	dst = binary.BigEndian.AppendUint32(dst, h.cost.memoryKiB)
	dst = binary.BigEndian.AppendUint32(dst, h.cost.passes)
	dst = append(dst, h.cost.lanes)
	dst = append(dst, make([]byte, saltSize+nonceSize)...)
	salt := dst[start+costSize : start+costSize+saltSize]
	if _, err := io.ReadFull(h.rand, salt); err != nil {
		return dst, fmt.Errorf("vault: drawing a salt: %w", err)
	}
	nonce := dst[start+costSize+saltSize:]
	if err := newNonce(h.rand, nonce); err != nil {
		return dst, err
	}
	head := dst[start : start+costSize+saltSize]
	key, err := h.derive(ctx, h.cost, salt, pin)
	if err != nil {
		return dst, err
	}
	defer clear(key)
	aead, err := newAEAD(key)
	if err != nil {
		return dst, err
	}
	return aead.Seal(dst, nonce, pkcs8, pinAssociated(head, k)), nil
}

// openPIN is the inverse of sealPIN. The outer seal authenticates the bytes, so a tag
// that does not match means a wrong PIN.
func (h *SoftHolder) openPIN(ctx context.Context, sealed []byte, k Key, pin []byte) ([]byte, error) {
	if len(sealed) <= pinOverhead {
		return nil, ErrSealed
	}
	head, rest := sealed[:costSize+saltSize], sealed[costSize+saltSize:]
	cost := pinCost{
		memoryKiB: binary.BigEndian.Uint32(head),
		passes:    binary.BigEndian.Uint32(head[4:]),
		lanes:     head[8],
	}
	if !cost.bounded() {
		return nil, fmt.Errorf("vault: the PIN of key %q needs %d KiB, %d passes and %d lanes, more than this program allows (%d KiB, %d, %d)",
			k.ID, cost.memoryKiB, cost.passes, cost.lanes, maxMemoryKiB, maxPasses, maxLanes)
	}
	if len(pin) == 0 || len(pin) > MaxPIN {
		return nil, ErrPIN // no key has such a PIN
	}
	if rest[0]&0x80 != 0 {
		return nil, ErrSealed
	}
	digest, remember := h.pins.digest(k, pin)
	var key []byte
	if remember {
		key = h.pins.recall(digest)
	}
	recalled := key != nil
	if !recalled {
		var err error
		if key, err = h.derive(ctx, cost, head[costSize:], pin); err != nil {
			return nil, err
		}
	}
	defer clear(key)
	aead, err := newAEAD(key)
	if err != nil {
		return nil, err
	}
	pkcs8, err := aead.Open(nil, rest[:nonceSize], rest[nonceSize:], pinAssociated(head, k))
	if err != nil {
		h.pins.drop(k.ID)
		return nil, ErrPIN
	}
	if remember && !recalled {
		h.pins.remember(digest, key, k.ID)
	}
	return pkcs8, nil
}

// pinAssociated binds the inner seal to its cost, salt and key.
func pinAssociated(head []byte, k Key) []byte {
	return lengthPrefixed("tamga PIN seal", string(head), k.ID, k.Suite.Name)
}

// derive runs Argon2id when there is memory for it. A running derivation is not
// interrupted: it takes tens of milliseconds.
func (h *SoftHolder) derive(ctx context.Context, c pinCost, salt, pin []byte) ([]byte, error) {
	weight := min(int64(c.memoryKiB), h.capacity)
	if err := h.memory.Acquire(ctx, weight); err != nil {
		return nil, fmt.Errorf("vault: waiting to try the PIN: %w", context.Cause(ctx))
	}
	defer h.memory.Release(weight)
	return argon2.IDKey(pin, salt, c.passes, c.memoryKiB, c.lanes, kuznyechik.KeySize), nil
}
