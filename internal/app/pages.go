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
	domain "tamga/internal/domain/encryption"
	"tamga/internal/domain/operation"
	"tamga/internal/domain/retention"
	"tamga/internal/domain/signing"
	"tamga/internal/web/pages"
	"tamga/internal/web/pages/account"
	"tamga/internal/web/pages/confirm"
	"tamga/internal/web/pages/encryption"
	"tamga/internal/web/pages/operator"
	"tamga/internal/web/pages/reference"
	"tamga/internal/web/pages/register"
	"tamga/internal/web/pages/sign"
	"tamga/internal/web/pages/view"
	"tamga/internal/web/rest"
	"tamga/internal/web/signapi"
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

// NewIntake implements sign.Verifier.
func (v *verifier) NewIntake(ctx context.Context, who audit.Principal) (*signing.Intake, error) {
	return v.take(ctx, who)
}

// TypeOf implements sign.Verifier.
func (v *verifier) TypeOf(ctx context.Context, content *signing.Intake) (string, error) {
	return v.verification.TypeOf(ctx, content)
}

// Beside implements sign.Verifier.
func (v *verifier) Beside(kind string) bool { return v.verification.Beside(kind) }

// Contained implements sign.Verifier.
func (v *verifier) Contained(ctx context.Context, kind string, content *signing.Intake) (list []signing.Contained, err error) {
	return v.verification.Contained(ctx, kind, content)
}

// Verify implements sign.Verifier: it waits until it is the turn of the caller.
func (v *verifier) Verify(ctx context.Context, o *signing.VerifyOrder) ([]signing.SignatureReport, error) {
	return v.api.Verify(ctx, o)
}

// IsPower does not wait for a turn: it reads little.
func (v *verifier) IsPower(ctx context.Context, content *signing.Intake) (bool, error) {
	return v.verification.IsPower(ctx, content)
}

// Match implements sign.Verifier.
func (v *verifier) Match(ctx context.Context, signatures [][]signing.SignatureReport, documents []*signing.Intake) (at []int, err error) {
	err = v.api.InTurn(ctx, func(ctx context.Context) error {
		at, err = v.verification.Match(ctx, signatures, documents)
		return err
	})
	return at, err
}

// Digest implements sign.Verifier.
func (v *verifier) Digest(ctx context.Context, document *signing.Intake) (sum []byte, err error) {
	err = v.api.InTurn(ctx, func(ctx context.Context) error {
		sum, err = v.verification.Digest(ctx, document)
		return err
	})
	return sum, err
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
	zone, err := c.Messages.Zone()
	if err != nil { // it was checked with the settings
		zone = time.UTC
	}
	return pages.Settings{
		Zone:     zone,
		ClientID: config.PagesClient, Clients: clients, Name: c.Pages.Name, Language: c.Messages.Language, Address: c.BaseURL(), IDP: b.idpURL(), Resource: c.Resource,
		Session: c.Pages.Session, Idle: c.Pages.Idle, Trial: trial, Dev: c.IsDev(),
	}
}

// newPages returns the pages for people. v may be nil.
func (s *Services) newPages(trial *pages.Trial, signer *signing.Service, operations *signing.Operations, messages signapi.Encryption, documents *stored.Service, keeps *retention.Service, v *verifier, cards *cards, o operator.Deps, r reference.Deps) *pages.API {
	d := pages.Deps{Identity: s.Identity, Sessions: s.Tokens, Sealer: s.ring, Now: s.DB.Now, Random: rand.Text, Log: s.log, Waits: s.waits, Operator: o, Reference: r}
	d.Sign = sign.Deps{
		Operations: operations, Forms: Formats(s.Config).Forms(), Certificates: s.Keys, Requests: s.Keys, PINs: s.Keys, Documents: documents, Retentions: keeps, TSPServices: s.Policies.TSPServices,
		Marks: signer.Marks, MostSigned: int64(s.Config.Pages.Upload), Life: s.Config.Documents.TemporaryLife,
	}
	if v != nil {
		d.Sign.Verifier, d.Sign.Admit, d.Sign.MostVerified, d.Sign.PDF = v, v.admit, v.limit, reportPDF
		d.Sign.Raiser = signer
		d.Sign.Asks, d.Sign.Cards = s.Config.Verification.Fetch, cards
		d.Sign.Reports, d.Sign.ReportLife, d.Sign.Paint = s.reports, s.Config.Pages.Reports, qr.PNG
	}
	recipients := domain.Scope(s.Config.Pages.Recipients)
	d.Encryption = encryption.Deps{
		Messages: messagesOfPages{messages, s.Operations}, Documents: documents, Certificates: s.Keys, Most: int64(s.Config.Pages.Upload), Ended: s.Config.Decryption.EndedCertificates, Kept: s.Config.Documents.TemporaryLife,
		Directory: &domain.Directory{People: s.Users, Keys: s.Keys, Scope: recipients, Now: s.DB.Now}, Searches: recipients != domain.ScopeNone,
	}
	proofs := s.Proofs()
	d.Register = register.Deps{
		Register: &signing.Register{Log: signatureLog{store.Audit{DB: s.DB}}}, Documents: documents, Certificates: s.Keys,
		Proof: func(ctx context.Context, who audit.Principal, id string) (any, error) { return proofs.Of(ctx, who, id) },
	}
	d.Register.PDF, d.Sign.Registered = reportPDF, d.Register.Register.Of
	if v != nil {
		d.Register.Verifier, d.Register.MostVerified = v, v.limit
	}
	d.Confirm = confirm.Deps{
		Confirmations: s.Confirm, Steps: s.Identity, ToConfirm: toConfirm{operations}, Operations: operations, Certificates: s.Keys, Acts: s.Operations,
		CarryOutSigning: s.carryOutDocuments, SignedIn: s.Tokens.SignedIn, Paint: qr.GIF,
	}
	d.Account = account.Deps{
		Own: s.Identity, People: s.Users, Grants: s.Tokens.Grants, Wishes: s.own.policies, Waiting: s.Approvals,
		History: func(ctx context.Context, userID string, before int64, limit int) ([]audit.Entry, int64, error) {
			return store.Audit{DB: s.DB}.Read(ctx, store.AuditFilter{UserID: userID, OutcomesOnly: true, Before: before}, limit)
		},
		Certificates: s.Keys, Keys: s.Keys, Acts: s.Operations, Enrolment: s.Keys.Enrolment, Profiles: s.Keys.Profiles, PINs: s.Keys.PINRules(),
		Devices: s.own.devices, Contacts: s.own.contacts, Apps: s.own.oath, TextRecord: s.Identity.TextRecord, Confirmations: s.Confirm,
	}
	if s.own.passkeys != nil {
		d.Account.Passkeys = s.own.passkeys
	}
	if s.browsers != nil {
		d.Account.Browsers, d.Account.BrowserKey = s.browsers, s.browserKey
	}
	return pages.New(s.pageSettings(trial), d)
}

// signatureLog reads the audit log for the register of signatures.
type signatureLog struct{ store.Audit }

// Signatures implements signing.RegisterLog.
func (l signatureLog) Signatures(ctx context.Context, userID string, operations []string, q signing.RegisterQuery, limit int) ([]audit.Entry, int64, error) {
	return l.Read(ctx, store.AuditFilter{UserID: userID, Operations: operations, Since: q.Since, Until: q.Until, OutcomesOnly: true, Before: q.Before, Far: q.Far}, limit)
}

// carryOutDocuments carries out an operation on documents that its user has confirmed on a page.
func (s *Services) carryOutDocuments(ctx context.Context, who audit.Principal, o *signing.ConfirmedOrder) (*operation.Operation, error) {
	c := &operation.Claim{ID: o.ID, Form: o.Form, Kinds: []string{signing.KindSign, signing.KindSeveral, domain.KindDecrypt}, PIN: o.PIN, Keep: o.Keep}
	op, _, err := s.Operations.CarryOut(ctx, who, c)
	return op, err
}

// messagesOfPages starts what the pages encrypt and decrypt.
type messagesOfPages struct {
	signapi.Encryption
	operations *operation.Service
}

// Encrypt implements encryption.Messages.
func (m messagesOfPages) Encrypt(ctx context.Context, who audit.Principal, o *domain.EncryptOrder) (*operation.Operation, error) {
	order, err := m.Encrypting(ctx, who, o)
	if err != nil {
		return nil, err
	}
	op, _, err := m.operations.Start(ctx, order)
	return op, err
}

// Decrypt implements encryption.Messages.
func (m messagesOfPages) Decrypt(ctx context.Context, who audit.Principal, o *domain.DecryptOrder) (*operation.Operation, error) {
	order, err := m.Decrypting(who, o, operation.Waits)
	if err != nil {
		return nil, err
	}
	op, _, err := m.operations.Start(ctx, order)
	return op, err
}

// Find implements encryption.Messages.
func (m messagesOfPages) Find(ctx context.Context, who audit.Principal, id string) (*operation.Operation, error) {
	return m.operations.Find(ctx, who, id)
}

// toConfirm gives package confirm the documents that wait for a confirmation.
type toConfirm struct{ operations *signing.Operations }

// ConfirmedDocument implements confirm.ToConfirm.
func (d toConfirm) ConfirmedDocument(ctx context.Context, who audit.Principal, id string, index int, original bool) (confirm.ToSee, error) {
	document, err := d.operations.Shown(ctx, who, id, index, original)
	if err != nil {
		return nil, err
	}
	return document, nil
}

// reportPDF prints a report of a verification.
func reportPDF(language, title string, at time.Time, lines []view.Line) ([]byte, error) {
	var printed []print.Line
	for _, l := range lines {
		printed = append(printed, print.Line(l))
	}
	return print.PDF(language, title, at, printed)
}

// mountPages puts the pages on mux, behind their middleware, and returns their routes. missing becomes
// the page for addresses without a route.
func mountPages(mux *http.ServeMux, missing *rest.Switch, p *pages.API, gate *rest.Gate) []rest.Route {
	own := *gate
	own.Once, own.IdentifyWith, own.IdentifyConfirmed, own.IdentifyPeer = nil, nil, nil, nil
	own.Present, own.Permit = p.Present, p.Permit
	behind := http.NewServeMux()
	routes := p.Routes()
	rest.Mount(behind, "", &own, append(slices.Clone(routes), p.Missing()))
	handler := p.Middleware(behind)
	missing.Set(handler)
	for _, r := range routes {
		mux.Handle(r.Method+" "+r.Path, handler)
	}
	return routes
}
