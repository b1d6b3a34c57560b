// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"tamga/internal/config"
	"tamga/internal/domain/audit"
	"tamga/internal/domain/authority"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/held"
	"tamga/internal/domain/notify"
	"tamga/internal/domain/policy"
	"tamga/internal/domain/signin"
	webconsole "tamga/internal/web/console"
	"tamga/internal/web/rest"
	"tamga/internal/web/rest/limit"
	"tamga/internal/web/signapi"
	"tamga/internal/web/umsapi"
)

// countMessages returns a function that counts attempts to send messages.
func countMessages(registry prometheus.Registerer) func(channel notify.Channel, outcome string) {
	delivered := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "tamga_messages_total", Help: "Attempts at messages, by channel and outcome (sent, retried, dead, expired).",
	}, []string{"channel", "outcome"})
	registry.MustRegister(delivered)
	return func(channel notify.Channel, outcome string) {
		delivered.WithLabelValues(string(channel), outcome).Inc()
	}
}

// ums returns the web interface of user management.
func (r *Rooms) ums() *umsapi.API {
	c := &r.Config.Users
	rules := umsapi.Rules{
		Local: config.LocalIssuer, Confirmed: r.Policies.Defaults[policy.Operation].Actions, MethodURIs: signin.Spelling(c.MethodURIs), Language: r.Config.Messages.Language,
		Check: limit.New(c.ChecksPerSecond, c.ChecksAtOnce, 10_000, time.Now).AdmitCaller,
	}
	for _, p := range signapi.CryptoProviders() {
		rules.Providers = append(rules.Providers, umsapi.CryptoProvider(p))
	}
	return umsapi.New(r.Users, r.Contacts, r.Identity, r.Oath, rules)
}

// umsRoutes returns the operations of user management.
func (r *Rooms) umsRoutes(ums *umsapi.API) []rest.Route {
	var passkeys umsapi.Passkeys
	if r.Passkeys != nil {
		passkeys = r.Passkeys
	}
	return slices.Concat(
		ums.Routes(), umsapi.DeviceRoutes(r.Devices), umsapi.PolicyRoutes(r.PolicyEditor, r.Config.Messages.Language), umsapi.PasskeyRoutes(passkeys),
		umsapi.HeldRoutes(r.Held), umsapi.ProofRoutes(r.Proofs()),
	)
}

// umsGate returns the gate of user management: the common gate with the permissions of this
// interface, its events of failures, and sign-in by client certificate.
func (r *Rooms) umsGate(common *rest.Gate, peers *authority.Peers, ums *umsapi.API) *rest.Gate {
	gate := *common
	gate.Permit = ums.Permit
	c := &r.Config.Users
	gate.Holder = umsapi.Holding{Rules: &held.Rules{Requests: r.Held, Approve: c.Approved(), Delay: c.FactorDelay, Factors: r.Identity}}
	gate.Failed = func(ctx context.Context, operation, userID string, err error) {
		r.failed(ctx, operation, rest.Caller(ctx), userID, err)
	}
	gate.IdentifyPeer = func(ctx context.Context, certificates [][]byte) (audit.Principal, error) {
		if err := peers.Judge(ctx, certificates); err != nil {
			return audit.Principal{}, fault.New(fault.Unauthorized, "the client certificate is not accepted").With(err)
		}
		return r.Identity.AuthenticateCertificate(ctx, certificates[0])
	}
	return &gate
}

// failed emits an event for a refused operation of user management.
func (r *Rooms) failed(ctx context.Context, operation string, who audit.Principal, userID string, cause error) {
	event := umsapi.FailEvent(operation)
	if event == "" {
		return
	}
	detail := "internal error"
	if f, ok := fault.As(cause); ok {
		detail = f.Code
	}
	err := r.Messages.Emit(ctx, notify.Event{Type: event, UserID: userID, Actor: who.UserID, Detail: operation + ": " + detail})
	if err != nil {
		r.log.Error("telling of a failure", "operation", operation, "error", err)
	}
}

// capturedMessages returns all messages queued so far, for the page that shows them.
func (r *Rooms) capturedMessages(ctx context.Context) ([]webconsole.Message, error) {
	if err := r.Messages.Flush(ctx); err != nil {
		return nil, err
	}
	have, err := r.Captured.List(ctx)
	list := make([]webconsole.Message, len(have))
	for i, m := range have {
		list[i] = webconsole.Message{ID: m.ID, At: m.At, Channel: string(m.Channel), To: m.To, Subject: m.Subject, Text: m.Text}
	}
	return list, err
}
