package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"tamga/internal/adapter/blob"
	"tamga/internal/adapter/capture"
	"tamga/internal/adapter/evidence"
	"tamga/internal/adapter/store"
	"tamga/internal/config"
	"tamga/internal/domain/audit"
	"tamga/internal/domain/auth"
	"tamga/internal/domain/authority"
	"tamga/internal/domain/contact"
	"tamga/internal/domain/device"
	"tamga/internal/domain/keys"
	"tamga/internal/domain/notify"
	"tamga/internal/domain/oath"
	"tamga/internal/domain/password"
	"tamga/internal/domain/policy"
	"tamga/internal/domain/session"
	"tamga/internal/domain/signing"
	"tamga/internal/domain/user"
	"tamga/internal/domain/vault"
	webconsole "tamga/internal/web/console"
	"tamga/internal/web/deviceapi"
	"tamga/internal/web/docapi"
	"tamga/internal/web/pkiapi"
	"tamga/internal/web/rest"
	"tamga/internal/web/rest/limit"
	"tamga/internal/web/rest/openapi"
	"tamga/internal/web/signapi"
	"tamga/internal/web/svsapi"
	"tamga/internal/web/tokenapi"
	"tamga/internal/web/umsapi"
	"tamga/pki/cms"
	"tamga/pki/x509gost"
	"tamga/sig"
	"tamga/sig/cades"
	"tamga/sig/ooxml"
	"tamga/sig/pdf"
	"tamga/sig/raw"
	"tamga/sig/xmldsig"
)

// house is everything a process is made of. Every choice of the program is a
// line in this file.
type house struct {
	config     *config.Config
	log        *slog.Logger
	db         *store.DB
	ring       *vault.Ring
	passwords  *password.Hasher
	users      *user.Service
	contacts   *contact.Book
	messages   *notify.Service
	devices    *device.Service
	webhooks   *notify.Subscriptions
	captured   *capture.Box // nil unless messages are captured
	printer    auth.Printer
	delivered  *prometheus.CounterVec
	sessions   *session.Service
	oath       *oath.Service
	identity   *auth.Service // once auth has opened it
	policies   *policy.Service
	authority  *authority.Service
	keys       *keys.Service
	audit      audit.Log
	refusals   *rest.Gatherer      // once handler has made it
	network    *evidence.Source    // once handler has opened it
	operations *signing.Operations // once handler has opened it
	readiness  *rest.Readiness     // once handler has made it
	senders    []notify.Notifier   // closed with the house
	tasks      []task              // due now and then beside the handler, which adds them
}

// task is work that is due now and then.
type task struct {
	name string
	do   func(context.Context) error
}

// formats are the signature formats of the service and of the commands sign and verify.
// A new one is a line here. The zero Config gives those with the strictest rules.
func formats(config *config.Config) sig.Formats {
	cms := &cades.Format{
		Allowance:              config.LongTerm.RevocationAllowance,
		OldListsForAuthorities: config.LongTerm.OldListsForAuthorities,
	}
	return sig.Formats{
		cms,
		&xmldsig.Format{MaxSize: int64(config.XML.Document), AllowDoctype: config.XML.AllowDoctype},
		&pdf.Format{CMS: cms},
		ooxml.New(),
		raw.New(),
	}
}

// openHouse opens the database, whose work limits bound, and puts the rooms together. It
// writes nothing: a database without tables is found out by the first who needs one.
func openHouse(ctx context.Context, config *config.Config, limits store.Limits, log *slog.Logger) (*house, error) {
	ring, err := openRing(config)
	if err != nil {
		return nil, err
	}
	address, err := databaseURL(config)
	if err != nil {
		return nil, err
	}
	h := &house{config: config, log: log, ring: ring}
	holder, err := config.Holder().Open(vault.Environment{
		Ring: ring, Rand: rand.Reader,
		PIN: vault.SoftOptions{
			MemoryKiB: uint32(config.Argon2.Memory >> 10),
			Passes:    uint32(config.Argon2.Passes),
			Parallel:  config.Argon2.Parallel,
		},
		Path: config.Path,
		Secret: func(file, setting string) (string, error) {
			return h.optionalSecret(file, "keys."+config.Keys.Holder+"."+setting)
		},
	})
	if err != nil {
		return nil, err
	}
	h.passwords, err = password.New(password.Cost{
		MemoryKiB: uint32(config.Argon2.Memory >> 10),
		Passes:    uint32(config.Argon2.Passes),
		Lanes:     1,
	}, int64(config.Argon2.Memory>>10)*int64(config.Argon2.Parallel), attempts(config), rand.Reader)
	if err != nil {
		return nil, err
	}
	if h.db, err = store.Open(ctx, store.Options{URL: address, Connections: config.DatabaseConnections, Limits: limits}); err != nil {
		return nil, err
	}
	h.audit = store.Audit{DB: h.db}
	if err := errors.Join(h.openPolicies(), h.openPeople()); err != nil {
		h.close()
		return nil, err
	}
	h.authority, err = authority.New(authority.Config{BaseURL: config.BaseURL()}, store.Authority{DB: h.db}, holder, rand.Reader, time.Now)
	if err != nil {
		h.close()
		return nil, err
	}
	enrolment, err := h.enrolment()
	if err != nil {
		h.close()
		return nil, err
	}
	stored := store.Keys{DB: h.db}
	h.keys, err = keys.New(keys.Options{
		Store: stored, RequestStore: stored, StatusStore: stored, PINStore: stored,
		Holder: holder, Authority: h.authority,
		Rand: rand.Reader, Now: time.Now, PINAttempts: config.PIN.Attempts, PINMode: keys.PINMode(config.PIN.Mode), PINLength: config.PIN.MinLength, SimplePINs: config.PIN.AllowSimple,
		Exportable: config.Certificates.Exportable, Policy: h.policies, Confirmation: h.policies, Events: h.messages, Profiles: profiles{h},
		Enrolment: enrolment, Evidence: revocations{h}, StandingAge: config.Certificates.StatusAge,
	})
	if err != nil {
		h.close()
		return nil, err
	}
	return h, nil
}

func (h *house) close() {
	if h.refusals != nil {
		if err := h.refusals.Flush(context.Background()); err != nil {
			h.log.Error("writing refused sign-ins to the audit log", "error", err)
		}
	}
	if h.network != nil {
		h.network.Close()
	}
	for _, n := range h.senders {
		if c, ok := n.(io.Closer); ok {
			if err := c.Close(); err != nil {
				h.log.Error("closing a sender of messages", "error", err)
			}
		}
	}
	if err := h.db.Close(); err != nil {
		h.log.Error("closing the database", "error", err)
	}
}

// databaseURL returns the setting database with its path resolved and its password put in.
func databaseURL(c *config.Config) (string, error) {
	if file, ok := strings.CutPrefix(c.Database, "sqlite:"); ok {
		return "sqlite:" + c.Path(file), nil
	}
	if c.DatabasePasswordFile == "" {
		return c.Database, nil
	}
	password, err := ownSecret(c.Path(c.DatabasePasswordFile), "database_password_file")
	if err != nil {
		return "", err
	}
	u, err := url.Parse(c.Database)
	if err != nil {
		return "", errors.New("database: not a URL")
	}
	u.User = url.UserPassword(u.User.Username(), password)
	return u.String(), nil
}

// openRing reads the master keys.
func openRing(config *config.Config) (*vault.Ring, error) {
	keys := map[string][]byte{}
	defer func() { // the ring has what it needs of them
		for _, key := range keys {
			clear(key)
		}
	}()
	for id, file := range config.MasterKeys.Files {
		what := "master key " + id
		text, err := ownSecretBytes(config.Path(file), what)
		if err != nil {
			return nil, err
		}
		key := make([]byte, hex.DecodedLen(len(text)))
		keys[id] = key
		_, err = hex.Decode(key, text)
		clear(text)
		if err != nil || len(key) != 32 {
			return nil, fmt.Errorf("%s: want 64 hexadecimal digits; make one with: openssl rand -hex 32", what)
		}
	}
	return vault.NewRing(config.MasterKeys.Active, keys, rand.Reader)
}

// handler puts all doors on one server.
func (h *house) handler(ctx context.Context) (http.Handler, error) {
	if err := h.usable(ctx); err != nil {
		return nil, err
	}
	if err := h.authority.Bootstrap(ctx); err != nil {
		return nil, fmt.Errorf("the built-in authority: %w", err)
	}
	if err := signing.Canary(rand.Reader); err != nil {
		return nil, err
	}
	identity, err := h.auth(ctx)
	if err != nil {
		return nil, err
	}
	clients, err := h.clients()
	if err != nil {
		return nil, err
	}
	spool, err := blob.NewSpool(h.config.Path(h.config.SpoolDir))
	if err != nil {
		return nil, err
	}
	place, err := h.place(ctx)
	if err != nil {
		return nil, err
	}
	if h.config.Users.IDOnlyPublic {
		h.log.Warn("whoever knows the name of a user with identification only can sign in as them through a public client", "setting", "users.id_only_public")
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	registry.MustRegister(h.delivered)
	if h.network, err = h.openEvidence(h.config.Evidence, countEvidence(registry)); err != nil {
		return nil, err
	}
	two := &h.config.TwoStep
	signer := &signing.Service{
		Formats: formats(h.config), Keys: h.keys, Policy: h.policies, Confirmation: h.policies, Snapshots: store.Snapshots{DB: h.db}, Spool: spool, Now: time.Now, Rand: rand.Reader,
		Evidence: h.network, BatchItems: h.config.BatchItems,
		Prepared: store.Prepared{DB: h.db}, Blobs: blob.NewPrepared(place), Container: containerCertificates,
		TwoStep: signing.TwoStep{
			Life:   two.Life,
			All:    signing.Quota{Objects: two.Objects, Octets: int64(two.Octets)},
			Caller: signing.Quota{Objects: two.CallerObjects, Octets: int64(two.CallerOctets)},
		},
	}
	documents := h.documents(place)
	signatures := signapi.New(signer, h.keys).Managing(signapi.Management{Keys: h.keys, Parameters: keys.Parameters{Keys: h.keys, Store: store.Keys{DB: h.db}}, Policy: h.policies, Realm: config.LocalIssuer, Templates: templatesOf(h.config), Now: time.Now, Life: h.config.Operations.Life})
	operations, operating, err := h.openOperations(signer, documents)
	if err != nil {
		return nil, err
	}
	h.operations = operations
	signatures = signatures.Operating(operating)
	answers := h.answers(signer)
	if two.Anonymous {
		calls := limit.New(two.CallsPerSecond, two.CallsAtOnce, 10_000, time.Now)
		signatures = signatures.Anonymous(signapi.Anonymous{Admit: calls.Admit, Limit: int64(two.Request)})
	}
	peers, err := h.peers()
	if err != nil {
		return nil, err
	}
	h.tasks = []task{
		{"sweeping codes of contacts", h.contacts.Sweep},
		{"sweeping messages", h.messages.Sweep},
		{"sweeping mobile devices", h.devices.Sweep},
		{"sweeping expired tokens", identity.Sweep},
		{"sweeping one-time-password tokens", h.oath.Sweep},
		{"renewing token signing keys", h.maintainTokenKeys},
		{"sweeping prepared documents", signer.Sweep},
		{"sweeping operations", operations.Sweep},
		{"sweeping kept answers", answers.Sweep},
		{"sweeping stored documents", documents.Sweep},
		{"renewing what the authority has published", h.authority.Maintain},
	}

	h.refusals = rest.NewGatherer(h.audit, time.Now)
	gate := &rest.Gate{
		Identify: identity.Authenticate,
		Audit:    h.audit,
		Gather:   h.refusals,
		Once:     once(answers),
		Limits:   rest.Limits{Ordinary: int64(h.config.Limits.OtherRequest), Large: int64(h.config.Limits.SigningRequest), Documents: 2 * h.config.BatchItems},
		Log:      h.log,
	}
	ums := h.ums()
	const family = "Served under /rest/api as well."
	signingGate := *gate
	signingGate.IdentifyWith = h.identifySigner(identity)
	surfaces := []surface{
		{api: true, gate: &signingGate, Surface: openapi.Surface{Title: "Signing", Description: family, Prefix: h.config.SignServer, Routes: signatures.Routes(), Docs: signapi.Docs}},
		{api: true, gate: documentsGate(gate), Surface: openapi.Surface{Title: "Documents", Description: family, Prefix: h.config.DocumentStore, Routes: docapi.New(documents, int64(h.config.Documents.Upload)).Routes(), Docs: docapi.Docs}},
		{gate: gate, Surface: openapi.Surface{Title: "Operations", Prefix: h.config.IDP, Routes: operating.OperationRoutes(), Docs: signapi.Docs}},
		{gate: gate, Surface: openapi.Surface{Title: "Tokens", Prefix: h.config.IDP, Routes: tokenapi.New(identity, clients, peers.Judge, h.idpURL()).Limiting(signInLimits(h.config)).Routes(), Docs: tokenapi.Docs}},
		{gate: h.umsGate(gate, peers, ums), Surface: openapi.Surface{Title: "User management", Prefix: h.config.IDP, Routes: slices.Concat(ums.Routes(), umsapi.DeviceRoutes(h.devices), umsapi.PolicyRoutes(h.policies, h.config.Messages.Language)), Docs: umsapi.Docs}},
		{gate: gate, Surface: openapi.Surface{Title: "Mobile devices", Prefix: h.config.Devices.Path, Routes: h.deviceDoor().Routes(), Docs: deviceapi.Docs}},
		{gate: gate, Surface: openapi.Surface{Title: "Authority", Routes: pkiapi.New(h.authority).Routes(), Docs: pkiapi.Docs}},
	}
	if h.config.Verification.Enabled {
		svs, err := h.verification(signer)
		if err != nil {
			return nil, err
		}
		surfaces = append(surfaces, surface{api: true, gate: gate, Surface: openapi.Surface{Title: "Verification", Description: family, Prefix: h.config.SVS, Routes: svs.Routes(), Docs: svsapi.Docs}})
	}
	if h.captured != nil {
		h.log.Warn("messages are captured and shown to whoever reaches "+webconsole.MessagesPath+", not sent", "setting", "messages.capture")
		surfaces = append(surfaces, surface{gate: gate, Surface: openapi.Surface{Title: "Console", Routes: webconsole.New(h.capturedMessages).Routes(), Docs: webconsole.Docs}})
	}
	mux, err := h.mount(surfaces, gate)
	if err != nil {
		return nil, err
	}
	h.readiness = rest.NewReadiness(h.log, rest.Need{Name: "database", Check: h.db.Ping}, rest.Need{Name: "documents", Check: place.Place.Ready})
	rest.Health(mux, h.readiness, rest.MetricsPage(registry))
	front := h.readiness.Drained(rest.Front(mux, h.log, rest.NewMetrics(registry)))
	// Of serve --dev everything is for people at this machine, otherwise the messages
	// that are shown without a sign-in.
	covers := func(path string) bool {
		return h.config.IsDev() || h.captured != nil && strings.HasPrefix(path, webconsole.MessagesPath)
	}
	return rest.Hosted(front, h.config.Host(), covers, h.log), nil
}

// identifySigner identifies the callers of the signing surface. The statement that finds the token
// reads the snapshot that signatures of the caller depend on, too.
func (h *house) identifySigner(identity *auth.Service) func(context.Context, string) (context.Context, audit.Principal, error) {
	snapshots := store.Snapshots{DB: h.db}
	return func(ctx context.Context, token string) (context.Context, audit.Principal, error) {
		var snap *signing.Snapshot
		who, err := identity.AuthenticateBy(ctx, token, func(ctx context.Context, id string, now time.Time) (b auth.Bearer, err error) {
			b, snap, err = snapshots.BearerByToken(ctx, id, now)
			return b, err
		})
		return signapi.WithSnapshot(ctx, snap), who, err
	}
}

// surface is a table of routes with what it is mounted by.
type surface struct {
	openapi.Surface
	api  bool // at the two addresses of rest.MountAPI
	gate *rest.Gate
}

// mount puts the surfaces on one mux, with their description.
func (h *house) mount(surfaces []surface, gate *rest.Gate) (*http.ServeMux, error) {
	mux := http.NewServeMux()
	var described []openapi.Surface
	for _, s := range surfaces {
		if s.api {
			rest.MountAPI(mux, s.Prefix, s.gate, s.Routes)
			s.Prefix += "/api"
		} else {
			rest.Mount(mux, s.Prefix, s.gate, s.Routes)
		}
		described = append(described, s.Surface)
	}
	document, err := openapi.Document("Tamga", version, h.config.BaseURL(), described)
	if err != nil {
		return nil, err
	}
	rest.Mount(mux, "", gate, []rest.Route{openapi.Route(document)})
	return mux, nil
}

// countEvidence counts what is asked of other people's services.
func countEvidence(registry prometheus.Registerer) func(evidence.Event) {
	requests := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "tamga_evidence_requests_total",
		Help: "Time stamps, OCSP answers, CRLs and issuers asked for, by kind and outcome.",
	}, []string{"kind", "outcome"})
	seconds := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "tamga_evidence_request_seconds",
		Help: "How long the services of others took, by kind.",
	}, []string{"kind"})
	registry.MustRegister(requests, seconds)
	return func(e evidence.Event) {
		requests.WithLabelValues(e.Kind, e.Outcome).Inc()
		if e.Host != "" {
			seconds.WithLabelValues(e.Kind).Observe(e.Duration.Seconds())
		}
	}
}

// containerCertificates reads the certificates of a PKCS #7 container.
func containerCertificates(message []byte) ([]*x509gost.Certificate, error) {
	m, err := cms.Parse(bytes.NewReader(message), int64(len(message)))
	if err != nil {
		return nil, err
	}
	var list []*x509gost.Certificate
	for _, raw := range m.Certificates {
		if raw[0] != 0x30 { // an attribute certificate or another kind of long ago
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

// usable refuses a database of another schema; one that a later release
// migrated is fine, since migrations only add.
func (h *house) usable(ctx context.Context) error {
	err := h.db.Migrated(ctx)
	var schema *store.SchemaError
	if errors.As(err, &schema) && schema.Newer() {
		h.log.Warn("the database was migrated by a later release", "error", err)
		return nil
	}
	return err
}

// work delivers messages and does what is due now and then, until ctx ends.
func (h *house) work(ctx context.Context) {
	var delivering sync.WaitGroup
	defer delivering.Wait()
	delivering.Go(func() { h.messages.Run(ctx) })
	delivering.Go(func() {
		h.refusals.Run(ctx, func(err error) { h.log.Error("writing refused sign-ins to the audit log", "error", err) })
	})
	if h.operations != nil {
		delivering.Go(func() { h.operations.Run(ctx) })
	}
	// Asking other authorities may take long; nothing else waits for it.
	delivering.Go(func() { h.repeat(ctx, task{"asking other authorities about their certificates", h.keys.Refresh}) })
	h.repeat(ctx, h.tasks...)
}

// repeat does tasks every minute, one after the other.
func (h *house) repeat(ctx context.Context, tasks ...task) {
	tick := time.NewTicker(time.Minute)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			for _, t := range tasks {
				if err := t.do(ctx); err != nil && ctx.Err() == nil {
					h.log.Error(t.name, "error", err)
				}
			}
		}
	}
}
