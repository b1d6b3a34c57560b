// SPDX-License-Identifier: Apache-2.0

package signapi

import (
	"context"
	"strings"

	"tamga/internal/domain/audit"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/signing"
	"tamga/internal/web/rest"
)

// Proofs exports the evidence of confirmations; *signing.Proofs satisfies it.
type Proofs interface {
	Of(ctx context.Context, who audit.Principal, id string) (*signing.Proof, error)
}

// ProofRoutes returns the operation that exports the evidence of a confirmation to its user,
// below {idp_url}.
func ProofRoutes(p Proofs) []rest.Route {
	return []rest.Route{
		rest.Handle("GET /operations/{id}/proof", "GetOperationProof", rest.SignedIn, func(ctx context.Context, r struct {
			ID string `path:"id"`
		}) (*signing.Proof, error) {
			who := rest.Caller(ctx)
			if c := who.Confirmation; c != "" && !strings.EqualFold(strings.TrimSpace(r.ID), c) {
				return nil, fault.New(fault.NotFound, "the access token is that of another operation")
			}
			proof, err := p.Of(ctx, who, r.ID)
			if err != nil {
				return nil, err
			}
			rest.Concerning(ctx, "operation "+proof.ID)
			return proof, nil
		}).Confirmed(),
	}
}
