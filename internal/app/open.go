// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"tamga/internal/adapter/capture"
	"tamga/internal/adapter/evidence"
	printing "tamga/internal/adapter/print"
	"tamga/internal/adapter/qr"
	"tamga/internal/adapter/store"
	"tamga/internal/adapter/webhook"
	"tamga/internal/config"
	"tamga/internal/domain/approval"
	"tamga/internal/domain/authority"
	"tamga/internal/domain/confirm"
	"tamga/internal/domain/contact"
	"tamga/internal/domain/device"
	"tamga/internal/domain/keys"
	"tamga/internal/domain/notify"
	"tamga/internal/domain/oath"
	"tamga/internal/domain/operation"
	"tamga/internal/domain/passkey"
	"tamga/internal/domain/password"
	"tamga/internal/domain/reach"
	"tamga/internal/domain/report"
	"tamga/internal/domain/session"
	"tamga/internal/domain/user"
	"tamga/internal/web/tokenapi"
)

// Open opens the database and makes every service that needs no tables. Open writes nothing to the
// database. The caller closes the result.
func Open(ctx context.Context, c *config.Config, purpose Purpose, log *slog.Logger) (*Base, error) {
	o := &opener{
		Base:    &Base{Config: c, log: log, watch: watchOf(log), metrics: prometheus.NewRegistry(), certificate: &atomic.Pointer[tls.Certificate]{}},
		purpose: purpose, status: noEvidence{},
	}
	err := steps{
		{"master keys", o.openMasterKeys},
		{"key holders", o.openHolders},
		{"passwords", o.makePasswords},
		{"database", o.openDatabase},
		{"policies", o.makePolicies},
		{"templates", o.readTemplates},
		{"senders", o.openSenders},
		{"messages", o.makeMessages},
		{"people", o.makePeople},
		{"factors", o.makeFactors},
		{"confirmations", o.makeConfirmations},
		{"devices", o.makeDevices},
		{"own accounts", o.makeOwn},
		{"authority", o.makeAuthority},
		{"evidence", o.openEvidence},
		{"trust list", o.makeTrustList},
		{"keys", o.makeKeys},
		{"operations", o.makeOperations},
	}.run(ctx, log)
	if err != nil {
		o.opened.close(log)
		return nil, err
	}
	return o.Base, nil
}

// steps are what is done at a start, in order: each may use what those before it made. The name of a step
// is in the log, with the time that it took.
type steps []struct {
	name string
	do   func(ctx context.Context) error
}

func (list steps) run(ctx context.Context, log *slog.Logger) error {
	for _, s := range list {
		began := time.Now()
		if err := s.do(ctx); err != nil {
			return err
		}
		log.DebugContext(ctx, "started", "step", s.name, "took", time.Since(began))
	}
	return nil
}

// opener is a Base that is being made, and what its steps hand to later ones.
type opener struct {
	*Base
	purpose Purpose

	customized     fs.FS // the installation's own templates; nil: none
	templates      *notify.Templates
	recipients     recipients
	callbackStore  *confirm.Callbacks // nil: the installation makes no callbacks
	follower       operation.Follower
	cancels        *confirm.Canceller
	naming         *user.Naming
	contactDeps    contact.Deps
	oathDeps       oath.Deps
	deviceSettings device.Settings
	approvals      *device.Approvals
	deviceDeps     device.Deps
	ownPasskeys    *passkey.Service
	status         keys.Evidence // of certificates by outside authorities
}

// closing has something closed with the Base.
func (o *opener) closing(what string, close func() error) {
	o.opened = append(o.opened, opening{what, close})
}

func (o *opener) openMasterKeys(context.Context) (err error) {
	o.ring, err = openRing(o.Config)
	return err
}

func (o *opener) openHolders(context.Context) (err error) {
	remember := o.Config.PIN.Remember
	if o.purpose == ForCommand { // signs once, if at all
		remember = 0
	}
	if o.holders, err = openHolders(o.Config, o.ring, remember, o.log); err != nil {
		return err
	}
	o.closing("the holders of the keys", o.holders.Close)
	return nil
}

func (o *opener) makePasswords(context.Context) (err error) {
	c := o.Config
	o.passwords, err = password.New(password.Cost{
		MemoryKiB: uint32(c.Argon2.Memory >> 10),
		Passes:    uint32(c.Argon2.Passes),
		Lanes:     1,
	}, int64(c.Argon2.Memory>>10)*int64(c.Argon2.Parallel), attempts(c), rand.Reader)
	return err
}

func (o *opener) openDatabase(ctx context.Context) error {
	address, err := databaseURL(o.Config)
	if err != nil {
		return err
	}
	limits := store.CommandLimits
	if o.purpose == ForServer {
		limits = store.ServingLimits(o.Config.DatabaseWait)
	}
	if o.DB, err = store.Open(ctx, store.Options{URL: address, Connections: o.Config.DatabaseConnections, Limits: limits, Log: o.log}); err != nil {
		return err
	}
	o.closing("the database", o.DB.Close)
	o.Audit = store.Audit{DB: o.DB}
	return nil
}

func (o *opener) makePolicies(context.Context) (err error) {
	o.Policies, err = newPolicies(o.Config, o.DB)
	return err
}

func (o *opener) readTemplates(context.Context) (err error) {
	of := &o.Config.Messages
	if of.TemplatesDir != "" {
		o.customized = os.DirFS(o.Config.Path(of.TemplatesDir))
	}
	if o.templates, err = notify.NewTemplates(of.Title, o.customized); err != nil {
		return fmt.Errorf("messages.templates_dir: %w", err)
	}
	printer, err := printing.New(of.Language, of.Title, o.customized)
	if err != nil {
		return fmt.Errorf("messages.templates_dir: %w", err)
	}
	zone, err := of.Zone()
	o.templates.Zone, printer.Zone = zone, zone
	o.printer = printer
	return err
}

// openSenders opens what sends messages: the notifiers of the configuration or the box that captures
// messages, webhooks, and callbacks.
func (o *opener) openSenders(context.Context) (err error) {
	c, db := o.Config, o.DB
	o.recipients = recipients{
		contacts: contact.Addresses{Store: store.Contacts{DB: db}},
		devices:  device.NewAddresses(store.Devices{DB: db}, store.Browsers{DB: db}, o.ring, db.Now),
	}
	if c.Messages.Capture {
		o.Captured = capture.New(store.Captured{DB: db}, o.ring)
		if o.senders, err = capturedBeside(c, o.Captured.Notifiers(), db.Now, o.recipients.devices); err != nil {
			return err
		}
	} else if o.senders, err = notifiers(c, db.Now, o.recipients.devices); err != nil {
		return err
	}
	for _, n := range o.senders {
		if closer, ok := n.(io.Closer); ok {
			o.closing("a sender of messages", closer.Close)
		}
	}
	outward, err := outward(c, db.Now)
	if err != nil {
		return fmt.Errorf("webhooks: %w", err)
	}
	o.reports = &report.Service{Store: store.Reports{DB: db}, Vault: o.ring, Now: db.Now, Rand: rand.Reader, Life: c.Pages.Reports}
	o.Webhooks = &notify.Subscriptions{Store: store.Webhooks{DB: db}, Vault: o.ring, Check: outward.Check, Now: db.Now, Rand: rand.Reader}
	o.senders = append(o.senders, webhook.NewNotifier(outward, o.Webhooks))
	if o.callbacks, err = callbackSender(c, db.Now); err != nil {
		return err
	}
	if o.callbacks != nil {
		o.senders = append(o.senders, o.callbacks.Callbacks())
		o.callbackStore = &confirm.Callbacks{Store: store.Confirmations{DB: db}, Check: o.callbacks.Check}
	}
	return nil
}

func (o *opener) makeMessages(context.Context) (err error) {
	o.Messages, err = notify.New(o.Config.Messages.Settings(), notify.Deps{
		Store: store.Outbox{DB: o.DB}, Vault: o.ring, Templates: o.templates,
		Notifiers: o.senders, Listeners: o.Webhooks,
		Preferences: notify.ByPolicy{Policies: o.Policies}, Recipients: o.recipients, Zones: store.Users{DB: o.DB}, Now: o.DB.Now, Rand: rand.Reader,
		Delivered: countMessages(o.metrics, o.watch),
		Failed:    func(err error) { o.log.Error("delivering messages", "error", err) },
	})
	return err
}

// makePeople makes what operators manage: users with their contacts, their requests that wait, and the
// policies.
func (o *opener) makePeople(context.Context) (err error) {
	c, db := o.Config, o.DB
	people := store.Users{DB: db}
	o.reach = &reach.Service{Store: people, Now: db.Now}
	o.Sessions = session.New(store.Tokens{DB: db})
	o.follower = operation.Follower{Store: store.Operations{DB: db}, Keep: c.Operations.Keep}
	records := store.Confirmations{DB: db}
	o.cancels = confirm.NewCanceller(confirm.CancelDeps{
		Store: records, Answers: records, Audit: o.Audit, Events: o.Messages, Render: tokenapi.RenderCallback, Follower: o.follower,
		Language: o.confirmationRules().Language, Now: db.Now,
	})
	if o.naming, err = c.Users.Naming(); err != nil {
		return err
	}
	if err := contact.SetPhoneRegion(c.Users.PhoneRegion); err != nil {
		return err
	}
	contacts := store.Contacts{DB: db}
	o.contactDeps = contact.Deps{
		Store: contacts, Codes: contacts, Reach: o.reach, Methods: o.Sessions, Confirmations: o.cancels, Notices: o.Messages, Vault: o.ring,
		Now: db.Now, Rand: rand.Reader,
	}
	if o.Contacts, err = contact.New(c.Users.Contacts(), o.contactDeps); err != nil {
		return err
	}
	o.Users = &user.Service{
		Store: people, GroupStore: people, LoginStore: people, NameStore: people, SearchStore: people, Batches: people, Zones: people,
		Sessions: o.Sessions, Confirmations: o.cancels, Contacts: o.Contacts, Events: o.Messages, Naming: o.naming, Now: db.Now, Rand: rand.Reader,
		LocalIssuer: config.LocalIssuer, Issuers: c.AllIssuers(), LockDelayUnit: c.Users.LockDelayUnit,
		Turns: searchTurns(c.DatabaseConnections),
	}
	o.Approvals = approval.New(approval.Deps{
		Store: store.Approvals{DB: db}, Reach: o.reach, Events: o.Messages, Vault: o.ring, Audit: o.Audit, Now: db.Now, Rand: rand.Reader,
		Life: c.Users.RequestLife, Keep: c.Messages.Keep,
	})
	o.PolicyEditor = newPolicyEditor(o.Policies, o.reach, o.cancels, o.Messages)
	return nil
}

func (o *opener) confirmationRules() confirm.Settings {
	return o.Config.Confirmation.Settings(&o.Config.Documents, o.Config.Messages.Language)
}

// makeFactors makes the ways to prove a user besides a password: tokens with one-time passwords, passkeys,
// and approvals by devices.
func (o *opener) makeFactors(context.Context) (err error) {
	c, db := o.Config, o.DB
	o.oathDeps = oath.Deps{
		Store: store.Tokens{DB: db}, Sessions: o.Sessions, Confirmations: o.cancels, Reach: o.reach, Events: o.Messages,
		Vault: o.ring, Paint: qr.GIF, Now: db.Now, Rand: rand.Reader,
	}
	if o.Oath, err = oath.New(c.Oath.Settings(c.Messages.Title), o.oathDeps); err != nil {
		return err
	}
	o.Passkeys, o.ownPasskeys, err = newPasskeys(c, passkey.Deps{
		Store: store.Passkeys{DB: db}, Sessions: o.Sessions, Confirmations: o.cancels, Reach: o.reach, Events: o.Messages, Vault: o.ring, Now: db.Now, Rand: rand.Reader,
	})
	if err != nil {
		return err
	}
	o.deviceSettings = c.Devices.Settings(c.BaseURL(), c.Messages.Title)
	devices := store.Devices{DB: db}
	o.approvals, err = device.NewApprovals(o.deviceSettings, device.ApprovalDeps{
		Devices: devices, Keys: devices, Vault: o.ring, Users: o.Users, Messages: o.Messages, Now: db.Now, Rand: rand.Reader,
	})
	if err != nil {
		return fmt.Errorf("devices: %w", err)
	}
	if sender := browserSender(o.senders); sender != nil {
		o.browserKey = sender.BrowserKey()
		o.browsers = device.NewBrowsers(device.BrowserDeps{
			Store: store.Browsers{DB: db}, Vault: o.ring, Reach: self, Messages: o.Messages, Check: sender.CheckBrowser,
			Admit: admitTrials(), Now: db.Now,
		})
	}
	return nil
}

func (o *opener) makeConfirmations(context.Context) (err error) {
	records := store.Confirmations{DB: o.DB}
	deps := confirm.Deps{
		Store: records, Answers: records, Codes: store.Contacts{DB: o.DB}, Assigned: records, Contacts: o.Contacts,
		Oath: o.Oath, Devices: approvers{o.approvals}, Messages: o.Messages, Callbacks: o.callbackStore, Render: tokenapi.RenderCallback, Follower: o.follower,
		Vault: o.ring, Audit: o.Audit, Now: o.DB.Now, Rand: rand.Reader,
	}
	if o.Passkeys != nil {
		deps.Passkeys = o.Passkeys
	}
	if o.browsers != nil {
		deps.Browsers = o.browsers
	}
	if o.Confirm, err = confirm.New(o.confirmationRules(), deps); err != nil {
		return fmt.Errorf("confirmation: %w", err)
	}
	return nil
}

func (o *opener) makeDevices(context.Context) error {
	c, db := o.Config, o.DB
	contacts, devices := store.Contacts{DB: db}, store.Devices{DB: db}
	codes, err := contact.NewCodes(contact.CodeSettings{
		Digits: c.Devices.Codes.Digits, Life: c.Devices.Codes.Life, Attempts: c.Devices.Codes.Attempts, Resend: c.Devices.Codes.Resend,
	}, contacts, o.ring, db.Now, rand.Reader)
	if err != nil {
		return fmt.Errorf("devices.codes: %w", err)
	}
	o.deviceDeps = device.Deps{
		Devices: devices, KInits: devices, Nonces: devices, Keys: devices, Browsers: store.Browsers{DB: db}, Vault: o.ring, Users: o.Users, Contacts: contacts, Codes: codes,
		Messages: o.Messages, Methods: o.Sessions, Confirmations: o.cancels, Paint: qr.GIF, Now: db.Now, Rand: rand.Reader,
		AdmitAnonymous: admitAnonymous(c),
	}
	if o.Devices, err = device.New(o.deviceSettings, o.deviceDeps); err != nil {
		return fmt.Errorf("devices: %w", err)
	}
	return nil
}

// makeOwn makes the services with which users change their own accounts.
func (o *opener) makeOwn(context.Context) (err error) {
	if o.own, err = newOwn(o.Config, o.deviceSettings, o.contactDeps, o.oathDeps, o.deviceDeps); err != nil {
		return err
	}
	o.own.passkeys = o.ownPasskeys
	o.own.policies = newPolicyEditor(o.Policies, self, o.cancels, o.Messages)
	return nil
}

func (o *opener) makeAuthority(context.Context) (err error) {
	records := store.Authority{DB: o.DB}
	c := &o.Config.Certificates
	o.Authority, err = authority.New(authority.Config{
		BaseURL: o.Config.BaseURL(), Holder: o.Config.AuthorityHolder(), Elapsed: elapsed(), Generations: records,
		Organization: c.Organization, Name: c.CommonName, RootYears: c.RootYears, IssuingYears: c.IssuingYears, Life: min(c.Life, c.LongestLife), CRLLife: c.CRLLife,
	}, records, o.holders, rand.Reader, o.DB.Now)
	if err != nil {
		return err
	}
	o.anchors, err = newAnchors(o.Config, o.Authority)
	return err
}

// openEvidence opens the source of time stamps and revocation data. A command has none.
func (o *opener) openEvidence(context.Context) error {
	o.sources = &sourceStates{now: o.DB.Now}
	if o.purpose != ForServer {
		return nil
	}
	measureClock(o.metrics, o.DB)
	o.metrics.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	local, err := localAuthority(o.Config, o.Authority, o.Audit, o.log)
	if err != nil {
		return err
	}
	count := countEvidence(o.metrics)
	observe := func(e evidence.Event) { count(e); o.sources.note(e) }
	if o.network, err = openEvidence(o.Config, o.Config.Evidence, o.Policies, o.anchors, o.DB.Now, observe, local); err != nil {
		return err
	}
	o.closing("the source of evidence", func() error { o.network.Close(); return nil })
	o.status = revocations{o.network}
	return nil
}

func (o *opener) makeKeys(context.Context) error {
	c := o.Config
	enrolment, err := enrolment(c, o.naming)
	if err != nil {
		return err
	}
	placement := c.Placement()
	placement.Groups = groupsOf{o.Users}
	records := store.Keys{DB: o.DB}
	o.Keys, err = keys.New(keys.Options{
		Store: records, RequestStore: records, StatusStore: records, PINStore: records, DeletionStore: records,
		Holders: o.holders, Placement: placement, Authority: o.Authority,
		Rand: rand.Reader, Now: o.DB.Now, PINAttempts: c.PIN.Attempts, PINMode: keys.PINMode(c.PIN.Mode), PINLength: c.PIN.MinLength, SimplePINs: c.PIN.AllowSimple,
		Exportable: c.Certificates.Exportable, ExportableByUsers: c.Certificates.ExportableByUsers,
		Policy: o.Policies, Confirmation: o.Policies, Events: o.Messages, Profiles: profiles{o.Users, enrolment.Proves()},
		Enrolment: enrolment, Evidence: o.status, StatusAge: c.Certificates.StatusAge, RefuseEnded: !c.Decryption.EndedCertificates,
	})
	o.Users.Messages = o.Keys
	return err
}

func (o *opener) makeOperations(context.Context) (err error) {
	ordered := o.Config.Operations.Settings()
	ordered.Life, ordered.Lease = o.Config.Confirmation.Life, o.Config.Confirmation.Lease
	o.Operations, err = operation.New(ordered, operation.Deps{
		Store: store.Operations{DB: o.DB}, Lists: store.Operations{DB: o.DB}, Confirmations: o.Confirm, Vault: o.ring, Audit: store.Audit{DB: o.DB}, Now: o.DB.Now, Rand: rand.Reader,
		Failed: func(err error) { o.log.Error("carrying out operations", "error", err) },
	}, o.kinds()...)
	return err
}
