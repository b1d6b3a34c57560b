// SPDX-License-Identifier: Apache-2.0

// Package register has the pages of the register of signatures of a person: the list, one signature, its verification
// and its proof. Begin with [New] and [API.Routes].
package register

import (
	"context"
	"embed"
	"time"

	"tamga/internal/domain/audit"
	"tamga/internal/domain/document"
	"tamga/internal/domain/signing"
	"tamga/internal/web/pages/view"
	"tamga/internal/web/rest"
)

//go:embed templates/*.html words/*/*.txt
var files embed.FS

func init() { view.Add("register", files, nil) }

// Register reads what was signed; see [signing.Register].
type Register interface {
	Read(ctx context.Context, who audit.Principal, q signing.RegisterQuery, limit int) (list []signing.Signature, before int64, err error)
	Of(ctx context.Context, who audit.Principal, operation string) ([]signing.Signature, error)
}

// Documents are the stored documents; see [document.Service].
type Documents interface {
	view.Stored
	Info(ctx context.Context, who audit.Principal, id string) (document.Info, error)
}

// Verifier verifies documents; see [signing.Verification].
type Verifier interface {
	NewIntake(ctx context.Context, who audit.Principal) (*signing.Intake, error)
	TypeOf(ctx context.Context, content *signing.Intake) (string, error)
	Verify(ctx context.Context, o *signing.VerifyOrder) ([]signing.SignatureReport, error)
}

// Deps lists what these pages call.
type Deps struct {
	Register     Register
	Documents    Documents
	Certificates view.Certificates
	Verifier     Verifier // nil: nothing is verified
	MostVerified int64    // bytes of the documents that are verified at once
	// Verified verifies copies of signed documents and returns the page of the results.
	Verified func(ctx context.Context, copies []view.Copy) (view.View, error)
	// PDF prints a document for people.
	PDF func(language, title string, at time.Time, lines []view.Line) ([]byte, error)
	// Proof returns the proof of a confirmation as JSON. The fault is object_not_found.
	Proof func(ctx context.Context, who audit.Principal, id string) (any, error)
	Now   func() time.Time

	Clients view.Clients // names of applications
}

// API serves these pages.
type API struct{ Deps }

// New returns the API.
func New(d Deps) *API { return &API{d} }

// Routes returns these pages.
func (a *API) Routes() []rest.Route {
	return []rest.Route{
		view.Handle("GET /signatures", "SignaturesPage", rest.SignedIn, a.list),
		rest.Handle("GET /signatures/export", "ExportSignatures", rest.SignedIn, a.export).Answering(rest.File{}),
		view.Handle("GET /signatures/{operation}/{document}", "SignaturePage", rest.SignedIn, a.one),
		view.Handle("POST /signatures/do/verify", "VerifySignaturesAgain", rest.SignedIn, a.verifyChosen),
		view.Handle("POST /signatures/{operation}/{document}/do/verify", "VerifySignatureAgain", rest.SignedIn, a.verify),
		rest.Handle("GET /signatures/{operation}/proof.json", "DownloadProof", rest.SignedIn, a.proof).Answering(rest.File{}).Exact(),
	}
}
