// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
	"syscall"
	"time"

	"tamga/internal/config"
	"tamga/internal/web/rest"
	"tamga/sig/budget"
)

// StopSignal is the cause of a canceled context: the signal that stopped the program.
type StopSignal struct{ os.Signal }

func (s StopSignal) Error() string { return "stopped by the signal " + s.String() }

// Is reports whether target is context.Canceled: a stop by a signal is a cancellation.
func (s StopSignal) Is(target error) bool { return target == context.Canceled }

// endpoint is a listener with its TLS and the context of its connections.
type endpoint struct {
	listener    net.Listener
	tls         *tls.Config // nil: plain HTTP
	connContext func(context.Context, net.Conn) context.Context
}

// served is an endpoint with its server.
type served struct {
	*http.Server
	crowd *rest.Crowd
}

func (s served) serve() error {
	defer s.crowd.Close() // finish waits for it
	listener := rest.Bulk(s.crowd)
	if s.TLSConfig == nil {
		return s.Serve(listener)
	}
	return s.ServeTLS(listener, "", "") // the certificate is in TLSConfig
}

// finish answers the requests of connections that were accepted. Each answer ends its connection.
func (s served) finish(ctx context.Context) {
	s.SetKeepAlivesEnabled(false) // closes connections that are idle
	s.crowd.Finish(ctx)
}

// memoryWait is how long a document waits for memory that other documents hold.
const memoryWait = 5 * time.Second

// Serve answers requests at the listener, and at the socket of the GOST-TLS front end if there is
// one, until ctx ends. It reloads on SIGHUP.
func (s *Server) Serve(ctx context.Context, listener net.Listener, r Reloading) error {
	c, log := s.services.Config, s.services.log
	pool := budget.NewPool(int64(c.Limits.DocumentMemory), memoryWait)
	s.services.metrics.MustRegister(documentMemory{pool})
	ctx = budget.Within(ctx, pool)
	proxies, err := rest.ParseProxies(c.TrustedProxies)
	if err != nil {
		return err
	}
	endpoints := []endpoint{{listener: listener, connContext: proxies.ConnContext}}
	if c.ProxyProtocol {
		endpoints[0].listener = rest.ProxyProtocol(listener, proxies, log)
	}
	if c.TLS.CertificateFile != "" {
		if endpoints[0].tls, err = s.services.clientTLS(ctx); err != nil {
			return err
		}
		cert, err := readCertificate(c)
		if err != nil {
			return err
		}
		s.services.certificate.Store(cert)
		endpoints[0].tls.GetCertificate = func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return s.services.certificate.Load(), nil }
	}
	if c.GOSTTLS.Socket != "" {
		front, err := ListenFrontEnd(c, log)
		if err != nil {
			return err
		}
		defer front.Close()
		endpoints = append(endpoints, endpoint{listener: front, connContext: rest.FrontEnd})
		log.Info("listening for the GOST-TLS front end", "socket", front.Addr().String())
	}
	if s.inside != nil {
		inside, err := net.Listen("tcp", c.MetricsListen)
		if err != nil {
			return fmt.Errorf("metrics_listen: %w", err)
		}
		watched := rest.NewServer(s.inside, log)
		go func() {
			if err := watched.Serve(inside); !errors.Is(err, http.ErrServerClosed) {
				log.Error("metrics_listen", "error", err)
			}
		}()
		defer watched.Close() // a scrape may be cut; the service has ended
		log.Info("listening for the monitoring", "address", inside.Addr().String())
	}
	serving, stop := context.WithCancel(ctx)
	defer stop()
	go s.reloadOnSignal(serving, r)
	log.Info("listening", "address", c.Listen, "url", c.BaseURL())
	notify := r.Notify
	if notify == nil {
		notify = func(string) {}
	}
	return s.answer(ctx, endpoints, notify)
}

// answer answers at the endpoints until ctx ends, and tells the service manager so. Then it drains (see drain), closes the listeners
// and answers the requests of the connections that it has (see [rest.Crowd.Finish]), up to the configured stop_time. The
// background tasks end with it.
func (s *Server) answer(ctx context.Context, endpoints []endpoint, notify func(state string)) error {
	c, log := s.services.Config, s.services.log
	requests, abort := context.WithCancel(context.WithoutCancel(ctx))
	defer abort()
	working := make(chan struct{})
	workCtx, stopWork := context.WithCancel(ctx)
	defer stopWork()
	// Other processes must know the master keys of this one before it seals anything.
	if err := s.services.announce(ctx); err != nil {
		return err
	}
	defer s.services.depart()
	go func() {
		defer close(working)
		var observing sync.WaitGroup
		observing.Go(func() { s.observe(workCtx) })
		s.work(workCtx)
		observing.Wait()
	}()

	failed := make(chan error, len(endpoints))
	var servers []served
	resets := rest.NewResets(log, s.services.metrics)
	for _, e := range endpoints {
		server := served{rest.NewServer(s.handler, log), rest.Crowded(e.listener, c.Limits.Connections)}
		server.BaseContext = func(net.Listener) context.Context { return requests }
		server.ConnContext, server.TLSConfig = e.connContext, e.tls
		resets.Guard(server.Server)
		servers = append(servers, server)
		go func() { failed <- server.serve() }()
	}
	var err error
	notify("READY=1")
	select {
	case err = <-failed:
		err = fmt.Errorf("serving: %w", err)
	case <-ctx.Done():
		notify("STOPPING=1")
		s.readiness.Drain()
		drain(ctx, c.DrainTime, log)
		s.services.waits.Close() // they would end with the time to stop
		log.Info("stopping", "waiting", c.StopTime.String())
	}
	deadline, cancel := context.WithTimeout(requests, c.StopTime)
	var stopping sync.WaitGroup
	for _, server := range servers {
		stopping.Go(func() {
			server.finish(deadline)
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

// drain waits until load balancers have noticed that the process is not ready. A second signal ends
// the wait. After Ctrl-C there is no wait, since a person sits at the terminal.
func drain(ctx context.Context, most time.Duration, log *slog.Logger) {
	var by StopSignal
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

// NewLogger returns the logger of the process, with the level and format of the configuration.
func NewLogger(w io.Writer, c *config.Config) *slog.Logger {
	return NewLoggerAt(new(slog.LevelVar), w, c)
}

// NewLoggerAt is NewLogger with a level that may change later. It sets the level. An outage that meets many requests
// and loops is few lines: see Watch.
func NewLoggerAt(at *slog.LevelVar, w io.Writer, c *config.Config) *slog.Logger {
	var level slog.Level
	_ = level.UnmarshalText([]byte(c.Log.Level)) // Validate has checked it
	at.Set(level)
	options := &slog.HandlerOptions{Level: at}
	if c.Log.Format == "text" {
		return slog.New(newWatching(slog.NewTextHandler(w, options)))
	}
	return slog.New(newWatching(slog.NewJSONHandler(w, options)))
}

// The heap of a server may grow to leastHeap, and to three times the live memory, before garbage
// is collected. Documents are not kept in memory, so the live memory is 6 to 10 MiB. With a GOGC of
// 200 alone the heap would be a third of leastHeap, and collecting it took a tenth of the time of
// small requests. A GOGC that is large enough for that would let a large heap grow without need.
const (
	leastHeap = 96 << 20
	leastGOGC = 200
)

// CollectLess makes garbage collections rare, see leastHeap, and gives what only the start used back
// to the system: its garbage, a third of the memory of data then, and pages of the program. If GOGC
// is set in the environment, collections stay as it says. GOMEMLIMIT keeps its meaning.
func CollectLess() {
	collecting.Do(func() {
		if os.Getenv("GOGC") == "" {
			afterCollections(func(live, roots uint64) { debug.SetGCPercent(gogc(live, roots)) })
		}
		go func() {
			debug.FreeOSMemory()
			releaseProgram()
		}()
	})
}

var collecting sync.Once

// gogc returns the GOGC for a heap of which live bytes were in use at the last collection. The
// runtime applies GOGC to the live memory and to its roots, the global variables and the stacks.
func gogc(live, roots uint64) int {
	if live == 0 || live >= leastHeap {
		return leastGOGC
	}
	return max(leastGOGC, int(min(100*(leastHeap-live)/(live+roots), 10_000)))
}

// afterCollections calls do with the bytes of the live memory and of its roots, now and after each
// collection of garbage. It learns of a collection from the finalizer of an object that nothing
// refers to.
func afterCollections(do func(live, roots uint64)) {
	sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}, {Name: "/gc/scan/globals:bytes"}, {Name: "/gc/scan/stack:bytes"}}
	metrics.Read(sample)
	do(sample[0].Value.Uint64(), sample[1].Value.Uint64()+sample[2].Value.Uint64())
	runtime.SetFinalizer(new([64]byte), func(*[64]byte) { afterCollections(do) })
}
