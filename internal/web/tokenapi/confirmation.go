// SPDX-License-Identifier: Apache-2.0

package tokenapi

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"

	"tamga/internal/domain/audit"
	"tamga/internal/domain/confirm"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/signin"
	"tamga/internal/domain/token"
	"tamga/internal/web/rest"
)

// Confirmations are the records of what users confirm; *confirm.Service satisfies it.
type Confirmations interface {
	Find(ctx context.Context, who audit.Principal, id string) (confirm.Record, error)
	Answer(ctx context.Context, who audit.Principal, refID, answer string) (confirm.Prompt, error)
	Poll(ctx context.Context, who audit.Principal, refID string) (confirm.Prompt, error)
}

// Steps are the first and second steps of sign-ins, and the rules of confirmations that
// depend on the caller; *signin.Service satisfies it.
type Steps interface {
	FirstByPassword(ctx context.Context, client signin.Client, login, password string) (signin.FirstStep, error)
	FirstByCertificate(ctx context.Context, client signin.Client, der []byte) (signin.FirstStep, error)
	OpenFirstStep(client signin.Client, bearer string) (signin.FirstStep, error)
	SecondStep(ctx context.Context, f signin.FirstStep) (r confirm.Record, needed bool, err error)
	TextRecord(ctx context.Context, c *signin.Confirmer, scope, template string) (confirm.Record, error)
	Challenge(ctx context.Context, c *signin.Confirmer, r *confirm.Record, choice signin.Choice) (confirm.Prompt, error)
	Choices(ctx context.Context, c *signin.Confirmer, r *confirm.Record) ([]confirm.Choice, error)
	CompleteStep(ctx context.Context, f signin.FirstStep, r *confirm.Record, answered bool, a signin.Authorization) (signin.Authorized, error)
	Redeem(ctx context.Context, c *signin.Confirmer, r *confirm.Record, answered bool) (token.Token, error)
	SignIn(ctx context.Context, f signin.FirstStep, r *confirm.Record) (token.Token, error)
}

// ConfirmedTokens checks the access tokens of callers; *token.Service satisfies it.
type ConfirmedTokens interface {
	Authenticate(ctx context.Context, bearer string) (audit.Principal, error)
	CheckResource(resource string) error
}

// confirming is what the confirmation routes work with.
type confirming struct {
	records Confirmations
	steps   Steps
	tokens  ConfirmedTokens
	paint   func(text string) ([]byte, error)
	proved  proved
}

// maxConfirmation is the limit of a request to confirm, in bytes.
const maxConfirmation = 64 << 10

func (a *API) confirmationRoutes() []rest.Route {
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
		ConfirmationDataRefs             []rest.Text
		CallbackUri                      string
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
	if len(b.ConfirmationDataRefs) > 0 {
		// The user would not see the data, so the confirmation would not be about them.
		return confirmationAnswer{}, fault.New(fault.InvalidParameters, "ConfirmationDataRefs: not served, have an operation with the documents confirmed")
	}
	if ref == "" {
		rest.Identified(ctx, c.Who)
		return a.beginConfirmation(ctx, c, &r, v2)
	}
	p, err := records.Poll(ctx, c.Who, ref)
	if err == nil {
		err = c.May(&p.Record)
	}
	// Clients poll every few seconds. A poll that finds the challenge open has no audit entry.
	if poll := len(texts) > 0 && texts[0].Value == ""; err != nil || !poll || p.Record.State != confirm.Challenged {
		rest.Identified(ctx, c.Who)
	}
	if err != nil {
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
		p, err = a.challenge(ctx, c, &p.Record, selected[0].RefID, &r, v2)
	case texts[0].Value != "":
		p, err = records.Answer(ctx, c.Who, ref, string(texts[0].Value))
		answered = true
	case p.Record.State == confirm.Created:
		p, err = a.challenge(ctx, c, &p.Record, "", &r, v2)
	}
	if err != nil {
		return confirmationAnswer{}, err
	}
	return a.prompt(ctx, c, &p, a.wordsFor(ctx, visit{Languages: r.Languages}), answered)
}

// confirmer identifies the caller: by an access token, by the mfa_token of a first step, by
// HTTP Basic with the login and the password of the user, or, without any of these, by the
// client certificate of the connection. ref is the challenge of a later call, for which a
// password that was correct is not derived again.
func (a *API) confirmer(ctx context.Context, r *confirmationRequest, ref string) (*signin.Confirmer, error) {
	bearer := bearerOf(r.Authorization)
	if bearer != "" && !signin.IsFirstStep(bearer) {
		who, err := a.confirming.tokens.Authenticate(ctx, bearer)
		if err != nil {
			return nil, err
		}
		if r.Body.ClientId != "" && r.Body.ClientId != who.ClientID {
			return nil, token.Refuse(token.InvalidClient, "ClientId: the access token is another client's")
		}
		client, _ := a.clients.Find(who.ClientID)
		return &signin.Confirmer{Who: who, Client: client}, nil
	}
	certificates := rest.PeerCertificates(ctx)
	if bearer != "" || r.Authorization == "" && len(certificates) > 0 {
		client, err := a.clients.Authenticate(r.Body.ClientId, r.Body.ClientSecret)
		if err != nil {
			return nil, err
		}
		rest.Claimed(ctx, audit.Principal{ClientID: client.ID})
		var first signin.FirstStep
		if bearer != "" {
			first, err = a.confirming.steps.OpenFirstStep(client, bearer)
		} else if err = a.judge(ctx, certificates); err != nil {
			err = fault.New(fault.Unauthorized, "the client certificate is not accepted").With(err)
		} else {
			first, err = a.confirming.steps.FirstByCertificate(ctx, client, certificates[0])
		}
		if err != nil {
			return nil, err
		}
		return &signin.Confirmer{Who: first.Who, Client: client, First: &first}, nil
	}
	login, password, ok := (&http.Request{Header: http.Header{"Authorization": {r.Authorization}}}).BasicAuth()
	if !ok {
		return nil, fault.New(fault.Unauthorized, "want an access token, an mfa_token, HTTP Basic with a login and a password, or a client certificate")
	}
	// Some programs send the user's login and password and no client, with every call.
	id := r.Body.ClientId
	if id == "" && r.Body.ClientSecret == "" {
		id = a.clients.Default()
	}
	client, err := a.clients.Authenticate(id, r.Body.ClientSecret)
	if err != nil {
		return nil, err
	}
	rest.Claimed(ctx, audit.Principal{ClientID: client.ID})
	if first, known := a.confirming.proved.find(ref, client.ID, login, password); known {
		return &signin.Confirmer{Who: first.Who, Client: client, First: &first}, nil
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
	return &signin.Confirmer{Who: first.Who, Client: client, First: &first}, nil
}

// beginConfirmation is the first call: it finds or creates the record and begins or repeats
// its challenge.
func (a *API) beginConfirmation(ctx context.Context, c *signin.Confirmer, r *confirmationRequest, v2 bool) (confirmationAnswer, error) {
	b := &r.Body
	id := cmp.Or(b.OperationId, b.TransactionTokenId)
	var record confirm.Record
	var err error
	switch {
	case b.OperationId != "" && b.TransactionTokenId != "" && b.OperationId != b.TransactionTokenId,
		id != "" && b.ConfirmationScope != "":
		err = fault.New(fault.InvalidParameters, "want one of OperationId, TransactionTokenId and ConfirmationScope")
	case id != "":
		if record, err = a.confirming.records.Find(ctx, c.Who, id); err == nil {
			err = c.May(&record)
		}
		if err == nil && record.State == confirm.Completed { // it carried itself out before the client asked again
			return a.concluded(ctx, c, &record, r)
		}
	case b.ConfirmationScope != "":
		record, err = a.confirming.steps.TextRecord(ctx, c, b.ConfirmationScope, string(b.ConfirmationParams.Templte))
	case c.First == nil:
		err = fault.New(fault.InvalidParameters, "want OperationId, TransactionTokenId or ConfirmationScope")
	case b.Resource == "" && bearerOf(r.Authorization) == "": // the grant of an mfa_token had one
		err = fault.New(fault.InvalidParameters, "Resource: missing")
	default:
		var needed bool
		if record, needed, err = a.confirming.steps.SecondStep(ctx, *c.First); err == nil && !needed {
			t, err := a.confirming.steps.SignIn(ctx, *c.First, nil)
			return final(t), err
		}
	}
	if err != nil {
		return confirmationAnswer{}, err
	}
	rest.Concerning(ctx, record.ID)
	p, err := a.challenge(ctx, c, &record, "", r, v2)
	if err != nil {
		return confirmationAnswer{}, err
	}
	return a.prompt(ctx, c, &p, a.wordsFor(ctx, visit{Languages: r.Languages}), false)
}

// concluded answers the first call about an operation that was carried out.
func (a *API) concluded(ctx context.Context, c *signin.Confirmer, record *confirm.Record, r *confirmationRequest) (confirmationAnswer, error) {
	rest.Concerning(ctx, record.ID)
	p, err := a.confirming.records.Poll(ctx, c.Who, record.RefID)
	if err != nil {
		return confirmationAnswer{}, err
	}
	return a.prompt(ctx, c, &p, a.wordsFor(ctx, visit{Languages: r.Languages}), false)
}

// challenge begins or repeats the challenge of a record. choice is the RefID of a choice, ""
// for none.
func (a *API) challenge(ctx context.Context, c *signin.Confirmer, record *confirm.Record, choice string, r *confirmationRequest, v2 bool) (confirm.Prompt, error) {
	want := signin.Choice{MyDSS: v2, Callback: r.Body.CallbackUri}
	if choice != "" {
		uri, address, _ := strings.Cut(choice, "?")
		i := slices.IndexFunc(confirm.MethodNames(), func(name string) bool { return strings.EqualFold(uri, confirmURI(name)) })
		if i < 0 {
			return confirm.Prompt{}, fault.New(fault.InvalidParameters, "ChoiceSelected: unknown, choose one that was offered")
		}
		want.Method, want.Address = confirm.MethodNames()[i], address
	}
	return a.confirming.steps.Challenge(ctx, c, record, want)
}

// prompt returns the answer with a challenge, or after the confirmation with the token.
// answered means that this call gave the right answer.
func (a *API) prompt(ctx context.Context, c *signin.Confirmer, p *confirm.Prompt, w words, answered bool) (confirmationAnswer, error) {
	r := &p.Record
	if r.State == confirm.Confirmed || r.State == confirm.Completed {
		t, err := a.confirming.steps.Redeem(ctx, c, r, answered)
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
	var shown []string
	if p.Wrong != nil {
		rest.Refused(ctx, p.Wrong.Code)
		shown = append(shown, w.WrongCode)
	}
	if r.Number != "" {
		shown = append(shown, w.Compare+" "+r.Number)
	}
	answer.Challenge.Title.Value = strings.Join(shown, " ")
	answer.Challenge.TextChallenge = []textChallenge{{
		RefID: r.RefID, Label: r.Label, AuthnMethod: confirmURI(r.Method), Title: answer.Challenge.Title.Value,
		CreatedAt: r.SentAt.Unix(), ExpiresIn: int64(r.AnswerBefore.Sub(r.SentAt).Seconds()), ExpiresInSpecified: true,
	}}
	if p.QR != "" {
		picture, err := a.confirming.paint(p.QR)
		if err != nil {
			return confirmationAnswer{}, err
		}
		answer.Challenge.TextChallenge[0].Image = &picturePNG{"image/png", picture}
	}
	return answer, nil
}

// confirmURI returns the address of a method of package confirm.
func confirmURI(name string) string { return signin.ConfirmationURI(name) }

// confirmationAnswer is an answer. Clients take a missing IsFinal or IsError as true, so both are
// always sent, and a key without a value is never sent.
type confirmationAnswer struct {
	IsFinal          bool
	IsError          bool
	Challenge        *challenge `json:",omitempty"`
	AccessToken      string     `json:",omitempty"`
	ExpiresIn        int64      `json:",omitempty"`
	RefreshToken     string     `json:",omitempty"`
	Error            string     `json:",omitempty"`
	ErrorDescription string     `json:",omitempty"`
}

func final(t token.Token) confirmationAnswer {
	return confirmationAnswer{IsFinal: true, AccessToken: t.AccessToken, ExpiresIn: int64(t.ExpiresIn.Seconds()), RefreshToken: t.RefreshToken}
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
	Title              string // not an object as the title of the challenge: clients read it as text
	CreatedAt          int64  // Unix seconds
	ExpiresIn          int64  // seconds from then
	ExpiresInSpecified bool
	IsHidden           bool
	MaxLenSpecified    bool
	HideTextSpecified  bool
	Image              *picturePNG `json:",omitempty"` // QR code for a device without a network
}

type picturePNG struct {
	MimeType string
	Value    []byte
}

type choiceChallenge struct {
	RefID      string
	ExactlyOne bool
	Choice     []choiceOf
}

type choiceOf struct{ RefID, Label string }
