// SPDX-License-Identifier: Apache-2.0

package signin

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"time"

	"tamga/internal/domain/audit"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/lock"
	"tamga/internal/domain/notify"
	"tamga/internal/domain/session"
	"tamga/internal/domain/token"
	"tamga/pki/x509gost"
)

// SignInCertificate is a certificate that a user signs in with.
type SignInCertificate struct {
	Thumbprint [sha256.Size]byte // SHA-256 of the DER form, by which it is found
	UserID     string
	Subject    string
	Issuer     string
	Serial     string // hexadecimal
	NotAfter   time.Time
	CreatedAt  time.Time
}

// maxCertificate is the largest accepted size of a certificate in bytes. It is checked
// before parsing.
const maxCertificate = 64 << 10

// AddCertificate lets a user sign in with a certificate, in DER, and gives the user the
// method certificate. It is for administrators. The certificate itself is checked at every
// sign-in. Faults: user_not_found, invalid_certificate, invalid_object_state for a
// certificate that a user has already.
func (s *Service) AddCertificate(ctx context.Context, userID string, der []byte) (SignInCertificate, error) {
	if len(der) > maxCertificate {
		return SignInCertificate{}, fault.Newf(fault.InvalidCertificate, "certificate: want at most %d bytes of DER", maxCertificate)
	}
	parsed, err := x509gost.ParseCertificate(der)
	if err != nil {
		return SignInCertificate{}, fault.New(fault.InvalidCertificate, "certificate: want an X.509 certificate in DER").With(err)
	}
	c := SignInCertificate{
		Thumbprint: sha256.Sum256(der), UserID: userID, Subject: parsed.Subject.String(), Issuer: parsed.Issuer.String(),
		Serial: hex.EncodeToString(parsed.SerialNumber), NotAfter: parsed.NotAfter, CreatedAt: s.now(),
	}
	err = s.store.Atomic(ctx, lock.User(userID), func(ctx context.Context) error {
		if err := s.exists(ctx, userID); err != nil {
			return err
		}
		added, err := s.methods.AddCertificate(ctx, c)
		if err != nil {
			return err
		}
		if !added {
			return fault.New(fault.InvalidObjectState, "certificate: it is the sign-in certificate of another user; take it from that user first")
		}
		if err := s.methods.SetMethod(ctx, userID, StoredMethod{methodCertificate, LevelPrimary}); err != nil {
			return err
		}
		if err := s.cancels.CancelAll(ctx, audit.Principal{}, userID, "a certificate for sign-in was added"); err != nil {
			return err
		}
		return s.tellFactor(ctx, audit.Principal{}, userID, notify.FactorCertificate)
	})
	if err != nil {
		return SignInCertificate{}, err
	}
	return c, nil
}

// RemoveCertificate removes a certificate from a user and ends every token of the user. The
// fault is object_not_found.
func (s *Service) RemoveCertificate(ctx context.Context, userID string, thumbprint [sha256.Size]byte) error {
	return s.store.Atomic(ctx, lock.User(userID), func(ctx context.Context) error {
		removed, err := s.methods.RemoveCertificate(ctx, userID, thumbprint)
		if err != nil {
			return err
		}
		if !removed {
			return fault.New(fault.NotFound, "certificate: the user does not sign in with it")
		}
		return s.end(ctx, audit.Principal{}, userID, "a certificate for sign-in was removed")
	})
}

// Certificates returns the certificates a user signs in with, oldest first.
func (s *Service) Certificates(ctx context.Context, userID string) ([]SignInCertificate, error) {
	return s.methods.CertificatesOf(ctx, userID)
}

// AuthenticateCertificate returns the principal of a client certificate, in DER. The caller
// must have checked the possession of its key, its chain, usage, validity and revocation.
// AuthenticateCertificate decides which user the certificate belongs to and whether that
// user may sign in with it now. That includes the policies about Issue, as for a token: a
// user whose sign-ins are confirmed gets a token with the certificate first. Every refusal is
// the fault invalid_token with the same text.
func (s *Service) AuthenticateCertificate(ctx context.Context, der []byte) (audit.Principal, error) {
	b, needsStep, why, err := s.certified(ctx, der)
	if err != nil {
		return audit.Principal{}, err
	}
	if why == nil && needsStep {
		why = errors.New("signin: certificate: its user has a second step to do")
	}
	if why == nil { // a request with a certificate is a sign-in that cannot be confirmed here
		var refused *token.GrantError
		if err := s.tokens.Issuable(ctx, b.User.ID, nil, token.Proof{Method: methodCertificate}); errors.As(err, &refused) {
			why = err
		} else if err != nil {
			return audit.Principal{}, err
		}
	}
	if why != nil {
		return audit.Principal{}, fault.New(fault.Unauthorized, "no user signs in with this certificate").With(why)
	}
	b.Token.Method = methodCertificate
	return b.Principal(), nil
}

// certified finds the user of a certificate, and reports whether the user must pass a
// second step. why is for the log: the reason why the user may not sign in.
func (s *Service) certified(ctx context.Context, der []byte) (b token.Bearer, needsStep bool, why, err error) {
	b, scheme, err := s.methods.BearerByCertificate(ctx, sha256.Sum256(der))
	audit.Tried(ctx, b.User.ID, b.User.Login)
	switch {
	case errors.Is(err, session.ErrNotFound):
		return b, false, errors.New("signin: certificate: of no user"), nil
	case err != nil:
		return b, false, nil, err
	case b.User.Barred(s.now()):
		return b, false, errors.New("signin: certificate: its user is locked or not approved"), nil
	case !scheme.Certificate:
		return b, false, errors.New("signin: certificate: its user may not sign in with certificates"), nil
	}
	return b, scheme.SecondStep, nil, nil
}

// byCertificate checks the first step of a sign-in by certificate. why is as of certified.
func (s *Service) byCertificate(ctx context.Context, client Client, der []byte) (f FirstStep, why, err error) {
	b, needsStep, why, err := s.certified(ctx, der)
	if err != nil || why != nil {
		return f, why, err
	}
	name, _, err := s.store.SignInName(ctx, b.User.ID)
	if errors.Is(err, session.ErrNotFound) {
		return f, err, nil // deleted meanwhile
	}
	if err != nil {
		return f, nil, err
	}
	thumbprint := sha256.Sum256(der)
	f = s.first(b.User, name, client, token.Proof{Method: methodCertificate, Thumbprint: thumbprint[:]})
	f.needs = needsStep
	return f, nil, nil
}

func unknownCertificate() error {
	return token.Refuse(token.AccessDenied, "no user signs in with this certificate")
}

// RevokeGrants ends all access tokens, codes, grants and refresh tokens of a user. The
// fault is user_not_found.
func (s *Service) RevokeGrants(ctx context.Context, who audit.Principal, userID string) error {
	return s.store.Atomic(ctx, lock.User(userID), func(ctx context.Context) error {
		if err := s.reach.Reach(ctx, who, userID); err != nil {
			return err
		}
		return s.sessions.EndAll(ctx, userID)
	})
}

// EndSignIns is RevokeGrants by which users end all their own sign-ins, this one included.
func (s *Service) EndSignIns(ctx context.Context, who audit.Principal) error {
	return s.store.Atomic(ctx, lock.User(who.UserID), func(ctx context.Context) error { return s.sessions.EndAll(ctx, who.UserID) })
}
