// SPDX-License-Identifier: Apache-2.0

package device

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"time"

	"tamga/internal/domain/audit"
	"tamga/internal/domain/device/message"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/lock"
	"tamga/internal/domain/vault"
)

// Assign gives a device that registered without a K-init to a user. The device must still
// be verified. Faults: key_not_found when there is no such device or it has a user,
// maximum_tokens_count_exceeded, invalid_license.
func (s *Service) Assign(ctx context.Context, who audit.Principal, userID, kid string) (d Device, err error) {
	err = s.withinLocked(ctx, lock.User(userID).And(s.licence()), who, userID, func(ctx context.Context) error {
		none := fault.New(fault.KeyNotFound, "Kid: there is no device with it that waits to be assigned")
		r, found, err := s.deps.Devices.Device(ctx, kid)
		if err != nil {
			return err
		}
		if !found || r.UserID != "" {
			return none
		}
		if d, err = s.read(r); err != nil {
			return err
		}
		if !d.live(s.now()) {
			return none
		}
		if err := s.room(ctx, userID); err != nil {
			return err
		}
		if err := s.licensed(ctx); err != nil {
			return err
		}
		d.UserID, d.Verified = userID, false
		d.NotAfter = s.now().Add(s.settings.DeviceLife)
		after, err := s.record(d)
		if err != nil {
			return err
		}
		owned, err := s.deps.Devices.OwnDevice(ctx, after)
		if err == nil && !owned {
			err = none
		}
		if err != nil {
			return err
		}
		if d.UserName, err = s.login(ctx, userID); err != nil {
			return err
		}
		return s.changed(ctx, who, userID)
	})
	return d, err
}

// Info describes the devices of a user.
type Info struct {
	UserID  string
	Devices []Device // the oldest first
	KInit   *Device  // the device to be, set while an initialization is pending: its Kid, system and times
}

// Info reads a user's devices.
func (s *Service) Info(ctx context.Context, who audit.Principal, userID string) (info Info, err error) {
	err = s.reading(ctx, who, userID, func(ctx context.Context) error {
		info = Info{UserID: userID}
		if info.Devices, err = s.devices(ctx, userID); err != nil {
			return err
		}
		login, err := s.login(ctx, userID)
		if err != nil {
			return err
		}
		for i := range info.Devices {
			info.Devices[i].UserName = login
		}
		r, found, err := s.deps.KInits.KInit(ctx, userID, s.now())
		if err != nil || !found {
			return err
		}
		k, err := s.readKInit(r)
		if err != nil {
			return err
		}
		info.KInit = &Device{
			Kid: k.kid(), UserID: userID, UserName: login, SystemID: k.SystemID, Verified: true, // so that its state is Active
			NotBefore: time.UnixMilli(k.CreatedAt).UTC(), NotAfter: k.record.ExpiresAt,
		}
		return nil
	})
	return info, err
}

// SetBlocked blocks a device or lifts the block. When it returns, messages of a blocked
// device are refused and its pending verification is void. Lifting the block restores the
// state before. The fault is key_not_found.
func (s *Service) SetBlocked(ctx context.Context, who audit.Principal, userID, kid string, block bool) (d Device, err error) {
	err = s.within(ctx, who, userID, func(ctx context.Context) error {
		var r Record
		if d, r, err = s.owned(ctx, userID, kid); err != nil {
			return err
		}
		if d.UserName, err = s.login(ctx, userID); err != nil {
			return err
		}
		if d.Blocked == block {
			return nil
		}
		d.Blocked = block
		if err := s.change(ctx, r, d); err != nil {
			return err
		}
		if err := s.deps.Nonces.DeleteNonce(ctx, kid); err != nil {
			return err
		}
		if !block {
			return s.factorAdded(ctx, who, userID, "the block of a device was lifted")
		}
		if err := s.lost(ctx, userID); err != nil {
			return err
		}
		return s.factorChanged(ctx, who, userID, "a device was blocked")
	})
	return d, err
}

// Delete deletes a device of a user. The fault is key_not_found.
func (s *Service) Delete(ctx context.Context, who audit.Principal, userID, kid string) error {
	return s.within(ctx, who, userID, func(ctx context.Context) error {
		// Not opened: what was damaged must go as well.
		r, found, err := s.deps.Devices.Device(ctx, kid)
		if err == nil && (!found || r.UserID != userID) {
			err = fault.New(fault.KeyNotFound, "Kid: the user has no such device")
		}
		if err != nil {
			return err
		}
		return s.delete(ctx, who, userID, []Record{r})
	})
}

// DeleteAll deletes all devices of a user and a pending initialization.
func (s *Service) DeleteAll(ctx context.Context, who audit.Principal, userID string) error {
	return s.within(ctx, who, userID, func(ctx context.Context) error {
		list, err := s.deps.Devices.Devices(ctx, userID)
		if err != nil {
			return err
		}
		k, found, err := s.deps.KInits.KInit(ctx, userID, s.now())
		if err != nil {
			return err
		}
		if found {
			if _, err := s.deps.KInits.SpendKInit(ctx, k.Kid, s.now()); err != nil {
				return err
			}
		}
		return s.delete(ctx, who, userID, list)
	})
}

func (s *Service) delete(ctx context.Context, who audit.Principal, userID string, list []Record) error {
	for _, r := range list {
		if _, err := s.deps.Devices.DeleteDevice(ctx, r.Kid); err != nil {
			return err
		}
	}
	if err := s.lost(ctx, userID); err != nil {
		return err
	}
	return s.factorChanged(ctx, who, userID, "a device was removed")
}

// lost ends the sessions of the method when no device may act for the user any more.
func (s *Service) lost(ctx context.Context, userID string) error {
	has, err := s.HasActive(ctx, userID)
	switch {
	case errors.Is(err, vault.ErrSealed) || errors.Is(err, errMoved):
		// A damaged record cannot be read, so to be safe the user counts as having no
		// device.
	case err != nil || has:
		return err
	}
	return s.deps.Methods.DevicesGone(ctx, userID)
}

// Verification is the QR code that verifies a device of a user.
type Verification struct {
	QR     []byte // GIF
	QRText string // text of the picture
	Data   message.Verification
}

// BeginVerification makes a QR code that verifies a device once when the device scans it.
// A previous one becomes invalid. Faults: key_not_found; wrong_operation for a device
// that is blocked, expired or verified already.
func (s *Service) BeginVerification(ctx context.Context, who audit.Principal, userID, kid string) (Verification, error) {
	nonce, err := s.secret(message.SecretSize)
	if err != nil {
		return Verification{}, err
	}
	seed, err := s.secret(16)
	if err != nil {
		return Verification{}, err
	}
	v := Verification{Data: message.Verification{
		Type: message.TypeVerification, Version: message.Version,
		Data: message.VerificationData{
			Kid: kid, UID: userID, ServiceURL: s.settings.ServiceURL, Seed: message.Secret(seed), Nonce: message.Secret(nonce),
		},
	}}
	err = s.within(ctx, who, userID, func(ctx context.Context) error {
		d, _, err := s.owned(ctx, userID, kid)
		if err != nil {
			return err
		}
		switch now := s.now(); {
		case d.Blocked:
			return fault.New(fault.WrongOperation, "the device is blocked: lift the block first")
		case !d.live(now):
			return fault.New(fault.WrongOperation, "the key of the device has expired: delete the device and register it again")
		case d.Verified:
			return fault.New(fault.WrongOperation, "the device is verified already")
		}
		expires := s.now().Add(s.settings.VerificationLife)
		sealed, err := s.seal(noncePlace(kid), sealedNonce{UserID: userID, Nonce: nonce, Seed: seed, ExpiresAt: expires.UnixMilli()})
		if err != nil {
			return err
		}
		hash := sha256.Sum256(nonce)
		return s.deps.Nonces.SetNonce(ctx, NonceRecord{Kid: kid, Hash: hash[:], ExpiresAt: expires, Sealed: sealed})
	})
	if err != nil {
		return Verification{}, err
	}
	if v.QRText, v.QR, err = s.paint(v.Data); err != nil {
		return Verification{}, fmt.Errorf("device: %s: %w", kid, err)
	}
	return v, nil
}
