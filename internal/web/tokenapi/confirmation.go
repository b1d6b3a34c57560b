// SPDX-License-Identifier: Apache-2.0

package tokenapi

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"tamga/internal/domain/audit"
	"tamga/internal/domain/confirm"
	"tamga/internal/domain/confirm/what"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/signin"
	"tamga/internal/domain/token"
	"tamga/internal/web/rest"
)

// Confirmations are the records of what users confirm; *confirm.Service satisfies it.
type Confirmations interface {
	Create(ctx context.Context, who audit.Principal, o confirm.Order) (confirm.Record, error)
	Open(ctx context.Context, userID, after string, limit int) ([]confirm.Record, error)
	Content(ctx context.Context, who audit.Principal, id string) (confirm.Content, error)
	Find(ctx context.Context, who audit.Principal, id string) (confirm.Record, error)
	Challenge(ctx context.Context, who audit.Principal, a confirm.Ask) (confirm.Prompt, error)
	Answer(ctx context.Context, who audit.Principal, refID, answer string) (confirm.Prompt, error)
	Poll(ctx context.Context, who audit.Principal, refID string) (confirm.Prompt, error)
	Take(ctx context.Context, who audit.Principal, id string, sum what.Digest) (*confirm.Execution, error)
}

// Steps are the first and second steps of sign-ins; *signin.Service satisfies it.
type Steps interface {
	FirstByPassword(ctx context.Context, client signin.Client, login, password string) (signin.FirstStep, error)
	SecondStep(ctx context.Context, f signin.FirstStep) (r confirm.Record, needed bool, err error)
	StepMethods(ctx context.Context, userID string) ([]string, error)
	SignIn(ctx context.Context, f signin.FirstStep, r *confirm.Record) (token.Token, error)
}

// ConfirmedTokens are the tokens of what was confirmed; *token.Service satisfies it.
type ConfirmedTokens interface {
	Authenticate(ctx context.Context, bearer string) (audit.Principal, error)
	CheckResource(resource string) error
	IssueConfirmed(ctx context.Context, who audit.Principal, c token.Confirmation) (token.Token, error)
	IssueScope(ctx context.Context, who audit.Principal, scope string, ends time.Time) (token.Token, error)
}

// confirming is what the confirmation routes work with.
type confirming struct {
	records Confirmations
	steps   Steps
	tokens  ConfirmedTokens
	proved  proved
}

// Confirming returns the API with the confirmation routes. Without it there are none.
func (a *API) Confirming(c Confirmations, s Steps, t ConfirmedTokens) *API {
	a.confirming = &confirming{records: c, steps: s, tokens: t}
	return a
}

// maxConfirmation is the limit of a request to confirm, in bytes.
const maxConfirmation = 64 << 10

func (a *API) confirmationRoutes() []rest.Route {
	if a.confirming == nil {
		return nil
	}
	return []rest.Route{
		rest.Handle("POST /confirmation", "Confirmation", rest.Anyone, a.confirmV1).AtMost(maxConfirmation),
		rest.Handle("POST /v2.0/confirmation", "ConfirmationV2", rest.Anyone, a.confirmV2).AtMost(maxConfirmation),
	}
}

// confirmationRequest is a request in the JSON form of the InteractiveChallenge of WS-Trust
// 1.4. The first call names what is confirmed. Later calls name the challenge.
type confirmationRequest struct {
	Authorization string `header:"Authorization"`
	Languages     string `header:"Accept-Language"`
	Body          struct {
		Resource, ClientId, ClientSecret string
		TransactionTokenId, OperationId  string
		ConfirmationScope                string
		ConfirmationParams               struct{ Templte rest.Text }
		ChallengeResponse                struct {
			TextChallengeResponse []struct {
				RefId string
				Value rest.Text
			}
			ChoiceChallengeResponse []struct {
				RefId          string
				ChoiceSelected []struct{ RefID string }
			}
		}
	}
}

func (a *API) confirmV1(ctx context.Context, r confirmationRequest) (confirmationAnswer, error) {
	return a.confirm(ctx, r, false)
}

func (a *API) confirmV2(ctx context.Context, r confirmationRequest) (confirmationAnswer, error) {
	return a.confirm(ctx, r, true)
}

// confirm answers one call. A refusal that ends the confirmation is an answer of its own
// with status 200. The caller, an overload and an outage are refused as everywhere.
func (a *API) confirm(ctx context.Context, r confirmationRequest, v2 bool) (confirmationAnswer, error) {
	answer, err := a.confirmed(ctx, r, v2)
	if err == nil {
		return answer, nil
	}
	code, description := "", ""
	var g *token.GrantError
	if errors.As(err, &g) {
		code, description = g.Code, g.Description
	} else if f, ok := fault.As(err); ok && !slices.Contains([]string{fault.Unauthorized, fault.TooManyRequests, fault.Unavailable}, f.Code) {
		code, description = f.Code, f.Message
	}
	if code == "" {
		return confirmationAnswer{}, err
	}
	rest.Refused(ctx, code)
	return confirmationAnswer{IsFinal: true, IsError: true, Error: code, ErrorDescription: description}, nil
}

// confirmer is the caller of a confirmation.
type confirmer struct {
	who    audit.Principal
	client signin.Client
	first  *signin.FirstStep // nil: the caller has an access token
}

// may reports whether the caller may confirm a record. A sign-in needs its own first step,
// and never an access token. A text needs an access token.
func (c *confirmer) may(r *confirm.Record) error {
	if c.first == nil && r.Purpose == confirm.ForSignIn || c.first != nil && r.Purpose == confirm.ForText {
		return fault.New(fault.InvalidTransaction, "you have no confirmation with this identifier")
	}
	return nil
}

func (a *API) confirmed(ctx context.Context, r confirmationRequest, v2 bool) (confirmationAnswer, error) {
	b, records := &r.Body, a.confirming.records
	texts, choices := b.ChallengeResponse.TextChallengeResponse, b.ChallengeResponse.ChoiceChallengeResponse
	if len(texts) > 1 || len(choices) > 1 || len(texts) > 0 && len(choices) > 0 {
		return confirmationAnswer{}, fault.New(fault.InvalidParameters, "ChallengeResponse: want one answer")
	}
	ref := ""
	switch {
	case len(texts) > 0:
		ref = texts[0].RefId
	case len(choices) > 0:
		ref = choices[0].RefId
	}
	if len(texts)+len(choices) > 0 && ref == "" {
		return confirmationAnswer{}, fault.New(fault.InvalidParameters, "RefId: missing")
	}
	c, err := a.confirmer(ctx, &r, ref)
	if err != nil {
		return confirmationAnswer{}, err
	}
	if b.Resource != "" {
		if err := a.confirming.tokens.CheckResource(b.Resource); err != nil {
			return confirmationAnswer{}, err
		}
	}
	rest.Identified(ctx, c.who)
	if ref == "" {
		return a.beginConfirmation(ctx, c, &r, v2)
	}
	p, err := records.Poll(ctx, c.who, ref)
	if err != nil {
		return confirmationAnswer{}, err
	}
	if err := c.may(&p.Record); err != nil {
		return confirmationAnswer{}, err
	}
	rest.Concerning(ctx, p.Record.ID)
	answered := false
	switch {
	case len(choices) > 0:
		selected := choices[0].ChoiceSelected
		if len(selected) != 1 {
			return confirmationAnswer{}, fault.New(fault.InvalidParameters, "ChoiceSelected: want one choice")
		}
		p, err = a.challenge(ctx, c, &p.Record, selected[0].RefID, v2)
	case texts[0].Value != "":
		p, err = records.Answer(ctx, c.who, ref, string(texts[0].Value))
		answered = true
	case p.Record.State == confirm.Created:
		p, err = a.challenge(ctx, c, &p.Record, "", v2)
	}
	if err != nil {
		return confirmationAnswer{}, err
	}
	return a.prompt(ctx, c, &p, wordsFor(visit{Languages: r.Languages}), answered)
}

// confirmer identifies the caller: by an access token, or by HTTP Basic with the login and
// the password of the user. ref is the challenge of a later call, for which a password that
// was correct is not derived again.
func (a *API) confirmer(ctx context.Context, r *confirmationRequest, ref string) (*confirmer, error) {
	if bearer := bearerOf(r.Authorization); bearer != "" {
		who, err := a.confirming.tokens.Authenticate(ctx, bearer)
		if err != nil {
			return nil, err
		}
		if r.Body.ClientId != "" && r.Body.ClientId != who.ClientID {
			return nil, token.Refuse(token.InvalidClient, "ClientId: the access token is another client's")
		}
		client, _ := a.clients.Find(who.ClientID)
		return &confirmer{who: who, client: client}, nil
	}
	login, password, ok := (&http.Request{Header: http.Header{"Authorization": {r.Authorization}}}).BasicAuth()
	if !ok {
		return nil, fault.New(fault.Unauthorized, "want an access token, or HTTP Basic with a login and a password")
	}
	client, err := a.clients.Authenticate(r.Body.ClientId, r.Body.ClientSecret)
	if err != nil {
		return nil, err
	}
	rest.Claimed(ctx, audit.Principal{ClientID: client.ID})
	if first, known := a.confirming.proved.find(ref, client.ID, login, password); known {
		return &confirmer{who: first.Who, client: client, first: &first}, nil
	}
	attempt := ctx
	if password != "" {
		if attempt, err = a.attempt(ctx, client, !client.Public, login); err != nil {
			return nil, err
		}
	}
	first, err := a.confirming.steps.FirstByPassword(attempt, client, login, password)
	if err != nil {
		return nil, err
	}
	if password != "" {
		a.succeeded(ctx)
	}
	if ref != "" {
		a.confirming.proved.keep(ref, client.ID, login, password, first)
	}
	return &confirmer{who: first.Who, client: client, first: &first}, nil
}

// beginConfirmation is the first call: it finds or creates the record and begins or repeats
// its challenge.
func (a *API) beginConfirmation(ctx context.Context, c *confirmer, r *confirmationRequest, v2 bool) (confirmationAnswer, error) {
	b := &r.Body
	id := cmp.Or(b.OperationId, b.TransactionTokenId)
	var record confirm.Record
	var err error
	switch {
	case b.OperationId != "" && b.TransactionTokenId != "" && b.OperationId != b.TransactionTokenId,
		id != "" && b.ConfirmationScope != "":
		err = fault.New(fault.InvalidParameters, "want one of OperationId, TransactionTokenId and ConfirmationScope")
	case id != "":
		if record, err = a.confirming.records.Find(ctx, c.who, id); err == nil {
			err = c.may(&record)
		}
	case b.ConfirmationScope != "":
		record, err = a.scopeRecord(ctx, c, b.ConfirmationScope, string(b.ConfirmationParams.Templte))
	case c.first == nil:
		err = fault.New(fault.InvalidParameters, "want OperationId, TransactionTokenId or ConfirmationScope")
	case b.Resource == "":
		err = fault.New(fault.InvalidParameters, "Resource: missing")
	default:
		var needed bool
		if record, needed, err = a.confirming.steps.SecondStep(ctx, *c.first); err == nil && !needed {
			t, err := a.confirming.steps.SignIn(ctx, *c.first, nil)
			return final(t), err
		}
	}
	if err != nil {
		return confirmationAnswer{}, err
	}
	rest.Concerning(ctx, record.ID)
	p, err := a.challenge(ctx, c, &record, "", v2)
	if err != nil {
		return confirmationAnswer{}, err
	}
	return a.prompt(ctx, c, &p, wordsFor(visit{Languages: r.Languages}), false)
}

// maxScope is the longest text that a user confirms, in bytes. It is a claim of the token.
const maxScope = 256

// scopeRecord returns the record of a text. A call that is repeated gets the same record.
func (a *API) scopeRecord(ctx context.Context, c *confirmer, scope, template string) (confirm.Record, error) {
	switch {
	case c.first != nil:
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
	open, err := a.confirming.records.Open(ctx, c.who.UserID, "", confirm.MaxPage)
	if err != nil {
		return confirm.Record{}, err
	}
	for _, r := range open {
		if r.Purpose == confirm.ForText && r.ClientID == c.who.ClientID && r.What == sum && r.State != confirm.Confirmed {
			return r, nil
		}
	}
	return a.confirming.records.Create(ctx, c.who, confirm.Order{Purpose: confirm.ForText, Fields: fields})
}

// The names of methods, in the order of preference of clients without a setting.
const (
	methodOath   = "oath"
	methodMyDSS  = "mydss"
	methodMobile = "mobile"
)

// challenge begins or repeats the challenge of a record. choice is the RefID of a choice, ""
// for none.
func (a *API) challenge(ctx context.Context, c *confirmer, r *confirm.Record, choice string, v2 bool) (confirm.Prompt, error) {
	ask := confirm.Ask{ID: r.ID, Methods: c.client.ConfirmMethods}
	if ask.Methods == nil {
		ask.Methods, ask.Fallback = without(confirm.MethodNames(), methodOath), []string{methodOath}
	}
	// Clients know a device as mydss only with an operation of v2.
	device, other := methodMobile, methodMyDSS
	if v2 && r.Purpose == confirm.ForOperation {
		device, other = other, device
	}
	for i, name := range ask.Methods {
		if name == other {
			ask.Methods = slices.Clone(ask.Methods)
			ask.Methods[i] = device
		}
	}
	if r.Purpose == confirm.ForSignIn {
		second, err := a.confirming.steps.StepMethods(ctx, r.UserID)
		if err != nil {
			return confirm.Prompt{}, err
		}
		if len(second) > 0 {
			ask.Methods, ask.Fallback = among(ask.Methods, second), among(ask.Fallback, second)
		}
	}
	if len(ask.Methods)+len(ask.Fallback) == 0 {
		return confirm.Prompt{}, fault.New(fault.MethodNotConfirmed, "the user has no method to confirm with that this client can handle")
	}
	if choice != "" {
		uri, address, _ := strings.Cut(choice, "?")
		i := slices.IndexFunc(confirm.MethodNames(), func(name string) bool { return strings.EqualFold(uri, confirmURI(name)) })
		if i < 0 {
			return confirm.Prompt{}, fault.New(fault.InvalidParameters, "ChoiceSelected: unknown, choose one that was offered")
		}
		ask.Method, ask.Address = confirm.MethodNames()[i], address
	}
	return a.confirming.records.Challenge(ctx, c.who, ask)
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

// prompt returns the answer with a challenge, or after the confirmation with the token.
// answered means that this call gave the right answer.
func (a *API) prompt(ctx context.Context, c *confirmer, p *confirm.Prompt, w words, answered bool) (confirmationAnswer, error) {
	r := &p.Record
	if r.State == confirm.Confirmed {
		t, err := a.issueConfirmed(ctx, c, r, answered)
		return final(t), err
	}
	answer := confirmationAnswer{Challenge: &challenge{ContextData: contextData{r.RefID}}}
	if len(p.Choices) > 0 {
		choice := choiceChallenge{RefID: r.RefID, ExactlyOne: true}
		for _, one := range p.Choices {
			ref := confirmURI(one.Method)
			if one.Address != "" {
				ref += "?" + one.Address
			}
			choice.Choice = append(choice.Choice, choiceOf{ref, one.Label})
		}
		answer.Challenge.ChoiceChallenge = []choiceChallenge{choice}
		return answer, nil
	}
	if p.Wrong != nil {
		rest.Refused(ctx, p.Wrong.Code)
		answer.Challenge.Title.Value = w.WrongCode
	}
	answer.Challenge.TextChallenge = []textChallenge{{
		RefID: r.RefID, Label: r.Label, AuthnMethod: confirmURI(r.Method), Title: answer.Challenge.Title,
		CreatedAt: r.SentAt.Unix(), ExpiresIn: int64(r.AnswerBefore.Sub(r.SentAt).Seconds()), ExpiresInSpecified: true,
	}}
	return answer, nil
}

// issueConfirmed issues the token of a record that is confirmed. The token of a sign-in by
// code goes to the call with the code alone: another program that knows the password may
// poll as well.
func (a *API) issueConfirmed(ctx context.Context, c *confirmer, r *confirm.Record, answered bool) (token.Token, error) {
	switch r.Purpose {
	case confirm.ForSignIn:
		if !answered && !confirm.ByDevice(r.Method) {
			return token.Token{}, fault.New(fault.InvalidTransaction, "the sign-in was confirmed by another call: begin again")
		}
		return a.confirming.steps.SignIn(ctx, *c.first, r)
	case confirm.ForOperation:
		return a.confirming.tokens.IssueConfirmed(ctx, c.who, token.Confirmation{ID: r.ID, EndsAt: r.CompleteBefore})
	}
	content, err := a.confirming.records.Content(ctx, c.who, r.ID)
	if err != nil {
		return token.Token{}, err
	}
	scope := ""
	for _, v := range content.Fields.Arguments.List() {
		if v.Name == "scope" {
			scope = v.Value
		}
	}
	execution, err := a.confirming.records.Take(ctx, c.who, r.ID, r.What)
	if err != nil {
		return token.Token{}, err
	}
	var t token.Token
	err = execution.Spend(ctx, nil, func(ctx context.Context) (err error) {
		t, err = a.confirming.tokens.IssueScope(ctx, c.who, scope, r.CompleteBefore)
		return err
	})
	if err != nil {
		return token.Token{}, errors.Join(err, execution.Release(ctx))
	}
	return t, nil
}

// confirmURI returns the address of a method of package confirm.
func confirmURI(name string) string { return signin.ConfirmationNamespace + name }

// confirmationAnswer is an answer. Clients take a missing IsFinal or IsError as true, so both are
// always sent, and a key without a value is never sent.
type confirmationAnswer struct {
	IsFinal          bool
	IsError          bool
	Challenge        *challenge `json:",omitempty"`
	AccessToken      string     `json:",omitempty"`
	ExpiresIn        int64      `json:",omitempty"`
	Error            string     `json:",omitempty"`
	ErrorDescription string     `json:",omitempty"`
}

func final(t token.Token) confirmationAnswer {
	return confirmationAnswer{IsFinal: true, AccessToken: t.AccessToken, ExpiresIn: int64(t.ExpiresIn.Seconds())}
}

// challenge is what the user is asked. All references in it are equal: clients send back
// different ones.
type challenge struct {
	Title           title
	TextChallenge   []textChallenge   `json:",omitempty"`
	ChoiceChallenge []choiceChallenge `json:",omitempty"`
	ContextData     contextData
}

type title struct{ Value string }

type contextData struct{ RefID string }

type textChallenge struct {
	RefID              string
	Label              string
	AuthnMethod        string
	Title              title
	CreatedAt          int64 // Unix seconds
	ExpiresIn          int64 // seconds from then
	ExpiresInSpecified bool
	IsHidden           bool
	MaxLenSpecified    bool
	HideTextSpecified  bool
}

type choiceChallenge struct {
	RefID      string
	ExactlyOne bool
	Choice     []choiceOf
}

type choiceOf struct{ RefID, Label string }
