// Package auth owns how people and programs prove who they are: passwords with
// their lock-out, OAuth clients, the password grant, and access tokens with
// their records.
package auth

import (
	"cmp"
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
	"tamga/internal/domain/policy"
	"tamga/internal/domain/session"
	"tamga/internal/domain/user"
)

// Settings of the service.
type Settings struct {
	Issuer      string        // iss: the address of the identity provider
	LocalIssuer string        // dss_iss; the interface's usual value is "realsts"
	Resource    string        // aud: the resource that tokens are for
	Aliases     []string      // other names by which clients ask for Resource; letter case never counts
	TokenLife   time.Duration // of an access token, whole seconds; usually 300 s

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
	RefreshLife  time.Duration // of a sign-in with offline_access, however often its tokens are refreshed
	MethodURIs   Spelling      // in answers; "" is SpellingInterface
	// Remember is how long the record of an access token is kept after its end, for
	// what was begun with it and still waits; see MayContinue.
	Remember time.Duration
}

// DefaultSettings are the values of the interface and of our own choice where
// it has none; Issuer and Resource remain to be set.
func DefaultSettings() Settings {
	return Settings{
		LocalIssuer: "realsts",
		TokenLife:   300 * time.Second,
		Failures:    10,
		Window:      15 * time.Minute,
		LockOut:     15 * time.Minute,

		PasswordDisplay: []string{DisplayScreen, DisplayFrame, DisplayPhone, DisplayEmail, DisplayPrint},
		CodeLife:        time.Minute,
		RefreshLife:     30 * 24 * time.Hour,
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
	must(s.Issuer != "", "issuer: want the address of the identity provider")
	must(s.LocalIssuer != "", "local issuer: want a name")
	must(s.Resource != "", "resource: want the name that tokens are for")
	must(s.TokenLife >= time.Second && s.TokenLife%time.Second == 0, "token life: want whole seconds, at least one")
	must(s.Failures >= 1, "failures: want at least 1")
	must(s.Window >= time.Second, "window: want at least 1 s")
	must(s.LockOut >= time.Second, "lock-out: want at least 1 s")
	must(s.CodeLife >= time.Second && s.CodeLife <= 10*time.Minute, "code life: want 1 s to 10 min")
	must(s.RefreshLife >= s.TokenLife, "refresh life: want at least the token life")
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

// Proof is what a token rests on: it is recorded only if that is still so.
type Proof struct {
	Method     string // the user has it, and no second step
	Encoded    string // of the password method: the stored password
	Thumbprint []byte // of the certificate method: a certificate of the user
	// Granted: it rests on something that ends with what the user signed in with, in
	// one transaction with that: a code or a grant. Of the certificate method some
	// certificate of the user must not have expired.
	Granted bool
	// Delegated: an operator acts, whatever methods the user has. The reach of the
	// operator is judged in the transaction.
	Delegated bool
	// Parent is the access token that this one was derived from, "" for none. It must be
	// neither expired nor revoked.
	Parent string
	Now    time.Time
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

// TokenRecord is the server's side of an access token.
type TokenRecord struct {
	ID       string // jti
	UserID   string
	ClientID string
	Method   string
	Scope    string // granted
	ActorID  string // the operator who obtained it for the user; "" for the user in person
	// GrantID names the sign-in that the token belongs to by its first access token. "" is
	// the token itself, which then is the first one and has no refresh tokens. Tokens and
	// codes derived from a token have the same, so that a sign-in ends as a whole.
	GrantID    string
	SignedInAt time.Time // by the root of all tokens of the sign-in
	CreatedAt  time.Time
	ExpiresAt  time.Time
	Revoked    bool
}

// Bearer is a token record with its user as they are now.
type Bearer struct {
	Token  TokenRecord
	User   user.User
	Groups []string // of an operator
	Actor  string   // login of the operator who acts as the user; "" for the user in person
	// Severed: there is an actor who may not act on the user any more.
	Severed bool
}

// Store keeps passwords, attempts, methods, certificates, codes and token records.
type Store interface {
	Atomic(ctx context.Context, fn func(ctx context.Context) error) error

	SetPassword(ctx context.Context, userID, encoded string, at time.Time) error // or session.ErrNotFound
	HasPassword(ctx context.Context, userID string) (bool, error)
	// CredentialOf finds who is identified by a folded login or else by the normal
	// form of a primary phone or e-mail, "" for none. One query does the same work
	// whatever is found. session.ErrNotFound for nobody.
	CredentialOf(ctx context.Context, folded, phone, email string) (Credential, error)
	// SignInName is what a user signs in with: the login, otherwise a primary
	// contact, "" for nothing. session.ErrNotFound for no user.
	SignInName(ctx context.Context, userID string) (name string, u user.User, err error)

	// PrimaryContacts are the primary phone and e-mail of a user, "" for none.
	PrimaryContacts(ctx context.Context, userID string) (phone, email string, err error)

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

	// AddToken records a token, and that the user signed in, if the user is not
	// barred and the proof holds; false otherwise. One statement decides.
	AddToken(ctx context.Context, t TokenRecord, p Proof) (bool, error)
	BearerByToken(ctx context.Context, tokenID string, now time.Time) (Bearer, error) // or session.ErrNotFound

	SetMethod(ctx context.Context, userID string, m StoredMethod, at time.Time) error
	DeleteMethod(ctx context.Context, userID, name string) (bool, error) // whether there was one
	MethodsOf(ctx context.Context, userID string) ([]StoredMethod, error)

	AddCertificate(ctx context.Context, c SignInCertificate) (bool, error) // false when it is somebody's
	RemoveCertificate(ctx context.Context, userID string, thumbprint [sha256.Size]byte) (bool, error)
	CertificatesOf(ctx context.Context, userID string) ([]SignInCertificate, error)
	// BearerByCertificate finds the user of a certificate; Token is empty. session.ErrNotFound.
	BearerByCertificate(ctx context.Context, thumbprint [sha256.Size]byte) (Bearer, Scheme, error)

	AddCode(ctx context.Context, c Code) error
	// SpendCode marks a code as exchanged for a token if it lives and is of this
	// client and address. One statement decides; true is told once.
	SpendCode(ctx context.Context, hash [sha256.Size]byte, clientID, redirectURI, tokenID string, now time.Time) (Code, bool, error)
	// EndReplayed ends the sign-in that a spent code of the client belongs to: its tokens,
	// its grant, and its codes. It reports whether anything of it was still valid.
	EndReplayed(ctx context.Context, hash [sha256.Size]byte, clientID string) (bool, error)

	GrantStore
	ExternalStore

	// Sweep deletes access tokens that expired before tokens, codes, grants and visits
	// that expired, and counts that ended before now.
	Sweep(ctx context.Context, now, tokens time.Time, window time.Duration) error
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

// Policies judge the actions of users; [policy.Service] satisfies it. The room asks about
// policy.Issue alone.
type Policies interface {
	// Permit returns nil or the fault access_denied.
	Permit(ctx context.Context, userID string, a policy.Action) error
	NeedsConfirmation(ctx context.Context, userID string, a policy.Action) (bool, error)
}

// Service proves identities.
type Service struct {
	settings  Settings
	store     Store
	sessions  *session.Service
	passwords *password.Hasher
	tokens    *tokens
	resources map[string]bool // lower case
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
	policies  Policies
}

// Deps are what a Service works with.
type Deps struct {
	Store     Store
	Sessions  *session.Service
	Passwords *password.Hasher
	Keys      []TokenKey // the newest first
	// LoadKeys reads Keys as they are now; nil: they never change.
	LoadKeys  func(ctx context.Context) ([]TokenKey, error)
	Providers []Provider // other identity providers
	Reach     Reach
	Contacts  Contacts
	Devices   Devices  // nil: there are no mobile devices
	Policies  Policies // nil: every user may be issued tokens
	Messages  Messages
	Printer   Printer // nil: no print forms
	Vault     Sealer  // of tickets
	Oath      Tokens
	Now       func() time.Time
	Rand      io.Reader
}

// New checks the settings and keys.
func New(s Settings, d Deps) (*Service, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	t, err := newTokens(d.Keys, d.LoadKeys, d.Now)
	if err != nil {
		return nil, err
	}
	resources := map[string]bool{strings.ToLower(s.Resource): true}
	for _, a := range s.Aliases {
		resources[strings.ToLower(a)] = true
	}
	return &Service{
		settings: s, store: d.Store, sessions: d.Sessions, passwords: d.Passwords, tokens: t, resources: resources, now: d.Now, rand: d.Rand,
		reach: d.Reach, contacts: d.Contacts, devices: d.Devices, messages: d.Messages, printer: d.Printer,
		vault: d.Vault, oath: d.Oath, providers: d.Providers, policies: d.Policies,
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
			if err := s.store.SetMethod(ctx, userID, StoredMethod{methodPassword, LevelPrimary}, s.now()); err != nil {
				return err
			}
			return s.sessions.EndAll(ctx, userID)
		})
	}, nil
}

// Token is what the token endpoint answers.
type Token struct {
	AccessToken  string
	ExpiresIn    time.Duration
	RefreshToken string // "" unless the scope offline_access was granted
	IDToken      string // "" unless the scope openid was granted to a code
	Scope        string // what was granted, which RFC 6749, 5.1 wants told when it is less than asked
	UserID       string // for the journal
}

// Authenticate turns a bearer token into the one who acts. The signature, the
// claims and the record are judged, and the user as they are at this moment.
// Every refusal is the fault invalid_token with the same text.
func (s *Service) Authenticate(ctx context.Context, bearer string) (audit.Principal, error) {
	return s.AuthenticateBy(ctx, bearer, s.store.BearerByToken)
}

// ReadBearer reads the record of a token; see [Store].
type ReadBearer func(ctx context.Context, tokenID string, now time.Time) (Bearer, error)

// AuthenticateBy is Authenticate for a caller that reads more than the record in the same
// statement.
func (s *Service) AuthenticateBy(ctx context.Context, bearer string, read ReadBearer) (audit.Principal, error) {
	b, c, err := s.bearer(ctx, bearer, read, s.settings.Resource)
	if err != nil {
		return audit.Principal{}, err
	}
	return principal(b, c.Login), nil
}

// bearer finds the record of an access token for one of the audiences with read. Refusals are
// those of Authenticate.
func (s *Service) bearer(ctx context.Context, bearer string, read ReadBearer, audiences ...string) (Bearer, claims, error) {
	refused := fault.New(fault.Unauthorized, "the access token is missing, expired or not valid; obtain a new one")
	now := s.now()
	c, err := s.tokens.read(ctx, bearer, s.settings.Issuer, audiences, now)
	if err != nil {
		return Bearer{}, c, refused.With(err)
	}
	b, err := read(ctx, c.ID, now)
	var why error
	switch {
	case errors.Is(err, session.ErrNotFound):
		why = err
	case err != nil:
		return Bearer{}, c, err
	case b.Token.UserID != c.UserID:
		why = errors.New("auth: token: its record is of another user")
	case b.Token.Revoked:
		why = errors.New("auth: token: revoked")
	case !now.Before(b.Token.ExpiresAt):
		why = errors.New("auth: token: its record has expired")
	case b.User.Barred(now):
		why = errors.New("auth: token: its user is locked")
	case b.Severed:
		why = errors.New("auth: token: the operator who obtained it may not act on its user any more")
	}
	if why != nil {
		return Bearer{}, c, refused.With(why)
	}
	return b, c, nil
}

// principal is the one whom a record stands for; name is for users without a login.
// Whoever acts as another has what that user has, but never their rights as an operator.
func principal(b Bearer, name string) audit.Principal {
	if b.Token.ActorID != "" {
		b.User.Operator, b.Groups = false, nil
	}
	return audit.Principal{
		Actor:  b.Actor,
		UserID: b.User.ID, Login: cmp.Or(b.User.Login, name), Group: b.User.Group,
		Operator: b.User.Operator, Groups: b.Groups,
		TokenID: b.Token.ID, ClientID: b.Token.ClientID, Method: b.Token.Method,
	}
}

// MayContinue says whether what somebody began with an access token may be carried out
// now, when the token itself may have expired: whoever is not barred, whose sign-in was
// not ended since, and who may still act for the user where they do. The fault is
// access_denied. It answers for as long as a token is remembered; see Settings.Remember.
func (s *Service) MayContinue(ctx context.Context, who audit.Principal) error {
	if who.TokenID == "" {
		return nil
	}
	now := s.now()
	b, err := s.store.BearerByToken(ctx, who.TokenID, now)
	switch {
	case errors.Is(err, session.ErrNotFound):
		return nil
	case err != nil:
		return err
	case b.User.Barred(now):
		return fault.New(fault.AccessDenied, "the user was locked meanwhile")
	case b.Token.Revoked:
		return fault.New(fault.AccessDenied, "the sign-in it was asked for with was ended meanwhile")
	case b.Severed:
		return fault.New(fault.AccessDenied, "the operator who asked for it may not act for the user any more")
	}
	return nil
}

// Sweep deletes what has expired; the server calls it now and then. Nothing
// depends on it but the size of the database.
func (s *Service) Sweep(ctx context.Context) error {
	now := s.now()
	return s.store.Sweep(ctx, now, now.Add(-s.settings.Remember), s.settings.Window)
}
