// SPDX-License-Identifier: Apache-2.0

package admin

import "tamga/internal/cli"

// Migrate is the sub-command migrate.
type Migrate struct {
	From cli.Installation `embed:""`
}

// Run brings the database to the schema of this release.
func (m *Migrate) Run(c *cli.Console) error {
	h, err := m.From.Open(c)
	if err != nil {
		return err
	}
	defer h.Close()
	if err := h.Migrate(c.Context); err != nil {
		return err
	}
	return m.From.Answer(c, map[string]bool{"migrated": true}, "The database has the schema of this release.\n")
}
