// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"tamga/internal/adapter/guard"
	"tamga/internal/adapter/idp"
	"tamga/internal/config"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/notify"
	"tamga/internal/files"
	"tamga/internal/web/rest"
)

// Dependency is a service in the network that the installation needs for a part of its work.
type Dependency struct {
	Part    string // mail, sms, push, sign_in, stamps, revocation, audit_export, directory or traces
	Name    string // "" unless there may be several
	Setting string // that names the service
	Check   func(ctx context.Context) error
}

// dependencyTime bounds the check of a dependency.
const dependencyTime = 4 * time.Second

// partOf returns the part of a channel whose messages go to a service that the configuration names, otherwise "":
// addresses of subscribers are theirs.
func partOf(channel notify.Channel) string {
	return map[notify.Channel]string{notify.Email: "mail", notify.SMS: "sms", notify.Push: "push"}[channel]
}

// Dependencies returns what the installation reaches in the network. Checks send no message, take no time stamp and sign
// no user in.
func (b *Base) Dependencies() ([]Dependency, error) {
	c := b.Config
	var list []Dependency
	for _, n := range b.senders {
		if p, is := n.(notify.Prober); is && partOf(n.Channel()) != "" {
			list = append(list, Dependency{partOf(n.Channel()), "", "messages", p.Probe})
		}
	}
	for i, x := range c.External {
		provider, err := provider(c, i, b.now(), func(error) {})
		if err != nil {
			return nil, err
		}
		if p, is := provider.(*idp.OIDC); is {
			list = append(list, Dependency{"sign_in", x.Name, fmt.Sprintf("external[%d].issuer", i), p.Probe})
		}
	}
	allowed, err := evidenceGuard(c, c.Evidence)
	if err != nil {
		return nil, err
	}
	outside := guard.New(allowed) // requests for evidence go the same way
	reach := func(address string, registered bool) func(ctx context.Context) error {
		return func(ctx context.Context) error { return outside.Reach(ctx, address, registered) }
	}
	for i, t := range c.Evidence.TSPServices {
		list = append(list, Dependency{"stamps", t.Name, fmt.Sprintf("evidence.tsp_services[%d].url", i), reach(t.URL, true)})
	}
	for i, a := range c.Certificates.Authorities {
		certificates, err := files.Certificates(c.Path(a.CertificatesFile))
		if err != nil {
			return nil, err
		}
		seen := map[string]bool{}
		for _, x := range certificates {
			for _, address := range slices.Concat(x.OCSPServers, x.CRLDistributionPoints) {
				u, err := url.Parse(address)
				if err != nil || u.Scheme != "http" && u.Scheme != "https" || seen[u.Host] {
					continue
				}
				seen[u.Host] = true
				list = append(list, Dependency{"revocation", a.Name + " " + u.Host, fmt.Sprintf("certificates.authorities[%d].certificates_file", i), reach(address, false)})
			}
		}
	}
	directories, err := b.directoryDependencies()
	if err != nil {
		return nil, err
	}
	list = append(list, directories...)
	if d, ok, err := b.exportDependency(); err != nil {
		return nil, err
	} else if ok {
		list = append(list, d)
	}
	if c.Tracing.Endpoint != "" {
		pool, err := roots(c, c.Tracing.AuthoritiesFile)
		if err != nil {
			return nil, err
		}
		list = append(list, Dependency{"traces", "", "tracing.endpoint", func(ctx context.Context) error {
			return guard.Reach(ctx, c.Tracing.Endpoint, pool, http.ProxyFromEnvironment)
		}})
	}
	return list, nil
}

// now returns the clock of the database, or that of the machine for a Base without one.
func (b *Base) now() func() time.Time {
	if b.DB == nil {
		return time.Now
	}
	return b.DB.Now
}

// DependenciesOf is Base.Dependencies for a configuration whose database may be away. The caller calls done at the end.
func DependenciesOf(c *config.Config) (list []Dependency, done func(), err error) {
	b := &Base{Config: c}
	if !c.Messages.Capture {
		if b.senders, err = notifiers(c, time.Now, nil); err != nil {
			return nil, nil, err
		}
	}
	done = func() {
		for _, n := range b.senders {
			if closer, ok := n.(io.Closer); ok {
				closer.Close()
			}
		}
	}
	if list, err = b.Dependencies(); err != nil {
		done()
		return nil, nil, err
	}
	return list, done, nil
}

// CheckAll checks dependencies, all at once, and calls done with each result, one at a time. A deadline of ctx is a result,
// and cancelling it is not.
func CheckAll(ctx context.Context, list []Dependency, done func(d Dependency, err error)) {
	var checking sync.WaitGroup
	var one sync.Mutex
	for _, d := range list {
		checking.Go(func() {
			within, cancel := context.WithTimeout(ctx, dependencyTime)
			defer cancel()
			err := d.Check(within)
			if errors.Is(ctx.Err(), context.Canceled) {
				return
			}
			one.Lock()
			defer one.Unlock()
			done(d, err)
		})
	}
	checking.Wait()
}

// checkDisks returns why a disk cannot be written to.
func (b *Base) checkDisks(context.Context) error {
	var faults []error
	dirs := Disks(b.Config)
	for _, name := range slices.Sorted(maps.Keys(dirs)) {
		if err := CheckDisk(dirs[name]); err != nil {
			faults = append(faults, fmt.Errorf("%s: %w", name, err))
		}
	}
	return errors.Join(faults...)
}

// diskSample is what CheckDisk writes. A disk without space takes empty files.
const diskSample = 16 << 10

// CheckDisk writes some KiB to a new file of a directory, waits until they are on the disk, and removes the file.
func CheckDisk(dir string) (err error) {
	f, err := os.CreateTemp(dir, ".space-")
	if err != nil {
		return err
	}
	_, err = f.Write(make([]byte, diskSample))
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close(), os.Remove(f.Name()))
}

// slowly keeps the result of a check for a while, for one that is not cheap.
func slowly(check func(ctx context.Context) error, life time.Duration, now func() time.Time) func(ctx context.Context) error {
	var mu sync.Mutex
	var at time.Time
	var kept error
	return func(ctx context.Context) error {
		mu.Lock()
		defer mu.Unlock()
		if at.IsZero() || now().Sub(at) >= life {
			kept = check(ctx)
			at = now()
		}
		return kept
	}
}

const (
	needsEvery        = 5 * time.Second // the needs of /readyz, also when nothing probes them
	dependenciesEvery = time.Minute
	diskLife          = 10 * time.Second
)

// observe notes what the installation needs until ctx ends, also while the service is closed.
func (s *Server) observe(ctx context.Context) {
	list, err := s.services.Dependencies()
	if err != nil {
		s.services.log.Error("what is in the network is not observed", "error", err)
	}
	var observing sync.WaitGroup
	defer observing.Wait()
	observing.Go(func() { every(ctx, needsEvery, func() { s.readiness.Look(ctx) }) })
	observing.Go(func() {
		every(ctx, dependenciesEvery, func() {
			CheckAll(ctx, list, func(d Dependency, err error) { s.services.watch.note(part{d.Part, d.Name}, err) })
			s.services.watch.note(part{Kind: "tls"}, s.services.servedCertificate())
		})
	})
}

// every calls f now and at each tick.
func every(ctx context.Context, pause time.Duration, f func()) {
	tick := time.NewTicker(pause)
	defer tick.Stop()
	for ctx.Err() == nil {
		f()
		select {
		case <-ctx.Done():
		case <-tick.C:
		}
	}
}

// servedCertificate returns an error if the certificate that clients get has ended.
func (s *Services) servedCertificate() error {
	c := s.certificate.Load()
	if c == nil || c.Leaf == nil || s.DB.Now().Before(c.Leaf.NotAfter) {
		return nil
	}
	return fmt.Errorf("tls.certificate_file: the certificate ended on %s", c.Leaf.NotAfter.UTC().Format(time.DateOnly))
}

// noted gives results of /readyz to the watch. Without the database the holders of keys may not be known either; each is
// a part of its own.
func (b *Base) noted(_ context.Context, name string, err error) {
	var outage *fault.Outage
	if errors.As(err, &outage) {
		err = outage.Err // the rest is for clients
	}
	b.watch.note(part{Kind: name}, err)
}

// partsCollector collects the states of all parts.
type partsCollector struct {
	watch *Watch
	ready *rest.Readiness
	disks map[string]string
}

var (
	readyDesc    = prometheus.NewDesc("tamga_ready", "1 if a part of the installation answered last, otherwise 0. name is set if there may be several.", []string{"part", "name"}, nil)
	failuresDesc = prometheus.NewDesc("tamga_part_failures_total", "How often a part of the installation did not answer.", []string{"part", "name"}, nil)
	freeDesc     = prometheus.NewDesc("tamga_disk_free_bytes", "Free bytes for the service, by the setting of the directory.", []string{"name"}, nil)
)

// Describe implements prometheus.Collector.
func (c *partsCollector) Describe(out chan<- *prometheus.Desc) {
	out <- readyDesc
	out <- failuresDesc
	out <- freeDesc
}

// Collect implements prometheus.Collector.
func (c *partsCollector) Collect(out chan<- prometheus.Metric) {
	c.ready.Look(context.Background())
	for _, s := range c.watch.states() {
		ready := 1.0
		if s.Err != nil {
			ready = 0
		}
		out <- prometheus.MustNewConstMetric(readyDesc, prometheus.GaugeValue, ready, s.Kind, s.Name)
		out <- prometheus.MustNewConstMetric(failuresDesc, prometheus.CounterValue, float64(s.Total), s.Kind, s.Name)
	}
	for name, dir := range c.disks {
		if free, known := FreeSpace(dir); known {
			out <- prometheus.MustNewConstMetric(freeDesc, prometheus.GaugeValue, float64(free), name)
		}
	}
}
