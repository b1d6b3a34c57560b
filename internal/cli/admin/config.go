package admin

import (
	"tamga/internal/app"
	"tamga/internal/cli"
	"tamga/internal/config"
)

type Config struct {
	Check configCheckCommand `cmd:"" help:"Report every fault of a configuration, or print it with its defaults."`
}

type configCheckCommand struct {
	Config string   `required:"" placeholder:"FILE" help:"Configuration file (YAML)."`
	Set    []string `placeholder:"NAME=VALUE" sep:"none" help:"Setting over the file; may be repeated."`
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
