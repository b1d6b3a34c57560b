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
	"tamga/internal/domain/signing"
	"tamga/internal/web/rest"
)

// visitor is what the Middleware knows of a request.
type visitor struct {
	words    *words
	path     string
	here     string // path and query
	read     bool   // the request reads and changes nothing
	brand    string // name of the installation
	verifies bool   // there is a page that verifies
	session  session
	sessions Sessions
}

type visitorKey struct{}

// visitorOf returns the visitor of a request that came through the Middleware.
func visitorOf(ctx context.Context) *visitor {
	if v, ok := ctx.Value(visitorKey{}).(*visitor); ok {
		return v
	}
	return &visitor{words: languages[0], path: "/", here: "/"}
}

// callerOf returns the person of the frame. On a page for everybody, the steps of a request do not
// identify the caller, but a person with a session shall still see the way to their pages.
func callerOf(ctx context.Context) audit.Principal {
	who, v := rest.Caller(ctx), visitorOf(ctx)
	if who.UserID != "" || v.session.Token == "" {
		return who
	}
	who, err := v.sessions.Authenticate(ctx, v.session.Token)
	if err != nil { // the session has ended
		return audit.Principal{}
	}
	return who
}

// Middleware is in front of the pages. It finds the language, refuses forms of other sites, and
// turns the cookie of a session into the access token of its sign-in. It renews the cookie
// while the session is used.
func (a *API) Middleware(next http.Handler) http.Handler {
	protection := http.NewCrossOriginProtection()
	protection.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		rest.Answer(w, a.Present(r.Context(), fault.New(fault.AccessDenied, "the form was sent by another site")))
	}))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		cookies := r.Header.Get("Cookie")
		v := &visitor{
			brand: a.settings.Name,
			words: wordsIn(rest.LanguageFor(a.settings.Language, r.Header.Get("Accept-Language"), cookieOf(cookies, languageCookie))),
			path:  r.URL.Path, here: r.URL.RequestURI(), read: r.Method == http.MethodGet || r.Method == http.MethodHead,
			verifies: a.Verifier != nil, sessions: a.Sessions,
		}
		if !v.read { // the switch of the language leads to a page
			v.here = pageOf(v.here)
		}
		r = r.WithContext(context.WithValue(r.Context(), visitorKey{}, v))
		r.Header.Del("Authorization") // a page knows people by their sessions only
		if s, ok := a.openSession(cookies); ok {
			v.session = s
			r.Header.Set("Authorization", "Bearer "+s.Token)
			a.renew(w, s)
		}
		w.Header().Set("Cache-Control", "no-store")
		if strings.HasPrefix(v.path, assets) { // their addresses have their versions
			w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
		}
		// With no-referrer, browsers send "Origin: null" with our own forms.
		w.Header().Set("Referrer-Policy", "same-origin")
		w.Header().Set("Vary", "Cookie, Accept-Language")
		protection.Handler(next).ServeHTTP(w, r)
	})
}

// Present returns the page of an error. Without a session, a page that needs one leads to
// the sign-in. A form says that it was not carried out, because a person would not see that from
// a page to sign in. The script of an upload shows this at the form, which keeps its files.
func (a *API) Present(ctx context.Context, err error) rest.Refusal {
	v := visitorOf(ctx)
	f, ok := fault.As(err)
	if !ok {
		f = fault.New(fault.Failed, "")
	}
	sentence, detail := v.words.refusal(f)
	about := refusedView{Sentence: sentence, Detail: detail, Back: back(v), BackKey: "refused.back"}.view()
	switch {
	case f.Code != fault.Unauthorized:
	case v.read:
		return redirected{"/sign-in?to=" + url.QueryEscape(v.here)}
	case v.path == "/sign-out": // nothing is left to do
		return redirected{"/?done=sign_out"}
	default:
		about = view{template: "ended", title: "ended.title", content: "/sign-in?to=" + url.QueryEscape(back(v))}
	}
	if v.path == SignedInPath && v.session.Token == "" { // a sign-in that failed
		about = refusedView{Sentence: sentence, Detail: detail, Back: "/sign-in", BackKey: "frame.sign_in"}.view()
	}
	if h, waits := errors.AsType[approval.Waits](err); waits {
		about = waitsView(v.words, &h.Request, back(v))
	}
	if form, again := errors.AsType[Refused](err); again && f.Code != fault.Unauthorized {
		about = form.Again(Refusal{Code: f.Code, Sentence: sentence, Detail: detail, Back: back(v)})
	}
	shown, failed := about.render(ctx)
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
func back(v *visitor) string {
	switch {
	case v.read && v.session.Token != "":
		return above(v)
	case v.read:
		return "/"
	}
	return pageOf(v.here)
}

// above returns the page above one of operators: the list that has the object, or the list
// without a search. It returns the start for any other page.
func above(v *visitor) string {
	parts := strings.Split(strings.TrimPrefix(v.path, "/"), "/")
	switch {
	case parts[0] != "operator" || len(parts) == 1:
		return "/start"
	case len(parts) == 2 && v.here != v.path: // a search
		return v.path
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
