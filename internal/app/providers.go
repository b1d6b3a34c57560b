// SPDX-License-Identifier: Apache-2.0

package app

import (
	"crypto"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"os"

	"tamga/internal/adapter/idp"
	"tamga/internal/config"
	"tamga/internal/domain/signin"
	"tamga/internal/web/tokenapi"
)

// providers returns the external identity providers of the configuration.
func (b *Base) providers() ([]signin.Provider, error) {
	var list []signin.Provider
	for i, c := range b.Config.External {
		what := fmt.Sprintf("external[%d]", i)
		if c.SAML != (config.SAML{}) {
			p, err := b.samlProvider(c, what+".saml")
			if err != nil {
				return nil, err
			}
			list = append(list, p)
			continue
		}
		secret, err := optionalSecret(b.Config, c.SecretFile, what+".secret_file")
		if err != nil {
			return nil, err
		}
		roots, err := roots(b.Config, c.AuthoritiesFile)
		if err != nil {
			return nil, fmt.Errorf("%s.authorities_file: %w", what, err)
		}
		p, err := idp.New(idp.Options{
			Name: c.Name, Title: c.Title, Issuer: c.Issuer, ClientID: c.ClientID, ClientSecret: secret,
			RedirectURL: b.idpURL() + tokenapi.ReturnPath(c.Name), Scopes: c.Scopes, Claim: c.Claim, Roots: roots, Now: b.DB.Now,
			Failed: b.notConfirmed,
		})
		if err != nil {
			return nil, fmt.Errorf("%s: %w", what, err)
		}
		list = append(list, p)
	}
	return list, nil
}

// notConfirmed logs a sign-in that an external provider did not confirm.
func (b *Base) notConfirmed(err error) {
	b.log.Warn("another identity provider did not confirm a sign-in", "error", err)
}

// samlProvider makes a SAML provider. what is its path in the configuration.
func (b *Base) samlProvider(c config.External, what string) (*idp.SAML, error) {
	s := c.SAML
	o := idp.SAMLOptions{
		Name: c.Name, Title: c.Title, EntityID: s.OwnEntityID, ReturnURL: b.idpURL() + tokenapi.ReturnPath(c.Name),
		Attribute: s.Attribute, NameIDFormat: s.NameIDFormat, Now: b.DB.Now, Failed: b.notConfirmed,
	}
	if o.EntityID == "" {
		o.EntityID = b.idpURL() + tokenapi.MetadataPath(c.Name)
	}
	if s.MetadataFile != "" {
		data, err := os.ReadFile(b.Config.Path(s.MetadataFile))
		if err == nil {
			o.Provider, err = idp.ReadSAMLMetadata(data, s.EntityID)
		}
		if err != nil {
			return nil, fmt.Errorf("%s.metadata_file: %w", what, err)
		}
	} else {
		certificates, err := certificates(b.Config, s.CertificatesFile)
		if err != nil {
			return nil, fmt.Errorf("%s.certificates_file: %w", what, err)
		}
		o.Provider = idp.SAMLProvider{EntityID: s.EntityID, SSO: s.SSOURL, Certificates: certificates}
	}
	if s.KeyFile != "" {
		certificates, err := certificates(b.Config, s.CertificateFile)
		if err != nil {
			return nil, fmt.Errorf("%s.certificate_file: %w", what, err)
		}
		o.Certificate = certificates[0].Raw
		text, err := ownFile(b.Config, s.KeyFile, what+".key_file")
		if err != nil {
			return nil, err
		}
		if o.Key, err = readPrivateKey(text); err != nil {
			return nil, fmt.Errorf("%s.key_file: %w", what, err)
		}
	}
	p, err := idp.NewSAML(o)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	return p, nil
}

// readPrivateKey reads PKCS #8 in PEM. Its error never quotes the text.
func readPrivateKey(text []byte) (crypto.Signer, error) {
	unfit := errors.New("not a private key as PEM (PRIVATE KEY); make one with: openssl pkey")
	block, _ := pem.Decode(text)
	if block == nil || block.Type != "PRIVATE KEY" {
		return nil, unfit
	}
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, unfit
	}
	signer, ok := key.(crypto.Signer)
	if !ok {
		return nil, unfit
	}
	return signer, nil
}
