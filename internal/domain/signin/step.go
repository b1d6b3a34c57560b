// SPDX-License-Identifier: Apache-2.0

package signin

import (
	"context"
	"errors"

	"tamga/internal/domain/audit"
	"tamga/internal/domain/confirm"
	"tamga/internal/domain/confirm/what"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/lock"
	"tamga/internal/domain/token"
	"tamga/internal/domain/user"
)

// Confirmations keeps second steps; *confirm.Service satisfies it.
type Confirmations interface {
	Create(ctx context.Context, who audit.Principal, o confirm.Order) (confirm.Record, error)
	Open(ctx context.Context, userID, after string, limit int) ([]confirm.Record, error)
	Take(ctx context.Context, who audit.Principal, id string, sum what.Digest) (*confirm.Execution, error)
}

// FirstStep is a sign-in that has passed its first step. Who has no token yet.
type FirstStep struct {
	Who   audit.Principal
	proof token.Proof
	name  string // what the user signed in with
}

// FirstByPassword checks a login and a password, or a login alone, as PasswordGrant does.
// Refusals are those of PasswordGrant, without authn_method_not_confirmed.
func (s *Service) FirstByPassword(ctx context.Context, client Client, login, text string) (FirstStep, error) {
	if !client.PasswordGrant {
		return FirstStep{}, token.Refuse(token.UnauthorizedClient, "the client may not use the password grant")
	}
	proof := token.Proof{Method: methodPassword}
	var c Credential
	var ok bool
	var err error
	switch {
	case login == "":
	case text == "":
		proof.Method = methodIDOnly
		c, ok, err = s.identify(ctx, client, login)
	default:
		c, ok, err = s.checkPassword(ctx, login, text)
		proof.Encoded = c.Encoded
	}
	if err != nil {
		return FirstStep{}, err
	}
	if !ok {
		return FirstStep{}, wrongPassword()
	}
	name := c.User.Login
	if user.FoldLogin(login) != user.FoldLogin(name) {
		name = login // a phone or an e-mail: clients compare with what they sent
	}
	return FirstStep{Who: s.signedIn(c.User, name, proof.Method, client), proof: proof, name: name}, nil
}

// SecondStep returns the record of the second step of a sign-in. needed is false if the
// user has no second step and no policy asks for a confirmation. A sign-in that is repeated
// within the time of its code gets the same record, so that attempts stay counted. One that
// a device confirms gets a new record each time: another program that knows the password
// must not share it. Refusals: access_denied for a user who may have no token; those of
// confirm.Service.
func (s *Service) SecondStep(ctx context.Context, f FirstStep) (r confirm.Record, needed bool, err error) {
	if err := s.tokens.Issuable(ctx, f.Who.UserID, nil, token.Proof{SecondStep: true}); err != nil {
		return r, false, err
	}
	second, err := s.secondMethods(ctx, f.Who.UserID)
	if err != nil {
		return r, false, err
	}
	if len(second) == 0 {
		var g *token.GrantError
		switch err := s.tokens.Issuable(ctx, f.Who.UserID, nil, f.proof); {
		case err == nil:
			return r, false, nil
		case !errors.As(err, &g) || g.Code != token.SecondStepNeeded:
			return r, false, err
		}
	}
	if s.steps == nil {
		return r, false, secondStepNeeded()
	}
	open, err := s.steps.Open(ctx, f.Who.UserID, "", confirm.MaxPage)
	if err != nil {
		return r, false, err
	}
	for _, r := range open {
		if r.Purpose == confirm.ForSignIn && r.ClientID == f.Who.ClientID && r.State == confirm.Challenged && !confirm.ByDevice(r.Method) {
			return r, true, nil
		}
	}
	arguments, err := what.NewValues(map[string]string{"client": f.Who.ClientID, "method": f.proof.Method}, what.IsSecretName)
	if err != nil {
		return r, false, err
	}
	r, err = s.steps.Create(ctx, f.Who, confirm.Order{Purpose: confirm.ForSignIn, Fields: what.Fields{Action: what.SignIn, Arguments: arguments}})
	return r, true, err
}

// secondMethods returns the second steps of a user, by their stored names.
func (s *Service) secondMethods(ctx context.Context, userID string) (names []string, err error) {
	list, err := s.methods.MethodsOf(ctx, userID)
	for _, m := range list {
		if known, is := MethodNamed(m.Name); is && !known.Primary && m.Level != LevelPrimary {
			names = append(names, m.Name)
		}
	}
	return names, err
}

// StepMethods reports which methods may be the second step of a user, by their stored
// names. Without a second step of their own, users confirm with any method they have, which
// is nil.
func (s *Service) StepMethods(ctx context.Context, userID string) ([]string, error) {
	return s.secondMethods(ctx, userID)
}

// SignIn issues the token of a sign-in. r is the confirmed record of its second step, which
// is spent in the transaction of the token; nil for a sign-in that needs none. The first
// step must still hold. Refusals are *token.GrantError: invalid_grant, those of
// token.Service.Issuable; and the faults of confirm.Service.
func (s *Service) SignIn(ctx context.Context, f FirstStep, r *confirm.Record) (token.Token, error) {
	o := token.Order{UserID: f.Who.UserID, Name: f.name, ClientID: f.Who.ClientID, Proof: f.proof}
	issue := func(ctx context.Context) (token.Token, error) {
		t, ok, err := s.tokens.Issue(ctx, o)
		if err == nil && !ok {
			err = token.Refuse(token.InvalidGrant, "the user may not sign in any more")
		}
		return t, err
	}
	if r == nil {
		return issue(ctx)
	}
	if r.Purpose != confirm.ForSignIn || r.UserID != f.Who.UserID || r.ClientID != f.Who.ClientID || s.steps == nil {
		return token.Token{}, fault.New(fault.InvalidTransaction, "this confirmation is not the second step of the sign-in")
	}
	o.Proof.SecondStep = true
	execution, err := s.steps.Take(ctx, f.Who, r.ID, r.What)
	if err != nil {
		return token.Token{}, err
	}
	if execution.Done {
		return token.Token{}, fault.New(fault.InvalidTransaction, "the sign-in was completed already: begin another one")
	}
	var t token.Token
	// The unit locks the user before the record, as every issue of a token does.
	err = s.store.Atomic(ctx, lock.User(f.Who.UserID), func(ctx context.Context) error {
		return execution.Spend(ctx, nil, func(ctx context.Context) (err error) {
			t, err = issue(ctx)
			return err
		})
	})
	if err != nil {
		return token.Token{}, errors.Join(err, execution.Release(ctx))
	}
	return t, nil
}
