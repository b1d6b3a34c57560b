// SPDX-License-Identifier: Apache-2.0

// Package vault owns secrets at rest. A Ring of master keys seals and opens
// records, each bound to the place it is stored at; a Holder makes signatures
// with private keys that no other code sees, and SoftHolder is the Holder that
// keeps them as sealed records.
//
// No key, PIN or opened record appears in an error, and a Ring or SoftHolder
// prints as its name whatever the format verb. Secrets are wiped after use as
// far as the language allows: own buffers and GOST keys are; what libraries
// copied on the way (RSA and ECDSA keys, the memory of a derivation) is left to
// the garbage collector.
package vault

import (
	"crypto/cipher"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"sync/atomic"

	"tamga/gost/kuznyechik"
	"tamga/gost/mode"
)

// ErrSealed reports that a sealed record does not open: it was changed, cut, extended, or
// moved from another place.
var ErrSealed = errors.New("vault: the sealed record was damaged or does not belong to this place")

// MasterKeySize is the length of a master key in bytes.
const MasterKeySize = kuznyechik.KeySize

const (
	maxKeyID     = 64       // bytes of a master key's id
	maxPlaintext = 64 << 10 // bytes of a record: an RSA-8192 key takes 5 KiB
	nonceSize    = 16       // bytes of an MGM nonce (RFC 9058, section 3); the top bit is zero
	tagSize      = 16       // bytes of an MGM tag

	sealVersion = 1
)

// Place is where a sealed record is stored and its purpose. The seal authenticates it, so
// a record that is moved to another row or used for another purpose does not open. Every
// field must be set; the zero Place is refused.
type Place struct {
	Purpose string // such as "private key"
	Table   string
	Row     string // primary key of the row as text
	Column  string
}

func (p Place) complete() bool {
	return p.Purpose != "" && p.Table != "" && p.Row != "" && p.Column != ""
}

// Ring holds the master keys. The active key seals and all keys open, so the active key
// can be replaced while records under the old one exist. Replace changes the keys of a
// ring in use. It is safe for concurrent use.
//
// A sealed record is one byte of version, the length of the key id (one byte), the key
// id, a nonce of 16 bytes, and the ciphertext with its tag of 16 bytes: Kuznyechik in MGM
// (RFC 9058). Nonces are random, which is safe for 2^32 records under one master key.
type Ring struct {
	rand io.Reader
	keys atomic.Pointer[masterKeys]
}

// masterKeys are the keys of a ring. They never change.
type masterKeys struct {
	active string
	byID   map[string]cipher.AEAD
}

// NewRing makes a ring of master keys of MasterKeySize bytes by their ids (1 to 64
// letters, digits, dots, dashes and underscores). The keys are copied into ciphers; the
// caller may wipe them. rand must be a secure source that is safe for concurrent use,
// such as crypto/rand.Reader.
func NewRing(active string, keys map[string][]byte, rand io.Reader) (*Ring, error) {
	if rand == nil {
		return nil, errors.New("vault: a ring needs a source of randomness")
	}
	made, err := newMasterKeys(active, keys)
	if err != nil {
		return nil, err
	}
	r := &Ring{rand: rand}
	r.keys.Store(made)
	return r, nil
}

func newMasterKeys(active string, keys map[string][]byte) (*masterKeys, error) {
	m := &masterKeys{active: active, byID: make(map[string]cipher.AEAD, len(keys))}
	for _, id := range slices.Sorted(maps.Keys(keys)) {
		if !validKeyID(id) {
			return nil, fmt.Errorf("vault: master key id %q: want 1 to %d letters, digits, dots, dashes and underscores", id, maxKeyID)
		}
		if n := len(keys[id]); n != MasterKeySize {
			return nil, fmt.Errorf("vault: master key %q has %d bytes, want %d", id, n, MasterKeySize)
		}
		aead, err := newAEAD(keys[id])
		if err != nil {
			return nil, fmt.Errorf("vault: master key %q: %w", id, err)
		}
		m.byID[id] = aead
	}
	if m.byID[active] == nil {
		return nil, fmt.Errorf("vault: the active master key %q is not in the ring", active)
	}
	return m, nil
}

// Replace takes the master keys of another ring. Calls that have begun finish with the
// keys before.
func (r *Ring) Replace(other *Ring) { r.keys.Store(other.keys.Load()) }

// WithActive returns a ring of the same keys with another active key.
func (r *Ring) WithActive(id string) (*Ring, error) {
	m := r.keys.Load()
	if m.byID[id] == nil {
		return nil, fmt.Errorf("vault: there is no master key %q in the ring", id)
	}
	other := &Ring{rand: r.rand}
	other.keys.Store(&masterKeys{active: id, byID: m.byID})
	return other, nil
}

// Active returns the id of the master key that seals.
func (r *Ring) Active() string { return r.keys.Load().active }

// IDs returns the ids of all master keys in order.
func (r *Ring) IDs() []string { return slices.Sorted(maps.Keys(r.keys.Load().byID)) }

// ErrWrongKey reports that a master key is another one than the one of the same id before.
var ErrWrongKey = errors.New("vault: wrong master key")

// canaryPlace is the place of the canary of a master key.
func canaryPlace(id string) Place {
	return Place{Purpose: "canary", Table: "master_keys", Row: id, Column: "canary"}
}

// Canary seals a known text under one of the master keys. CheckCanary later reports whether a
// key of the same id is the same key.
func (r *Ring) Canary(id string) ([]byte, error) {
	m := r.keys.Load()
	if m.byID[id] == nil {
		return nil, fmt.Errorf("vault: there is no master key %q in the ring", id)
	}
	return r.seal(&masterKeys{active: id, byID: m.byID}, canaryPlace(id), []byte("tamga"))
}

// CheckCanary returns ErrWrongKey unless the master key of this id made the canary.
func (r *Ring) CheckCanary(id string, canary []byte) error {
	if found, err := KeyID(canary); err != nil || found != id {
		return fmt.Errorf("vault: the canary of master key %q is damaged", id)
	}
	plain, err := r.Open(canaryPlace(id), canary)
	clear(plain)
	if errors.Is(err, ErrSealed) {
		return fmt.Errorf("%w: another key had the name %q before", ErrWrongKey, id)
	}
	return err
}

func validKeyID(id string) bool {
	if len(id) == 0 || len(id) > maxKeyID {
		return false
	}
	for _, c := range []byte(id) {
		if !('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '.' || c == '-' || c == '_') {
			return false
		}
	}
	return true
}

func newAEAD(key []byte) (cipher.AEAD, error) {
	block, err := kuznyechik.NewCipher(key)
	if err != nil {
		return nil, err
	}
	return mode.NewMGM(block)
}

// Seal seals plaintext (1 to 65536 bytes) under the active master key for one place.
func (r *Ring) Seal(p Place, plaintext []byte) ([]byte, error) {
	return r.seal(r.keys.Load(), p, plaintext)
}

func (r *Ring) seal(m *masterKeys, p Place, plaintext []byte) ([]byte, error) {
	if !p.complete() {
		return nil, errors.New("vault: a record is sealed for a place: purpose, table, row and column must all be set")
	}
	if len(plaintext) == 0 || len(plaintext) > maxPlaintext {
		return nil, fmt.Errorf("vault: a record has 1 to %d bytes, not %d", maxPlaintext, len(plaintext))
	}
	head := sealHead(m.active)
	sealed := make([]byte, len(head)+nonceSize, len(head)+nonceSize+len(plaintext)+tagSize)
	copy(sealed, head)
	nonce := sealed[len(head):]
	if err := newNonce(r.rand, nonce); err != nil {
		return nil, err
	}
	return m.byID[m.active].Seal(sealed, nonce, plaintext, associated(head, p)), nil
}

// ErrNoKey is wrapped by the error for a record under a master key that the ring does not have.
var ErrNoKey = errors.New("vault: the record is sealed under master key")

// Open opens what Seal made for the same place. The caller wipes the result. A
// record under a master key that is not in the ring is an error that names the
// key; any other failure is ErrSealed.
func (r *Ring) Open(p Place, sealed []byte) ([]byte, error) {
	if !p.complete() {
		return nil, errors.New("vault: a record is opened for a place: purpose, table, row and column must all be set")
	}
	id, head, err := splitSealed(sealed)
	if err != nil {
		return nil, err
	}
	aead := r.keys.Load().byID[id]
	if aead == nil {
		return nil, fmt.Errorf("%w %q, which is not in the ring: add that key to the configuration", ErrNoKey, id)
	}
	body := sealed[len(head):]
	if body[0]&0x80 != 0 {
		return nil, ErrSealed // never written, and MGM wants the bit zero
	}
	plaintext, err := aead.Open(nil, body[:nonceSize], body[nonceSize:], associated(head, p))
	if err != nil {
		return nil, ErrSealed
	}
	return plaintext, nil
}

// Reseal moves a record to the active master key. A record that is under it
// already is checked and returned as it is.
func (r *Ring) Reseal(p Place, sealed []byte) ([]byte, error) {
	plaintext, err := r.Open(p, sealed)
	if err != nil {
		return nil, err
	}
	defer clear(plaintext)
	if id, _, _ := splitSealed(sealed); id == r.Active() {
		return sealed, nil
	}
	return r.Seal(p, plaintext)
}

// KeyID returns the id of the master key that a record claims to be sealed under. The
// claim is not verified.
func KeyID(sealed []byte) (string, error) {
	id, _, err := splitSealed(sealed)
	return id, err
}

// Format implements fmt.Formatter. It prints no key for any verb.
func (r *Ring) Format(s fmt.State, _ rune) { io.WriteString(s, "vault.Ring") }

// Head returns the bytes that begin every record sealed under a master key, and no other
// record.
func Head(id string) []byte { return sealHead(id) }

// sealHead returns the bytes before the nonce: version, length of the key id, key id.
func sealHead(id string) []byte {
	head := make([]byte, 0, 2+len(id))
	head = append(head, sealVersion, byte(len(id)))
	return append(head, id...)
}

// splitSealed reads the head and makes sure that nonce, one byte of ciphertext and tag
// follow.
func splitSealed(sealed []byte) (id string, head []byte, err error) {
	if len(sealed) < 2 || len(sealed) > 2+maxKeyID+nonceSize+maxPlaintext+tagSize {
		return "", nil, ErrSealed
	}
	if sealed[0] != sealVersion {
		return "", nil, fmt.Errorf("vault: the record is sealed in form %d, this program knows form %d", sealed[0], sealVersion)
	}
	n := 2 + int(sealed[1])
	if len(sealed) < n+nonceSize+1+tagSize || !validKeyID(string(sealed[2:n])) {
		return "", nil, ErrSealed
	}
	return string(sealed[2:n]), sealed[:n], nil
}

// associated returns the associated data of a seal.
func associated(head []byte, p Place) []byte {
	return lengthPrefixed("tamga seal", string(head), p.Purpose, p.Table, p.Row, p.Column)
}

// lengthPrefixed joins parts, each preceded by its length in 4 bytes, so that different
// lists of parts never give the same bytes.
func lengthPrefixed(parts ...string) []byte {
	n := 0
	for _, part := range parts {
		n += 4 + len(part)
	}
	out := make([]byte, 0, n)
	for _, part := range parts {
		out = binary.BigEndian.AppendUint32(out, uint32(len(part)))
		out = append(out, part...)
	}
	return out
}

// newNonce fills a nonce of MGM: random bytes, top bit zero.
func newNonce(rand io.Reader, nonce []byte) error {
	if _, err := io.ReadFull(rand, nonce); err != nil {
		return fmt.Errorf("vault: drawing a nonce: %w", err)
	}
	nonce[0] &= 0x7f
	return nil
}
