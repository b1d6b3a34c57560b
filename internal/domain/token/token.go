// SPDX-License-Identifier: Apache-2.0

// Package token makes and checks access tokens, refresh tokens and ID tokens.
//
// Begin with [New], [Service.Issue] and [Service.Authenticate]. Issue records a token if
// its [Proof] still holds. Authenticate returns the principal of a bearer token. The keys
// that sign tokens are in keyset.go, their rotation is in signingkey.go, and refresh tokens
// are in grant.go.
//
// The package does not decide who may sign in: see the package signin. It does not end the
// tokens of a user: see the package session.
package token

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"strings"
	"tamga/internal/domain/audit"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/lock"
	"tamga/internal/domain/policy"
	"tamga/internal/domain/session"
	"tamga/internal/domain/user"
	"time"
)

// Settings configures the service.
type Settings struct {
	Issuer      string        // iss: the address of the identity provider
	LocalIssuer string        // dss_iss; the interface's usual value is "realsts"
	Resource    string        // aud: the resource that tokens are for
	Aliases     []string      // other names of Resource that clients use, without regard to letter case
	TokenLife   time.Duration // of an access token, whole seconds; usually 300 s
	RefreshLife time.Duration // of a sign-in with offline_access; refreshing does not extend it
	// Remember is how long the record of an access token is kept after the token expired.
	// Work that began with the token may still wait; see MayContinue.
	Remember time.Duration
}

// DefaultSettings returns the values of the interface. The caller must set Issuer and
// Resource.
func DefaultSettings() Settings {
	return Settings{LocalIssuer: "realsts", TokenLife: 300 * time.Second, RefreshLife: 30 * 24 * time.Hour}
}

// check reports all wrong settings at once.
func (s Settings) check() error {
	var faults []error
	must := func(ok bool, text string) {
		if !ok {
			faults = append(faults, errors.New("token: settings: "+text))
		}
	}
	must(s.Issuer != "", "issuer: want the address of the identity provider")
	must(s.LocalIssuer != "", "local issuer: want a name")
	must(s.Resource != "", "resource: want the name that tokens are for")
	must(s.TokenLife >= time.Second && s.TokenLife%time.Second == 0, "token life: want whole seconds, at least one")
	must(s.RefreshLife >= s.TokenLife, "refresh life: want at least the token life")
	return errors.Join(faults...)
}

// Proof is the condition for a token. A token is recorded only if its proof still holds.
type Proof struct {
	Method string // the user must have this method
	// SecondStep means that the user passed a second step after the method, or that the
	// token comes from such a sign-in. Otherwise the user must have no second step, and no
	// policy that asks for a confirmation of each sign-in.
	SecondStep bool
	Encoded    string // for the password method: the stored password
	Thumbprint []byte // for the certificate method: a certificate of the user
	// Granted means that a code or a grant is the reason for the token. Codes and grants
	// end in one transaction with the method, password or certificate that the user signed
	// in with. With the certificate method, at least one certificate of the user must not
	// have expired.
	Granted bool
	// Delegated means that an operator acts. The methods of the user do not count. The
	// transaction checks the reach of the operator.
	Delegated bool
	// Confirmed means that a confirmation of the user is the reason for the token. The
	// methods of the user do not count, and no further confirmation is needed.
	Confirmed bool
	// Parent is the access token that this one was derived from, "" for none. The parent
	// must not be expired or revoked.
	Parent string
	Now    time.Time
}

// Record is the stored record of an access token.
type Record struct {
	ID       string // jti
	UserID   string
	ClientID string
	Method   string
	Scope    string // granted
	ActorID  string // the operator who obtained it for the user; "" for the user in person
	// GrantID identifies the sign-in of the token by the ID of its first access token. ""
	// means that this token is the first one and has no refresh tokens. Tokens and codes
	// derived from a token have the same GrantID, so that a sign-in ends as a whole.
	GrantID    string
	SignedInAt time.Time // when the first token of the sign-in was made
	// Confirmation is the confirmation that a confirmed token was issued for; "" for an
	// access token.
	Confirmation string
	SecondStep   bool // see Proof
	CreatedAt    time.Time
	ExpiresAt    time.Time
	Revoked      bool
}

// Bearer is the record of a token with the present state of its user.
type Bearer struct {
	Token Record
	User  user.User
	Name  string // the name that the user signs in with, for users without a login
	Actor string // login of the operator who acts as the user; "" for the user in person
	// Severed means that the token has an actor who may not act on the user any more.
	Severed bool
}

// Store keeps the records of tokens and grants.
type Store interface {
	// Atomic locks the set, then runs fn in one transaction. A nested Atomic joins the
	// transaction and may name only what is locked already.
	Atomic(ctx context.Context, locked lock.Set, fn func(ctx context.Context) error) error

	// AddToken records a token, and that the user signed in, if the user is not barred and
	// the proof holds. It returns false otherwise. One statement decides.
	AddToken(ctx context.Context, t Record, p Proof) (bool, error)
	BearerByToken(ctx context.Context, tokenID string, now time.Time) (Bearer, error) // session.ErrNotFound for an unknown token

	// SignInName returns what a user signs in with: the login, otherwise a primary contact,
	// otherwise "". The error for an unknown user is session.ErrNotFound.
	SignInName(ctx context.Context, userID string) (name string, u user.User, err error)
	// PrimaryContacts returns the primary phone and e-mail of a user, "" for none.
	PrimaryContacts(ctx context.Context, userID string) (phone, email string, err error)

	AddGrant(ctx context.Context, g Grant) error
	// Rotate replaces the secret of a valid grant if old is its secret and the grant
	// belongs to the client. One statement decides, so only one caller gets true.
	Rotate(ctx context.Context, handle, old, next [sha256.Size]byte, clientID string, now time.Time) (Grant, bool, error)
	// GrantUser returns the user of a grant, "" for an unknown grant.
	GrantUser(ctx context.Context, handle [sha256.Size]byte) (userID string, err error)
	// EndGrant deletes a grant with every code of its sign-in and revokes every token of
	// the sign-in. It reports whether the grant existed.
	EndGrant(ctx context.Context, handle [sha256.Size]byte) (bool, error)
	GrantsOf(ctx context.Context, userID string, now time.Time) ([]Grant, error) // valid grants, oldest first
	// EndSignIn revokes the access token of a user with everything that comes from the same
	// sign-in: tokens, codes and grants.
	EndSignIn(ctx context.Context, userID, tokenID string) error

	// SweepTokens deletes access tokens that expired before tokens, and grants that expired
	// before now.
	SweepTokens(ctx context.Context, now, tokens time.Time) error
}

// Policies decides about actions of users; [policy.Service] satisfies it. The package asks
// about policy.Issue only.
type Policies interface {
	// Permit returns nil or the fault access_denied.
	Permit(ctx context.Context, userID string, a policy.Action) error
	NeedsConfirmation(ctx context.Context, userID string, a policy.Action) (bool, error)
}

// Deps lists what a Service needs.
type Deps struct {
	Store Store
	Keys  []Key // the newest first
	// LoadKeys reads the present keys. nil means that they never change.
	LoadKeys func(ctx context.Context) ([]Key, error)
	Policies Policies // nil: every user may be issued tokens
	Now      func() time.Time
	Rand     io.Reader
}

// Service makes and checks tokens. Its methods are safe for concurrent use.
type Service struct {
	settings  Settings
	store     Store
	tokens    *tokens
	resources map[string]bool // lower case
	policies  Policies
	now       func() time.Time
	rand      io.Reader
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
	return &Service{s, d.Store, t, resources, d.Policies, d.Now, d.Rand}, nil
}

// CheckResource refuses a resource that tokens are not made for.
func (s *Service) CheckResource(resource string) error {
	if resource == "" {
		return &GrantError{InvalidRequest, "resource: missing, want the name of the resource the token is for"}
	}
	if !s.resources[strings.ToLower(resource)] {
		return &GrantError{InvalidRequest, "resource: unknown"}
	}
	return nil
}

// Token is the answer of the token endpoint.
type Token struct {
	AccessToken  string
	ExpiresIn    time.Duration
	RefreshToken string // "" unless the scope offline_access was granted
	IDToken      string // "" unless the scope openid was granted to a code
	Scope        string // what was granted; RFC 6749, 5.1 demands it in the answer if it is less than asked
	UserID       string // for the audit log
}

// Authenticate returns the principal that a bearer token was issued for. It checks the
// signature, the claims, the record and the present state of the user. Every refusal is the
// fault invalid_token with the same text.
func (s *Service) Authenticate(ctx context.Context, bearer string) (audit.Principal, error) {
	return s.AuthenticateBy(ctx, bearer, s.store.BearerByToken)
}

// ReadBearer reads the record of a token; see [Store].
type ReadBearer func(ctx context.Context, tokenID string, now time.Time) (Bearer, error)

// AuthenticateBy is Authenticate for a caller that reads more than the record in the same
// statement.
func (s *Service) AuthenticateBy(ctx context.Context, bearer string, read ReadBearer) (audit.Principal, error) {
	return s.principal(ctx, bearer, read, tokenType)
}

// AuthenticateConfirmedBy is AuthenticateBy for operations that carry out what a user
// confirmed. It accepts confirmed tokens too: then Principal.Confirmation is set, and the
// caller must do nothing besides that confirmation.
func (s *Service) AuthenticateConfirmedBy(ctx context.Context, bearer string, read ReadBearer) (audit.Principal, error) {
	return s.principal(ctx, bearer, read, tokenType, confirmedType)
}

// AuthenticateConfirmed is AuthenticateConfirmedBy for a caller that reads nothing more.
func (s *Service) AuthenticateConfirmed(ctx context.Context, bearer string) (audit.Principal, error) {
	return s.AuthenticateConfirmedBy(ctx, bearer, s.store.BearerByToken)
}

func (s *Service) principal(ctx context.Context, bearer string, read ReadBearer, types ...string) (audit.Principal, error) {
	b, err := s.bearer(ctx, bearer, read, types, s.settings.Resource)
	if err != nil {
		return audit.Principal{}, err
	}
	return b.Principal(), nil
}

// Check finds the record of an access token for the resource. Its refusals are those of
// Authenticate.
func (s *Service) Check(ctx context.Context, bearer string) (Bearer, error) {
	return s.bearer(ctx, bearer, s.store.BearerByToken, []string{tokenType}, s.settings.Resource)
}

// bearer finds the record of a token of one of the types and for one of the audiences with
// read. Its refusals are those of Authenticate.
func (s *Service) bearer(ctx context.Context, bearer string, read ReadBearer, types []string, audiences ...string) (Bearer, error) {
	now := s.now()
	c, err := s.tokens.read(ctx, bearer, s.settings.Issuer, types, audiences, now)
	if err != nil {
		return Bearer{}, notValid().With(err)
	}
	b, err := read(ctx, c.ID, now)
	var why error
	switch {
	case errors.Is(err, session.ErrNotFound):
		why = err
	case err != nil:
		return Bearer{}, err
	case b.Token.UserID != c.UserID:
		why = errors.New("token: its record is of another user")
	case b.Token.Confirmation != c.Confirmation || (c.Confirmation != "") != (c.typ == confirmedType):
		why = errors.New("token: its record is of another confirmation")
	case b.Token.Revoked:
		why = errors.New("token: revoked")
	case !now.Before(b.Token.ExpiresAt):
		why = errors.New("token: its record has expired")
	case b.User.Barred(now):
		why = errors.New("token: its user is locked")
	case b.Severed:
		why = errors.New("token: the operator who obtained it may not act on its user any more")
	}
	if why != nil {
		return Bearer{}, notValid().With(why)
	}
	b.Name = c.Login
	return b, nil
}

func notValid() *fault.Error {
	return fault.New(fault.Unauthorized, "the access token is missing, expired or not valid; obtain a new one")
}

// Principal returns the user of the token. An operator who acts as a user has the rights of
// that user and no rights of an operator. A confirmed token has no rights of an operator.
func (b Bearer) Principal() audit.Principal {
	if b.Token.ActorID != "" || b.Token.Confirmation != "" {
		b.User.Operator = false
	}
	return audit.Principal{
		Actor:  b.Actor,
		UserID: b.User.ID, Login: cmp.Or(b.User.Login, b.Name), Group: b.User.Group,
		Operator: b.User.Operator,
		TokenID:  b.Token.ID, ClientID: b.Token.ClientID, Method: b.Token.Method,
		Confirmation: b.Token.Confirmation,
	}
}

// MayContinue reports whether work that began with an access token may be carried out now.
// The token itself may have expired. The fault is access_denied if the user is barred, if
// the sign-in was ended since, or if an operator may not act for the user any more.
// MayContinue works as long as the record of the token is kept; see Settings.Remember.
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

// SignedIn reports whether an access token is valid now, by its identifier. An idle session of the pages still is.
func (s *Service) SignedIn(ctx context.Context, tokenID string) (bool, error) {
	now := s.now()
	b, err := s.store.BearerByToken(ctx, tokenID, now)
	if errors.Is(err, session.ErrNotFound) {
		return false, nil
	}
	return err == nil && !b.Token.Revoked && now.Before(b.Token.ExpiresAt) && !b.User.Barred(now) && !b.Severed, err
}

// Sweep deletes expired tokens and grants. The server calls it regularly. It only bounds
// the size of the database.
func (s *Service) Sweep(ctx context.Context) error {
	now := s.now()
	return s.store.SweepTokens(ctx, now, now.Add(-s.settings.Remember))
}
