// SPDX-License-Identifier: Apache-2.0

package tokenapi

import (
	"bytes"
	"cmp"
	"context"
	_ "embed"
	"errors"
	"fmt"
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
	"tamga/internal/web/rest/look"
)

//go:embed login.html
var loginText string

//go:embed frame.html
var frameText string

//go:embed repost.html
var repostText string

// repost posts the form of repost.html without a click.
const repost = template.JS("document.forms[0].submit()")

var (
	loginTemplate  = parse("login", loginText)
	repostTemplate = parse("repost", repostText)
)

// parse returns the template of a page, which may use the parts of frame.html.
func parse(name, text string) *template.Template {
	t := template.Must(template.New("frame").Funcs(template.FuncMap{"icon": look.Icon}).Parse(frameText))
	return template.Must(t.New(name).Parse(text))
}

// words are the texts of the page in one language.
type words struct {
	Brand, Request                                                                                                   string // name of the installation, id of the request
	Language, Title, Foot, For, Login, Password, Enter, Through, Wrong, Busy, SecondStep, Ended, Continue, WrongCode string
	Name, Forgotten, ForgottenHow, Refused, Invalid, Done, CodeFor, RequestNumber                                    string

	// Of the second step.
	Confirm, Choose, OnDevice, OnPage, Compare, CodeLabel, Check, Resend, OtherWay string
	StepsOf, ByPassword, FirstStep, Second, NotYou                                 string
	Alive, Waits, Left, Later, Minutes, Seconds                                    string // with a length of time, or a number of attempts

	// Of a device without a network.
	Offline, Scan, QRCode, NoOffline, Back string

	// Of a passkey.
	UsePasskey, PasskeyOff, PasskeyFailed, WrongPasskey string

	Ways     map[string]string // titles of methods
	Headings map[string]string // of the page of a method
	Asks     map[string]string // what a method asks; the address follows
	Problems map[string]string // by code
}

var languages = []words{
	{
		Language: "en", Title: "Sign in", Foot: "%s – electronic signature service", For: "This sign-in was asked for by", Login: "Login, phone or e-mail", Password: "Password", Enter: "Sign in",
		Through: "With", Wrong: "The login or the password is not correct. Check the keyboard layout and Caps Lock.",
		Busy:       "Too many sign-ins at this moment. Wait a little and try again.",
		SecondStep: "Your sign-in must be confirmed, and you have no way to confirm it. Ask your administrator.",
		Ended:      "This sign-in has ended or was begun elsewhere. Go back to the application and begin again.",
		Continue:   "Continue",
		Name:       "English", Forgotten: "Forgot your password, or lost your phone?", ForgottenHow: "An operator of your organisation gives you a new password. Call them yourself, at a number that you know: an operator never asks for your password or for codes.",
		Refused: "This did not work", RequestNumber: "Request number",
		Invalid: "The application sent a request that this service cannot accept. Tell those who run the application what is written below.",
		Done:    "You are signed in", CodeFor: "Give this code to the application that asked for it, and to no other application. It is valid for a few minutes.",
		WrongCode: "The code is wrong.",
		Confirm:   "Confirm your sign-in", Choose: "Choose how to confirm it.", OnDevice: "Open Tamga there and choose the number that you see here. Device:", OnPage: "Confirm the sign-in there. Device:", Compare: "Number:",
		CodeLabel: "Code", Check: "I have answered, continue", Resend: "Send another code", OtherWay: "Another way",
		StepsOf: "Steps of the sign-in", ByPassword: "Password", FirstStep: "First step", Second: "Second step",
		NotYou: "You are not signing in? Press nothing and tell an operator: someone else knows your password.",
		Alive:  "Valid for another %s.", Waits: "Waiting for the answer for another %s. The page continues by itself.", Left: "Attempts left: %d of %d.", Later: "possible in %s",
		Minutes: "min", Seconds: "s",
		Offline: "The phone has no network", Scan: "Scan the QR code with the device and enter the code that it shows. Device:", QRCode: "QR code for the device",
		NoOffline: "This device needs a network: it registered before there were codes for devices without one.", Back: "Wait for the device",
		UsePasskey: "Use a passkey", PasskeyOff: "This needs a browser that runs scripts and has passkeys.", PasskeyFailed: "The passkey did not answer, or you stopped it. Try again.",
		WrongPasskey: "The passkey was not accepted. Try again.",
		Ways:         map[string]string{"mydss": "On the phone", "mobile": "On the phone", "otpviasms": "Code by SMS to", "otpviaemail": "Code by e-mail to", "oath": "Code of the app or token", "passkey": "Passkey"},
		Headings:     map[string]string{"mydss": "Answer on the phone", "mobile": "Answer on the phone", "otpviasms": "Enter the code of the SMS", "otpviaemail": "Enter the code of the e-mail", "oath": "Enter a code of your app or token", "passkey": "Confirm with your passkey"},
		Asks:         map[string]string{"otpviasms": "Sent to", "otpviaemail": "Sent to"},
		Problems: map[string]string{
			fault.TransactionExpired: "The time is over.", fault.MaxAttempts: "Too many wrong codes.", fault.AuthenticationDeclined: "The sign-in was declined.",
			fault.TooManyRequests: "Too many messages were sent. Wait a little.", fault.MethodNotConfirmed: "You have no way to confirm the sign-in. Ask your administrator.",
			fault.InvalidParameters: "You cannot confirm in this way. Choose another one.", fault.InvalidTransaction: "The sign-in was cancelled.",
		},
	},
	{
		Language: "ru", Title: "Вход", Foot: "%s – сервис электронной подписи", For: "Вход запросило приложение", Login: "Логин, телефон или почта", Password: "Пароль", Enter: "Войти",
		Through: "Через", Wrong: "Логин или пароль неверен. Проверьте раскладку и Caps Lock.",
		Busy:       "Сейчас слишком много попыток входа. Подождите немного и попробуйте ещё раз.",
		SecondStep: "Вход нужно подтвердить, но подтвердить его вам нечем. Обратитесь к администратору.",
		Ended:      "Этот вход завершён или был начат в другом окне. Вернитесь в приложение и начните снова.",
		Continue:   "Продолжить",
		Name:       "Русский", Forgotten: "Забыли пароль или потеряли телефон?", ForgottenHow: "Новый пароль выдаёт оператор вашей организации. Позвоните ему сами, по известному вам номеру: оператор никогда не спрашивает ваш пароль и коды.",
		Refused: "Не получилось", RequestNumber: "Номер запроса",
		Invalid: "Приложение прислало запрос, который сервис принять не может. Передайте тем, кто отвечает за приложение, сообщение, приведённое ниже.",
		Done:    "Вход выполнен", CodeFor: "Введите этот код в приложении, которое его запросило, и больше никому не сообщайте. Код действует несколько минут.",
		WrongCode: "Код неверен.",
		Confirm:   "Подтвердите вход", Choose: "Выберите способ.", OnDevice: "Откройте на нём Tamga и нажмите число, которое видите здесь. Устройство:", OnPage: "Подтвердите на нём вход. Устройство:", Compare: "Число:",
		CodeLabel: "Код", Check: "Ответ уже дан, продолжить", Resend: "Прислать ещё раз", OtherWay: "Другой способ",
		StepsOf: "Шаги входа", ByPassword: "Пароль", FirstStep: "Первый шаг", Second: "Второй шаг",
		NotYou: "Вы не входили? Ничего не нажимайте и сообщите оператору: ваш пароль знает кто-то ещё.",
		Alive:  "Действует ещё %s.", Waits: "Ждём ответа с телефона ещё %s. Страница продолжит сама.", Left: "Осталось попыток: %d из %d.", Later: "можно через %s",
		Minutes: "мин", Seconds: "с",
		Offline: "На телефоне нет связи", Scan: "Считайте QR-код устройством и введите код, который оно покажет. Устройство:", QRCode: "QR-код для устройства",
		NoOffline: "Этому устройству нужна сеть: оно зарегистрировано до появления кодов для устройств без сети.", Back: "Ждать ответа устройства",
		UsePasskey: "Использовать ключ доступа", PasskeyOff: "Нужен браузер, который выполняет сценарии и поддерживает ключи доступа.", PasskeyFailed: "Ключ доступа не ответил, или вы отменили запрос. Попробуйте ещё раз.",
		WrongPasskey: "Ключ доступа не принят. Попробуйте ещё раз.",
		Ways:         map[string]string{"mydss": "На телефоне", "mobile": "На телефоне", "otpviasms": "Код по SMS на", "otpviaemail": "Код по почте на", "oath": "Код из приложения или токена", "passkey": "Ключ доступа"},
		Headings:     map[string]string{"mydss": "Ответьте на телефоне", "mobile": "Ответьте на телефоне", "otpviasms": "Введите код из SMS", "otpviaemail": "Введите код из письма", "oath": "Введите код из приложения или токена", "passkey": "Подтвердите ключом доступа"},
		Asks:         map[string]string{"otpviasms": "Отправлен на", "otpviaemail": "Отправлен на"},
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
	w.Brand, w.Request, w.Foot = a.name, rest.RequestID(ctx), fmt.Sprintf(w.Foot, a.name)
	return w
}

// shell is what every page has.
type shell struct {
	words
	Style        string // address
	Favicon      template.URL
	Refresh      string // when the page loads itself again, and from where; "": never
	Problem      string
	Wrongly      bool   // Problem is about the field of the page
	Client, Site string // the application that asks, and its host
}

// shell returns what a page with these words has.
func (a *API) shell(w words) shell {
	return shell{words: w, Style: a.issuer + look.Style.Path, Favicon: look.Favicon}
}

// asked names the application of a sign-in.
func (a *API) asked(s *shell, p signin.Pending) {
	s.Client = a.titleOf(p.ClientID)
	if to, err := url.Parse(p.RedirectURI); err == nil {
		s.Site = to.Host
	}
}

// loginView is what login.html shows. Ticket is empty on pages without the form.
type loginView struct {
	shell
	Action, Ticket, User, Detail string
	Code                         string // for an application that has no address
	Switch                       *languageLink
	Others                       []otherProvider
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
		shell: a.shell(a.wordsFor(ctx, r)), Action: a.issuer + loginPath, Ticket: ticket, User: name,
	}
	a.asked(&view.shell, p)
	view.Problem, view.Wrongly = complaint, complaint == view.Wrong
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
			view := loginView{shell: a.shell(w), Detail: refused.Description}
			view.Problem = w.Invalid
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
			page, err := render(loginTemplate, loginView{shell: a.shell(w), Code: code})
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
	view := loginView{shell: a.shell(w)}
	view.Problem = w.Ended
	page, rendering := render(loginTemplate, view)
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

// repostHash is the hash with which a policy allows the script of a page.
var repostHash = rest.ContentHash(string(repost))

// policyFor allows the page our stylesheet, pictures that are part of it, and its form two
// targets: this server, and the client to which the answer to the form redirects. It allows nothing else, and no frame
// around the page.
func policyFor(issuer, redirectURI string) string {
	form := origin(issuer)
	if to := origin(redirectURI); to != "" && to != form {
		form += " " + to
	}
	return "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; img-src data:; style-src " + issuer + look.Style.Path + "; form-action " + form
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
