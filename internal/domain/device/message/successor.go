// SPDX-License-Identifier: Apache-2.0

package message

import (
	"crypto"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"io"
	"time"

	"tamga/pki/x509gost"
)

// successorLabel begins what the key before a new one signs.
const successorLabel = "tamga service key 1"

// MaxKeyOverlap bounds the time that a key of the service is valid after it was replaced. A device
// refuses a statement with a later end.
const MaxKeyOverlap = 400 * 24 * time.Hour

// Successor is a statement of a key of the service about the key that follows it. A device
// that knows the signing key keeps both until the end of the signing key.
type Successor struct {
	Key       []byte `json:"key"`       // SubjectPublicKeyInfo of the new key
	Until     int64  `json:"until"`     // end of the key that signs, Unix seconds
	Signature string `json:"signature"` // Base64URL
}

// NewSuccessor signs a statement about a new key of the service with the key before it. A nil
// random means crypto/rand.Reader.
func NewSuccessor(serviceURL string, before, after []byte, until int64, key crypto.Signer, random io.Reader) (Successor, error) {
	n := Successor{Key: after, Until: until}
	_, s, err := x509gost.ParsePublicKey(before)
	if err != nil {
		return Successor{}, fmt.Errorf("message: the key of the service: %w", err)
	}
	value, err := s.Sign(random, key, s.Hash.Digest(n.input(serviceURL, before)))
	if err == nil {
		value, err = s.XMLValue(value)
	}
	if err != nil {
		return Successor{}, fmt.Errorf("message: signing a new key: %w", err)
	}
	n.Signature = base64.RawURLEncoding.EncodeToString(value)
	return n, nil
}

// input returns the bytes that the key before signs.
func (n *Successor) input(serviceURL string, before []byte) []byte {
	return prefixed([]byte(successorLabel), []byte(serviceURL), before, n.Key, binary.BigEndian.AppendUint64(nil, uint64(n.Until)))
}

// Verify reports whether the holder of a key of the service, the SubjectPublicKeyInfo before,
// signed the statement for this service, and whether the new key is of the same algorithm. The
// caller compares Until with the time.
func (n *Successor) Verify(serviceURL string, before []byte) bool {
	pub, s, err := x509gost.ParsePublicKey(before)
	if err != nil || s.Accepts(pub) != nil {
		return false
	}
	after, kind, err := x509gost.ParsePublicKey(n.Key)
	if err != nil || kind != s || kind.Accepts(after) != nil {
		return false
	}
	signature, err := base64.RawURLEncoding.Strict().DecodeString(n.Signature)
	if err != nil {
		return false
	}
	value, err := s.FromXMLValue(signature)
	return err == nil && s.Verify(pub, s.Hash.Digest(n.input(serviceURL, before)), value) == nil
}
