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
	"tamga/internal/domain/session"
	"tamga/internal/domain/token"
	"tamga/internal/domain/user"
)

// methodExternal is a sign-in at another identity provider, whatever its protocol.
const methodExternal = "saml"

// Provider is another identity provider.
type Provider interface {
	Name() string  // by which users have logins there: ExternalLogin.Issuer
	Title() string // for people
	// Begin is the address to send a browser to. state comes back with it; nonce and
	// verifier, 64 characters 0-9 and a-f each, bind what comes back to this browser.
	Begin(ctx context.Context, state, nonce, verifier string) (string, error)
	// Finish turns what a browser came back with, a code or a message, into the login of
	// its user there. Refusals of the provider are *token.GrantError.
	Finish(ctx context.Context, answer, nonce, verifier string) (string, error)
}

// PostingProvider is a provider of a protocol in which the browser posts a message from
// the provider's pages (SAML). That has consequences:
//   - its state may have 80 octets at most (SAML 2.0 bindings, 3.5.3), too few for a
//     ticket: the ticket is kept here and the state is its handle;
//   - the message speaks for itself, and nobody at the provider knows whether it has been
//     used: each handle is good for one sign-in.
type PostingProvider interface {
	Provider
	// Metadata describes this service to the provider: an XML document.
	Metadata() ([]byte, error)
}

// ExternalVisit is a browser that is away at a PostingProvider.
type ExternalVisit struct {
	Handle    [sha256.Size]byte // SHA-256 of the state that was sent along
	Ticket    string            // see Service.SealTicket
	ReturnsTo string            // Pending.RedirectURI, for the page that a browser sees before it has shown that it is the one
	ExpiresAt time.Time
}

// ExternalStore keeps the visits at other providers.
type ExternalStore interface {
	AddExternalVisit(ctx context.Context, v ExternalVisit) error
	// ExternalVisit finds a visit that lives and was not ended. session.ErrNotFound.
	ExternalVisit(ctx context.Context, handle [sha256.Size]byte, now time.Time) (ExternalVisit, error)
	// EndExternalVisit ends it. One statement decides: true is told once.
	EndExternalVisit(ctx context.Context, handle [sha256.Size]byte, now time.Time) (bool, error)
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
	if _, posts := provider.(PostingProvider); posts {
		if state, err = s.keepVisit(ctx, state, p.RedirectURI); err != nil {
			return "", err
		}
	}
	return provider.Begin(ctx, state, p.ProviderNonce, p.ProviderVerifier)
}

// keepVisit keeps a ticket and returns its handle: 64 characters 0-9 and a-f.
func (s *Service) keepVisit(ctx context.Context, ticket, returnsTo string) (string, error) {
	var random [32]byte
	if _, err := io.ReadFull(s.rand, random[:]); err != nil {
		return "", fmt.Errorf("auth: making a handle: %w", err)
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

// ProviderMetadata describes this service to another provider: an XML document. Faults:
// object_not_found.
func (s *Service) ProviderMetadata(name string) ([]byte, error) {
	p, err := s.posting(name)
	if err != nil {
		return nil, err
	}
	return p.Metadata()
}

// ExternalReturn is where a browser goes in the end that brings an answer of a posting
// provider: an address of the client. It is told to whoever has the state, before the
// browser has shown that it is its own. Faults: access_denied, object_not_found.
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

// OpenExternal opens what a browser brought along when it came back from a provider.
// posted: it was in a form. A person reads the refusal, so whatever does not fit together
// is one: the fault is access_denied.
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
		return Pending{}, ticketRefused() // the browser was sent to another one
	}
	p.visit = handle
	return p, nil
}

// AuthorizeExternal authorizes whoever came back from another provider with an answer;
// p is of OpenExternal. The user is the one with that login at the provider and
// the method external. Refusals are *token.GrantError: those of AuthorizeBearer, and
// access_denied for a user unknown or barred here.
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
		// Outside the transaction: what was presented is used up, whatever comes of it.
		// It was made for this visit (Finish), so that this ends its use as well.
		switch ended, err := s.visits.EndExternalVisit(ctx, sha256.Sum256([]byte(p.visit)), s.now()); {
		case err != nil:
			return issued, who, err
		case !ended:
			return issued, who, token.Refuse(token.AccessDenied, "the answer of the other identity provider has been used before")
		}
	}
	refused := token.Refuse(token.AccessDenied, "nobody here has this login at the other identity provider, or they may not sign in with it now")
	err = s.store.Atomic(ctx, func(ctx context.Context) error {
		c, err := s.store.CredentialOfExternal(ctx, user.FoldIssuer(provider.Name()), user.FoldLogin(login))
		audit.Tried(ctx, c.User.ID, c.User.Login)
		now := s.now()
		switch {
		case errors.Is(err, session.ErrNotFound):
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
		issued, err = s.authorize(ctx, a, c.User, name, token.Proof{Method: methodExternal, Granted: true}, token.Descent{}, true)
		return err
	})
	return issued, who, err
}
