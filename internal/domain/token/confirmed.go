// SPDX-License-Identifier: Apache-2.0

package token

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4/jwt"

	"tamga/internal/domain/audit"
	"tamga/internal/domain/session"
)

// Confirmation says what a confirmed token is for.
type Confirmation struct {
	ID     string    // of the confirmation
	EndsAt time.Time // when what was confirmed must have been carried out
}

// IssueConfirmed issues a confirmed token: it opens the operations that carry out one
// confirmation of its user and no other, until the end of the confirmation. Only the caller
// decides that the user has confirmed. who is the caller of the confirmation. The token
// belongs to the sign-in of its access token, or to none. An operator who acts for the user
// stays the actor of the token.
//
// Refusals are those of Issuable for an access policy. The fault is invalid_token if the
// sign-in has ended.
func (s *Service) IssueConfirmed(ctx context.Context, who audit.Principal, c Confirmation) (Token, error) {
	ended := notValid()
	name, _, err := s.store.SignInName(ctx, who.UserID)
	if errors.Is(err, session.ErrNotFound) {
		return Token{}, ended.With(err)
	}
	if err != nil {
		return Token{}, err
	}
	o := Order{
		UserID: who.UserID, Name: name, ClientID: who.ClientID, Confirmation: c.ID,
		Descent: Descent{EndsAt: c.EndsAt}, Proof: Proof{Method: who.Method, Confirmed: true},
	}
	if who.Login != "" { // a phone or an e-mail: clients compare with what they sent
		o.Name = who.Login
	}
	if who.TokenID != "" {
		b, err := s.store.BearerByToken(ctx, who.TokenID, s.now())
		switch {
		case errors.Is(err, session.ErrNotFound):
			return Token{}, ended.With(err)
		case err != nil:
			return Token{}, err
		case b.Severed || b.Token.UserID != who.UserID:
			return Token{}, ended
		}
		o.Descent = DescentOf(b.Token)
		o.EndsAt = c.EndsAt
		if b.Token.ActorID != "" {
			o.Actor = &Actor{UserID: b.Token.ActorID, Login: b.Actor}
		}
	}
	t, ok, err := s.Issue(ctx, o)
	if err == nil && !ok {
		err = ended
	}
	return t, err
}

// scopeClaims are the claims of a token for a text that the user confirmed.
type scopeClaims struct {
	claims
	Scope string `json:"confirmed_scope"`
}

// OwnScope reports whether a text has the name of a scope of this service. Such a text is
// not confirmed: the token would look like one with that scope.
func OwnScope(text string) bool {
	for _, name := range strings.Fields(text) {
		if _, own := scopes[strings.ToLower(name)]; own {
			return true
		}
	}
	return false
}

// IssueScope signs a token which says that a user confirmed a text of a client. Only other
// programs read it, with the published keys: every route of this service refuses its type.
func (s *Service) IssueScope(ctx context.Context, who audit.Principal, scope string, ends time.Time) (Token, error) {
	if err := s.Issuable(ctx, who.UserID, nil, Proof{Confirmed: true}); err != nil {
		return Token{}, err
	}
	id, err := s.NewID()
	if err != nil {
		return Token{}, err
	}
	now := s.now()
	text, err := jwt.Signed(s.tokens.keys.Load().signers[scopeType]).Claims(scopeClaims{claims{
		Issuer: s.settings.Issuer, Audience: jwt.Audience{s.settings.Resource}, IssuedAt: jwt.NewNumericDate(now), Expiry: jwt.NewNumericDate(ends),
		ID: id.String(), Login: who.Login, UserID: who.UserID, LocalIssuer: s.settings.LocalIssuer,
	}, scope}).Serialize()
	if err != nil {
		return Token{}, fmt.Errorf("token: signing a token: %w", err)
	}
	return Token{AccessToken: text, ExpiresIn: ends.Sub(now).Truncate(time.Second), UserID: who.UserID}, nil
}
