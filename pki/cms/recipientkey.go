// SPDX-License-Identifier: Apache-2.0

package cms

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/hmac"
	"crypto/rsa"
	"crypto/sha256"
	"errors"
	"fmt"

	"tamga/gost/gost3410"
	"tamga/pki/suite"
)

// RecipientKey is the private key of a recipient, wherever it is kept. A GOST or EC key has Agree, an
// RSA key has Decrypt, and the other method returns an error. Errors are of the key itself, such as a
// wrong PIN: Decrypt of a message returns them as they are.
type RecipientKey interface {
	// Agree returns a shared secret. The caller wipes it.
	Agree(ctx context.Context, a KeyAgreement) ([]byte, error)
	// Decrypt returns the key of the content. The caller wipes it.
	//
	// With PKCS #1 v1.5 it must reject implicitly: if the padding is wrong or the key does not
	// have Size bytes, it returns Size bytes that look like a key and are the same for the same
	// ciphertext, in the same time. With OAEP it returns ErrDecrypt.
	Decrypt(ctx context.Context, t KeyTransport) ([]byte, error)
}

// KeyAgreement is the input of a key agreement.
type KeyAgreement struct {
	// Peer is *gost3410.PublicKey or *ecdsa.PublicKey, on the curve of the private key.
	Peer crypto.PublicKey
	// UKM and Hash are those of gost3410.PrivateKey.VKO. With an EC key they are nil, and the
	// secret is the x coordinate of the shared point.
	UKM  []byte
	Hash *suite.Hash
}

// KeyTransport is the input of RSA decryption.
type KeyTransport struct {
	// Ciphertext is as long as the modulus.
	Ciphertext []byte
	// Size is the length of the key of the content in bytes.
	Size int
	// OAEP has the parameters of RSAES-OAEP, nil for PKCS #1 v1.5.
	OAEP *rsa.OAEPOptions
}

// NewRecipientKey returns a key in memory: *gost3410.PrivateKey, *ecdsa.PrivateKey on P-256 or
// *rsa.PrivateKey.
func NewRecipientKey(key crypto.PrivateKey) (RecipientKey, error) {
	switch k := key.(type) {
	case *gost3410.PrivateKey:
		return gostRecipient{k}, nil
	case *ecdsa.PrivateKey:
		return ecRecipient{k}, nil
	case *rsa.PrivateKey:
		d := k.D.FillBytes(make([]byte, k.Size()))
		defer clear(d)
		return &rsaRecipient{key: k, rejection: sha256.Sum256(d)}, nil
	}
	return nil, fmt.Errorf("cms: a key of type %T does not decrypt; want a GOST, RSA or EC key", key)
}

var errOtherKey = errors.New("cms: the private key does not fit the certificate of the recipient")

type gostRecipient struct{ key *gost3410.PrivateKey }

func (r gostRecipient) Agree(_ context.Context, a KeyAgreement) ([]byte, error) {
	peer, ok := a.Peer.(*gost3410.PublicKey)
	if !ok || a.Hash == nil {
		return nil, errOtherKey
	}
	return r.key.VKO(peer, a.UKM, a.Hash.New)
}

func (gostRecipient) Decrypt(context.Context, KeyTransport) ([]byte, error) { return nil, errOtherKey }

type ecRecipient struct{ key *ecdsa.PrivateKey }

func (r ecRecipient) Agree(_ context.Context, a KeyAgreement) ([]byte, error) {
	peer, ok := a.Peer.(*ecdsa.PublicKey)
	if !ok {
		return nil, errOtherKey
	}
	return agreeEC(r.key, peer)
}

func (ecRecipient) Decrypt(context.Context, KeyTransport) ([]byte, error) { return nil, errOtherKey }

// agreeEC returns the x coordinate of the shared point.
func agreeEC(key *ecdsa.PrivateKey, peer *ecdsa.PublicKey) ([]byte, error) {
	own, err := key.ECDH()
	if err != nil {
		return nil, err
	}
	other, err := peer.ECDH()
	if err != nil {
		return nil, err
	}
	return own.ECDH(other)
}

type rsaRecipient struct {
	key       *rsa.PrivateKey
	rejection [sha256.Size]byte // of the private key, for implicit rejection
}

func (*rsaRecipient) Agree(context.Context, KeyAgreement) ([]byte, error) { return nil, errOtherKey }

func (r *rsaRecipient) Decrypt(_ context.Context, t KeyTransport) ([]byte, error) {
	if t.OAEP != nil {
		key, err := r.key.Decrypt(nil, t.Ciphertext, t.OAEP)
		if err != nil || len(key) != t.Size {
			return nil, ErrDecrypt
		}
		return key, nil
	}
	if t.Size > sha256.Size {
		return nil, fmt.Errorf("cms: a key of %d bytes, want at most %d", t.Size, sha256.Size)
	}
	h := hmac.New(sha256.New, r.rejection[:])
	h.Write(t.Ciphertext)
	key := h.Sum(nil)[:t.Size]
	// It replaces key only if the padding is right. Its error is about the length of the
	// ciphertext and its value as a number, which the sender knows.
	//lint:ignore SA1019 programs send this form, and a wrong padding is rejected implicitly
	if err := rsa.DecryptPKCS1v15SessionKey(nil, r.key, t.Ciphertext, key); err != nil && !errors.Is(err, rsa.ErrDecryption) {
		return nil, err
	}
	return key, nil
}
