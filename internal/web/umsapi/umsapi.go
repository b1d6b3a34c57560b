// SPDX-License-Identifier: Apache-2.0

// Package umsapi serves user management: it has the paths of the interface and the names in
// its bodies, and turns requests into calls of the domain. Begin with [New] and
// [API.Routes]; [DeviceRoutes] and [PolicyRoutes] are further tables for the same gate. The
// domain decides who may act on whom. Each route that changes something declares its effects, by
// which approval.Rules decide what waits.
package umsapi

import (
	"context"
	_ "embed" // for Docs
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"tamga/internal/domain/audit"
	"tamga/internal/domain/contact"
	"tamga/internal/domain/effect"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/oath"
	"tamga/internal/domain/policy"
	"tamga/internal/domain/signin"
	"tamga/internal/domain/user"
	"tamga/internal/web/rest"
)

// Docs describes the operations of this surface for people; see
// [tamga/internal/web/rest/openapi].
//
//go:embed operations.txt
var Docs string

// Operator is the right to this surface: the caller is an operator, and if the path names a
// user, one within the reach of the operator.
const Operator rest.Right = "operator"

// API serves user management.
type API struct {
	users    *user.Service
	contacts *contact.Book
	identity *signin.Service
	tokens   *oath.Service
	rules    Rules
}

// Rules are facts about the installation that the surface needs.
type Rules struct {
	Local string // name of our own identity provider, such as "realsts"
	// Check counts n questions of an operator whether a value is taken. Their answers
	// reveal users outside the reach of the operator. The fault is too_many_requests.
	Check func(operatorID string, n int) error
	// Confirmed are the actions that need a confirmation if nothing else is set for a user
	// or a group.
	Confirmed policy.Action
	Providers []CryptoProvider
	// MethodURIs is the spelling of the addresses of methods in GetPolicy.
	MethodURIs signin.Spelling
	// Language is the language of the installation, as in rest.Languages.
	Language string
}

// CryptoProvider is a kind of keys in the answer of GetPolicy.
type CryptoProvider struct {
	ID          string `json:"Id"` // GUID
	Name        string
	Description string
	Type        string // GOST or RSA_AES
}

// New returns the API.
func New(users *user.Service, contacts *contact.Book, identity *signin.Service, tokens *oath.Service, r Rules) *API {
	return &API{users: users, contacts: contacts, identity: identity, tokens: tokens, rules: r}
}

// Permit checks the right of this surface, for [rest.Gate]. The domain checks the reach
// again inside the transaction that acts. The check also runs before the body is read. A
// handler that forgets it stays closed, and a user of another group looks like a missing
// one.
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

// Routes returns the operations of this surface, below {idp_url}.
func (a *API) Routes() []rest.Route {
	return slices.Concat(a.userRoutes(), a.nameRoutes(), a.loginRoutes(), a.passwordRoutes(), a.contactRoutes(), a.methodRoutes(), a.oathRoutes(), a.lockRoutes(), a.searchRoutes())
}

// userID is the identifier of a user in a path. Letter case is ignored.
type userID string

// UnmarshalText implements encoding.TextUnmarshaler.
func (u *userID) UnmarshalText(text []byte) error {
	*u = userID(strings.ToLower(string(text)))
	return nil
}

// onUser is a request that names a user and nothing else.
type onUser struct {
	ID userID `path:"id"`
}

// flag is a required boolean: a request without it must not count as false.
type flag struct{ given, value bool }

// UnmarshalText implements encoding.TextUnmarshaler.
func (f *flag) UnmarshalText(text []byte) error {
	switch strings.ToLower(string(text)) {
	case "true", "1":
		*f = flag{true, true}
	case "false", "0":
		*f = flag{true, false}
	case "":
		*f = flag{}
	default:
		return fault.New(fault.InvalidParameters, "want true or false")
	}
	return nil
}

// FromValue implements rest.FromValue: a flag in a body is a boolean, its text or its number.
func (f *flag) FromValue(value any) error {
	switch v := value.(type) {
	case bool, string, json.Number:
		if text := fmt.Sprint(v); text != "" {
			return f.UnmarshalText([]byte(text))
		}
		return nil
	}
	return fault.New(fault.InvalidParameters, "want true or false")
}

// MarshalText implements encoding.TextMarshaler; "" is a missing flag.
func (f flag) MarshalText() ([]byte, error) {
	if !f.given {
		return nil, nil
	}
	return strconv.AppendBool(nil, f.value), nil
}

// either returns the effects of a flag: those for true or for false, and both for a missing one.
func (f flag) either(ifTrue, ifFalse effect.Set) effect.Set {
	switch {
	case !f.given:
		return ifTrue | ifFalse
	case f.value:
		return ifTrue
	}
	return ifFalse
}

// OpenAPI returns the type that a flag is described as.
func (flag) OpenAPI() string { return "boolean" }

// flagOf reads a boolean from the body, where it is a JSON boolean, its text or its number,
// or from the query. Clients use both. If it is in the query, the body is empty or an
// object that may hold the value under its name.
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

// isoTime returns a time in the format of this interface.
func isoTime(t time.Time) string {
	return t.UTC().Format("2006-01-02T15:04:05.000Z")
}

// caller returns the operator of a request.
func caller(ctx context.Context) audit.Principal { return rest.Caller(ctx) }

// check counts n questions whether a value is taken.
func (a *API) check(ctx context.Context, n int) error { return a.rules.Check(caller(ctx).UserID, n) }
