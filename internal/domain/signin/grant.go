// SPDX-License-Identifier: Apache-2.0

package signin

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"unicode/utf8"

	"tamga/internal/domain/audit"
	"tamga/internal/domain/contact"
	"tamga/internal/domain/password"
	"tamga/internal/domain/session"
	"tamga/internal/domain/token"
	"tamga/internal/domain/user"
)

// PasswordGrant exchanges a login and password for a token (RFC 6749, 4.3). The login may
// also be a phone number or an e-mail address that the user signs in with. An empty
// password means "identification only". It is accepted for users with that method, through
// a client that proved itself or if the settings allow every client. Refusals are
// *token.GrantError:
//
//   - unauthorized_client: the client may not use this grant
//   - invalid_request: no resource or an unknown one, no login
//   - invalid_scope: an unknown scope
//   - invalid_grant: an unknown login, a wrong password, a user who is locked, locked out,
//     not approved or without the method. The answer and the work for it are the same in all
//     these cases, so neither text nor time reveals the case.
//   - authn_method_not_confirmed: the first step is passed and a second one is needed. It
//     is a *StepNeeded unless the user has nothing to confirm with.
//
// An attempt is counted durably before the password is derived. The count is deleted when
// the password is correct. While a user is locked out, a correct password is refused like a
// wrong one, and nothing is counted. Trusted and untrusted callers have a count and a lock
// each, so untrusted callers do not lock out a user who comes from a known address or through a client
// that proved itself. Together they have twice the guesses of one.
//
// Attempts wait for their derivation as [password.Limits] says, by the caller of
// [password.WithVisitor]. The fault too_many_requests depends on the caller only, never on
// the login.
func (s *Service) PasswordGrant(ctx context.Context, client Client, login, password, resource, scope string) (token.Token, error) {
	if !client.PasswordGrant {
		return token.Token{}, token.Refuse(token.UnauthorizedClient, "the client may not use the password grant")
	}
	if err := s.tokens.CheckResource(resource); err != nil {
		return token.Token{}, err
	}
	granted, err := token.GrantScope(scope)
	if err != nil {
		return token.Token{}, err
	}
	if login == "" {
		return token.Token{}, token.Refuse(token.InvalidRequest, "username: missing")
	}
	c, f, ok, err := s.byPassword(ctx, client, login, password)
	if err != nil {
		return token.Token{}, err
	}
	refused := wrongPassword()
	if !ok {
		return token.Token{}, refused
	}
	f.order.Scope = granted
	if f.needs = c.Scheme.SecondStep; !f.needs {
		// The user may have been locked or given another password during the derivation.
		issued, ok, err := s.tokens.Issue(ctx, f.order)
		if err == nil && !ok {
			err = refused
		}
		if err == nil {
			return issued, nil
		}
		if !wantsStep(err) { // of a policy
			return token.Token{}, err
		}
	}
	return token.Token{}, s.refuseForStep(ctx, f, func(ctx context.Context) error {
		_, err := s.unchanged(ctx, login, c)
		return err
	})
}

// byPassword checks the first step of a sign-in by login and password, or by login alone if
// the password is empty.
func (s *Service) byPassword(ctx context.Context, client Client, login, text string) (c Credential, f FirstStep, ok bool, err error) {
	proof := token.Proof{Method: methodPassword}
	if text == "" {
		proof.Method = methodIDOnly
		c, ok, err = s.identify(ctx, client, login)
	} else {
		c, ok, err = s.checkPassword(ctx, login, text)
		proof.Encoded, proof.Granted = c.Encoded, c.Directory != ""
	}
	if err != nil || !ok {
		return c, f, false, err
	}
	name := c.User.Login
	if user.FoldLogin(login) != user.FoldLogin(name) {
		name = login // a phone or an e-mail: clients compare with what they sent
	}
	return c, s.first(c.User, name, client, proof), true, nil
}

// first returns the sign-in of a user who passed the first step.
func (s *Service) first(u user.User, name string, client Client, proof token.Proof) FirstStep {
	return FirstStep{
		Who:   s.signedIn(u, name, proof.Method, client),
		order: token.Order{UserID: u.ID, Name: name, ClientID: client.ID, Proof: proof},
	}
}

// unchanged reads a user again, under the lock of the user: the user may have been locked or
// given another password since c was read. The fault is temporarily_unavailable.
func (s *Service) unchanged(ctx context.Context, login string, c Credential) (Credential, error) {
	again, known, err := s.credential(ctx, login)
	if err != nil {
		return again, err
	}
	if !known || again.User.ID != c.User.ID || again.Encoded != c.Encoded || again.Directory != c.Directory || again.DN != c.DN || again.Entry != c.Entry || again.User.Barred(s.now()) ||
		again.Scheme.Password != c.Scheme.Password || again.Scheme.IDOnly != c.Scheme.IDOnly {
		return again, changedMeanwhile()
	}
	return again, nil
}

// credential finds the user of a typed name.
func (s *Service) credential(ctx context.Context, login string) (c Credential, known bool, err error) {
	phones, err := contact.Phone.Forms(login)
	if err != nil {
		phones = []string{""}
	}
	email, err := contact.Email.Normal(login)
	if err != nil {
		email = ""
	}
	for _, phone := range phones {
		c, err = s.store.CredentialOf(ctx, user.FoldLogin(login), phone, email)
		if !errors.Is(err, session.ErrNotFound) {
			return c, err == nil, err
		}
	}
	return Credential{}, false, nil
}

// identify decides on a sign-in by name alone. No secret is tried, so nothing is counted or
// derived, for known and unknown names.
func (s *Service) identify(ctx context.Context, client Client, login string) (Credential, bool, error) {
	c, known, err := s.credential(ctx, login)
	audit.Tried(ctx, c.User.ID, c.User.Login)
	now := s.now()
	allowed := !client.Public || s.settings.IDOnlyPublic
	trusted := !client.Public || isTrusted(ctx)
	ok := known && allowed && c.Scheme.IDOnly && !c.User.Barred(now) && !c.locked(trusted, now)
	return c, ok && err == nil, err
}

// isTrusted reports whether the caller of [password.WithVisitor] is trusted. Failures of trusted and of
// untrusted callers are counted separately.
func isTrusted(ctx context.Context) bool { return password.VisitorOf(ctx).Trust != password.Untrusted }

// checkPassword checks one attempt. It does the same work for known and unknown users: one
// look-up, one counted attempt, one derivation, and one question to each directory. That is true as
// long as stored passwords have the configured cost. The password of a locked-out login is derived as well. A faster
// answer would reveal that another caller tried the user under another name. Callers bound
// how often one login is tried.
func (s *Service) checkPassword(ctx context.Context, login, text string) (Credential, bool, error) {
	if utf8.RuneCountInString(text) > password.MaxLength {
		return Credential{}, false, nil // SetPassword accepts no password of this length
	}
	c, known, err := s.credential(ctx, login)
	if err != nil {
		return Credential{}, false, err
	}
	audit.Tried(ctx, c.User.ID, c.User.Login)
	// Wait for memory before counting: a client that leaves the queue has not tried a
	// password.
	attempt, err := s.passwords.Begin(ctx, c.Encoded)
	if errors.Is(err, password.ErrEncoding) {
		err = fmt.Errorf("user %s: %w", c.User.ID, err)
	}
	if err != nil {
		return Credential{}, false, err
	}
	end := sync.OnceFunc(attempt.End)
	defer end()
	// Without a place no directory is asked, so the password of a user of a directory was not tried, and the attempt does not count for the
	// user. Passwords that are stored here are checked all the same, and count. The answer is the same unless the password matches.
	placed := s.beginAsking()
	rule := LockOut{s.settings.Failures, s.settings.Window, s.settings.LockOut, isTrusted(ctx)}
	var counted bool
	if known && (placed || c.Directory == "") {
		counted, err = s.store.BeginUserAttempt(ctx, c.User.ID, s.now(), rule)
	} else {
		counted, err = s.store.BeginAttempt(ctx, KeyOf(login), s.now(), rule) // the same work
	}
	if err != nil {
		if placed {
			s.endAsking()
		}
		return Credential{}, false, err
	}
	may := known && counted && c.Scheme.Password && !c.User.Barred(s.now())
	answer := s.askDirectories(ctx, &c, placed, may, text)
	matches := attempt.Matches(text) && c.Encoded != "" && c.Directory == ""
	end() // a directory that is slow holds no memory
	var away error
	if !may || !matches {
		matches, away = answer() // of a decoy: never
	}
	if !may || !matches {
		// While a directory is away, this is the answer for all names, also for those of no user.
		return Credential{}, false, away
	}
	if err := s.store.EndAttempt(ctx, c.User.ID, rule.Trusted); err != nil {
		return Credential{}, false, err
	}
	return c, true, nil
}
