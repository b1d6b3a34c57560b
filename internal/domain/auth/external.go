package auth

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"

	"tamga/internal/domain/audit"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/user"
)

// methodExternal is a sign-in at another identity provider, whatever its protocol.
const methodExternal = "saml"

// Provider is another identity provider.
type Provider interface {
	Name() string  // by which users have logins there: ExternalLogin.Issuer
	Title() string // for people
	// Begin is the address to send a browser to. state comes back with it; nonce and
	// verifier bind what comes back to this browser.
	Begin(ctx context.Context, state, nonce, verifier string) (string, error)
	// Finish turns the code a browser came back with into the login of its user there.
	// Refusals of the provider are *GrantError.
	Finish(ctx context.Context, code, nonce, verifier string) (string, error)
}

// Providers lists the other identity providers, in the order of the configuration.
func (s *Service) Providers() []Provider { return s.providers }

func (s *Service) provider(name string) (Provider, error) {
	for _, p := range s.providers {
		if p.Name() == name {
			return p, nil
		}
	}
	return nil, fault.New(fault.NotFound, "there is no identity provider of this name")
}

// BeginExternal sends a browser that has a ticket of our login page to another
// provider. Faults: access_denied, object_not_found.
func (s *Service) BeginExternal(ctx context.Context, name, ticket, browser string) (address string, err error) {
	p, err := s.OpenTicket(ticket, browser, StepLogin)
	if err != nil {
		return "", err
	}
	provider, err := s.provider(name)
	if err != nil {
		return "", err
	}
	var random [64]byte
	if _, err := io.ReadFull(s.rand, random[:]); err != nil {
		return "", fmt.Errorf("auth: making a nonce: %w", err)
	}
	p.Provider = name
	p.ProviderNonce, p.ProviderVerifier = hex.EncodeToString(random[:32]), hex.EncodeToString(random[32:])
	state, err := s.SealTicket(p, browser, StepExternal)
	if err != nil {
		return "", err
	}
	return provider.Begin(ctx, state, p.ProviderNonce, p.ProviderVerifier)
}

// AuthorizeExternal authorizes whoever came back from another provider with a code;
// p was opened at StepExternal. The user is the one with that login at the provider and
// the method external. Refusals are *GrantError: those of AuthorizeBearer, and
// access_denied for a user unknown or barred here.
func (s *Service) AuthorizeExternal(ctx context.Context, p Pending, code string, a Authorization) (issued Authorized, who audit.Principal, err error) {
	if err := errors.Join(a.Check(), s.CheckRequest(a)); err != nil {
		return issued, who, firstRefusal(err)
	}
	provider, err := s.provider(p.Provider)
	if err != nil {
		return issued, who, err
	}
	login, err := provider.Finish(ctx, code, p.ProviderNonce, p.ProviderVerifier)
	if err != nil {
		return issued, who, err
	}
	refused := &GrantError{AccessDenied, "nobody here has this login at the other identity provider, or they may not sign in with it now"}
	err = s.store.Atomic(ctx, func(ctx context.Context) error {
		c, err := s.store.CredentialOfExternal(ctx, user.FoldIssuer(provider.Name()), user.FoldLogin(login))
		now := s.now()
		switch {
		case errors.Is(err, ErrNotFound):
			return refused
		case err != nil:
			return err
		case !c.Scheme.External || c.User.Barred(now) || now.Before(c.LockedUntil):
			return refused
		case c.Scheme.SecondStep:
			return secondStepNeeded()
		}
		name, _, err := s.store.SignInName(ctx, c.User.ID)
		if err != nil {
			return err
		}
		who = s.signedIn(c.User, name, methodExternal, a.Client)
		issued, err = s.authorize(ctx, a, c.User, name, Proof{Method: methodExternal, Granted: true}, true)
		return err
	})
	return issued, who, err
}
