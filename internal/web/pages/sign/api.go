// SPDX-License-Identifier: Apache-2.0

// Package sign has the pages that sign files, show what was signed, keep documents, and verify. Begin with [New] and
// [API.Routes].
package sign

import (
	"context"
	"embed"
	"time"

	"tamga/internal/domain/audit"
	"tamga/internal/domain/document"
	"tamga/internal/domain/operation"
	"tamga/internal/domain/policy"
	stored "tamga/internal/domain/report"
	"tamga/internal/domain/signing"
	"tamga/internal/web/pages/view"
	"tamga/internal/web/rest"
)

//go:embed templates/*.html words/*/*.txt
var files embed.FS

func init() { view.Add("sign", files, nil) }

// Operations signs; see [signing.Operations].
type Operations interface {
	Start(ctx context.Context, who audit.Principal, o *signing.OperationOrder) (*operation.Operation, error)
	Find(ctx context.Context, who audit.Principal, id string) (*operation.Operation, error)
}

// Documents stores what is signed and what was signed; see [document.Service].
type Documents interface {
	NewIntake(ctx context.Context, who audit.Principal) (*document.Intake, error)
	Keep(ctx context.Context, who audit.Principal, documents []document.New) ([]document.Info, error)
	Open(ctx context.Context, who audit.Principal, id string) (*document.Stored, error)
	Newest(ctx context.Context, who audit.Principal, older document.Position, n int) ([]document.Info, error)
	Info(ctx context.Context, who audit.Principal, id string) (document.Info, error)
	Patch(ctx context.Context, who audit.Principal, id string, c document.Change) error
	Delete(ctx context.Context, who audit.Principal, id string) error
}

// Verifier verifies documents; see [signing.Verification].
type Verifier interface {
	NewIntake(ctx context.Context, who audit.Principal) (*signing.Intake, error)
	// TypeOf returns the type of signature that a file has, "" for a file without one.
	TypeOf(ctx context.Context, content *signing.Intake) (string, error)
	// Beside reports whether signatures of a type can be in a file beside their document; "": no.
	Beside(kind string) bool
	Verify(ctx context.Context, o *signing.VerifyOrder) ([]signing.SignatureReport, error)
	// Contained returns the documents in a container, nil for other files.
	Contained(ctx context.Context, kind string, content *signing.Intake) ([]signing.Contained, error)
	// Match finds the documents of detached signatures by their digests; see [signing.Verification.Match].
	Match(ctx context.Context, signatures [][]signing.SignatureReport, documents []*signing.Intake) ([]int, error)
	// IsPower reports whether a file is a power of attorney.
	IsPower(ctx context.Context, content *signing.Intake) (bool, error)
	// Digest returns the digest of a document by Streebog-256.
	Digest(ctx context.Context, document *signing.Intake) ([]byte, error)
}

// Reports stores reports of verifications; see [report.Service].
type Reports interface {
	Keep(ctx context.Context, who audit.Principal, reports []stored.New) ([]stored.Info, error)
	Find(ctx context.Context, who audit.Principal, number, check string) (*stored.Report, error)
	Newest(ctx context.Context, who audit.Principal, older stored.Position, n int) ([]stored.Info, error)
	Delete(ctx context.Context, who audit.Principal, number string) error
}

// Cards makes cards of signed documents. With a report, one is stored for the caller, and a code on the card leads to it.
type Cards interface {
	Card(ctx context.Context, who audit.Principal, o *signing.CardOrder, withReport bool) (rest.Content, error)
}

// Deps lists what these pages call, and their limits.
type Deps struct {
	Operations   Operations
	Forms        []signing.Form // the ways to sign that are offered
	Marks        Marks          // nil: the pages show no marks
	Certificates view.Certificates
	Requests     view.Requests
	Documents    Documents
	Retentions   Retentions
	PINs         view.PINs
	// TSPServices are the time-stamp services that may be used.
	TSPServices func(ctx context.Context) ([]policy.TSPService, error)
	Verifier    Verifier                  // nil: the pages verify nothing
	Admit       func(remote string) error // refuses an address that verifies too often
	Cards       Cards                     // nil: the pages make no cards
	Raiser      Raiser                    // nil: the pages raise no signatures
	// Registered returns what the register of signatures has of an operation.
	Registered func(ctx context.Context, who audit.Principal, operation string) ([]signing.Signature, error)
	// PDF prints a document for people. It is needed with a Verifier.
	PDF func(language, title string, at time.Time, lines []Line) ([]byte, error)
	Now func() time.Time
	// Reports stores reports under numbers, for ReportLife; 0: none is stored. Paint makes a PNG with the QR code of a text.
	Reports    Reports
	ReportLife time.Duration
	Paint      func(text string) ([]byte, error)
	// Asks reports that a verification asks other authorities for the status of certificates.
	Asks bool
	// Seal returns a value as a text that only this installation can make, and Open reads one.
	Seal func(v any) (string, error)
	Open func(sealed string, v any) bool

	ClientID     string        // of the pages
	Address      string        // public address, without a slash at the end
	Life         time.Duration // after which temporary documents are deleted
	MostSigned   int64         // largest body of an upload to sign, in bytes
	MostVerified int64         // largest body of a verification, in bytes
}

// API serves these pages.
type API struct{ Deps }

// New returns the API.
func New(d Deps) *API { return &API{d} }

// Routes returns these pages.
func (a *API) Routes() []rest.Route {
	routes := []rest.Route{
		view.Handle("GET /sign", "SignPage", rest.SignedIn, a.signForm),
		rest.Handle("GET "+marksAt+"{certificate}/{form}", "ShowMark", rest.SignedIn, a.mark).Answering(rest.File{}),
		rest.HandleDocuments("POST /sign", "SignByPage", rest.SignedIn, a.Documents.NewIntake, a.sign).Answering(rest.Redirect{}).AtMost(a.MostSigned),
		view.Handle("GET /signed", "SignedPage", rest.SignedIn, a.signed),
		rest.Handle("POST /signed/do/keep", "KeepSignedByPage", rest.SignedIn, a.keepSigned).Answering(rest.Redirect{}),
		rest.Handle("GET /signed/document/{ref}", "DownloadSigned", rest.SignedIn, a.download).Answering(rest.File{}),
		rest.Handle("GET /signed/all.zip", "DownloadAllSigned", rest.SignedIn, a.downloadAll).Answering(rest.File{}),
	}
	if a.Verifier != nil {
		routes = append(routes,
			view.Handle("GET /verify", "VerifyPage", rest.Anyone, a.verifyForm).Unaudited(),
			rest.HandleDocuments("POST /verify", "VerifyByPage", rest.Anyone, a.Verifier.NewIntake, a.verify).Guarded(a.Admit).AtMost(a.MostVerified).Answering(rest.Page{}, rest.File{}),
			rest.Handle("POST /signed/card", "CardByPage", rest.SignedIn, a.cardOfStored).Guarded(a.Admit).Answering(rest.File{}),
			rest.Handle("POST /verify/report", "ReportByPage", rest.Anyone, a.reportFile).Guarded(a.Admit).AtMost(maxReports).Answering(rest.File{}),
		)
		routes = append(routes, a.reportRoutes()...)
		if a.Raiser != nil {
			routes = append(routes,
				view.Handle("GET /enhance", "EnhancePage", rest.SignedIn, a.enhanceForm),
				rest.HandleDocuments("POST /enhance", "EnhanceByPage", rest.SignedIn, a.Verifier.NewIntake, a.enhance).AtMost(a.MostVerified).Answering(rest.File{}),
			)
		}
	}
	return append(routes, a.documentRoutes()...)
}
