package auth

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/sha256"
	"errors"
	"fmt"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/cryptosigner"
	"github.com/go-jose/go-jose/v4/jwt"
)

// TokenKey signs access tokens.
type TokenKey struct {
	ID     string        // kid, unique for ever
	Signer crypto.Signer // of a P-256 key
}

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
}

// tokens makes and reads access tokens.
type tokens struct {
	signer   jose.Signer
	public   map[string]*ecdsa.PublicKey
	verified verified
}

// newTokens signs with the first key and accepts all of them.
func newTokens(keys []TokenKey) (*tokens, error) {
	if len(keys) == 0 {
		return nil, errors.New("auth: token keys: want at least one")
	}
	t := &tokens{public: make(map[string]*ecdsa.PublicKey, len(keys))}
	for _, k := range keys {
		public, ok := k.Signer.Public().(*ecdsa.PublicKey)
		if !ok || public.Curve != elliptic.P256() {
			return nil, fmt.Errorf("auth: token key %q: want a P-256 key", k.ID)
		}
		if k.ID == "" || t.public[k.ID] != nil {
			return nil, fmt.Errorf("auth: token key %q: want an identifier of its own", k.ID)
		}
		t.public[k.ID] = public
	}
	var err error
	t.signer, err = jose.NewSigner(
		jose.SigningKey{Algorithm: jose.ES256, Key: cryptosigner.Opaque(keys[0].Signer)},
		(&jose.SignerOptions{}).WithType(tokenType).WithHeader("kid", keys[0].ID))
	if err != nil {
		return nil, fmt.Errorf("auth: token key %q: %w", keys[0].ID, err)
	}
	return t, nil
}

func (t *tokens) sign(c claims) (string, error) {
	s, err := jwt.Signed(t.signer).Claims(c).Serialize()
	if err != nil {
		return "", fmt.Errorf("auth: signing a token: %w", err)
	}
	return s, nil
}

// read verifies the signature and the claims that need no record. The errors
// tell the log what was wrong, without the token.
func (t *tokens) read(bearer, issuer, audience string, now time.Time) (claims, error) {
	if len(bearer) > maxToken {
		return claims{}, errors.New("auth: token: too long")
	}
	digest := sha256.Sum256([]byte(bearer))
	c, found := t.verified.find(digest)
	if !found {
		var err error
		if c, err = t.verify(bearer); err != nil {
			return claims{}, err
		}
		t.verified.keep(digest, c)
	}
	switch {
	case c.Issuer != issuer:
		return claims{}, errors.New("auth: token: of another issuer")
	case len(c.Audience) != 1 || c.Audience[0] != audience:
		return claims{}, errors.New("auth: token: for another resource")
	case c.Expiry == nil || !now.Before(c.Expiry.Time()):
		return claims{}, errors.New("auth: token: expired")
	case c.ID == "" || c.UserID == "":
		return claims{}, errors.New("auth: token: without jti or nameid")
	}
	return c, nil
}

// verify checks the form and the signature of a token, which never change.
func (t *tokens) verify(bearer string) (claims, error) {
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
	public := t.public[header.KeyID]
	if public == nil {
		return claims{}, errors.New("auth: token: signed by an unknown key")
	}
	var c claims
	if err := token.Claims(public, &c); err != nil {
		return claims{}, errors.New("auth: token: wrong signature or claims of a wrong form")
	}
	return c, nil
}
