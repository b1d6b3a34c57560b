// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"crypto/rand"
	"net/http"
	"slices"
	"time"

	"tamga/internal/adapter/print"
	"tamga/internal/adapter/qr"
	"tamga/internal/adapter/store"
	"tamga/internal/config"
	"tamga/internal/domain/audit"
	stored "tamga/internal/domain/document"
	"tamga/internal/domain/signing"
	"tamga/internal/web/pages"
	"tamga/internal/web/rest"
	"tamga/internal/web/svsapi"
)

// verifier is the verification service with its limits for anonymous callers.
type verifier struct {
	api          *svsapi.API
	verification *signing.Verification
	take         svsapi.Take
	admit        func(remote string) error
	limit        int64
}

// NewIntake implements pages.Verifier.
func (v *verifier) NewIntake(ctx context.Context, who audit.Principal) (*signing.Intake, error) {
	return v.take(ctx, who)
}

// TypeOf implements pages.Verifier.
func (v *verifier) TypeOf(content *signing.Intake) (string, error) {
	return v.verification.TypeOf(content)
}

// Verify implements pages.Verifier: it waits until it is the turn of the caller.
func (v *verifier) Verify(ctx context.Context, o *signing.VerifyOrder) ([]signing.Verdict, error) {
	return v.api.Verify(ctx, o)
}

// pageSettings returns the rules of the pages. trial may be nil.
func (b *Base) pageSettings(trial *pages.Trial) pages.Settings {
	c := b.Config
	clients := map[string]string{}
	for _, client := range c.Clients {
		if client.Title != "" {
			clients[client.ID] = client.Title
		}
	}
	return pages.Settings{
		ClientID: config.PagesClient, Clients: clients, Name: c.Pages.Name, Language: c.Messages.Language, Address: c.BaseURL(), IDP: b.idpURL(), Resource: c.Resource,
		Session: c.Pages.Session, Idle: c.Pages.Idle, Upload: int64(c.Pages.Upload), Trial: trial, Dev: c.IsDev(),
	}
}

// newPages returns the pages for people. v may be nil.
func (r *Rooms) newPages(trial *pages.Trial, operations *signing.Operations, documents *stored.Service, v *verifier, o pages.OperatorRooms, trials pages.Trials) *pages.API {
	s := r.pageSettings(trial)
	d := pages.Deps{
		Identity: r.Identity, Sessions: r.Tokens, Operations: operations, Certificates: r.Keys, Documents: documents,
		Forms: Formats(r.Config).Forms(), TSPServices: r.Policies.TSPServices, Sealer: r.ring, Now: r.DB.Now, Random: rand.Text,
	}
	d.Operators, d.Trials = o, trials
	d.ConfirmDeps = pages.ConfirmDeps{
		Confirmations: r.Confirm, Steps: r.Identity, ToConfirm: toConfirm{operations},
		CarryOutSigning: operations.Confirmed, Paint: qr.GIF,
	}
	d.CertificateDeps = pages.CertificateDeps{Keys: r.Keys, Acts: r.Operations, Enrolment: r.Keys.Enrolment, Profiles: r.Keys.Profiles, PINs: r.Keys.PINRules()}
	d.AccountDeps = pages.AccountDeps{
		Own: r.Identity, People: r.Users, Grants: r.Tokens.Grants, Wishes: r.own.policies, Waiting: r.Held,
		History: func(ctx context.Context, userID string, before int64, limit int) ([]audit.Entry, int64, error) {
			return store.Audit{DB: r.DB}.Read(ctx, store.AuditFilter{UserID: userID, OutcomesOnly: true, Before: before}, limit)
		},
	}
	d.DeviceDeps = pages.DeviceDeps{Devices: r.own.devices, Contacts: r.own.contacts, Apps: r.own.oath, TextRecord: r.Identity.TextRecord}
	if r.own.passkeys != nil {
		d.Passkeys = r.own.passkeys
	}
	if v != nil {
		d.Verifier, d.Admit, s.Verify = v, v.admit, v.limit
		d.PDF = reportPDF
	}
	return pages.New(s, d)
}

// toConfirm gives package pages the documents that wait for a confirmation.
type toConfirm struct{ operations *signing.Operations }

// ConfirmedDocument implements pages.ToConfirm.
func (d toConfirm) ConfirmedDocument(ctx context.Context, who audit.Principal, id string, index int, original bool) (pages.ToSee, error) {
	document, err := d.operations.Shown(ctx, who, id, index, original)
	if err != nil {
		return nil, err
	}
	return document, nil
}

// reportPDF prints a report of a verification.
func reportPDF(language, title string, at time.Time, lines []pages.Line) ([]byte, error) {
	var printed []print.Line
	for _, l := range lines {
		printed = append(printed, print.Line(l))
	}
	return print.PDF(language, title, at, printed)
}

// mountPages puts the pages on mux, behind their door, and returns their routes. missing becomes
// the page for addresses without a route.
func mountPages(mux *http.ServeMux, missing *rest.Switch, p *pages.API, gate *rest.Gate) []rest.Route {
	own := *gate
	own.Once, own.IdentifyWith, own.IdentifyConfirmed, own.IdentifyPeer = nil, nil, nil, nil
	own.Present, own.Permit = p.Present, p.Permit
	behind := http.NewServeMux()
	routes := p.Routes()
	rest.Mount(behind, "", &own, append(slices.Clone(routes), p.Missing()))
	door := p.Door(behind)
	missing.Set(door)
	for _, r := range routes {
		mux.Handle(r.Method+" "+r.Path, door)
	}
	return routes
}
