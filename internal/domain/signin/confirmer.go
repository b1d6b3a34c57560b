// SPDX-License-Identifier: Apache-2.0

package signin

import (
	"context"
	"slices"

	"tamga/internal/domain/audit"
	"tamga/internal/domain/confirm"
	"tamga/internal/domain/confirm/what"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/lock"
	"tamga/internal/domain/oath"
	"tamga/internal/domain/token"
)

// Confirmer is the caller of a confirmation: a client that acts for a user.
type Confirmer struct {
	Who    audit.Principal
	Client Client
	First  *FirstStep // nil: the caller has an access token
}

// May returns nil if the caller may confirm a record. A sign-in needs its own first step,
// and never an access token. A text needs an access token. A first step that waits for a
// record confirms that one alone, and no other first step does. The fault is
// invalid_transaction.
func (c *Confirmer) May(r *confirm.Record) error {
	signIn := r.Purpose.SignIn()
	var own bool
	switch {
	case c.First == nil:
		own = !signIn
	case c.First.record != "":
		own = signIn && r.ID == c.First.record
	case signIn:
		own = r.SignIn == ""
	default:
		own = r.Purpose == confirm.ForOperation
	}
	if !own {
		return fault.New(fault.InvalidTransaction, "you have no confirmation with this identifier")
	}
	return nil
}

// maxScope is the longest text that a user confirms, in bytes. It is a claim of the token.
const maxScope = 256

// TextRecord returns the record of a text that the client wants confirmed. A call that is
// repeated gets the same record. Faults: invalid_parameters, and those of
// confirm.Service.Create.
func (s *Service) TextRecord(ctx context.Context, c *Confirmer, scope, template string) (confirm.Record, error) {
	switch {
	case c.First != nil:
		return confirm.Record{}, fault.New(fault.InvalidParameters, "ConfirmationScope: want an access token of the user")
	case len(scope) > maxScope:
		return confirm.Record{}, fault.Newf(fault.InvalidParameters, "ConfirmationScope: want at most %d bytes", maxScope)
	case token.OwnScope(scope):
		return confirm.Record{}, fault.New(fault.InvalidParameters, "ConfirmationScope: names a scope of this service, want a text of the application")
	}
	values := map[string]string{"scope": scope}
	if template != "" {
		values["template"] = template
	}
	arguments, err := what.NewValues(values, what.IsSecretName)
	if err != nil {
		return confirm.Record{}, fault.New(fault.InvalidParameters, "ConfirmationScope, ConfirmationParams: not text").With(err)
	}
	fields := what.Fields{Action: what.Free, Arguments: arguments}
	sum, err := fields.Sum()
	if err != nil {
		return confirm.Record{}, fault.New(fault.InvalidParameters, "ConfirmationScope: not text").With(err)
	}
	open, err := s.steps.Open(ctx, c.Who.UserID, "", confirm.MaxPage)
	if err != nil {
		return confirm.Record{}, err
	}
	for _, r := range open {
		if r.Purpose == confirm.ForText && r.ClientID == c.Who.ClientID && r.What == sum && r.State != confirm.Confirmed {
			return r, nil
		}
	}
	return s.steps.Create(ctx, c.Who, confirm.Draft{Purpose: confirm.ForText, Fields: fields})
}

// The two names of devices.
const (
	methodMyDSS  = "mydss"
	methodMobile = "mobile"
)

// Choice is what a client knows of the way in which its user confirms.
type Choice struct {
	Method, Address string // as in confirm.Ask; "" for none
	// MyDSS means that the client knows devices as mydss where it confirms operations.
	// Otherwise, and for everything else, they are mobile.
	MyDSS    bool
	Titles   bool   // as in confirm.Ask
	Callback string // as in confirm.Ask
}

// Challenge begins or repeats the challenge of a record, with the methods that the client
// can handle. Faults are those of confirm.Service.Challenge.
func (s *Service) Challenge(ctx context.Context, c *Confirmer, r *confirm.Record, choice Choice) (confirm.Prompt, error) {
	ask, err := s.ask(ctx, c, r, choice)
	if err != nil {
		return confirm.Prompt{}, err
	}
	return s.steps.Challenge(ctx, c.Who, ask)
}

// Choices returns the ways in which a record may be confirmed, also while a challenge is
// under way. The faults are those of Challenge.
func (s *Service) Choices(ctx context.Context, c *Confirmer, r *confirm.Record) ([]confirm.Choice, error) {
	ask, err := s.ask(ctx, c, r, Choice{})
	if err != nil {
		return nil, err
	}
	return s.steps.Choices(ctx, c.Who, ask)
}

func (s *Service) ask(ctx context.Context, c *Confirmer, r *confirm.Record, choice Choice) (confirm.Ask, error) {
	ask := confirm.Ask{ID: r.ID, Methods: c.Client.ConfirmMethods, Method: choice.Method, Address: choice.Address, Titles: choice.Titles || c.Client.ConfirmTitles, Callback: choice.Callback}
	if ask.Methods == nil {
		ask.Methods, ask.Fallback = without(confirm.ClientMethodNames(), oath.Method), []string{oath.Method}
	}
	device, other := methodMobile, methodMyDSS
	if choice.MyDSS && r.Purpose == confirm.ForOperation {
		device, other = other, device
	}
	for i, name := range ask.Methods {
		if name == other {
			ask.Methods = slices.Clone(ask.Methods)
			ask.Methods[i] = device
		}
	}
	if r.Purpose.SignIn() {
		second, err := s.secondMethods(ctx, r.UserID)
		if err != nil {
			return ask, err
		}
		// Without a second step of their own, users confirm with any method they have.
		if len(second) > 0 {
			ask.Methods, ask.Fallback = among(ask.Methods, second), among(ask.Fallback, second)
		}
	}
	if len(ask.Methods)+len(ask.Fallback) == 0 {
		return ask, fault.New(fault.MethodNotConfirmed, "the user has no method to confirm with that this client can handle")
	}
	return ask, nil
}

func without(names []string, name string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(n string) bool { return n == name })
}

// among returns the methods that belong to the assigned ones.
func among(names, assigned []string) (list []string) {
	for _, row := range confirm.Rows() {
		if slices.Contains(names, row.Name) && slices.Contains(assigned, row.Assigned) {
			list = append(list, row.Name)
		}
	}
	return list
}

// Redeem issues the token of a record that is confirmed: the access token of a sign-in, the
// confirmed token of an operation, or the token of a text. A client that did not get it gets
// it again, until Record.CompleteBefore, from a record that is Completed. answered means that
// this call gave the right answer. The token of a sign-in by code goes to such a call alone:
// another program that knows the password may poll as well. Refusals are those of SignIn, and
// of token.Service.IssueConfirmed and IssueScope.
func (s *Service) Redeem(ctx context.Context, c *Confirmer, r *confirm.Record, answered bool) (token.Token, error) {
	switch r.Purpose {
	case confirm.ForSignIn, confirm.ForNamedSignIn:
		if err := answeredHere(r, answered); err != nil {
			return token.Token{}, err
		}
		return s.SignIn(ctx, *c.First, r)
	case confirm.ForOperation, confirm.ForChange:
		return s.tokens.IssueConfirmed(ctx, c.Who, token.Confirmation{ID: r.ID, EndsAt: r.CompleteBefore})
	}
	content, err := s.steps.Content(ctx, c.Who, r.ID)
	if err != nil {
		return token.Token{}, err
	}
	scope := ""
	for _, v := range content.Fields.Arguments.List() {
		if v.Name == "scope" {
			scope = v.Value
		}
	}
	var t token.Token
	spent, err := s.steps.Spend(ctx, c.Who, r.ID, r.What, lock.Set{}, func(ctx context.Context, r *confirm.Record) (err error) {
		t, err = s.tokens.IssueScope(ctx, c.Who, scope, r.CompleteBefore)
		return err
	})
	if err != nil {
		return token.Token{}, err
	}
	if !spent { // nothing is recorded of the token, so it can be made again
		if err := answeredHere(r, answered); err != nil {
			return token.Token{}, err
		}
		return s.tokens.IssueScope(ctx, c.Who, scope, r.CompleteBefore)
	}
	return t, nil
}
