package main

import (
	"context"
	"crypto/rand"
	"time"

	"tamga/internal/adapter/guard"
	"tamga/internal/adapter/store"
	"tamga/internal/adapter/webhook"
	"tamga/internal/domain/audit"
	"tamga/internal/domain/authority"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/notify"
	"tamga/internal/domain/policy"
	"tamga/internal/web/umsapi"
)

// openPolicies opens the room that says what is allowed. The rooms it needs to let
// operators change something come later; see completePolicies.
func (h *house) openPolicies() error {
	allowed := h.config.Policy.AllowedSignatureTypes
	if len(allowed) == 0 {
		allowed = formats(h.config).Names()
	}
	defaults, err := h.config.UserPolicies.Settings()
	if err != nil {
		return err
	}
	h.policies = &policy.Service{
		Store: store.Policies{DB: h.db}, Defaults: defaults,
		Rules: policy.Rules{
			AllowedSignatureTypes: allowed,
			AllowHashSigning:      h.config.Policy.AllowHashSigning,
			AllowThirdPartyTSP:    h.config.Policy.AllowThirdPartyTSP,
			// Our own service stands last: it is the default one where no other is named.
			TSPServices: append(h.config.Evidence.Services(), policy.TSPService{
				Name: "builtin", Title: "Tamga", URL: h.config.BaseURL() + authority.TSPPath(),
			}),
		},
	}
	return nil
}

// completePolicies gives the room the people it decides about.
func (h *house) completePolicies() {
	h.policies.Users, h.policies.Events = h.users, policyEvents{h.messages}
	h.policies.Notifiers = []string{}
	for _, channel := range h.messages.Available() {
		h.policies.Notifiers = append(h.policies.Notifiers, string(channel))
	}
}

// policyEvents tells users that a policy of theirs was changed.
type policyEvents struct{ messages *notify.Service }

func (e policyEvents) PolicyChanged(ctx context.Context, who audit.Principal, userID string) error {
	return e.messages.Emit(ctx, notify.Event{Type: notify.UserAccountChanged, UserID: userID, Actor: who.UserID})
}

// outward is what requests to addresses that others name are made with.
func (h *house) outward() (webhook.Config, error) {
	c := &h.config.Webhooks
	exceptions, err := c.Exceptions()
	if err != nil {
		return webhook.Config{}, err
	}
	roots, err := h.roots(c.AuthoritiesFile)
	return webhook.Config{
		Guard: guard.New(guard.Config{Exceptions: exceptions}), Plain: c.PlainHTTP, Roots: roots, Now: time.Now,
	}, err
}

// openWebhooks opens the register of systems that listen to events, and what tells
// them.
func (h *house) openWebhooks() (notify.Notifier, error) {
	c, err := h.outward()
	if err != nil {
		return nil, err
	}
	h.webhooks = &notify.Subscriptions{Store: store.Webhooks{DB: h.db}, Vault: h.ring, Now: time.Now, Rand: rand.Reader}
	n := webhook.NewNotifier(c, h.webhooks)
	h.webhooks.Check = n.Check
	return n, nil
}

// failed tells of an operation of user management that was refused.
func (h *house) failed(ctx context.Context, operation string, who audit.Principal, userID string, cause error) {
	event := umsapi.FailEvent(operation)
	if event == "" {
		return
	}
	detail := "internal error"
	if f, ok := fault.As(cause); ok {
		detail = f.Code
	}
	err := h.messages.Emit(ctx, notify.Event{Type: event, UserID: userID, Actor: who.UserID, Detail: operation + ": " + detail})
	if err != nil {
		h.log.Error("telling of a failure", "operation", operation, "error", err)
	}
}
