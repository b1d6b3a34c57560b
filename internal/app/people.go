package app

import (
	"context"
	"crypto/rand"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	printing "tamga/internal/adapter/print"
	"tamga/internal/adapter/qr"
	"tamga/internal/adapter/store"
	"tamga/internal/config"
	"tamga/internal/domain/audit"
	"tamga/internal/domain/auth"
	"tamga/internal/domain/authority"
	"tamga/internal/domain/contact"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/notify"
	"tamga/internal/domain/oath"
	"tamga/internal/domain/policy"
	"tamga/internal/domain/session"
	"tamga/internal/domain/user"
	webconsole "tamga/internal/web/console"
	"tamga/internal/web/rest"
	"tamga/internal/web/rest/limit"
	"tamga/internal/web/signapi"
	"tamga/internal/web/umsapi"
)

// openPeople puts together the rooms that know people: their messages, contacts and
// records. They need the room that proves identities, which needs them and a
// database with tables; later stands for it until then.
func (h *Rooms) openPeople() error {
	h.delivered = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "tamga_messages_total", Help: "Attempts at messages, by channel and outcome (sent, retried, dead, expired).",
	}, []string{"channel", "outcome"})
	var own fs.FS
	if dir := h.Config.Messages.TemplatesDir; dir != "" {
		own = os.DirFS(h.Config.Path(dir))
	}
	templates, err := notify.NewTemplates(h.Config.Messages.Title, own)
	if err != nil {
		return fmt.Errorf("messages.templates_dir: %w", err)
	}
	if h.printer, err = printing.New(h.Config.Messages.Language, h.Config.Messages.Title, own); err != nil {
		return fmt.Errorf("messages.templates_dir: %w", err)
	}
	notifiers, err := h.notifiers()
	if err != nil {
		return err
	}
	h.senders = notifiers
	systems, err := h.openWebhooks()
	if err != nil {
		return fmt.Errorf("webhooks: %w", err)
	}
	h.Messages, err = notify.New(h.Config.Messages.Settings(), notify.Deps{
		Store: store.Outbox{DB: h.DB}, Vault: h.ring, Templates: templates, Notifiers: append(notifiers, systems), Listeners: h.Webhooks,
		Preferences: notify.ByPolicy{Policies: h.Policies}, Recipients: recipients{contact.Addresses{Store: store.Contacts{DB: h.DB}}, h},
		Now: time.Now, Rand: rand.Reader,
		Delivered: func(channel notify.Channel, outcome string) {
			h.delivered.WithLabelValues(string(channel), outcome).Inc()
		},
		Failed: func(err error) { h.log.Error("delivering messages", "error", err) },
	})
	if err != nil {
		return err
	}
	naming, err := h.Config.Users.Naming()
	if err != nil {
		return err
	}
	h.Sessions = session.New(store.Tokens{DB: h.DB})
	users := store.Users{DB: h.DB}
	h.Users = &user.Service{
		Store: users, GroupStore: users, LoginStore: users, NameStore: users, SearchStore: users,
		Sessions: h.Sessions, Events: h.Messages, Naming: naming, Now: time.Now, Rand: rand.Reader,
		LocalIssuer: config.LocalIssuer, Issuers: h.Config.AllIssuers(), LockDelayUnit: h.Config.Users.LockDelayUnit,
	}
	h.completePolicies()
	contacts := store.Contacts{DB: h.DB}
	h.contacts, err = contact.New(h.Config.Users.Contacts(), contact.Deps{
		Store: contacts, Codes: contacts, Reach: h.Users, Methods: h.Sessions, Notices: h.Messages, Vault: h.ring,
		Now: time.Now, Rand: rand.Reader,
	})
	h.Users.Contacts = h.contacts
	if err != nil {
		return err
	}
	h.Oath, err = oath.New(h.Config.Oath.Settings(h.Config.Messages.Title), oath.Deps{
		Store: store.Tokens{DB: h.DB}, Sessions: h.Sessions, Reach: h.Users, Events: h.Messages,
		Vault: h.ring, Paint: qr.GIF, Now: time.Now, Rand: rand.Reader,
	})
	if err != nil {
		return err
	}
	return h.openDevices()
}

// ums is the surface of user management.
func (h *Rooms) ums() *umsapi.API {
	c := &h.Config.Users
	r := umsapi.Rules{
		Local: config.LocalIssuer, Confirmed: h.Policies.Defaults[policy.Operation].Actions, MethodURIs: auth.Spelling(c.MethodURIs),
		Check: limit.New(c.ChecksPerSecond, c.ChecksAtOnce, 10_000, time.Now).AdmitCaller,
	}
	for _, p := range signapi.CryptoProviders() {
		r.Providers = append(r.Providers, umsapi.CryptoProvider(p))
	}
	return umsapi.New(h.Users, h.contacts, h.Identity, h.Oath, r)
}

// umsGate is the gate of user management: the common one, with the rights of this surface
// and the certificates of operators.
func (h *Rooms) umsGate(common *rest.Gate, peers *authority.Peers, ums *umsapi.API) *rest.Gate {
	gate := *common
	gate.Permit = ums.Permit
	gate.Failed = func(ctx context.Context, operation, userID string, err error) {
		h.failed(ctx, operation, rest.Caller(ctx), userID, err)
	}
	gate.IdentifyPeer = func(ctx context.Context, certificates [][]byte) (audit.Principal, error) {
		if err := peers.Judge(ctx, certificates); err != nil {
			return audit.Principal{}, fault.New(fault.Unauthorized, "the client certificate is not accepted").With(err)
		}
		return h.Identity.AuthenticateCertificate(ctx, certificates[0])
	}
	return &gate
}

// capturedMessages are all messages ordered so far, for the page that shows them.
func (h *Rooms) capturedMessages(ctx context.Context) ([]webconsole.Message, error) {
	if err := h.Messages.Flush(ctx); err != nil {
		return nil, err
	}
	have, err := h.Captured.List(ctx)
	list := make([]webconsole.Message, len(have))
	for i, m := range have {
		list[i] = webconsole.Message{ID: m.ID, At: m.At, Channel: string(m.Channel), To: m.To, Subject: m.Subject, Text: m.Text}
	}
	return list, err
}
