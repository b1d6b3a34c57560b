// SPDX-License-Identifier: Apache-2.0

package umsapi

import (
	"context"
	"strings"

	"tamga/internal/domain/effect"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/policy"
	"tamga/internal/domain/user"
	"tamga/internal/web/rest"
)

func (a *API) searchRoutes() []rest.Route {
	return []rest.Route{
		rest.Handle("POST /ums/users", "GetUsers", Operator, a.search).Effects(effect.None),
		rest.Handle("GET /ums/policy", "GetPolicy", Operator, a.policy),
	}
}

// searchOrder is a page of a search. Without bounds it is the first page, of the largest
// size.
type searchOrder struct {
	StartPosition  int
	EndPosition    *int
	Filters        []searchFilter
	OrderColumn    rest.Text
	OrderDirection rest.Text
}

type searchFilter struct{ Column, Operation, Value rest.Text }

// searchPage is the answer to a search.
type searchPage struct {
	UserInfos     []userInfo
	TotalCount    int // users that match the filters
	AffectedCount int // of them on this page
}

func (a *API) search(ctx context.Context, r struct{ Body searchOrder }) (searchPage, error) {
	o := r.Body
	q := user.Search{Start: o.StartPosition, End: o.StartPosition + user.MaxPage}
	if o.EndPosition != nil {
		q.End = *o.EndPosition
	}
	for _, f := range o.Filters {
		column, err := user.ParseColumn(string(f.Column))
		if err != nil {
			return searchPage{}, err
		}
		operation, err := user.ParseOperation(string(f.Operation))
		if err != nil {
			return searchPage{}, err
		}
		q.Filters = append(q.Filters, user.Filter{Column: column, Operation: operation, Value: string(f.Value)})
	}
	if o.OrderColumn != "" {
		var err error
		if q.Order, err = user.ParseColumn(string(o.OrderColumn)); err != nil {
			return searchPage{}, err
		}
	}
	switch direction := strings.ToUpper(string(o.OrderDirection)); direction {
	case "", "ASC", "0":
	case "DESC", "1":
		q.Descending = true
	default:
		return searchPage{}, fault.New(fault.InvalidParameters, "OrderDirection: want ASC or DESC")
	}
	found, err := a.users.List(ctx, caller(ctx), q)
	if err != nil {
		return searchPage{}, err
	}
	page := searchPage{UserInfos: make([]userInfo, len(found.Users)), TotalCount: found.Total, AffectedCount: len(found.Users)}
	for i, u := range found.Users {
		page.UserInfos[i] = describe(u)
	}
	return page, nil
}

// description is the answer of GetPolicy. The first key has this spelling on the wire.
type description struct {
	AvaliableIdentifierTypes []string
	AuthMethods              []authMethod
	AuthenticationPolicy     authenticationPolicy
	Rdns                     []rdn
	AllowUserRegistration    bool
	Groups                   []providerGroups
	IdentityProviders        []identityProvider
	CryptoProviders          []CryptoProvider
	MobileAuthSettings       mobileSettings
}

type authMethod struct {
	Identifier string
	Type       string // Primary or Secondary
}

// authenticationPolicy repeats AuthMethods for clients of another version, with the actions
// that need a confirmation if nothing else is set for a user or a group.
type authenticationPolicy struct {
	Mode            string // On or Off: whether anything needs a confirmation
	EditableByUser  bool
	AuthMethods     []authMethod
	OperationPolicy any `api:"array"` // as the list that GetUserOperationPolicy answers
}

type rdn struct {
	ID               int    `json:"Id"`
	OID              string `json:"Oid"`
	DisplayName      string
	StringIdentifier string
	Order            int
	MinLength        int
	MaxLength        int
	Required         bool
	ValueSet         []string
	DefaultValue     *string
}

type providerGroups struct {
	IdentityProviderName string
	GroupList            []string
}

type identityProvider struct{ Description, IssuerName, DisplayName string }

type mobileSettings struct{ DeviceFingerprintRequired, KeyInfoDivideRequired bool }

func (a *API) policy(ctx context.Context, r reader) (description, error) {
	d, err := a.users.Policy(ctx, caller(ctx))
	if err != nil {
		return description{}, err
	}
	p := description{
		AvaliableIdentifierTypes: []string{}, AuthMethods: []authMethod{}, Rdns: []rdn{}, IdentityProviders: []identityProvider{}, CryptoProviders: append([]CryptoProvider{}, a.rules.Providers...),
		Groups: []providerGroups{{a.rules.Local, append([]string{}, d.Groups...)}},
	}
	for _, t := range d.Identifiers {
		p.AvaliableIdentifierTypes = append(p.AvaliableIdentifierTypes, t.String())
	}
	for _, m := range a.identity.Methods() {
		kind := "Secondary"
		if m.Primary {
			kind = "Primary"
		}
		p.AuthMethods = append(p.AuthMethods, authMethod{m.URI(a.rules.MethodURIs), kind})
	}
	p.AuthenticationPolicy = authenticationPolicy{
		Mode: "Off", AuthMethods: p.AuthMethods,
		OperationPolicy: rules(policy.Setting{Actions: a.rules.Confirmed}, false, markedOperation),
	}
	if a.rules.Confirmed != 0 {
		p.AuthenticationPolicy.Mode = "On"
	}
	lang := rest.LanguageFor(a.rules.Language, r.Languages)
	for _, c := range d.Components {
		p.Rdns = append(p.Rdns, rdn{
			ID: c.ID, OID: c.OID, DisplayName: c.NameIn(lang), StringIdentifier: c.Name, Order: c.Order,
			MinLength: c.MinLength, MaxLength: c.MaxLength, Required: c.Required,
			ValueSet: append([]string{}, c.Values...), DefaultValue: rest.OrNull(c.Default),
		})
	}
	for _, i := range d.Issuers {
		p.IdentityProviders = append(p.IdentityProviders, identityProvider{i.Description, i.Name, i.DisplayName})
	}
	return p, nil
}
