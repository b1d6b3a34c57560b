// Package serve has the sub-command serve: its flags, and the order in which a server starts.
package serve

import (
	"errors"
	"fmt"
	"net"

	"tamga/internal/adapter/store"
	"tamga/internal/app"
	"tamga/internal/app/dev"
	"tamga/internal/cli"
	"tamga/internal/config"
	"tamga/internal/files"
	"tamga/internal/web/rest"
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

	h, err := app.Open(c.Context, conf, store.ServingLimits, log)
	if err != nil {
		return err
	}
	defer h.Close()
	if s.Dev {
		if err := h.DB.Migrate(c.Context); err != nil {
			return err
		}
		if _, err := h.Auth(c.Context); err != nil {
			return err
		}
		d, err := dev.Furnish(c.Context, h, s.Data)
		if err != nil {
			return fmt.Errorf("preparing %s: %w", s.Data, err)
		}
		d.Explain(c.Stdout, s.Data, c.Program.Name)
	}
	app.CollectLess()
	handler, err := h.Handler(c.Context, c.Program.Version)
	if err != nil {
		return err
	}
	proxies, err := rest.ParseProxies(conf.TrustedProxies)
	if err != nil {
		return err
	}
	doors := []app.Door{{Listener: listener, ConnContext: proxies.ConnContext}}
	if conf.ProxyProtocol {
		doors[0].Listener = rest.ProxyProtocol(listener, proxies, log)
	}
	if conf.TLS.CertificateFile != "" {
		if doors[0].TLS, err = h.ClientTLS(c.Context); err != nil {
			return err
		}
	}
	if conf.GOSTTLS.Socket != "" {
		front, err := app.ListenFrontEnd(conf, log)
		if err != nil {
			return err
		}
		defer front.Close()
		doors = append(doors, app.Door{Listener: front, ConnContext: rest.FrontEnd})
		log.Info("listening for the GOST-TLS front end", "socket", front.Addr().String())
	}
	log.Info("listening", "address", conf.Listen, "url", conf.BaseURL())
	return app.Serve(c.Context, doors, handler, conf, log, h.Readiness.Drain, h.Work)
}
