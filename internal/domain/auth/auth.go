// Package auth owns how people and programs prove who they are: passwords with
// their lock-out, OAuth clients, the password grant, and access tokens with
// their records.
package auth

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/go-jose/go-jose/v4/jwt"
	"github.com/google/uuid"

	"tamga/internal/domain/audit"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/user"
)

// Limits of passwords. Below the first a password can be guessed within the
// lock-out's budget by luck; above the second it only costs time.
const (
	MinPassword = 8   // characters
	MaxPassword = 256 // characters
)

// methodPassword is Principal.Method of a token from the password grant.
const methodPassword = "password"

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
	return errors.Join(faults...)
}

// LoginKey names a login in the count of wrong passwords: a hash of the folded
// login. Unknown logins are counted like known ones, so the hash keeps what
// people type into the wrong field out of the database.
type LoginKey [sha256.Size]byte

// LockOut is the rule that a Store applies to one login.
type LockOut struct {
	Failures        int
	Window, LockOut time.Duration
}

// Credential is a stored password and its owner.
type Credential struct {
	User    user.User
	Encoded string // see Passwords.Encode
}

// TokenRecord is the server's side of an access token.
type TokenRecord struct {
	ID        string // jti
	UserID    string
	ClientID  string
	Method    string
	CreatedAt time.Time
	ExpiresAt time.Time
	Revoked   bool
}

// Bearer is a token record with its user as they are now.
type Bearer struct {
	Token  TokenRecord
	User   user.User
	Groups []string // of an operator
}

// ErrNotFound is what a Store answers for a record that is not there.
var ErrNotFound = errors.New("auth: not found")

// Store keeps passwords, attempts and token records.
type Store interface {
	Atomic(ctx context.Context, fn func(ctx context.Context) error) error

	SetPassword(ctx context.Context, userID, encoded string, at time.Time) error // or ErrNotFound
	CredentialByLogin(ctx context.Context, folded string) (Credential, error)    // or ErrNotFound

	// BeginAttempt counts an attempt as failed before it is judged. It is
	// durable when it returns; false means that the login is locked out, and
	// then nothing was counted. The attempt that reaches the limit begins the
	// lock-out. One statement decides, so attempts made at once share a budget.
	BeginAttempt(ctx context.Context, login LoginKey, now time.Time, rule LockOut) (bool, error)
	// EndAttempt forgets the count of a login after a correct password.
	EndAttempt(ctx context.Context, login LoginKey) error

	// AddToken records a token if the user is not locked and their stored
	// password is still encoded; false otherwise.
	AddToken(ctx context.Context, t TokenRecord, encoded string) (bool, error)
	BearerByToken(ctx context.Context, tokenID string) (Bearer, error) // or ErrNotFound
	RevokeTokens(ctx context.Context, userID string) error

	// Sweep deletes tokens that expired and counts that ended before now.
	Sweep(ctx context.Context, now time.Time, window time.Duration) error
}

// Service proves identities.
type Service struct {
	settings  Settings
	store     Store
	passwords *Passwords
	tokens    *tokens
	resources map[string]bool // lower case
	now       func() time.Time
	rand      io.Reader
}

// Deps are what a Service works with.
type Deps struct {
	Store     Store
	Passwords *Passwords
	Keys      []TokenKey // the first one signs, all are accepted
	Now       func() time.Time
	Rand      io.Reader
}

// New checks the settings and keys.
func New(s Settings, d Deps) (*Service, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	t, err := newTokens(d.Keys)
	if err != nil {
		return nil, err
	}
	resources := map[string]bool{strings.ToLower(s.Resource): true}
	for _, a := range s.Aliases {
		resources[strings.ToLower(a)] = true
	}
	return &Service{settings: s, store: d.Store, passwords: d.Passwords, tokens: t, resources: resources, now: d.Now, rand: d.Rand}, nil
}

// SetPassword gives a user a password and ends the tokens obtained with the old
// one. Faults: invalid_parameters, user_not_found.
func (s *Service) SetPassword(ctx context.Context, userID, password string) error {
	if n := utf8.RuneCountInString(password); n < MinPassword || n > MaxPassword || !utf8.ValidString(password) {
		return fault.Newf(fault.InvalidParameters, "password: want %d to %d characters of UTF-8", MinPassword, MaxPassword)
	}
	encoded, err := s.passwords.Encode(ctx, password)
	if err != nil {
		return err
	}
	return s.store.Atomic(ctx, func(ctx context.Context) error {
		err := s.store.SetPassword(ctx, userID, encoded, s.now())
		if errors.Is(err, ErrNotFound) {
			return fault.New(fault.UserNotFound, "user not found").With(err)
		}
		if err != nil {
			return err
		}
		return s.store.RevokeTokens(ctx, userID)
	})
}

// Token is what the token endpoint answers.
type Token struct {
	AccessToken  string
	ExpiresIn    time.Duration
	RefreshToken string // empty: this release issues none
	Scope        string // what was granted, which RFC 6749, 5.1 wants told when it is less than asked
	UserID       string // for the journal
}

// scopes that a client may ask for, and whether they are granted. The scope
// offline_access asks for a refresh token; asking is no error (RFC 6749, 3.3),
// but this release grants none.
var scopes = map[string]bool{"dss": true, "offline_access": false}

// PasswordGrant exchanges a login and password for a token (RFC 6749, 4.3).
// Refusals are *GrantError:
//
//   - unauthorized_client: the client may not use this grant
//   - invalid_request: no resource or an unknown one, no login
//   - invalid_scope: a scope nobody knows
//   - invalid_grant: an unknown login, a wrong password, a locked user, a
//     locked-out login. The answer is one and the same, and so is the work done
//     for it: neither text nor time tells which it was.
//
// An attempt is counted durably before the password is derived and forgotten
// when it is correct. While a login is locked out a correct password is refused
// like a wrong one and nothing is counted.
func (s *Service) PasswordGrant(ctx context.Context, client Client, login, password, resource, scope string) (Token, error) {
	if !client.PasswordGrant {
		return Token{}, &GrantError{UnauthorizedClient, "the client may not use the password grant"}
	}
	if resource == "" {
		return Token{}, &GrantError{InvalidRequest, "resource: missing, want the name of the resource the token is for"}
	}
	if !s.resources[strings.ToLower(resource)] {
		return Token{}, &GrantError{InvalidRequest, "resource: unknown"}
	}
	granted, err := grantScope(scope)
	if err != nil {
		return Token{}, err
	}
	if login == "" {
		return Token{}, &GrantError{InvalidRequest, "username: missing"}
	}
	c, ok, err := s.checkPassword(ctx, login, password)
	if err != nil {
		return Token{}, err
	}
	refused := &GrantError{InvalidGrant, "the user name or password is not correct"}
	if !ok {
		return Token{}, refused
	}
	id, err := uuid.NewRandomFromReader(s.rand)
	if err != nil {
		return Token{}, fmt.Errorf("auth: making an identifier: %w", err)
	}
	now := s.now()
	// Whole seconds, as the token can say; the record expires with the token.
	expires := time.Unix(now.Unix(), 0).Add(s.settings.TokenLife)
	access, err := s.tokens.sign(claims{
		Issuer:      s.settings.Issuer,
		Audience:    jwt.Audience{s.settings.Resource},
		IssuedAt:    jwt.NewNumericDate(now),
		Expiry:      jwt.NewNumericDate(expires),
		ID:          id.String(),
		Login:       c.User.Login,
		UserID:      c.User.ID,
		LocalIssuer: s.settings.LocalIssuer,
	})
	if err != nil {
		return Token{}, err
	}
	// The user may have been locked or given another password while we derived.
	ok, err = s.store.AddToken(ctx, TokenRecord{
		ID: id.String(), UserID: c.User.ID, ClientID: client.ID, Method: methodPassword,
		CreatedAt: now, ExpiresAt: expires,
	}, c.Encoded)
	if err != nil {
		return Token{}, err
	}
	if !ok {
		return Token{}, refused
	}
	return Token{AccessToken: access, ExpiresIn: s.settings.TokenLife, Scope: granted, UserID: c.User.ID}, nil
}

func grantScope(asked string) (string, error) {
	var granted []string
	for _, name := range strings.Fields(asked) {
		grant, known := scopes[name]
		if !known {
			return "", &GrantError{InvalidScope, "scope: unknown, want dss and offline_access at most"}
		}
		if grant {
			granted = append(granted, name)
		}
	}
	return strings.Join(granted, " "), nil
}

// checkPassword judges one attempt. It does the same whether or not the user
// exists: one look-up, one counted attempt, one derivation. That holds as long
// as stored passwords have the configured cost.
func (s *Service) checkPassword(ctx context.Context, login, password string) (Credential, bool, error) {
	if utf8.RuneCountInString(password) > MaxPassword {
		return Credential{}, false, nil // nobody's: SetPassword takes none that long
	}
	folded := user.FoldLogin(login)
	c, err := s.store.CredentialByLogin(ctx, folded)
	known := err == nil
	if err != nil && !errors.Is(err, ErrNotFound) {
		return Credential{}, false, err
	}
	stored := s.passwords.dummy
	if known {
		if stored, err = parseEncoded(c.Encoded, s.passwords.budgetKiB); err != nil {
			return Credential{}, false, fmt.Errorf("user %s: %w", c.User.ID, err)
		}
	}
	// First the memory, then the count: a client that gives up in the queue
	// has not tried a password.
	release, err := s.passwords.admit(ctx, stored)
	if err != nil {
		return Credential{}, false, err
	}
	defer release()
	key := LoginKey(sha256.Sum256([]byte(folded)))
	rule := LockOut{s.settings.Failures, s.settings.Window, s.settings.LockOut}
	counted, err := s.store.BeginAttempt(ctx, key, s.now(), rule)
	if err != nil {
		return Credential{}, false, err
	}
	matches := stored.matches(password)
	if !known || !counted || !matches || c.User.Locked {
		return Credential{}, false, nil
	}
	if err := s.store.EndAttempt(ctx, key); err != nil {
		return Credential{}, false, err
	}
	return c, true, nil
}

// Authenticate turns a bearer token into the one who acts. The signature, the
// claims and the record are judged, and the user as they are at this moment.
// Every refusal is the fault invalid_token with the same text.
func (s *Service) Authenticate(ctx context.Context, bearer string) (audit.Principal, error) {
	refused := fault.New(fault.Unauthorized, "the access token is missing, expired or not valid; obtain a new one")
	now := s.now()
	c, err := s.tokens.read(bearer, s.settings.Issuer, s.settings.Resource, now)
	if err != nil {
		return audit.Principal{}, refused.With(err)
	}
	b, err := s.store.BearerByToken(ctx, c.ID)
	switch {
	case errors.Is(err, ErrNotFound):
		return audit.Principal{}, refused.With(err)
	case err != nil:
		return audit.Principal{}, err
	case b.Token.UserID != c.UserID:
		return audit.Principal{}, refused.With(errors.New("auth: token: its record is of another user"))
	case b.Token.Revoked:
		return audit.Principal{}, refused.With(errors.New("auth: token: revoked"))
	case !now.Before(b.Token.ExpiresAt):
		return audit.Principal{}, refused.With(errors.New("auth: token: its record has expired"))
	case b.User.Locked:
		return audit.Principal{}, refused.With(errors.New("auth: token: its user is locked"))
	}
	return audit.Principal{
		UserID: b.User.ID, Login: b.User.Login, Group: b.User.Group,
		Operator: b.User.Operator, Groups: b.Groups,
		TokenID: b.Token.ID, ClientID: b.Token.ClientID, Method: b.Token.Method,
	}, nil
}

// EndAll revokes every token of a user. It joins the transaction of ctx.
func (s *Service) EndAll(ctx context.Context, userID string) error {
	return s.store.RevokeTokens(ctx, userID)
}

// Sweep deletes what has expired; the server calls it now and then. Nothing
// depends on it but the size of the database.
func (s *Service) Sweep(ctx context.Context) error {
	return s.store.Sweep(ctx, s.now(), s.settings.Window)
}
