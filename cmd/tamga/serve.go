package main

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/signal"
	"runtime/debug"
	"sync"
	"syscall"
	"time"

	"tamga/internal/adapter/store"
	"tamga/internal/app"
	"tamga/internal/config"
	"tamga/internal/web/rest"
)

type serveCommand struct {
	Config      string   `placeholder:"FILE" xor:"mode" help:"Configuration file (YAML); docs/config.md lists its keys."`
	Dev         bool     `xor:"mode" help:"Serve with everything made on first start: keys, an authority, an operator and the user demo. Nothing to configure; for trying out, not for production."`
	Data        string   `placeholder:"DIR" default:"tamga-data" help:"With --dev: directory for everything, made once and used again."`
	Listen      string   `placeholder:"HOST:PORT" help:"Address to listen on, over the configuration."`
	DevAnywhere bool     `help:"Let --dev listen on addresses other than loopback: whoever reaches them can sign."`
	Set         []string `placeholder:"NAME=VALUE" sep:"none" help:"Setting over the configuration; may be repeated."`
}

func (s *serveCommand) Run(c *console) error {
	settings := s.Set
	if s.Listen != "" {
		settings = append(settings[:len(settings):len(settings)], "listen="+s.Listen)
	}
	var conf *config.Config
	var err error
	switch {
	case s.Dev:
		conf, err = devConfig(s.Data, settings, s.DevAnywhere)
	case s.Config != "":
		conf, err = config.Load(s.Config, settings, app.Parts())
	default:
		return errors.New("serve: want --config FILE, or --dev to try it out")
	}
	if err != nil {
		return err
	}
	if err := validate(conf); err != nil {
		return fmt.Errorf("the configuration does not hold:\n%w", err)
	}
	log := newLogger(c.stderr, conf)
	if err := keepMemoryPrivate(); err != nil {
		log.Warn("what is in memory may get into a core dump", "error", err)
	}

	listener, err := net.Listen("tcp", conf.Listen)
	if err != nil {
		return fmt.Errorf("listening: %w", err)
	}
	defer listener.Close()
	conf.Listen = listener.Addr().String() // port 0 becomes the one taken
	if err := validate(conf); err != nil { // a name may turn out to be every address
		return fmt.Errorf("the configuration does not hold:\n%w", err)
	}

	h, err := openHouse(c.ctx, conf, store.ServingLimits, log)
	if err != nil {
		return err
	}
	defer h.close()
	if s.Dev {
		if err := h.db.Migrate(c.ctx); err != nil {
			return err
		}
		if _, err := h.auth(c.ctx); err != nil {
			return err
		}
		d, err := furnish(c.ctx, h, s.Data)
		if err != nil {
			return fmt.Errorf("preparing %s: %w", s.Data, err)
		}
		d.explain(c.stdout, s.Data, program())
	}
	collectLess()
	handler, err := h.handler(c.ctx)
	if err != nil {
		return err
	}
	proxies, err := rest.ParseProxies(conf.TrustedProxies)
	if err != nil {
		return err
	}
	doors := []door{{listener: listener, connContext: proxies.ConnContext}}
	if conf.ProxyProtocol {
		doors[0].listener = rest.ProxyProtocol(listener, proxies, log)
	}
	if conf.TLS.CertificateFile != "" {
		if doors[0].tls, err = h.clientTLS(c.ctx); err != nil {
			return err
		}
	}
	if conf.GOSTTLS.Socket != "" {
		front, err := listenFrontEnd(conf, log)
		if err != nil {
			return err
		}
		defer front.Close()
		doors = append(doors, door{listener: front, connContext: rest.FrontEnd})
		log.Info("listening for the GOST-TLS front end", "socket", front.Addr().String())
	}
	log.Info("listening", "address", conf.Listen, "url", conf.BaseURL())
	return serve(c.ctx, doors, handler, conf, log, h.readiness.Drain, h.work)
}

// door is where requests come in.
type door struct {
	listener    net.Listener
	tls         *tls.Config // nil: plain HTTP
	connContext func(context.Context, net.Conn) context.Context
}

func (d door) serve(s *http.Server, config *config.Config) error {
	listener := rest.Bulk(rest.Crowded(d.listener, config.Limits.Connections))
	if d.tls == nil {
		return s.Serve(listener)
	}
	s.TLSConfig = d.tls
	return s.ServeTLS(listener, config.Path(config.TLS.CertificateFile), config.Path(config.TLS.KeyFile))
}

// serve answers at the doors until ctx ends. Then it drains, see [drain], takes no more
// connections and waits for requests under way, at most config.StopTime. The background
// work ends with it.
func serve(ctx context.Context, doors []door, handler http.Handler, config *config.Config, log *slog.Logger, notReady func(), background func(context.Context)) error {
	requests, abort := context.WithCancel(context.WithoutCancel(ctx))
	defer abort()
	working := make(chan struct{})
	workCtx, stopWork := context.WithCancel(ctx)
	defer stopWork()
	go func() { defer close(working); background(workCtx) }()

	failed := make(chan error, len(doors))
	var servers []*http.Server
	for _, d := range doors {
		server := rest.NewServer(handler, log)
		server.BaseContext = func(net.Listener) context.Context { return requests }
		server.ConnContext = d.connContext
		servers = append(servers, server)
		go func() { failed <- d.serve(server, config) }()
	}
	var err error
	select {
	case err = <-failed:
		err = fmt.Errorf("serving: %w", err)
	case <-ctx.Done():
		notReady()
		drain(ctx, config.DrainTime, log)
		log.Info("stopping", "waiting", config.StopTime.String())
	}
	deadline, cancel := context.WithTimeout(requests, config.StopTime)
	var stopping sync.WaitGroup
	for _, server := range servers {
		stopping.Go(func() {
			if stopErr := server.Shutdown(deadline); stopErr != nil {
				log.Warn("requests were still under way when the time to stop was over", "error", stopErr)
				abort()
				server.Close()
			}
		})
	}
	stopping.Wait()
	cancel()
	stopWork()
	<-working
	return err
}

// drain waits until balancers have noticed that the process is not ready. A second signal
// ends it. After Ctrl-C nothing is waited for: a person waits at the terminal.
func drain(ctx context.Context, most time.Duration, log *slog.Logger) {
	var by stopSignal
	if most == 0 || errors.As(context.Cause(ctx), &by) && by.Signal == os.Interrupt {
		return
	}
	again := make(chan os.Signal, 1)
	signal.Notify(again, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(again)
	log.Info("draining: /readyz answers 503, requests are still taken; a second signal ends this", "for", most.String())
	timer := time.NewTimer(most)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-again:
	}
}

// newLogger returns the one logger of the process.
func newLogger(w io.Writer, config *config.Config) *slog.Logger {
	var level slog.Level
	_ = level.UnmarshalText([]byte(config.Log.Level)) // Validate has seen it
	options := &slog.HandlerOptions{Level: level}
	if config.Log.Format == "text" {
		return slog.New(slog.NewTextHandler(w, options))
	}
	return slog.New(slog.NewJSONHandler(w, options))
}

// configFrom is how the administrating commands find the installation.
type configFrom struct {
	Config string   `placeholder:"FILE" help:"Configuration file of the installation."`
	Data   string   `placeholder:"DIR" help:"Directory of a server started with --dev (default tamga-data when there is one)."`
	Set    []string `placeholder:"NAME=VALUE" sep:"none" help:"Setting over the configuration; may be repeated."`
	JSON   bool     `help:"Print JSON for programs instead of text for people."`
}

// openDev is the configuration of a directory of serve --dev. Its server may have
// taken any port, and what is issued now names that server.
func (f *configFrom) openDev(dir string) (*config.Config, error) {
	d, err := readDev(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("no installation in %s: give --config FILE, or --data DIR of a server started with --dev", dir)
	}
	if err != nil {
		return nil, err
	}
	settings := f.Set
	if u, err := url.Parse(d.BaseURL); err == nil && u.Host != "" {
		settings = append([]string{"listen=" + u.Host}, settings...)
	}
	return devConfig(dir, settings, true)
}

// open opens the installation beside a running server.
func (f *configFrom) open(c *console) (*house, error) {
	var conf *config.Config
	var err error
	switch {
	case f.Config != "" && f.Data != "":
		return nil, errors.New("--config and --data name two installations: give one")
	case f.Config != "":
		conf, err = config.Load(f.Config, f.Set, app.Parts())
	default:
		conf, err = f.openDev(cmp.Or(f.Data, "tamga-data"))
	}
	if err != nil {
		return nil, err
	}
	if err := validate(conf); err != nil {
		return nil, fmt.Errorf("the configuration does not hold:\n%w", err)
	}
	return openHouse(c.ctx, conf, store.CommandLimits, newLogger(c.stderr, conf))
}

// collectLess lets the heap grow to three times what is in use between two
// collections instead of twice: documents are not kept in memory, so what is in
// use is a few MiB, and collecting it at every turn took a tenth of the time of small requests.
// GOGC and GOMEMLIMIT, when set, keep their meaning.
func collectLess() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(200)
	}
}
