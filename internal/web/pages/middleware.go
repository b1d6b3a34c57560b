// SPDX-License-Identifier: Apache-2.0

package pages

import (
	"context"
	"errors"
	"html/template"
	"net/http"
	"net/url"
	"strings"

	"tamga/internal/domain/approval"
	"tamga/internal/domain/audit"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/notify"
	"tamga/internal/domain/signing"
	"tamga/internal/web/pages/operator"
	"tamga/internal/web/pages/view"
	"tamga/internal/web/rest"
	"tamga/internal/web/rest/look"
)

// Middleware is in front of the pages. It finds the language, refuses forms of other sites, and
// turns the cookie of a session into the access token of its sign-in. It renews the cookie
// while the session is used.
func (a *API) Middleware(next http.Handler) http.Handler {
	protection := http.NewCrossOriginProtection()
	protection.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		rest.Answer(w, a.Present(r.Context(), fault.New(fault.AccessDenied, "the form was sent by another site")))
	}))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, look.Folder) { // files are the same for everybody
			r.Header.Del("Authorization")
			next.ServeHTTP(w, r)
			return
		}
		cookies := r.Header.Get("Cookie")
		v := &view.Visitor{
			Brand: a.settings.Name, Address: a.settings.Address,
			Words: view.WordsIn(rest.LanguageFor(a.settings.Language, r.Header.Get("Accept-Language"), cookieOf(cookies, languageCookie))).In(notify.Zone(cookieOf(cookies, view.ZoneCookie), a.settings.Zone)),
			Path:  r.URL.Path, Here: r.URL.RequestURI(), Read: r.Method == http.MethodGet || r.Method == http.MethodHead,
			Verifies: a.Sign.Verifier != nil, Sessions: a.Sessions, Person: a.person,
		}
		if a.Waits != nil {
			v.State = a.Waits.State
		}
		if !v.Read { // the switch of the language leads to a page
			v.Here = pageOf(v.Here)
		}
		r = r.WithContext(view.WithVisitor(r.Context(), v))
		r.Header.Del("Authorization") // a page knows people by their sessions only
		if s, ok := a.openSession(cookies); ok {
			v.Session = s
			if cookieOf(cookies, view.ZoneCookie) == "" {
				v.Words = v.Words.In(notify.Zone(s.Zone, a.settings.Zone))
			}
			r.Header.Set("Authorization", "Bearer "+s.Token)
			a.renew(w, s)
		}
		w.Header().Set("Cache-Control", "no-store")
		// With no-referrer, browsers send "Origin: null" with our own forms.
		w.Header().Set("Referrer-Policy", "same-origin")
		w.Header().Set("Vary", "Cookie, Accept-Language")
		protection.Handler(next).ServeHTTP(w, r)
	})
}

// mostCounted is the largest number of confirmations that the header counts.
const mostCounted = 20

// person returns what the frame says of a person. Without it the page is still whole, so what cannot be read is left out.
func (a *API) person(ctx context.Context, who audit.Principal) (about view.About) {
	parts := []func() error{
		func() error {
			u, err := a.Account.People.Get(ctx, who.UserID)
			about.Name = u.DisplayName
			return err
		},
		func() error {
			list, err := a.Confirm.Confirmations.Open(ctx, who.UserID, "", mostCounted+1)
			about.Waiting.More = len(list) > mostCounted
			for i := range list[:min(len(list), mostCounted)] {
				if !list[i].Purpose.SignIn() {
					about.Waiting.N++
				}
			}
			return err
		},
	}
	if who.Operator && strings.HasPrefix(view.VisitorOf(ctx).Path, "/operator") {
		parts = append(parts, func() (err error) {
			about.Office, err = a.operator.Waits(ctx, who)
			return err
		})
	}
	failed := view.Concurrently(parts...)
	if failed != nil {
		// Every page would say the same, so only the first one does until a header is whole again. A reader who has gone
		// away is no failure.
		if ctx.Err() == nil && !a.headerFails.Swap(true) && a.Log != nil {
			a.Log.WarnContext(ctx, "pages: the frame has no name and no counts until they can be read again", "error", failed)
		}
		return view.About{}
	}
	a.headerFails.Store(false)
	return about
}

// Present returns the page of an error. Without a session, a page that needs one leads to
// the sign-in. A form says that it was not carried out, because a person would not see that from
// a page to sign in. The script of an upload shows this at the form, which keeps its files.
func (a *API) Present(ctx context.Context, err error) rest.Refusal {
	view.Note(ctx, err)
	v := view.VisitorOf(ctx)
	f, ok := fault.As(err)
	if !ok {
		f = fault.New(fault.Failed, "")
	}
	sentence, detail := v.Words.Refusal(f)
	about := view.RefusalPage{Sentence: sentence, Detail: detail, Back: back(v), BackKey: "refused.back"}.View()
	switch {
	case f.Code != fault.Unauthorized:
	case v.Read:
		return redirected{"/sign-in?to=" + url.QueryEscape(v.Here)}
	case v.Path == "/sign-out": // nothing is left to do
		return redirected{"/?done=sign_out"}
	default:
		about = view.View{Template: "ended", Title: "ended.title", Content: "/sign-in?to=" + url.QueryEscape(back(v))}
	}
	if v.Path == SignedInPath && v.Session.Token == "" { // a sign-in that failed
		about = view.RefusalPage{Sentence: sentence, Detail: detail, Back: "/sign-in", BackKey: "frame.sign_in"}.View()
	}
	if h, waits := errors.AsType[approval.Waits](err); waits {
		about = operator.WaitsView(v.Words, &h.Request, back(v))
	}
	if form, again := errors.AsType[view.Refused](err); again && f.Code != fault.Unauthorized {
		about = form.Again(view.Refusal{Code: f.Code, Sentence: sentence, Detail: detail, Back: back(v)})
	}
	about.Failed = true
	shown, failed := about.Render(ctx)
	if failed != nil { // a template of ours is wrong
		shown = rest.Page{Content: strings.NewReader(template.HTMLEscapeString(sentence))}
	}
	answer := refused{page: shown, fault: f}
	answer.status, answer.header = rest.HeadOf(f)
	if signing.OtherKind(err) { // it has the code of failures, but a person chose the wrong file
		answer.status = http.StatusBadRequest
	}
	return answer
}

// back returns the page that a person who was refused goes on at.
func back(v *view.Visitor) string {
	switch {
	case v.Read && v.Session.Token != "":
		return above(v)
	case v.Read:
		return "/"
	}
	return pageOf(v.Here)
}

// above returns the page above one of operators: the list that has the object, or the list
// without a search. It returns the start for any other page.
func above(v *view.Visitor) string {
	parts := strings.Split(strings.TrimPrefix(v.Path, "/"), "/")
	switch {
	case parts[0] != "operator" || len(parts) == 1:
		return "/start"
	case len(parts) == 2 && v.Here != v.Path: // a search
		return v.Path
	}
	return "/" + strings.Join(parts[:len(parts)-1], "/")
}

// pageOf returns the page that a form belongs to: its own address, or for a form without a
// page of its own the one above it.
func pageOf(path string) string {
	page, _, _ := strings.Cut(path, "/do/")
	return page
}

// refused is a fault as a page.
type refused struct {
	page   rest.Page
	fault  *fault.Error
	status int
	header http.Header
}

func (e refused) Error() string   { return e.fault.Code }
func (e refused) Outcome() string { return e.fault.Code }

// Answer implements rest.Refusal.
func (e refused) Answer() (int, http.Header, any) {
	return e.status, e.header, e.page
}

// redirected leads a person without a session to the sign-in.
type redirected struct{ to string }

func (e redirected) Error() string   { return fault.Unauthorized }
func (e redirected) Outcome() string { return fault.Unauthorized }

// Answer implements rest.Refusal.
func (e redirected) Answer() (int, http.Header, any) {
	return http.StatusSeeOther, http.Header{"Location": {e.to}}, rest.Page{Content: strings.NewReader("")}
}
