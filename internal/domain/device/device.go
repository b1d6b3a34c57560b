// Package device owns mobile devices that prove who their user is: how one becomes
// a user's (K-init, assignment, verification), its states, what it sends, and the
// addresses it is reached at by push.
//
// Two parties speak to it. Operators register, verify, block and delete devices of
// users; devices send messages signed with their own keys (package message). What
// matters of a device is kept in one sealed record bound to its row: whoever moves or
// changes cells of the database has a device that is none.
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

// Settings of the room.
type Settings struct {
	// ServiceURL is where devices send their messages; QR codes name it, and messages
	// for another address are refused.
	ServiceURL string
	// Systems are the applications; the first one counts where a request names none.
	Systems []System

	Devices           int  // of one user
	InstallationLimit int  // devices of all users together; 0 is no bound
	ActivationCodes   bool // a K-init works only with a code that was sent another way
	ConfirmedContacts bool // such codes go to confirmed contacts of the user alone
	SendQR            bool // QR codes may be sent by e-mail
	WithoutPassword   bool // devices may keep their keys without a password ("weakness")

	KInitLife        time.Duration
	VerificationLife time.Duration
	DeviceLife       time.Duration // of the key of a device
	Skew             time.Duration // the most that the clock of a device may be wrong
	PollAfter        time.Duration // how soon a device asks again

	// Anonymous devices register without a K-init and wait for an operator to assign
	// them: how many may wait, 0 for none, and how long.
	Anonymous     int
	AnonymousLife time.Duration
}

// DefaultSettings are the values of the interface family and our own choice.
func DefaultSettings() Settings {
	return Settings{
		Devices: 5, ActivationCodes: true, ConfirmedContacts: true, SendQR: true,
		KInitLife: 24 * time.Hour, VerificationLife: 10 * time.Minute, DeviceLife: 3 * 365 * 24 * time.Hour,
		Skew: 5 * time.Minute, PollAfter: 5 * time.Second,
		Anonymous: 1000, AnonymousLife: 24 * time.Hour,
	}
}

// Check reports every fault of the settings at once.
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

// maxDevices bounds the devices of one user whatever the settings.
const maxDevices = 100

// Limits of what a device tells of itself, in characters.
const (
	maxName    = 100
	maxVersion = 50
	maxAddress = 4096 // octets of a push address
)

// States of devices; a device that is blocked before it was verified has the last.
const (
	NotVerified        = "NotVerified"
	Active             = "Active"
	Blocked            = "Blocked"
	NotVerifiedBlocked = NotVerified + "," + Blocked
)

// Device is a device of a user, or of nobody yet.
type Device struct {
	Kid        string // decimal digits
	UserID     string // "" for nobody's
	UserName   string // login of the user; filled in where operators are answered
	Name       string
	Type       string // as it says, such as android
	AppVersion string
	SystemID   string // of the mobile application
	Key        []byte // SubjectPublicKeyInfo
	Verified   bool
	Blocked    bool
	CreatedAt  time.Time
	NotBefore  time.Time
	NotAfter   time.Time
	Push       *Push // nil where it is not reached
}

// State is the state by the name the interface has for it.
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

// Active reports whether the device may speak for its user.
func (d Device) Active(now time.Time) bool {
	return d.UserID != "" && d.Verified && d.live(now)
}

// live reports whether messages of the device are listened to.
func (d Device) live(now time.Time) bool {
	return !d.Blocked && !now.Before(d.NotBefore) && now.Before(d.NotAfter)
}

// Push is the address that a device is reached at.
type Push struct {
	Address      string
	OSType       int // opaque; 1 iOS, 2 Android, 3 Huawei by our own choice
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

// Contacts finds what is in the book of a user; contact.Store satisfies it.
type Contacts interface {
	Contact(ctx context.Context, userID string, t contact.Type, normal string) (c contact.Contact, found bool, err error)
}

// Codes makes and spends one-time codes; *contact.Codes satisfies it.
type Codes interface {
	Issue(ctx context.Context, userID, purpose string, kind contact.Kind, normal string) (code string, expires time.Time, err error)
	Spend(ctx context.Context, userID, purpose string, kind contact.Kind, normal, code string) error
}

// Messages tells people; *notify.Service satisfies it.
type Messages interface {
	Available() []notify.Channel
	Order(ctx context.Context, d notify.Direct) error
	Emit(ctx context.Context, e notify.Event) error
}

// Methods is told when a user has lost the last device that may speak for them, in
// the transaction of ctx. [session.Service] satisfies it.
type Methods interface {
	DevicesGone(ctx context.Context, userID string) error
}

// Deps are what a Service works with.
type Deps struct {
	// The stores keep their tables in one database.
	Devices  Store
	KInits   KInitStore
	Nonces   NonceStore
	Vault    notify.Sealer
	Users    Users
	Contacts Contacts
	Codes    Codes
	Messages Messages
	Methods  Methods
	// Paint makes a picture of a QR code, GIF, small enough to be sent by mail.
	Paint func(text string) ([]byte, error)
	Now   func() time.Time
	Rand  io.Reader // of secrets and identifiers; safe for concurrent use
}

// Service keeps the devices. Operations that name who act for an operator and fail
// with user_not_found for users out of reach.
type Service struct {
	settings Settings
	deps     Deps
}

// New checks the settings.
func New(s Settings, d Deps) (*Service, error) {
	if err := s.Check(); err != nil {
		return nil, err
	}
	s.Systems = slices.Clone(s.Systems)
	return &Service{s, d}, nil
}

// system finds an application; "" is the first one.
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

// HasActive reports whether the user has a device that may speak for them now: what
// the authentication method needs.
func (s *Service) HasActive(ctx context.Context, userID string) (bool, error) {
	list, err := s.devices(ctx, userID)
	now := s.now()
	return err == nil && slices.ContainsFunc(list, func(d Device) bool { return d.Active(now) }), err
}

// Sweep deletes what has expired; the server calls it now and then.
func (s *Service) Sweep(ctx context.Context) error {
	return s.deps.Devices.SweepDevices(ctx, s.now())
}

// now is the time as stores keep it.
func (s *Service) now() time.Time { return s.deps.Now().UTC().Truncate(time.Millisecond) }
