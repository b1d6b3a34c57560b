// SPDX-License-Identifier: Apache-2.0

package view

import (
	"context"

	"tamga/internal/domain/audit"
	"tamga/internal/domain/waiting"
	"tamga/internal/web/rest"
)

// Visitor is what the middleware of package pages knows of a request.
type Visitor struct {
	Words    *Words
	Path     string
	Here     string // path and query
	Read     bool   // the request reads and changes nothing
	Brand    string // name of the installation
	Address  string // public address, without a slash at the end
	Verifies bool   // there is a page that verifies
	Session  Session
	Sessions Authenticator
	// Person returns what the frame of a page says of a person.
	Person func(ctx context.Context, who audit.Principal) About
	// State returns the state of what a page waits for; nil: pages do not wait.
	State func(ctx context.Context, t waiting.Topic) (string, error)
}

// About is what the frame of a page says of a person.
type About struct {
	Name    string           // "" for none
	Waiting Waits            // confirmations that wait for an answer
	Office  map[string]Waits // what waits for an operator, by the address of its page; nil beside other pages
}

// Authenticator knows whose a session is.
type Authenticator interface {
	Authenticate(ctx context.Context, bearer string) (audit.Principal, error)
}

type visitorKey struct{}

// WithVisitor returns a context of requests of the visitor.
func WithVisitor(ctx context.Context, v *Visitor) context.Context {
	return context.WithValue(ctx, visitorKey{}, v)
}

// VisitorOf returns the visitor of a request that came through the middleware.
func VisitorOf(ctx context.Context) *Visitor {
	if v, ok := ctx.Value(visitorKey{}).(*Visitor); ok {
		return v
	}
	return &Visitor{Words: Languages[0], Path: "/", Here: "/"}
}

// CallerOf returns the person of a page for everybody: there, the steps of a request do not identify the caller, but a
// person with a session shall still see the way to their pages.
func CallerOf(ctx context.Context) audit.Principal {
	who, v := rest.Caller(ctx), VisitorOf(ctx)
	if who.UserID != "" || v.Session.Token == "" {
		return who
	}
	who, err := v.Sessions.Authenticate(ctx, v.Session.Token)
	if err != nil { // the session has ended
		return audit.Principal{}
	}
	return who
}

// Session is the content of the cookie of a session. The cookie is sealed, so neither the
// browser nor a script can read the token. The token is the session: it ends with the
// sign-in that it belongs to, and it is checked with each request.
type Session struct {
	Token string
	Seen  int64 // Unix seconds of the last request, accurate to a minute
	// Proved is when the person last confirmed in this session that it is them, in Unix
	// seconds; 0: never.
	Proved int64
	// Zone is the time zone that the person has chosen, for a browser that does not say its own; "": none.
	Zone string `json:",omitempty"`
}
