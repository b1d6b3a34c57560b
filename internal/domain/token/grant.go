// SPDX-License-Identifier: Apache-2.0

package token

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/go-jose/go-jose/v4/jwt"
	"github.com/google/uuid"

	"tamga/internal/domain/audit"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/lock"
	"tamga/internal/domain/policy"
)

// Grant is the record behind refresh tokens. A refresh token and all its successors share
// one grant.
type Grant struct {
	ID         string            // the ID of the first access token
	Handle     [sha256.Size]byte // SHA-256 of the constant part of its refresh tokens
	Secret     [sha256.Size]byte // SHA-256 of the part that is valid once
	UserID     string
	ClientID   string
	Scope      string // granted
	Method     string // the method that the user signed in with
	LoginOnly  bool
	SecondStep bool // see Proof
	SignedInAt time.Time
	UsedAt     time.Time // when its newest refresh token was made
	ExpiresAt  time.Time
}

// scopes lists the scopes that a client may ask for, and whether they are granted. The
// other scopes of OpenID Connect may be asked for without an error (OpenID Connect Core,
// 5.4), but they are not granted and their claims are not told.
var scopes = map[string]bool{
	"dss":        true,
	ScopeOffline: true,
	ScopeOpenID:  true,
	"profile":    true,
	"email":      false,
	"phone":      false,
	"address":    false,
}

const (
	ScopeOffline = "offline_access" // asks for a refresh token
	ScopeOpenID  = "openid"         // asks for an ID token and the user's data
)

// GrantScope returns the part of an asked scope that is granted, each name once. The
// refusal is invalid_scope.
func GrantScope(asked string) (string, error) {
	var granted []string
	for _, name := range scopeNames(asked) {
		grant, known := scopes[name]
		if !known {
			return "", &GrantError{InvalidScope, "scope: unknown, want dss, offline_access, openid and profile at most"}
		}
		if grant && !slices.Contains(granted, name) {
			granted = append(granted, name)
		}
	}
	return strings.Join(granted, " "), nil
}

// scopeNames splits a scope that a client sent. Clients that encode a form twice send a plus sign
// where a space is meant, and no name of a scope has one.
func scopeNames(asked string) []string {
	return strings.FieldsFunc(asked, func(r rune) bool { return r == '+' || unicode.IsSpace(r) })
}

// Holds reports whether a scope contains a name.
func Holds(scope, name string) bool { return slices.Contains(strings.Fields(scope), name) }

// Without returns a scope without one name.
func Without(scope, name string) string {
	return strings.Join(slices.DeleteFunc(strings.Fields(scope), func(s string) bool { return s == name }), " ")
}

// Narrowed returns the part of an asked scope that was granted.
func Narrowed(asked, granted string) string {
	return strings.Join(slices.DeleteFunc(strings.Fields(asked), func(s string) bool { return !Holds(granted, s) }), " ")
}

// Descent is what a token or a code inherits from the access token it was derived from. The
// zero value means a fresh sign-in.
type Descent struct {
	Parent     string // ID of that access token, "" for none
	GrantID    string // see Record; "" for none yet
	SignedInAt time.Time
	EndsAt     time.Time // zero: only the usual life applies
}

// DescentOf returns what tokens and codes inherit from a token.
func DescentOf(t Record) Descent {
	return Descent{Parent: t.ID, GrantID: cmp.Or(t.GrantID, t.ID), SignedInAt: t.SignedInAt, EndsAt: t.ExpiresAt}
}

// Order describes a token to issue.
type Order struct {
	ID        uuid.UUID // zero: Issue makes one
	UserID    string
	Name      string // what the user signs in with
	ClientID  string
	Scope     string // granted
	Proof     Proof  // without Now and Parent
	LoginOnly bool
	Descent
	Actor *Actor // nil: the user in person
	// Confirmation is set for a confirmed token, which expires at EndsAt; see
	// Service.IssueConfirmed.
	Confirmation string
	IDToken      bool
	Nonce        string // for the ID token
	// Life is how long the token is valid, in whole seconds; 0: Settings.TokenLife. A descent
	// may end it earlier.
	Life time.Duration
}

// Issuable refuses tokens that a policy forbids. It joins the transaction of ctx, so that
// no token is recorded after the policy was set. Refusals are *GrantError:
//
//   - access_denied: the access policy denies Issue to the user, or to the operator who acts
//     for the user
//   - authn_method_not_confirmed: the operation policy of the user demands confirmation of
//     tokens, and the proof has none
func (s *Service) Issuable(ctx context.Context, userID string, actor *Actor, p Proof) error {
	return s.issuable(ctx, userID, actor, p.Confirmed || p.SecondStep)
}

// issuable is Issuable. confirmed means that the user has confirmed the token.
func (s *Service) issuable(ctx context.Context, userID string, actor *Actor, confirmed bool) error {
	if s.policies == nil {
		return nil
	}
	users := []string{userID}
	if actor != nil {
		users = append(users, actor.UserID)
	}
	for _, id := range users {
		err := s.policies.Permit(ctx, id, policy.Issue)
		if fault.Is(err, fault.AccessDenied) {
			return &GrantError{AccessDenied, "an access policy denies tokens to the user (action Issue)"}
		}
		if err != nil {
			return err
		}
	}
	if confirmed {
		return nil
	}
	confirm, err := s.policies.NeedsConfirmation(ctx, userID, policy.Issue)
	if err == nil && confirm {
		err = &GrantError{SecondStepNeeded, "the operation policy of the user wants every sign-in confirmed (action Issue), which this grant cannot do"}
	}
	return err
}

// Issue signs a token and records it. ok is false if the proof does not hold, or if the
// token would end within a second. With offline_access, Issue makes a grant in the same
// transaction, unless the token belongs to a grant already. Refusals of Issuable are
// errors.
func (s *Service) Issue(ctx context.Context, o Order) (t Token, ok bool, err error) {
	now := s.now()
	if o.ID == (uuid.UUID{}) {
		if o.ID, err = s.NewID(); err != nil {
			return t, false, err
		}
	}
	if o.SignedInAt.IsZero() {
		o.SignedInAt = now
	}
	audience := s.settings.Resource
	if o.LoginOnly {
		audience = s.settings.Issuer
	}
	// Claims have whole seconds. The record expires together with the token.
	begins := time.Unix(now.Unix(), 0)
	expires := begins.Add(cmp.Or(o.Life, s.settings.TokenLife))
	if !o.EndsAt.IsZero() && (o.EndsAt.Before(expires) || o.Confirmation != "") {
		expires = time.Unix(o.EndsAt.Unix(), 0)
	}
	life := expires.Sub(begins)
	if life < time.Second {
		return t, false, nil
	}
	t = Token{ExpiresIn: life, Scope: o.Scope, UserID: o.UserID}
	content := issued{claims: claims{
		Issuer: s.settings.Issuer, Audience: jwt.Audience{audience},
		IssuedAt: jwt.NewNumericDate(now), Expiry: jwt.NewNumericDate(expires),
		ID: o.ID.String(), Login: o.Name, UserID: o.UserID, LocalIssuer: s.settings.LocalIssuer, Actor: o.Actor,
		Confirmation: o.Confirmation, typ: tokenType,
	}}
	if o.Confirmation != "" {
		content.typ = confirmedType
	}
	if !o.LoginOnly { // clients that only sign users in ask userinfo
		if content.Phone, content.Email, err = s.store.PrimaryContacts(ctx, o.UserID); err != nil {
			return t, false, err
		}
	}
	if t.AccessToken, err = s.tokens.sign(content); err != nil {
		return t, false, err
	}
	if o.IDToken && Holds(o.Scope, ScopeOpenID) {
		if t.IDToken, err = s.signID(o, now, expires); err != nil {
			return t, false, err
		}
	}
	record := Record{
		ID: o.ID.String(), UserID: o.UserID, ClientID: o.ClientID, Method: o.Proof.Method, Scope: o.Scope,
		GrantID: o.GrantID, SignedInAt: o.SignedInAt, CreatedAt: now, ExpiresAt: expires, Confirmation: o.Confirmation, SecondStep: o.Proof.SecondStep,
	}
	if o.Actor != nil {
		record.ActorID = o.Actor.UserID
	}
	o.Proof.Now, o.Proof.Parent = now, o.Parent
	var g *Grant // nil if the token belongs to a grant already or none was asked for
	if Holds(o.Scope, ScopeOffline) && o.GrantID == "" {
		var made Grant
		if t.RefreshToken, made, err = s.newGrant(o, now); err != nil {
			return t, false, err
		}
		record.GrantID, g = made.ID, &made
	}
	locked := lock.User(o.UserID, record.ActorID)
	err = s.store.Atomic(ctx, locked, func(ctx context.Context) (err error) {
		if err := s.issuable(ctx, o.UserID, o.Actor, o.Proof.Confirmed || o.Proof.SecondStep); err != nil {
			return err
		}
		if ok, err = s.store.AddToken(ctx, record, o.Proof); err != nil || !ok || g == nil {
			return err
		}
		return s.store.AddGrant(ctx, *g)
	})
	if err != nil {
		return Token{}, false, err
	}
	return t, ok, nil
}

// NewID returns a random ID for an order, for callers that need the ID before they issue
// the token.
func (s *Service) NewID() (uuid.UUID, error) {
	id, err := uuid.NewRandomFromReader(s.rand)
	if err != nil {
		return id, fmt.Errorf("token: making an identifier: %w", err)
	}
	return id, nil
}

// A refresh token is hexadecimal text of two random parts. The handle has 16 bytes. It
// finds the grant and stays the same. The secret has 32 bytes and is valid once. A handle
// with another secret than the newest is a token that was used before.
const (
	handleLength = 16
	secretLength = 32
)

func (s *Service) newGrant(o Order, now time.Time) (string, Grant, error) {
	var random [handleLength + secretLength]byte
	if _, err := io.ReadFull(s.rand, random[:]); err != nil {
		return "", Grant{}, fmt.Errorf("token: making a refresh token: %w", err)
	}
	return hex.EncodeToString(random[:]), Grant{
		ID: o.ID.String(), Handle: sha256.Sum256(random[:handleLength]), Secret: sha256.Sum256(random[handleLength:]),
		UserID: o.UserID, ClientID: o.ClientID, Scope: o.Scope, Method: o.Proof.Method, LoginOnly: o.LoginOnly, SecondStep: o.Proof.SecondStep,
		SignedInAt: o.SignedInAt, UsedAt: now, ExpiresAt: o.SignedInAt.Add(s.settings.RefreshLife),
	}, nil
}

// RefreshGrant exchanges a refresh token for an access token and the next refresh token
// (RFC 6749, 6). One conditional statement spends the refresh token. If a token is used
// twice or comes from another client, it was copied. Then its grant ends, with every token
// derived from it (RFC 9700, 4.14). scope may ask for less than was granted. That applies
// to this access token only. Refusals are *GrantError:
//
//   - invalid_request: no token, or a resource that was not granted or is unknown
//   - invalid_scope: an unknown scope, or more than was granted
//   - invalid_grant: the token is unknown, spent or expired, or its user may not sign in any
//     more
func (s *Service) RefreshGrant(ctx context.Context, clientID, token, resource, scope string) (Token, error) {
	if resource != "" {
		if err := s.CheckResource(resource); err != nil {
			return Token{}, err
		}
	}
	asked, err := GrantScope(scope)
	if err != nil {
		return Token{}, err
	}
	if token == "" {
		return Token{}, &GrantError{InvalidRequest, "refresh_token: missing"}
	}
	refused := &GrantError{InvalidGrant, "the refresh token is unknown, expired or used, or of another client"}
	parts, err := hex.DecodeString(token)
	if err != nil || len(parts) != handleLength+secretLength {
		return Token{}, refused
	}
	handle, old := sha256.Sum256(parts[:handleLength]), sha256.Sum256(parts[handleLength:])
	next := append([]byte(nil), parts...)
	if _, err := io.ReadFull(s.rand, next[handleLength:]); err != nil {
		return Token{}, fmt.Errorf("token: making a refresh token: %w", err)
	}
	var issued Token
	var refusal error
	userID, err := s.store.GrantUser(ctx, handle)
	if err != nil {
		return Token{}, err
	}
	err = s.store.Atomic(ctx, lock.User(userID), func(ctx context.Context) error {
		issued, refusal = Token{}, refused
		g, rotated, err := s.store.Rotate(ctx, handle, old, sha256.Sum256(next[handleLength:]), clientID, s.now())
		if err != nil {
			return err
		}
		if !rotated {
			ended, err := s.store.EndGrant(ctx, handle)
			if ended {
				audit.Changed(ctx, "a refresh token came again: its grant is ended")
			}
			return err
		}
		granted := g.Scope
		if asked != "" {
			granted = asked
		}
		for _, name := range strings.Fields(granted) {
			if !Holds(g.Scope, name) {
				refusal = &GrantError{InvalidScope, "scope: more than was granted"}
				return errUndo // the refresh token stays valid
			}
		}
		if g.LoginOnly && resource != "" {
			refusal = &GrantError{InvalidRequest, "resource: none was granted"}
			return errUndo
		}
		name, _, err := s.store.SignInName(ctx, g.UserID)
		if err != nil {
			return err
		}
		t, ok, err := s.Issue(ctx, Order{
			UserID: g.UserID, Name: name, ClientID: clientID, Scope: granted, LoginOnly: g.LoginOnly,
			Descent: Descent{GrantID: g.ID, SignedInAt: g.SignedInAt, EndsAt: g.ExpiresAt}, Proof: Proof{Method: g.Method, SecondStep: g.SecondStep, Granted: true},
		})
		if err != nil {
			return err
		}
		if !ok { // The user was locked or has other methods now. An unlock does not restore the grant.
			audit.Tried(ctx, g.UserID, name)
			audit.Changed(ctx, "the grant of a user who may not sign in any more is ended")
			_, err := s.store.EndGrant(ctx, handle)
			return err
		}
		t.RefreshToken, refusal = hex.EncodeToString(next), nil
		issued = t
		return nil
	})
	if err == nil || errors.Is(err, errUndo) {
		err = refusal
	}
	if err != nil {
		return Token{}, err
	}
	return issued, nil
}

// errUndo rolls back a transaction. The caller knows the refusal.
var errUndo = errors.New("token: refused")

// SignOut ends the sign-in that the access token of who belongs to, with every token, code
// and grant that comes from it. A sign-in that has ended already is no error.
func (s *Service) SignOut(ctx context.Context, who audit.Principal) error {
	return s.store.Atomic(ctx, lock.User(who.UserID), func(ctx context.Context) error {
		return s.store.EndSignIn(ctx, who.UserID, who.TokenID)
	})
}

// Grants returns the valid grants of a user, oldest first.
func (s *Service) Grants(ctx context.Context, userID string) ([]Grant, error) {
	return s.store.GrantsOf(ctx, userID, s.now())
}
