// SPDX-License-Identifier: Apache-2.0

package tokenapi

import (
	"context"
	"net/url"

	"tamga/internal/domain/audit"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/signin"
	"tamga/internal/domain/token"
	"tamga/internal/web/rest"
)

// Codes of refusals of this surface (RFC 6749, section 4.1.2.1, and OpenID Connect).
const (
	unsupportedResponseType = "unsupported_response_type"
	loginRequired           = "login_required"
)

// Judge reports whether the certificates of a handshake may identify their owner: path,
// time, use and revocation. The error is for the log.
type Judge func(ctx context.Context, certificates [][]byte) error

type authorization struct {
	ClientID     string `query:"client_id"`
	ResponseType string `query:"response_type"`
	Scope        string `query:"scope"`
	RedirectURI  string `query:"redirect_uri"`
	Resource     string `query:"resource"`
	State        string `query:"state"`
}

// authorizeByCertificate answers the certificate of the handshake with a code. The code is
// the first parameter of the redirect address, and the only one unless the client sent a
// state: existing clients take everything after the first equals sign. Refusals are
// answered here and not at the redirect address, where those clients would take them for a
// code.
func (a *API) authorizeByCertificate(ctx context.Context, r authorization) (rest.Redirect, error) {
	certificates := rest.PeerCertificates(ctx)
	if len(certificates) == 0 {
		return rest.Redirect{}, refuse(loginRequired, "the connection has shown no client certificate: use TLS with mutual authentication")
	}
	client, known := a.clients.Find(r.ClientID)
	if !known {
		return rest.Redirect{}, refuse(token.InvalidClient, "client_id is missing or unknown")
	}
	rest.Claimed(ctx, audit.Principal{ClientID: client.ID})
	if r.ResponseType != "code" {
		return rest.Redirect{}, refuse(unsupportedResponseType, "response_type: want code")
	}
	refused := fault.New(fault.Unauthorized, "the client certificate is not accepted")
	if err := a.judge(ctx, certificates); err != nil {
		return rest.Redirect{}, refused.With(err)
	}
	code, who, err := a.identity.AuthorizeCertificate(ctx, certificates[0], signin.Authorization{
		Client: client, RedirectURI: r.RedirectURI, Scope: r.Scope, Resource: r.Resource,
	})
	if err != nil {
		return rest.Redirect{}, refusal(err)
	}
	who.ClientID = client.ID
	rest.Identified(ctx, who)
	to := r.RedirectURI + "?code=" + url.QueryEscape(code)
	if r.State != "" {
		to += "&state=" + url.QueryEscape(r.State)
	}
	return rest.Redirect{Location: to}, nil
}

// code is the grant of RFC 6749, section 4.1.3.
func (a *API) code(ctx context.Context, client signin.Client, form rest.Form) (token.Token, error) {
	t, err := a.identity.CodeGrant(ctx, client, signin.CodeRequest{
		Code: form.Get("code"), RedirectURI: form.Get("redirect_uri"), Resource: form.Get("resource"), Verifier: form.Get("code_verifier"),
	})
	if err == nil {
		rest.Identified(ctx, audit.Principal{UserID: t.UserID, ClientID: client.ID, Method: "authorization_code"})
	}
	return t, err
}
