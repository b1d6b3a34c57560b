package gost3410

import (
	"crypto"
	crand "crypto/rand"
	"errors"
	"fmt"
	"io"

	"tamga/gost/gost3410/internal/field"
)

// Sign signs a digest, the hash function's output of Size octets, and returns s
// followed by r, both big-endian in Size octets (RFC 7091, section 6.1; RFC 4491,
// section 2.2.2). It has the form crypto.Signer asks for; opts stays unread because
// the digest's length says all there is to say.
//
// The nonce comes from HMAC-DRBG over octets of rand, the key, the digest and
// the set: with good randomness it is random, with bad it is still secret and
// another one for another digest. A nil rand means the system's generator; an
// error of rand is returned. Before a signature leaves, the nonce point is
// checked to be on the curve; the signature as a whole is not verified.
func (k *PrivateKey) Sign(rand io.Reader, digest []byte, opts crypto.SignerOpts) ([]byte, error) {
	if err := k.ready(digest); err != nil {
		return nil, err
	}
	size, order := k.set.Size(), k.set.curve.Order()
	if rand == nil {
		rand = crand.Reader
	}
	seed := make([]byte, 0, 3*size+len(k.set.name)) // randomness, the key, the digest, the set
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

var errNonce = errors.New("gost3410: the nonce generator yields no number in range")

// ready says why the key cannot sign the digest.
func (k *PrivateKey) ready(digest []byte) error {
	if size := k.set.Size(); len(digest) != size {
		return fmt.Errorf("gost3410: a digest for %s has %d octets, not %d", k.set.name, size, len(digest))
	}
	if k.hidden.d.IsZero() == 1 {
		return ErrWiped
	}
	return nil
}

// signWith returns the signature of e with a nonce between 0 and q, or nil for a
// nonce that must not be used because r or s would be 0. An error is a fault of
// the machine.
func (k *PrivateKey) signWith(nonce, e *field.Scalar) ([]byte, error) {
	xy := make([]byte, 2*k.set.Size())
	if !k.set.curve.MulBase(xy, nonce) {
		return nil, errFault
	}
	return k.signAt(xy, nonce, e), nil
}

var errFault = errors.New("gost3410: the nonce point came out off the curve, the machine is at fault")

// signAt is signWith once the nonce's point is known. It wipes the point.
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
