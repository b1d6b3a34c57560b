// SPDX-License-Identifier: Apache-2.0

// Package otp computes and finds one-time passwords of a shared secret: HOTP (RFC 4226),
// whose steps are a counter, and TOTP (RFC 6238), whose steps are time.
//
// Begin with [New], [Key.Match] and [Step]. Match returns the step of a code and compares in
// constant time. The hash functions are those of RFC 6238, and Streebog with the HMAC of
// RFC 7836 (4.1.1 and 4.1.2). The last byte of an HMAC gives the offset of the code, also in
// a longer HMAC, as in RFC 6238.
//
// The package does not store steps. The caller must not accept a step twice.
package otp

import (
	"crypto/hmac"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"crypto/subtle"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"io"
	"strings"
	"time"

	"tamga/gost/streebog"
)

// Algorithm names the hash function of a key's HMAC.
type Algorithm string

// The algorithms. On processors without the vector instructions that package streebog
// names, its timing depends on what it hashes.
const (
	SHA1        Algorithm = "SHA1"
	SHA256      Algorithm = "SHA256"
	SHA512      Algorithm = "SHA512"
	Streebog256 Algorithm = "STREEBOG256"
	Streebog512 Algorithm = "STREEBOG512"
)

var hashes = map[Algorithm]func() hash.Hash{
	SHA1: sha1.New, SHA256: sha256.New, SHA512: sha512.New,
	Streebog256: streebog.New256, Streebog512: streebog.New512,
}

// AlgorithmNamed finds an algorithm by its name, however its words are joined
// ("SHA1", "sha-1", "HmacSHA1", "HMAC-SHA-1").
func AlgorithmNamed(text string) (Algorithm, bool) {
	text = strings.NewReplacer("-", "", "_", "", " ", "").Replace(strings.ToUpper(text))
	a := Algorithm(strings.TrimPrefix(text, "HMAC"))
	return a, hashes[a] != nil
}

// Size returns the length of the HMAC in bytes, which RFC 6238 also recommends for secrets.
// It returns 0 for an unknown algorithm.
func (a Algorithm) Size() int {
	if hashes[a] == nil {
		return 0
	}
	return hashes[a]().Size()
}

// Bounds of keys.
const (
	MinSecret = 16  // bytes: RFC 4226, 4, R6 requires at least 128 bits
	MaxSecret = 256 // bytes
	MinDigits = 6
	MaxDigits = 8
	MaxStep   = 1 << 62 // steps are 0 to this
)

// maxWindow bounds the steps that one look at a window tries.
const maxWindow = 100_000

// Key makes and recognises the codes of one token. It is not safe for concurrent use
// and prints as its name whatever the format verb.
type Key struct {
	digits  int
	modulus uint32
	mac     hash.Hash
	sum     []byte
}

// New returns a key for codes of 6 to 8 digits from a secret of MinSecret to MaxSecret
// bytes. The key keeps only hashes of the secret. The caller should wipe the secret.
func New(a Algorithm, digits int, secret []byte) (*Key, error) {
	h := hashes[a]
	switch {
	case h == nil:
		return nil, errors.New("otp: unknown algorithm: want SHA1, SHA256, SHA512, STREEBOG256 or STREEBOG512")
	case digits < MinDigits || digits > MaxDigits:
		return nil, fmt.Errorf("otp: codes of %d digits: want %d to %d", digits, MinDigits, MaxDigits)
	case len(secret) < MinSecret || len(secret) > MaxSecret:
		return nil, fmt.Errorf("otp: a secret of %d bytes: want %d to %d", len(secret), MinSecret, MaxSecret)
	}
	k := &Key{digits: digits, modulus: 1, mac: hmac.New(h, secret)}
	for range digits {
		k.modulus *= 10
	}
	return k, nil
}

// Format prints no secret whatever the verb.
func (k *Key) Format(s fmt.State, _ rune) { io.WriteString(s, "otp.Key") }

// Code is the code of a step (RFC 4226, 5.3), 0 to MaxStep.
func (k *Key) Code(step int64) string {
	return fmt.Sprintf("%0*d", k.digits, k.number(step))
}

// number is the code as a number.
func (k *Key) number(step int64) uint32 {
	var counter [8]byte
	binary.BigEndian.PutUint64(counter[:], uint64(step))
	k.mac.Reset()
	k.mac.Write(counter[:])
	k.sum = k.mac.Sum(k.sum[:0])
	// The offset depends on the secret, but it is random, and the HMAC fits into one or two
	// cache lines. So the address of the read reveals nothing about the secret.
	offset := k.sum[len(k.sum)-1] & 0x0f
	return (binary.BigEndian.Uint32(k.sum[offset:]) & 0x7fffffff) % k.modulus
}

// Match finds the first step from one to another, both included, that a code belongs
// to. Spaces in the code do not count. It takes the same time for every code.
func (k *Key) Match(code string, from, to int64) (step int64, ok bool) {
	want, valid := k.parse(code)
	n, valid2 := window(from, to)
	if !valid || !valid2 {
		return 0, false
	}
	found := -1
	for i := n - 1; i >= 0; i-- { // downwards, so that the first one stays
		same := subtle.ConstantTimeEq(int32(k.number(from+int64(i))), want)
		found = subtle.ConstantTimeSelect(same, i, found)
	}
	if found < 0 {
		return 0, false
	}
	return from + int64(found), true
}

// MatchPair finds the first step from one to another, both included, that the first of
// two codes belongs to and whose next step the second belongs to. It returns the step of
// the second.
func (k *Key) MatchPair(first, second string, from, to int64) (step int64, ok bool) {
	want, valid := k.parse(first)
	wantNext, valid2 := k.parse(second)
	n, valid3 := window(from, to)
	if !valid || !valid2 || !valid3 {
		return 0, false
	}
	found := -1
	next := k.number(from + int64(n))
	for i := n - 1; i >= 0; i-- {
		this := k.number(from + int64(i))
		same := subtle.ConstantTimeEq(int32(this), want) & subtle.ConstantTimeEq(int32(next), wantNext)
		found = subtle.ConstantTimeSelect(same, i, found)
		next = this
	}
	if found < 0 {
		return 0, false
	}
	return from + int64(found) + 1, true
}

// window counts the steps of a window.
func window(from, to int64) (n int, ok bool) {
	if from < 0 || to < from || to >= MaxStep || to-from >= maxWindow {
		return 0, false
	}
	return int(to-from) + 1, true
}

// parse reads a code of the right length.
func (k *Key) parse(code string) (number int32, ok bool) {
	digits := 0
	for _, c := range []byte(code) {
		switch {
		case c == ' ':
			continue
		case c < '0' || c > '9' || digits == k.digits:
			return 0, false
		}
		number = number*10 + int32(c-'0')
		digits++
	}
	return number, digits == k.digits
}

// Step is the step that a time is in, for a period of whole seconds (RFC 6238, 4.2 with
// T0 = 0).
func Step(t time.Time, period time.Duration) int64 {
	return max(t.Unix(), 0) / int64(period/time.Second)
}
