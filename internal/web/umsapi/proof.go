// SPDX-License-Identifier: Apache-2.0

package umsapi

import (
	"context"

	"tamga/internal/domain/audit"
	"tamga/internal/domain/signing"
	"tamga/internal/web/rest"
)

// Proofs exports the evidence of confirmations; *signing.Proofs satisfies it.
type Proofs interface {
	Of(ctx context.Context, who audit.Principal, id string) (*signing.Proof, error)
}

// ProofRoutes returns the operation that exports the evidence of a confirmation to operators.
// Mount it beside [API.Routes] at the same gate, which checks that the user is within reach.
func ProofRoutes(p Proofs) []rest.Route {
	return []rest.Route{
		rest.Handle("GET /ums/user/{id}/operations/{operation}/proof", "GetUserOperationProof", Operator, func(ctx context.Context, r struct {
			ID        userID `path:"id"`
			Operation string `path:"operation"`
		}) (*signing.Proof, error) {
			rest.Detail(ctx, "operation "+r.Operation)
			return p.Of(ctx, audit.Principal{UserID: string(r.ID)}, r.Operation)
		}),
	}
}
