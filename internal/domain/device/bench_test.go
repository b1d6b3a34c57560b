// SPDX-License-Identifier: Apache-2.0

package device_test

import (
	"context"
	"crypto"
	"crypto/rand"
	"database/sql"
	"encoding/base64"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"tamga/internal/adapter/store"
	"tamga/internal/adapter/store/storetest"
	"tamga/internal/domain/audit"
	"tamga/internal/domain/contact"
	"tamga/internal/domain/device"
	"tamga/internal/domain/device/message"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/notify"
	"tamga/internal/domain/user"
	"tamga/internal/domain/vault"
	"tamga/pki/suite"
	"tamga/pki/x509gost"
)

const (
	serviceURL = "https://tamga.example.ru/DssApiGateway"
	systemID   = "6e1f3f64-8f0b-4a3e-9b57-0d6a0f3f7a01"
	phone      = "79261234567"
	email      = "petrov@example.ru"
)

// bench is a Service over a database of its own, with a user "petrov" who has a
// confirmed phone and e-mail, and a user "sidorova".
type bench struct {
	*device.Service
	*device.Addresses
	approvals *device.Approvals
	t         testing.TB
	db        *store.DB
	file      string // of the database
	// admitAnonymous is [device.Deps.AdmitAnonymous] if it is set.
	admitAnonymous func(ctx context.Context) error

	users    *user.Service
	post     *post
	lost     []string // users whose last device was lost
	ended    []string // reasons for which confirmations of petrov ended
	clock    time.Time
	operator audit.Principal
	other    audit.Principal // an operator of another group
	petrov   string
	sidorova string
}

// post remembers what was sent.
type post struct {
	channels []notify.Channel
	orders   []notify.Direct
	events   []notify.Event
	fails    error // of Emit
}

func (p *post) Available() []notify.Channel { return p.channels }

func (p *post) Order(_ context.Context, d notify.Direct) error {
	p.orders = append(p.orders, d)
	return nil
}

func (p *post) Emit(_ context.Context, e notify.Event) error {
	if p.fails != nil {
		return p.fails
	}
	p.events = append(p.events, e)
	return nil
}

// code is the activation code that was sent last.
func (p *post) code(t testing.TB) string {
	t.Helper()
	for _, o := range slices.Backward(p.orders) {
		if o.Template == notify.TemplateDeviceCode {
			return o.Data["Code"]
		}
	}
	t.Fatal("no activation code was sent")
	return ""
}

// silent are sessions of users who have none.
type silent struct{}

func (silent) EndAll(context.Context, string) error  { return nil }
func (silent) Forgive(context.Context, string) error { return nil }

type gone struct{ b *bench }

func (g gone) DevicesGone(_ context.Context, userID string) error {
	g.b.lost = append(g.b.lost, userID)
	return nil
}

func (b *bench) CancelAll(_ context.Context, _ audit.Principal, userID, reason string) error {
	if userID == b.petrov {
		b.ended = append(b.ended, reason)
	}
	return nil
}

func newBench(t testing.TB, change ...func(*device.Settings)) *bench {
	t.Helper()
	file := filepath.Join(t.TempDir(), "tamga.db")
	b := newBenchOn(t, storetest.Open(t, storetest.SQLiteFile(t, file)), change...)
	b.file = file
	return b
}

func newBenchOn(t testing.TB, db *store.DB, change ...func(*device.Settings)) *bench {
	t.Helper()
	b := &bench{t: t, db: db, clock: time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC), post: &post{channels: []notify.Channel{notify.Email, notify.SMS}}}
	now := func() time.Time { return b.clock }
	ring, err := vault.NewRing("test", map[string][]byte{"test": make([]byte, vault.MasterKeySize)}, rand.Reader)
	must(t, err)
	naming, err := user.NewNaming(user.DefaultComponents(), false)
	must(t, err)
	users := store.Users{DB: b.db}
	b.users = &user.Service{
		Store: users, GroupStore: users, LoginStore: users, NameStore: users, SearchStore: users,
		Sessions: silent{}, Confirmations: storetest.Unconfirmed{}, Events: b.post, Naming: naming, Now: now, Rand: rand.Reader,
	}
	contacts := store.Contacts{DB: b.db}
	codes, err := contact.NewCodes(contact.CodeSettings{Digits: 8, Life: 10 * time.Minute, Attempts: 5, Resend: time.Minute}, contacts, ring, now, rand.Reader)
	must(t, err)
	settings := device.DefaultSettings()
	settings.ServiceURL = serviceURL
	settings.Systems = []device.System{{ID: systemID, Name: "Tamga"}}
	for _, c := range change {
		c(&settings)
	}
	b.Addresses = device.NewAddresses(store.Devices{DB: b.db}, store.Browsers{DB: b.db}, ring, now)
	b.approvals, err = device.NewApprovals(settings, device.ApprovalDeps{
		Devices: store.Devices{DB: b.db}, Keys: store.Devices{DB: b.db}, Vault: ring, Users: b.users, Messages: b.post, Now: now, Rand: rand.Reader,
	})
	must(t, err)
	b.Service, err = device.New(settings, device.Deps{
		Devices: store.Devices{DB: b.db}, KInits: store.Devices{DB: b.db}, Nonces: store.Devices{DB: b.db}, Keys: store.Devices{DB: b.db}, Browsers: store.Browsers{DB: b.db}, Vault: ring, Users: b.users, Contacts: contacts, Codes: codes, Messages: b.post,
		Methods: gone{b}, Confirmations: b, Paint: func(text string) ([]byte, error) { return []byte("GIF89a " + text), nil },
		AdmitAnonymous: func(ctx context.Context) error {
			if b.admitAnonymous == nil {
				return nil
			}
			return b.admitAnonymous(ctx)
		},
		Now: now, Rand: rand.Reader,
	})
	must(t, err)
	for _, g := range []string{"Default", "Other"} {
		_, err := b.users.AddGroup(t.Context(), g, "")
		must(t, err)
	}
	add := func(a user.Account) audit.Principal {
		u, err := b.users.Add(t.Context(), a)
		must(t, err)
		return audit.Principal{UserID: u.ID, Login: u.Login, Group: u.Group, Operator: a.Operator}
	}
	b.operator = add(user.Account{Login: "operator", Operator: true, Groups: []string{"Default"}})
	b.other = add(user.Account{Login: "other operator", Operator: true, Groups: []string{"Other"}})
	b.petrov = add(user.Account{Login: "petrov", Group: "Default"}).UserID
	b.sidorova = add(user.Account{Login: "sidorova", Group: "Default"}).UserID
	b.contact(b.petrov, contact.Phone, phone, true)
	b.contact(b.petrov, contact.Email, email, true)
	b.contact(b.petrov, contact.Phone, "79260000000", false)
	b.contact(b.petrov, contact.Email, "new@example.ru", false)
	return b
}

func (b *bench) contact(userID string, kind contact.Kind, value string, confirmed bool) {
	b.t.Helper()
	s := store.Contacts{DB: b.db}
	_, err := s.AddContact(b.t.Context(), contact.Contact{UserID: userID, Type: kind.Type, Value: value, CreatedAt: b.clock}, value, false)
	must(b.t, err)
	if confirmed {
		must(b.t, s.ConfirmContact(b.t.Context(), userID, kind.Type, value))
	}
}

// sql runs a statement directly on the database.
func (b *bench) sql(statement string, args ...any) {
	b.t.Helper()
	pool, err := sql.Open("sqlite", b.file)
	must(b.t, err)
	defer pool.Close()
	result, err := pool.ExecContext(b.t.Context(), statement, args...)
	must(b.t, err)
	if n, err := result.RowsAffected(); n == 0 || err != nil {
		b.t.Fatalf("%s changed %d rows: %v", statement, n, err)
	}
}

// gadget is a device that a test controls.
type gadget struct {
	b      *bench
	suite  *suite.Suite
	key    crypto.Signer
	spki   []byte
	kid    string
	number int64
}

func (b *bench) gadget(s *suite.Suite) *gadget {
	b.t.Helper()
	key, err := s.Generate(rand.Reader)
	must(b.t, err)
	spki, err := x509gost.MarshalPublicKey(key.Public(), s)
	must(b.t, err)
	return &gadget{b: b, suite: s, key: key, spki: spki}
}

// header is that of the next message.
func (g *gadget) header(kind string) message.Header {
	g.number++
	h := message.Header{Type: kind, Service: serviceURL, Kid: g.kid, Number: g.number, Time: g.b.clock.Unix()}
	if kind == message.Register {
		h.Kid, h.Key = "", g.spki
	}
	return h
}

func (g *gadget) sign(h message.Header, payload any) message.Signed {
	g.b.t.Helper()
	m, err := message.Sign(h, payload, g.key, g.suite, rand.Reader)
	must(g.b.t, err)
	return m
}

func (g *gadget) say(kind string, payload any) message.Signed {
	g.b.t.Helper()
	return g.sign(g.header(kind), payload)
}

// registration answers a QR code.
func (g *gadget) registration(k device.KInit, code string) message.Registration {
	g.b.t.Helper()
	content, err := message.ReadSecret(k.Content.KeyContent)
	must(g.b.t, err)
	return message.Registration{
		KInit:  &message.KInitAnswer{Kid: k.Kid, Proof: message.KInitProof(content, k.Kid, g.spki), Code: code},
		Device: message.About{Name: "Телефон", Type: "cli", AppVersion: "1"},
	}
}

func (g *gadget) register(k device.KInit, code string) (device.Answer, error) {
	g.b.t.Helper()
	a, err := g.b.Register(g.b.t.Context(), g.say(message.Register, g.registration(k, code)))
	if err == nil {
		g.kid = a.Device.Kid
	}
	return a, err
}

func (g *gadget) poll() (device.Answer, error) {
	g.b.t.Helper()
	return g.b.Poll(g.b.t.Context(), g.say(message.Poll, struct{}{}))
}

// verification answers a verification code.
func (g *gadget) verification(v device.Verification) message.VerificationAnswer {
	g.b.t.Helper()
	d := v.Data.Data
	nonce, err := message.ReadSecret(d.Nonce)
	must(g.b.t, err)
	return message.VerificationAnswer{Proof: message.VerificationProof(nonce, seed(g.b.t, d.Seed), d.Kid, g.spki)}
}

func (g *gadget) verify(v device.Verification) (device.Answer, error) {
	g.b.t.Helper()
	return g.b.Verify(g.b.t.Context(), g.say(message.Verify, g.verification(v)))
}

// begin begins an initialization of petrov's device.
func (b *bench) begin() device.KInit {
	b.t.Helper()
	k, err := b.Init(b.t.Context(), b.operator, b.petrov, device.KInitOrder{Phone: phone})
	must(b.t, err)
	return k
}

// registered returns a device of petrov that is not yet verified.
func (b *bench) registered(s *suite.Suite) *gadget {
	b.t.Helper()
	g := b.gadget(s)
	k := b.begin()
	if _, err := g.register(k, b.post.code(b.t)); err != nil {
		b.t.Fatal(err)
	}
	return g
}

// active is a device of petrov that is verified.
func (b *bench) active(s *suite.Suite) *gadget {
	b.t.Helper()
	g := b.registered(s)
	v, err := b.BeginVerification(b.t.Context(), b.operator, b.petrov, g.kid)
	must(b.t, err)
	if _, err := g.verify(v); err != nil {
		b.t.Fatal(err)
	}
	return g
}

// state is what operators see.
func (b *bench) state(kid string) string {
	b.t.Helper()
	info, err := b.Info(b.t.Context(), b.operator, b.petrov)
	must(b.t, err)
	for _, d := range info.Devices {
		if d.Kid == kid {
			return d.State()
		}
	}
	return "none"
}

// codeOf is the code of a fault, "" for success and the text of any other error.
func codeOf(err error) string {
	if f, ok := fault.As(err); ok {
		return f.Code
	}
	if err != nil {
		return err.Error()
	}
	return ""
}

func want(t testing.TB, what string, err error, code string) {
	t.Helper()
	if codeOf(err) != code {
		t.Errorf("%s: %v, want %q", what, err, code)
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

var suites = []*suite.Suite{suite.GOST2012x256, suite.ECDSAP256}

// seed reads the seed of a verification code.
func seed(t testing.TB, text string) []byte {
	t.Helper()
	b, err := base64.RawURLEncoding.DecodeString(text)
	must(t, err)
	return b
}
