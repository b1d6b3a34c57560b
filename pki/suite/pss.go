// SPDX-License-Identifier: Apache-2.0

package suite

import (
	"bytes"
	"crypto/rsa"
	"errors"
	"fmt"
	"math/big"

	"golang.org/x/crypto/cryptobyte"
	cbasn1 "golang.org/x/crypto/cryptobyte/asn1"
)

// PSS holds the parameters of RSASSA-PSS (RFC 8017, A.2.3). The mask generation function
// is always MGF1 and the trailer is always 0xbc.
type PSS struct {
	Hash *Hash // of the message
	MGF  *Hash // of MGF1
	Salt int   // bytes of salt
}

// maxSalt is a bound in bytes above what any supported modulus can hold.
const maxSalt = maxRSABits / 8

var oidMGF1 = OID{1, 2, 840, 113549, 1, 1, 8}

// Scheme returns RSA-PSS with the parameters.
func (p PSS) Scheme() *Scheme {
	name := "RSA-PSS with " + p.Hash.Name
	if p.MGF != p.Hash {
		name += " and MGF1 of " + p.MGF.Name
	}
	return &Scheme{Name: name, Hash: p.Hash, OID: OIDPSS, kind: kindPSS, pss: &p}
}

// NewPSS checks the parameters. Both digests must be in the standard library, so GOST
// digests are refused: RSA is not used with GOST.
func NewPSS(h, mgf *Hash, salt int) (PSS, error) {
	switch {
	case h == nil || mgf == nil || h.std == 0 || mgf.std == 0:
		return PSS{}, fmt.Errorf("suite: RSA-PSS: digest algorithm: %w", ErrUnsupported)
	case salt < 0 || salt > maxSalt:
		return PSS{}, fmt.Errorf("suite: RSA-PSS: a salt of %d bytes; it must have 0 to %d", salt, maxSalt)
	}
	return PSS{Hash: h, MGF: mgf, Salt: salt}, nil
}

// ParsePSS reads RSASSA-PSS-params. Every field has a default: SHA-1, MGF1 with SHA-1,
// 20 bytes of salt. Absent parameters are an error, because RFC 4055, 3.1 requires them
// in a signature.
func ParsePSS(parameters []byte) (PSS, error) {
	in := cryptobyte.String(parameters)
	var seq cryptobyte.String
	if !in.ReadASN1(&seq, cbasn1.SEQUENCE) || !in.Empty() {
		return PSS{}, errors.New("suite: the parameters of RSA-PSS are not a SEQUENCE")
	}
	field := func(n uint8) (content cryptobyte.String, present, ok bool) {
		ok = seq.ReadOptionalASN1(&content, &present, cbasn1.Tag(n).Constructed().ContextSpecific())
		return content, present, ok
	}
	malformed := errors.New("suite: the parameters of RSA-PSS are malformed")
	h, mgf, salt, trailer := SHA1, SHA1, 20, 1
	content, present, ok := field(0)
	if !ok {
		return PSS{}, malformed
	}
	var err error
	if present {
		if h, err = readHash(content); err != nil {
			return PSS{}, err
		}
	}
	if content, present, ok = field(1); !ok {
		return PSS{}, malformed
	}
	if present {
		var algorithm cryptobyte.String
		var oid OID
		if !content.ReadASN1(&algorithm, cbasn1.SEQUENCE) || !content.Empty() || !algorithm.ReadASN1ObjectIdentifier(&oid) {
			return PSS{}, malformed
		}
		if !oid.Equal(oidMGF1) {
			return PSS{}, unsupported("mask generation function", oid)
		}
		if mgf, err = readHash(algorithm); err != nil {
			return PSS{}, err
		}
	}
	for n, number := range []*int{&salt, &trailer} {
		if content, present, ok = field(uint8(2 + n)); !ok || present && (!content.ReadASN1Integer(number) || !content.Empty()) {
			return PSS{}, malformed
		}
	}
	if !seq.Empty() {
		return PSS{}, malformed
	}
	if trailer != 1 {
		return PSS{}, fmt.Errorf("suite: RSA-PSS: %w: trailer field %d; it must be 1", ErrUnsupported, trailer)
	}
	return NewPSS(h, mgf, salt)
}

// readHash reads the AlgorithmIdentifier of a digest. Nothing may follow it.
func readHash(in cryptobyte.String) (*Hash, error) {
	var seq cryptobyte.String
	var oid OID
	if !in.ReadASN1(&seq, cbasn1.SEQUENCE) || !in.Empty() || !seq.ReadASN1ObjectIdentifier(&oid) ||
		!seq.Empty() && !bytes.Equal(seq, []byte{byte(cbasn1.NULL), 0}) {
		return nil, errors.New("suite: the digest algorithm in the parameters of RSA-PSS is malformed")
	}
	h, ok := HashByOID(oid)
	if !ok {
		return nil, unsupported("digest algorithm", oid)
	}
	return h, nil
}

// verify is RSASSA-PSS-VERIFY (RFC 8017, 8.1.2). crypto/rsa supports neither another
// digest in MGF1 nor a salt of exactly 0 bytes. All values here are public.
func (p *PSS) verify(key *rsa.PublicKey, sum, value []byte) bool {
	s := new(big.Int).SetBytes(value)
	if len(value) != key.Size() || s.Cmp(key.N) >= 0 {
		return false
	}
	bits := key.N.BitLen() - 1 // length of the encoded message
	size := (bits + 7) / 8
	m := s.Exp(s, big.NewInt(int64(key.E)), key.N)
	if m.BitLen() > bits {
		return false
	}
	em := m.FillBytes(make([]byte, size))
	split := size - p.Hash.Size - 1 // bytes of the masked block
	if split < p.Salt+1 || em[size-1] != 0xbc {
		return false
	}
	block, digest := em[:split], em[split:size-1]
	top := byte(0xff) >> (8*size - bits) // the bits of the first byte in use
	if block[0]&^top != 0 {
		return false
	}
	p.unmask(block, digest)
	block[0] &= top
	zeros := block[:split-p.Salt-1]
	if len(bytes.TrimLeft(zeros, "\x00")) != 0 || block[len(zeros)] != 1 {
		return false
	}
	h := p.Hash.New()
	h.Write(make([]byte, 8))
	h.Write(sum)
	h.Write(block[len(zeros)+1:])
	return bytes.Equal(h.Sum(nil), digest)
}

// unmask adds MGF1 of the seed to a block (RFC 8017, B.2.1).
func (p *PSS) unmask(block, seed []byte) {
	for counter := byte(0); len(block) > 0; counter++ { // 8192 bits need 64 rounds at most
		h := p.MGF.New()
		h.Write(seed)
		h.Write([]byte{0, 0, 0, counter})
		for _, c := range h.Sum(nil) {
			if len(block) == 0 {
				return
			}
			block[0] ^= c
			block = block[1:]
		}
	}
}
