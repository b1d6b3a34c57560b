package auth

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/google/uuid"

	"tamga/internal/domain/audit"
	"tamga/internal/domain/fault"
	"tamga/pki/x509gost"
)

// SignInCertificate is a certificate that a user signs in with.
type SignInCertificate struct {
	Thumbprint [sha256.Size]byte // SHA-256 of the DER form; what it is found by
	UserID     string
	Subject    string
	Issuer     string
	Serial     string // hexadecimal
	NotAfter   time.Time
	CreatedAt  time.Time
}

// maxCertificate bounds a certificate before it is parsed, in octets.
const maxCertificate = 64 << 10

// AddCertificate lets a user sign in with a certificate, in DER, and gives them the
// method certificate. It is for administrators; whether the certificate is good is
// judged each time it is used. Faults: user_not_found, invalid_certificate,
// invalid_object_state for one that is somebody's already.
func (s *Service) AddCertificate(ctx context.Context, userID string, der []byte) (SignInCertificate, error) {
	if len(der) > maxCertificate {
		return SignInCertificate{}, fault.Newf(fault.InvalidCertificate, "certificate: want at most %d octets of DER", maxCertificate)
	}
	parsed, err := x509gost.ParseCertificate(der)
	if err != nil {
		return SignInCertificate{}, fault.New(fault.InvalidCertificate, "certificate: want an X.509 certificate in DER").With(err)
	}
	c := SignInCertificate{
		Thumbprint: sha256.Sum256(der), UserID: userID, Subject: parsed.Subject.String(), Issuer: parsed.Issuer.String(),
		Serial: hex.EncodeToString(parsed.SerialNumber), NotAfter: parsed.NotAfter, CreatedAt: s.now(),
	}
	err = s.store.Atomic(ctx, func(ctx context.Context) error {
		if err := s.exists(ctx, userID); err != nil {
			return err
		}
		added, err := s.store.AddCertificate(ctx, c)
		if err != nil {
			return err
		}
		if !added {
			return fault.New(fault.InvalidObjectState, "certificate: somebody signs in with it already; take it from them first")
		}
		return s.store.SetMethod(ctx, userID, StoredMethod{methodCertificate, LevelPrimary}, c.CreatedAt)
	})
	if err != nil {
		return SignInCertificate{}, err
	}
	return c, nil
}

// RemoveCertificate takes a certificate from a user and ends every token. The fault
// is object_not_found.
func (s *Service) RemoveCertificate(ctx context.Context, userID string, thumbprint [sha256.Size]byte) error {
	return s.store.Atomic(ctx, func(ctx context.Context) error {
		removed, err := s.store.RemoveCertificate(ctx, userID, thumbprint)
		if err != nil {
			return err
		}
		if !removed {
			return fault.New(fault.NotFound, "certificate: the user does not sign in with it")
		}
		return s.store.RevokeTokens(ctx, userID)
	})
}

// Certificates lists the certificates a user signs in with, oldest first.
func (s *Service) Certificates(ctx context.Context, userID string) ([]SignInCertificate, error) {
	return s.store.CertificatesOf(ctx, userID)
}

// AuthenticateCertificate turns a client certificate, in DER, into the one who acts.
// The door has seen proof of its key and has judged chain, usage, validity and
// revocation; here is decided whose it is and whether they may sign in with it now.
// Every refusal is the fault invalid_token with the same text.
func (s *Service) AuthenticateCertificate(ctx context.Context, der []byte) (audit.Principal, error) {
	b, why, err := s.certified(ctx, der)
	if err != nil {
		return audit.Principal{}, err
	}
	if why != nil {
		return audit.Principal{}, fault.New(fault.Unauthorized, "nobody signs in with this certificate").With(why)
	}
	b.Token.Method = methodCertificate
	return principal(b, ""), nil
}

// certified finds who signs in with a certificate; why says to the log what is
// against it.
func (s *Service) certified(ctx context.Context, der []byte) (b Bearer, why, err error) {
	b, scheme, err := s.store.BearerByCertificate(ctx, sha256.Sum256(der))
	switch {
	case errors.Is(err, ErrNotFound):
		return b, errors.New("auth: certificate: nobody's"), nil
	case err != nil:
		return b, nil, err
	case b.User.Barred(s.now()):
		return b, errors.New("auth: certificate: its user is locked or not approved"), nil
	case !scheme.Certificate:
		return b, errors.New("auth: certificate: its user may not sign in with certificates"), nil
	case scheme.SecondStep:
		return b, errors.New("auth: certificate: its user has a second step to do"), nil
	}
	return b, nil, nil
}

// Authorization is a request for a code (RFC 6749, 4.1.1).
type Authorization struct {
	Client      Client // as found by Clients.Find: it proves itself when it exchanges the code
	RedirectURI string // one of the client's
	Scope       string
	Resource    string
}

// Check refuses a request that no certificate could make good. A refusal of the
// client or its address must not be sent to that address (RFC 6749, 4.1.2.1):
// it is a *GrantError with unauthorized_client or invalid_request. AuthorizeCertificate
// checks the same and more.
func (a Authorization) Check() error {
	if len(a.Client.RedirectURIs) == 0 {
		return &GrantError{UnauthorizedClient, "the client may not use authorization codes"}
	}
	if !slices.Contains(a.Client.RedirectURIs, a.RedirectURI) {
		return &GrantError{InvalidRequest, "redirect_uri: not one of the client's"}
	}
	return nil
}

// AuthorizeCertificate issues a code to whoever presents a client certificate, under
// the conditions of AuthenticateCertificate. The code has 64 characters 0-9 and a-f,
// is good for Settings.CodeLife and once. Refusals are *GrantError: those of
// Authorization.Check; invalid_request for the resource, invalid_scope,
// access_denied for the certificate.
func (s *Service) AuthorizeCertificate(ctx context.Context, der []byte, a Authorization) (code string, who audit.Principal, err error) {
	if err := a.Check(); err != nil {
		return "", who, err
	}
	if err := s.checkResource(a.Resource); err != nil {
		return "", who, err
	}
	scope, err := grantScope(a.Scope)
	if err != nil {
		return "", who, err
	}
	b, why, err := s.certified(ctx, der)
	if err != nil {
		return "", who, err
	}
	if why != nil {
		return "", who, &GrantError{AccessDenied, "nobody signs in with this certificate"}
	}
	var random [32]byte
	if _, err := io.ReadFull(s.rand, random[:]); err != nil {
		return "", who, fmt.Errorf("auth: making a code: %w", err)
	}
	code = hex.EncodeToString(random[:])
	thumbprint := sha256.Sum256(der)
	err = s.store.AddCode(ctx, Code{
		Hash: sha256.Sum256([]byte(code)), UserID: b.User.ID, ClientID: a.Client.ID, RedirectURI: a.RedirectURI,
		Scope: scope, Method: methodCertificate, Thumbprint: thumbprint[:], ExpiresAt: s.now().Add(s.settings.CodeLife),
	})
	if err != nil {
		return "", who, err
	}
	b.Token.Method, b.Token.ClientID = methodCertificate, a.Client.ID
	return code, principal(b, ""), nil
}

// CodeGrant exchanges a code for a token (RFC 6749, 4.1.3). One conditional statement
// spends the code; a code that comes a second time ends the token it was exchanged
// for (RFC 6749, 4.1.2). The resource was settled when the code was made; a client
// that names one again has to name one of ours. Refusals are *GrantError:
// unauthorized_client and invalid_request; invalid_grant for a code that is unknown,
// expired, spent, of another client or another redirect address, or of a user who may
// not sign in any more.
func (s *Service) CodeGrant(ctx context.Context, client Client, code, redirectURI, resource string) (Token, error) {
	if len(client.RedirectURIs) == 0 {
		return Token{}, &GrantError{UnauthorizedClient, "the client may not use authorization codes"}
	}
	if resource != "" {
		if err := s.checkResource(resource); err != nil {
			return Token{}, err
		}
	}
	if code == "" {
		return Token{}, &GrantError{InvalidRequest, "code: missing"}
	}
	hash := sha256.Sum256([]byte(code))
	refused := &GrantError{InvalidGrant, "the code is unknown, expired or used, or was made for another client or address"}
	var issued Token
	var refusal error
	err := s.store.Atomic(ctx, func(ctx context.Context) error {
		issued, refusal = Token{}, nil
		id, err := uuid.NewRandomFromReader(s.rand)
		if err != nil {
			return fmt.Errorf("auth: making an identifier: %w", err)
		}
		now := s.now()
		c, spent, err := s.store.SpendCode(ctx, hash, client.ID, redirectURI, id.String(), now)
		if err != nil {
			return err
		}
		if !spent {
			refusal = refused
			return s.store.EndReplayed(ctx, hash, client.ID)
		}
		name, _, err := s.store.SignInName(ctx, c.UserID)
		if err != nil {
			return err
		}
		token, record, err := s.sign(id, c.UserID, name, client, c.Method, c.Scope)
		if err != nil {
			return err
		}
		ok, err := s.store.AddToken(ctx, record, Proof{Method: c.Method, Thumbprint: c.Thumbprint, Now: now})
		if err != nil {
			return err
		}
		if !ok {
			refusal = refused // the code stays spent
			return nil
		}
		issued = token
		return nil
	})
	if err == nil {
		err = refusal
	}
	return issued, err
}

// RevokeGrants ends every token and code of a user. The fault is user_not_found.
func (s *Service) RevokeGrants(ctx context.Context, who audit.Principal, userID string) error {
	return s.store.Atomic(ctx, func(ctx context.Context) error {
		if err := s.reach.Reach(ctx, who, userID); err != nil {
			return err
		}
		return s.store.RevokeTokens(ctx, userID)
	})
}
