// SPDX-License-Identifier: Apache-2.0

// Package serve has the sub-command serve: its flags, and the order of the start of a server. What
// the server is made of is in package app.
package serve

import (
	"errors"
	"fmt"
	"log/slog"
	"net"

	"tamga/internal/app"
	"tamga/internal/app/dev"
	"tamga/internal/cli"
	"tamga/internal/config"
	"tamga/internal/files"
	"tamga/internal/web/pages"
)

// Command is the sub-command serve.
type Command struct {
	Config      string   `placeholder:"FILE" xor:"mode" help:"Configuration file (YAML); docs/config.md lists its settings."`
	Dev         bool     `xor:"mode" help:"Run in development mode, without a configuration. The first start makes keys, an authority, an operator and the user demo. Not for production."`
	Data        string   `placeholder:"DIR" default:"tamga-data" help:"With --dev: directory for all files. It is made if it is missing."`
	Listen      string   `placeholder:"HOST:PORT" help:"Address to listen on. Overrides the configuration."`
	DevAnywhere bool     `help:"With --dev: allow addresses other than loopback. Anyone who can reach them can sign."`
	Set         []string `placeholder:"NAME=VALUE" sep:"none" help:"Setting that overrides the configuration file. May be repeated."`
}

// Run starts the server and returns when the context of the console ends.
func (s *Command) Run(c *cli.Console) error {
	settings := s.Set
	if s.Listen != "" {
		settings = append(settings[:len(settings):len(settings)], "listen="+s.Listen)
	}
	conf, err := s.load(settings)
	if err != nil {
		return cli.ConfigError{Err: err}
	}
	level := new(slog.LevelVar)
	log := app.NewLoggerAt(level, c.Stderr, conf)
	if err := files.KeepMemoryPrivate(); err != nil {
		log.Warn("what is in memory may get into a core dump", "error", err)
	}

	wanted := conf.Listen
	listener, err := listen(wanted)
	if err != nil {
		return fmt.Errorf("listening: %w", err)
	}
	defer listener.Close()
	conf.Listen = actual(wanted, listener.Addr())
	if err := app.Validate(conf); err != nil { // a host name may mean all addresses
		return fmt.Errorf("the configuration is invalid:\n%w", err)
	}

	base, err := app.Open(c.Context, conf, app.ForServer, log)
	if err != nil {
		return err
	}
	defer base.Close()
	if s.Config != "" {
		base.FollowMasterKeys(s.Config, settings)
	}
	if s.Dev {
		if err := base.Migrate(c.Context); err != nil {
			return err
		}
	}
	services, err := base.Services(c.Context)
	if err != nil {
		return err
	}
	var trial *pages.Trial
	if s.Dev {
		d, err := dev.Furnish(c.Context, services, s.Data)
		if err != nil {
			return fmt.Errorf("preparing %s: %w", s.Data, err)
		}
		trial = d.Trial()
		d.Explain(c.Stdout, s.Data, c.Program.Name, c.Text)
	}
	server, err := app.NewServer(c.Context, services, c.Program.Version, trial)
	if err != nil {
		return err
	}
	defer server.Close()
	app.CollectLess()
	return server.Serve(c.Context, listener, app.Reloading{Level: level, Notify: func(state string) {
		if err := notifyManager(state); err != nil {
			log.Warn("the service manager waits for a word of this server", "error", err)
		}
	}, Load: func() (*config.Config, error) {
		fresh, err := s.load(settings)
		if err == nil && fresh.Listen == wanted {
			fresh.Listen = conf.Listen // the actual port
		}
		return fresh, err
	}})
}

// load reads and checks the configuration.
func (s *Command) load(settings []string) (conf *config.Config, err error) {
	switch {
	case s.Dev:
		conf, err = dev.Config(s.Data, settings, s.DevAnywhere)
	case s.Config != "":
		conf, err = config.Load(s.Config, settings, app.Parts())
	default:
		err = errors.New("serve: give --config FILE, or --dev to try it out")
	}
	if err != nil {
		return nil, err
	}
	if err := app.Validate(conf); err != nil {
		return nil, fmt.Errorf("the configuration is invalid:\n%w", err)
	}
	return conf, nil
}

// actual returns an address to listen on as it came out: port 0 is the actual port, and a host
// name its address. The name localhost stays, because browsers have passkeys for names only.
func actual(wanted string, listening net.Addr) string {
	host, _, _ := net.SplitHostPort(wanted)
	_, port, err := net.SplitHostPort(listening.String())
	if err != nil || host != "localhost" {
		return listening.String()
	}
	return net.JoinHostPort(host, port)
}
