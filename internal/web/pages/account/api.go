// SPDX-License-Identifier: Apache-2.0

// Package account has the pages on which people look after what is theirs: the account and its history, certificates,
// devices and other second steps, passkeys. Begin with [New] and [API.Routes].
package account

import (
	"context"
	"embed"
	"net/http"
	"slices"
	"time"

	"tamga/internal/domain/audit"
	"tamga/internal/domain/confirm"
	"tamga/internal/domain/confirm/what"
	"tamga/internal/domain/keys"
	"tamga/internal/domain/lock"
	"tamga/internal/domain/signin"
	"tamga/internal/domain/token"
	"tamga/internal/web/pages/view"
	"tamga/internal/web/rest"
)

//go:embed templates/*.html words/*/*.txt
var files embed.FS

func init() { view.Add("account", files, nil) }

// Confirmations keeps what the user confirmed; see [confirm.Service].
type Confirmations interface {
	Content(ctx context.Context, who audit.Principal, id string) (confirm.Content, error)
	Spend(ctx context.Context, who audit.Principal, id string, sum what.Digest, locked lock.Set, change func(ctx context.Context, r *confirm.Record) error) (spent bool, err error)
}

// Deps lists what these pages call.
type Deps struct {
	Own     Own
	People  People
	Grants  func(ctx context.Context, userID string) ([]token.Grant, error)
	Wishes  Wishes
	Waiting Waiting
	// History returns the newest audit entries about a user, the oldest of them first, and
	// the position before which the next call continues, 0 for the end.
	History func(ctx context.Context, userID string, before int64, limit int) ([]audit.Entry, int64, error)

	Certificates view.Certificates
	Keys         Keys
	Acts         Acts // with the kinds of package keys
	Enrolment    keys.Enrolment
	Profiles     keys.Profiles // nil: users have no known names
	PINs         keys.PINRules

	Devices  Devices
	Contacts Contacts
	Apps     Apps
	Passkeys Passkeys // nil: the installation has none
	Browsers Browsers // nil: the installation sends no notifications to browsers
	// BrowserKey is the public key by which push services of browsers know the installation.
	BrowserKey []byte
	// TextRecord returns the record of a text that the user confirms; see [signin.Service].
	TextRecord    func(ctx context.Context, c *signin.Confirmer, scope, template string) (confirm.Record, error)
	Confirmations Confirmations

	// SignedOut leads a browser whose session has ended to the front page. form is what ended the session.
	SignedOut func(form string) rest.Redirect
	// Renew returns the cookie of a session that is used now.
	Renew   func(s view.Session) (*http.Cookie, error)
	Now     func() time.Time
	Clients view.Clients
}

// API serves these pages.
type API struct{ Deps }

// New returns the API.
func New(d Deps) *API { return &API{d} }

// Routes returns these pages.
func (a *API) Routes() []rest.Route {
	return slices.Concat(a.certificateRoutes(), a.accountRoutes(), a.deviceRoutes(), a.passkeyRoutes(), a.browserRoutes())
}
