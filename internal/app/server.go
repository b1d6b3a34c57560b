// SPDX-License-Identifier: Apache-2.0

package app

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"tamga/internal/adapter/blob"
	"tamga/internal/adapter/store"
	"tamga/internal/domain/audit"
	"tamga/internal/domain/authority"
	"tamga/internal/domain/directory"
	"tamga/internal/domain/document"
	"tamga/internal/domain/retention"
	"tamga/internal/domain/signin"
	"tamga/internal/domain/signing"
	webconsole "tamga/internal/web/console"
	"tamga/internal/web/pages"
	"tamga/internal/web/pages/reference"
	"tamga/internal/web/rest"
	"tamga/internal/web/signapi"
	"tamga/internal/web/umsapi"
	"tamga/pki/cms"
	"tamga/pki/x509gost"

	"go.opentelemetry.io/otel/trace"
)

// Server answers requests and runs the background tasks.
type Server struct {
	services   *Services
	handler    http.Handler
	inside     http.Handler // at metrics_listen; nil: there is no such address
	readiness  *rest.Readiness
	refusals   *rest.Gatherer
	operations *signing.Operations
	retention  *retention.Service
	exporter   *audit.Exporter // nil: there is no collector of audit entries
	// directories are synchronized in the background.
	directories []*directory.Service
	tasks       []task // run every minute
	closed      *closed
	clients     *signin.Clients
	flush       func() error // sends the traces that wait
	audited     []string     // see AuditedOperations
}

// NewServer puts the web interfaces on one server. services must have been opened ForServer. It
// makes the built-in authority if the database has none. trial may be nil.
func NewServer(ctx context.Context, services *Services, version string, trial *pages.Trial) (*Server, error) {
	services.version = version
	m := &serverMaker{Services: services, trial: trial, server: &Server{services: services}}
	err := steps{
		{"the built-in authority", m.bootstrap},
		{"document storage", m.openStorage},
		{"tracing and metrics", m.openTracing},
		{"signatures", m.makeSigner},
		{"operations", m.makeOperations},
		{"retention", m.makeRetention},
		{"callers", m.makeCallers},
		{"tasks", m.listTasks},
		{"interfaces", m.mountInterfaces},
		{"pages", m.mountPages},
		{"readiness", m.makeReadiness},
	}.run(ctx, services.log)
	if err != nil {
		return nil, err
	}
	return m.server, nil
}

// serverMaker is a Server that is being made, and what its steps hand to later ones.
type serverMaker struct {
	*Services
	trial  *pages.Trial
	server *Server

	storage    blob.Options
	spool      *blob.Spool
	tracer     trace.Tracer
	signer     *signing.Service
	documents  *document.Service
	operating  signapi.Operating
	answers    *signing.Answers
	retention  *retention.Service
	peers      *authority.Peers
	gate       *rest.Gate // of callers with tokens
	users      *umsapi.API
	userRoutes []rest.Route
	usersGate  *rest.Gate
	svs        *verifier // nil: the installation has no verification service

	surfaces    []surface
	mux         *http.ServeMux
	description []byte      // OpenAPI
	missing     rest.Switch // answers paths without a route, where there are pages
	requests    *rest.Metrics
	whole       http.Handler // all interfaces
}

func (m *serverMaker) bootstrap(ctx context.Context) error {
	if err := m.Authority.Bootstrap(ctx); err != nil {
		return fmt.Errorf("the built-in authority: %w", err)
	}
	return signing.Canary(rand.Reader)
}

func (m *serverMaker) openStorage(ctx context.Context) (err error) {
	if m.spool, err = blob.NewSpool(m.Config.Path(m.Config.SpoolDir)); err != nil {
		return err
	}
	if m.Config.TrustList.URL != "" {
		m.TrustList.Source = func(ctx context.Context) (io.ReadSeeker, func(), error) { return m.fetchTrustList(ctx, m.spool) }
	}
	if m.storage, err = m.Storage(ctx); err != nil {
		return err
	}
	m.documents = m.Documents(m.storage)
	return m.checkSeen(ctx)
}

func (m *serverMaker) openTracing(ctx context.Context) (err error) {
	if m.tracer, m.server.flush, err = m.Services.openTracing(ctx, m.version); err != nil {
		return err
	}
	m.measure(m.version)
	m.requests = rest.NewMetrics(m.metrics)
	return nil
}

func (m *serverMaker) makeSigner(context.Context) error {
	two := &m.Config.TwoStep
	zone, err := m.Config.Messages.Zone()
	if err != nil {
		return err
	}
	formats, err := withLogo(m.Config, Formats(m.Config))
	if err != nil {
		return err
	}
	m.signer = &signing.Service{
		Zone:    zone,
		Formats: formats, Keys: m.Keys, Policy: m.Policies, Confirmation: m.Policies, Snapshots: store.Snapshots{DB: m.DB}, Spool: m.spool, Results: m.spool.Sealed(), Now: m.DB.Now, Rand: rand.Reader,
		Evidence: m.network, Anchors: m.anchors.all, BatchItems: m.Config.BatchItems,
		Prepared: store.Prepared{DB: m.DB}, Blobs: blob.NewPrepared(m.storage), Container: containerCertificates,
		TwoStep: signing.TwoStep{
			Life:   two.Life,
			Lease:  two.Lease,
			All:    signing.Quota{Objects: two.Objects, Bytes: int64(two.Bytes)},
			Caller: signing.Quota{Objects: two.CallerObjects, Bytes: int64(two.CallerBytes)},
		},
	}
	if m.signer.Powers, err = m.Services.powers(formats); err != nil {
		return err
	}
	if two.Anonymous {
		m.signer.Anonymous = anonymousDocument
	}
	m.signer.Places = places()
	m.signer.Made = countSignatures(m.metrics)
	traced(m.signer, m.tracer)
	return nil
}

func (m *serverMaker) makeOperations(context.Context) (err error) {
	storage := m.storage
	storage.Plain = false
	sealed := blob.NewPrepared(storage)
	if m.server.operations, m.operating, err = m.newOperations(m.signer, m.documents, sealed); err != nil {
		return err
	}
	for form, by := range m.operating.Renderers() {
		m.Operations.Render(form, by)
	}
	m.answers = m.Services.answers(m.signer, sealed)
	return nil
}

// makeCallers makes the parts that identify callers: clients, peers with certificates, and the gates of
// callers with tokens.
func (m *serverMaker) makeCallers(context.Context) (err error) {
	if m.server.clients, err = m.clients(); err != nil {
		return err
	}
	if m.Config.Users.IDOnlyPublic {
		m.log.Warn("a public client needs only the name of a user with identification only to sign in as that user", "setting", "users.id_only_public")
	}
	if m.peers, err = m.Services.peers(); err != nil {
		return err
	}
	m.server.refusals = rest.NewGatherer(m.Audit, m.DB.Now)
	m.gate = &rest.Gate{
		Identify: m.Tokens.Authenticate, IdentifyConfirmed: m.identifyConfirmed,
		Audit:  m.Audit,
		Gather: m.server.refusals,
		Once:   once(m.answers),
		Limits: rest.Limits{Ordinary: int64(m.Config.Limits.OtherRequest), Large: int64(m.Config.Limits.SigningRequest), Documents: 2 * m.Config.BatchItems},
		Log:    m.log,
	}
	m.users = m.ums()
	m.userRoutes = m.umsRoutes(m.users)
	m.usersGate = m.umsGate(m.gate, m.peers, m.users)
	return nil
}

func (m *serverMaker) listTasks(context.Context) (err error) {
	if m.server.exporter, err = m.Services.exporter(); err != nil {
		return err
	}
	if m.server.directories, err = m.Services.Directories(); err != nil {
		return err
	}
	m.server.tasks = []task{
		{"sweeping codes of contacts", m.Contacts.Sweep},
		{"sweeping messages", m.Messages.Sweep},
		{"sweeping mobile devices", m.Devices.Sweep},
		{"sweeping expired tokens", m.Tokens.Sweep},
		{"sweeping sign-ins", m.Identity.Sweep},
		{"sweeping one-time-password tokens", m.Oath.Sweep},
		{"sweeping confirmations", m.Confirm.Sweep},
		{"sweeping requests that wait", m.Approvals.Sweep},
		{"renewing token signing keys", m.maintainTokenKeys},
		{"sweeping prepared documents", m.signer.Sweep},
		{"sweeping operations", m.server.operations.Sweep},
		{"sweeping kept answers", m.answers.Sweep},
		{"sweeping stored documents", m.documents.Sweep},
		{"sweeping reports of verifications", m.reports.Sweep},
		{"renewing what the authority has published", m.Authority.Maintain},
		{"comparing the clock with the database's", m.checkClock},
		{"keeping what was seen of the database", m.noteSeen()},
		{"making the next partitions of the audit log", store.Audit{DB: m.DB}.MakePartitions},
	}
	if m.Passkeys != nil {
		m.server.tasks = append(m.server.tasks, task{"sweeping registrations of passkeys", m.Passkeys.Sweep})
	}
	return nil
}

// mountPages adds the pages, which call the other interfaces through m.whole.
func (m *serverMaker) mountPages(context.Context) error {
	m.server.audited = auditedOf(m.surfaces)
	if !m.Config.Pages.Enabled {
		m.whole = rest.Front(m.mux, m.log, m.requests, m.tracer)
		return nil
	}
	m.whole = rest.Front(m.mux, m.log, m.requests, m.tracer, &m.missing)
	office := m.operatorServices(m.users, m.server.operations, m.version, m.storage.Storage.Ready)
	office.Retentions = m.retention
	office.Send = rest.Inner(m.whole)
	described := reference.Deps{Description: m.description, Trials: reference.Trials{Send: office.Send, Devices: ofDevices(m.surfaces)}}
	api := m.newPages(m.trial, m.signer, m.server.operations, m.operating.Encryption, m.documents, m.retention, m.svs, m.cards(), office, described)
	routes := mountPages(m.mux, &m.missing, api, pagesGate(m.usersGate, m.userRoutes))
	m.server.audited = append(m.server.audited, auditedNames(routes)...)
	return nil
}

// makeReadiness adds /healthz, /readyz and /metrics, and answers with nothing else while the service is
// closed.
func (m *serverMaker) makeReadiness(ctx context.Context) error {
	closed, err := m.newClosed(ctx)
	if err != nil {
		return err
	}
	ready := rest.NewReadiness(m.noted,
		rest.Need{Name: "database", Check: m.DB.Ping},
		rest.Need{Name: "documents", Check: m.storage.Storage.Ready},
		rest.Need{Name: "disk", Check: slowly(m.checkDisks, diskLife, time.Now)},
		rest.Need{Name: "keys", Check: m.holders.Ready},
		rest.Need{Name: "clock", Check: m.checkClock},
		rest.Need{Name: "release", Check: closed.check})
	m.metrics.MustRegister(&partsCollector{m.watch, ready, Disks(m.Config)})
	metrics := rest.MetricsPage(m.metrics)
	if m.Config.MetricsListen != "" {
		inside := http.NewServeMux()
		rest.Health(inside, ready, metrics)
		m.server.inside = rest.Front(inside, m.log, m.requests, nil)
		metrics = nil
	}
	rest.Health(m.mux, ready, metrics)
	var served rest.Switch
	closed.opened = func() { served.Set(m.whole) }
	if closed.is.Load() {
		served.Set(rest.Front(rest.Closed(ready, metrics), m.log, m.requests, m.tracer))
	} else {
		closed.opened()
	}
	// With serve --dev all pages are for people at this machine only. Otherwise the captured
	// messages are, since they are shown without a sign-in.
	covers := func(path string) bool {
		return m.Config.IsDev() || m.Captured != nil && strings.HasPrefix(path, webconsole.MessagesPath)
	}
	m.server.handler = rest.Hosted(ready.Drained(&served), m.Config.Host(), covers, m.log)
	m.server.readiness, m.server.closed = ready, closed
	return nil
}

// Close writes the refused sign-ins that were gathered for the audit log. Call it before Base.Close.
func (s *Server) Close() {
	if err := s.refusals.Flush(context.Background()); err != nil {
		s.services.log.Error("writing refused sign-ins to the audit log", "error", err)
	}
	if err := s.flush(); err != nil {
		s.services.log.Warn("sending traces", "error", err)
	}
}

// AuditedOperations returns the names of the operations whose calls may be in the audit log. A name
// that several routes have is there several times. Commands and work in the background have other
// operations in the log.
func (s *Server) AuditedOperations() []string { return s.audited }

// containerCertificates returns the X.509 certificates of a PKCS #7 container. It has no budget: the
// message is a value of a request, and these have at most 1 MiB together (internal/web/rest).
func containerCertificates(message []byte) ([]*x509gost.Certificate, error) {
	m, err := cms.Parse(bytes.NewReader(message), int64(len(message)))
	if err != nil {
		return nil, err
	}
	var list []*x509gost.Certificate
	for _, raw := range m.Certificates {
		if raw[0] != 0x30 { // an attribute certificate or another obsolete kind
			continue
		}
		c, err := x509gost.ParseCertificate(raw)
		if err != nil {
			return nil, err
		}
		list = append(list, c)
	}
	return list, nil
}
