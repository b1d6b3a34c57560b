package admin

import (
	"tamga/internal/cli"
)

type Migrate struct {
	From cli.Installation `embed:""`
}

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
