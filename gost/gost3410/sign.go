// SPDX-License-Identifier: Apache-2.0

package gost3410

import (
	"crypto"
	crand "crypto/rand"
	"errors"
	"fmt"
	"io"

	"tamga/gost/gost3410/internal/field"
)

// Sign signs a digest and returns s followed by r, both big-endian in Size bytes
// (RFC 7091, section 6.1; RFC 4491, section 2.2.2). The digest is the hash function's
// output of Size bytes. Sign implements crypto.Signer. It ignores opts, because the
// set and the length of the digest determine everything.
//
// The nonce comes from HMAC-DRBG seeded with Size bytes of rand, the key, the digest
// and the name of the set. If rand is good, the nonce is random. If rand is bad, the
// nonce is still secret and differs for every digest. A nil rand means the system's
// generator. An error of rand is returned. Sign checks that the nonce point is on the
// curve before it returns the signature. It does not verify the whole signature.
//
// A digest of another length is an error, and a wiped key returns ErrWiped.
func (k *PrivateKey) Sign(rand io.Reader, digest []byte, opts crypto.SignerOpts) ([]byte, error) {
	if err := k.ready(digest); err != nil {
		return nil, err
	}
	size, order := k.set.Size(), k.set.curve.Order()
	if rand == nil {
		rand = crand.Reader
	}
	seed := make([]byte, 0, 3*size+len(k.set.name)) // randomness, key, digest, name of the set
	defer func() { clear(seed[:cap(seed)]) }()
	if _, err := io.ReadFull(rand, seed[:size]); err != nil {
		return nil, fmt.Errorf("gost3410: random source: %w", err)
	}
	k.hidden.d.PutBytes(seed[size : 2*size])
	seed = append(append(seed[:2*size], digest...), k.set.name...)
	generator := newDRBG(seed)
	defer generator.wipe()

	e := digestScalar(order, digest)
	for range draws {
		nonce, ok := candidate(order, generator.read(size))
		if !ok {
			continue
		}
		signature, err := k.signWith(&nonce, &e)
		clear(nonce[:])
		if signature != nil || err != nil {
			return signature, err
		}
	}
	return nil, errNonce
}

var errNonce = errors.New("gost3410: the nonce generator returned no number between 0 and q in any attempt")

// ready returns an error if the key cannot sign the digest.
func (k *PrivateKey) ready(digest []byte) error {
	if size := k.set.Size(); len(digest) != size {
		return fmt.Errorf("gost3410: a digest for %s must have %d bytes, got %d", k.set.name, size, len(digest))
	}
	if k.hidden.d.IsZero() == 1 {
		return ErrWiped
	}
	return nil
}

// signWith returns the signature of e with a nonce between 0 and q. It returns nil if
// the nonce must not be used because r or s would be 0. An error means a hardware
// fault.
func (k *PrivateKey) signWith(nonce, e *field.Scalar) ([]byte, error) {
	xy := make([]byte, 2*k.set.Size())
	if !k.set.curve.MulBase(xy, nonce) {
		return nil, errFault
	}
	return k.signAt(xy, nonce, e), nil
}

var errFault = errors.New("gost3410: the computed nonce point is not on the curve: hardware fault")

// signAt is the second half of signWith: xy is the nonce point, which it wipes.
func (k *PrivateKey) signAt(xy []byte, nonce, e *field.Scalar) []byte {
	size, order := k.set.Size(), k.set.curve.Order()
	var r, s, t field.Scalar
	r.SetBytes(xy[:size])
	order.Reduce(&r, &r)
	order.Mul(&s, &r, k.hidden.d)
	order.Mul(&t, nonce, e)
	order.Add(&s, &s, &t)
	clear(t[:])
	clear(xy)
	if r.IsZero()|s.IsZero() == 1 {
		return nil
	}
	signature := make([]byte, 2*size)
	putBigEndian(signature[:size], &s)
	putBigEndian(signature[size:], &r)
	return signature
}
