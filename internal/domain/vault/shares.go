// SPDX-License-Identifier: Apache-2.0

package vault

import (
	"bytes"
	"crypto/sha256"
	"encoding/base32"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/cloudflare/circl/group"
	"github.com/cloudflare/circl/secretsharing"
)

// Shares of a master key (Shamir's scheme, decision 0026). A share is a line of text that can be printed
// and typed. Fewer shares than the threshold say nothing about the key but a check value of 64 bits.
//
// Below the text, in Base32, is: the version 1, four bytes that are the same in all shares of a set, the
// threshold, the number of shares, the number of this share, the length of the key's id, the id, the value
// of the share in 48 bytes, the check value of the key in 8 bytes, the checksum of all that in 4 bytes.

// MaxShares is the greatest number of shares.
const MaxShares = 20

// shareGroup is the field of the scheme. Its order is larger than 2^256, so any master key is one of its
// numbers.
var shareGroup = group.P384

const (
	sharePrefix   = "TAMGA1"
	shareVersion  = 1
	shareSetSize  = 4
	shareValue    = 48 // bytes of a number of shareGroup
	shareCheck    = 8
	shareChecksum = 4
)

var shareText = base32.StdEncoding.WithPadding(base32.NoPadding)

// Split returns shares of a master key. Any threshold of them are enough for Join.
func Split(rand io.Reader, id string, key []byte, shares, threshold int) ([]string, error) {
	switch {
	case len(key) != MasterKeySize || !validKeyID(id):
		return nil, fmt.Errorf("vault: want a master key of %d bytes and its name", MasterKeySize)
	case threshold < 2 || shares < threshold || shares > MaxShares:
		return nil, fmt.Errorf("vault: want a threshold of at least 2, at least as many shares, and at most %d shares", MaxShares)
	}
	set := make([]byte, shareSetSize)
	if _, err := io.ReadFull(rand, set); err != nil {
		return nil, err
	}
	padded := make([]byte, shareValue)
	defer clear(padded)
	copy(padded[shareValue-MasterKeySize:], key)
	secret := shareGroup.NewScalar()
	if err := secret.UnmarshalBinary(padded); err != nil {
		return nil, errors.New("vault: the master key cannot be split")
	}
	check := keyCheck(set, id, key)
	var texts []string
	for i, s := range secretsharing.New(rand, uint(threshold-1), secret).Share(uint(shares)) {
		value, err := s.Value.MarshalBinary()
		if err != nil || len(value) != shareValue {
			return nil, errors.New("vault: the master key cannot be split")
		}
		b := append([]byte{shareVersion}, set...)
		b = append(b, byte(threshold), byte(shares), byte(i+1), byte(len(id)))
		b = append(b, id...)
		b = append(b, value...)
		b = append(b, check...)
		sum := sha256.Sum256(b)
		b = append(b, sum[:shareChecksum]...)
		var text strings.Builder
		text.WriteString(sharePrefix)
		encoded := shareText.EncodeToString(b)
		for len(encoded) > 0 {
			n := min(5, len(encoded))
			text.WriteString("-" + encoded[:n])
			encoded = encoded[n:]
		}
		texts = append(texts, text.String())
		clear(b)
		clear(value)
	}
	return texts, nil
}

// keyCheck returns the check value of a master key.
func keyCheck(set []byte, id string, key []byte) []byte {
	sum := sha256.Sum256(lengthPrefixed("tamga share", string(set), id, string(key)))
	return sum[:shareCheck]
}

// Share is a share that was read.
type Share struct {
	KeyID             string
	Threshold, Number int
	of                int
	set, check, value []byte
}

// ParseShare reads a share. Letter case, spaces and dashes do not matter. Its error never quotes the
// text.
func ParseShare(text string) (*Share, error) {
	text = strings.ToUpper(text)
	text = strings.Map(func(r rune) rune {
		switch {
		case r == '-' || r == ' ' || r == '\t':
			return -1
		case r > 0x7f:
			return '?'
		}
		return r
	}, text)
	body, ok := strings.CutPrefix(text, sharePrefix)
	if !ok {
		return nil, fmt.Errorf("vault: not a share: it begins with %s", sharePrefix)
	}
	// The alphabet has no 0, 1 and 8, so what looks like them is meant.
	b, err := shareText.DecodeString(strings.NewReplacer("0", "O", "1", "I", "8", "B").Replace(body))
	const fixed = 1 + shareSetSize + 4 + shareValue + shareCheck + shareChecksum
	if err != nil || len(b) < fixed+1 || len(b) > fixed+maxKeyID {
		return nil, errors.New("vault: the share is incomplete or has a typing error")
	}
	defer clear(b)
	sum := sha256.Sum256(b[:len(b)-shareChecksum])
	if !bytes.Equal(sum[:shareChecksum], b[len(b)-shareChecksum:]) {
		return nil, errors.New("vault: the share has a typing error: its checksum is wrong")
	}
	if b[0] != shareVersion {
		return nil, fmt.Errorf("vault: the share has version %d, this program knows version %d", b[0], shareVersion)
	}
	rest := b[1:]
	next := func(n int) []byte { part := rest[:n:n]; rest = rest[n:]; return bytes.Clone(part) }
	s := &Share{set: next(shareSetSize)}
	head := next(4)
	s.Threshold, s.of, s.Number = int(head[0]), int(head[1]), int(head[2])
	if len(b) != fixed+int(head[3]) || s.Threshold < 2 || s.of < s.Threshold || s.of > MaxShares || s.Number < 1 || s.Number > s.of {
		return nil, errors.New("vault: the share has impossible numbers")
	}
	s.KeyID = string(next(int(head[3])))
	s.value, s.check = next(shareValue), next(shareCheck)
	if !validKeyID(s.KeyID) {
		return nil, errors.New("vault: the share has an impossible name of a key")
	}
	return s, nil
}

// Format implements fmt.Formatter. It prints no secret for any verb.
func (s *Share) Format(f fmt.State, _ rune) {
	fmt.Fprintf(f, "share %d of %d of master key %q", s.Number, s.of, s.KeyID)
}

// Join returns the master key of shares. The caller wipes it.
func Join(shares []*Share) (id string, key []byte, err error) {
	if len(shares) == 0 {
		return "", nil, errors.New("vault: no shares")
	}
	first := shares[0]
	var list []secretsharing.Share
	seen := map[int]bool{}
	for _, s := range shares {
		if !bytes.Equal(s.set, first.set) || s.KeyID != first.KeyID || s.Threshold != first.Threshold || !bytes.Equal(s.check, first.check) {
			return "", nil, fmt.Errorf("vault: %v and %v are of different sets", first, s)
		}
		if seen[s.Number] {
			continue
		}
		seen[s.Number] = true
		value := shareGroup.NewScalar()
		if err := value.UnmarshalBinary(s.value); err != nil {
			return "", nil, fmt.Errorf("vault: %v is damaged", s)
		}
		list = append(list, secretsharing.Share{ID: shareGroup.NewScalar().SetUint64(uint64(s.Number)), Value: value})
	}
	if len(list) < first.Threshold {
		return "", nil, fmt.Errorf("vault: %d different shares are not enough: want %d", len(list), first.Threshold)
	}
	secret, err := secretsharing.Recover(uint(first.Threshold-1), list)
	if err != nil {
		return "", nil, errors.New("vault: the shares do not fit together")
	}
	padded, err := secret.MarshalBinary()
	if err != nil || len(padded) != shareValue {
		return "", nil, errors.New("vault: the shares do not fit together")
	}
	defer clear(padded)
	key = bytes.Clone(padded[shareValue-MasterKeySize:])
	if !bytes.Equal(keyCheck(first.set, first.KeyID, key), first.check) {
		clear(key)
		return "", nil, errors.New("vault: the shares make another key than the one that was split")
	}
	return first.KeyID, key, nil
}
