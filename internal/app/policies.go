package app

import (
	"context"
	"time"

	"tamga/internal/adapter/guard"
	"tamga/internal/adapter/store"
	"tamga/internal/adapter/webhook"
	"tamga/internal/config"
	"tamga/internal/domain/audit"
	"tamga/internal/domain/authority"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/notify"
	"tamga/internal/domain/policy"
	"tamga/internal/web/umsapi"
)

// newPolicies makes the room that says what is allowed.
func newPolicies(c *config.Config, db *store.DB) (*policy.Service, error) {
	allowed := c.Policy.AllowedSignatureTypes
	if len(allowed) == 0 {
		allowed = Formats(c).Names()
	}
	defaults, err := c.UserPolicies.Settings()
	if err != nil {
		return nil, err
	}
	return &policy.Service{
		Store: store.Policies{DB: db}, Defaults: defaults,
		Rules: policy.Rules{
			AllowedSignatureTypes: allowed,
			AllowHashSigning:      c.Policy.AllowHashSigning,
			AllowThirdPartyTSP:    c.Policy.AllowThirdPartyTSP,
			// Our own service stands last: it is the default one where no other is named.
			TSPServices: append(c.Evidence.Services(), policy.TSPService{
				Name: "builtin", Title: "Tamga", URL: c.BaseURL() + authority.TSPPath(),
			}),
		},
	}, nil
}

// newPolicyEditor makes what operators change policies with.
func newPolicyEditor(policies *policy.Service, reach policy.Reach, messages *notify.Service) *policy.Editor {
	e := &policy.Editor{Service: policies, Users: reach, Events: policyEvents{messages}, Notifiers: []string{}}
	for _, channel := range messages.Available() {
		e.Notifiers = append(e.Notifiers, string(channel))
	}
	return e
}

// policyEvents tells users that a policy of theirs was changed.
type policyEvents struct{ messages *notify.Service }

func (e policyEvents) PolicyChanged(ctx context.Context, who audit.Principal, userID string) error {
	return e.messages.Emit(ctx, notify.Event{Type: notify.UserAccountChanged, UserID: userID, Actor: who.UserID})
}

// outward is what requests to addresses that others name are made with.
func outward(conf *config.Config) (webhook.Config, error) {
	c := &conf.Webhooks
	exceptions, err := c.Exceptions()
	if err != nil {
		return webhook.Config{}, err
	}
	roots, err := roots(conf, c.AuthoritiesFile)
	return webhook.Config{
		Guard: guard.New(guard.Config{Exceptions: exceptions}), Plain: c.PlainHTTP, Roots: roots, Now: time.Now,
	}, err
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
