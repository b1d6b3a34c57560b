// SPDX-License-Identifier: Apache-2.0

package device

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"tamga/internal/domain/audit"
	"tamga/internal/domain/contact"
	"tamga/internal/domain/device/message"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/lock"
	"tamga/internal/domain/notify"
)

// KInitOrder asks for the initialization of a new device.
type KInitOrder struct {
	Phone    string // that the activation code goes to, in any usual form
	Email    string // likewise
	SystemID string // of the mobile application; "" is the first one of the settings
}

// KInit is the initialization of a new device. A device that scans its QR code, and has
// the activation code where one is required, may register. Only one device can.
type KInit struct {
	Kid        string
	UserID     string
	UserName   string
	SystemID   string
	Activation bool // a code is required
	ServiceURL string
	NotBefore  time.Time
	NotAfter   time.Time

	QR      []byte // GIF
	QRText  string // text of the picture
	Content message.KInitData
}

// Init begins the initialization of a new device and sends the activation code. The first
// of these faults is returned: user_not_found, initialization_key_already_exists,
// maximum_tokens_count_exceeded, invalid_system_id, then of the contacts
// invalid_contact_info, wrong_operation, contact_confirmation_required, then
// invalid_license.
func (s *Service) Init(ctx context.Context, who audit.Principal, userID string, o KInitOrder) (KInit, error) {
	// Made before the transaction, which other requests wait for.
	kid, err := s.newKid()
	if err != nil {
		return KInit{}, err
	}
	content, err := s.secret(message.SecretSize)
	if err != nil {
		return KInit{}, err
	}
	now := s.now()
	k := kinit{record: KInitRecord{UserID: userID, Kid: kid, ExpiresAt: now.Add(s.settings.KInitLife)}}
	k.sealedKInit = sealedKInit{
		UserID: userID, Content: content, Activation: s.settings.ActivationCodes,
		CreatedAt: now.UnixMilli(), ExpiresAt: k.record.ExpiresAt.UnixMilli(),
	}
	made, err := s.describeKInit(k)
	if err != nil {
		return KInit{}, err
	}
	err = s.within(ctx, who, userID, func(ctx context.Context) error {
		if _, found, err := s.deps.KInits.KInit(ctx, userID, now); err != nil || found {
			if err == nil {
				err = fault.New(fault.KInitExists, "the user has an initialization key for a new device: delete it first, or get it again")
			}
			return err
		}
		if err := s.room(ctx, userID); err != nil {
			return err
		}
		system, known := s.system(strings.ToLower(o.SystemID))
		if !known {
			return fault.New(fault.InvalidSystem, "SystemId: there is no such mobile application")
		}
		k.SystemID, made.SystemID = system.ID, system.ID
		var to []recipient
		if s.settings.ActivationCodes {
			if to, err = s.recipients(ctx, userID, o); err != nil {
				return err
			}
			k.Contact, k.Normal = to[0].kind.Type, to[0].normal
		}
		if err := s.licensed(ctx); err != nil {
			return err
		}
		if k.record.Sealed, err = s.seal(kinitPlace(kid), k.sealedKInit); err != nil {
			return err
		}
		added, err := s.deps.KInits.AddKInit(ctx, k.record, now)
		if err != nil {
			return err
		}
		if !added {
			return fmt.Errorf("device: the identifier %s is taken", kid)
		}
		if err := s.sendCode(ctx, who, k, to); err != nil {
			return err
		}
		if made.UserName, err = s.login(ctx, userID); err != nil {
			return err
		}
		return s.changed(ctx, who, userID)
	})
	if err != nil {
		return KInit{}, err
	}
	return made, nil
}

// GetKInit returns the pending initialization again. The fault is key_not_found.
func (s *Service) GetKInit(ctx context.Context, who audit.Principal, userID string) (made KInit, err error) {
	var k kinit
	err = s.reading(ctx, who, userID, func(ctx context.Context) error {
		if k, err = s.pending(ctx, userID, fault.KeyNotFound); err != nil {
			return err
		}
		made.UserName, err = s.login(ctx, userID)
		return err
	})
	if err != nil {
		return KInit{}, err
	}
	name := made.UserName
	made, err = s.describeKInit(k)
	made.UserName = name
	return made, err
}

// SendKInit sends the QR code to an e-mail address. The first of these faults is
// returned: key_not_found, invalid_contact_info without an address, invalid_email,
// wrong_operation, contact_confirmation_required.
func (s *Service) SendKInit(ctx context.Context, who audit.Principal, userID, email string) error {
	return s.within(ctx, who, userID, func(ctx context.Context) error {
		k, err := s.pending(ctx, userID, fault.KeyNotFound)
		if err != nil {
			return err
		}
		if strings.TrimSpace(email) == "" {
			return fault.New(fault.InvalidContactInfo, "Email is missing: want the address the QR code goes to")
		}
		normal, err := contact.Email.Normal(email)
		if err != nil {
			return err
		}
		to := []recipient{{contact.Email, normal}}
		if err := s.reachable(to); err != nil {
			return err
		}
		if !s.settings.SendQR {
			return fault.New(fault.WrongOperation, "sending QR codes by e-mail is switched off: ask the administrator")
		}
		if err := s.theirs(ctx, userID, to); err != nil {
			return err
		}
		made, err := s.describeKInit(k)
		if err != nil {
			return err
		}
		return s.deps.Messages.Order(ctx, notify.Direct{
			Channel: notify.Email, To: normal, Template: notify.TemplateDeviceQR, Picture: made.QR,
			Data:   map[string]string{"Expires": made.NotAfter.Format(notify.TimeLayout)},
			UserID: userID, Actor: who.UserID, Expires: made.NotAfter,
		})
	})
}

// ResendCode sends another activation code. The previous code becomes invalid. The first
// of these faults is returned: key_not_found, wrong_operation where no code is required,
// and of the contacts as in Init; too_many_requests before the resend time of codes is
// over.
func (s *Service) ResendCode(ctx context.Context, who audit.Principal, userID string, o KInitOrder) error {
	return s.within(ctx, who, userID, func(ctx context.Context) error {
		k, err := s.pending(ctx, userID, fault.KeyNotFound)
		if err != nil {
			return err
		}
		if !k.Activation {
			return fault.New(fault.WrongOperation, "this initialization needs no activation code")
		}
		to, err := s.recipients(ctx, userID, o)
		if err != nil {
			return err
		}
		k.Contact, k.Normal = to[0].kind.Type, to[0].normal
		sealed, err := s.seal(kinitPlace(k.kid()), k.sealedKInit)
		if err != nil {
			return err
		}
		changed, err := s.deps.KInits.ChangeKInit(ctx, k.kid(), k.record.Sealed, sealed)
		if err == nil && !changed {
			err = fault.New(fault.Unavailable, "another request is changing the initialization: try again")
		}
		if err != nil {
			return err
		}
		return s.sendCode(ctx, who, k, to)
	})
}

// DeleteKInit ends the initialization: its QR code and activation code become invalid.
// The fault is wrong_operation when there is none.
func (s *Service) DeleteKInit(ctx context.Context, who audit.Principal, userID string) error {
	return s.within(ctx, who, userID, func(ctx context.Context) error {
		// The record is not opened, so that a damaged one can be deleted too.
		r, found, err := s.deps.KInits.KInit(ctx, userID, s.now())
		if err != nil {
			return err
		}
		spent := false
		if found {
			if spent, err = s.deps.KInits.SpendKInit(ctx, r.Kid, s.now()); err != nil {
				return err
			}
		}
		if !spent {
			return noKInit(fault.WrongOperation)
		}
		return s.changed(ctx, who, userID)
	})
}

// pending returns the valid initialization of a user. Without one the fault has the given
// code.
func (s *Service) pending(ctx context.Context, userID, code string) (kinit, error) {
	r, found, err := s.deps.KInits.KInit(ctx, userID, s.now())
	if err == nil && !found {
		err = noKInit(code)
	}
	if err != nil {
		return kinit{}, err
	}
	return s.readKInit(r)
}

func noKInit(code string) error {
	return fault.New(code, "the user has no initialization key: create one with init")
}

// room returns a fault when the user has the most devices allowed.
func (s *Service) room(ctx context.Context, userID string) error {
	have, err := s.deps.Devices.Devices(ctx, userID)
	if err == nil && len(have) >= s.settings.Devices {
		err = fault.Newf(fault.MaxTokens, "the user has %d devices, which is the limit: delete one first", len(have))
	}
	return err
}

// licence locks the number of devices of the installation where it has a limit, so that
// devices that are added at the same time do not exceed it.
func (s *Service) licence() lock.Set {
	if s.settings.InstallationLimit == 0 {
		return lock.Set{}
	}
	return lock.Named("devices of users")
}

// licensed returns a fault when the installation has the most devices allowed.
func (s *Service) licensed(ctx context.Context) error {
	if s.settings.InstallationLimit == 0 {
		return nil
	}
	have, err := s.deps.Devices.CountDevices(ctx, false)
	if err == nil && have >= s.settings.InstallationLimit {
		err = fault.New(fault.InvalidLicense, "the installation has the most devices allowed: contact the administrator")
	}
	return err
}

// recipient is a contact that a message about a device is sent to.
type recipient struct {
	kind   contact.Kind
	normal string
}

// recipients checks and returns the contacts of an order: one or two, the phone first.
func (s *Service) recipients(ctx context.Context, userID string, o KInitOrder) ([]recipient, error) {
	var to []recipient
	for _, given := range []struct {
		kind        contact.Kind
		name, value string
	}{{contact.Phone, "Msisdn", o.Phone}, {contact.Email, "Email", o.Email}} {
		if strings.TrimSpace(given.value) == "" {
			continue
		}
		normal, err := given.kind.New(given.value)
		if err != nil {
			return nil, fault.Newf(fault.InvalidContactInfo, "%s is not valid: want a phone number with the country code in Msisdn, an address such as name@example.ru in Email", given.name).With(err)
		}
		to = append(to, recipient{given.kind, normal})
	}
	if len(to) == 0 {
		return nil, fault.New(fault.InvalidContactInfo, "Msisdn and Email are missing: want the phone or the e-mail that the activation code goes to")
	}
	if err := s.reachable(to); err != nil {
		return nil, err
	}
	return to, s.theirs(ctx, userID, to)
}

// reachable returns the fault wrong_operation for a contact whose channel is not
// configured.
func (s *Service) reachable(to []recipient) error {
	for _, r := range to {
		if !slices.Contains(s.deps.Messages.Available(), r.kind.Channel) {
			return fault.Newf(fault.WrongOperation, "notifications by %s are not configured: ask the administrator", r.kind.Channel)
		}
	}
	return nil
}

// theirs refuses contacts that the user does not have confirmed, if the settings require
// it. Faults: wrong_operation, contact_confirmation_required.
func (s *Service) theirs(ctx context.Context, userID string, to []recipient) error {
	if !s.settings.ConfirmedContacts {
		return nil
	}
	unconfirmed := false
	for _, r := range to {
		c, found, err := s.deps.Contacts.Contact(ctx, userID, r.kind.Type, r.normal)
		if err != nil {
			return err
		}
		if !found {
			return fault.Newf(fault.WrongOperation, "the user has no such contact of type %s: add it first", r.kind.Type)
		}
		unconfirmed = unconfirmed || !c.Confirmed
	}
	if unconfirmed {
		return fault.New(fault.ContactUnconfirmed, "the contact of the user is not confirmed: confirm it first")
	}
	return nil
}

// Sending says how messages about a new device reach its user.
type Sending struct {
	Code      bool             // an activation code is sent
	Picture   bool             // the QR code may be sent by e-mail
	Confirmed bool             // only to confirmed contacts of the user
	Channels  []notify.Channel // that are configured
}

// Sending returns what the settings say of messages about new devices.
func (s *Service) Sending() Sending {
	o := s.settings
	return Sending{o.ActivationCodes, o.SendQR, o.ConfirmedContacts, s.deps.Messages.Available()}
}

// codePurpose returns the purpose of activation codes, which binds them to one K-init.
func codePurpose(kid string) string { return "device " + kid }

// sendCode sends one activation code to all recipients. The code is bound to the first
// one.
func (s *Service) sendCode(ctx context.Context, who audit.Principal, k kinit, to []recipient) error {
	if len(to) == 0 {
		return nil
	}
	code, expires, err := s.deps.Codes.Issue(ctx, k.UserID, codePurpose(k.kid()), to[0].kind, to[0].normal)
	if err != nil {
		return err
	}
	minutes := strconv.Itoa(int((expires.Sub(s.now()) + time.Minute - 1) / time.Minute))
	for _, r := range to {
		if err := s.deps.Messages.Order(ctx, notify.Direct{
			Channel: r.kind.Channel, To: r.normal, Template: notify.TemplateDeviceCode,
			Data:   map[string]string{"Code": code, "Minutes": minutes},
			UserID: k.UserID, Actor: who.UserID, Expires: expires,
		}); err != nil {
			return err
		}
	}
	return nil
}

// describeKInit makes the QR code of a K-init.
func (s *Service) describeKInit(k kinit) (KInit, error) {
	made := KInit{
		Kid: k.kid(), UserID: k.UserID, SystemID: k.SystemID, Activation: k.Activation, ServiceURL: s.settings.ServiceURL,
		NotBefore: time.UnixMilli(k.CreatedAt).UTC(), NotAfter: k.record.ExpiresAt,
		Content: message.KInitData{
			Kid: k.kid(), UID: k.UserID, ServiceURL: s.settings.ServiceURL, KeyContent: message.Secret(k.sealedKInit.Content),
			ActivationRequired: k.Activation, Weakness: s.settings.WithoutPassword,
		},
	}
	var err error
	made.QRText, made.QR, err = s.paint(message.KInit{Type: message.TypeKInit, Version: message.Version, Data: made.Content})
	return made, err
}

// paint returns the text and the picture of a QR code.
func (s *Service) paint(data any) (string, []byte, error) {
	text, err := json.Marshal(data)
	if err != nil {
		return "", nil, err
	}
	picture, err := s.deps.Paint(string(text))
	if err != nil {
		return "", nil, fmt.Errorf("device: painting a QR code: %w", err)
	}
	return string(text), picture, nil
}

// within runs fn in one transaction that first checks the right to act on the user. A
// fault rolls back.
func (s *Service) within(ctx context.Context, who audit.Principal, userID string, fn func(ctx context.Context) error) error {
	return s.withinLocked(ctx, lock.User(userID), who, userID, fn)
}

// withinLocked is within for fn that also counts the devices of the installation.
func (s *Service) withinLocked(ctx context.Context, locked lock.Set, who audit.Principal, userID string, fn func(ctx context.Context) error) error {
	return s.deps.Devices.Atomic(ctx, locked, func(ctx context.Context) error {
		if err := s.deps.Users.Reach(ctx, who, userID); err != nil {
			return err
		}
		return fault.Rollback(fn(ctx))
	})
}

// reading checks the right to act on the user, then runs fn, which only reads.
func (s *Service) reading(ctx context.Context, who audit.Principal, userID string, fn func(ctx context.Context) error) error {
	if err := s.deps.Users.Reach(ctx, who, userID); err != nil {
		return err
	}
	return fn(ctx)
}

// login returns the login of a user.
func (s *Service) login(ctx context.Context, userID string) (string, error) {
	u, err := s.deps.Users.Get(ctx, userID)
	return u.Login, err
}

// changed notifies the user of a change of the account.
func (s *Service) changed(ctx context.Context, who audit.Principal, userID string) error {
	return s.deps.Messages.Emit(ctx, notify.Event{Type: notify.UserAccountChanged, UserID: userID, Actor: who.UserID})
}

// factorAdded is factorChanged for a device that begins to act for the user. The older
// contacts of the user are told.
func (s *Service) factorAdded(ctx context.Context, who audit.Principal, userID, reason string) error {
	if err := s.factorChanged(ctx, who, userID, reason); err != nil {
		return err
	}
	return s.deps.Messages.Emit(ctx, notify.Event{Type: notify.UserFactorChanged, UserID: userID, Actor: who.UserID, Factor: notify.FactorDevice})
}

// factorChanged is changed for a change of the devices that may act for the user. It also
// ends the confirmations of the user that are open.
func (s *Service) factorChanged(ctx context.Context, who audit.Principal, userID, reason string) error {
	if err := s.deps.Confirmations.CancelAll(ctx, who, userID, reason); err != nil {
		return err
	}
	return s.changed(ctx, who, userID)
}
