// SPDX-License-Identifier: Apache-2.0

package signin

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"time"

	"tamga/internal/domain/audit"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/lock"
	"tamga/internal/domain/session"
	"tamga/internal/domain/token"
	"tamga/internal/domain/user"
)

// methodExternal is a sign-in at another identity provider, by any protocol.
const methodExternal = "saml"

// Provider is another identity provider.
type Provider interface {
	Name() string  // under which users have logins there: ExternalLogin.Issuer
	Title() string // for people
	// Begin returns the address to send a browser to. The provider returns state with its
	// answer. nonce and verifier, 64 characters 0-9 and a-f each, bind the answer to this
	// browser.
	Begin(ctx context.Context, state, nonce, verifier string) (string, error)
	// Finish checks the answer that a browser brought, a code or a message, and returns the
	// login of its user at the provider. Refusals of the provider are *token.GrantError.
	Finish(ctx context.Context, answer, nonce, verifier string) (string, error)
}

// PostingProvider is a provider of a protocol in which the browser posts a message from the
// provider's pages (SAML). Such a protocol has two consequences:
//
//   - The state may have at most 80 bytes (SAML 2.0 bindings, 3.5.3). A ticket is larger, so
//     the service stores the ticket, and the state is its handle.
//   - The message is valid by itself, and the provider does not know whether it was used. So
//     each handle is valid for one sign-in.
type PostingProvider interface {
	Provider
	// Metadata returns an XML document that describes this service to the provider.
	Metadata() ([]byte, error)
}

// ExternalVisit is the visit of a browser at a PostingProvider.
type ExternalVisit struct {
	Handle    [sha256.Size]byte // SHA-256 of the state that was sent
	Ticket    string            // see Service.SealTicket
	ReturnsTo string            // Pending.RedirectURI, for the page that is shown before the browser has proved that the visit is its own
	ExpiresAt time.Time
}

// ExternalStore keeps the visits at other providers.
type ExternalStore interface {
	AddExternalVisit(ctx context.Context, v ExternalVisit) error
	// ExternalVisit finds a valid visit. The error is session.ErrNotFound for a visit that
	// is unknown, expired or ended.
	ExternalVisit(ctx context.Context, handle [sha256.Size]byte, now time.Time) (ExternalVisit, error)
	// EndExternalVisit ends a visit. One statement decides, so only one caller gets true.
	EndExternalVisit(ctx context.Context, handle [sha256.Size]byte, now time.Time) (bool, error)
}

// Providers returns the other identity providers, in the order of the configuration.
func (s *Service) Providers() []Provider { return s.providers }

func (s *Service) provider(name string) (Provider, error) {
	for _, p := range s.providers {
		if p.Name() == name {
			return p, nil
		}
	}
	return nil, fault.New(fault.NotFound, "there is no identity provider of this name")
}

// BeginExternal returns the address of another provider for a browser that has a ticket of
// our login page. Faults: access_denied, object_not_found.
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
		return "", fmt.Errorf("signin: making a nonce: %w", err)
	}
	p.Provider = name
	p.ProviderNonce, p.ProviderVerifier = hex.EncodeToString(random[:32]), hex.EncodeToString(random[32:])
	state, err := s.SealTicket(p, browser, StepExternal)
	if err != nil {
		return "", err
	}
	if _, posts := provider.(PostingProvider); posts {
		if state, err = s.keepVisit(ctx, state, p.RedirectURI); err != nil {
			return "", err
		}
	}
	return provider.Begin(ctx, state, p.ProviderNonce, p.ProviderVerifier)
}

// keepVisit stores a ticket and returns its handle: 64 characters 0-9 and a-f.
func (s *Service) keepVisit(ctx context.Context, ticket, returnsTo string) (string, error) {
	var random [32]byte
	if _, err := io.ReadFull(s.rand, random[:]); err != nil {
		return "", fmt.Errorf("signin: making a handle: %w", err)
	}
	handle := hex.EncodeToString(random[:])
	return handle, s.visits.AddExternalVisit(ctx, ExternalVisit{
		Handle: sha256.Sum256([]byte(handle)), Ticket: ticket, ReturnsTo: returnsTo, ExpiresAt: s.now().Add(ticketLife),
	})
}

// posting finds a provider whose answers are posted. The fault is object_not_found.
func (s *Service) posting(name string) (PostingProvider, error) {
	p, err := s.provider(name)
	if err != nil {
		return nil, err
	}
	posting, is := p.(PostingProvider)
	if !is {
		return nil, fault.New(fault.NotFound, "the identity provider of this name answers in another way")
	}
	return posting, nil
}

// ProviderMetadata returns the XML document that describes this service to another
// provider. The fault is object_not_found.
func (s *Service) ProviderMetadata(name string) ([]byte, error) {
	p, err := s.posting(name)
	if err != nil {
		return nil, err
	}
	return p.Metadata()
}

// ExternalReturn returns the address of the client to which a browser with the answer of a
// posting provider finally goes. Every caller with the state gets it, before the browser
// has proved that the visit is its own. Faults: access_denied, object_not_found.
func (s *Service) ExternalReturn(ctx context.Context, name, state string) (string, error) {
	if _, err := s.posting(name); err != nil {
		return "", err
	}
	v, err := s.visit(ctx, state)
	return v.ReturnsTo, err
}

func (s *Service) visit(ctx context.Context, state string) (ExternalVisit, error) {
	v, err := s.visits.ExternalVisit(ctx, sha256.Sum256([]byte(state)), s.now())
	if errors.Is(err, session.ErrNotFound) {
		err = ticketRefused()
	}
	return v, err
}

// OpenExternal opens what a browser brought back from a provider. posted means that it was
// in a form. The fault is access_denied for everything that does not match, because a
// person reads it.
func (s *Service) OpenExternal(ctx context.Context, name, state, browser string, posted bool) (Pending, error) {
	provider, err := s.provider(name)
	if err != nil {
		return Pending{}, ticketRefused().With(err)
	}
	if _, posts := provider.(PostingProvider); posts != posted {
		return Pending{}, ticketRefused()
	}
	ticket, handle := state, ""
	if posted {
		v, err := s.visit(ctx, state)
		if err != nil {
			return Pending{}, err
		}
		ticket, handle = v.Ticket, state
	}
	p, err := s.OpenTicket(ticket, browser, StepExternal)
	if err != nil {
		return Pending{}, err
	}
	if p.Provider != name {
		return Pending{}, ticketRefused() // the browser was sent to another provider
	}
	p.visit = handle
	return p, nil
}

// AuthorizeExternal authorizes the user of an answer from another provider. p is a result
// of OpenExternal. The user has that login at the provider and the method external.
// Refusals are *token.GrantError: those of AuthorizeBearer, and access_denied for a user
// who is unknown or barred here.
func (s *Service) AuthorizeExternal(ctx context.Context, p Pending, answer string, a Authorization) (issued Authorized, who audit.Principal, err error) {
	if err := errors.Join(a.Check(), s.CheckRequest(a)); err != nil {
		return issued, who, firstRefusal(err)
	}
	provider, err := s.provider(p.Provider)
	if err != nil {
		return issued, who, err
	}
	login, err := provider.Finish(ctx, answer, p.ProviderNonce, p.ProviderVerifier)
	if err != nil {
		return issued, who, err
	}
	if p.visit != "" {
		// Outside the transaction: the answer is spent, whatever the result of the sign-in.
		// The answer was made for this visit (Finish), so the end of the visit is the end
		// of the answer.
		switch ended, err := s.visits.EndExternalVisit(ctx, sha256.Sum256([]byte(p.visit)), s.now()); {
		case err != nil:
			return issued, who, err
		case !ended:
			return issued, who, token.Refuse(token.AccessDenied, "the answer of the other identity provider has been used before")
		}
	}
	refused := token.Refuse(token.AccessDenied, "no user here has this login at the other identity provider, or may not sign in with it now")
	issuer, folded := user.FoldIssuer(provider.Name()), user.FoldLogin(login)
	found, err := s.store.CredentialOfExternal(ctx, issuer, folded)
	if err != nil && !errors.Is(err, session.ErrNotFound) {
		return issued, who, err
	}
	err = s.store.Atomic(ctx, lock.User(found.User.ID), func(ctx context.Context) error {
		c, err := s.store.CredentialOfExternal(ctx, issuer, folded)
		if err == nil && c.User.ID != found.User.ID {
			return changedMeanwhile()
		}
		audit.Tried(ctx, c.User.ID, c.User.Login)
		now := s.now()
		switch {
		case errors.Is(err, session.ErrNotFound):
			return refused
		case err != nil:
			return err
		case !c.Scheme.External || c.User.Barred(now) || c.locked(true, now):
			return refused
		}
		name, _, err := s.store.SignInName(ctx, c.User.ID)
		if err != nil {
			return err
		}
		f := s.first(c.User, name, a.Client, token.Proof{Method: methodExternal, Granted: true})
		who = f.Who
		issued, err = s.authorizeFirst(ctx, a, f, c.Scheme.SecondStep)
		return err
	})
	return issued, who, err
}
