// SPDX-License-Identifier: Apache-2.0

package tokenapi

import (
	"bytes"
	_ "embed"
	"html/template"
	"net/http"
	"net/url"
	"strings"
	"time"

	"golang.org/x/text/language"

	"tamga/internal/domain/fault"
	"tamga/internal/domain/signin"
	"tamga/internal/domain/token"
	"tamga/internal/web/rest"
)

//go:embed login.html
var loginText string

//go:embed login.css
var loginStyle string

//go:embed repost.html
var repostText string

// repost posts the form of repost.html without a click.
const repost = template.JS("document.forms[0].submit()")

var (
	loginTemplate  = template.Must(template.New("login").Parse(loginText))
	repostTemplate = template.Must(template.New("repost").Parse(repostText))
)

// words are the texts of the page in one language.
type words struct {
	Language, Title, For, Login, Password, Enter, Other, Wrong, Busy, SecondStep, Ended, Continue, WrongCode string

	// Of the second step.
	Confirm, Choose, OnDevice, Compare, CodeLabel, Check, Resend, OtherWay string

	Ways     map[string]string // titles of methods
	Asks     map[string]string // what a method asks; the address follows
	Problems map[string]string // by code
}

var languages = []words{
	{
		Language: "en", Title: "Sign in", For: "to continue to", Login: "Login, phone or e-mail", Password: "Password", Enter: "Sign in",
		Other: "Or sign in with", Wrong: "The name or the password is not correct.",
		Busy:       "Too many sign-ins at this moment. Wait a little and try again.",
		SecondStep: "Your sign-in must be confirmed, and you have no way to confirm it. Ask your administrator.",
		Ended:      "This sign-in has ended or was begun elsewhere. Go back to the application and begin again.",
		Continue:   "Continue",
		WrongCode:  "The code is wrong. Try again.",
		Confirm:    "Confirm your sign-in", Choose: "Choose how to confirm:", OnDevice: "Confirm the sign-in on your device", Compare: "The device asks for this number:",
		CodeLabel: "Code", Check: "I have confirmed", Resend: "Send another code", OtherWay: "Confirm in another way",
		Ways: map[string]string{"mydss": "On the device", "mobile": "On the device", "otpviasms": "By SMS to", "otpviaemail": "By e-mail to", "oath": "By a code of the token or app"},
		Asks: map[string]string{"otpviasms": "A code was sent by SMS to", "otpviaemail": "A code was sent by e-mail to", "oath": "Enter a code of your token or app"},
		Problems: map[string]string{
			fault.TransactionExpired: "The time is over.", fault.MaxAttempts: "Too many wrong codes.", fault.AuthenticationDeclined: "The sign-in was declined.",
			fault.TooManyRequests: "Too many messages were sent. Wait a little.", fault.MethodNotConfirmed: "You have no way to confirm the sign-in. Ask your administrator.",
			fault.InvalidParameters: "You cannot confirm in this way. Choose another one.", fault.InvalidTransaction: "The sign-in was cancelled.",
		},
	},
	{
		Language: "ru", Title: "Вход", For: "чтобы продолжить работу в", Login: "Логин, телефон или электронная почта", Password: "Пароль", Enter: "Войти",
		Other: "Или войдите через", Wrong: "Имя или пароль указаны неверно.",
		Busy:       "Сейчас слишком много попыток входа. Подождите немного и попробуйте ещё раз.",
		SecondStep: "Вход нужно подтвердить, но подтвердить его вам нечем. Обратитесь к администратору.",
		Ended:      "Этот вход завершён или был начат в другом окне. Вернитесь в приложение и начните снова.",
		Continue:   "Продолжить",
		WrongCode:  "Код неверный. Попробуйте ещё раз.",
		Confirm:    "Подтвердите вход", Choose: "Как подтвердить вход?", OnDevice: "Подтвердите вход на устройстве", Compare: "Число для устройства:",
		CodeLabel: "Код", Check: "Вход подтверждён", Resend: "Отправить новый код", OtherWay: "Подтвердить другим способом",
		Ways: map[string]string{"mydss": "На устройстве", "mobile": "На устройстве", "otpviasms": "По SMS на номер", "otpviaemail": "По почте на адрес", "oath": "Кодом токена или приложения"},
		Asks: map[string]string{"otpviasms": "Код отправлен по SMS на номер", "otpviaemail": "Код отправлен на адрес", "oath": "Введите код токена или приложения"},
		Problems: map[string]string{
			fault.TransactionExpired: "Время вышло.", fault.MaxAttempts: "Слишком много неверных кодов.", fault.AuthenticationDeclined: "Вход отклонён.",
			fault.TooManyRequests: "Отправлено слишком много сообщений. Подождите немного.", fault.MethodNotConfirmed: "Подтвердить вход вам нечем. Обратитесь к администратору.",
			fault.InvalidParameters: "Так подтвердить вход нельзя. Выберите другой способ.", fault.InvalidTransaction: "Вход отменён.",
		},
	},
}

var matcher = language.NewMatcher([]language.Tag{language.English, language.Russian})

// wordsFor returns the texts in the language that the client asks for, otherwise in one
// that the browser prefers.
func wordsFor(r visit) words {
	if len(r.Languages) > 256 {
		r.Languages = ""
	}
	locales := strings.Fields(r.Body.Get("ui_locales"))
	_, i := language.MatchStrings(matcher, append(locales[:min(len(locales), 8)], r.Languages)...)
	return languages[i]
}

// loginPage returns the form. complaint is the reason to show it again, "" at first.
func (a *API) loginPage(r visit, p signin.Pending, ticket, name, complaint string) (rest.Page, error) {
	type other struct{ Title, Address string }
	view := struct {
		words
		Style                                 template.CSS
		Client, Action, Ticket, Name, Problem string
		Others                                []other
	}{words: wordsFor(r), Style: template.CSS(loginStyle), Client: p.ClientID, Action: a.issuer + loginPath, Ticket: ticket, Name: name, Problem: complaint}
	for _, provider := range a.identity.Providers() {
		view.Others = append(view.Others, other{provider.Title(), a.issuer + externalPath + "/" + url.PathEscape(provider.Name()) + "?ticket=" + url.QueryEscape(ticket)})
	}
	page, err := render(loginTemplate, view)
	page.Policy = policyFor(a.issuer, p.RedirectURI)
	return page, err
}

func render(of *template.Template, view any) (rest.Page, error) {
	var text bytes.Buffer
	err := of.Execute(&text, view)
	return rest.Page{Content: bytes.NewReader(text.Bytes())}, err
}

// tryAgain returns the form again, with the name and without the password.
func (a *API) tryAgain(r visit, p signin.Pending, ticket, name string, g *token.GrantError) (any, error) {
	w := wordsFor(r)
	complaint := w.Wrong
	if g.Code == token.SecondStepNeeded {
		complaint = w.SecondStep
	}
	page, err := a.loginPage(r, p, ticket, name, complaint)
	if err != nil {
		return nil, err
	}
	page.Status = http.StatusUnauthorized
	return nil, pageRefusal{page: page, outcome: g.Code}
}

// tryLater returns the form again after too many attempts.
func (a *API) tryLater(r visit, p signin.Pending, ticket, name string, err error) (any, error) {
	page, rendering := a.loginPage(r, p, ticket, name, wordsFor(r).Busy)
	if rendering != nil {
		return nil, rendering
	}
	page.Status = http.StatusTooManyRequests
	refusal := pageRefusal{page: page, outcome: fault.TooManyRequests}
	if f, ok := fault.As(err); ok {
		refusal.after = f.After
	}
	return nil, refusal
}

// ended is shown to a browser whose ticket is not valid any more.
func (a *API) ended(r visit, err error) (any, error) {
	if !fault.Is(err, fault.AccessDenied) {
		return nil, err
	}
	w := wordsFor(r)
	page, rendering := render(loginTemplate, struct {
		words
		Style                                 template.CSS
		Client, Action, Ticket, Name, Problem string
		Others                                []struct{ Title, Address string }
	}{words: w, Style: template.CSS(loginStyle), Problem: w.Ended})
	if rendering != nil {
		return nil, rendering
	}
	page.Policy, page.Status = policyFor(a.issuer, ""), http.StatusForbidden
	return nil, pageRefusal{page: page, outcome: fault.AccessDenied}
}

// pageRefusal is a refusal as a page for people.
type pageRefusal struct {
	page    rest.Page
	outcome string
	after   time.Duration // before the next attempt; 0: not stated
}

func (e pageRefusal) Error() string   { return e.outcome }
func (e pageRefusal) Outcome() string { return e.outcome }

// Answer implements rest.Refusal.
func (e pageRefusal) Answer() (int, http.Header, any) {
	header := http.Header{}
	if e.after > 0 {
		header.Set("Retry-After", rest.RetryAfter(e.after))
	}
	return e.page.Status, header, e.page
}

// Hashes with which a policy allows the style and the script of a page.
var (
	styleHash  = rest.ContentHash(loginStyle)
	repostHash = rest.ContentHash(string(repost))
)

// policyFor allows the page its own style, and its form two targets: this server, and the
// client to which the answer to the form redirects. It allows nothing else, and no frame
// around the page.
func policyFor(issuer, redirectURI string) string {
	form := origin(issuer)
	if to := origin(redirectURI); to != "" && to != form {
		form += " " + to
	}
	return "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; style-src " + styleHash + "; form-action " + form
}

// origin returns the source expression of an address of the configuration: scheme and host,
// or the scheme alone if it belongs to an application.
func origin(address string) string {
	u, err := url.Parse(address)
	switch {
	case err != nil || u.Scheme == "":
		return ""
	case (u.Scheme == "http" || u.Scheme == "https") && u.Host != "":
		return u.Scheme + "://" + u.Host
	}
	return u.Scheme + ":"
}
