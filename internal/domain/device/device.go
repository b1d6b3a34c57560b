// SPDX-License-Identifier: Apache-2.0

// Package device manages the mobile devices that authenticate users: registration
// (K-init, assignment, verification), states, messages, and push addresses. Begin with
// New, Service.Init for operators and Service.Register for devices. Approvals reads the
// answers of devices to confirmations. The package does not send push messages, and package
// confirm decides what an answer does.
//
// It has two kinds of callers. Operators register, verify, block and delete devices of
// users. Devices send messages signed with their own keys (package message). A device is
// stored as one sealed record bound to its row, so a device whose cells in the database
// were moved or changed does not open.
package device

import (
	"context"
	"errors"
	"io"
	"slices"
	"time"

	"tamga/internal/domain/audit"
	"tamga/internal/domain/contact"
	"tamga/internal/domain/notify"
	"tamga/internal/domain/session"
	"tamga/internal/domain/user"
)

// Method is the authentication method that devices are for.
const Method = session.MethodDevice

// System is a mobile application that devices run.
type System struct {
	ID   string // GUID, lower case
	Name string
}

// Settings configure a Service.
type Settings struct {
	// ServiceURL is the address that devices send messages to. QR codes contain it.
	// Messages for another address are refused.
	ServiceURL string
	// Systems are the applications. The first one is the default.
	Systems []System

	Devices           int  // of one user
	InstallationLimit int  // devices of all users together; 0 is no limit
	ActivationCodes   bool // a K-init needs a code that is sent separately
	ConfirmedContacts bool // activation codes go only to confirmed contacts of the user
	SendQR            bool // QR codes may be sent by e-mail
	WithoutPassword   bool // devices may keep their keys without a password ("weakness")

	KInitLife        time.Duration
	VerificationLife time.Duration
	DeviceLife       time.Duration // of the key of a device
	Skew             time.Duration // largest allowed error of the clock of a device
	PollAfter        time.Duration // interval between polls of a device

	// Anonymous is how many devices without a K-init may wait until an operator assigns
	// them, 0 for none. AnonymousLife is how long they may wait.
	Anonymous     int
	AnonymousLife time.Duration
}

// DefaultSettings returns the values of the specifications and, where they have none, our
// own.
func DefaultSettings() Settings {
	return Settings{
		Devices: 5, ActivationCodes: true, ConfirmedContacts: true, SendQR: true,
		KInitLife: 24 * time.Hour, VerificationLife: 10 * time.Minute, DeviceLife: 3 * 365 * 24 * time.Hour,
		Skew: 5 * time.Minute, PollAfter: 5 * time.Second,
		Anonymous: 1000, AnonymousLife: 24 * time.Hour,
	}
}

// Check reports all problems of the settings at once.
func (s Settings) Check() error {
	var faults []error
	must := func(ok bool, text string) {
		if !ok {
			faults = append(faults, errors.New("device: settings: "+text))
		}
	}
	must(s.ServiceURL != "", "service url: want the address devices send to")
	must(len(s.Systems) > 0, "systems: want at least one mobile application")
	seen := map[string]bool{}
	for _, system := range s.Systems {
		must(validGUID(system.ID) && !seen[system.ID], "systems: want a GUID of its own for each")
		seen[system.ID] = true
	}
	must(s.Devices >= 1 && s.Devices <= maxDevices, "devices: want 1 to 100")
	must(s.InstallationLimit >= 0 && s.Anonymous >= 0, "installation limit and anonymous: want 0 or more")
	must(s.KInitLife >= time.Minute, "k-init life: want at least 1m")
	must(s.VerificationLife >= 30*time.Second, "verification life: want at least 30s")
	must(s.DeviceLife >= time.Hour, "device life: want at least 1h")
	must(s.Skew >= 10*time.Second && s.Skew <= time.Hour, "skew: want 10s to 1h")
	must(s.PollAfter >= time.Second, "poll after: want at least 1s")
	must(s.Anonymous == 0 || s.AnonymousLife >= time.Minute, "anonymous life: want at least 1m")
	return errors.Join(faults...)
}

// maxDevices is the largest value of Settings.Devices.
const maxDevices = 100

// Limits of what a device reports about itself, in characters.
const (
	maxName    = 100
	maxVersion = 50
	maxAddress = 4096 // bytes of a push address
)

// States of devices. NotVerifiedBlocked is a device that was blocked before it was
// verified.
const (
	NotVerified        = "NotVerified"
	Active             = "Active"
	Blocked            = "Blocked"
	NotVerifiedBlocked = NotVerified + "," + Blocked
)

// Device is a device of a user, or one that has no user yet.
type Device struct {
	Kid        string // decimal digits
	UserID     string // "" for a device without a user
	UserName   string // login of the user; set only in answers to operators
	Name       string
	Type       string // as the device reports it, such as android
	AppVersion string
	SystemID   string // of the mobile application
	Key        []byte // SubjectPublicKeyInfo
	Pinned     []byte // SHA-256 of the key of the service that it got; nil: it must register again to confirm offline
	Verified   bool
	Blocked    bool
	CreatedAt  time.Time
	NotBefore  time.Time
	NotAfter   time.Time
	Push       *Push // nil without a push address
	Describes  int   // of its last poll; see message.PollRequest
}

// State returns the state by its name in the specification.
func (d Device) State() string {
	switch {
	case d.Blocked && !d.Verified:
		return NotVerifiedBlocked
	case d.Blocked:
		return Blocked
	case d.Verified:
		return Active
	}
	return NotVerified
}

// Active reports whether the device may act for its user.
func (d Device) Active(now time.Time) bool {
	return d.UserID != "" && d.Verified && d.live(now)
}

// live reports whether messages of the device are accepted.
func (d Device) live(now time.Time) bool {
	return !d.Blocked && !now.Before(d.NotBefore) && now.Before(d.NotAfter)
}

// Push is the push address of a device.
type Push struct {
	Address      string
	OSType       int // opaque; 1 iOS, 2 Android, 3 Huawei by our own choice, OSTypeBrowser of browsers
	SystemID     string
	Listed       bool // among the contacts of the user: an operator may have removed it
	Notification bool // notifications go there
}

// Users are the accounts devices belong to; *user.Service satisfies it.
type Users interface {
	// Reach returns nil or the fault user_not_found.
	Reach(ctx context.Context, who audit.Principal, userID string) error
	// Get finds a user. The fault is user_not_found.
	Get(ctx context.Context, id string) (user.User, error)
}

// Contacts finds contacts of users; contact.Store satisfies it.
type Contacts interface {
	Contact(ctx context.Context, userID string, t contact.Type, normal string) (c contact.Contact, found bool, err error)
}

// Codes makes and spends one-time codes; *contact.Codes satisfies it.
type Codes interface {
	Issue(ctx context.Context, userID, purpose string, kind contact.Kind, normal string) (code string, expires time.Time, err error)
	Spend(ctx context.Context, userID, purpose string, kind contact.Kind, normal, code string) error
}

// Messages sends messages and notices; *notify.Service satisfies it.
type Messages interface {
	Available() []notify.Channel
	Order(ctx context.Context, d notify.Direct) error
	Emit(ctx context.Context, e notify.Event) error
}

// Methods is called when a user has lost the last device that may act for the user, in
// the transaction of ctx. [session.Service] satisfies it.
type Methods interface {
	DevicesGone(ctx context.Context, userID string) error
}

// Confirmations is called in the transaction of ctx when the devices that act for a user
// change. It ends the confirmations of the user that are open. reason is a short sentence
// for clients. [*tamga/internal/domain/confirm.Service] satisfies it.
type Confirmations interface {
	CancelAll(ctx context.Context, who audit.Principal, userID, reason string) error
}

// Deps are what a Service works with.
type Deps struct {
	// The stores keep their tables in one database.
	Devices  Store
	KInits   KInitStore
	Nonces   NonceStore
	Keys     ServiceKeyStore
	Browsers BrowserStore // their push addresses are beside those of devices
	Vault    notify.Sealer
	Users    Users
	Contacts Contacts
	Codes    Codes
	Messages Messages
	Methods  Methods
	// Confirmations end when a device is verified, blocked or removed.
	Confirmations Confirmations
	// AdmitAnonymous may refuse a new device without a K-init, by the address of its sender. nil: all
	// are admitted.
	AdmitAnonymous func(ctx context.Context) error
	// Paint makes a picture of a QR code: a GIF small enough for e-mail.
	Paint func(text string) ([]byte, error)
	Now   func() time.Time
	Rand  io.Reader // of secrets and identifiers; safe for concurrent use
}

// Service manages devices. Methods with the argument who act for an operator and fail
// with user_not_found for users out of reach.
type Service struct {
	receiver
	deps     Deps
	browsers browsers
}

// New checks the settings.
func New(s Settings, d Deps) (*Service, error) {
	if err := s.Check(); err != nil {
		return nil, err
	}
	s.Systems = slices.Clone(s.Systems)
	return &Service{receiver{records{d.Devices, d.Keys, d.Vault, d.Rand}, s, d.Users, d.Now}, d, browsers{d.Browsers, records{vault: d.Vault}}}, nil
}

// system returns an application by identifier; "" means the first one.
func (s *Service) system(id string) (System, bool) {
	if id == "" {
		return s.settings.Systems[0], true
	}
	i := slices.IndexFunc(s.settings.Systems, func(known System) bool { return known.ID == id })
	if i < 0 {
		return System{}, false
	}
	return s.settings.Systems[i], true
}

// HasActive reports whether the user has a device that may act for the user now. The
// authentication method needs one.
func (s *Service) HasActive(ctx context.Context, userID string) (bool, error) {
	list, err := s.devices(ctx, userID)
	now := s.now()
	return err == nil && slices.ContainsFunc(list, func(d Device) bool { return d.Active(now) }), err
}

// Has reports whether the user has a device that was verified, also a blocked or expired one.
func (s *Service) Has(ctx context.Context, userID string) (bool, error) {
	list, err := s.devices(ctx, userID)
	return err == nil && slices.ContainsFunc(list, func(d Device) bool { return d.Verified }), err
}

// Sweep deletes expired records. The server calls it from time to time.
func (s *Service) Sweep(ctx context.Context) error {
	return s.deps.Devices.SweepDevices(ctx, s.now())
}
