// SPDX-License-Identifier: Apache-2.0

package keys

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"tamga/internal/domain/vault"
	"tamga/pki/cms"
)

// DecryptIn returns a certificate of a user with its key, to decrypt one message that was encrypted for
// it. snap is the one that c was resolved with, nil means to read the key. The key opens nothing before it
// is used, and it is used once: with the rules of Sign about PINs, so that it must not be used in a
// transaction. Its errors are those of cms.RecipientKey and the faults of Sign.
//
// A certificate decrypts after it expired and while it is revoked or on hold, because what was encrypted for
// it before stays. With RefuseEnded it must pass Judge. Nothing checks its key usage.
//
// Faults: invalid_certificate, also for the certificate of another user, wrong_operation for a key that only
// signs, see vault.Decrypter, and temporarily_unavailable.
func (s *Service) DecryptIn(ctx context.Context, snap *Snapshot, userID string, c *Certificate, pin string) (cms.Opening, error) {
	if err := s.Decrypts(ctx, snap, userID, c); err != nil {
		return cms.Opening{}, err
	}
	return cms.Opening{Certificate: c.X509, Key: &recipientKey{keys: s, snap: snap, certificate: c, pin: pin}}, nil
}

// Decrypts returns nil if a certificate decrypts for a user now, otherwise the fault of DecryptIn. Only the PIN
// of its key is not asked for.
func (s *Service) Decrypts(ctx context.Context, snap *Snapshot, userID string, c *Certificate) error {
	if c.UserID != userID {
		return unknownCertificate()
	}
	if s.RefuseEnded {
		if _, err := s.JudgeIn(ctx, snap, c, s.Now()); err != nil {
			return err
		}
	}
	key, _, err := s.key(ctx, snap, c)
	if err != nil {
		return err
	}
	return s.Holders.Decrypts(key)
}

// Readers names the certificates for encryption of a user: without their keys, what was encrypted for them is
// unreadable.
func (s *Service) Readers(ctx context.Context, userID string) (names []string, err error) {
	list, err := s.List(ctx, userID)
	for _, c := range list {
		if c.ForEncryption() {
			names = append(names, fmt.Sprintf("%d (%s)", c.ID, c.X509.Subject))
		}
	}
	return names, err
}

// recipientKey is the key of a certificate for one message. It implements cms.RecipientKey.
type recipientKey struct {
	keys        *Service
	snap        *Snapshot
	certificate *Certificate
	pin         string
	used        atomic.Bool
}

// Agree implements cms.RecipientKey.
func (r *recipientKey) Agree(ctx context.Context, a cms.KeyAgreement) ([]byte, error) {
	return r.use(ctx, func(ctx context.Context, key vault.Key, secret []byte) ([]byte, error) {
		return r.keys.Holders.Agree(ctx, key, secret, a)
	})
}

// Decrypt implements cms.RecipientKey.
func (r *recipientKey) Decrypt(ctx context.Context, t cms.KeyTransport) ([]byte, error) {
	return r.use(ctx, func(ctx context.Context, key vault.Key, secret []byte) ([]byte, error) {
		return r.keys.Holders.Decrypt(ctx, key, secret, t)
	})
}

// use opens the key and calls decrypt with it.
func (r *recipientKey) use(ctx context.Context, decrypt func(context.Context, vault.Key, []byte) ([]byte, error)) ([]byte, error) {
	if r.used.Swap(true) {
		return nil, errors.New("keys: a key that decrypts one message was used twice")
	}
	var made []byte
	var failed error
	err := r.keys.openIn(ctx, r.snap, r.certificate, r.pin, func(ctx context.Context, key vault.Key, secret []byte) (err error) {
		// cms.ErrDecrypt is an answer: the PIN was right, and its attempts are returned in the same way
		// as for a message that decrypts.
		if made, err = decrypt(ctx, key, secret); errors.Is(err, cms.ErrDecrypt) {
			failed, err = err, nil
		}
		return err
	})
	if err == nil {
		err = failed
	}
	if err != nil {
		clear(made)
		return nil, err
	}
	return made, nil
}
