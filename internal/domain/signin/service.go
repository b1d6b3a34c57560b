// SPDX-License-Identifier: Apache-2.0

// Package signin signs users in: by password, by certificate, at other identity providers,
// and by exchange of an operator's token.
//
// Begin with [New], [Service.PasswordGrant] and [Service.AuthorizePassword]. The table in
// methods.go has the methods that users may have. Clients of OAuth are in client.go.
//
// The package asks the package token for every token, the package password for hashes and
// the package oath for tokens that make one-time passwords. Sessions end in the package
// session.
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
	"tamga/internal/domain/lock"
	"tamga/internal/domain/notify"
	"tamga/internal/domain/oath"
	"tamga/internal/domain/password"
	"tamga/internal/domain/reach"
	"tamga/internal/domain/session"
	"tamga/internal/domain/token"
	"tamga/internal/domain/user"
)

// Settings configures the service.
type Settings struct {
	// Lock-out: after Failures wrong passwords within Window, a login is refused for
	// LockOut, even with the correct password.
	Failures int
	Window   time.Duration
	LockOut  time.Duration

	// PasswordDisplay lists the allowed ways of delivering a new password: values of the
	// Display constants, without regard to letter case.
	PasswordDisplay []string
	// IDOnlyPublic lets users with the method "none" sign in by their name alone through a
	// public client. Then knowing the name is enough, unless the user has a second step.
	IDOnlyPublic bool
	// DefaultClient is the client of users who name none, see Clients.Default. Programs that know
	// no client use its tokens to authorize another client for the user. "": there is none.
	DefaultClient string
	CodeLife      time.Duration // of an authorization code
	MethodURIs    Spelling      // of answers; "" is SpellingInterface
	// FirstFactor lets a person who has no second factor add the first one by the sign-in
	// alone; see MayChangeFactors.
	FirstFactor bool
}

// DefaultSettings returns the default settings. They are our own choice.
func DefaultSettings() Settings {
	return Settings{
		Failures: 10,
		Window:   15 * time.Minute,
		LockOut:  15 * time.Minute,

		PasswordDisplay: []string{DisplayScreen, DisplayFrame, DisplayPhone, DisplayEmail, DisplayPrint},
		CodeLife:        time.Minute,
	}
}

// check reports all wrong settings at once.
func (s Settings) check() error {
	var faults []error
	must := func(ok bool, text string) {
		if !ok {
			faults = append(faults, errors.New("signin: settings: "+text))
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

// LoginKey identifies a login in the count of wrong passwords: a hash of the folded login.
// Unknown logins are counted like known ones. The hash keeps text that people type into the
// wrong field out of the database.
type LoginKey [sha256.Size]byte

// KeyOf returns the key of a login as it was typed.
func KeyOf(login string) LoginKey { return sha256.Sum256([]byte(user.FoldLogin(login))) }

// LockOut is the rule that a Store applies to the attempts of one kind of callers at one login.
type LockOut struct {
	Failures        int
	Window, LockOut time.Duration
	Trusted         bool // the budget of trusted callers, otherwise of untrusted ones
}

// Scheme summarizes the methods of a user.
type Scheme struct {
	IDOnly, Password, Certificate, External bool // the first steps that the user has
	SecondStep                              bool // the user must pass a second step
}

// Credential is a user who may sign in, with what the sign-in is checked against.
type Credential struct {
	User        user.User
	Encoded     string // see password.Hasher.Encode; "" without a password
	Directory   string // that has the password of the user instead; "" for none
	DN          string // of the user there
	Entry       string // identifier of the entry there
	Scheme      Scheme
	LockedUntil time.Time // end of the automatic lock of untrusted callers; zero or past for none
	// TrustedLockedUntil is the end of the automatic lock of trusted callers.
	TrustedLockedUntil time.Time
}

// locked reports whether the automatic lock keeps a caller out. Wrong passwords of untrusted callers
// lock out untrusted callers only, so they do not keep a user from the sign-in.
func (c *Credential) locked(trusted bool, now time.Time) bool {
	if trusted {
		return now.Before(c.TrustedLockedUntil)
	}
	return now.Before(c.LockedUntil)
}

// Code is a stored authorization code.
type Code struct {
	Hash        [sha256.Size]byte
	UserID      string
	ClientID    string
	RedirectURI string
	Scope       string // granted
	Method      string
	Thumbprint  []byte // of the certificate method
	Granted     bool   // see token.Proof
	SecondStep  bool   // see token.Proof
	LoginOnly   bool   // no resource was asked for
	Nonce       string // for the ID token
	Challenge   string // of RFC 7636, S256; "" for none
	SignedInAt  time.Time
	ExpiresAt   time.Time

	// For a code that a valid access token was exchanged for. Empty for a fresh sign-in.
	GrantID  string    // see token.Record
	ParentID string    // that access token
	EndsAt   time.Time // the latest end of its tokens
}

// StoredMethod is a method of a user.
type StoredMethod struct {
	Name  string
	Level int
}

// Store keeps passwords and failed attempts, and finds the user of a name.
type Store interface {
	// Atomic locks the set, then runs fn in one transaction. A nested Atomic joins the
	// transaction and may name only what is locked already.
	Atomic(ctx context.Context, locked lock.Set, fn func(ctx context.Context) error) error

	SetPassword(ctx context.Context, userID, encoded string) error // session.ErrNotFound for an unknown user
	HasPassword(ctx context.Context, userID string) (bool, error)
	// CredentialOf finds the user with a folded login, otherwise with a primary phone or
	// e-mail in normal form, "" for none. One query does the same work for known and
	// unknown names. The error for an unknown name is session.ErrNotFound.
	CredentialOf(ctx context.Context, folded, phone, email string) (Credential, error)
	// CredentialOfExternal finds the user with a login at an issuer, both folded. The error
	// for an unknown login is session.ErrNotFound.
	CredentialOfExternal(ctx context.Context, issuer, login string) (Credential, error)
	// SignInName returns what a user signs in with: the login, otherwise a primary contact,
	// otherwise "". The error for an unknown user is session.ErrNotFound.
	SignInName(ctx context.Context, userID string) (name string, u user.User, err error)

	// BeginAttempt counts an attempt as failed before it is checked. The count is durable
	// when BeginAttempt returns. The result is false if the login is locked out. Then
	// nothing was counted. The attempt that reaches the limit begins the lock-out. One
	// statement decides, so simultaneous attempts share a budget. Attempts of a known user
	// are counted under the user and not under the typed text, so all names and all ways of
	// signing in with a secret share the budget. Trusted and untrusted callers have a
	// budget each: [LockOut.Trusted] says which.
	BeginAttempt(ctx context.Context, login LoginKey, now time.Time, rule LockOut) (bool, error)
	BeginUserAttempt(ctx context.Context, userID string, now time.Time, rule LockOut) (bool, error)
	// EndAttempt deletes one count of a user, that of trusted or of untrusted callers,
	// after a correct password of such a caller.
	EndAttempt(ctx context.Context, userID string, trusted bool) error
	// EndUserAttempt deletes both counts of a user, when the user is unlocked or has another password.
	EndUserAttempt(ctx context.Context, userID string) error

	// SweepSignIns deletes codes and visits that expired, and counts that ended before now.
	SweepSignIns(ctx context.Context, now time.Time, window time.Duration) error
}

// MethodStore keeps methods and the certificates that users sign in with.
type MethodStore interface {
	SetMethod(ctx context.Context, userID string, m StoredMethod) error
	AddMethod(ctx context.Context, userID string, m StoredMethod) error  // for a user without it
	DeleteMethod(ctx context.Context, userID, name string) (bool, error) // reports whether the user had it
	MethodsOf(ctx context.Context, userID string) ([]StoredMethod, error)

	AddCertificate(ctx context.Context, c SignInCertificate) (bool, error) // false if a user has it already
	RemoveCertificate(ctx context.Context, userID string, thumbprint [sha256.Size]byte) (bool, error)
	CertificatesOf(ctx context.Context, userID string) ([]SignInCertificate, error)
	// BearerByCertificate finds the user of a certificate. Token of the result is empty.
	// The error for an unknown certificate is session.ErrNotFound.
	BearerByCertificate(ctx context.Context, thumbprint [sha256.Size]byte) (token.Bearer, Scheme, error)
}

// CodeStore keeps authorization codes.
type CodeStore interface {
	AddCode(ctx context.Context, c Code) error
	// SpendCode marks a valid code of this client and address as exchanged for a token. One
	// statement decides, so only one caller gets true.
	SpendCode(ctx context.Context, hash [sha256.Size]byte, clientID, redirectURI, tokenID string, now time.Time) (Code, bool, error)
	// CodeUser returns the user whom a code was made for, "" for an unknown code.
	CodeUser(ctx context.Context, hash [sha256.Size]byte) (userID string, err error)
	// EndReplayed ends the sign-in that a spent code of the client belongs to: its tokens,
	// its grant and its codes. It reports whether any of them was still valid.
	EndReplayed(ctx context.Context, hash [sha256.Size]byte, clientID string) (bool, error)
}

// Devices knows the mobile devices of users; [device.Service] satisfies it.
type Devices interface {
	// HasActive reports whether the user has an active device.
	HasActive(ctx context.Context, userID string) (bool, error)
	// Has reports whether the user has a device that was verified, also a blocked or expired one.
	Has(ctx context.Context, userID string) (bool, error)
}

// Passkeys knows the passkeys of users; [passkey.Service] satisfies it.
type Passkeys interface {
	Has(ctx context.Context, userID string) (bool, error)
}

// Tokens knows the tokens that make one-time passwords; [oath.Service] satisfies it.
type Tokens interface {
	TokenOf(ctx context.Context, userID string) (t oath.Token, found bool, err error)
}

// Service signs users in. Its methods are safe for concurrent use.
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
	reach     reach.Checker
	changes   reach.Changes
	contacts  Contacts
	devices   Devices
	passkeys  Passkeys
	messages  Messages
	printer   Printer
	vault     Sealer
	oath      Tokens
	providers []Provider
	// directories have passwords of users
	directories []Directory
	asked       chan struct{} // has an element for each attempt that waits for directories
	steps       Confirmations
	cancels     Canceller
}

// Canceller cancels what a user has begun to confirm. [confirm.Canceller] satisfies it.
type Canceller interface {
	// CancelAll cancels the open confirmations of a user, in the transaction of ctx. reason
	// is a short sentence for clients.
	CancelAll(ctx context.Context, who audit.Principal, userID, reason string) error
}

// Deps lists what a Service needs.
type Deps struct {
	Store     Store
	Methods   MethodStore
	Codes     CodeStore
	Visits    ExternalStore
	Sessions  *session.Service
	Cancels   Canceller
	Tokens    *token.Service
	Passwords *password.Hasher
	Providers []Provider // other identity providers
	// Directories have the passwords of users who follow their entries.
	Directories []Directory
	Reach       reach.Checker
	Contacts    Contacts
	Devices     Devices  // nil: no mobile devices
	Passkeys    Passkeys // nil: no passkeys
	Messages    Messages
	Printer     Printer // nil: no print forms
	Vault       Sealer  // of tickets
	Oath        Tokens
	Steps       Confirmations // nil: users with a second step cannot sign in
	Now         func() time.Time
	Rand        io.Reader
}

// New checks the settings.
func New(s Settings, d Deps) (*Service, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	return &Service{
		settings: s, store: d.Store, methods: d.Methods, codes: d.Codes, visits: d.Visits, sessions: d.Sessions, cancels: d.Cancels, passwords: d.Passwords, tokens: d.Tokens, now: d.Now, rand: d.Rand,
		reach: d.Reach, changes: reach.Changes{Store: d.Store, Reach: d.Reach, Events: d.Messages}, contacts: d.Contacts, devices: d.Devices, passkeys: d.Passkeys, messages: d.Messages, printer: d.Printer,
		vault: d.Vault, oath: d.Oath, providers: d.Providers, directories: d.Directories, asked: make(chan struct{}, mostAsked), steps: d.Steps,
	}, nil
}

// SetPassword gives a user a password and the method password, for an administrator. It
// ends the tokens obtained with the old password. Faults: invalid_parameters,
// user_not_found.
func (s *Service) SetPassword(ctx context.Context, userID, text string) error {
	set, err := s.PreparePassword(ctx, text)
	if err != nil {
		return err
	}
	return set(ctx, userID)
}

// PreparePassword is SetPassword in two steps, for callers that set a password in a
// transaction. Hashing takes long and would block other transactions. The fault is
// invalid_parameters. The fault of set is user_not_found.
func (s *Service) PreparePassword(ctx context.Context, text string) (set func(ctx context.Context, userID string) error, err error) {
	encoded, err := s.encode(ctx, text)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, userID string) error {
		return s.store.Atomic(ctx, lock.User(userID), func(ctx context.Context) error {
			had, err := s.store.HasPassword(ctx, userID)
			if err == nil {
				err = s.store.SetPassword(ctx, userID, encoded)
			}
			if errors.Is(err, session.ErrNotFound) {
				return fault.New(fault.UserNotFound, "user not found").With(err)
			}
			if err != nil {
				return err
			}
			if err := s.methods.SetMethod(ctx, userID, StoredMethod{methodPassword, LevelPrimary}); err != nil {
				return err
			}
			if err := s.end(ctx, audit.Principal{}, userID, "the password was changed"); err != nil || !had {
				return err
			}
			return s.tellFactor(ctx, audit.Principal{}, userID, notify.FactorPassword)
		})
	}, nil
}

// encode returns the stored form of a new password. The fault is invalid_parameters.
func (s *Service) encode(ctx context.Context, text string) (string, error) {
	if n := utf8.RuneCountInString(text); n < password.MinLength || n > password.MaxLength || !utf8.ValidString(text) {
		return "", fault.Newf(fault.InvalidParameters, "password: want %d to %d characters of UTF-8", password.MinLength, password.MaxLength)
	}
	return s.passwords.Encode(ctx, text)
}

// ChangePassword replaces the password of the caller, who proves the present one. Attempts
// are counted as at a sign-in by a trusted caller. All tokens and codes of the user end, this one included, and
// the contacts of the user are told. Faults: invalid_parameters for the new password;
// authentication_failed for the present one, also while too many attempts close it;
// access_denied for an operator who acts as the user.
func (s *Service) ChangePassword(ctx context.Context, who audit.Principal, present, text string) error {
	if who.Actor != "" {
		return fault.New(fault.AccessDenied, "only the user changes the own password")
	}
	// A signed-in caller is trusted: guesses of untrusted callers do not keep the user from another password.
	tried := password.WithVisitor(ctx, password.Visitor{Key: "user " + who.UserID, Trust: password.Known})
	c, ok, err := s.checkPassword(tried, who.Login, present)
	if err == nil && (!ok || c.User.ID != who.UserID) {
		err = fault.New(fault.AuthenticationFailed, "the present password is wrong, or too many wrong ones were tried: wait and try again")
	}
	if err != nil {
		return err
	}
	encoded, err := s.encode(ctx, text)
	if err != nil {
		return err
	}
	return s.store.Atomic(ctx, lock.User(who.UserID), func(ctx context.Context) error {
		if _, err := s.unchanged(ctx, who.Login, c); err != nil {
			return fault.Rollback(err)
		}
		if err := s.store.SetPassword(ctx, who.UserID, encoded); err != nil {
			return fault.Rollback(err)
		}
		if err := s.end(ctx, who, who.UserID, "the password was changed"); err != nil {
			return fault.Rollback(err)
		}
		err := s.messages.Emit(ctx, notify.Event{Type: notify.UserPasswordChanged, UserID: who.UserID, Actor: who.UserID})
		if err == nil {
			err = s.tellFactor(ctx, who, who.UserID, notify.FactorPassword)
		}
		return fault.Rollback(err)
	})
}

// end ends all tokens of a user and cancels all open confirmations, in the transaction of
// ctx.
func (s *Service) end(ctx context.Context, who audit.Principal, userID, reason string) error {
	if err := s.sessions.EndAll(ctx, userID); err != nil {
		return err
	}
	return s.cancels.CancelAll(ctx, who, userID, reason)
}

// Sweep deletes expired codes, visits and counts. The server calls it regularly. It only
// bounds the size of the database.
func (s *Service) Sweep(ctx context.Context) error {
	return s.store.SweepSignIns(ctx, s.now(), s.settings.Window)
}
