// SPDX-License-Identifier: Apache-2.0

package signin

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"tamga/internal/domain/audit"
	"tamga/internal/domain/confirm"
	"tamga/internal/domain/confirm/what"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/lock"
	"tamga/internal/domain/token"
	"tamga/internal/domain/vault"
)

// Confirmations keeps second steps and texts; *confirm.Service satisfies it.
type Confirmations interface {
	Create(ctx context.Context, who audit.Principal, o confirm.Draft) (confirm.Record, error)
	Find(ctx context.Context, who audit.Principal, id string) (confirm.Record, error)
	Open(ctx context.Context, userID, after string, limit int) ([]confirm.Record, error)
	Content(ctx context.Context, who audit.Principal, id string) (confirm.Content, error)
	Challenge(ctx context.Context, who audit.Principal, a confirm.Ask) (confirm.Prompt, error)
	Choices(ctx context.Context, who audit.Principal, a confirm.Ask) ([]confirm.Choice, error)
	Spend(ctx context.Context, who audit.Principal, id string, sum what.Digest, locked lock.Set, change func(ctx context.Context, r *confirm.Record) error) (spent bool, err error)
	Keep(ctx context.Context, r *confirm.Record, given []byte) error
	Given(ctx context.Context, who audit.Principal, id string) (given []byte, found bool, err error)
}

// FirstStep is a sign-in that has passed its first step. Who has no token yet.
//
// A caller that proves the first step with each call begins the second one by
// Service.SecondStep. A sign-in that cannot be proved again waits for a record of its own,
// which was made together with the first step: it ends when the account changes.
type FirstStep struct {
	Who   audit.Principal
	order token.Order // of the token that the sign-in ends with
	needs bool        // a second step, whatever the policies say
	// record is the identifier of the confirmation that the sign-in waits for, "" for a
	// caller that proves the first step with each call.
	record string
}

// FirstByPassword checks a login and a password, or a login alone, as PasswordGrant does.
// Refusals are those of PasswordGrant, without authn_method_not_confirmed.
func (s *Service) FirstByPassword(ctx context.Context, client Client, login, text string) (FirstStep, error) {
	if !client.PasswordGrant {
		return FirstStep{}, token.Refuse(token.UnauthorizedClient, "the client may not use the password grant")
	}
	if login == "" {
		return FirstStep{}, wrongPassword()
	}
	c, f, ok, err := s.byPassword(ctx, client, login, text)
	if err != nil {
		return FirstStep{}, err
	}
	if !ok {
		return FirstStep{}, wrongPassword()
	}
	f.needs = c.Scheme.SecondStep
	return f, nil
}

// FirstByCertificate identifies the user of a client certificate, in DER, under the
// conditions of AuthenticateCertificate. Refusals are *token.GrantError: unauthorized_client
// for a client that may not use codes, which is how certificates are used otherwise;
// access_denied.
func (s *Service) FirstByCertificate(ctx context.Context, client Client, der []byte) (FirstStep, error) {
	if len(client.RedirectURIs) == 0 {
		return FirstStep{}, token.Refuse(token.UnauthorizedClient, "the client may not use authorization codes, which sign-in by certificate needs")
	}
	f, why, err := s.byCertificate(ctx, client, der)
	if err == nil && why != nil {
		err = unknownCertificate()
	}
	return f, err
}

// fields is what the user confirms.
func (f *FirstStep) fields() (what.Fields, error) {
	values := map[string]string{"client": f.Who.ClientID, "method": f.order.Proof.Method}
	if f.order.Actor != nil {
		values["operator"] = f.order.Actor.Login
	}
	arguments, err := what.NewValues(values, what.IsSecretName)
	return what.Fields{Action: what.SignIn, Arguments: arguments}, err
}

// purpose is that of the record of the second step.
func (f *FirstStep) purpose() confirm.Purpose {
	if f.order.Proof.Method == methodIDOnly {
		return confirm.ForNamedSignIn
	}
	return confirm.ForSignIn
}

// SecondStep returns the record of the second step of a sign-in. needed is false if the
// user has no second step and no policy asks for a confirmation. A sign-in that is repeated
// within the time of its code gets the same record, so that attempts stay counted. One that
// a device confirms gets a new record each time: another program that knows the password
// must not share it. Refusals: access_denied for a user who may have no token; those of
// confirm.Service.
func (s *Service) SecondStep(ctx context.Context, f FirstStep) (r confirm.Record, needed bool, err error) {
	if s.steps != nil && f.record != "" {
		r, err = s.steps.Find(ctx, f.Who, f.record)
		return r, true, err
	}
	if err := s.tokens.Issuable(ctx, f.Who.UserID, nil, token.Proof{SecondStep: true}); err != nil {
		return r, false, err
	}
	if !f.needs {
		switch err := s.tokens.Issuable(ctx, f.Who.UserID, nil, f.order.Proof); {
		case err == nil:
			return r, false, nil
		case !wantsStep(err):
			return r, false, err
		}
	}
	if s.steps == nil {
		return r, false, secondStepNeeded()
	}
	fields, err := f.fields()
	if err != nil {
		return r, false, err
	}
	sum, err := fields.Sum()
	if err != nil {
		return r, false, err
	}
	for after, more := "", true; more; {
		open, err := s.steps.Open(ctx, f.Who.UserID, after, confirm.MaxPage)
		if err != nil {
			return r, false, err
		}
		for _, r := range open {
			after = r.ID
			if r.Purpose == f.purpose() && r.SignIn == "" && r.What == sum && r.ClientID == f.Who.ClientID && r.State == confirm.Challenged && !confirm.ByDevice(r.Method) {
				return r, true, nil
			}
		}
		more = len(open) == confirm.MaxPage
	}
	r, err = s.steps.Create(ctx, f.Who, confirm.Draft{Purpose: f.purpose(), Fields: fields})
	return r, true, err
}

// wantsStep reports whether a refusal is that of a sign-in without its second step.
func wantsStep(err error) bool {
	var g *token.GrantError
	return errors.As(err, &g) && g.Code == token.SecondStepNeeded
}

// wait makes the record that a sign-in waits for, in the transaction of ctx. The caller has
// checked there that the first step holds. From now on the record proves the first step: a
// change of the account cancels it. Refusals are *token.GrantError:
// authn_method_not_confirmed for a user who cannot confirm, and those of
// token.Service.Issuable.
func (s *Service) wait(ctx context.Context, f FirstStep) (FirstStep, error) {
	if s.steps == nil {
		return f, secondStepNeeded()
	}
	if err := s.tokens.Issuable(ctx, f.order.UserID, f.order.Actor, token.Proof{SecondStep: true}); err != nil {
		return f, err
	}
	fields, err := f.fields()
	if err != nil {
		return f, err
	}
	if f.order.ID, err = s.tokens.NewID(); err != nil {
		return f, err
	}
	r, err := s.steps.Create(ctx, f.Who, confirm.Draft{Purpose: f.purpose(), Fields: fields, SignIn: f.order.ID.String()})
	if known, is := fault.As(err); is && (known.Code == fault.MethodNotConfirmed || known.Code == fault.InvalidObjectState) {
		return f, token.Refuse(token.SecondStepNeeded, known.Message)
	}
	if err != nil {
		return f, err
	}
	f.record = r.ID
	if f.order.Proof.Method != methodCertificate { // the certificate itself is checked again
		f.order.Proof.Granted, f.order.Proof.Encoded = true, ""
	}
	return f, nil
}

// StepNeeded is the refusal authn_method_not_confirmed of a sign-in that has passed its
// first step.
type StepNeeded struct {
	*token.GrantError
	// Token opens the confirmation of the second step and nothing else; see
	// Service.OpenFirstStep.
	Token string
}

// Unwrap returns the refusal.
func (e *StepNeeded) Unwrap() error { return e.GrantError }

// refuseForStep returns the refusal of a grant whose user must pass a second step, in a
// transaction of its own. holds checks there that the first step still holds.
func (s *Service) refuseForStep(ctx context.Context, f FirstStep, holds func(ctx context.Context) error) error {
	err := s.store.Atomic(ctx, lock.User(f.order.UserID), func(ctx context.Context) (err error) {
		if err := holds(ctx); err != nil {
			return fault.Rollback(err)
		}
		f, err = s.wait(ctx, f)
		return fault.Rollback(err)
	})
	if err != nil {
		return err
	}
	return s.stepNeeded(f)
}

func (s *Service) stepNeeded(f FirstStep) error {
	sealed, err := s.sealFirstStep(f)
	if err != nil {
		return err
	}
	return &StepNeeded{token.Refuse(token.SecondStepNeeded, "the user must confirm the sign-in: send the mfa_token to the confirmation"), sealed}
}

// held is the form of a FirstStep outside the program. It is always sealed.
type held struct {
	Who       audit.Principal
	Order     token.Order
	Record    string
	ExpiresAt int64 // Unix seconds; 0 in a ticket, which has its own
}

func (f FirstStep) held() *held {
	who := f.Who
	who.Operator = false // rights are read again when they are used
	return &held{Who: who, Order: f.order, Record: f.record}
}

func (h *held) step() FirstStep {
	return FirstStep{Who: h.Who, order: h.Order, needs: true, record: h.Record}
}

const (
	// firstStepPrefix begins the tokens of first steps. No access token begins so.
	firstStepPrefix = "mfa-"
	firstStepLife   = 10 * time.Minute
)

// IsFirstStep reports whether a bearer token is one of a first step.
func IsFirstStep(bearer string) bool { return strings.HasPrefix(bearer, firstStepPrefix) }

func firstStepPlace(clientID string) vault.Place {
	return vault.Place{Purpose: "first step of a sign-in", Table: "client", Row: clientID, Column: "mfa_token"}
}

func (s *Service) sealFirstStep(f FirstStep) (string, error) {
	h := f.held()
	h.ExpiresAt = s.now().Add(firstStepLife).Unix()
	plain, err := json.Marshal(h)
	if err != nil {
		return "", fmt.Errorf("signin: making the token of a first step: %w", err)
	}
	sealed, err := s.vault.Seal(firstStepPlace(f.Who.ClientID), plain)
	if err != nil {
		return "", err
	}
	return firstStepPrefix + base64.RawURLEncoding.EncodeToString(sealed), nil
}

// OpenFirstStep reads the token of a first step (StepNeeded.Token), which its client alone
// can use. It is valid for ten minutes. The record that it names says whether the sign-in
// can still be completed. The fault is invalid_token.
func (s *Service) OpenFirstStep(client Client, bearer string) (FirstStep, error) {
	refused := fault.New(fault.Unauthorized, "the mfa_token is expired or not valid, or is another client's: begin the sign-in again")
	text, is := strings.CutPrefix(bearer, firstStepPrefix)
	if !is || len(text) > maxTicket {
		return FirstStep{}, refused
	}
	sealed, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		return FirstStep{}, refused
	}
	plain, err := s.vault.Open(firstStepPlace(client.ID), sealed)
	if err != nil {
		return FirstStep{}, refused.With(err)
	}
	var h held
	if err := json.Unmarshal(plain, &h); err != nil {
		return FirstStep{}, refused.With(err)
	}
	if s.now().Unix() >= h.ExpiresAt || h.Record == "" || h.Who.ClientID != client.ID {
		return FirstStep{}, refused
	}
	return h.step(), nil
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

// SignIn issues the token of a sign-in. r is the confirmed record of its second step, which
// is spent in the transaction of the token; nil for a sign-in that needs none. The first
// step must still hold. A record that was spent before gives the same token again, as long as
// confirm.Service.Given has it. Refusals are *token.GrantError: invalid_grant, those of
// token.Service.Issuable; and the faults of confirm.Service.
func (s *Service) SignIn(ctx context.Context, f FirstStep, r *confirm.Record) (token.Token, error) {
	if r == nil {
		if f.needs || f.record != "" {
			return token.Token{}, secondStepNeeded()
		}
		return s.issueTo(ctx, f.order)
	}
	var t token.Token
	err := s.complete(ctx, f, r, func(ctx context.Context, o token.Order) (given []byte, err error) {
		if t, err = s.issueTo(ctx, o); err != nil {
			return nil, err
		}
		return json.Marshal(givenToken{t, s.now()})
	})
	if errors.Is(err, errCompleted) {
		return s.given(ctx, f, r)
	}
	if err != nil {
		return token.Token{}, err // the token was not recorded
	}
	return t, nil
}

// givenToken is the token of a sign-in as its record keeps it, for a client that did not get
// it.
type givenToken struct {
	Token token.Token
	At    time.Time // when it was issued
}

// errCompleted is the fault of a record that was spent before.
var errCompleted = fault.New(fault.InvalidTransaction, "the sign-in was completed already: begin another one")

// given returns the token that a sign-in got before. The fault is errCompleted if it is not
// kept any more, or not for this call.
func (s *Service) given(ctx context.Context, f FirstStep, r *confirm.Record) (token.Token, error) {
	stored, found, err := s.steps.Given(ctx, f.Who, r.ID)
	if err == nil && !found {
		err = errCompleted
	}
	if err != nil {
		return token.Token{}, err
	}
	defer clear(stored)
	var g givenToken
	if err := json.Unmarshal(stored, &g); err != nil {
		return token.Token{}, fmt.Errorf("signin: the token of record %s: %w", r.ID, err)
	}
	g.Token.ExpiresIn = max(g.Token.ExpiresIn-s.now().Sub(g.At), 0)
	return g.Token, nil
}

// issueTo issues the token of a sign-in.
func (s *Service) issueTo(ctx context.Context, o token.Order) (token.Token, error) {
	t, ok, err := s.tokens.Issue(ctx, o)
	if err == nil && !ok {
		err = token.Refuse(token.InvalidGrant, "the user may not sign in any more")
	}
	if err == nil && o.Actor != nil {
		// The operator may have lost the right to act for the user meanwhile.
		err = fault.Rollback(s.tokens.MayContinue(ctx, audit.Principal{TokenID: o.ID.String()}))
	}
	if err != nil {
		return token.Token{}, err
	}
	return t, nil
}

// complete spends the confirmed record of a second step in one transaction with what issue
// stores. The order it gets says that the second step was passed. What issue returns is kept
// with the record, unless it is empty. The error is errCompleted for a record that was spent
// before.
func (s *Service) complete(ctx context.Context, f FirstStep, r *confirm.Record, issue func(ctx context.Context, o token.Order) (given []byte, err error)) error {
	if s.steps == nil {
		return secondStepNeeded()
	}
	c := Confirmer{Who: f.Who, First: &f}
	if err := c.May(r); err != nil {
		return err
	}
	if !r.Purpose.SignIn() || r.UserID != f.Who.UserID || r.ClientID != f.Who.ClientID {
		return fault.New(fault.InvalidTransaction, "this confirmation is not the second step of the sign-in")
	}
	fields, err := f.fields()
	if err != nil {
		return err
	}
	sum, err := fields.Sum()
	if err != nil {
		return err
	}
	o := f.order
	o.Proof.SecondStep = true
	users := []string{o.UserID}
	if o.Actor != nil {
		users = append(users, o.Actor.UserID)
	}
	// The unit locks the users before the record, as every issue of a token does.
	spent, err := s.steps.Spend(ctx, f.Who, r.ID, sum, lock.User(users...), func(ctx context.Context, r *confirm.Record) error {
		given, err := issue(ctx, o)
		if err == nil && len(given) > 0 {
			err = s.steps.Keep(ctx, r, given)
		}
		clear(given)
		return err
	})
	if err == nil && !spent {
		err = errCompleted
	}
	return err
}

// CompleteStep authorizes a client whose user passed the second step in our pages. answered
// is as of Redeem. Refusals are those of AuthorizePassword, and the faults of
// confirm.Service.
func (s *Service) CompleteStep(ctx context.Context, f FirstStep, r *confirm.Record, answered bool, a Authorization) (issued Authorized, err error) {
	if err := errors.Join(a.Check(), s.CheckRequest(a)); err != nil {
		return issued, firstRefusal(err)
	}
	if err := answeredHere(r, answered); err != nil {
		return issued, err
	}
	err = s.complete(ctx, f, r, func(ctx context.Context, o token.Order) (given []byte, err error) {
		issued, err = s.authorize(ctx, a, o.UserID, o.Name, o.Proof, token.Descent{})
		return nil, err // a page has its session
	})
	if err != nil {
		return Authorized{}, err // nothing was recorded
	}
	return issued, nil
}

// answeredHere returns the fault of a sign-in by code that another call confirmed.
func answeredHere(r *confirm.Record, answered bool) error {
	if answered || confirm.ByDevice(r.Method) {
		return nil
	}
	return fault.New(fault.InvalidTransaction, "the sign-in was confirmed by another call: begin again")
}
