// SPDX-License-Identifier: Apache-2.0

package app

import (
	"crypto"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"time"

	"tamga/internal/adapter/idp"
	"tamga/internal/config"
	"tamga/internal/domain/signin"
	"tamga/internal/files"
	"tamga/internal/web/tokenapi"
)

// providers returns the external identity providers of the configuration.
func (b *Base) providers() ([]signin.Provider, error) {
	var list []signin.Provider
	for i := range b.Config.External {
		p, err := provider(b.Config, i, b.DB.Now, b.notConfirmed)
		if err != nil {
			return nil, err
		}
		list = append(list, p)
	}
	return list, nil
}

// provider returns the external identity provider with a number. It reads the files of its settings.
func provider(conf *config.Config, i int, now func() time.Time, failed func(error)) (signin.Provider, error) {
	c, what := conf.External[i], fmt.Sprintf("external[%d]", i)
	if c.SAML != (config.SAML{}) {
		p, err := samlProvider(conf, c, what+".saml", now, failed)
		if err != nil {
			return nil, err
		}
		return p, nil
	}
	secret, err := optionalSecret(conf, c.SecretFile, what+".secret_file")
	if err != nil {
		return nil, err
	}
	roots, err := roots(conf, c.AuthoritiesFile)
	if err != nil {
		return nil, fmt.Errorf("%s.authorities_file: %w", what, err)
	}
	p, err := idp.New(idp.Options{
		Name: c.Name, Title: c.Title, Issuer: c.Issuer, ClientID: c.ClientID, ClientSecret: secret,
		RedirectURL: conf.BaseURL() + conf.IDP + tokenapi.ReturnPath(c.Name), Scopes: c.Scopes, Claim: c.Claim, Roots: roots, Now: now,
		Failed: failed,
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	return p, nil
}

// notConfirmed logs a sign-in that an external provider did not confirm.
func (b *Base) notConfirmed(err error) {
	b.log.Warn("another identity provider did not confirm a sign-in", "error", err)
}

// samlProvider makes a SAML provider. what is its path in the configuration.
func samlProvider(conf *config.Config, c config.External, what string, now func() time.Time, failed func(error)) (*idp.SAML, error) {
	s, idpURL := c.SAML, conf.BaseURL()+conf.IDP
	o := idp.SAMLOptions{
		Name: c.Name, Title: c.Title, EntityID: s.OwnEntityID, ReturnURL: idpURL + tokenapi.ReturnPath(c.Name),
		Attribute: s.Attribute, NameIDFormat: s.NameIDFormat, Now: now, Failed: failed,
	}
	if o.EntityID == "" {
		o.EntityID = idpURL + tokenapi.MetadataPath(c.Name)
	}
	if s.MetadataFile != "" {
		data, err := files.Bounded(conf.Path(s.MetadataFile), idp.MaxMetadata)
		if err == nil {
			o.Provider, err = idp.ReadSAMLMetadata(data, s.EntityID)
		}
		if err != nil {
			return nil, fmt.Errorf("%s.metadata_file: %w", what, err)
		}
	} else {
		certificates, err := certificates(conf, s.CertificatesFile)
		if err != nil {
			return nil, fmt.Errorf("%s.certificates_file: %w", what, err)
		}
		o.Provider = idp.SAMLProvider{EntityID: s.EntityID, SSO: s.SSOURL, Certificates: certificates}
	}
	if s.KeyFile != "" {
		certificates, err := certificates(conf, s.CertificateFile)
		if err != nil {
			return nil, fmt.Errorf("%s.certificate_file: %w", what, err)
		}
		o.Certificate = certificates[0].Raw
		text, err := ownFile(conf, s.KeyFile, what+".key_file")
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
