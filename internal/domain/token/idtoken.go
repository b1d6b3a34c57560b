// SPDX-License-Identifier: Apache-2.0

package token

import (
	"context"
	"fmt"
	"time"

	"github.com/go-jose/go-jose/v4/jwt"

	"tamga/internal/domain/fault"
)

// idTokenType is the typ header of ID tokens. It differs from tokenType, so that one kind
// of token is not accepted as the other.
const idTokenType = "JWT"

// idClaims are the claims of an ID token (OpenID Connect Core, 2).
type idClaims struct {
	Issuer   string           `json:"iss"`
	Subject  string           `json:"sub"`
	Audience jwt.Audience     `json:"aud"`
	IssuedAt *jwt.NumericDate `json:"iat"`
	Expiry   *jwt.NumericDate `json:"exp"`
	AuthTime *jwt.NumericDate `json:"auth_time"`
	Nonce    string           `json:"nonce,omitempty"`
	Name     string           `json:"preferred_username,omitempty"`
}

func (s *Service) signID(o Order, now, expires time.Time) (string, error) {
	c := idClaims{
		Issuer: s.settings.Issuer, Subject: o.UserID, Audience: jwt.Audience{o.ClientID},
		IssuedAt: jwt.NewNumericDate(now), Expiry: jwt.NewNumericDate(expires), AuthTime: jwt.NewNumericDate(o.SignedInAt),
		Nonce: o.Nonce,
	}
	if Holds(o.Scope, "profile") {
		c.Name = o.Name
	}
	text, err := jwt.Signed(s.tokens.keys.Load().signers[idTokenType]).Claims(c).Serialize()
	if err != nil {
		return "", fmt.Errorf("token: signing an ID token: %w", err)
	}
	return text, nil
}

// Person is what a client may know of the user who signed in (OpenID Connect Core, 5.1).
type Person struct {
	UserID      string
	Name        string // the name that the user signs in with; "" without the scope profile
	DisplayName string // "" without the scope profile
}

// UserInfo returns the user that an access token was issued to. The token needs the scope
// openid. Faults: invalid_token, access_denied.
func (s *Service) UserInfo(ctx context.Context, bearer string) (Person, error) {
	b, err := s.bearer(ctx, bearer, s.store.BearerByToken, []string{tokenType}, s.settings.Resource, s.settings.Issuer)
	if err != nil {
		return Person{}, err
	}
	if !Holds(b.Token.Scope, ScopeOpenID) || b.Token.ActorID != "" {
		return Person{}, fault.New(fault.AccessDenied, "the access token was not granted the scope openid")
	}
	p := Person{UserID: b.User.ID}
	if Holds(b.Token.Scope, "profile") {
		p.Name, p.DisplayName = b.Name, b.User.DisplayName
	}
	return p, nil
}
