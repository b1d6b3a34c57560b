// SPDX-License-Identifier: Apache-2.0

package tokenapi

import (
	"bytes"
	"context"
	"html/template"
	"net/url"

	"tamga/internal/domain/audit"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/token"
	"tamga/internal/web/rest"
)

const externalPath = "/oauth/external"

// ReturnPath is the address to which another provider sends browsers back. Each provider
// has its own, so that none can answer in the place of another (RFC 9700, section 4.4).
func ReturnPath(name string) string { return externalPath + "/" + url.PathEscape(name) + "/return" }

// MetadataPath is the address of our metadata for a SAML provider.
func MetadataPath(name string) string {
	return externalPath + "/" + url.PathEscape(name) + "/metadata"
}

// finishPath is the address to which our own page posts the form that another provider had
// the browser post to the ReturnPath.
func finishPath(name string) string { return externalPath + "/" + url.PathEscape(name) + "/finish" }

// maxPosted is the limit of an answer in a form, in bytes. A SAML message holds
// certificates and all attributes of a user, in Base64.
const maxPosted = 512 << 10

// begin sends a browser to another identity provider.
func (a *API) begin(ctx context.Context, r struct {
	Name   string `path:"name"`
	Ticket string `query:"ticket"`
	Cookie string `header:"Cookie"`
}) (rest.Redirect, error) {
	address, err := a.identity.BeginExternal(ctx, r.Name, r.Ticket, a.browserOf(r.Cookie))
	return rest.Redirect{Location: address}, err
}

// metadata describes this service to another provider.
func (a *API) metadata(_ context.Context, r struct {
	Name string `path:"name"`
}) (rest.File, error) {
	document, err := a.identity.ProviderMetadata(r.Name)
	return rest.File{Content: bytes.NewReader(document), Type: "application/samlmetadata+xml"}, err
}

// arrival is a browser that returns from another identity provider.
type arrival struct {
	Name      string    `path:"name"`
	Cookie    string    `header:"Cookie"`
	Languages string    `header:"Accept-Language"`
	Site      string    `header:"Sec-Fetch-Site"`
	Body      rest.Form `many:"*"`
}

func (r arrival) visit() visit {
	return visit{Cookie: r.Cookie, Languages: r.Languages, Site: r.Site, Body: r.Body}
}

// once refuses repeated parameters.
func (r arrival) once(names ...string) error {
	for _, name := range names {
		if len(r.Body[name]) > 1 {
			return refuse(token.InvalidRequest, name+" is given more than once")
		}
	}
	return nil
}

// comeBack ends the way of a browser that another provider redirected to us.
func (a *API) comeBack(ctx context.Context, r arrival) (any, error) {
	if err := r.once("state", "code", "error"); err != nil {
		return nil, err
	}
	return a.arrive(ctx, r, r.Body.Get("state"), r.Body.Get("code"), false)
}

// Parameters of a SAML answer (bindings, section 3.5.4).
const (
	paramResponse = "SAMLResponse"
	paramState    = "RelayState"
)

// handOn receives the form that a page of another provider posts. The browser does not send
// our cookie with it: the cookie is for our own pages (SameSite), so that no other page can
// sign a user in. So the answer is a page of ours that posts the same form again. Nothing
// is decided here.
func (a *API) handOn(ctx context.Context, r arrival) (any, error) {
	if err := r.once(paramResponse, paramState); err != nil {
		return nil, err
	}
	to, err := a.identity.ExternalReturn(ctx, r.Name, r.Body.Get(paramState))
	if err != nil {
		return a.ended(ctx, r.visit(), err)
	}
	page, err := render(repostTemplate, struct {
		shell
		Script                  template.JS
		Action, Response, State string
	}{a.shell(a.wordsFor(ctx, r.visit())), repost, a.issuer + finishPath(r.Name), r.Body.Get(paramResponse), r.Body.Get(paramState)})
	// The answer to that form sends the browser to the client, and browsers check
	// form-action for that address, too.
	page.Policy = policyFor(a.issuer, to) + "; script-src " + repostHash
	return page, err
}

// finishPosted receives the form that our own page posts for another provider.
func (a *API) finishPosted(ctx context.Context, r arrival) (any, error) {
	if r.Site == "cross-site" {
		return nil, fault.New(fault.AccessDenied, "the form was sent by another site")
	}
	if err := r.once(paramResponse, paramState); err != nil {
		return nil, err
	}
	return a.arrive(ctx, r, r.Body.Get(paramState), r.Body.Get(paramResponse), true)
}

// arrive ends a sign-in at another provider with its answer.
func (a *API) arrive(ctx context.Context, r arrival, state, answer string, posted bool) (any, error) {
	p, err := a.identity.OpenExternal(ctx, r.Name, state, a.browserOf(r.Cookie), posted)
	if err != nil {
		return a.ended(ctx, r.visit(), err)
	}
	request, err := a.requestOf(p)
	if err != nil {
		return nil, refusal(err)
	}
	rest.Claimed(ctx, audit.Principal{ClientID: request.Client.ID})
	if answer == "" {
		return goBack(ctx, p, refuse(token.AccessDenied, "the other identity provider did not sign the user in"), posted)
	}
	issued, who, err := a.identity.AuthorizeExternal(ctx, p, answer, request)
	if err == nil && issued.Step != nil {
		rest.Identified(ctx, who)
		return a.beginStep(ctx, r.visit(), p, request, *issued.Step, posted)
	}
	return a.finish(ctx, p, request, issued, who, err, posted)
}
