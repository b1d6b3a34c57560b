package auth

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

	"github.com/go-jose/go-jose/v4/jwt"
	"github.com/google/uuid"

	"tamga/internal/domain/audit"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/policy"
)

// Grant is what refresh tokens rest on: one for all tokens that follow each other.
type Grant struct {
	ID         string            // of the first access token
	Handle     [sha256.Size]byte // SHA-256 of the part of a refresh token that stays
	Secret     [sha256.Size]byte // SHA-256 of the part that is good once
	UserID     string
	ClientID   string
	Scope      string // granted
	Method     string // the user signed in with
	LoginOnly  bool
	SignedInAt time.Time
	UsedAt     time.Time // when its newest refresh token was made
	ExpiresAt  time.Time
}

// GrantStore keeps grants.
type GrantStore interface {
	AddGrant(ctx context.Context, g Grant) error
	// Rotate replaces the secret of a grant that lives, if it is the old one and the
	// client is its own. One statement decides; true is told once.
	Rotate(ctx context.Context, handle, old, next [sha256.Size]byte, clientID string, now time.Time) (Grant, bool, error)
	// EndGrant deletes a grant with every code of its sign-in and ends every token. It
	// reports whether there was one.
	EndGrant(ctx context.Context, handle [sha256.Size]byte) (bool, error)
	GrantsOf(ctx context.Context, userID string, now time.Time) ([]Grant, error) // those that live, oldest first
	// CredentialOfExternal finds who has a login at an issuer, both folded. session.ErrNotFound.
	CredentialOfExternal(ctx context.Context, issuer, login string) (Credential, error)
}

// scopes that a client may ask for, and whether they are granted. What OpenID Connect
// has besides is no error to ask for (OpenID Connect Core, 5.4), and not told.
var scopes = map[string]bool{
	"dss":        true,
	scopeOffline: true,
	scopeOpenID:  true,
	"profile":    true,
	"email":      false,
	"phone":      false,
	"address":    false,
}

const (
	scopeOffline = "offline_access" // a refresh token
	scopeOpenID  = "openid"         // an ID token, and the user's data
)

// grantScope is what is granted of what is asked, each name once. The refusal is
// invalid_scope.
func grantScope(asked string) (string, error) {
	var granted []string
	for _, name := range strings.Fields(asked) {
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

// holds reports whether a granted scope has a name in it.
func holds(scope, name string) bool { return slices.Contains(strings.Fields(scope), name) }

// without is a granted scope less one name.
func without(scope, name string) string {
	return strings.Join(slices.DeleteFunc(strings.Fields(scope), func(s string) bool { return s == name }), " ")
}

// narrowed is an asked scope less what was not granted.
func narrowed(asked, granted string) string {
	return strings.Join(slices.DeleteFunc(strings.Fields(asked), func(s string) bool { return !holds(granted, s) }), " ")
}

// descent is what a token or a code inherits from the access token that it was derived
// from. The zero value is a fresh sign-in.
type descent struct {
	parent     string // id of that access token, "" for none
	grantID    string // see TokenRecord; "" for none yet
	signedInAt time.Time
	endsAt     time.Time // zero: no end but that of its own kind
}

// descentOf is what a token passes on.
func descentOf(t TokenRecord) descent {
	return descent{parent: t.ID, grantID: cmp.Or(t.GrantID, t.ID), signedInAt: t.SignedInAt, endsAt: t.ExpiresAt}
}

// order is a token to be issued.
type order struct {
	id        uuid.UUID
	userID    string
	name      string // what the user signs in with
	client    Client
	scope     string // granted
	proof     Proof  // without Now and Parent
	loginOnly bool
	descent
	actor   *actorClaim // nil: the user in person
	idToken bool
	nonce   string // for the ID token
}

// issuable refuses tokens that a policy forbids. It joins the transaction of ctx, so that
// no token is recorded after the policy was set. Refusals are *GrantError: access_denied
// where the access policy denies Issue to the user or to the operator who acts for the
// user; authn_method_not_confirmed where the operation policy of the user wants tokens
// confirmed, which no grant can do.
func (s *Service) issuable(ctx context.Context, userID string, actor *actorClaim) error {
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
	confirm, err := s.policies.NeedsConfirmation(ctx, userID, policy.Issue)
	if err == nil && confirm {
		err = &GrantError{SecondStepNeeded, "the operation policy of the user wants every sign-in confirmed (action Issue), which this grant cannot do"}
	}
	return err
}

// issue signs a token and records it if what it rests on holds and does not end within
// the second; false otherwise. With offline_access it makes a grant, in the same
// transaction, unless the token belongs to one already. Refusals of issuable are errors.
func (s *Service) issue(ctx context.Context, o order) (t Token, ok bool, err error) {
	now := s.now()
	if o.id == (uuid.UUID{}) {
		if o.id, err = s.newID(); err != nil {
			return t, false, err
		}
	}
	if o.signedInAt.IsZero() {
		o.signedInAt = now
	}
	audience := s.settings.Resource
	if o.loginOnly {
		audience = s.settings.Issuer
	}
	// Whole seconds, as the token can say; the record expires with the token.
	begins := time.Unix(now.Unix(), 0)
	expires := begins.Add(s.settings.TokenLife)
	if !o.endsAt.IsZero() && o.endsAt.Before(expires) {
		expires = time.Unix(o.endsAt.Unix(), 0)
	}
	life := expires.Sub(begins)
	if life < time.Second {
		return t, false, nil
	}
	t = Token{ExpiresIn: life, Scope: o.scope, UserID: o.userID}
	content := issued{claims: claims{
		Issuer: s.settings.Issuer, Audience: jwt.Audience{audience},
		IssuedAt: jwt.NewNumericDate(now), Expiry: jwt.NewNumericDate(expires),
		ID: o.id.String(), Login: o.name, UserID: o.userID, LocalIssuer: s.settings.LocalIssuer, Actor: o.actor,
	}}
	if !o.loginOnly { // whoever wants to know who signed in asks userinfo
		if content.Phone, content.Email, err = s.store.PrimaryContacts(ctx, o.userID); err != nil {
			return t, false, err
		}
	}
	if t.AccessToken, err = s.tokens.sign(content); err != nil {
		return t, false, err
	}
	if o.idToken && holds(o.scope, scopeOpenID) {
		if t.IDToken, err = s.signID(o, now, expires); err != nil {
			return t, false, err
		}
	}
	record := TokenRecord{
		ID: o.id.String(), UserID: o.userID, ClientID: o.client.ID, Method: o.proof.Method, Scope: o.scope,
		GrantID: o.grantID, SignedInAt: o.signedInAt, CreatedAt: now, ExpiresAt: expires,
	}
	if o.actor != nil {
		record.ActorID = o.actor.UserID
	}
	o.proof.Now, o.proof.Parent = now, o.parent
	var g *Grant // unless there is one already, or none was asked for
	if holds(o.scope, scopeOffline) && o.grantID == "" {
		var made Grant
		if t.RefreshToken, made, err = s.newGrant(o, now); err != nil {
			return t, false, err
		}
		record.GrantID, g = made.ID, &made
	}
	err = s.store.Atomic(ctx, func(ctx context.Context) (err error) {
		if err := s.issuable(ctx, o.userID, o.actor); err != nil {
			return err
		}
		if ok, err = s.store.AddToken(ctx, record, o.proof); err != nil || !ok || g == nil {
			return err
		}
		return s.store.AddGrant(ctx, *g)
	})
	if err != nil {
		return Token{}, false, err
	}
	return t, ok, nil
}

func (s *Service) newID() (uuid.UUID, error) {
	id, err := uuid.NewRandomFromReader(s.rand)
	if err != nil {
		return id, fmt.Errorf("auth: making an identifier: %w", err)
	}
	return id, nil
}

// A refresh token is hexadecimal: 16 octets that stay as long as the grant, by which
// it is found, and 32 octets that are good once. Both are random. Whoever brings the
// first with other than the newest of the second has a token that was spent.
const (
	handleLength = 16
	secretLength = 32
)

func (s *Service) newGrant(o order, now time.Time) (string, Grant, error) {
	var random [handleLength + secretLength]byte
	if _, err := io.ReadFull(s.rand, random[:]); err != nil {
		return "", Grant{}, fmt.Errorf("auth: making a refresh token: %w", err)
	}
	return hex.EncodeToString(random[:]), Grant{
		ID: o.id.String(), Handle: sha256.Sum256(random[:handleLength]), Secret: sha256.Sum256(random[handleLength:]),
		UserID: o.userID, ClientID: o.client.ID, Scope: o.scope, Method: o.proof.Method, LoginOnly: o.loginOnly,
		SignedInAt: o.signedInAt, UsedAt: now, ExpiresAt: o.signedInAt.Add(s.settings.RefreshLife),
	}, nil
}

// RefreshGrant exchanges a refresh token for an access token and the next refresh
// token (RFC 6749, 6). One conditional statement spends it. One that comes again, or
// from another client, was copied: it ends its grant, with every token that came of it
// (RFC 9700, 4.14). scope may ask for less than was granted, for this access token
// alone. Refusals are *GrantError: invalid_request; invalid_scope for more than was
// granted; invalid_grant for a token that is unknown, spent, expired or of a user who
// may not sign in any more.
func (s *Service) RefreshGrant(ctx context.Context, client Client, token, resource, scope string) (Token, error) {
	if resource != "" {
		if err := s.checkResource(resource); err != nil {
			return Token{}, err
		}
	}
	asked, err := grantScope(scope)
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
		return Token{}, fmt.Errorf("auth: making a refresh token: %w", err)
	}
	var issued Token
	var refusal error
	err = s.store.Atomic(ctx, func(ctx context.Context) error {
		issued, refusal = Token{}, refused
		g, rotated, err := s.store.Rotate(ctx, handle, old, sha256.Sum256(next[handleLength:]), client.ID, s.now())
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
			if !holds(g.Scope, name) {
				refusal = &GrantError{InvalidScope, "scope: more than was granted"}
				return errUndo // the token stays good
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
		t, ok, err := s.issue(ctx, order{
			userID: g.UserID, name: name, client: client, scope: granted, loginOnly: g.LoginOnly,
			descent: descent{grantID: g.ID, signedInAt: g.SignedInAt, endsAt: g.ExpiresAt}, proof: Proof{Method: g.Method, Granted: true},
		})
		if err != nil {
			return err
		}
		if !ok { // locked by now, or with other methods: an unlock does not bring it back
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

// errUndo rolls a transaction back whose refusal is known.
var errUndo = errors.New("auth: refused")

// Grants lists what a user is signed in to by refresh tokens, oldest first.
func (s *Service) Grants(ctx context.Context, userID string) ([]Grant, error) {
	return s.store.GrantsOf(ctx, userID, s.now())
}
