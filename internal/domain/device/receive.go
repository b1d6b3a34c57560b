// SPDX-License-Identifier: Apache-2.0

package device

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"tamga/internal/domain/audit"
	"tamga/internal/domain/device/message"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/lock"
)

// Answer is the answer to a message of a device.
type Answer struct {
	Device    Device
	Who       audit.Principal // user of the device; the zero value for none
	Time      time.Time
	PollAfter time.Duration
	After     string // of a poll: see message.PollRequest
	// ServiceKey is the key of the service that a new device keeps, SubjectPublicKeyInfo; set
	// by Register.
	ServiceKey []byte
	Successor  *message.Successor // of Poll; nil for none
}

// Register registers a new device. With the answer to a K-init it becomes a device of the
// user. Without one it waits to be assigned. The message is signed with the device's own
// key, and the answer to the K-init binds it to that key, so the first device that
// registers is the only one. A device that did not get the answer may repeat the message
// with the same key.
//
// Faults: invalid_parameters, wrong_time, invalid_token for a wrong signature;
// key_not_found for a K-init that is missing, has expired, was used or belongs to another
// QR code; invalid_confirmation_code, max_attempts_exceeded;
// maximum_tokens_count_exceeded, invalid_license; wrong_operation where devices need a
// K-init.
func (s *Service) Register(ctx context.Context, signed message.Signed) (Answer, error) {
	m, err := s.parse(signed, message.Register)
	if err != nil {
		return Answer{}, err
	}
	if len(m.Key) == 0 {
		return Answer{}, fault.New(fault.InvalidParameters, "key: a new device sends its public key")
	}
	if err := m.CheckKey(); err != nil {
		return Answer{}, refused(err)
	}
	if !m.Verify(m.Key) {
		return Answer{}, unknownDevice()
	}
	var r message.Registration
	if err := json.Unmarshal(m.Payload, &r); err != nil {
		return Answer{}, fault.New(fault.InvalidParameters, "payload: want a registration")
	}
	if err := checkAbout(r.Device); err != nil {
		return Answer{}, err
	}
	now := s.now()
	d := Device{
		Name: r.Device.Name, Type: r.Device.Type, AppVersion: r.Device.AppVersion,
		Key: m.Key, CreatedAt: now, NotBefore: now,
	}
	key, pinned, err := s.pin(ctx, d.Key, now)
	if err != nil {
		return Answer{}, err
	}
	d.Pinned = pinned
	var a Answer
	if r.KInit == nil {
		a, err = s.registerAnonymous(ctx, m, d)
	} else {
		a, err = s.registerKInit(ctx, m, d, *r.KInit)
	}
	if err != nil {
		return Answer{}, err
	}
	a.ServiceKey = key
	return a, nil
}

func (s *Service) registerAnonymous(ctx context.Context, m *message.Message, d Device) (a Answer, err error) {
	if s.settings.Anonymous == 0 {
		return Answer{}, fault.New(fault.WrongOperation, "devices are registered with a QR code: ask the operator for one")
	}
	if s.deps.AdmitAnonymous != nil {
		if err := s.deps.AdmitAnonymous(ctx); err != nil {
			return Answer{}, err
		}
	}
	if d.Kid, err = s.newKid(); err != nil {
		return Answer{}, err
	}
	d.SystemID = s.settings.Systems[0].ID
	d.NotAfter = d.CreatedAt.Add(s.settings.AnonymousLife)
	err = s.deps.Devices.Atomic(ctx, lock.Named("devices without a user"), func(ctx context.Context) error {
		waiting, err := s.deps.Devices.CountDevices(ctx, true)
		if err != nil {
			return err
		}
		if waiting >= s.settings.Anonymous {
			return fault.New(fault.TooManyRequests, "too many devices wait to be assigned: try again later")
		}
		a, err = s.add(ctx, m, d)
		return err
	})
	return a, err
}

func (s *Service) registerKInit(ctx context.Context, m *message.Message, d Device, k message.KInitAnswer) (a Answer, err error) {
	none := fault.New(fault.KeyNotFound, "the QR code is not valid: ask the operator for another one")
	d.Kid = k.Kid
	owner, err := s.initiated(ctx, k.Kid)
	if err != nil {
		return Answer{}, err
	}
	err = s.deps.Devices.Atomic(ctx, lock.User(owner).And(s.licence()), func(ctx context.Context) error {
		r, found, err := s.deps.KInits.KInitByKid(ctx, k.Kid, s.now())
		if err != nil {
			return err
		}
		if found && r.UserID != owner {
			return changedMeanwhile()
		}
		if !found {
			// A repetition by the same device?
			known, found, err := s.device(ctx, k.Kid)
			if err != nil {
				return err
			}
			if !found || !hmac.Equal(known.Key, d.Key) {
				return none
			}
			if !known.live(s.now()) {
				return notListened()
			}
			r, counted, err := s.deps.Devices.CountMessage(ctx, k.Kid, m.Number)
			if err != nil || !counted {
				return orReplayed(err)
			}
			if !bytes.Equal(known.Pinned, d.Pinned) { // the key was replaced after the lost answer
				known.Pinned = d.Pinned
				if err := s.change(ctx, r, known); err != nil {
					return fault.Rollback(err)
				}
			}
			a, err = s.answer(ctx, known)
			return err
		}
		begun, err := s.readKInit(r)
		if err != nil {
			return err
		}
		if !hmac.Equal(message.KInitProof(begun.Content, k.Kid, d.Key), k.Proof) {
			return none
		}
		d.UserID, d.SystemID = begun.UserID, begun.SystemID
		audit.Tried(ctx, d.UserID, "") // guesses at the activation code are counted
		d.NotAfter = d.CreatedAt.Add(s.settings.DeviceLife)
		if err := s.mayAct(ctx, d.UserID); err != nil {
			return err
		}
		if err := s.room(ctx, d.UserID); err != nil {
			return err
		}
		if err := s.licensed(ctx); err != nil {
			return err
		}
		if begun.Activation {
			if strings.TrimSpace(k.Code) == "" { // not counted as an attempt
				return fault.New(fault.InvalidCode, "code is missing: want the activation code that was sent to the user")
			}
			if err := s.deps.Codes.Spend(ctx, d.UserID, codePurpose(k.Kid), begun.Contact.Kind(), begun.Normal, k.Code); err != nil {
				return err // committed: the attempt counts
			}
		}
		spent, err := s.deps.KInits.SpendKInit(ctx, k.Kid, s.now())
		if err == nil && !spent {
			err = none
		}
		if err != nil {
			return fault.Rollback(err)
		}
		if a, err = s.add(ctx, m, d); err != nil {
			return fault.Rollback(err)
		}
		return fault.Rollback(s.changed(ctx, a.Who, d.UserID))
	})
	return a, err
}

// initiated returns the user of a K-init, "" if there is none.
func (s *Service) initiated(ctx context.Context, kid string) (string, error) {
	r, _, err := s.deps.KInits.KInitByKid(ctx, kid, s.now())
	return r.UserID, err
}

// changedMeanwhile is the fault for a device whose user changed between a check and its
// repetition under the lock of the user.
func changedMeanwhile() error {
	return fault.New(fault.Unavailable, "the device was changed meanwhile: try again")
}

// add stores a new device, whose first message was m.
func (s *Service) add(ctx context.Context, m *message.Message, d Device) (Answer, error) {
	r, err := s.record(d)
	if err != nil {
		return Answer{}, err
	}
	r.Number = m.Number
	audit.Changed(ctx, "a device is registered")
	added, err := s.deps.Devices.AddDevice(ctx, r)
	if err == nil && !added {
		err = errors.New("device: the identifier is taken")
	}
	if err != nil {
		return Answer{}, err
	}
	return s.answer(ctx, d)
}

// Verify verifies a device that has scanned its verification code. The fault, beside
// those of Poll, is invalid_confirmation_code for a code that is not the device's, has
// expired or was used.
func (s *Service) Verify(ctx context.Context, signed message.Signed) (Answer, error) {
	var v message.VerificationAnswer
	return s.receive(ctx, signed, message.Verify, &v, func(ctx context.Context, d *Device) error {
		wrong := fault.New(fault.InvalidCode, "the QR code has expired or belongs to another device: ask the operator for another one")
		r, found, err := s.deps.Nonces.Nonce(ctx, d.Kid, s.now())
		if err != nil {
			return err
		}
		if !found || d.UserID == "" {
			return wrong
		}
		var n sealedNonce
		if err := s.open(noncePlace(d.Kid), r.Sealed, &n); err != nil {
			return err
		}
		if n.UserID != d.UserID || n.ExpiresAt != r.ExpiresAt.UnixMilli() ||
			!hmac.Equal(message.VerificationProof(n.Nonce, n.Seed, d.Kid, d.Key), v.Proof) {
			return wrong
		}
		hash := sha256.Sum256(n.Nonce)
		spent, err := s.deps.Nonces.SpendNonce(ctx, d.Kid, hash[:], s.now())
		if err != nil {
			return err
		}
		if !spent {
			return wrong
		}
		d.Verified = true
		return fault.Rollback(s.factorAdded(ctx, audit.Principal{UserID: d.UserID}, d.UserID, "a device was verified"))
	})
}

// SetPush sets the push address of the device; an empty address removes it. A new address
// is listed among the contacts of the user, with notifications. An address that an
// operator removed stays removed until it changes.
func (s *Service) SetPush(ctx context.Context, signed message.Signed) (Answer, error) {
	var p message.PushAddress
	return s.receive(ctx, signed, message.Push, &p, func(_ context.Context, d *Device) error {
		if p.Address == "" {
			d.Push = nil
			return nil
		}
		if len(p.Address) > maxAddress || !printable(p.Address) {
			return fault.Newf(fault.InvalidParameters, "address: want up to %d bytes without control characters", maxAddress)
		}
		system, known := s.system(strings.ToLower(p.SystemID))
		if !known {
			return fault.New(fault.InvalidSystem, "system_id: there is no such mobile application")
		}
		if d.Push == nil || d.Push.Address != p.Address || d.Push.SystemID != system.ID {
			d.Push = &Push{Address: p.Address, SystemID: system.ID, Listed: true, Notification: true}
		}
		d.Push.OSType = p.OSType
		return nil
	})
}

// Poll returns the state of the device, and stores what it can describe if that is new. Answer.After says where the list of operations to
// confirm continues, which package confirm has. Faults: invalid_parameters, wrong_time;
// invalid_token for an unknown device or a wrong signature (the answer does not say which); invalid_object_state for a
// message that was received before; access_denied for a device that is blocked or
// expired, or whose user is locked.
func (s *Service) Poll(ctx context.Context, signed message.Signed) (Answer, error) {
	var p message.PollRequest
	a, err := s.look(ctx, signed, message.Poll, &p)
	if err != nil {
		return Answer{}, err
	}
	a.After = p.After
	if p.Describes != a.Device.Describes {
		if a.Device, err = s.describes(ctx, a.Device.Kid, p.Describes); err != nil {
			return Answer{}, err
		}
	}
	a.Successor, err = s.successor(ctx, a.Device, a.Time)
	return a, err
}

// maxDescribes is the largest value of Device.Describes.
const maxDescribes = 99

// describes stores what a device says that it can describe, which is new after an update of its program.
func (s *Service) describes(ctx context.Context, kid string, version int) (Device, error) {
	if version < 0 || version > maxDescribes {
		return Device{}, fault.Newf(fault.InvalidParameters, "describes: want a version of the digest of operations, 1 to %d", maxDescribes)
	}
	r, found, err := s.store.Device(ctx, kid)
	if err != nil {
		return Device{}, err
	}
	if !found {
		return Device{}, unknownDevice()
	}
	d, err := s.read(r)
	if err != nil {
		return Device{}, err
	}
	d.Describes = version
	return d, s.change(ctx, r, d)
}

// Operation takes the request of a device for one operation. The faults are those of Poll.
func (s *Service) Operation(ctx context.Context, signed message.Signed) (a Answer, r message.OperationRequest, err error) {
	a, err = s.look(ctx, signed, message.Operation, &r)
	return a, r, err
}

// Document takes the request of a device for the bytes of a document. The faults are those of
// Poll.
func (s *Service) Document(ctx context.Context, signed message.Signed) (a Answer, r message.DocumentRequest, err error) {
	a, err = s.look(ctx, signed, message.Read, &r)
	return a, r, err
}

// State returns the state of a device after a message of it that another package took.
func (s *Service) State(ctx context.Context, kid string) (Answer, error) {
	d, found, err := s.device(ctx, kid)
	if err != nil {
		return Answer{}, err
	}
	if !found {
		return Answer{}, unknownDevice()
	}
	return s.answer(ctx, d)
}

// look handles a message of a known device that changes nothing.
func (s *Service) look(ctx context.Context, signed message.Signed, kind string, payload any) (Answer, error) {
	m, heard, err := s.hear(ctx, signed, kind, payload)
	if err != nil {
		return Answer{}, err
	}
	// Polls are many and change nothing but the message number. Without a transaction
	// around it, the store writes the number together with those of other polls.
	d, _, err := s.count(ctx, m, heard.Key)
	if err != nil {
		return Answer{}, err
	}
	return s.answer(ctx, d)
}

// Leave deletes the device. The faults are those of Poll.
func (s *Service) Leave(ctx context.Context, signed message.Signed) (Answer, error) {
	return s.receive(ctx, signed, message.Leave, &struct{}{}, func(ctx context.Context, d *Device) error {
		if _, err := s.deps.Devices.DeleteDevice(ctx, d.Kid); err != nil || d.UserID == "" {
			return err
		}
		if err := s.lost(ctx, d.UserID); err != nil {
			return fault.Rollback(err)
		}
		return fault.Rollback(s.factorChanged(ctx, audit.Principal{UserID: d.UserID}, d.UserID, "a device was removed"))
	})
}

// receive handles a message of a known device. fn may change the device, which is then
// stored. The message number is spent even if fn returns a fault.
func (s *Service) receive(ctx context.Context, signed message.Signed, kind string, payload any, fn func(ctx context.Context, d *Device) error) (a Answer, err error) {
	m, heard, err := s.hear(ctx, signed, kind, payload)
	if err != nil {
		return Answer{}, err
	}
	err = s.deps.Devices.Atomic(ctx, lock.User(heard.UserID), func(ctx context.Context) error {
		a = Answer{}
		d, r, err := s.count(ctx, m, heard.Key)
		if err != nil {
			return err
		}
		if d.UserID != heard.UserID {
			return fault.Rollback(changedMeanwhile())
		}
		before := d
		if before.Push != nil {
			push := *before.Push
			before.Push = &push
		}
		if err := fn(ctx, &d); err != nil {
			return err // faults of fn come before it writes anything
		}
		if !before.same(d) {
			if err := s.change(ctx, r, d); err != nil {
				return fault.Rollback(err)
			}
		}
		a, err = s.answer(ctx, d)
		return err
	})
	return a, err
}

// same reports whether a message left the device unchanged.
func (d Device) same(other Device) bool {
	if d.Verified != other.Verified || !bytes.Equal(d.Pinned, other.Pinned) || (d.Push == nil) != (other.Push == nil) {
		return false
	}
	return d.Push == nil || *d.Push == *other.Push
}

// answer returns the state of a device as an answer.
func (s *Service) answer(ctx context.Context, d Device) (Answer, error) {
	a := Answer{Device: d, Time: s.now(), PollAfter: s.settings.PollAfter}
	if d.UserID == "" {
		return a, nil
	}
	u, err := s.deps.Users.Get(ctx, d.UserID)
	a.Who = audit.Principal{UserID: d.UserID, Login: u.Login, Group: u.Group, Method: Method}
	return a, err
}

func orReplayed(err error) error {
	if err == nil {
		err = fault.New(fault.InvalidObjectState, "num: a message with this number or a later one was received before: numbers grow")
	}
	return err
}

func notListened() error {
	return fault.New(fault.AccessDenied, "the device is blocked or its key has expired: ask the operator")
}

func unknownDevice() error {
	return fault.New(fault.Unauthorized, "the device is not known, or its signature does not verify")
}

func refused(err error) error {
	if errors.Is(err, message.ErrForm) {
		return fault.New(fault.InvalidParameters, err.Error())
	}
	return err
}

func checkAbout(about message.About) error {
	for _, field := range []struct {
		name, value string
		most        int
	}{{"name", about.Name, maxName}, {"type", about.Type, maxVersion}, {"app_version", about.AppVersion, maxVersion}} {
		if utf8.RuneCountInString(field.value) > field.most || !printable(field.value) {
			return fault.Newf(fault.InvalidParameters, "device.%s: want up to %d characters of text", field.name, field.most)
		}
	}
	return nil
}

// printable reports whether text has no characters that control terminals or pages.
func printable(text string) bool {
	return utf8.ValidString(text) && !slices.ContainsFunc([]rune(text), func(r rune) bool {
		return unicode.IsControl(r) || unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Co)
	})
}
