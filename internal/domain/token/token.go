// Package token makes and checks access tokens, refresh tokens and ID tokens.
//
// Begin with [New], [Service.Issue] and [Service.Authenticate]. Issue records a token
// if what it rests on, its [Proof], still holds. Authenticate turns a bearer token into
// the principal who acts. Keys that sign tokens are in keyset.go, their rotation in
// signingkey.go, refresh tokens in grant.go.
//
// The package does not decide who may sign in: see the package signin. It does not end
// the tokens of a user: see the package session.
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
	"tamga/internal/domain/policy"
	"tamga/internal/domain/session"
	"tamga/internal/domain/user"
	"time"
)

// Settings of the service.
type Settings struct {
	Issuer      string        // iss: the address of the identity provider
	LocalIssuer string        // dss_iss; the interface's usual value is "realsts"
	Resource    string        // aud: the resource that tokens are for
	Aliases     []string      // other names by which clients ask for Resource; letter case never counts
	TokenLife   time.Duration // of an access token, whole seconds; usually 300 s
	RefreshLife time.Duration // of a sign-in with offline_access, however often its tokens are refreshed
	// Remember is how long the record of an access token is kept after its end, for
	// what was begun with it and still waits; see MayContinue.
	Remember time.Duration
}

// DefaultSettings are the values of the interface; Issuer and Resource remain to be set.
func DefaultSettings() Settings {
	return Settings{LocalIssuer: "realsts", TokenLife: 300 * time.Second, RefreshLife: 30 * 24 * time.Hour}
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
	must(s.RefreshLife >= s.TokenLife, "refresh life: want at least the token life")
	return errors.Join(faults...)
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

// Record is the server's side of an access token.
type Record struct {
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
	Token  Record
	User   user.User
	Name   string   // what the user signs in with, for users without a login
	Groups []string // of an operator
	Actor  string   // login of the operator who acts as the user; "" for the user in person
	// Severed: there is an actor who may not act on the user any more.
	Severed bool
}

// Store keeps the records of tokens and grants.
type Store interface {
	Atomic(ctx context.Context, fn func(ctx context.Context) error) error

	// AddToken records a token, and that the user signed in, if the user is not
	// barred and the proof holds; false otherwise. One statement decides.
	AddToken(ctx context.Context, t Record, p Proof) (bool, error)
	BearerByToken(ctx context.Context, tokenID string, now time.Time) (Bearer, error) // or session.ErrNotFound

	// SignInName is what a user signs in with: the login, otherwise a primary
	// contact, "" for nothing. session.ErrNotFound for no user.
	SignInName(ctx context.Context, userID string) (name string, u user.User, err error)
	// PrimaryContacts are the primary phone and e-mail of a user, "" for none.
	PrimaryContacts(ctx context.Context, userID string) (phone, email string, err error)

	AddGrant(ctx context.Context, g Grant) error
	// Rotate replaces the secret of a grant that lives, if it is the old one and the
	// client is its own. One statement decides; true is told once.
	Rotate(ctx context.Context, handle, old, next [sha256.Size]byte, clientID string, now time.Time) (Grant, bool, error)
	// EndGrant deletes a grant with every code of its sign-in and ends every token. It
	// reports whether there was one.
	EndGrant(ctx context.Context, handle [sha256.Size]byte) (bool, error)
	GrantsOf(ctx context.Context, userID string, now time.Time) ([]Grant, error) // those that live, oldest first

	// SweepTokens deletes access tokens that expired before tokens, and grants that
	// expired before now.
	SweepTokens(ctx context.Context, now, tokens time.Time) error
}

// Policies judge the actions of users; [policy.Service] satisfies it. The room asks about
// policy.Issue alone.
type Policies interface {
	// Permit returns nil or the fault access_denied.
	Permit(ctx context.Context, userID string, a policy.Action) error
	NeedsConfirmation(ctx context.Context, userID string, a policy.Action) (bool, error)
}

// Deps are what a Service works with.
type Deps struct {
	Store Store
	Keys  []Key // the newest first
	// LoadKeys reads Keys as they are now; nil: they never change.
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

// CheckResource refuses a resource that is none of ours.
func (s *Service) CheckResource(resource string) error {
	if resource == "" {
		return &GrantError{InvalidRequest, "resource: missing, want the name of the resource the token is for"}
	}
	if !s.resources[strings.ToLower(resource)] {
		return &GrantError{InvalidRequest, "resource: unknown"}
	}
	return nil
}

// Token is what the token endpoint answers.
type Token struct {
	AccessToken  string
	ExpiresIn    time.Duration
	RefreshToken string // "" unless the scope offline_access was granted
	IDToken      string // "" unless the scope openid was granted to a code
	Scope        string // what was granted, which RFC 6749, 5.1 wants told when it is less than asked
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
	b, err := s.bearer(ctx, bearer, read, s.settings.Resource)
	if err != nil {
		return audit.Principal{}, err
	}
	return b.Principal(), nil
}

// Check finds the record of an access token for the resource. Refusals are those of
// Authenticate.
func (s *Service) Check(ctx context.Context, bearer string) (Bearer, error) {
	return s.bearer(ctx, bearer, s.store.BearerByToken, s.settings.Resource)
}

// bearer finds the record of an access token for one of the audiences with read. Refusals are
// those of Authenticate.
func (s *Service) bearer(ctx context.Context, bearer string, read ReadBearer, audiences ...string) (Bearer, error) {
	refused := fault.New(fault.Unauthorized, "the access token is missing, expired or not valid; obtain a new one")
	now := s.now()
	c, err := s.tokens.read(ctx, bearer, s.settings.Issuer, audiences, now)
	if err != nil {
		return Bearer{}, refused.With(err)
	}
	b, err := read(ctx, c.ID, now)
	var why error
	switch {
	case errors.Is(err, session.ErrNotFound):
		why = err
	case err != nil:
		return Bearer{}, err
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
		return Bearer{}, refused.With(why)
	}
	b.Name = c.Login
	return b, nil
}

// Principal returns the user whom the token stands for. An operator who acts as a user
// has the rights of that user and never rights of an operator.
func (b Bearer) Principal() audit.Principal {
	if b.Token.ActorID != "" {
		b.User.Operator, b.Groups = false, nil
	}
	return audit.Principal{
		Actor:  b.Actor,
		UserID: b.User.ID, Login: cmp.Or(b.User.Login, b.Name), Group: b.User.Group,
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

// Sweep deletes tokens and grants that have expired; the server calls it now and then.
// Nothing depends on it but the size of the database.
func (s *Service) Sweep(ctx context.Context) error {
	now := s.now()
	return s.store.SweepTokens(ctx, now, now.Add(-s.settings.Remember))
}
