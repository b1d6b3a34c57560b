// SPDX-License-Identifier: Apache-2.0

// Package signapi serves the signing service: it turns the names and forms of requests in
// the specification into orders of the domain, and results of the domain into answers of
// the specification. Begin with [New] and [API.Routes]; [API.Anonymous], [API.Managing] and
// [API.Operating] add to the API. The domain makes all decisions.
package signapi

import (
	"cmp"
	"context"
	_ "embed" // for Docs

	"tamga/internal/domain/audit"
	"tamga/internal/domain/keys"
	"tamga/internal/domain/signing"
	"tamga/internal/web/rest"
)

// Docs describes the operations of this surface for people; see
// [tamga/internal/web/rest/openapi].
//
//go:embed operations.txt
var Docs string

// Signer makes signatures; see [signing.Service].
type Signer interface {
	parameterForms
	NewIntake(ctx context.Context, snap *signing.Snapshot) (*signing.Intake, error)
	NewSealed() *signing.Intake
	Sign(ctx context.Context, who audit.Principal, o *signing.SignOrder) (signing.Result, error)
	SignMany(ctx context.Context, who audit.Principal, o *signing.BatchOrder) ([]signing.Outcome, error)
	Prepare(ctx context.Context, who audit.Principal, o *signing.PrepareOrder) (*signing.Prepared, error)
	Complete(ctx context.Context, who audit.Principal, o *signing.CompleteOrder) (*signing.Completed, error)
	Enhance(ctx context.Context, who audit.Principal, o *signing.EnhanceOrder) (signing.Result, error)
	Hash(ctx context.Context, content *signing.Intake, algorithm string) ([]byte, error)
}

// Certificates returns the certificates of a user; see [keys.Service].
type Certificates interface {
	List(ctx context.Context, userID string) ([]*keys.Certificate, error)
	Resolve(ctx context.Context, userID, identifier string) (*keys.Certificate, error)
}

// API serves what its Deps are.
type API struct{ deps Deps }

// Anonymous opens the routes that use none of our keys (two steps and enhancing) to callers
// without a token, as existing clients of two steps expect. Every client that reaches the
// address can then fill the quota of prepared objects and have time stamps made.
type Anonymous struct {
	// Admit refuses the address of a caller that comes too often, with the fault
	// too_many_requests. nil: all are admitted.
	Admit func(remote string) error
	// Limit bounds a request without a token, in bytes of its body. 0 is 64 MiB.
	Limit int64
}

const anonymousLimit = 64 << 20

// documents are the documents of one request.
type documents = rest.Documents[*signing.Intake]

// Deps lists what an API serves.
type Deps struct {
	Signer       Signer
	Certificates Certificates
	Operations   *Operating  // nil: no routes of v2 of signing
	Management   *Management // nil: no routes that manage keys
	Anonymous    *Anonymous  // nil: every route wants a token
	Cards        Cards       // nil: no route that makes cards
}

// New returns the API.
func New(d Deps) *API { return &API{d} }

// take opens the intake of a document, for the certificate that its caller most likely signs with.
func (a *API) take(ctx context.Context, _ audit.Principal) (*signing.Intake, error) {
	return a.deps.Signer.NewIntake(ctx, snapshotOf(ctx))
}

// Routes returns the operations of this surface, below {base_url}/api.
func (a *API) Routes() []rest.Route {
	right, own := rest.SignedIn, rest.Route.Large
	if a.deps.Anonymous != nil {
		right, own = rest.Anyone, func(r rest.Route) rest.Route {
			return r.Large().WithoutToken(a.deps.Anonymous.Admit, cmp.Or(a.deps.Anonymous.Limit, anonymousLimit))
		}
	}
	take := a.take
	// A completion depends on the prepared object alone, not on keys and policies of the caller.
	takeRepeated := func(ctx context.Context, who audit.Principal) (*signing.Intake, error) {
		if who.UserID == "" {
			return a.deps.Signer.NewIntake(ctx, nil)
		}
		return a.deps.Signer.NewSealed(), nil
	}
	routes := []rest.Route{
		rest.HandleDocuments("POST /documents", "SignDocument", rest.SignedIn, take, a.sign).Answering(rest.Stream{}, batchResults{}).Large().AnswerOnly().Once().Confirmed(),
		rest.HandleDocuments("POST /documents/packagesignature", "SignPackage", rest.SignedIn, take, a.sign).Answering(batchResults{}, rest.Stream{}).Large().AnswerOnly().Once().Confirmed(),
		rest.HandleDocuments("POST /documents/hash", "HashDocument", rest.SignedIn, take, a.hash).Large().AnswerOnly(),
		rest.Handle("GET /certificates", "GetCertificates", rest.SignedIn, a.list),
		rest.Handle("GET /certificates/{id}", "GetCertificate", rest.SignedIn, a.one),
		own(rest.HandleDocuments("POST /signatures/presign", "PreSignDocument", right, take, a.preSign)).Identifying().Once().Noted(),
		own(rest.HandleDocuments("POST /signatures/postsign", "PostSignDocument", right, takeRepeated, a.postSign)).Identifying().CallerOnly().Once().Noted(),
		own(rest.HandleDocuments("POST /signatures/enhance", "EnhanceSignature", right, take, a.enhance)).Once(),
		own(rest.HandleDocuments("PATCH /signatures/postsign", "EnhanceSignature", right, take, a.enhance)).Once(),
		own(rest.HandleDocuments("POST /documents/enhancesignature", "EnhanceSignature", right, take, a.enhanceSignature)).Once(),
	}
	if o := a.deps.Operations; o != nil {
		routes = append(routes, o.routes(take)...)
		routes = append(routes, o.uploadRoute(take))
		sealed := func(context.Context, audit.Principal) (*signing.Intake, error) { return a.deps.Signer.NewSealed(), nil }
		routes = append(routes, o.encryptionRoutes(sealed)...)
		routes = append(routes, rest.HandleDocuments("POST /transactions", "CreateTransaction", rest.SignedIn, take, a.transact).Large().Once())
	}
	if a.deps.Management != nil {
		routes = append(routes, a.managementRoutes()...)
	}
	return routes
}
