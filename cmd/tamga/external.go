package main

import (
	"fmt"
	"time"

	"tamga/internal/adapter/idp"
	"tamga/internal/domain/auth"
	"tamga/internal/web/tokenapi"
)

// providers are the other identity providers of the configuration.
func (h *house) providers() ([]auth.Provider, error) {
	var list []auth.Provider
	for i, c := range h.config.External {
		what := fmt.Sprintf("external[%d]", i)
		secret, err := h.optionalSecret(c.SecretFile, what+".secret_file")
		if err != nil {
			return nil, err
		}
		roots, err := h.roots(c.AuthoritiesFile)
		if err != nil {
			return nil, fmt.Errorf("%s.authorities_file: %w", what, err)
		}
		p, err := idp.New(idp.Options{
			Name: c.Name, Title: c.Title, Issuer: c.Issuer, ClientID: c.ClientID, ClientSecret: secret,
			RedirectURL: h.idpURL() + tokenapi.ReturnPath(c.Name), Scopes: c.Scopes, Claim: c.Claim, Roots: roots, Now: time.Now,
			Failed: func(err error) { h.log.Warn("another identity provider did not confirm a sign-in", "error", err) },
		})
		if err != nil {
			return nil, fmt.Errorf("%s: %w", what, err)
		}
		list = append(list, p)
	}
	return list, nil
}
