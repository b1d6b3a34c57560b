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

// tokenType is the typ header of our access tokens (RFC 9068, 2.1). It keeps
// a JWT made by the same key for another purpose from being taken for one.
const tokenType = "at+jwt"

// algorithms is the whole list of what we accept; the header of a token never
// chooses beyond it.
var algorithms = []jose.SignatureAlgorithm{jose.ES256}

// maxToken bounds a bearer token before anything is parsed, in octets.
const maxToken = 4096

// claims are those of an access token. unique_name, nameid and dss_iss are what
// existing clients read.
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
}

// issued are the claims of an access token with what existing clients read besides, and
// this program never does: the primary contacts of the user.
type issued struct {
	claims
	Phone string `json:"http://schemas.xmlsoap.org/ws/2005/05/identity/claims/mobilephone,omitempty"`
	Email string `json:"email,omitempty"`
}

// Actor says who acts for the user of a token (RFC 8693, 4.1).
type Actor struct {
	UserID string `json:"sub"`
	Login  string `json:"unique_name"`
}

func (t *tokens) sign(c issued) (string, error) {
	s, err := jwt.Signed(t.keys.Load().access).Claims(c).Serialize()
	if err != nil {
		return "", fmt.Errorf("auth: signing a token: %w", err)
	}
	return s, nil
}

// read verifies the signature and the claims that need no record. The errors
// tell the log what was wrong, without the token.
func (t *tokens) read(ctx context.Context, bearer, issuer string, audiences []string, now time.Time) (claims, error) {
	if len(bearer) > maxToken {
		return claims{}, errors.New("auth: token: too long")
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
	case c.Issuer != issuer:
		return claims{}, errors.New("auth: token: of another issuer")
	case len(c.Audience) != 1 || !slices.Contains(audiences, c.Audience[0]):
		return claims{}, errors.New("auth: token: for another resource")
	case c.Expiry == nil || !now.Before(c.Expiry.Time()):
		return claims{}, errors.New("auth: token: expired")
	case c.ID == "" || c.UserID == "":
		return claims{}, errors.New("auth: token: without jti or nameid")
	}
	return c, nil
}

// verify checks the form and the signature of a token, which never change.
func (k *keySet) verify(bearer string) (claims, error) {
	token, err := jwt.ParseSigned(bearer, algorithms)
	if err != nil {
		return claims{}, errors.New("auth: token: not a JWT signed with ES256")
	}
	if len(token.Headers) != 1 {
		return claims{}, errors.New("auth: token: want one signature")
	}
	header := token.Headers[0]
	if typ, _ := header.ExtraHeaders[jose.HeaderType].(string); typ != tokenType {
		return claims{}, errors.New("auth: token: not an access token by its typ")
	}
	public := k.public[header.KeyID]
	if public == nil {
		return claims{}, errUnknownKey
	}
	var c claims
	if err := token.Claims(public, &c); err != nil {
		return claims{}, errors.New("auth: token: wrong signature or claims of a wrong form")
	}
	return c, nil
}
