// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"fmt"

	"tamga/internal/app"
	"tamga/internal/cli"
	"tamga/internal/config"
)

// Ready is the sub-command ready: a probe for service managers and containers without a shell.
type Ready struct {
	Config string   `required:"" placeholder:"FILE" env:"TAMGA_CONFIG" help:"Configuration file of the server (YAML)."`
	Set    []string `placeholder:"NAME=VALUE" sep:"none" help:"Setting that overrides the configuration file. May be repeated."`
	JSON   bool     `help:"Print JSON instead of text."`
}

// Help returns the text above the flags.
func (Ready) Help() string {
	return `Asks the server of a configuration on this machine whether it is ready (/readyz). The exit code is 0 if it is, otherwise 1.`
}

// Run asks the server and prints its answer.
func (r *Ready) Run(c *cli.Console) error {
	conf, err := config.Load(r.Config, r.Set, app.Parts())
	if err != nil {
		return err
	}
	answer, err := app.AskReady(c.Context, conf)
	if err != nil {
		return err
	}
	if r.JSON {
		_, err = fmt.Fprintf(c.Stdout, "%s\n", answer.Text)
	} else {
		_, err = fmt.Fprintln(c.Stdout, cli.Printable(answer.People))
	}
	if err == nil && !answer.Ready {
		return cli.ExitCode(1)
	}
	return err
}
