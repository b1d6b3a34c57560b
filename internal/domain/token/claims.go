// SPDX-License-Identifier: Apache-2.0

package token

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
)

// The typ header of tokens. It distinguishes them from JWTs that the same key signs for
// other purposes. A program that does not know a type refuses its tokens.
const (
	tokenType     = "at+jwt"        // access tokens (RFC 9068, 2.1)
	confirmedType = "confirmed+jwt" // confirmed tokens: see Service.IssueConfirmed
	scopeType     = "scope+jwt"     // see Service.IssueScope; accepted nowhere
)

// tokenTypes lists the types of bearer tokens.
var tokenTypes = []string{tokenType, confirmedType}

// algorithms lists all accepted signature algorithms. The header of a token cannot extend
// the list.
var algorithms = []jose.SignatureAlgorithm{jose.ES256}

// maxToken is the largest accepted size of a bearer token in bytes. It is checked before
// parsing.
const maxToken = 4096

// claims are the claims of an access token. Existing clients read unique_name, nameid and
// dss_iss.
type claims struct {
	Issuer      string           `json:"iss"`
	Audience    jwt.Audience     `json:"aud"`
	IssuedAt    *jwt.NumericDate `json:"iat"`
	Expiry      *jwt.NumericDate `json:"exp"`
	ID          string           `json:"jti"`
	Login       string           `json:"unique_name"`
	UserID      string           `json:"nameid"`
	LocalIssuer string           `json:"dss_iss"`
	Actor       *Actor           `json:"act,omitempty"`
	// Confirmation is the confirmation that a confirmed token was issued for.
	Confirmation string `json:"confirmation,omitempty"`

	typ string // of the header
}

// issued adds the primary contacts of the user to the claims. Existing clients read them.
// This program does not.
type issued struct {
	claims
	Phone string `json:"http://schemas.xmlsoap.org/ws/2005/05/identity/claims/mobilephone,omitempty"`
	Email string `json:"email,omitempty"`
}

// Actor is the operator who acts for the user of a token (RFC 8693, 4.1).
type Actor struct {
	UserID string `json:"sub"`
	Login  string `json:"unique_name"`
}

func (t *tokens) sign(c issued) (string, error) {
	s, err := jwt.Signed(t.keys.Load().signers[c.typ]).Claims(c).Serialize()
	if err != nil {
		return "", fmt.Errorf("token: signing a token: %w", err)
	}
	return s, nil
}

// read verifies the type, the signature and the claims that need no record. Its errors are
// for the log and do not contain the token.
func (t *tokens) read(ctx context.Context, bearer, issuer string, types, audiences []string, now time.Time) (claims, error) {
	if len(bearer) > maxToken {
		return claims{}, errors.New("token: too long")
	}
	digest := sha256.Sum256([]byte(bearer))
	keys := t.keys.Load()
	c, found := keys.verified.find(digest)
	if !found {
		var err error
		if c, err = keys.verify(bearer); errors.Is(err, errUnknownKey) {
			if keys, err = t.renew(ctx, keys); err == nil {
				c, err = keys.verify(bearer)
			}
		}
		if err != nil {
			return claims{}, err
		}
		keys.verified.keep(digest, c)
	}
	switch {
	case !slices.Contains(types, c.typ):
		return claims{}, errors.New("token: of a type that is not accepted here")
	case c.Issuer != issuer:
		return claims{}, errors.New("token: of another issuer")
	case len(c.Audience) != 1 || !slices.Contains(audiences, c.Audience[0]):
		return claims{}, errors.New("token: for another resource")
	case c.Expiry == nil || !now.Before(c.Expiry.Time()):
		return claims{}, errors.New("token: expired")
	case c.ID == "" || c.UserID == "":
		return claims{}, errors.New("token: without jti or nameid")
	}
	return c, nil
}

// verify checks the form and the signature of a token. The result for a token never
// changes.
func (k *keySet) verify(bearer string) (claims, error) {
	token, err := jwt.ParseSigned(bearer, algorithms)
	if err != nil {
		return claims{}, errors.New("token: not a JWT signed with ES256")
	}
	if len(token.Headers) != 1 {
		return claims{}, errors.New("token: want one signature")
	}
	header := token.Headers[0]
	typ, _ := header.ExtraHeaders[jose.HeaderType].(string)
	if !slices.Contains(tokenTypes, typ) {
		return claims{}, errors.New("token: not an access token by its typ")
	}
	public := k.public[header.KeyID]
	if public == nil {
		return claims{}, errUnknownKey
	}
	var c claims
	if err := token.Claims(public, &c); err != nil {
		return claims{}, errors.New("token: wrong signature or claims of a wrong form")
	}
	c.typ = typ
	return c, nil
}
