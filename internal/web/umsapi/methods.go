// SPDX-License-Identifier: Apache-2.0

package umsapi

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"tamga/internal/domain/effect"
	"tamga/internal/domain/signin"
	"tamga/internal/web/rest"
)

func (a *API) methodRoutes() []rest.Route {
	routes := []rest.Route{
		rest.Handle("GET /ums/user/{id}/authmethod", "GetUserAuthenticationScheme", Operator, a.scheme),
		rest.Handle("POST /ums/user/rawauthdata", "GetUserRawAuthenticationDataAsync", Operator, a.rawData).Effects(effect.None),
	}
	// One route for each name: a pattern for any name would match other paths.
	for _, m := range signin.Methods() {
		if m.Route == "" {
			continue
		}
		path := " /ums/user/{id}/authmethod/" + m.Route
		routes = append(routes,
			rest.Weigh(rest.Handle("POST"+path, "SetUserAuthenticationMethod"+m.Operation, Operator, a.setMethod(m.Route)), effect.AddsFactor|effect.WeakensPolicy,
				func(_ context.Context, r setMethodRequest) (effect.Set, error) {
					if m.Weakens(r.Level.number) {
						return effect.AddsFactor | effect.WeakensPolicy, nil
					}
					return effect.AddsFactor, nil
				}),
			rest.Handle("DELETE"+path, "DeleteUserAuthenticationMethod"+m.Operation, Operator, a.deleteMethod(m.Route)).Effects(effect.RemovesFactor),
		)
	}
	return routes
}

// authenticationInfo is AuthenticationInfo.
type authenticationInfo struct {
	MethodURI string `json:"MethodUri"`
	Level     int
}

func (a *API) scheme(ctx context.Context, r onUser) ([]authenticationInfo, error) {
	have, err := a.identity.Scheme(ctx, caller(ctx), string(r.ID))
	list := make([]authenticationInfo, len(have))
	for i, m := range have {
		list[i] = authenticationInfo(m)
	}
	return list, err
}

// level is the step of a method, if the request has one.
type level struct{ number *int }

// OpenAPI returns the type that a level is described as.
func (level) OpenAPI() string { return "integer" }

// UnmarshalText implements encoding.TextUnmarshaler.
func (l *level) UnmarshalText(text []byte) error {
	return json.Unmarshal(text, &l.number)
}

// MarshalText implements encoding.TextMarshaler.
func (l level) MarshalText() ([]byte, error) { return json.Marshal(l.number) }

// setMethodRequest has no body. What clients send there repeats the path.
type setMethodRequest struct {
	ID    userID `path:"id"`
	Level level  `query:"level"`
}

func (a *API) setMethod(name string) func(context.Context, setMethodRequest) (rest.None, error) {
	return func(ctx context.Context, r setMethodRequest) (rest.None, error) {
		if r.Level.number != nil {
			rest.Detail(ctx, fmt.Sprintf("level=%d", *r.Level.number))
		}
		return rest.None{}, a.identity.SetMethod(ctx, caller(ctx), string(r.ID), name, r.Level.number)
	}
}

func (a *API) deleteMethod(name string) func(context.Context, onUser) (rest.None, error) {
	return func(ctx context.Context, r onUser) (rest.None, error) {
		return rest.None{}, a.identity.DeleteMethod(ctx, caller(ctx), string(r.ID), name)
	}
}

// rawDataRequest is UserRawAuthDataRequest. The values of Format are not public. All of
// them mean JSON here.
type rawDataRequest struct {
	UserID       string `json:"UserId"`
	AuthnMethods []string
	Format       rest.Unread
}

type rawParameter struct{ Key, Value string }

type rawMethod struct {
	AuthnMethod string
	Confirmed   bool
	Parameters  []rawParameter
}

// rawData is the object inside the string of the answer.
type rawData struct {
	UserID          string `json:"UserId"`
	AuthMethodInfos []rawMethod
}

// rawData answers JSON inside a JSON string, as the specification demands.
func (a *API) rawData(ctx context.Context, r struct{ Body rawDataRequest }) (string, error) {
	id := strings.ToLower(r.Body.UserID)
	rest.Concerning(ctx, id)
	raw, err := a.identity.RawData(ctx, caller(ctx), id, r.Body.AuthnMethods)
	if err != nil {
		return "", err
	}
	answer := rawData{UserID: raw.UserID, AuthMethodInfos: make([]rawMethod, len(raw.Methods))}
	for i, m := range raw.Methods {
		answer.AuthMethodInfos[i] = rawMethod{m.MethodURI, m.Confirmed, make([]rawParameter, len(m.Parameters))}
		for j, p := range m.Parameters {
			answer.AuthMethodInfos[i].Parameters[j] = rawParameter(p)
		}
	}
	text, err := json.Marshal(answer)
	return string(text), err
}
