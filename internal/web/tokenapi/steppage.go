// SPDX-License-Identifier: Apache-2.0

package tokenapi

import (
	"cmp"
	"context"
	_ "embed"
	"encoding/base64"
	"errors"
	"fmt"
	"html/template"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"tamga/internal/domain/audit"
	"tamga/internal/domain/confirm"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/oath"
	"tamga/internal/domain/signin"
	"tamga/internal/domain/token"
	"tamga/internal/web/rest"
)

// stepPath is the address of the page on which a user passes the second step of a sign-in.
const stepPath = "/oauth/step"

// refreshEvery is how often the page that waits for a device loads itself again, in seconds.
const refreshEvery = 5

//go:embed step.html
var stepText string

var stepTemplate = parse("step", stepText)

// stepping is a sign-in that waits for its second step in a browser.
type stepping struct {
	visit   visit
	pending signin.Pending
	request signin.Authorization
	ticket  string
	caller  signin.Confirmer
	posted  bool
}

// beginStep shows the page of the second step after the first one.
func (a *API) beginStep(ctx context.Context, r visit, p signin.Pending, request signin.Authorization, first signin.FirstStep, posted bool) (any, error) {
	p = p.Hold(first)
	ticket, err := a.identity.SealTicket(p, a.browserOf(r.Cookie), signin.StepSecond)
	if err != nil {
		return nil, err
	}
	s := a.stepping(r, p, request, ticket, first, posted)
	record, _, err := a.confirming.steps.SecondStep(ctx, first)
	if err != nil {
		return a.stepRefused(ctx, s, nil, err)
	}
	prompt, err := a.confirming.steps.Challenge(ctx, &s.caller, &record, signin.Choice{Titles: true})
	if err != nil {
		return a.stepRefused(ctx, s, &record, err)
	}
	page, err := a.stepPage(ctx, s, &prompt, "")
	page.Cookie = a.cookie(a.browserOf(r.Cookie)) // valid as long as the ticket
	return page, err
}

// offline reports whether the user wants to confirm on a device without a network.
func (s *stepping) offline() bool { return s.visit.Body.Get("offline") != "" }

func (a *API) stepping(r visit, p signin.Pending, request signin.Authorization, ticket string, first signin.FirstStep, posted bool) *stepping {
	// The page is ours: it can handle every method, whatever the application can.
	page := request.Client
	page.ConfirmMethods = confirm.MethodNames()
	return &stepping{r, p, request, ticket, signin.Confirmer{Who: first.Who, Client: page, First: &first}, posted}
}

// step receives what the page of the second step sends, and its reloads while the user
// confirms on a device.
func (a *API) step(ctx context.Context, r visit) (any, error) { return a.secondStep(ctx, r, true) }

func (a *API) stepAgain(ctx context.Context, r visit) (any, error) {
	return a.secondStep(ctx, r, false)
}

func (a *API) secondStep(ctx context.Context, r visit, posted bool) (any, error) {
	if r.Site == "cross-site" && posted {
		return nil, fault.New(fault.AccessDenied, "the form was sent by another site")
	}
	for _, name := range []string{"ticket", "code", "choice", "offline", "passkey"} {
		if len(r.Body[name]) > 1 {
			return nil, refuse(token.InvalidRequest, name+" is given more than once")
		}
	}
	ticket := r.Body.Get("ticket")
	p, err := a.identity.OpenTicket(ticket, a.browserOf(r.Cookie), signin.StepSecond)
	if err != nil {
		return a.ended(ctx, r, err)
	}
	first, err := p.FirstStep()
	if err != nil {
		return a.ended(ctx, r, err)
	}
	request, err := a.requestOf(p)
	if err != nil {
		return nil, refusal(err) // the configuration changed meanwhile
	}
	rest.Claimed(ctx, audit.Principal{ClientID: request.Client.ID})
	s := a.stepping(r, p, request, ticket, first, posted)
	record, _, err := a.confirming.steps.SecondStep(ctx, first)
	if err != nil {
		return a.stepRefused(ctx, s, nil, err)
	}
	rest.Concerning(ctx, record.ID)
	prompt, err := a.confirming.records.Poll(ctx, s.caller.Who, record.RefID)
	if err == nil && prompt.Record.State == confirm.Completed { // by this page, which has gone on
		err = fault.New(fault.InvalidTransaction, "the sign-in was completed already: begin another one")
	}
	answered := false
	if posted && !fault.Is(err, fault.AuthenticationDeclined) {
		prompt, answered, err = a.answerStep(ctx, s, &record, prompt, err)
	}
	if err == nil && prompt.Record.State == confirm.Created && len(prompt.Choices) == 0 {
		prompt, err = a.confirming.steps.Challenge(ctx, &s.caller, &record, signin.Choice{Titles: true})
	}
	if err != nil {
		return a.stepRefused(ctx, s, &record, err)
	}
	if prompt.Record.State != confirm.Confirmed {
		if prompt.Wrong == nil {
			return a.stepPage(ctx, s, &prompt, "")
		}
		complaint := a.wordsFor(ctx, r).WrongCode
		if confirm.ByPage(prompt.Record.Method) {
			complaint = a.wordsFor(ctx, r).WrongPasskey
		}
		page, err := a.stepPage(ctx, s, &prompt, complaint)
		if err != nil {
			return nil, err
		}
		page.Status = http.StatusUnauthorized
		return nil, pageRefusal{page: page, outcome: prompt.Wrong.Code}
	}
	issued, err := a.confirming.steps.CompleteStep(ctx, first, &prompt.Record, answered, request)
	if _, isFault := fault.As(err); isFault {
		return a.stepRefused(ctx, s, &prompt.Record, err)
	}
	return a.finish(ctx, p, request, issued, first.Who, err, posted)
}

// answerStep carries out what the user pressed. polled is the present state.
func (a *API) answerStep(ctx context.Context, s *stepping, record *confirm.Record, polled confirm.Prompt, err error) (p confirm.Prompt, answered bool, _ error) {
	form := s.visit.Body
	code := strings.TrimSpace(form.Get("code"))
	if signed := form.Get("passkey"); signed != "" {
		code = signed
	}
	if form.Get("choice") != "" || form.Get("again") != "" || code != "" || s.offline() {
		rest.Identified(ctx, s.caller.Who) // a reload alone has no audit entry
	}
	switch {
	case form.Get("choice") != "":
		method, address, _ := strings.Cut(form.Get("choice"), "?")
		p, err = a.confirming.steps.Challenge(ctx, &s.caller, record, signin.Choice{Method: method, Address: address, Titles: true})
		return p, false, err
	case code != "" && err == nil && polled.Record.State == confirm.Challenged:
		p, err = a.confirming.records.Answer(ctx, s.caller.Who, record.RefID, code)
		if err == nil && p.Wrong != nil && confirm.ByDevice(p.Record.Method) { // with the QR code again
			wrong := p.Wrong
			if p, err = a.confirming.steps.Challenge(ctx, &s.caller, record, signin.Choice{Titles: true}); err == nil {
				p.Wrong = wrong
			}
		}
		return p, err == nil && p.Record.State == confirm.Confirmed, err
	case form.Get("again") != "" || s.offline() && err == nil && polled.Record.State == confirm.Challenged:
		p, err = a.confirming.steps.Challenge(ctx, &s.caller, record, signin.Choice{Titles: true})
		return p, false, err
	}
	return polled, false, err
}

// stepRefused answers a fault of the second step: by the page again while the user can still
// do something, otherwise by a page that says why the sign-in has ended.
func (a *API) stepRefused(ctx context.Context, s *stepping, record *confirm.Record, err error) (any, error) {
	rest.Identified(ctx, s.caller.Who)
	f, is := fault.As(err)
	if !is || f.Code == fault.Unauthorized {
		var g *token.GrantError
		if errors.As(err, &g) {
			return goBack(ctx, s.pending, refusal(err), s.posted)
		}
		return nil, err
	}
	w := a.wordsFor(ctx, s.visit)
	if f.Code == fault.Unavailable {
		return nil, err
	}
	complaint := cmp.Or(w.Problems[f.Code], w.Problems[fault.InvalidTransaction])
	var page rest.Page
	if record != nil && (record.State == confirm.Created || record.State == confirm.Challenged) {
		// The ways that are left; none if the sign-in has ended.
		if list, failed := a.confirming.steps.Choices(ctx, &s.caller, record); failed == nil {
			open := *record
			open.State = confirm.Created
			shown, failed := a.stepPage(ctx, s, &confirm.Prompt{Record: open, Choices: list}, complaint)
			if failed != nil {
				return nil, failed
			}
			page = shown
		}
	}
	if page.Content == nil {
		view := stepView{shell: a.shell(w), Heading: w.Confirm}
		view.Title, view.Problem = w.Confirm, complaint+" "+w.Ended
		shown, failed := render(stepTemplate, view)
		if failed != nil {
			return nil, failed
		}
		page = shown
		page.Policy = policyFor(a.issuer, "")
	}
	page.Status = http.StatusForbidden
	refused := pageRefusal{page: page, outcome: f.Code}
	if f.Code == fault.TooManyRequests {
		refused.page.Status, refused.after = http.StatusTooManyRequests, f.After
	}
	return nil, refused
}

// stepView is what step.html shows.
type stepView struct {
	shell
	Heading, First                     string // First is the step before
	Action, Ticket, Ask, Label, Number string
	Lives, WaitsFor, RepeatsIn         string       // for how long the challenge can be answered, and when its message may be sent again
	Picture                            template.URL // QR code for a device without a network
	Reload                             string
	Passkey                            string // options for the browser
	Script                             template.JS
	Next                               string // address of the page that waits for a device
	Code, Waiting, Again               bool
	Boxes                              bool // the code has as many digits as the field has boxes
	Choices                            []choiceView
	Beside                             bool // the choices are other ways than the one of the page
}

// codeBoxes is the number of boxes of the field of a code; see tamga.css.
const codeBoxes = 6

type choiceView struct{ Value, Title, Label, Icon string }

// icons are those of the methods.
var icons = map[string]string{"mydss": "phone", "mobile": "phone", "otpviasms": "sms", "otpviaemail": "mail", "oath": "codes", "passkey": "passkey"}

// choices returns the ways to confirm as the page shows them, without the way of the record.
func (w *words) choices(list []confirm.Choice, but *confirm.Record) []choiceView {
	var shown []choiceView
	for _, c := range list {
		if c.Method == but.Method && c.Label == but.Label {
			continue
		}
		value := c.Method
		if c.Address != "" {
			value += "?" + c.Address
		}
		shown = append(shown, choiceView{value, w.Ways[c.Method], c.Label, icons[c.Method]})
	}
	return shown
}

// span returns a length of time in whole minutes, or in seconds if it is shorter.
func (w *words) span(d time.Duration) string {
	if d >= time.Minute {
		return strconv.Itoa(int((d+time.Minute-1)/time.Minute)) + "\u00a0" + w.Minutes
	}
	return strconv.Itoa(int((d+time.Second-1)/time.Second)) + "\u00a0" + w.Seconds
}

// stepPage shows what the user is asked.
func (a *API) stepPage(ctx context.Context, s *stepping, p *confirm.Prompt, complaint string) (rest.Page, error) {
	r := &p.Record
	view := stepView{shell: a.shell(a.wordsFor(ctx, s.visit)), Action: a.issuer + stepPath, Ticket: s.ticket}
	a.asked(&view.shell, s.pending)
	view.Title = view.Confirm
	view.Problem, view.Heading, view.First = complaint, view.Headings[r.Method], view.FirstStep
	if s.caller.Who.Method == "password" {
		view.First = view.ByPassword
	}
	if p.Wrong != nil {
		view.Wrongly = true
		view.Problem += " " + fmt.Sprintf(view.Left, p.Left, p.Most)
	}
	if p.Lives > 0 {
		view.Lives, view.WaitsFor = fmt.Sprintf(view.Alive, view.span(p.Lives)), fmt.Sprintf(view.Waits, view.span(p.Lives))
	}
	others := true
	switch {
	case len(p.Choices) > 0:
		view.Heading, view.Ask, view.Lives, others = view.Confirm, view.Choose, "", false
		view.Choices = view.choices(p.Choices, &confirm.Record{})
	case confirm.ByDevice(r.Method) && s.offline() && p.QR != "":
		// The page does not load itself again: the code that is typed would be lost.
		picture, err := a.confirming.paint(p.QR)
		if err != nil {
			return rest.Page{}, err
		}
		view.Picture = template.URL("data:image/png;base64," + base64.StdEncoding.EncodeToString(picture))
		view.Ask, view.Label, view.Number, view.Code = view.Scan, r.Label, r.Number, true
		view.Reload = a.issuer + stepPath + "?ticket=" + url.QueryEscape(s.ticket)
	case confirm.ByDevice(r.Method):
		if s.offline() {
			view.Problem = view.NoOffline
		}
		view.Ask, view.Label, view.Number, view.Waiting, view.Lives = view.OnPage, r.Label, r.Number, true, ""
		if r.Number != "" {
			view.Ask = view.OnDevice
		}
		view.Next = a.issuer + stepPath + "?ticket=" + url.QueryEscape(s.ticket) + "&ui_locales=" + view.Language
		view.Refresh, view.Script = strconv.Itoa(refreshEvery)+";url="+view.Next, template.JS(againScript)
	case confirm.ByPage(r.Method):
		view.Passkey, view.Script = string(p.Request), template.JS(rest.PasskeyScript)
	default:
		view.Ask, view.Label, view.Code, view.Boxes = view.Asks[r.Method], r.Label, true, p.Digits == codeBoxes
		view.Again = r.Method != oath.Method // nothing is sent for it
		if view.Again && p.RepeatsIn > 0 {
			view.RepeatsIn = fmt.Sprintf(view.Later, view.span(p.RepeatsIn))
		}
	}
	if others {
		list, err := a.confirming.steps.Choices(ctx, &s.caller, r)
		if err != nil {
			return rest.Page{}, err
		}
		view.Choices, view.Beside = view.choices(list, r), true
	}
	page, err := render(stepTemplate, view)
	page.Policy = policyFor(a.issuer, s.pending.RedirectURI)
	if view.Script != "" {
		page.Policy += "; script-src " + rest.ContentHash(string(view.Script))
	}
	return page, err
}

// againScript loads a page that waits for a device again, while it is in sight. Without scripts a header of the page does.
var againScript = fmt.Sprintf(`setInterval(() => {
  if (!document.hidden) location.replace(document.querySelector("[data-next]").dataset.next)
}, %d)
`, 1000*refreshEvery)
