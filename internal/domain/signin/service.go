// Package signin signs users in: by password, by certificate, at other identity
// providers, and by exchange of an operator's token.
//
// Begin with [New], [Service.PasswordGrant] and [Service.AuthorizePassword]. The table
// in methods.go has the methods that users may have. Clients of OAuth are in client.go.
//
// The package asks the package token for every token, the package password for hashes
// and the package oath for tokens that make one-time passwords. Sessions end in the
// package session.
package signin

import (
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"tamga/internal/domain/audit"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/oath"
	"tamga/internal/domain/password"
	"tamga/internal/domain/session"
	"tamga/internal/domain/token"
	"tamga/internal/domain/user"
)

// Settings of the service.
type Settings struct {
	// Lock-out: after Failures wrong passwords within Window a login is refused
	// for LockOut, whatever is presented.
	Failures int
	Window   time.Duration
	LockOut  time.Duration

	// PasswordDisplay lists the ways a new password may go, of the Display
	// constants; letter case does not count.
	PasswordDisplay []string
	// IDOnlyPublic lets users with the method "none" sign in by their name alone
	// through a public client: whoever knows a name is that user.
	IDOnlyPublic bool
	CodeLife     time.Duration // of an authorization code
	MethodURIs   Spelling      // in answers; "" is SpellingInterface
}

// DefaultSettings are our own choice.
func DefaultSettings() Settings {
	return Settings{
		Failures: 10,
		Window:   15 * time.Minute,
		LockOut:  15 * time.Minute,

		PasswordDisplay: []string{DisplayScreen, DisplayFrame, DisplayPhone, DisplayEmail, DisplayPrint},
		CodeLife:        time.Minute,
	}
}

// check reports every fault at once.
func (s Settings) check() error {
	var faults []error
	must := func(ok bool, text string) {
		if !ok {
			faults = append(faults, errors.New("auth: settings: "+text))
		}
	}
	must(s.Failures >= 1, "failures: want at least 1")
	must(s.Window >= time.Second, "window: want at least 1 s")
	must(s.LockOut >= time.Second, "lock-out: want at least 1 s")
	must(s.CodeLife >= time.Second && s.CodeLife <= 10*time.Minute, "code life: want 1 s to 10 min")
	must(s.MethodURIs == "" || s.MethodURIs == SpellingInterface || s.MethodURIs == SpellingProduct, "method URIs: want interface or product")
	for _, way := range s.PasswordDisplay {
		must(displays[strings.ToLower(way)], "password display: unknown way "+strconv.Quote(way)+", want Screen, Frame, Phone, Email, Print")
	}
	return errors.Join(faults...)
}

// LoginKey names a login in the count of wrong passwords: a hash of the folded
// login. Unknown logins are counted like known ones, so the hash keeps what
// people type into the wrong field out of the database.
type LoginKey [sha256.Size]byte

// KeyOf is the key of a login as somebody typed it.
func KeyOf(login string) LoginKey { return sha256.Sum256([]byte(user.FoldLogin(login))) }

// LockOut is the rule that a Store applies to one login.
type LockOut struct {
	Failures        int
	Window, LockOut time.Duration
}

// Scheme is what the methods of a user come to.
type Scheme struct {
	IDOnly, Password, Certificate, External bool // first steps there are
	SecondStep                              bool // another step follows the first
}

// Credential is somebody who may sign in, and with what.
type Credential struct {
	User        user.User
	Encoded     string // see password.Hasher.Encode; "" without a password
	Scheme      Scheme
	LockedUntil time.Time // end of the automatic lock; zero or past for none
}

// Code is an authorization code as it is stored.
type Code struct {
	Hash        [sha256.Size]byte
	UserID      string
	ClientID    string
	RedirectURI string
	Scope       string // granted
	Method      string
	Thumbprint  []byte // of the certificate method
	Granted     bool   // see Proof
	LoginOnly   bool   // no resource was asked for
	Nonce       string // for the ID token
	Challenge   string // of RFC 7636, S256; "" for none
	SignedInAt  time.Time
	ExpiresAt   time.Time

	// Of a code that a valid access token was exchanged for; empty for a fresh sign-in.
	GrantID  string    // see TokenRecord
	ParentID string    // that access token
	EndsAt   time.Time // no token of this code lives longer
}

// StoredMethod is a method that a user has.
type StoredMethod struct {
	Name  string
	Level int
}

// Store keeps passwords and failed attempts, and finds who signs in.
type Store interface {
	Atomic(ctx context.Context, fn func(ctx context.Context) error) error

	SetPassword(ctx context.Context, userID, encoded string, at time.Time) error // or session.ErrNotFound
	HasPassword(ctx context.Context, userID string) (bool, error)
	// CredentialOf finds who is identified by a folded login or else by the normal
	// form of a primary phone or e-mail, "" for none. One query does the same work
	// whatever is found. session.ErrNotFound for nobody.
	CredentialOf(ctx context.Context, folded, phone, email string) (Credential, error)
	// CredentialOfExternal finds who has a login at an issuer, both folded. session.ErrNotFound.
	CredentialOfExternal(ctx context.Context, issuer, login string) (Credential, error)
	// SignInName is what a user signs in with: the login, otherwise a primary
	// contact, "" for nothing. session.ErrNotFound for no user.
	SignInName(ctx context.Context, userID string) (name string, u user.User, err error)

	// BeginAttempt counts an attempt as failed before it is judged. It is
	// durable when it returns; false means that the login is locked out, and
	// then nothing was counted. The attempt that reaches the limit begins the
	// lock-out. One statement decides, so attempts made at once share a budget.
	// A known user is counted under the user and not under what was typed: all
	// names and all ways of signing in with a secret share the budget.
	BeginAttempt(ctx context.Context, login LoginKey, now time.Time, rule LockOut) (bool, error)
	BeginUserAttempt(ctx context.Context, userID string, now time.Time, rule LockOut) (bool, error)
	// EndUserAttempt forgets the count of a user after a correct password.
	EndUserAttempt(ctx context.Context, userID string) error

	// SweepSignIns deletes codes and visits that expired, and counts that ended before now.
	SweepSignIns(ctx context.Context, now time.Time, window time.Duration) error
}

// MethodStore keeps methods and the certificates that users sign in with.
type MethodStore interface {
	SetMethod(ctx context.Context, userID string, m StoredMethod, at time.Time) error
	DeleteMethod(ctx context.Context, userID, name string) (bool, error) // whether there was one
	MethodsOf(ctx context.Context, userID string) ([]StoredMethod, error)

	AddCertificate(ctx context.Context, c SignInCertificate) (bool, error) // false when it is somebody's
	RemoveCertificate(ctx context.Context, userID string, thumbprint [sha256.Size]byte) (bool, error)
	CertificatesOf(ctx context.Context, userID string) ([]SignInCertificate, error)
	// BearerByCertificate finds the user of a certificate; Token is empty. session.ErrNotFound.
	BearerByCertificate(ctx context.Context, thumbprint [sha256.Size]byte) (token.Bearer, Scheme, error)
}

// CodeStore keeps authorization codes.
type CodeStore interface {
	AddCode(ctx context.Context, c Code) error
	// SpendCode marks a code as exchanged for a token if it lives and is of this
	// client and address. One statement decides; true is told once.
	SpendCode(ctx context.Context, hash [sha256.Size]byte, clientID, redirectURI, tokenID string, now time.Time) (Code, bool, error)
	// EndReplayed ends the sign-in that a spent code of the client belongs to: its tokens,
	// its grant, and its codes. It reports whether anything of it was still valid.
	EndReplayed(ctx context.Context, hash [sha256.Size]byte, clientID string) (bool, error)
}

// Reach decides whether an operator may act on a user; [reach.Service] satisfies it.
type Reach interface {
	Reach(ctx context.Context, who audit.Principal, userID string) error
}

// Devices knows the mobile devices of users; [device.Service] satisfies it.
type Devices interface {
	// HasActive reports whether the user has a device that may speak for them now.
	HasActive(ctx context.Context, userID string) (bool, error)
}

// Tokens knows the tokens that make one-time passwords; [oath.Service] satisfies it.
type Tokens interface {
	TokenOf(ctx context.Context, userID string) (t oath.Token, found bool, err error)
}

// Service proves identities.
type Service struct {
	settings  Settings
	store     Store
	methods   MethodStore
	codes     CodeStore
	visits    ExternalStore
	sessions  *session.Service
	passwords *password.Hasher
	tokens    *token.Service
	now       func() time.Time
	rand      io.Reader
	reach     Reach
	contacts  Contacts
	devices   Devices
	messages  Messages
	printer   Printer
	vault     Sealer
	oath      Tokens
	providers []Provider
}

// Deps are what a Service works with.
type Deps struct {
	Store     Store
	Methods   MethodStore
	Codes     CodeStore
	Visits    ExternalStore
	Sessions  *session.Service
	Tokens    *token.Service
	Passwords *password.Hasher
	Providers []Provider // other identity providers
	Reach     Reach
	Contacts  Contacts
	Devices   Devices // nil: there are no mobile devices
	Messages  Messages
	Printer   Printer // nil: no print forms
	Vault     Sealer  // of tickets
	Oath      Tokens
	Now       func() time.Time
	Rand      io.Reader
}

// New checks the settings.
func New(s Settings, d Deps) (*Service, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	return &Service{
		settings: s, store: d.Store, methods: d.Methods, codes: d.Codes, visits: d.Visits, sessions: d.Sessions, passwords: d.Passwords, tokens: d.Tokens, now: d.Now, rand: d.Rand,
		reach: d.Reach, contacts: d.Contacts, devices: d.Devices, messages: d.Messages, printer: d.Printer,
		vault: d.Vault, oath: d.Oath, providers: d.Providers,
	}, nil
}

// SetPassword gives a user a password for an administrator, with the method to use
// it, and ends the tokens obtained with the old one. Faults: invalid_parameters, user_not_found.
func (s *Service) SetPassword(ctx context.Context, userID, text string) error {
	set, err := s.PreparePassword(ctx, text)
	if err != nil {
		return err
	}
	return set(ctx, userID)
}

// PreparePassword is SetPassword in two steps, for callers who set a password in a
// transaction: hashing takes long, and others would wait for it. The fault is
// invalid_parameters, and of set user_not_found.
func (s *Service) PreparePassword(ctx context.Context, text string) (set func(ctx context.Context, userID string) error, err error) {
	if n := utf8.RuneCountInString(text); n < password.MinLength || n > password.MaxLength || !utf8.ValidString(text) {
		return nil, fault.Newf(fault.InvalidParameters, "password: want %d to %d characters of UTF-8", password.MinLength, password.MaxLength)
	}
	encoded, err := s.passwords.Encode(ctx, text)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, userID string) error {
		return s.store.Atomic(ctx, func(ctx context.Context) error {
			err := s.store.SetPassword(ctx, userID, encoded, s.now())
			if errors.Is(err, session.ErrNotFound) {
				return fault.New(fault.UserNotFound, "user not found").With(err)
			}
			if err != nil {
				return err
			}
			if err := s.methods.SetMethod(ctx, userID, StoredMethod{methodPassword, LevelPrimary}, s.now()); err != nil {
				return err
			}
			return s.sessions.EndAll(ctx, userID)
		})
	}, nil
}

// Sweep deletes what has expired; the server calls it now and then. Nothing
// depends on it but the size of the database.
func (s *Service) Sweep(ctx context.Context) error {
	return s.store.SweepSignIns(ctx, s.now(), s.settings.Window)
}
