// SPDX-License-Identifier: Apache-2.0

package config

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"tamga/internal/setting"
)

// External is another identity provider where users may sign in, by OpenID Connect or by SAML. The
// users need the method external and a login with its name.
type External struct {
	// Issuer of the logins that users have at this provider. `users.issuers` may have its title and
	// description. Default: none, required.
	Name string `yaml:"name"`
	// Name of the provider on the login page. Default: the name.
	Title string `yaml:"title"`
	// Address of the provider, exactly as the provider writes it;
	// `/.well-known/openid-configuration` is appended.
	Issuer string `yaml:"issuer"`
	// Our identifier at the provider. The provider must know our address
	// `{idp_url}/oauth/external/NAME/return`.
	ClientID string `yaml:"client_id"`
	// File with the secret, if the provider gave us one.
	SecretFile string `yaml:"secret_file"`
	// Scopes to request in addition to `openid`.
	Scopes []string `yaml:"scopes"`
	// Claim of the ID token that is the login. `email` is accepted only if the provider has
	// verified it. Default: `sub`.
	Claim string `yaml:"claim"`
	// Authorities (PEM) of the provider's certificate. Default: the system's.
	AuthoritiesFile string `yaml:"authorities_file"`
	// A SAML 2.0 provider. It replaces issuer and the settings after it.
	SAML SAML `yaml:"saml"`
}

// SAML configures a SAML 2.0 provider. Its metadata, or the settings that replace them, must be
// given. Our own metadata are at {idp_url}/oauth/external/NAME/metadata.
type SAML struct {
	// A SAML 2.0 provider instead of OpenID Connect: the file with its metadata (XML).
	MetadataFile string `yaml:"metadata_file"`
	// Entity ID of the provider: needed without metadata, or to choose among the entities of the
	// file.
	EntityID string `yaml:"entity_id"`
	// Without metadata: the address where the provider accepts requests by HTTP-Redirect.
	SSOURL string `yaml:"sso_url"`
	// Without metadata: certificates (PEM) of the keys that the provider signs with.
	CertificatesFile string `yaml:"certificates_file"`
	// Entity ID of this service at the provider. Default: `{idp_url}/oauth/external/NAME/metadata`,
	// the address of our metadata.
	OwnEntityID string `yaml:"own_entity_id"`
	// Attribute that is the login. Default: the NameID.
	Attribute string `yaml:"attribute"`
	// Format of the NameID to request. No other is then accepted. Default: chosen by the provider.
	NameIDFormat string `yaml:"name_id_format"`
	// Key (PEM, PKCS #8, RSA or ECDSA on P-256) that signs requests. Needed if the provider accepts
	// only signed requests.
	KeyFile string `yaml:"key_file"`
	// Certificate of this key.
	CertificateFile string `yaml:"certificate_file"`
}

// check returns all faults.
func (s SAML) check() []error {
	var faults []error
	must := func(ok bool, text string) {
		if !ok {
			faults = append(faults, errors.New(text))
		}
	}
	if s.MetadataFile == "" {
		must(s.EntityID != "" && setting.IsHTTP(s.SSOURL) && s.CertificatesFile != "", "want metadata_file, or entity_id, sso_url and certificates_file")
	} else {
		must(s.SSOURL == "" && s.CertificatesFile == "", "sso_url and certificates_file are in the metadata: leave them out beside metadata_file")
	}
	must((s.KeyFile == "") == (s.CertificateFile == ""), "key_file and certificate_file go together")
	return faults
}

// checkExternal returns the faults of the list, and sets defaults.
func (c *Config) checkExternal() (faults []error) {
	seen := map[string]bool{strings.ToLower(LocalIssuer): true}
	for i := range c.External {
		e := &c.External[i]
		if name := strings.ToLower(e.Name); name == "" || seen[name] || strings.ContainsAny(name, "/?#") {
			faults = append(faults, fmt.Errorf("external[%d].name: want a unique name without / ? #, other than %s", i, LocalIssuer))
		} else {
			seen[name] = true
		}
		if e.SAML != (SAML{}) {
			for _, err := range e.SAML.check() {
				faults = append(faults, fmt.Errorf("external[%d].saml: %w", i, err))
			}
			if e.Issuer != "" || e.ClientID != "" || e.SecretFile != "" || len(e.Scopes) > 0 || e.Claim != "" || e.AuthoritiesFile != "" {
				faults = append(faults, fmt.Errorf("external[%d]: want saml or the settings of OpenID Connect, not both", i))
			}
			continue
		}
		if !setting.IsHTTP(e.Issuer) {
			faults = append(faults, fmt.Errorf("external[%d].issuer: want the address of the provider", i))
		}
		if e.ClientID == "" {
			faults = append(faults, fmt.Errorf("external[%d].client_id: want our identifier at the provider", i))
		}
		if e.Claim == "" {
			e.Claim = "sub"
		}
	}
	fits := func(k Client) bool { return k.ID == c.SignIn.DefaultClient && k.SecretFile == "" && k.PasswordGrant }
	if id := c.SignIn.DefaultClient; c.dev && id == DevClient && !slices.ContainsFunc(c.Clients, fits) {
		c.SignIn.DefaultClient = "" // the list of serve --dev was replaced
	} else if id != "" && !slices.ContainsFunc(c.Clients, fits) {
		faults = append(faults, fmt.Errorf("signin.default_client: %s: want the id of a client without secret_file and with password_grant", id))
	}
	for i, client := range c.Clients {
		for _, address := range client.RedirectURIs {
			if err := checkRedirect(address); err != nil {
				faults = append(faults, fmt.Errorf("clients[%d].redirect_uris: %w", i, err))
			}
		}
	}
	return faults
}

// checkRedirect refuses an address that a browser would execute or complete, and one that our
// fragment cannot follow (RFC 6749, 3.1.2).
func checkRedirect(address string) error {
	scheme, rest, found := strings.Cut(address, ":")
	switch scheme = strings.ToLower(scheme); {
	case !found || rest == "" || strings.ContainsAny(scheme, "/?# "):
		return errors.New("want absolute addresses, with a scheme")
	case isOneOf(scheme, "javascript", "data", "vbscript", "file", "blob", "about"):
		return fmt.Errorf("%s: is not a scheme of an application's address", scheme)
	case strings.ContainsAny(address, "#\\ ;,'\"<>") || strings.ContainsFunc(address, func(r rune) bool { return r < 0x21 || r > 0x7e }):
		return errors.New("want addresses without fragment, as they are sent: ASCII, percent-encoded")
	case (scheme == "http" || scheme == "https") && !setting.IsHTTP(address):
		return errors.New("want a host after http:// and https://")
	}
	return nil
}
