// Package serve has the sub-command serve: its flags, and the order in which a server starts.
package serve

import (
	"errors"
	"fmt"
	"net"

	"tamga/internal/app"
	"tamga/internal/app/dev"
	"tamga/internal/cli"
	"tamga/internal/config"
	"tamga/internal/files"
)

type Command struct {
	Config      string   `placeholder:"FILE" xor:"mode" help:"Configuration file (YAML); docs/config.md lists its keys."`
	Dev         bool     `xor:"mode" help:"Serve with everything made on first start: keys, an authority, an operator and the user demo. Nothing to configure; for trying out, not for production."`
	Data        string   `placeholder:"DIR" default:"tamga-data" help:"With --dev: directory for everything, made once and used again."`
	Listen      string   `placeholder:"HOST:PORT" help:"Address to listen on, over the configuration."`
	DevAnywhere bool     `help:"Let --dev listen on addresses other than loopback: whoever reaches them can sign."`
	Set         []string `placeholder:"NAME=VALUE" sep:"none" help:"Setting over the configuration; may be repeated."`
}

func (s *Command) Run(c *cli.Console) error {
	settings := s.Set
	if s.Listen != "" {
		settings = append(settings[:len(settings):len(settings)], "listen="+s.Listen)
	}
	var conf *config.Config
	var err error
	switch {
	case s.Dev:
		conf, err = dev.Config(s.Data, settings, s.DevAnywhere)
	case s.Config != "":
		conf, err = config.Load(s.Config, settings, app.Parts())
	default:
		return errors.New("serve: want --config FILE, or --dev to try it out")
	}
	if err != nil {
		return err
	}
	if err := app.Validate(conf); err != nil {
		return fmt.Errorf("the configuration does not hold:\n%w", err)
	}
	log := app.NewLogger(c.Stderr, conf)
	if err := files.KeepMemoryPrivate(); err != nil {
		log.Warn("what is in memory may get into a core dump", "error", err)
	}

	listener, err := net.Listen("tcp", conf.Listen)
	if err != nil {
		return fmt.Errorf("listening: %w", err)
	}
	defer listener.Close()
	conf.Listen = listener.Addr().String()     // port 0 becomes the one taken
	if err := app.Validate(conf); err != nil { // a name may turn out to be every address
		return fmt.Errorf("the configuration does not hold:\n%w", err)
	}

	base, err := app.Open(c.Context, conf, app.ForServer, log)
	if err != nil {
		return err
	}
	defer base.Close()
	if s.Dev {
		if err := base.Migrate(c.Context); err != nil {
			return err
		}
	}
	rooms, err := base.Rooms(c.Context)
	if err != nil {
		return err
	}
	if s.Dev {
		d, err := dev.Furnish(c.Context, rooms, s.Data)
		if err != nil {
			return fmt.Errorf("preparing %s: %w", s.Data, err)
		}
		d.Explain(c.Stdout, s.Data, c.Program.Name)
	}
	app.CollectLess()
	server, err := app.NewServer(c.Context, rooms, c.Program.Version)
	if err != nil {
		return err
	}
	defer server.Close()
	return server.Serve(c.Context, listener)
}
