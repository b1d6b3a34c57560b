// SPDX-License-Identifier: Apache-2.0

package tokenapi

import (
	"bytes"
	"cmp"
	"context"
	_ "embed"
	"errors"
	"html/template"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

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
	Brand, Request                                                                                           string // name of the installation, id of the request
	Language, Title, For, Login, Password, Enter, Other, Wrong, Busy, SecondStep, Ended, Continue, WrongCode string
	Name, Forgotten, ForgottenHow, Refused, Invalid, Done, CodeFor, RequestNumber                            string

	// Of the second step.
	Confirm, Choose, OnDevice, Compare, CodeLabel, Check, Resend, OtherWay string

	// Of a device without a network.
	Offline, Scan, QRCode, NoOffline, Back string

	// Of a passkey.
	UsePasskey, PasskeyOff, PasskeyFailed, WrongPasskey string

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
		Name:       "English", Forgotten: "Forgot your password?", ForgottenHow: "Ask your administrator for a new one. They check who you are and hand it over in the way your organisation has chosen.",
		Refused: "This did not work", RequestNumber: "Request number",
		Invalid: "The application sent a request that this service cannot accept. Tell those who run the application what is written below.",
		Done:    "You are signed in", CodeFor: "Give this code to the application that asked for it, and to no other application. It is valid for a few minutes.",
		WrongCode: "The code is wrong. Try again.",
		Confirm:   "Confirm your sign-in", Choose: "Choose how to confirm:", OnDevice: "Confirm the sign-in on your device", Compare: "The device asks for this number:",
		CodeLabel: "Code", Check: "I have confirmed", Resend: "Send another code", OtherWay: "Confirm in another way",
		Offline: "The device has no network", Scan: "Scan the QR code with the device and enter the code that it shows. Device:", QRCode: "QR code for the device",
		NoOffline: "This device needs a network: it registered before there were codes for devices without one.", Back: "Wait for the device",
		UsePasskey: "Use a passkey", PasskeyOff: "This needs a browser that runs scripts and has passkeys.", PasskeyFailed: "The passkey did not answer, or you stopped it. Try again.",
		WrongPasskey: "The passkey was not accepted. Try again.",
		Ways:         map[string]string{"mydss": "On the device", "mobile": "On the device", "otpviasms": "By SMS to", "otpviaemail": "By e-mail to", "oath": "By a code of the token or app", "passkey": "With a passkey"},
		Asks:         map[string]string{"otpviasms": "A code was sent by SMS to", "otpviaemail": "A code was sent by e-mail to", "oath": "Enter a code of your token or app", "passkey": "Confirm with your passkey"},
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
		Name:       "Русский", Forgotten: "Забыли пароль?", ForgottenHow: "Обратитесь к администратору: он убедится, что это вы, и выдаст новый пароль так, как принято в вашей организации.",
		Refused: "Не получилось", RequestNumber: "Номер запроса",
		Invalid: "Приложение прислало запрос, который сервис принять не может. Передайте тем, кто отвечает за приложение, сообщение, приведённое ниже.",
		Done:    "Вход выполнен", CodeFor: "Введите этот код в приложении, которое его запросило, и больше никому не сообщайте. Код действует несколько минут.",
		WrongCode: "Код неверный. Попробуйте ещё раз.",
		Confirm:   "Подтвердите вход", Choose: "Как подтвердить вход?", OnDevice: "Подтвердите вход на устройстве", Compare: "Число для устройства:",
		CodeLabel: "Код", Check: "Вход подтверждён", Resend: "Отправить новый код", OtherWay: "Подтвердить другим способом",
		Offline: "Устройство без сети", Scan: "Считайте QR-код устройством и введите код, который оно покажет. Устройство:", QRCode: "QR-код для устройства",
		NoOffline: "Этому устройству нужна сеть: оно зарегистрировано до появления кодов для устройств без сети.", Back: "Ждать ответа устройства",
		UsePasskey: "Использовать ключ доступа", PasskeyOff: "Нужен браузер, который выполняет сценарии и поддерживает ключи доступа.", PasskeyFailed: "Ключ доступа не ответил, или вы отменили запрос. Попробуйте ещё раз.",
		WrongPasskey: "Ключ доступа не принят. Попробуйте ещё раз.",
		Ways:         map[string]string{"mydss": "На устройстве", "mobile": "На устройстве", "otpviasms": "По SMS на номер", "otpviaemail": "По почте на адрес", "oath": "Кодом токена или приложения", "passkey": "Ключом доступа"},
		Asks:         map[string]string{"otpviasms": "Код отправлен по SMS на номер", "otpviaemail": "Код отправлен на адрес", "oath": "Введите код токена или приложения", "passkey": "Подтвердите ключом доступа"},
		Problems: map[string]string{
			fault.TransactionExpired: "Время вышло.", fault.MaxAttempts: "Слишком много неверных кодов.", fault.AuthenticationDeclined: "Вход отклонён.",
			fault.TooManyRequests: "Отправлено слишком много сообщений. Подождите немного.", fault.MethodNotConfirmed: "Подтвердить вход вам нечем. Обратитесь к администратору.",
			fault.InvalidParameters: "Так подтвердить вход нельзя. Выберите другой способ.", fault.InvalidTransaction: "Вход отменён.",
		},
	},
}

// wordsFor returns the texts in the language that the client asks for, otherwise in one
// that the browser prefers, otherwise in that of the installation.
func (a *API) wordsFor(ctx context.Context, r visit) words {
	code := rest.LanguageFor(a.language, r.Languages, strings.Fields(r.Body.Get("ui_locales"))...)
	w := languages[slices.IndexFunc(languages, func(w words) bool { return w.Language == code })]
	w.Brand, w.Request = a.name, rest.RequestID(ctx)
	return w
}

// loginView is what login.html shows. Ticket is empty on pages without the form.
type loginView struct {
	words
	Style                                         template.CSS
	Client, Action, Ticket, User, Problem, Detail string
	Code                                          string // for an application that has no address
	Switch                                        *languageLink
	Others                                        []otherProvider
}

// languageLink leads to the page in the other language.
type languageLink struct{ Language, Name, Address string }

// other returns the link to the page in the other language.
func (w *words) other(address func(language string) string) *languageLink {
	for _, l := range languages {
		if l.Language != w.Language {
			return &languageLink{l.Language, l.Name, address(l.Language)}
		}
	}
	return nil
}

// in returns the parameters of a request to authorize in another language. What occurs twice
// still does, so the answer is the same.
func (r *visit) in(language string) url.Values {
	query := url.Values{}
	for _, name := range authorizeParameters {
		if values := r.Body[name]; len(values) > 0 && name != "ui_locales" {
			query[name] = values[:min(len(values), 2)]
		}
	}
	query.Set("ui_locales", language)
	return query
}

type otherProvider struct{ Title, Address string }

// loginPage returns the form. complaint is the reason to show it again, "" at first.
func (a *API) loginPage(ctx context.Context, r visit, p signin.Pending, ticket, name, complaint string) (rest.Page, error) {
	view := loginView{
		words: a.wordsFor(ctx, r), Style: template.CSS(loginStyle), Client: a.titleOf(p.ClientID), Action: a.issuer + loginPath,
		Ticket: ticket, User: name, Problem: complaint,
	}
	view.Switch = view.other(func(language string) string { return a.again(p, name, language) })
	for _, provider := range a.identity.Providers() {
		view.Others = append(view.Others, otherProvider{provider.Title(), a.issuer + externalPath + "/" + url.PathEscape(provider.Name()) + "?ticket=" + url.QueryEscape(ticket)})
	}
	page, err := render(loginTemplate, view)
	page.Policy = policyFor(a.issuer, p.RedirectURI)
	return page, err
}

// again returns the address that begins the same sign-in in another language.
func (a *API) again(p signin.Pending, login, language string) string {
	query := url.Values{}
	for name, value := range map[string]string{
		"client_id": p.ClientID, "redirect_uri": p.RedirectURI, "response_type": p.ResponseType, "scope": p.Scope, "resource": p.Resource,
		"state": p.State, "nonce": p.Nonce, "code_challenge": p.Challenge, "login_hint": login, "ui_locales": language,
	} {
		if value != "" {
			query.Set(name, value)
		}
	}
	if p.Challenge != "" {
		query.Set("code_challenge_method", "S256")
	}
	return a.issuer + authorizePath + "?" + query.Encode()
}

// titleOf returns the name of a client for people.
func (a *API) titleOf(clientID string) string {
	client, _ := a.clients.Find(clientID)
	return cmp.Or(client.Title, clientID)
}

// forPeople makes pages of the answers of f that a browser cannot show: refusals that are JSON
// for programs, and a redirect to an application that has no address. address is that of f if it
// takes its request as a query, so that a refusal is there in the other language, too.
func (a *API) forPeople(address string, f func(context.Context, visit) (any, error)) func(context.Context, visit) (any, error) {
	return func(ctx context.Context, r visit) (any, error) {
		answer, err := f(ctx, r)
		if !strings.Contains(r.Accept, "text/html") || r.Authorization != "" {
			return answer, err
		}
		w := a.wordsFor(ctx, r)
		var refused oauthError
		if errors.As(err, &refused) {
			w.Title = w.Refused
			view := loginView{words: w, Style: template.CSS(loginStyle), Problem: w.Invalid, Detail: refused.Description}
			if address != "" {
				view.Switch = w.other(func(language string) string { return a.issuer + address + "?" + r.in(language).Encode() })
			}
			page, rendering := render(loginTemplate, view)
			if rendering != nil {
				return nil, rendering
			}
			page.Policy, page.Status = policyFor(a.issuer, ""), http.StatusBadRequest
			return nil, pageRefusal{page: page, outcome: refused.Code}
		}
		to, _ := answer.(rest.Redirect)
		if code, ok := strings.CutPrefix(to.Location, signin.RedirectOutOfBand+"?code="); ok && err == nil {
			code, _, _ = strings.Cut(code, "&")
			w.Title = w.Done
			page, err := render(loginTemplate, loginView{words: w, Style: template.CSS(loginStyle), Code: code})
			page.Policy, page.Cookie = policyFor(a.issuer, ""), to.Cookie
			return page, err
		}
		return answer, err
	}
}

func render(of *template.Template, view any) (rest.Page, error) {
	var text bytes.Buffer
	err := of.Execute(&text, view)
	return rest.Page{Content: bytes.NewReader(text.Bytes())}, err
}

// tryAgain returns the form again, with the name and without the password.
func (a *API) tryAgain(ctx context.Context, r visit, p signin.Pending, ticket, name string, g *token.GrantError) (any, error) {
	w := a.wordsFor(ctx, r)
	complaint := w.Wrong
	if g.Code == token.SecondStepNeeded {
		complaint = w.SecondStep
	}
	page, err := a.loginPage(ctx, r, p, ticket, name, complaint)
	if err != nil {
		return nil, err
	}
	page.Status = http.StatusUnauthorized
	return nil, pageRefusal{page: page, outcome: g.Code}
}

// tryLater returns the form again after too many attempts.
func (a *API) tryLater(ctx context.Context, r visit, p signin.Pending, ticket, name string, err error) (any, error) {
	page, rendering := a.loginPage(ctx, r, p, ticket, name, a.wordsFor(ctx, r).Busy)
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
func (a *API) ended(ctx context.Context, r visit, err error) (any, error) {
	if !fault.Is(err, fault.AccessDenied) {
		return nil, err
	}
	w := a.wordsFor(ctx, r)
	page, rendering := render(loginTemplate, loginView{words: w, Style: template.CSS(loginStyle), Problem: w.Ended})
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

// policyFor allows the page its own style, pictures that are part of it, and its form two
// targets: this server, and the client to which the answer to the form redirects. It allows nothing else, and no frame
// around the page.
func policyFor(issuer, redirectURI string) string {
	form := origin(issuer)
	if to := origin(redirectURI); to != "" && to != form {
		form += " " + to
	}
	return "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; img-src data:; style-src " + styleHash + "; form-action " + form
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
