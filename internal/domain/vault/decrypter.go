// SPDX-License-Identifier: Apache-2.0

package vault

import (
	"context"
	"crypto/ecdsa"
	"errors"
	"fmt"

	"tamga/gost/gost3410"
	"tamga/internal/domain/fault"
	"tamga/pki/cms"
	"tamga/pki/suite"
)

// Decrypter is a Holder whose keys open encrypted messages. What needs the private key is done inside
// of the Holder. Keys of a Holder that is not a Decrypter only sign.
//
// pin, its errors and those of ctx are as in Holder.Sign.
type Decrypter interface {
	// Agree returns a shared secret as cms.RecipientKey does: VKO with a GOST key, ECDH with an EC
	// key. The caller wipes it.
	Agree(ctx context.Context, k Key, pin []byte, a cms.KeyAgreement) ([]byte, error)

	// Decrypt decrypts with an RSA key as cms.RecipientKey does: PKCS #1 v1.5 with implicit
	// rejection, or OAEP with the error cms.ErrDecrypt. The caller wipes the result.
	Decrypt(ctx context.Context, k Key, pin []byte, t cms.KeyTransport) ([]byte, error)
}

var _ Decrypter = (*SoftHolder)(nil)

// Agree implements Decrypter.
func (h *SoftHolder) Agree(ctx context.Context, k Key, pin []byte, a cms.KeyAgreement) ([]byte, error) {
	if k.Suite == nil {
		return nil, errors.New("vault: a key has a suite")
	}
	// Checked before the PIN, as in Sign.
	fits := false
	switch a.Peer.(type) {
	case *gost3410.PublicKey:
		fits = a.Hash != nil
	case *ecdsa.PublicKey:
		fits = a.Hash == nil && a.UKM == nil
	}
	if !fits || k.Suite.Accepts(a.Peer) != nil {
		return nil, fmt.Errorf("vault: a key of suite %s does not agree with a key of type %T", k.Suite.Name, a.Peer)
	}
	return h.decrypts(ctx, k, pin, func(key cms.RecipientKey) ([]byte, error) { return key.Agree(ctx, a) })
}

// Decrypt implements Decrypter.
func (h *SoftHolder) Decrypt(ctx context.Context, k Key, pin []byte, t cms.KeyTransport) ([]byte, error) {
	if k.Suite == nil {
		return nil, errors.New("vault: a key has a suite")
	}
	if k.Suite != suite.RSASHA256 {
		return nil, fmt.Errorf("vault: a key of suite %s agrees on secrets; it does not decrypt", k.Suite.Name)
	}
	return h.decrypts(ctx, k, pin, func(key cms.RecipientKey) ([]byte, error) { return key.Decrypt(ctx, t) })
}

// decrypts calls use with an opened key, and wipes the key.
func (h *SoftHolder) decrypts(ctx context.Context, k Key, pin []byte, use func(cms.RecipientKey) ([]byte, error)) ([]byte, error) {
	key, err := h.Export(ctx, k, pin)
	if err != nil {
		return nil, err
	}
	defer wipe(key)
	recipient, err := cms.NewRecipientKey(key)
	if err != nil {
		return nil, err
	}
	return use(recipient)
}

// decrypter returns the holder of a key if its keys decrypt. The fault is wrong_operation if they do not.
func (h *Holders) decrypter(k Key) (Decrypter, error) {
	in, err := h.holder(k.Holder)
	if err != nil {
		return nil, err
	}
	d, is := in.(Decrypter)
	if !is {
		return nil, fault.New(fault.WrongOperation, "the key of this certificate is kept where it only signs: it decrypts nothing").
			With(fmt.Errorf("holder %q is not a vault.Decrypter", k.Holder))
	}
	return d, nil
}

// Decrypts returns nil if the holder of a key is a Decrypter. The fault is wrong_operation if it is not,
// and temporarily_unavailable if the holder is not configured.
func (h *Holders) Decrypts(k Key) error {
	_, err := h.decrypter(k)
	return err
}

// Agree agrees on a secret with a key; see Decrypter.Agree and Holders.Decrypts.
func (h *Holders) Agree(ctx context.Context, k Key, pin []byte, a cms.KeyAgreement) ([]byte, error) {
	in, err := h.decrypter(k)
	if err != nil {
		return nil, err
	}
	secret, err := in.Agree(ctx, k, pin, a)
	return secret, unavailable(k.Holder, err)
}

// Decrypt decrypts with a key; see Decrypter.Decrypt and Holders.Decrypts.
func (h *Holders) Decrypt(ctx context.Context, k Key, pin []byte, t cms.KeyTransport) ([]byte, error) {
	in, err := h.decrypter(k)
	if err != nil {
		return nil, err
	}
	key, err := in.Decrypt(ctx, k, pin, t)
	return key, unavailable(k.Holder, err)
}
