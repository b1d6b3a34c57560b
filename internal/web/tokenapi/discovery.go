// SPDX-License-Identifier: Apache-2.0

package tokenapi

import (
	"context"

	"tamga/internal/domain/token"
)

// metadata is the document that an OpenID library reads first (OpenID Connect Discovery,
// section 3; RFC 8414). All addresses come from the configuration, none from the request.
type metadata struct {
	Issuer               string   `json:"issuer"`
	Authorization        string   `json:"authorization_endpoint"`
	Token                string   `json:"token_endpoint"`
	UserInfo             string   `json:"userinfo_endpoint"`
	Keys                 string   `json:"jwks_uri"`
	Scopes               []string `json:"scopes_supported"`
	ResponseTypes        []string `json:"response_types_supported"`
	ResponseModes        []string `json:"response_modes_supported"`
	Grants               []string `json:"grant_types_supported"`
	Subjects             []string `json:"subject_types_supported"`
	IDTokenAlgorithms    []string `json:"id_token_signing_alg_values_supported"`
	ClientAuthentication []string `json:"token_endpoint_auth_methods_supported"`
	Challenges           []string `json:"code_challenge_methods_supported"`
	Claims               []string `json:"claims_supported"`
	Languages            []string `json:"ui_locales_supported"`
	RequestParameter     bool     `json:"request_parameter_supported"`
	RequestURIParameter  bool     `json:"request_uri_parameter_supported"`
	ClaimsParameter      bool     `json:"claims_parameter_supported"`
}

func (a *API) discovery(context.Context, struct{}) (metadata, error) {
	return metadata{
		Issuer:               a.issuer,
		Authorization:        a.issuer + authorizePath,
		Token:                a.issuer + "/oauth/token",
		UserInfo:             a.issuer + "/oauth/userinfo",
		Keys:                 a.issuer + "/.well-known/jwks.json",
		Scopes:               []string{"openid", "profile", "dss", "offline_access"},
		ResponseTypes:        []string{"code", "token"},
		ResponseModes:        []string{"query", "fragment"},
		Grants:               []string{"password", "authorization_code", "implicit", "refresh_token", grantExchange},
		Subjects:             []string{"public"},
		IDTokenAlgorithms:    []string{"ES256"},
		ClientAuthentication: []string{"client_secret_basic", "client_secret_post", "none"},
		Challenges:           []string{"S256"},
		Claims:               []string{"iss", "sub", "aud", "exp", "iat", "auth_time", "nonce", "preferred_username", "name"},
		Languages:            []string{"ru", "en"},
	}, nil
}

// key is a public key (RFC 7517, RFC 7518, 6.2).
type key struct {
	Type      string `json:"kty"`
	Curve     string `json:"crv"`
	X         string `json:"x"`
	Y         string `json:"y"`
	ID        string `json:"kid"`
	Use       string `json:"use"`
	Algorithm string `json:"alg"`
}

type keySet struct {
	Keys []key `json:"keys"`
}

func (a *API) keys(context.Context, struct{}) (keySet, error) {
	set := keySet{Keys: []key{}}
	for _, k := range a.tokens.PublicKeys() {
		set.Keys = append(set.Keys, published(k))
	}
	return set, nil
}

func published(k token.PublicKey) key {
	return key{Type: "EC", Curve: "P-256", X: k.X, Y: k.Y, ID: k.ID, Use: "sig", Algorithm: "ES256"}
}
