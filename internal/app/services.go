// SPDX-License-Identifier: Apache-2.0

// Package app puts the service together from a configuration.
//
//   - Open opens the database and makes every service that needs no tables. A new database gets
//     its tables next, from Base.Migrate.
//   - Base.Services adds sign-in, which needs the tables. Administrative commands work with Services.
//   - NewServer puts the web interfaces on one server, and Server.Serve runs it until the
//     context ends.
//
// Formats is the one list of signature formats.
//
// The package reads no flags and prints nothing: the packages below internal/cli do. It has no rules
// of its own: the packages below internal/domain do.
package app

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/url"
	"os"
	"strings"
	"sync/atomic"

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
	"tamga/internal/domain/audit"
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
	"tamga/internal/domain/policy"
	"tamga/internal/domain/reach"
	"tamga/internal/domain/session"
	"tamga/internal/domain/signin"
	"tamga/internal/domain/token"
	"tamga/internal/domain/user"
	"tamga/internal/domain/vault"
	"tamga/internal/files"
	"tamga/internal/web/tokenapi"
)

// Base is an installation whose database is open but may have no tables yet. Its fields never
// change after Open.
type Base struct {
	Config *config.Config
	DB     *store.DB
	Audit  audit.Log

	Policies     *policy.Service
	PolicyEditor *policy.Editor
	Webhooks     *notify.Subscriptions
	Messages     *notify.Service
	Captured     *capture.Box // nil unless messages are captured
	Sessions     *session.Service
	Contacts     *contact.Book
	Users        *user.Service
	Devices      *device.Service
	Oath         *oath.Service
	Passkeys     *passkey.Service // nil: the installation has none
	Confirm      *confirm.Service
	Approvals    *approval.Service
	Authority    *authority.Service
	Keys         *keys.Service
	Operations   *operation.Service

	log       *slog.Logger
	ring      *vault.Ring
	reach     *reach.Service
	passwords *password.Hasher
	printer   signin.Printer
	metrics   *prometheus.Registry
	network   *evidence.Source // nil for a command
	anchors   *anchors
	sources   *sourceStates
	callbacks *webhook.Sender // nil: the installation makes no callbacks
	holders   *vault.Holders  // of private keys
	version   string          // of the program, of a server
	source    configSource    // where the configuration came from; zero: it cannot be changed

	certificate *atomic.Pointer[tls.Certificate] // of TLS; nil in it: plain HTTP
	own         own
	opened      closers
}

// Purpose is what an installation is opened for.
type Purpose int

// The purposes. Only a server asks outside services about certificates. The limits of database
// calls differ.
const (
	ForCommand Purpose = iota
	ForServer
)

// Open opens the database and makes every service that needs no tables, each after the services
// that it uses. Open writes nothing to the database. The caller closes the result.
func Open(ctx context.Context, c *config.Config, purpose Purpose, log *slog.Logger) (made *Base, err error) {
	ring, err := openRing(c)
	if err != nil {
		return nil, err
	}
	address, err := databaseURL(c)
	if err != nil {
		return nil, err
	}
	remember := c.PIN.Remember
	if purpose == ForCommand { // signs once, if at all
		remember = 0
	}
	holders, err := openHolders(c, ring, remember, log)
	if err != nil {
		return nil, err
	}
	passwords, err := password.New(password.Cost{
		MemoryKiB: uint32(c.Argon2.Memory >> 10),
		Passes:    uint32(c.Argon2.Passes),
		Lanes:     1,
	}, int64(c.Argon2.Memory>>10)*int64(c.Argon2.Parallel), attempts(c), rand.Reader)
	if err != nil {
		return nil, err
	}
	limits := store.CommandLimits
	if purpose == ForServer {
		limits = store.ServingLimits(c.DatabaseWait)
	}
	db, err := store.Open(ctx, store.Options{URL: address, Connections: c.DatabaseConnections, Limits: limits, Log: log})
	if err != nil {
		return nil, err
	}
	opened := closers{{"the database", db.Close}, {"the holders of the keys", holders.Close}}
	defer func() {
		if err != nil {
			opened.close(log)
		}
	}()
	metrics := prometheus.NewRegistry()

	policies, err := newPolicies(c, db)
	if err != nil {
		return nil, err
	}
	var own fs.FS
	if dir := c.Messages.TemplatesDir; dir != "" {
		own = os.DirFS(c.Path(dir))
	}
	templates, err := notify.NewTemplates(c.Messages.Title, own)
	if err != nil {
		return nil, fmt.Errorf("messages.templates_dir: %w", err)
	}
	printer, err := printing.New(c.Messages.Language, c.Messages.Title, own)
	if err != nil {
		return nil, fmt.Errorf("messages.templates_dir: %w", err)
	}
	deviceStore, contactStore := store.Devices{DB: db}, store.Contacts{DB: db}
	recipients := recipients{
		contacts: contact.Addresses{Store: contactStore},
		devices:  device.NewAddresses(deviceStore, ring, db.Now),
	}
	var captured *capture.Box
	var senders []notify.Notifier
	if c.Messages.Capture {
		captured = capture.New(store.Captured{DB: db}, ring)
		senders = captured.Notifiers()
	} else if senders, err = notifiers(c, db.Now, recipients.devices); err != nil {
		return nil, err
	}
	for _, n := range senders {
		if closer, ok := n.(io.Closer); ok {
			opened = append(opened, opening{"a sender of messages", closer.Close})
		}
	}
	outward, err := outward(c, db.Now)
	if err != nil {
		return nil, fmt.Errorf("webhooks: %w", err)
	}
	webhooks := &notify.Subscriptions{Store: store.Webhooks{DB: db}, Vault: ring, Check: outward.Check, Now: db.Now, Rand: rand.Reader}
	senders = append(senders, webhook.NewNotifier(outward, webhooks))
	called, err := callbackSender(c, db.Now)
	if err != nil {
		return nil, err
	}
	records := store.Confirmations{DB: db}
	var callbacks *confirm.Callbacks
	if called != nil {
		senders, callbacks = append(senders, called.Callbacks()), &confirm.Callbacks{Store: records, Check: called.Check}
	}
	messages, err := notify.New(c.Messages.Settings(), notify.Deps{
		Store: store.Outbox{DB: db}, Vault: ring, Templates: templates,
		Notifiers: senders, Listeners: webhooks,
		Preferences: notify.ByPolicy{Policies: policies}, Recipients: recipients, Now: db.Now, Rand: rand.Reader,
		Delivered: countMessages(metrics),
		Failed:    func(err error) { log.Error("delivering messages", "error", err) },
	})
	if err != nil {
		return nil, err
	}

	userStore := store.Users{DB: db}
	reach := &reach.Service{Store: userStore, Now: db.Now}
	sessions := session.New(store.Tokens{DB: db})
	rules := c.Confirmation.Settings(&c.Documents, c.Messages.Language)
	follower := operation.Follower{Store: store.Operations{DB: db}, Keep: c.Operations.Keep}
	cancels := confirm.NewCanceller(confirm.CancelDeps{
		Store: records, Answers: records, Audit: store.Audit{DB: db}, Events: messages, Render: tokenapi.RenderCallback, Follower: follower, Language: rules.Language, Now: db.Now,
	})
	naming, err := c.Users.Naming()
	if err != nil {
		return nil, err
	}
	contactDeps := contact.Deps{
		Store: contactStore, Codes: contactStore, Reach: reach, Methods: sessions, Confirmations: cancels, Notices: messages, Vault: ring,
		Now: db.Now, Rand: rand.Reader,
	}
	if err := contact.SetPhoneRegion(c.Users.PhoneRegion); err != nil {
		return nil, err
	}
	contacts, err := contact.New(c.Users.Contacts(), contactDeps)
	if err != nil {
		return nil, err
	}
	users := &user.Service{
		Store: userStore, GroupStore: userStore, LoginStore: userStore, NameStore: userStore, SearchStore: userStore, Batches: userStore,
		Sessions: sessions, Confirmations: cancels, Contacts: contacts, Events: messages, Naming: naming, Now: db.Now, Rand: rand.Reader,
		LocalIssuer: config.LocalIssuer, Issuers: c.AllIssuers(), LockDelayUnit: c.Users.LockDelayUnit,
		Turns: searchTurns(c.DatabaseConnections),
	}
	oathDeps := oath.Deps{
		Store: store.Tokens{DB: db}, Sessions: sessions, Confirmations: cancels, Reach: reach, Events: messages,
		Vault: ring, Paint: qr.GIF, Now: db.Now, Rand: rand.Reader,
	}
	tokens, err := oath.New(c.Oath.Settings(c.Messages.Title), oathDeps)
	if err != nil {
		return nil, err
	}
	waiting := approval.New(approval.Deps{
		Store: store.Approvals{DB: db}, Reach: reach, Events: messages, Vault: ring, Audit: store.Audit{DB: db}, Now: db.Now, Rand: rand.Reader,
		Life: c.Users.RequestLife, Keep: c.Messages.Keep,
	})
	policyEditor := newPolicyEditor(policies, reach, cancels, messages)
	deviceCodes, err := contact.NewCodes(contact.CodeSettings{
		Digits: c.Devices.Codes.Digits, Life: c.Devices.Codes.Life, Attempts: c.Devices.Codes.Attempts, Resend: c.Devices.Codes.Resend,
	}, contactStore, ring, db.Now, rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("devices.codes: %w", err)
	}
	deviceSettings := c.Devices.Settings(c.BaseURL(), c.Messages.Title)
	approvals, err := device.NewApprovals(deviceSettings, device.ApprovalDeps{
		Devices: deviceStore, Keys: deviceStore, Vault: ring, Users: users, Messages: messages, Now: db.Now, Rand: rand.Reader,
	})
	if err != nil {
		return nil, fmt.Errorf("devices: %w", err)
	}
	passkeys, ownPasskeys, err := newPasskeys(c, passkey.Deps{
		Store: store.Passkeys{DB: db}, Sessions: sessions, Confirmations: cancels, Reach: reach, Events: messages, Vault: ring, Now: db.Now, Rand: rand.Reader,
	})
	if err != nil {
		return nil, err
	}
	confirmDeps := confirm.Deps{
		Store: records, Answers: records, Codes: contactStore, Assigned: records, Contacts: contacts,
		Oath: tokens, Devices: approvers{approvals}, Messages: messages, Callbacks: callbacks, Render: tokenapi.RenderCallback, Follower: follower, Vault: ring, Audit: store.Audit{DB: db}, Now: db.Now, Rand: rand.Reader,
	}
	if passkeys != nil {
		confirmDeps.Passkeys = passkeys
	}
	confirmations, err := confirm.New(rules, confirmDeps)
	if err != nil {
		return nil, fmt.Errorf("confirmation: %w", err)
	}
	deviceDeps := device.Deps{
		Devices: deviceStore, KInits: deviceStore, Nonces: deviceStore, Keys: deviceStore, Vault: ring, Users: users, Contacts: contactStore, Codes: deviceCodes,
		Messages: messages, Methods: sessions, Confirmations: cancels, Paint: qr.GIF, Now: db.Now, Rand: rand.Reader,
		AdmitAnonymous: admitAnonymous(c),
	}
	devices, err := device.New(deviceSettings, deviceDeps)
	if err != nil {
		return nil, fmt.Errorf("devices: %w", err)
	}
	mine, err := newOwn(c, deviceSettings, contactDeps, oathDeps, deviceDeps)
	if err != nil {
		return nil, err
	}
	mine.passkeys = ownPasskeys
	mine.policies = newPolicyEditor(policies, self, cancels, messages)

	authority, err := authority.New(authority.Config{BaseURL: c.BaseURL(), Holder: c.AuthorityHolder(), Elapsed: elapsed(), Generations: store.Authority{DB: db}}, store.Authority{DB: db}, holders, rand.Reader, db.Now)
	if err != nil {
		return nil, err
	}
	enrolment, err := enrolment(c, naming)
	if err != nil {
		return nil, err
	}
	anchors, err := newAnchors(c, authority)
	if err != nil {
		return nil, err
	}
	var network *evidence.Source
	sources := &sourceStates{now: db.Now}
	var status keys.Evidence = noEvidence{}
	if purpose == ForServer {
		measureClock(metrics, db)
		metrics.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
		local, err := localAuthority(c, authority, store.Audit{DB: db}, log)
		if err != nil {
			return nil, err
		}
		count := countEvidence(metrics)
		observe := func(e evidence.Event) { count(e); sources.note(e) }
		if network, err = openEvidence(c, c.Evidence, policies, anchors, db.Now, observe, local); err != nil {
			return nil, err
		}
		opened = append(opened, opening{"the source of evidence", func() error { network.Close(); return nil }})
		status = revocations{network}
	}
	placement := c.Placement()
	placement.Groups = groupsOf{users}
	keyStore := store.Keys{DB: db}
	keys, err := keys.New(keys.Options{
		Store: keyStore, RequestStore: keyStore, StatusStore: keyStore, PINStore: keyStore, DeletionStore: keyStore,
		Holders: holders, Placement: placement, Authority: authority,
		Rand: rand.Reader, Now: db.Now, PINAttempts: c.PIN.Attempts, PINMode: keys.PINMode(c.PIN.Mode), PINLength: c.PIN.MinLength, SimplePINs: c.PIN.AllowSimple,
		Exportable: c.Certificates.Exportable, ExportableByUsers: c.Certificates.ExportableByUsers, Policy: policies, Confirmation: policies, Events: messages, Profiles: profiles{users, enrolment.Proves()},
		Enrolment: enrolment, Evidence: status, StatusAge: c.Certificates.StatusAge,
	})
	if err != nil {
		return nil, err
	}
	base := &Base{
		Config: c, DB: db, Audit: store.Audit{DB: db},
		Policies: policies, PolicyEditor: policyEditor, Webhooks: webhooks, Messages: messages, Captured: captured, Sessions: sessions,
		Contacts: contacts, Users: users, Devices: devices, Oath: tokens, Passkeys: passkeys, Confirm: confirmations, Approvals: waiting, Authority: authority, Keys: keys,
		log: log, ring: ring, reach: reach, passwords: passwords, printer: printer, metrics: metrics, network: network, anchors: anchors, sources: sources, certificate: &atomic.Pointer[tls.Certificate]{}, callbacks: called, own: mine, opened: opened,
		holders: holders,
	}
	ordered := c.Operations.Settings()
	ordered.Life, ordered.Lease = c.Confirmation.Life, c.Confirmation.Lease
	base.Operations, err = operation.New(ordered, operation.Deps{
		Store: store.Operations{DB: db}, Lists: store.Operations{DB: db}, Confirmations: confirmations, Vault: ring, Audit: store.Audit{DB: db}, Now: db.Now, Rand: rand.Reader,
		Failed: func(err error) { log.Error("carrying out operations", "error", err) },
	}, base.kinds()...)
	if err != nil {
		return nil, err
	}
	return base, nil
}

// Close closes what Open opened.
func (b *Base) Close() { b.opened.close(b.log) }

// Migrate brings the database to the schema of this release.
func (b *Base) Migrate(ctx context.Context) error { return b.DB.Migrate(ctx) }

// Services is an installation whose database has its tables, with all services of internal/domain.
// Its fields never change.
type Services struct {
	*Base
	Tokens   *token.Service
	Identity *signin.Service // sign-in and authentication methods
}

// Services adds sign-in. It returns an error if the database lacks tables of this release. The first
// call on a new database makes the key that signs tokens.
func (b *Base) Services(ctx context.Context) (*Services, error) {
	if err := b.usable(ctx); err != nil {
		return nil, err
	}
	if err := b.settleKeys(ctx, b.ring); err != nil {
		return nil, err
	}
	tokens, err := newTokens(ctx, b)
	if err != nil {
		return nil, err
	}
	identity, err := newIdentity(b, tokens)
	if err != nil {
		return nil, err
	}
	return &Services{b, tokens, identity}, nil
}

// closers lists what must be closed, in the order in which it was opened.
type closers []opening

type opening struct {
	what  string
	close func() error
}

// close closes in reverse order and logs errors.
func (c closers) close(log *slog.Logger) {
	for i := len(c) - 1; i >= 0; i-- {
		if err := c[i].close(); err != nil {
			log.Error("closing "+c[i].what, "error", err)
		}
	}
}

// databaseURL returns the setting database with an absolute path and with the password.
func databaseURL(c *config.Config) (string, error) {
	if file, ok := strings.CutPrefix(c.Database, "sqlite:"); ok {
		return "sqlite:" + c.Path(file), nil
	}
	if c.DatabasePasswordFile == "" {
		return c.Database, nil
	}
	password, err := files.OwnSecret(secretPath(c, c.DatabasePasswordFile), "database_password_file")
	if err != nil {
		return "", err
	}
	u, err := url.Parse(c.Database)
	if err != nil {
		return "", errors.New("database: not a URL")
	}
	u.User = url.UserPassword(u.User.Username(), password)
	return u.String(), nil
}

// HasTables reports whether the database of a configuration is in use. It needs no master key and makes
// no file.
func HasTables(ctx context.Context, c *config.Config) (bool, error) {
	if file, ok := strings.CutPrefix(c.Database, "sqlite:"); ok {
		info, err := os.Stat(c.Path(file))
		if errors.Is(err, fs.ErrNotExist) || err == nil && info.Size() == 0 {
			return false, nil
		}
		if err != nil {
			return false, err
		}
	}
	address, err := databaseURL(c)
	if err != nil {
		return false, err
	}
	db, err := store.Open(ctx, store.Options{URL: address, Connections: 2, Limits: store.CommandLimits})
	if err != nil {
		return false, err
	}
	defer db.Close()
	err = db.Migrated(ctx)
	var schema *store.SchemaError
	if errors.As(err, &schema) {
		return schema.Have > 0, nil
	}
	return err == nil, err
}

// openRing reads the master keys.
func openRing(c *config.Config) (*vault.Ring, error) {
	keys := map[string][]byte{}
	defer func() { // the ring has its own copies
		for _, key := range keys {
			clear(key)
		}
	}()
	for id := range c.MasterKeys.Files {
		key, err := readMasterKey(c, id)
		keys[id] = key
		if err != nil {
			return nil, err
		}
	}
	return vault.NewRing(c.MasterKeys.Active, keys, rand.Reader)
}

// readMasterKey reads one master key. The caller wipes the result.
func readMasterKey(c *config.Config, id string) ([]byte, error) {
	what := "master key " + id
	text, err := files.OwnSecretBytes(secretPath(c, c.MasterKeys.Files[id]), what)
	if err != nil {
		return nil, err
	}
	key := make([]byte, hex.DecodedLen(len(text)))
	_, err = hex.Decode(key, text)
	clear(text)
	if err != nil || len(key) != 32 {
		clear(key)
		return nil, fmt.Errorf("%s: not 64 hexadecimal digits; make a key with: openssl rand -hex 32", what)
	}
	return key, nil
}

// usable returns an error if the database has an older schema. A newer schema is fine: migrations
// only add.
func (b *Base) usable(ctx context.Context) error {
	err := b.DB.Migrated(ctx)
	var schema *store.SchemaError
	if errors.As(err, &schema) && schema.Newer() {
		b.log.Warn("the database was migrated by a later release", "error", err)
		return nil
	}
	return err
}
