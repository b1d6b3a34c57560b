// SPDX-License-Identifier: Apache-2.0

package app

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"tamga/internal/adapter/blob"
	"tamga/internal/adapter/store"
	"tamga/internal/domain/approval"
	"tamga/internal/domain/keys"
	"tamga/internal/domain/signin"
	"tamga/internal/domain/signing"
	webconsole "tamga/internal/web/console"
	"tamga/internal/web/deviceapi"
	"tamga/internal/web/docapi"
	"tamga/internal/web/pages"
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
)

// Server answers requests and runs the background tasks.
type Server struct {
	services   *Services
	handler    http.Handler
	readiness  *rest.Readiness
	refusals   *rest.Gatherer
	operations *signing.Operations
	tasks      []task // run every minute
	closed     *closed
	clients    *signin.Clients
	flush      func() error // sends the traces that wait
	audited    []string     // see AuditedOperations
}

// NewServer puts the web interfaces on one server. services must have been opened ForServer. It
// makes the built-in authority if the database has none. trial may be nil.
func NewServer(ctx context.Context, services *Services, version string, trial *pages.Trial) (*Server, error) {
	services.version = version
	if err := services.Authority.Bootstrap(ctx); err != nil {
		return nil, fmt.Errorf("the built-in authority: %w", err)
	}
	if err := signing.Canary(rand.Reader); err != nil {
		return nil, err
	}
	clients, err := services.clients()
	if err != nil {
		return nil, err
	}
	spool, err := blob.NewSpool(services.Config.Path(services.Config.SpoolDir))
	if err != nil {
		return nil, err
	}
	place, err := services.Place(ctx)
	if err != nil {
		return nil, err
	}
	if services.Config.Users.IDOnlyPublic {
		services.log.Warn("a public client needs only the name of a user with identification only to sign in as that user", "setting", "users.id_only_public")
	}
	two := &services.Config.TwoStep
	signer := &signing.Service{
		Formats: Formats(services.Config), Keys: services.Keys, Policy: services.Policies, Confirmation: services.Policies, Snapshots: store.Snapshots{DB: services.DB}, Spool: spool, Now: services.DB.Now, Rand: rand.Reader,
		Evidence: services.network, BatchItems: services.Config.BatchItems,
		Prepared: store.Prepared{DB: services.DB}, Blobs: blob.NewPrepared(place), Container: containerCertificates,
		TwoStep: signing.TwoStep{
			Life:   two.Life,
			Lease:  two.Lease,
			All:    signing.Quota{Objects: two.Objects, Bytes: int64(two.Bytes)},
			Caller: signing.Quota{Objects: two.CallerObjects, Bytes: int64(two.CallerBytes)},
		},
	}
	if two.Anonymous {
		signer.Anonymous = anonymousDocument
	}
	signer.Places = places()
	signer.Made = countSignatures(services.metrics)
	tracer, flush, err := services.openTracing(ctx, version)
	if err != nil {
		return nil, err
	}
	traced(signer, tracer)
	services.measure(version)
	documents := services.Documents(place)
	operations, operating, err := services.newOperations(signer, documents)
	if err != nil {
		return nil, err
	}
	serves := signapi.Deps{
		Signer: signer, Certificates: services.Keys, Operations: &operating,
		Management: &signapi.Management{
			Keys: services.Keys, Parameters: keys.Parameters{Keys: services.Keys, Store: store.Keys{DB: services.DB}}, Policy: services.Policies,
			Templates: templatesOf(services.Config), Now: services.DB.Now, Life: services.Config.Operations.Life, Language: services.Config.Messages.Language,
		},
	}
	if two.Anonymous {
		calls := limit.New(two.CallsPerSecond, two.CallsAtOnce, 10_000, time.Now)
		serves.Anonymous = &signapi.Anonymous{Admit: calls.Admit, Limit: int64(two.Request)}
	}
	for form, by := range operating.Renderers() {
		services.Base.Operations.Render(form, by)
	}
	signatures := signapi.New(serves)
	issued := &services.Config.Certificates
	stamps := limit.New(issued.StampsPerSecond, issued.StampsAtOnce, 10_000, time.Now)
	answers := services.answers(signer)
	peers, err := services.peers()
	if err != nil {
		return nil, err
	}
	tasks := []task{
		{"sweeping codes of contacts", services.Contacts.Sweep},
		{"sweeping messages", services.Messages.Sweep},
		{"sweeping mobile devices", services.Devices.Sweep},
		{"sweeping expired tokens", services.Tokens.Sweep},
		{"sweeping sign-ins", services.Identity.Sweep},
		{"sweeping one-time-password tokens", services.Oath.Sweep},
		{"sweeping confirmations", services.Confirm.Sweep},
		{"sweeping requests that wait", services.Approvals.Sweep},
		{"renewing token signing keys", services.maintainTokenKeys},
		{"sweeping prepared documents", signer.Sweep},
		{"sweeping operations", operations.Sweep},
		{"sweeping kept answers", answers.Sweep},
		{"sweeping stored documents", documents.Sweep},
		{"renewing what the authority has published", services.Authority.Maintain},
		{"destroying deleted keys", services.Keys.DestroyDeleted},
		{"comparing the clock with the database's", services.checkClock},
		{"making the next partitions of the audit log", store.Audit{DB: services.DB}.MakePartitions},
	}
	if services.Passkeys != nil {
		tasks = append(tasks, task{"sweeping registrations of passkeys", services.Passkeys.Sweep})
	}

	refusals := rest.NewGatherer(services.Audit, services.DB.Now)
	gate := &rest.Gate{
		Identify: services.Tokens.Authenticate, IdentifyConfirmed: services.identifyConfirmed,
		Audit:  services.Audit,
		Gather: refusals,
		Once:   once(answers),
		Limits: rest.Limits{Ordinary: int64(services.Config.Limits.OtherRequest), Large: int64(services.Config.Limits.SigningRequest), Documents: 2 * services.Config.BatchItems},
		Log:    services.log,
	}
	ums := services.ums()
	umsRoutes := services.umsRoutes(ums)
	umsGate := services.umsGate(gate, peers, ums)
	const family = "Served under /rest/api as well."
	signingGate := *gate
	signingGate.IdentifyWith = services.identifySigner(services.Tokens.AuthenticateBy)
	signingGate.IdentifyConfirmed = services.identifySigner(services.Tokens.AuthenticateConfirmedBy)
	surfaces := []surface{
		{api: true, gate: &signingGate, Surface: openapi.Surface{Title: "Signing", Description: family, Prefix: services.Config.SignServer, Routes: signatures.Routes(), Docs: signapi.Docs}},
		{api: true, gate: documentsGate(gate), Surface: openapi.Surface{Title: "Documents", Description: family, Prefix: services.Config.DocumentStore, Routes: docapi.New(documents, int64(services.Config.Documents.Upload)).Routes(), Docs: docapi.Docs}},
		{gate: gate, Surface: openapi.Surface{Title: "Operations", Prefix: services.Config.IDP, Routes: slices.Concat(operating.OperationRoutes(), signapi.ProofRoutes(services.Proofs())), Docs: signapi.Docs}},
		{gate: gate, Surface: openapi.Surface{Title: "Tokens", Prefix: services.Config.IDP, Routes: services.tokenAPI(clients, peers).Routes(), Docs: tokenapi.Docs}},
		{gate: umsGate, Surface: openapi.Surface{Title: "User management", Prefix: services.Config.IDP, Routes: umsRoutes, Docs: umsapi.Docs}},
		{gate: gate, Surface: openapi.Surface{Title: "Account", Prefix: services.Config.IDP, Routes: umsapi.ChangeRoutes(&approval.Delays{Requests: services.Approvals, Operations: services.Base.Operations}), Docs: umsapi.Docs}},
		{devices: true, gate: gate, Surface: openapi.Surface{Title: "Mobile devices", Prefix: services.Config.Devices.Path, Routes: services.deviceAPI(operations).Routes(), Docs: deviceapi.Docs}},
		{gate: gate, Surface: openapi.Surface{Title: "Authority", Routes: pkiapi.New(services.Authority, stamps.Admit).Routes(), Docs: pkiapi.Docs}},
	}
	var svs *verifier
	if services.Config.Verification.Enabled {
		if svs, err = services.verification(signer); err != nil {
			return nil, err
		}
		surfaces = append(surfaces, surface{api: true, gate: gate, Surface: openapi.Surface{Title: "Verification", Description: family, Prefix: services.Config.SVS, Routes: svs.api.Routes(), Docs: svsapi.Docs}})
	}
	if services.Captured != nil {
		services.log.Warn("messages are not sent: every client can read them at "+webconsole.MessagesPath, "setting", "messages.capture")
		surfaces = append(surfaces, surface{gate: gate, Surface: openapi.Surface{Title: "Console", Routes: webconsole.New(services.capturedMessages).Routes(), Docs: webconsole.Docs}})
	}
	mux, document, err := services.mount(version, surfaces, gate)
	if err != nil {
		return nil, err
	}
	requests := rest.NewMetrics(services.metrics)
	var missing rest.Switch
	var unrouted []http.Handler
	if services.Config.Pages.Enabled {
		unrouted = append(unrouted, &missing)
	}
	whole := rest.Front(mux, services.log, requests, tracer, unrouted...)
	audited := auditedOf(surfaces)
	if services.Config.Pages.Enabled {
		office := services.operatorServices(ums, operations, version, place.Place.Ready)
		office.Description = document
		own := mountPages(mux, &missing, services.newPages(trial, operations, documents, svs, office, pages.Trials{Send: rest.Inner(whole), Devices: ofDevices(surfaces)}), pagesGate(umsGate, umsRoutes))
		audited = append(audited, auditedNames(own)...)
	}
	closed, err := services.newClosed(ctx)
	if err != nil {
		return nil, err
	}
	readiness := rest.NewReadiness(services.log, rest.Need{Name: "database", Check: services.DB.Ping}, rest.Need{Name: "documents", Check: place.Place.Ready},
		rest.Need{Name: "keys", Check: services.holders.Ready}, rest.Need{Name: "clock", Check: services.checkClock}, rest.Need{Name: "release", Check: closed.check})
	metrics := rest.MetricsPage(services.metrics)
	rest.Health(mux, readiness, metrics)
	var served rest.Switch
	closed.opened = func() { served.Set(whole) }
	if closed.is.Load() {
		served.Set(rest.Front(rest.Closed(readiness, metrics), services.log, requests, tracer))
	} else {
		closed.opened()
	}
	front := readiness.Drained(&served)
	// With serve --dev all pages are for people at this machine only. Otherwise the captured
	// messages are, since they are shown without a sign-in.
	covers := func(path string) bool {
		return services.Config.IsDev() || services.Captured != nil && strings.HasPrefix(path, webconsole.MessagesPath)
	}
	return &Server{
		services: services, handler: rest.Hosted(front, services.Config.Host(), covers, services.log), readiness: readiness,
		refusals: refusals, operations: operations, tasks: tasks, closed: closed, clients: clients, flush: flush, audited: audited,
	}, nil
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

// auditedOf returns the names of the audited routes of surfaces.
func auditedOf(surfaces []surface) (names []string) {
	for _, s := range surfaces {
		names = append(names, auditedNames(s.Routes)...)
	}
	return names
}

// auditedNames returns the names of the audited routes.
func auditedNames(routes []rest.Route) (names []string) {
	for _, r := range routes {
		if r.Audited() {
			names = append(names, r.Name)
		}
	}
	return names
}

// surface is a web interface with the way it is mounted.
type surface struct {
	openapi.Surface
	api     bool // at both addresses of rest.MountAPI
	devices bool // its callers are devices, which prove themselves in the body
	gate    *rest.Gate
}

// ofDevices returns the titles of the surfaces for devices.
func ofDevices(surfaces []surface) (titles []string) {
	for _, s := range surfaces {
		if s.devices {
			titles = append(titles, s.Title)
		}
	}
	return titles
}

// mount puts the surfaces on one mux, and their OpenAPI description beside them, which it
// returns.
func (services *Services) mount(version string, surfaces []surface, gate *rest.Gate) (*http.ServeMux, []byte, error) {
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
	document, err := openapi.Document("Tamga", version, services.Config.BaseURL(), described)
	if err != nil {
		return nil, nil, err
	}
	rest.Mount(mux, "", gate, []rest.Route{openapi.Route(document)})
	return mux, document, nil
}

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
