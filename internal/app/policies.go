package app

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
func (h *Rooms) openPolicies() error {
	allowed := h.Config.Policy.AllowedSignatureTypes
	if len(allowed) == 0 {
		allowed = Formats(h.Config).Names()
	}
	defaults, err := h.Config.UserPolicies.Settings()
	if err != nil {
		return err
	}
	h.Policies = &policy.Service{
		Store: store.Policies{DB: h.DB}, Defaults: defaults,
		Rules: policy.Rules{
			AllowedSignatureTypes: allowed,
			AllowHashSigning:      h.Config.Policy.AllowHashSigning,
			AllowThirdPartyTSP:    h.Config.Policy.AllowThirdPartyTSP,
			// Our own service stands last: it is the default one where no other is named.
			TSPServices: append(h.Config.Evidence.Services(), policy.TSPService{
				Name: "builtin", Title: "Tamga", URL: h.Config.BaseURL() + authority.TSPPath(),
			}),
		},
	}
	return nil
}

// completePolicies gives the room the people it decides about.
func (h *Rooms) completePolicies() {
	h.Policies.Users, h.Policies.Events = h.Users, policyEvents{h.Messages}
	h.Policies.Notifiers = []string{}
	for _, channel := range h.Messages.Available() {
		h.Policies.Notifiers = append(h.Policies.Notifiers, string(channel))
	}
}

// policyEvents tells users that a policy of theirs was changed.
type policyEvents struct{ messages *notify.Service }

func (e policyEvents) PolicyChanged(ctx context.Context, who audit.Principal, userID string) error {
	return e.messages.Emit(ctx, notify.Event{Type: notify.UserAccountChanged, UserID: userID, Actor: who.UserID})
}

// outward is what requests to addresses that others name are made with.
func (h *Rooms) outward() (webhook.Config, error) {
	c := &h.Config.Webhooks
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
func (h *Rooms) openWebhooks() (notify.Notifier, error) {
	c, err := h.outward()
	if err != nil {
		return nil, err
	}
	h.Webhooks = &notify.Subscriptions{Store: store.Webhooks{DB: h.DB}, Vault: h.ring, Now: time.Now, Rand: rand.Reader}
	n := webhook.NewNotifier(c, h.Webhooks)
	h.Webhooks.Check = n.Check
	return n, nil
}

// failed tells of an operation of user management that was refused.
func (h *Rooms) failed(ctx context.Context, operation string, who audit.Principal, userID string, cause error) {
	event := umsapi.FailEvent(operation)
	if event == "" {
		return
	}
	detail := "internal error"
	if f, ok := fault.As(cause); ok {
		detail = f.Code
	}
	err := h.Messages.Emit(ctx, notify.Event{Type: event, UserID: userID, Actor: who.UserID, Detail: operation + ": " + detail})
	if err != nil {
		h.log.Error("telling of a failure", "operation", operation, "error", err)
	}
}
