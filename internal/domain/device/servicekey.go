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
	"tamga/internal/domain/fault"
	"tamga/internal/domain/lock"
	"tamga/internal/domain/vault"
	"tamga/pki/suite"
	"tamga/pki/x509gost"
)

// sealedServiceKey is the content of the sealed record of a key of the service.
type sealedServiceKey struct {
	Algorithm string `json:"algorithm"`
	Private   []byte `json:"private"` // PKCS #8
	Public    []byte `json:"public"`  // SubjectPublicKeyInfo
}

func serviceKeyPlace(algorithm string) vault.Place {
	return vault.Place{Purpose: "device service key", Table: "device_service_keys", Row: algorithm, Column: "sealed"}
}

func formerKeyPlace(algorithm string) vault.Place {
	return vault.Place{Purpose: "device service key", Table: "former_device_service_keys", Row: algorithm, Column: "sealed"}
}

// serviceKey returns the key by which devices with keys of a suite know the service. The
// first call makes it. All processes have the same key.
func (s records) serviceKey(ctx context.Context, kind *suite.Suite, now time.Time) (crypto.Signer, []byte, error) {
	r, found, err := s.keys.ServiceKey(ctx, kind.Name)
	if err != nil {
		return nil, nil, err
	}
	if !found {
		if r, _, err = s.newServiceKey(kind, now); err != nil {
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
	return s.openServiceKey(serviceKeyPlace(kind.Name), kind.Name, r.Sealed)
}

// openServiceKey opens a sealed key of the service. public is its SubjectPublicKeyInfo.
func (s records) openServiceKey(p vault.Place, algorithm string, sealed []byte) (key crypto.Signer, public []byte, err error) {
	var k sealedServiceKey
	if err := s.open(p, sealed, &k); err != nil {
		return nil, nil, err
	}
	defer clear(k.Private)
	key, _, err = x509gost.ParsePrivateKey(k.Private)
	if err != nil || k.Algorithm != algorithm {
		return nil, nil, errors.Join(fmt.Errorf("device: the key of the service for %s is damaged", algorithm), err)
	}
	return key, k.Public, nil
}

// pinnedKey returns the key of the service that a device knows: the present one, or the former
// one until its end. It returns nil if the device knows neither.
func (s records) pinnedKey(ctx context.Context, d Device, now time.Time) (crypto.Signer, error) {
	_, kind, err := x509gost.ParsePublicKey(d.Key)
	if err != nil {
		return nil, fmt.Errorf("device: %s: the key: %w", d.Kid, err)
	}
	key, spki, err := s.serviceKey(ctx, kind, now)
	if err != nil {
		return nil, err
	}
	if digest := sha256.Sum256(spki); bytes.Equal(digest[:], d.Pinned) {
		return key, nil
	}
	former, found, err := s.keys.FormerKey(ctx, d.Pinned, now)
	if err != nil || !found || former.Algorithm != kind.Name {
		return nil, err
	}
	key, spki, err = s.openServiceKey(formerKeyPlace(kind.Name), kind.Name, former.Sealed)
	if err != nil {
		return nil, err
	}
	if digest := sha256.Sum256(spki); !bytes.Equal(digest[:], d.Pinned) {
		return nil, fmt.Errorf("%w: the former key of the service for %s", errMoved, kind.Name)
	}
	return key, nil
}

func (s records) newServiceKey(kind *suite.Suite, now time.Time) (r ServiceKeyRecord, public []byte, err error) {
	key, err := kind.Generate(s.rand)
	if err != nil {
		return ServiceKeyRecord{}, nil, fmt.Errorf("device: a key of the service: %w", err)
	}
	sealed, public, err := s.sealServiceKey(serviceKeyPlace(kind.Name), kind, key)
	return ServiceKeyRecord{Algorithm: kind.Name, Sealed: sealed, CreatedAt: now}, public, err
}

func (s records) sealServiceKey(p vault.Place, kind *suite.Suite, key crypto.Signer) (sealed, public []byte, err error) {
	k := sealedServiceKey{Algorithm: kind.Name}
	if k.Private, err = x509gost.MarshalPrivateKey(key, kind); err != nil {
		return nil, nil, fmt.Errorf("device: a key of the service: %w", err)
	}
	defer clear(k.Private)
	if k.Public, err = x509gost.MarshalPublicKey(key.Public(), kind); err != nil {
		return nil, nil, fmt.Errorf("device: a key of the service: %w", err)
	}
	sealed, err = s.seal(p, k)
	return sealed, k.Public, err
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

// minKeyOverlap is the shortest time that a key of the service is valid after it was replaced,
// unless it ends at once.
const minKeyOverlap = time.Hour

// RotateServiceKey replaces the key by which devices with keys of a suite know the service. For
// the time of overlap the old key is valid for devices that do not know the new one yet. A poll
// gives them the new key, signed with the old one. With overlap 0 the old key and one before it
// end at once, and all devices that know them must register again to confirm without a network.
//
// Faults: invalid_parameters for the overlap; key_not_found if there is no key to replace;
// wrong_operation while the key before the present one is valid, because a device knows one
// former key.
func (s *Service) RotateServiceKey(ctx context.Context, kind *suite.Suite, overlap time.Duration) (until time.Time, err error) {
	if overlap != 0 && (overlap < minKeyOverlap || overlap > message.MaxKeyOverlap) {
		return time.Time{}, fault.Newf(fault.InvalidParameters, "overlap: want %s to %s", minKeyOverlap, message.MaxKeyOverlap)
	}
	now := s.now()
	until = now.Add(overlap).Truncate(time.Second)
	err = s.deps.Devices.Atomic(ctx, lock.Named("device service key"), func(ctx context.Context) error {
		before, found, err := s.keys.ServiceKey(ctx, kind.Name)
		if err == nil && !found {
			err = fault.Newf(fault.KeyNotFound, "there is no key for devices of %s: none has registered", kind.Name)
		}
		if err != nil {
			return err
		}
		after, public, err := s.newServiceKey(kind, now)
		if err != nil {
			return err
		}
		if overlap == 0 {
			err = s.keys.DeleteFormerKey(ctx, kind.Name)
		} else {
			err = s.succeed(ctx, kind, before, public, until)
		}
		if err != nil {
			return err
		}
		replaced, err := s.keys.ReplaceServiceKey(ctx, before.Sealed, after)
		if err == nil && !replaced {
			err = fault.New(fault.Unavailable, "the key was changed meanwhile: try again")
		}
		return fault.Rollback(err)
	})
	return until, err
}

// succeed keeps the key before until its end, with its signature over the public key after it.
func (s *Service) succeed(ctx context.Context, kind *suite.Suite, before ServiceKeyRecord, public []byte, until time.Time) error {
	former, found, err := s.keys.FormerKeyOf(ctx, kind.Name, s.now())
	if err == nil && found {
		err = fault.Newf(fault.WrongOperation, "the key before the present one is valid until %s: wait, or end both at once", former.Until.Format(time.RFC3339))
	}
	if err != nil {
		return err
	}
	key, known, err := s.openServiceKey(serviceKeyPlace(kind.Name), kind.Name, before.Sealed)
	if err != nil {
		return err
	}
	statement, err := message.NewSuccessor(s.settings.ServiceURL, known, public, until.Unix(), key, s.rand)
	if err != nil {
		return err
	}
	text, err := json.Marshal(statement)
	if err != nil {
		return err
	}
	sealed, _, err := s.sealServiceKey(formerKeyPlace(kind.Name), kind, key)
	if err != nil {
		return err
	}
	digest := sha256.Sum256(known)
	return s.keys.SetFormerKey(ctx, FormerKeyRecord{Algorithm: kind.Name, Digest: digest[:], Sealed: sealed, Statement: string(text), Until: until})
}

// successor returns the statement about the key of the service that follows the one that the
// device knows, nil if there is none.
func (s records) successor(ctx context.Context, d Device, now time.Time) (*message.Successor, error) {
	if len(d.Pinned) == 0 {
		return nil, nil
	}
	former, found, err := s.keys.FormerKey(ctx, d.Pinned, now)
	if err != nil || !found {
		return nil, err
	}
	n := &message.Successor{}
	if err := json.Unmarshal([]byte(former.Statement), n); err != nil {
		return nil, fmt.Errorf("device: the statement about the key of the service for %s is damaged", former.Algorithm)
	}
	return n, nil
}

// KeepServiceKey takes the word of a device that it knows the new key of the service, which a
// poll gave it. A repetition changes nothing. The faults are those of Poll, and
// invalid_parameters for a key that does not follow the one that the device knows.
func (s *Service) KeepServiceKey(ctx context.Context, signed message.Signed) (Answer, error) {
	var p message.KnownKey
	return s.receive(ctx, signed, message.ServiceKey, &p, func(ctx context.Context, d *Device) error {
		digest := sha256.Sum256(p.Key)
		if bytes.Equal(digest[:], d.Pinned) {
			return nil
		}
		n, err := s.successor(ctx, *d, s.now())
		if err != nil {
			return err
		}
		if n == nil || !bytes.Equal(n.Key, p.Key) {
			return fault.New(fault.InvalidParameters, "key: want the new key of the service in the answer to a poll")
		}
		d.Pinned = digest[:]
		return nil
	})
}
