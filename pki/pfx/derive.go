// SPDX-License-Identifier: Apache-2.0

package pfx

import (
	"bytes"
	"crypto/hmac"
	"crypto/pbkdf2"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"errors"
	"fmt"
	"hash"
	"unicode/utf16"

	"tamga/gost/gost341194"
	"tamga/gost/streebog"
	"tamga/pki/x509gost"
)

// prfs has the pseudorandom functions of PBKDF2.
var prfs = []struct {
	oid x509gost.OID
	new func() hash.Hash
}{
	{oidHMACStreebog512, streebog.New512},
	{x509gost.OID{1, 2, 643, 7, 1, 1, 4, 1}, streebog.New256},
	{x509gost.OID{1, 2, 643, 2, 2, 10}, newGOST94},
	{x509gost.OID{1, 2, 840, 113549, 2, 7}, sha1.New},
	{oidHMACSHA256, sha256.New},
	{x509gost.OID{1, 2, 840, 113549, 2, 10}, sha512.New384},
	{x509gost.OID{1, 2, 840, 113549, 2, 11}, sha512.New},
}

var (
	oidHMACStreebog512 = x509gost.OID{1, 2, 643, 7, 1, 1, 4, 2}
	oidHMACSHA256      = x509gost.OID{1, 2, 840, 113549, 2, 9}
	oidStreebog512     = x509gost.OID{1, 2, 643, 7, 1, 1, 2, 3}
	oidSHA256          = x509gost.OID{2, 16, 840, 1, 101, 3, 4, 2, 1}
)

// macs has the digests for the integrity code. With GOST its key comes from PBKDF2
// (RFC 9548, section 3), otherwise from the derivation of RFC 7292, appendix B.
var macs = []struct {
	oid   x509gost.OID
	new   func() hash.Hash
	gost  bool
	block int
}{
	{oidStreebog512, streebog.New512, true, 64},
	{x509gost.OID{1, 2, 643, 7, 1, 1, 2, 2}, streebog.New256, true, 64},
	{x509gost.OID{1, 2, 643, 2, 2, 9}, newGOST94, true, 32},
	{x509gost.OID{1, 3, 14, 3, 2, 26}, sha1.New, false, 64},
	{oidSHA256, sha256.New, false, 64},
	{x509gost.OID{2, 16, 840, 1, 101, 3, 4, 2, 2}, sha512.New384, false, 128},
	{x509gost.OID{2, 16, 840, 1, 101, 3, 4, 2, 3}, sha512.New, false, 128},
}

func newGOST94() hash.Hash { return gost341194.NewCryptoPro() }

// budget is the number of iterations left for a file.
type budget int

// spend takes the iterations of a derivation of several blocks from the budget.
func (b *budget) spend(iterations uint64, blocks int) (int, error) {
	if iterations == 0 {
		return 0, errors.New("a derivation has 0 iterations")
	}
	if iterations > uint64(MaxIterations) || int(iterations)*blocks > int(*b) {
		return 0, fmt.Errorf("its derivations need more than the %d iterations allowed", MaxIterations)
	}
	*b -= budget(int(iterations) * blocks)
	return int(iterations), nil
}

// stretch is PBKDF2 (RFC 8018, section 5.2). The password is UTF-8.
func stretch(new func() hash.Hash, password string, salt []byte, iterations, length int) ([]byte, error) {
	return pbkdf2.Key(new, password, salt, iterations, length)
}

// macKeyLength and macDerived: the key of the GOST code is the last 32 of 96 derived
// bytes (RFC 9548, section 3).
const (
	macKeyLength = 32
	macDerived   = 96
)

// integrity computes the integrity code of the content (RFC 7292, section 4).
func (b *budget) integrity(oid x509gost.OID, password string, salt []byte, iterations uint64, content []byte) ([]byte, error) {
	for _, m := range macs {
		if !m.oid.Equal(oid) {
			continue
		}
		size := m.new().Size()
		blocks := 1
		if m.gost {
			blocks = (macDerived + size - 1) / size
		}
		n, err := b.spend(iterations, blocks)
		if err != nil {
			return nil, err
		}
		var key []byte
		if m.gost {
			if key, err = stretch(m.new, password, salt, n, macDerived); err != nil {
				return nil, err
			}
			key = key[macDerived-macKeyLength:]
		} else {
			key = deriveMAC(m.new, m.block, wide(password), salt, n)
		}
		defer clear(key)
		h := hmac.New(m.new, key)
		h.Write(content)
		return h.Sum(nil), nil
	}
	return nil, fmt.Errorf("the digest %s of its integrity is not supported", oid)
}

// wide returns a password in the form of RFC 7292, appendix B.1: big-endian UTF-16 with a
// zero character at the end.
func wide(password string) []byte {
	var out []byte
	for _, unit := range append(utf16.Encode([]rune(password)), 0) {
		out = append(out, byte(unit>>8), byte(unit))
	}
	return out
}

// deriveMAC is the derivation of RFC 7292, appendix B.2, for an integrity key (id 3). The key
// is as long as the digest, so one round is enough.
func deriveMAC(new func() hash.Hash, block int, password, salt []byte, iterations int) []byte {
	h := new()
	h.Write(bytes.Repeat([]byte{3}, block))
	fill := func(of []byte) {
		if len(of) == 0 {
			return
		}
		whole := (len(of) + block - 1) / block * block
		h.Write(bytes.Repeat(of, whole/len(of)+1)[:whole])
	}
	fill(salt)
	fill(password)
	a := h.Sum(nil)
	for range iterations - 1 {
		h.Reset()
		h.Write(a)
		a = h.Sum(a[:0])
	}
	return a
}
