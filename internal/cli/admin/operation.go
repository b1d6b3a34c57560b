// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"context"
	"encoding/json"

	"tamga/internal/app"
	"tamga/internal/cli"
)

// Operation is the sub-command operation.
type Operation struct {
	Proof operationProofCommand `cmd:"" help:"Export the evidence of a confirmed operation as JSON."`
}

type operationProofCommand struct {
	ID   string           `arg:"" help:"Identifier of the operation."`
	From cli.Installation `embed:""`
}

// Run prints the export, with or without --json.
func (p *operationProofCommand) Run(c *cli.Console) error {
	return cli.Administer(c, &p.From, "ExportProof", "operation "+p.ID, func(ctx context.Context, s *app.Services) error {
		proof, err := s.Proofs().Any(ctx, p.ID)
		if err != nil {
			return err
		}
		out := json.NewEncoder(c.Stdout)
		out.SetIndent("", "  ")
		return out.Encode(proof)
	})
}
