// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"tamga/internal/app"
	"tamga/internal/cli"
	"tamga/internal/config"
)

// Config is the sub-command config.
type Config struct {
	Check configCheckCommand `cmd:"" help:"Check a configuration: print all errors in it, or the configuration with its defaults if it is valid."`
}

type configCheckCommand struct {
	Config string   `required:"" placeholder:"FILE" help:"Configuration file (YAML)."`
	Set    []string `placeholder:"NAME=VALUE" sep:"none" help:"Setting that overrides the file. May be repeated."`
}

func (k configCheckCommand) Run(c *cli.Console) error {
	conf, err := config.Load(k.Config, k.Set, app.Parts())
	if err != nil {
		return err
	}
	if err := app.Validate(conf); err != nil {
		return err
	}
	return conf.Print(c.Stdout)
}
