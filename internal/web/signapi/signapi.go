// Package signapi owns the signing service's door: it turns the names and forms
// of the specification's requests into orders of the domain, and what the domain
// answers into the specification's answers. It decides nothing.
package signapi

import (
	"context"

	"tamga/internal/domain/audit"
	"tamga/internal/domain/keys"
	"tamga/internal/domain/signing"
	"tamga/internal/web/rest"
)

// Signer makes signatures; see [signing.Service].
type Signer interface {
	Sign(ctx context.Context, who audit.Principal, o *signing.Order) (signing.Result, error)
}

// Certificates finds the certificates of a user; see [keys.Service].
type Certificates interface {
	List(ctx context.Context, userID string) ([]*keys.Certificate, error)
	Resolve(ctx context.Context, userID, identifier string) (*keys.Certificate, error)
}

// API serves a signer and the certificates it signs with.
type API struct {
	signer       Signer
	certificates Certificates
}

// New returns the API. The surface it is mounted on gives room for documents as
// *signing.Intake, see [signing.Service.NewIntake].
func New(s Signer, c Certificates) *API { return &API{s, c} }

// Routes are the operations of this door, below {base_url}/api.
func (a *API) Routes() []rest.Route {
	return []rest.Route{
		rest.Handle("POST /documents", "SignDocument", rest.SignedIn, a.sign).Large(),
		rest.Handle("GET /certificates", "GetCertificates", rest.SignedIn, a.list),
		rest.Handle("GET /certificates/{id}", "GetCertificate", rest.SignedIn, a.one),
	}
}
