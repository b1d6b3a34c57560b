// Package umsapi owns the user management interface on the wire: its paths, the
// names in its bodies, and how they become calls of the domain's rooms. Who may act
// on whom and what happens then is theirs to know.
package umsapi

import (
	"context"
	_ "embed" // for Docs
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"tamga/internal/domain/audit"
	"tamga/internal/domain/auth"
	"tamga/internal/domain/contact"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/oath"
	"tamga/internal/domain/policy"
	"tamga/internal/domain/user"
	"tamga/internal/web/rest"
)

// Docs describes the operations of this door for people; see [tamga/internal/web/rest/openapi].
//
//go:embed operations.txt
var Docs string

// Operator is the right to this surface: an operator, and where a path names a user
// one whom they reach.
const Operator rest.Right = "operator"

// API serves user management.
type API struct {
	users    *user.Service
	contacts *contact.Book
	identity *auth.Service
	tokens   *oath.Service
	rules    Rules
}

// Rules are what the surface needs to know of the installation.
type Rules struct {
	Local string // name of our own identity provider, such as "realsts"
	// Check counts n questions of an operator whether a value is taken: their answers
	// tell of all users, also of those out of the operator's reach. The fault is
	// too_many_requests.
	Check func(operatorID string, n int) error
	// Confirmed are the actions that need a confirmation where nothing else is set for
	// a user or a group.
	Confirmed policy.Action
	Providers []CryptoProvider
	// MethodURIs is the spelling of the addresses of methods in GetPolicy.
	MethodURIs auth.Spelling
}

// CryptoProvider is a kind of keys as GetPolicy tells of it.
type CryptoProvider struct {
	ID          string `json:"Id"` // GUID
	Name        string
	Description string
	Type        string // GOST or RSA_AES
}

// New returns the API.
func New(users *user.Service, contacts *contact.Book, identity *auth.Service, tokens *oath.Service, r Rules) *API {
	return &API{users: users, contacts: contacts, identity: identity, tokens: tokens, rules: r}
}

// Permit judges the right of this surface, for [rest.Gate]. The rooms ask for the
// reach again inside the transaction that acts; asking before the body is read keeps
// a route that forgets to from being open, and tells a user of another group from
// none by nothing.
func (a *API) Permit(ctx context.Context, who audit.Principal, right rest.Right, value func(name string) string) error {
	if right != Operator || !who.Operator {
		return fault.New(fault.AccessDenied, "this is for operators")
	}
	id := strings.ToLower(value("id"))
	if id == "" {
		return nil
	}
	rest.Concerning(ctx, id)
	return a.users.Reach(ctx, who, id)
}

// Routes are the operations of this surface, below {idp_url}.
func (a *API) Routes() []rest.Route {
	return slices.Concat(a.userRoutes(), a.nameRoutes(), a.loginRoutes(), a.passwordRoutes(), a.contactRoutes(), a.methodRoutes(), a.oathRoutes(), a.lockRoutes(), a.searchRoutes())
}

// userID is the identifier of a user in a path. Letter case does not count in it.
type userID string

// UnmarshalText implements encoding.TextUnmarshaler.
func (u *userID) UnmarshalText(text []byte) error {
	*u = userID(strings.ToLower(string(text)))
	return nil
}

// onUser is a request that says nothing but whom it is about.
type onUser struct {
	ID userID `path:"id"`
}

// flag is a truth value that has to be given: a request that forgets it must not be
// taken for one of the two.
type flag struct{ given, value bool }

// UnmarshalText implements encoding.TextUnmarshaler.
func (f *flag) UnmarshalText(text []byte) error {
	switch strings.ToLower(string(text)) {
	case "true", "1":
		*f = flag{true, true}
	case "false", "0":
		*f = flag{true, false}
	default:
		return fault.New(fault.InvalidParameters, "want true or false")
	}
	return nil
}

// OpenAPI names the type that a flag is described as.
func (flag) OpenAPI() string { return "boolean" }

// flagOf takes a truth value from the body, where it is a JSON boolean, its text or
// its number, or from the query, where clients put it as well: then the body is empty
// or an object, of which nothing is known but that it may hold the value under its
// name.
func flagOf(name string, body any, query flag) (bool, error) {
	if object, is := body.(map[string]any); is {
		body = nil
		for key, value := range object {
			if strings.EqualFold(key, name) {
				body = value
			}
		}
	}
	text := ""
	switch b := body.(type) {
	case nil:
	case bool, string, json.Number:
		text = fmt.Sprint(b)
	default:
		text = "?"
	}
	if text != "" {
		if err := query.UnmarshalText([]byte(text)); err != nil {
			return false, fault.Newf(fault.InvalidParameters, "%s: want true or false as the body", name)
		}
	}
	if !query.given {
		return false, fault.Newf(fault.InvalidParameters, "%s is missing: want true or false as the body", name)
	}
	return query.value, nil
}

// isoTime is a time as this interface writes it.
func isoTime(t time.Time) string {
	return t.UTC().Format("2006-01-02T15:04:05.000Z")
}

// caller is the operator of a request.
func caller(ctx context.Context) audit.Principal { return rest.Caller(ctx) }

// check counts n questions whether a value is taken.
func (a *API) check(ctx context.Context, n int) error { return a.rules.Check(caller(ctx).UserID, n) }
