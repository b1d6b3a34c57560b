// SPDX-License-Identifier: Apache-2.0

package signin

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"tamga/internal/domain/audit"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/lock"
	"tamga/internal/domain/token"
	"tamga/internal/domain/user"
)

// Authorization is a request for a code (RFC 6749, 4.1.1).
type Authorization struct {
	Client      Client // from Clients.Find: the client proves itself when it exchanges the code
	RedirectURI string // a redirect address of the client
	Scope       string
	Resource    string
	Nonce       string // for the ID token
	Challenge   string // of RFC 7636, method S256; "" for none
	// Direct means that the client asks for the token instead of a code (RFC 6749, 4.2.1).
	Direct bool
}

// Authorized is the result of an authorization.
type Authorized struct {
	Code  string // "" if the client asked for the token
	Token token.Token
	// Step is set if the user must pass a second step first. The sign-in waits for it, and
	// nothing else is set. See Service.CompleteStep.
	Step *FirstStep
}

// Check refuses a request that must fail for every user. The refusal is a *token.GrantError
// with unauthorized_client or invalid_request. If the client or its address is wrong, the
// refusal must not be sent to that address (RFC 6749, 4.1.2.1). The methods that authorize
// make these checks as well.
func (a Authorization) Check() error {
	if len(a.Client.RedirectURIs) == 0 {
		return token.Refuse(token.UnauthorizedClient, "the client may not use authorization codes")
	}
	if !slices.Contains(a.Client.RedirectURIs, a.RedirectURI) && (a.Direct || !a.otherPort()) {
		return token.Refuse(token.InvalidRequest, "redirect_uri: not one of the client's")
	}
	return nil
}

// otherPort reports whether the redirect address is one of the client's on another port of the
// loopback interface. A program on the user's machine listens there on a port that the system
// gives it (RFC 8252, 7.3). The name localhost is not such an address (8.3): it may be resolved to
// another machine.
func (a Authorization) otherPort() bool {
	asked, is := withoutPort(a.RedirectURI)
	return is && !slices.Contains(a.Client.RedirectURIs, a.RedirectURI) && slices.ContainsFunc(a.Client.RedirectURIs, func(known string) bool {
		plain, is := withoutPort(known)
		return is && plain == asked
	})
}

// withoutPort returns an http address of the loopback interface without its port. It reports false
// for every other address.
func withoutPort(address string) (plain string, loopback bool) {
	for _, host := range []string{"http://127.0.0.1", "http://[::1]"} {
		rest, is := strings.CutPrefix(address, host)
		if !is {
			continue
		}
		if port, is := strings.CutPrefix(rest, ":"); is {
			rest = strings.TrimLeft(port, "0123456789")
			if n, err := strconv.ParseUint(port[:len(port)-len(rest)], 10, 16); err != nil || n == 0 {
				return "", false
			}
		}
		if rest == "" || rest[0] == '/' || rest[0] == '?' {
			return host + rest, true
		}
	}
	return "", false
}

// Bounds of what a client may make the service store, in bytes.
const (
	maxNonce = 512
)

// CheckRequest checks the resource, the scope, the nonce and the challenge. Refusals are
// *token.GrantError. They may be sent to the redirect address.
func (s *Service) CheckRequest(a Authorization) error {
	_, _, err := s.wanted(a)
	return err
}

// wanted returns the scope that is granted, and whether the request names no resource.
// Without a resource, the client only learns who the user is.
func (s *Service) wanted(a Authorization) (scope string, loginOnly bool, err error) {
	if scope, err = token.GrantScope(a.Scope); err != nil {
		return "", false, err
	}
	loginOnly = a.Resource == "" && token.Holds(scope, token.ScopeOpenID)
	if !loginOnly {
		if err := s.tokens.CheckResource(a.Resource); err != nil {
			return "", false, err
		}
	}
	if a.Challenge != "" {
		if sum, err := base64.RawURLEncoding.Strict().DecodeString(a.Challenge); err != nil || len(sum) != sha256.Size {
			return "", false, token.Refuse(token.InvalidRequest, "code_challenge: want a SHA-256 as Base64URL without padding, 43 characters")
		}
	}
	switch {
	case len(a.Nonce) > maxNonce:
		return "", false, token.Refuse(token.InvalidRequest, fmt.Sprintf("nonce: want at most %d bytes", maxNonce))
	case a.Direct && !a.Client.Implicit:
		return "", false, token.Refuse(token.UnauthorizedClient, "the client may not have tokens sent to its address: ask for a code")
	case a.Direct:
		scope = token.Without(scope, token.ScopeOffline) // RFC 6749, 4.2.2
	}
	return scope, loginOnly, nil
}

// NeedsChallenge reports whether the request for a code must have a challenge. A browser
// carries the code, and a public client has no other proof that the code is its own. On another
// port of the loopback interface every program of the machine could wait for it.
func (a Authorization) NeedsChallenge() bool {
	return a.Client.Public && (!a.Client.NoChallenge || a.otherPort()) && a.RedirectURI != RedirectOutOfBand
}

// AuthorizeCertificate issues a code for a client certificate, under the conditions of
// AuthenticateCertificate. The code has 64 characters 0-9 and a-f. It is valid once and for
// Settings.CodeLife. Refusals are *token.GrantError:
//
//   - those of Authorization.Check
//   - invalid_request: the resource
//   - invalid_scope
//   - access_denied: the certificate
//   - authn_method_not_confirmed: the user has a second step. It is a *StepNeeded unless the
//     user has nothing to confirm with.
func (s *Service) AuthorizeCertificate(ctx context.Context, der []byte, a Authorization) (code string, who audit.Principal, err error) {
	if err := a.Check(); err != nil {
		return "", who, err
	}
	scope, loginOnly, err := s.wanted(a)
	if err != nil {
		return "", who, err
	}
	f, why, err := s.byCertificate(ctx, a.Client, der)
	if err == nil && why != nil {
		err = unknownCertificate()
	}
	if err != nil {
		return "", who, err
	}
	if !f.needs {
		// The certificate may be removed from the user meanwhile, so the exchange of the code
		// checks it again.
		issued, err := s.authorize(ctx, a, f.order.UserID, "", f.order.Proof, token.Descent{})
		if err == nil {
			return issued.Code, f.Who, nil
		}
		if !wantsStep(err) { // of a policy
			return "", who, err
		}
	}
	f.order.Scope, f.order.LoginOnly = scope, loginOnly
	return "", who, s.refuseForStep(ctx, f, func(ctx context.Context) error {
		_, why, err := s.byCertificate(ctx, a.Client, der)
		if err == nil && why != nil {
			err = changedMeanwhile()
		}
		return err
	})
}

// AuthorizePassword authorizes by login and password. It shares the budget of wrong
// passwords and the queue with all other ways of trying a password. Refusals are
// *token.GrantError: those of Authorization.Check and CheckRequest; invalid_grant and
// authn_method_not_confirmed as of PasswordGrant. The fault is too_many_requests, as of
// PasswordGrant.
func (s *Service) AuthorizePassword(ctx context.Context, login, password string, a Authorization) (issued Authorized, who audit.Principal, err error) {
	if err := errors.Join(a.Check(), s.CheckRequest(a)); err != nil {
		return issued, who, firstRefusal(err)
	}
	var c Credential
	var f FirstStep
	ok := false
	if login != "" && password != "" {
		if c, f, ok, err = s.byPassword(ctx, a.Client, login, password); err != nil {
			return issued, who, err
		}
	}
	if !ok {
		return issued, who, wrongPassword()
	}
	f.order.Proof.Granted = true
	err = s.store.Atomic(ctx, lock.User(c.User.ID), func(ctx context.Context) error {
		again, err := s.unchanged(ctx, login, c)
		if err != nil {
			return err
		}
		issued, err = s.authorizeFirst(ctx, a, f, again.Scheme.SecondStep)
		return err
	})
	return issued, f.Who, err
}

// authorizeFirst authorizes a client whose user has passed the first step in our pages, in
// the transaction of ctx. If the user must pass a second step, only Authorized.Step is set.
func (s *Service) authorizeFirst(ctx context.Context, a Authorization, f FirstStep, needsStep bool) (issued Authorized, err error) {
	if !needsStep {
		issued, err = s.authorize(ctx, a, f.order.UserID, f.order.Name, f.order.Proof, token.Descent{})
		if !wantsStep(err) { // of a policy
			return issued, err
		}
	}
	f.needs = true
	if f, err = s.wait(ctx, f); err != nil {
		return Authorized{}, fault.Rollback(err)
	}
	return Authorized{Step: &f}, nil
}

// AuthorizeBearer authorizes a client that already has an access token. The code or token
// it issues belongs to the sign-in of the access token: it ends with that sign-in, expires
// no later than the access token, and has the same time of signing in. Its scope is the
// part of the asked scope that the access token has. It is never a refresh token. Refusals
// are *token.GrantError, as of AuthorizePassword, and:
//
//   - access_denied: the access token is invalid, belongs to another client that is not the
//     default one, or was obtained by another user than its own
//   - invalid_scope: no resource is asked for, and the access token was not granted openid
func (s *Service) AuthorizeBearer(ctx context.Context, bearer string, a Authorization) (issued Authorized, who audit.Principal, err error) {
	if err := errors.Join(a.Check(), s.CheckRequest(a)); err != nil {
		return issued, who, firstRefusal(err)
	}
	a.Scope = token.Without(a.Scope, token.ScopeOffline)
	userID := s.bearerID(ctx, bearer)
	err = s.store.Atomic(ctx, lock.User(userID), func(ctx context.Context) error {
		b, err := s.tokens.Check(ctx, bearer)
		switch {
		case fault.Is(err, fault.Unauthorized):
			return token.Refuse(token.AccessDenied, "the access token is expired or not valid")
		case err != nil:
			return err
		case b.User.ID != userID:
			return changedMeanwhile()
		case b.Token.ActorID != "":
			return token.Refuse(token.AccessDenied, "the access token was obtained by another user on behalf of its user")
		case b.Token.ClientID != a.Client.ID && (s.settings.DefaultClient == "" || b.Token.ClientID != s.settings.DefaultClient):
			return token.Refuse(token.AccessDenied, "the access token is another client's")
		}
		who = b.Principal()
		within := a
		if within.Scope = token.Narrowed(a.Scope, b.Token.Scope); within.Resource == "" && !token.Holds(within.Scope, token.ScopeOpenID) {
			return token.Refuse(token.InvalidScope, "scope: the access token was not granted openid")
		}
		issued, err = s.authorize(ctx, within, b.User.ID, b.Name, token.Proof{Method: b.Token.Method, SecondStep: b.Token.SecondStep, Granted: true}, token.DescentOf(b.Token))
		return err
	})
	return issued, who, err
}

// bearerID returns the user of an access token, "" if the token is refused. Callers lock
// the user and check the token again.
func (s *Service) bearerID(ctx context.Context, bearer string) string {
	b, err := s.tokens.Check(ctx, bearer)
	if err != nil {
		return ""
	}
	return b.User.ID
}

// changedMeanwhile is the fault for a user who changed between a check and its
// repetition under the lock of the user.
func changedMeanwhile() error {
	return fault.New(fault.Unavailable, "the user was changed meanwhile, try again")
}

// signedIn returns the principal of a user without a token yet, for the audit log.
func (s *Service) signedIn(u user.User, name, method string, client Client) audit.Principal {
	return token.Bearer{Token: token.Record{ClientID: client.ID, Method: method}, User: u, Name: name}.Principal()
}

func wrongPassword() error {
	return token.Refuse(token.InvalidGrant, "the user name or password is not correct")
}

func secondStepNeeded() error {
	return token.Refuse(token.SecondStepNeeded, "the user signs in with a second step, which this grant does not have")
}

// firstRefusal returns the first of joined refusals.
func firstRefusal(err error) error {
	var g *token.GrantError
	if errors.As(err, &g) {
		return g
	}
	return err
}

// authorize makes a code, or the token itself, for a user who has signed in. If the proof is
// not Granted, the exchange of the code checks it again. from is the zero value for a fresh
// sign-in.
func (s *Service) authorize(ctx context.Context, a Authorization, userID, name string, p token.Proof, from token.Descent) (issued Authorized, err error) {
	scope, loginOnly, err := s.wanted(a)
	if err != nil {
		return issued, err
	}
	if err := s.tokens.Issuable(ctx, userID, nil, p); err != nil {
		return issued, err // checked again when the code is exchanged
	}
	if a.Direct {
		t, ok, err := s.tokens.Issue(ctx, token.Order{UserID: userID, Name: name, ClientID: a.Client.ID, Scope: scope, LoginOnly: loginOnly, Descent: from, Proof: p})
		if err == nil && !ok {
			err = token.Refuse(token.AccessDenied, "the user may not sign in any more")
		}
		if err != nil {
			return issued, err
		}
		return Authorized{Token: t}, nil
	}
	var random [32]byte
	if _, err := io.ReadFull(s.rand, random[:]); err != nil {
		return issued, fmt.Errorf("signin: making a code: %w", err)
	}
	code := hex.EncodeToString(random[:])
	now := s.now()
	expires := now.Add(s.settings.CodeLife)
	if from.SignedInAt.IsZero() {
		from.SignedInAt = now
	}
	if !from.EndsAt.IsZero() && from.EndsAt.Before(expires) {
		expires = from.EndsAt
	}
	err = s.codes.AddCode(ctx, Code{
		Hash: sha256.Sum256([]byte(code)), UserID: userID, ClientID: a.Client.ID, RedirectURI: a.RedirectURI,
		Scope: scope, Method: p.Method, Thumbprint: p.Thumbprint, Granted: p.Granted, SecondStep: p.SecondStep, LoginOnly: loginOnly,
		Nonce: a.Nonce, Challenge: a.Challenge, SignedInAt: from.SignedInAt, ExpiresAt: expires,
		GrantID: from.GrantID, ParentID: from.Parent, EndsAt: from.EndsAt,
	})
	if err != nil {
		return issued, err
	}
	return Authorized{Code: code}, nil
}

// CodeRequest is a request of a client to exchange a code for a token.
type CodeRequest struct {
	Code        string
	RedirectURI string // the redirect address that the code was made for
	Resource    string // "": the resource of the code
	Verifier    string // of RFC 7636; "" for a code without a challenge
}

// CodeGrant exchanges a code for a token (RFC 6749, 4.1.3). One conditional statement
// spends the code. If a code is used twice, the whole sign-in that it belongs to ends, with
// everything derived from its tokens (RFC 6749, 4.1.2). A client that names a resource
// again must name one that tokens are made for. A code with a challenge needs a verifier,
// and a verifier needs a challenge. Otherwise the code was stolen or injected (RFC 9700,
// 2.1.1). Refusals are *token.GrantError:
//
//   - unauthorized_client and invalid_request
//   - invalid_grant: the code is unknown, expired, spent, or made for another client,
//     redirect address or verifier, or its user may not sign in any more
func (s *Service) CodeGrant(ctx context.Context, client Client, r CodeRequest) (token.Token, error) {
	if len(client.RedirectURIs) == 0 {
		return token.Token{}, token.Refuse(token.UnauthorizedClient, "the client may not use authorization codes")
	}
	if r.Resource != "" {
		if err := s.tokens.CheckResource(r.Resource); err != nil {
			return token.Token{}, err
		}
	}
	if r.Code == "" {
		return token.Token{}, token.Refuse(token.InvalidRequest, "code: missing")
	}
	hash := sha256.Sum256([]byte(r.Code))
	refused := token.Refuse(token.InvalidGrant, "the code is unknown, expired or used, or was made for another client, address or verifier")
	var issued token.Token
	var refusal error
	userID, err := s.codes.CodeUser(ctx, hash)
	if err != nil {
		return issued, err
	}
	err = s.store.Atomic(ctx, lock.User(userID), func(ctx context.Context) error {
		issued, refusal = token.Token{}, nil
		id, err := s.tokens.NewID()
		if err != nil {
			return err
		}
		c, spent, err := s.codes.SpendCode(ctx, hash, client.ID, r.RedirectURI, id.String(), s.now())
		if err != nil {
			return err
		}
		if !spent {
			refusal = refused
			ended, err := s.codes.EndReplayed(ctx, hash, client.ID)
			if ended {
				audit.Changed(ctx, "a code came again: its tokens are ended")
			}
			return err
		}
		if !verifies(c.Challenge, r.Verifier) || c.LoginOnly && r.Resource != "" {
			refusal = refused // the code stays spent
			return nil
		}
		name, _, err := s.store.SignInName(ctx, c.UserID)
		if err != nil {
			return err
		}
		t, ok, err := s.tokens.Issue(ctx, token.Order{
			ID: id, UserID: c.UserID, Name: name, ClientID: client.ID, Scope: c.Scope, LoginOnly: c.LoginOnly,
			Descent: token.Descent{Parent: c.ParentID, GrantID: c.GrantID, SignedInAt: c.SignedInAt, EndsAt: c.EndsAt}, IDToken: true, Nonce: c.Nonce,
			Life:  client.SessionLife,
			Proof: token.Proof{Method: c.Method, SecondStep: c.SecondStep, Thumbprint: c.Thumbprint, Granted: c.Granted},
		})
		if err != nil {
			return err
		}
		if !ok {
			refusal = refused
			return nil
		}
		issued = t
		return nil
	})
	if err == nil {
		err = refusal
	}
	return issued, err
}

// verifies reports whether a verifier matches a challenge (RFC 7636, 4.6).
func verifies(challenge, verifier string) bool {
	if challenge == "" || verifier == "" {
		return challenge == verifier
	}
	sum := sha256.Sum256([]byte(verifier))
	return subtle.ConstantTimeCompare([]byte(base64.RawURLEncoding.EncodeToString(sum[:])), []byte(challenge)) == 1
}
