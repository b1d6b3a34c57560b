// SPDX-License-Identifier: Apache-2.0

package device

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/google/uuid"

	"tamga/internal/domain/contact"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/notify"
	"tamga/internal/domain/vault"
)

// sealedDevice is the content of the sealed record of a device.
type sealedDevice struct {
	UserID     string      `json:"user_id"`
	Name       string      `json:"name"`
	Type       string      `json:"type"`
	AppVersion string      `json:"app_version"`
	SystemID   string      `json:"system_id"`
	Key        []byte      `json:"key"`
	Verified   bool        `json:"verified"`
	Blocked    bool        `json:"blocked"`
	NotBefore  int64       `json:"not_before"` // milliseconds since 1970
	NotAfter   int64       `json:"not_after"`
	Push       *sealedPush `json:"push,omitempty"`
	Pinned     []byte      `json:"pinned,omitempty"`
	Describes  int         `json:"describes,omitempty"`
}

type sealedPush struct {
	Address      string `json:"address"`
	OSType       int    `json:"os_type"`
	SystemID     string `json:"system_id"`
	Listed       bool   `json:"listed"`
	Notification bool   `json:"notification"`
}

// sealedKInit is the content of the sealed record of a K-init.
type sealedKInit struct {
	UserID     string       `json:"user_id"`
	Content    []byte       `json:"content"`
	SystemID   string       `json:"system_id"`
	Activation bool         `json:"activation"`
	Contact    contact.Type `json:"contact,omitempty"` // that the code was sent to; the phone if there are two
	Normal     string       `json:"normal,omitempty"`
	CreatedAt  int64        `json:"created_at"`
	ExpiresAt  int64        `json:"expires_at"`
}

// sealedNonce is the content of the sealed record of a verification.
type sealedNonce struct {
	UserID    string `json:"user_id"`
	Nonce     []byte `json:"nonce"`
	Seed      []byte `json:"seed"`
	ExpiresAt int64  `json:"expires_at"`
}

// errMoved means that a sealed record does not match the other cells of its row.
var errMoved = errors.New("device: a sealed record does not match its row: the database was changed by another program")

func devicePlace(kid string) vault.Place {
	return vault.Place{Purpose: "mobile device", Table: "devices", Row: kid, Column: "sealed"}
}

func kinitPlace(kid string) vault.Place {
	return vault.Place{Purpose: "device initialization", Table: "device_kinits", Row: kid, Column: "sealed"}
}

func noncePlace(kid string) vault.Place {
	return vault.Place{Purpose: "device verification", Table: "device_nonces", Row: kid, Column: "sealed"}
}

// records reads and writes the sealed records of devices.
type records struct {
	store Store
	keys  ServiceKeyStore // nil for a reader that needs no key of the service
	vault notify.Sealer
	rand  io.Reader // nil likewise
}

// seal seals v as JSON.
func (s records) seal(p vault.Place, v any) ([]byte, error) {
	plain, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	defer clear(plain)
	return s.vault.Seal(p, plain)
}

// open is the inverse of seal.
func (s records) open(p vault.Place, sealed []byte, v any) error {
	plain, err := s.vault.Open(p, sealed)
	if err != nil {
		return fmt.Errorf("device: %s: %w", p.Row, err)
	}
	defer clear(plain)
	if err := json.Unmarshal(plain, v); err != nil {
		return fmt.Errorf("device: %s: the record has an unknown form", p.Row)
	}
	return nil
}

// record is the stored form of a device.
func (s records) record(d Device) (Record, error) {
	content := sealedDevice{
		UserID: d.UserID, Name: d.Name, Type: d.Type, AppVersion: d.AppVersion, SystemID: d.SystemID, Key: d.Key,
		Verified: d.Verified, Blocked: d.Blocked, NotBefore: d.NotBefore.UnixMilli(), NotAfter: d.NotAfter.UnixMilli(),
		Push: (*sealedPush)(d.Push), Pinned: d.Pinned, Describes: d.Describes,
	}
	sealed, err := s.seal(devicePlace(d.Kid), content)
	return Record{Kid: d.Kid, UserID: d.UserID, NotAfter: d.NotAfter, CreatedAt: d.CreatedAt, Sealed: sealed}, err
}

// read opens a stored device.
func (s records) read(r Record) (Device, error) {
	var c sealedDevice
	if err := s.open(devicePlace(r.Kid), r.Sealed, &c); err != nil {
		return Device{}, err
	}
	d := Device{
		Kid: r.Kid, UserID: c.UserID, Name: c.Name, Type: c.Type, AppVersion: c.AppVersion, SystemID: c.SystemID, Key: c.Key,
		Verified: c.Verified, Blocked: c.Blocked, CreatedAt: r.CreatedAt,
		NotBefore: time.UnixMilli(c.NotBefore).UTC(), NotAfter: time.UnixMilli(c.NotAfter).UTC(),
		Push: (*Push)(c.Push), Pinned: c.Pinned, Describes: c.Describes,
	}
	if d.UserID != r.UserID || !d.NotAfter.Equal(r.NotAfter) {
		return Device{}, fmt.Errorf("%w: %s", errMoved, r.Kid)
	}
	return d, nil
}

// devices reads the devices of a user, the oldest first. A record that does not open is
// an error for all: otherwise a change of the database could hide a device.
func (s records) devices(ctx context.Context, userID string) ([]Device, error) {
	records, err := s.store.Devices(ctx, userID)
	if err != nil {
		return nil, err
	}
	list := make([]Device, len(records))
	for i, r := range records {
		if list[i], err = s.read(r); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// owned returns a device of a user. The fault is key_not_found for a missing device and
// for one of another user.
func (s records) owned(ctx context.Context, userID, kid string) (Device, Record, error) {
	r, found, err := s.store.Device(ctx, kid)
	if err == nil && (!found || r.UserID != userID) {
		err = fault.New(fault.KeyNotFound, "Kid: the user has no such device")
	}
	if err != nil {
		return Device{}, Record{}, err
	}
	d, err := s.read(r)
	return d, r, err
}

// change stores a device that was read as r.
func (s records) change(ctx context.Context, r Record, d Device) error {
	after, err := s.record(d)
	if err != nil {
		return err
	}
	changed, err := s.store.ChangeDevice(ctx, d.Kid, r.Sealed, after.Sealed)
	if err == nil && !changed {
		err = fault.New(fault.Unavailable, "another request is changing the device: try again")
	}
	return err
}

// kinit is a K-init that was read.
type kinit struct {
	sealedKInit
	record KInitRecord
}

func (k kinit) kid() string { return k.record.Kid }

func (s records) readKInit(r KInitRecord) (kinit, error) {
	k := kinit{record: r}
	if err := s.open(kinitPlace(r.Kid), r.Sealed, &k.sealedKInit); err != nil {
		return kinit{}, err
	}
	if k.UserID != r.UserID || k.ExpiresAt != r.ExpiresAt.UnixMilli() {
		return kinit{}, fmt.Errorf("%w: %s", errMoved, r.Kid)
	}
	return k, nil
}

// newKid draws the identifier of a device: fifteen decimal digits, so that programs
// that read it as a number keep it.
func (s *Service) newKid() (string, error) {
	kid := make([]byte, 0, 15)
	var b [32]byte
	for {
		if _, err := io.ReadFull(s.deps.Rand, b[:]); err != nil {
			return "", fmt.Errorf("device: drawing an identifier: %w", err)
		}
		for _, x := range b {
			if x >= 250 || len(kid) == 0 && x%10 == 0 { // uniformly distributed digits, no leading zero
				continue
			}
			if kid = append(kid, '0'+x%10); len(kid) == cap(kid) {
				return string(kid), nil
			}
		}
	}
}

func (s *Service) secret(size int) ([]byte, error) {
	b := make([]byte, size)
	if _, err := io.ReadFull(s.deps.Rand, b); err != nil {
		return nil, fmt.Errorf("device: drawing a secret: %w", err)
	}
	return b, nil
}

func validGUID(id string) bool {
	u, err := uuid.Parse(id)
	return err == nil && u.String() == id
}
