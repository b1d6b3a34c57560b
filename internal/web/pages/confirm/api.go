// SPDX-License-Identifier: Apache-2.0

// Package confirm has the pages on which users confirm what waits for them: one record, with its documents and the ways
// to confirm it. Begin with [New] and [API.Routes].
package confirm

import (
	"context"
	"embed"
	"time"

	"tamga/internal/domain/audit"
	"tamga/internal/domain/confirm"
	"tamga/internal/domain/operation"
	"tamga/internal/domain/signing"
	"tamga/internal/web/pages/view"
	"tamga/internal/web/rest"
)

//go:embed templates/*.html words/*/*.txt
var files embed.FS

func init() { view.Add("confirm", files, nil) }

// Operations finds what is confirmed; see [signing.Operations].
type Operations interface {
	Find(ctx context.Context, who audit.Principal, id string) (*operation.Operation, error)
}

// Acts carries out what users ordered on the pages; see [operation.Service].
type Acts interface {
	CarryOut(ctx context.Context, who audit.Principal, c *operation.Claim) (o *operation.Operation, result any, err error)
}

// Deps lists what the pages of confirmations call.
type Deps struct {
	Confirmations Confirmations
	Steps         Steps
	ToConfirm     ToConfirm
	Operations    Operations
	Certificates  view.Certificates
	Acts          Acts // with the kinds of package keys
	// CarryOutSigning carries out signatures that the user began on the pages; see [signing.Operations].
	CarryOutSigning func(ctx context.Context, who audit.Principal, o *signing.ConfirmedOrder) (*operation.Operation, error)
	// Proved spends a confirmation after which a session may change what its user signs in with.
	Proved func(ctx context.Context, r *confirm.Record) (rest.Redirect, error)
	// SignedIn reports whether the sign-in of a session has not ended; see [token.Service].
	SignedIn func(ctx context.Context, tokenID string) (bool, error)
	// Paint makes a GIF with the QR code of a text.
	Paint func(text string) ([]byte, error)
	Now   func() time.Time

	Clients view.Clients
	Address string // public address, without a slash at the end
}

// API serves the pages of confirmations.
type API struct{ Deps }

// New returns the API.
func New(d Deps) *API { return &API{d} }
