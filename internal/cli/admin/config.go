// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"encoding/json"
	"errors"

	"tamga/internal/app"
	"tamga/internal/cli"
	"tamga/internal/config"
)

// Config is the sub-command config.
type Config struct {
	Check configCheckCommand `cmd:"" help:"Check a configuration: print all errors in it, or the configuration with its defaults if it is valid."`
}

type configCheckCommand struct {
	Config string   `required:"" placeholder:"FILE" env:"TAMGA_CONFIG" help:"Configuration file (YAML)."`
	Set    []string `placeholder:"NAME=VALUE" sep:"none" help:"Setting that overrides the file. May be repeated."`
	JSON   bool     `help:"Print the faults as JSON, in place of errors and of the configuration."`
}

// configFault is a fault as --json prints it. doctor --json has the same names.
type configFault struct {
	File   string       `json:"file,omitempty"`
	Line   int          `json:"line,omitempty"`
	Key    string       `json:"key,omitempty"` // name of the setting
	Text   cli.Sentence `json:"text"`          // what is wrong
	Remedy cli.Sentence `json:"remedy"`
}

// Help returns the text above the flags.
func (configCheckCommand) Help() string {
	return `Opens the files and directories that the configuration names, as the user who runs the command. It reaches neither the database nor the network. The printed configuration means the same as the file.`
}

func (k configCheckCommand) Run(c *cli.Console) error {
	conf, err := config.Load(k.Config, k.Set, app.Parts())
	faults := config.Each(err)
	if conf != nil {
		invalid := config.Each(app.Validate(conf))
		faults = append(faults, invalid...)
		if len(invalid) == 0 { // otherwise a setting may name nothing that can be opened
			faults = append(faults, app.Inspect(conf)...)
		}
	}
	if k.JSON {
		list := []configFault{}
		for _, f := range faults {
			found := cli.FaultFinding("", f)
			list = append(list, configFault{found.File, found.Line, found.Key, found.Text, found.Remedy})
		}
		out := json.NewEncoder(c.Stdout)
		out.SetIndent("", "  ")
		if err := out.Encode(map[string]any{"valid": len(faults) == 0, "faults": list}); err != nil || len(faults) == 0 {
			return err
		}
		return cli.ExitCode(1)
	}
	if len(faults) > 0 {
		return errors.Join(faults...)
	}
	return conf.Print(c.Stdout)
}
