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
	"runtime/debug"
	"sync"
	"syscall"
	"time"

	"tamga/internal/config"
	"tamga/internal/web/rest"
)

// StopSignal is why the context of a command ended.
type StopSignal struct{ os.Signal }

func (s StopSignal) Error() string { return "stopped by the signal " + s.String() }

// Is makes the end by a signal a cancellation like any other.
func (s StopSignal) Is(target error) bool { return target == context.Canceled }

// Door is where requests come in.
type Door struct {
	Listener    net.Listener
	TLS         *tls.Config // nil: plain HTTP
	ConnContext func(context.Context, net.Conn) context.Context
}

func (d Door) serve(s *http.Server, config *config.Config) error {
	listener := rest.Bulk(rest.Crowded(d.Listener, config.Limits.Connections))
	if d.TLS == nil {
		return s.Serve(listener)
	}
	s.TLSConfig = d.TLS
	return s.ServeTLS(listener, config.Path(config.TLS.CertificateFile), config.Path(config.TLS.KeyFile))
}

// Serve answers at the doors until ctx ends. Then it drains, see [drain], takes no more
// connections and waits for requests under way, at most config.StopTime. The background
// work ends with it.
func Serve(ctx context.Context, doors []Door, handler http.Handler, config *config.Config, log *slog.Logger, notReady func(), background func(context.Context)) error {
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
		server.ConnContext = d.ConnContext
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

// NewLogger returns the one logger of the process.
func NewLogger(w io.Writer, config *config.Config) *slog.Logger {
	var level slog.Level
	_ = level.UnmarshalText([]byte(config.Log.Level)) // Validate has seen it
	options := &slog.HandlerOptions{Level: level}
	if config.Log.Format == "text" {
		return slog.New(slog.NewTextHandler(w, options))
	}
	return slog.New(slog.NewJSONHandler(w, options))
}

// CollectLess lets the heap grow to three times what is in use between two
// collections instead of twice: documents are not kept in memory, so what is in
// use is a few MiB, and collecting it at every turn took a tenth of the time of small requests.
// GOGC and GOMEMLIMIT, when set, keep their meaning.
func CollectLess() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(200)
	}
}
