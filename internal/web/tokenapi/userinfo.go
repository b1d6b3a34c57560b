// SPDX-License-Identifier: Apache-2.0

package tokenapi

import (
	"context"
	"net/http"
	"strings"

	"tamga/internal/domain/audit"
	"tamga/internal/domain/fault"
	"tamga/internal/web/rest"
)

// person has the claims of OpenID Connect Core, section 5.1.
type person struct {
	Subject  string `json:"sub"`
	Username string `json:"preferred_username,omitempty"`
	Name     string `json:"name,omitempty"`
}

type bearerRequest struct {
	Authorization string `header:"Authorization"`
}

// userInfo returns to a client who has signed in (OpenID Connect Core, section 5.3). Its
// tokens may be for another resource than those of the other routes, so they are checked
// here.
func (a *API) userInfo(ctx context.Context, r bearerRequest) (person, error) {
	p, err := a.tokens.UserInfo(ctx, bearerOf(r.Authorization))
	if err != nil {
		if f, ok := fault.As(err); ok {
			return person{}, bearerError{f.Code, f}
		}
		return person{}, err
	}
	rest.Identified(ctx, audit.Principal{UserID: p.UserID, Login: p.Name})
	return person{p.UserID, p.Name, p.DisplayName}, nil
}

// bearerOf returns the token in a header, "" for none.
func bearerOf(header string) string {
	scheme, token, _ := strings.Cut(header, " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return strings.TrimSpace(token)
}

// bearerError is a refusal in the form of RFC 6750, section 3.
type bearerError struct {
	code string
	err  error // the fault
}

func (e bearerError) Error() string   { return e.err.Error() }
func (e bearerError) Unwrap() error   { return e.err }
func (e bearerError) Outcome() string { return e.code }

// Answer implements rest.Refusal.
func (e bearerError) Answer() (int, http.Header, any) {
	status, code, text := http.StatusUnauthorized, "invalid_token", "the access token is missing, expired or not valid"
	if e.code == fault.AccessDenied {
		status, code, text = http.StatusForbidden, "insufficient_scope", "the access token was not granted the scope openid"
	}
	return status, http.Header{"Www-Authenticate": {`Bearer error="` + code + `"`}}, struct {
		Error       string `json:"error"`
		Description string `json:"error_description"`
	}{code, text}
}
