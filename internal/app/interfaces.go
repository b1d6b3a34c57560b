// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"net/http"
	"slices"
	"time"

	"tamga/internal/adapter/store"
	"tamga/internal/domain/approval"
	"tamga/internal/domain/keys"
	webconsole "tamga/internal/web/console"
	"tamga/internal/web/deviceapi"
	"tamga/internal/web/docapi"
	"tamga/internal/web/pkiapi"
	"tamga/internal/web/rest"
	"tamga/internal/web/rest/limit"
	"tamga/internal/web/rest/look"
	"tamga/internal/web/rest/openapi"
	"tamga/internal/web/signapi"
	"tamga/internal/web/svsapi"
	"tamga/internal/web/tokenapi"
	"tamga/internal/web/umsapi"
)

// interfaces returns all web interfaces but the pages. A new one is a package of internal/web and a row
// here. An interface without routes is not served.
func (m *serverMaker) interfaces() []surface {
	const family = "Served under /rest/api as well."
	c, sign := m.Config, m.signAPI()
	return []surface{
		{api: true, gate: m.signingGate(), Surface: openapi.Surface{Title: "Signing", Description: family, Prefix: c.SignServer, Routes: sign.Routes(), Docs: signapi.Docs}},
		{api: true, gate: m.signingGate(), Surface: openapi.Surface{Title: "Cards", Description: family, Prefix: c.SignServer, Routes: sign.CardRoutes(), Docs: signapi.CardDocs}},
		{api: true, gate: documentsGate(m.gate), Surface: openapi.Surface{Title: "Documents", Description: family, Prefix: c.DocumentStore, Routes: docapi.New(m.documents, m.retention, int64(c.Documents.Upload), m.DB.Now).Routes(), Docs: docapi.Docs}},
		{gate: m.gate, Surface: openapi.Surface{Title: "Operations", Prefix: c.IDP, Routes: slices.Concat(m.operating.OperationRoutes(), signapi.ProofRoutes(m.Proofs())), Docs: signapi.Docs}},
		{gate: m.gate, Surface: openapi.Surface{Title: "Tokens", Prefix: c.IDP, Routes: m.tokenAPI(m.server.clients, m.peers).Routes(), Docs: tokenapi.Docs}},
		{gate: m.usersGate, Surface: openapi.Surface{Title: "User management", Prefix: c.IDP, Routes: m.userRoutes, Docs: umsapi.Docs}},
		{gate: m.gate, Surface: openapi.Surface{Title: "Account", Prefix: c.IDP, Routes: umsapi.ChangeRoutes(&approval.Delays{Requests: m.Approvals, Operations: m.Operations}), Docs: umsapi.Docs}},
		{devices: true, gate: m.gate, Surface: openapi.Surface{Title: "Mobile devices", Prefix: c.Devices.Path, Routes: m.deviceAPI(m.server.operations).Routes(), Docs: deviceapi.Docs}},
		{gate: m.gate, Surface: openapi.Surface{Title: "Authority", Routes: m.pkiRoutes(), Docs: pkiapi.Docs}},
		{api: true, gate: m.gate, Surface: openapi.Surface{Title: "Verification", Description: family, Prefix: c.SVS, Routes: m.verificationRoutes(), Docs: svsapi.Docs}},
		{gate: m.gate, Surface: openapi.Surface{Title: "Console", Routes: m.consoleRoutes(), Docs: webconsole.Docs}},
	}
}

// mountInterfaces puts the interfaces on one mux, and their OpenAPI description beside them.
func (m *serverMaker) mountInterfaces(context.Context) (err error) {
	if m.Config.Verification.Enabled {
		if m.svs, err = m.verification(m.signer); err != nil {
			return err
		}
	}
	m.mux = http.NewServeMux()
	var described []openapi.Surface
	for _, s := range m.interfaces() {
		if len(s.Routes) == 0 {
			continue
		}
		m.surfaces = append(m.surfaces, s)
		if s.api {
			rest.MountAPI(m.mux, s.Prefix, s.gate, s.Routes)
			s.Prefix += "/api"
		} else {
			rest.Mount(m.mux, s.Prefix, s.gate, s.Routes)
		}
		described = append(described, s.Surface)
	}
	if m.description, err = openapi.Document("Tamga", m.version, m.Config.BaseURL(), described); err != nil {
		return err
	}
	rest.Mount(m.mux, "", m.gate, []rest.Route{openapi.Route(m.description)})
	rest.Mount(m.mux, m.Config.IDP, m.gate, look.Routes()) // of the sign-in pages: the others may have another host, or be switched off
	return nil
}

// signingGate identifies callers together with what their signatures depend on.
func (m *serverMaker) signingGate() *rest.Gate {
	gate := *m.gate
	gate.IdentifyWith = m.identifySigner(m.Tokens.AuthenticateBy)
	gate.IdentifyConfirmed = m.identifySigner(m.Tokens.AuthenticateConfirmedBy)
	return &gate
}

func (m *serverMaker) signAPI() *signapi.API {
	deps := signapi.Deps{
		Signer: m.signer, Certificates: m.Keys, Operations: &m.operating,
		Management: &signapi.Management{
			Keys: m.Keys, Parameters: keys.Parameters{Keys: m.Keys, Store: store.Keys{DB: m.DB}}, Policy: m.Policies,
			Templates: templatesOf(m.Config), Now: m.DB.Now, Life: m.Config.Operations.Life, Language: m.Config.Messages.Language,
		},
	}
	if c := m.cards(); c != nil {
		deps.Cards = c
	}
	if two := &m.Config.TwoStep; two.Anonymous {
		calls := limit.New(two.CallsPerSecond, two.CallsAtOnce, 10_000, time.Now)
		deps.Anonymous = &signapi.Anonymous{Admit: calls.Admit, Limit: int64(two.Request)}
	}
	return signapi.New(deps)
}

func (m *serverMaker) pkiRoutes() []rest.Route {
	issued := &m.Config.Certificates
	stamps := limit.New(issued.StampsPerSecond, issued.StampsAtOnce, 10_000, time.Now)
	return pkiapi.New(m.Authority, stamps.Admit).Routes()
}

// verificationRoutes returns the routes of the verification service, none if the installation has none.
func (m *serverMaker) verificationRoutes() []rest.Route {
	if m.svs == nil {
		return nil
	}
	return m.svs.api.Routes()
}

// consoleRoutes returns the routes of the page of captured messages, none if messages are sent.
func (m *serverMaker) consoleRoutes() []rest.Route {
	if m.Captured == nil {
		return nil
	}
	m.log.Warn("messages are not sent: every client can read them at "+webconsole.MessagesPath, "setting", "messages.capture")
	return webconsole.New(m.capturedMessages).Routes()
}

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
