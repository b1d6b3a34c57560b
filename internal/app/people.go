// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"tamga/internal/config"
	"tamga/internal/domain/approval"
	"tamga/internal/domain/audit"
	"tamga/internal/domain/authority"
	"tamga/internal/domain/fault"
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
func countMessages(registry prometheus.Registerer, watch *Watch) func(channel notify.Channel, outcome string, failed error) {
	delivered := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "tamga_messages_total", Help: "Attempts at messages, by channel and outcome (sent, retried, dead, expired).",
	}, []string{"channel", "outcome"})
	registry.MustRegister(delivered)
	return func(channel notify.Channel, outcome string, failed error) {
		delivered.WithLabelValues(string(channel), outcome).Inc()
		// Messages are a series of their own: a service that connects may refuse them. Push services of browsers are
		// chosen by people, so messages say nothing about push.
		if kind := partOf(channel); kind != "" && channel != notify.Push && (failed != nil || outcome == "sent") {
			watch.note(part{kind, "messages"}, failed)
		}
	}
}

// ums returns the web interface of user management.
func (s *Services) ums() *umsapi.API {
	c := &s.Config.Users
	rules := umsapi.Rules{
		Local: config.LocalIssuer, Confirmed: s.Policies.Defaults[policy.Operation].Actions, MethodURIs: signin.Spelling(c.MethodURIs), Language: s.Config.Messages.Language,
		Check: limit.New(c.ChecksPerSecond, c.ChecksAtOnce, 10_000, time.Now).AdmitCaller,
	}
	for _, p := range signapi.CryptoProviders() {
		rules.Providers = append(rules.Providers, umsapi.CryptoProvider(p))
	}
	return umsapi.New(s.Users, s.Contacts, s.Identity, s.Oath, rules)
}

// umsRoutes returns the operations of user management.
func (s *Services) umsRoutes(ums *umsapi.API) []rest.Route {
	var passkeys umsapi.Passkeys
	if s.Passkeys != nil {
		passkeys = s.Passkeys
	}
	return slices.Concat(
		ums.Routes(), umsapi.DeviceRoutes(s.Devices), umsapi.PolicyRoutes(s.PolicyEditor, s.Config.Messages.Language), umsapi.PasskeyRoutes(passkeys),
		umsapi.ApprovalRoutes(s.Approvals), umsapi.ProofRoutes(s.Proofs()),
	)
}

// umsGate returns the gate of user management: the common gate with the permissions of this
// interface, its events of failures, and sign-in by client certificate.
func (s *Services) umsGate(common *rest.Gate, peers *authority.Peers, ums *umsapi.API) *rest.Gate {
	gate := *common
	gate.Permit = ums.Permit
	c := &s.Config.Users
	gate.Approvals = umsapi.Approvals{Rules: &approval.Rules{Requests: s.Approvals, Approve: c.Approved(), Delay: c.FactorDelay, Factors: s.Identity}}
	gate.Failed = func(ctx context.Context, operation, userID string, err error) {
		s.failed(ctx, operation, rest.Caller(ctx), userID, err)
	}
	gate.IdentifyPeer = func(ctx context.Context, certificates [][]byte) (audit.Principal, error) {
		if err := peers.Judge(ctx, certificates); err != nil {
			return audit.Principal{}, fault.New(fault.Unauthorized, "the client certificate is not accepted").With(err)
		}
		return s.Identity.AuthenticateCertificate(ctx, certificates[0])
	}
	return &gate
}

// failed emits an event for a refused operation of user management.
func (s *Services) failed(ctx context.Context, operation string, who audit.Principal, userID string, cause error) {
	event := umsapi.FailEvent(operation)
	if event == "" {
		return
	}
	detail := "internal error"
	if f, ok := fault.As(cause); ok {
		detail = f.Code
	}
	err := s.Messages.Emit(ctx, notify.Event{Type: event, UserID: userID, Actor: who.UserID, Detail: operation + ": " + detail})
	if err != nil {
		s.log.Error("telling of a failure", "operation", operation, "error", err)
	}
}

// capturedMessages returns all messages queued so far, for the page that shows them.
func (s *Services) capturedMessages(ctx context.Context) ([]webconsole.Message, error) {
	if err := s.Messages.Flush(ctx); err != nil {
		return nil, err
	}
	have, err := s.Captured.List(ctx)
	list := make([]webconsole.Message, len(have))
	for i, m := range have {
		list[i] = webconsole.Message{ID: m.ID, At: m.At, Channel: string(m.Channel), To: m.To, Subject: m.Subject, Text: m.Text}
	}
	return list, err
}
