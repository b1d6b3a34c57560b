package main

import (
	"tamga/internal/app"
	"tamga/internal/config"
)

type configCommand struct {
	Check configCheckCommand `cmd:"" help:"Report every fault of a configuration, or print it with its defaults."`
}

type configCheckCommand struct {
	Config string   `required:"" placeholder:"FILE" help:"Configuration file (YAML)."`
	Set    []string `placeholder:"NAME=VALUE" sep:"none" help:"Setting over the file; may be repeated."`
}

func (k configCheckCommand) Run(c *console) error {
	conf, err := config.Load(k.Config, k.Set, app.Parts())
	if err != nil {
		return err
	}
	if err := validate(conf); err != nil {
		return err
	}
	return conf.Print(c.stdout)
}

// validate checks a configuration against the signature formats of this program.
func validate(c *config.Config) error {
	return c.Validate(formats(c).Names())
}
