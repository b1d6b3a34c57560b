// SPDX-License-Identifier: Apache-2.0

package user

import (
	"context"
	"errors"

	"tamga/internal/domain/audit"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/lock"
	"tamga/internal/domain/notify"
)

// ExternalLogin is a login at an identity provider; the local one is at
// Service.LocalIssuer.
type ExternalLogin struct {
	Login  string
	Issuer string
}

// MaxIssuer is the longest name of an identity provider, in characters.
const MaxIssuer = 255

// local reports whether an issuer is this identity provider: its name or "".
func (s *Service) local(issuer string) bool {
	return issuer == "" || FoldIssuer(issuer) == FoldIssuer(s.LocalIssuer)
}

// checkIssuer refuses a text that cannot be the name of an identity provider. The name
// need not be in Service.Issuers: a login may be set before its issuer is configured.
func (s *Service) checkIssuer(issuer string) error {
	if s.local(issuer) {
		return nil
	}
	return checkName("issuerName", issuer, 1, MaxIssuer)
}

// SetLocalLogin adds or replaces the local login. Faults: user_not_found,
// invalid_parameters, duplicate_login.
func (s *Service) SetLocalLogin(ctx context.Context, who audit.Principal, userID, login string) error {
	if err := checkLogin(login); err != nil {
		return err
	}
	locked := lock.User(userID).And(loginLocks(login))
	return s.changeLocked(ctx, locked, who, userID, func(ctx context.Context) error {
		err := s.freeLogin(ctx, userID, login)
		if err == nil {
			err = s.LoginStore.SetLogin(ctx, userID, login, FoldLogin(login))
		}
		if errors.Is(err, ErrDuplicate) {
			return loginTaken(login).With(err)
		}
		return err
	})
}

// SetLogin adds or replaces the login at an issuer; the local issuer makes it local. An
// empty login removes the login. Faults: user_not_found, invalid_parameters,
// duplicate_login.
func (s *Service) SetLogin(ctx context.Context, who audit.Principal, userID string, l ExternalLogin) error {
	switch {
	case l.Issuer == "":
		return fault.Newf(fault.InvalidParameters, "IssuerName: missing, want the name of an identity provider; %s makes the login local", s.LocalIssuer)
	case l.Login == "":
		return s.DeleteLogin(ctx, who, userID, l.Issuer)
	case s.local(l.Issuer):
		return s.SetLocalLogin(ctx, who, userID, l.Login)
	}
	if err := errors.Join(checkLogin(l.Login), s.checkIssuer(l.Issuer)); err != nil {
		return err
	}
	return s.change(ctx, who, userID, func(ctx context.Context) error {
		had, err := s.LoginStore.ExternalLogins(ctx, userID)
		if err != nil {
			return err
		}
		err = s.LoginStore.SetExternalLogin(ctx, userID, l, FoldIssuer(l.Issuer), FoldLogin(l.Login))
		if errors.Is(err, ErrDuplicate) {
			return loginTaken(l.Login).With(err)
		}
		same := false
		for _, old := range had {
			if FoldIssuer(old.Issuer) != FoldIssuer(l.Issuer) {
				continue
			}
			if same = FoldLogin(old.Login) == FoldLogin(l.Login); err == nil && !same {
				err = s.end(ctx, who, userID, "a login was changed") // sign-ins by the replaced login end
			}
		}
		if err != nil || same {
			return err
		}
		return s.Events.Emit(ctx, notify.Event{Type: notify.UserFactorChanged, UserID: userID, Actor: who.UserID, Factor: notify.FactorLogin})
	})
}

// Logins lists the logins of a user: the local one first, the others by issuer. The
// fault is user_not_found.
func (s *Service) Logins(ctx context.Context, who audit.Principal, userID string) ([]ExternalLogin, error) {
	info, err := s.ByID(ctx, who, userID)
	if err != nil {
		return nil, err
	}
	var list []ExternalLogin
	if info.Login != "" {
		list = append(list, ExternalLogin{Login: info.Login, Issuer: s.LocalIssuer})
	}
	external, err := s.LoginStore.ExternalLogins(ctx, userID)
	return append(list, external...), err
}

// DeleteLocalLogin removes the local login and ends all tokens, since they were obtained
// with it. Without a local login it only ends tokens. The fault is user_not_found.
func (s *Service) DeleteLocalLogin(ctx context.Context, who audit.Principal, userID string) error {
	return s.change(ctx, who, userID, func(ctx context.Context) error {
		if err := s.LoginStore.SetLogin(ctx, userID, "", ""); err != nil {
			return err
		}
		return s.end(ctx, who, userID, "a login was removed")
	})
}

// externalMethod is [audit.Principal.Method] of a user who signed in at another identity
// provider.
const externalMethod = "saml"

// DeleteLogin removes the login at an issuer, the local one when that is the local
// issuer. Without an issuer it removes the login at the issuer where the operator signed
// in, and does nothing for an operator who signed in here. Faults: user_not_found,
// invalid_parameters; wrong_operation for an operator who signed in elsewhere and has
// logins at several providers.
func (s *Service) DeleteLogin(ctx context.Context, who audit.Principal, userID, issuer string) error {
	if issuer == "" {
		err := s.Reach(ctx, who, userID)
		if err == nil {
			issuer, err = s.issuerOf(ctx, who)
		}
		if err != nil || issuer == "" {
			return err
		}
	}
	if s.local(issuer) {
		return s.DeleteLocalLogin(ctx, who, userID)
	}
	if err := s.checkIssuer(issuer); err != nil {
		return err
	}
	return s.change(ctx, who, userID, func(ctx context.Context) error {
		if err := s.LoginStore.DeleteExternalLogin(ctx, userID, FoldIssuer(issuer)); err != nil {
			return err
		}
		return s.end(ctx, who, userID, "a login was removed")
	})
}

// issuerOf returns the identity provider at which an operator signed in; "" for this one.
func (s *Service) issuerOf(ctx context.Context, who audit.Principal) (string, error) {
	if who.Method != externalMethod {
		return "", nil
	}
	logins, err := s.LoginStore.ExternalLogins(ctx, who.UserID)
	if err != nil {
		return "", err
	}
	if len(logins) != 1 {
		return "", fault.New(fault.WrongOperation, "issuerName: missing, and you have logins at several identity providers: name the one that is meant in the query")
	}
	return logins[0].Issuer, nil
}
