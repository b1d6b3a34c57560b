// SPDX-License-Identifier: Apache-2.0

// Package operator has the pages of operators: people, what waits for an answer, the installation. Begin with [New] and
// [API.Routes].
//
// What operators do is a table of commands. A command has the rules of the operation of the interface whose name it has.
package operator

import (
	"context"
	"embed"
	"net/http"
	"time"

	"tamga/internal/domain/approval"
	"tamga/internal/domain/audit"
	"tamga/internal/domain/authority"
	"tamga/internal/domain/contact"
	"tamga/internal/domain/device"
	"tamga/internal/domain/keys"
	"tamga/internal/domain/notify"
	"tamga/internal/domain/oath"
	"tamga/internal/domain/passkey"
	"tamga/internal/domain/policy"
	"tamga/internal/domain/signin"
	"tamga/internal/domain/signing"
	"tamga/internal/domain/user"
	"tamga/internal/web/pages/view"
	"tamga/internal/web/rest"
)

//go:embed templates/*.html words/*/*.txt
var files embed.FS

func init() { view.Add("operator", files, functions) }

// Deps lists what the pages of operators call.
type Deps struct {
	// Permit checks the right Operator, as the interface of user management does.
	Permit func(ctx context.Context, who audit.Principal, right rest.Right, value func(name string) string) error
	// Administrators and Auditors are identifiers of operators.
	Administrators, Auditors []string

	People       *user.Service
	Contacts     *contact.Book
	SignIns      *signin.Service
	OneTime      *oath.Service
	Devices      *device.Service
	Passkeys     *passkey.Service // nil: the installation has none
	Policies     *policy.Editor
	Approvals    *approval.Service
	Keys         *keys.Service
	Authority    *authority.Service
	Active       *signing.Operations
	Messages     *notify.Service
	Webhooks     *notify.Subscriptions
	Log          AuditLog
	Turns        user.Turns // of long searches of the log
	Installation func(ctx context.Context) (Installation, error)
	// Retentions keep documents of users for a time.
	Retentions Retentions
	// Sources returns the outside services that this process has asked, as they answered last.
	Sources func() []SourceState
	// CheckTSP requests a time stamp from a registered service and checks it.
	CheckTSP func(ctx context.Context, service policy.TSPService) ([]Fact, error)
	// CheckProviders reaches every service in the network that the installation needs, and says which answer.
	CheckProviders func(ctx context.Context) ([]Fact, error)
	// TryMessage sends a test message, see [notify.Service.Try], and says what the other side answered.
	TryMessage func(ctx context.Context, who audit.Principal, channel notify.Channel, to string) ([]Fact, error)
	// Import registers the users of a list, or checks it.
	Import func(ctx context.Context, o ImportOrder) (ImportReport, error)
	// Send sends a request through all steps of the server, see [rest.Inner], to an address below Address.
	Send    func(ctx context.Context, method, target string, header http.Header, body string, most int) (rest.InnerReply, error)
	Address string // public address, without a slash at the end
	Now     func() time.Time
}

// API serves the pages of operators.
type API struct {
	Deps

	commandGroups  []commandGroup
	commandsByName map[string]*command
}

// New returns the API.
func New(d Deps) *API {
	a := &API{Deps: d, commandsByName: map[string]*command{}}
	a.commandGroups = a.commands()
	for _, g := range a.commandGroups {
		for i := range g.list {
			a.commandsByName[g.list[i].name] = &g.list[i]
		}
	}
	return a
}
