// SPDX-License-Identifier: Apache-2.0

package device

import (
	"bytes"
	"context"
	"crypto"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"tamga/internal/domain/device/message"
	"tamga/internal/domain/vault"
	"tamga/pki/suite"
	"tamga/pki/x509gost"
)

// OfflineOrder says what a device confirms without a network.
type OfflineOrder struct {
	ID     string // of the operation
	What   []byte // its digest
	Text   string // for the user
	Number bool   // whether a verdict that is delivered later needs the number
	Before time.Time
}

// Offline returns the text of a QR code that a device of a user confirms without a network,
// and the code that the device makes from it. Both are empty for a device that may not act
// now, and for one that registered before the service had its key: it must register again.
// The private key of the challenge is gone when Offline returns.
func (s *Approvals) Offline(ctx context.Context, userID, kid string, o OfflineOrder) (qr, code string, err error) {
	d, _, err := s.owned(ctx, userID, kid)
	if err != nil || !d.Active(s.now()) || len(d.Pinned) == 0 {
		return "", "", err
	}
	_, kind, err := x509gost.ParsePublicKey(d.Key)
	if err != nil {
		return "", "", fmt.Errorf("device: %s: the key: %w", kid, err)
	}
	key, spki, err := s.serviceKey(ctx, kind, s.now())
	if err != nil {
		return "", "", err
	}
	if pin := sha256.Sum256(spki); !bytes.Equal(pin[:], d.Pinned) {
		return "", "", nil
	}
	c, code, err := message.NewChallenge(message.ChallengeData{
		Kid: kid, ServiceURL: s.settings.ServiceURL, ID: o.ID, Number: o.Number, Before: o.Before.Unix(),
	}, o.What, o.Text, d.Key, key, s.rand)
	if err != nil {
		return "", "", err
	}
	text, err := json.Marshal(c)
	return string(text), code, err
}

// sealedServiceKey is the content of the sealed record of a key of the service.
type sealedServiceKey struct {
	Algorithm string `json:"algorithm"`
	Private   []byte `json:"private"` // PKCS #8
	Public    []byte `json:"public"`  // SubjectPublicKeyInfo
}

func serviceKeyPlace(algorithm string) vault.Place {
	return vault.Place{Purpose: "device service key", Table: "device_service_keys", Row: algorithm, Column: "sealed"}
}

// serviceKey returns the key by which devices with keys of a suite know the service. The
// first call makes it. All processes have the same key.
func (s records) serviceKey(ctx context.Context, kind *suite.Suite, now time.Time) (crypto.Signer, []byte, error) {
	r, found, err := s.keys.ServiceKey(ctx, kind.Name)
	if err != nil {
		return nil, nil, err
	}
	if !found {
		if r, err = s.newServiceKey(kind, now); err != nil {
			return nil, nil, err
		}
		added, err := s.keys.AddServiceKey(ctx, r)
		if err != nil {
			return nil, nil, err
		}
		if !added { // another process was faster
			if r, found, err = s.keys.ServiceKey(ctx, kind.Name); err != nil || !found {
				return nil, nil, errors.Join(err, errors.New("device: the key of the service is missing"))
			}
		}
	}
	var k sealedServiceKey
	if err := s.open(serviceKeyPlace(r.Algorithm), r.Sealed, &k); err != nil {
		return nil, nil, err
	}
	defer clear(k.Private)
	key, _, err := x509gost.ParsePrivateKey(k.Private)
	if err != nil || k.Algorithm != kind.Name {
		return nil, nil, errors.Join(fmt.Errorf("device: the key of the service for %s is damaged", kind.Name), err)
	}
	return key, k.Public, nil
}

func (s records) newServiceKey(kind *suite.Suite, now time.Time) (ServiceKeyRecord, error) {
	key, err := kind.Generate(s.rand)
	if err != nil {
		return ServiceKeyRecord{}, fmt.Errorf("device: a key of the service: %w", err)
	}
	k := sealedServiceKey{Algorithm: kind.Name}
	if k.Private, err = x509gost.MarshalPrivateKey(key, kind); err != nil {
		return ServiceKeyRecord{}, fmt.Errorf("device: a key of the service: %w", err)
	}
	defer clear(k.Private)
	if k.Public, err = x509gost.MarshalPublicKey(key.Public(), kind); err != nil {
		return ServiceKeyRecord{}, fmt.Errorf("device: a key of the service: %w", err)
	}
	sealed, err := s.seal(serviceKeyPlace(kind.Name), k)
	return ServiceKeyRecord{Algorithm: kind.Name, Sealed: sealed, CreatedAt: now}, err
}

// pin returns the key of the service for a new device, and what is stored of it.
func (s records) pin(ctx context.Context, device []byte, now time.Time) (spki, pinned []byte, err error) {
	_, kind, err := x509gost.ParsePublicKey(device)
	if err != nil {
		return nil, nil, fmt.Errorf("device: the key of a new device: %w", err)
	}
	if _, spki, err = s.serviceKey(ctx, kind, now); err != nil {
		return nil, nil, err
	}
	sum := sha256.Sum256(spki)
	return spki, sum[:], nil
}
