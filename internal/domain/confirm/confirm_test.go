// SPDX-License-Identifier: Apache-2.0

package confirm_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"tamga/internal/adapter/store"
	"tamga/internal/adapter/store/storetest"
	"tamga/internal/domain/audit"
	"tamga/internal/domain/confirm"
	"tamga/internal/domain/confirm/what"
	"tamga/internal/domain/contact"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/notify"
	"tamga/internal/domain/oath"
	"tamga/internal/domain/oath/otp"
	"tamga/internal/domain/oath/stock"
	"tamga/internal/domain/session"
	"tamga/internal/domain/signin"
	"tamga/internal/domain/user"
	"tamga/internal/domain/vault"
)

var start = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

const (
	ivanID, annaID = "00000000-0000-4000-8000-000000000001", "00000000-0000-4000-8000-000000000002"
	phone, email   = "79161234567", "ivan@example.org"
	period         = 30 * time.Second
	seed           = "12345678901234567890"
)

var (
	ivan      = audit.Principal{UserID: ivanID, Login: "ivan", ClientID: "client", Actor: "operator"}
	anna      = audit.Principal{UserID: annaID, Login: "anna", ClientID: "client"}
	anonymous = audit.Principal{}
)

// world is a service with its surroundings. Ivan has a phone, an e-mail address, a token
// and two devices; Anna has nothing.
type world struct {
	*confirm.Service
	t        testing.TB
	db       *store.DB
	file     string
	deps     confirm.Deps
	ring     *vault.Ring
	book     *contact.Book
	messages *messages
	devices  *devices
	mu       sync.Mutex
	now      time.Time
	server   bool // the time is that of the database
}

func (w *world) clock() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.server {
		return w.db.Now()
	}
	return w.now
}

func (w *world) wait(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.now = w.now.Add(d)
}

// messages keeps what was ordered.
type messages struct {
	mu       sync.Mutex
	orders   []notify.Direct
	events   []notify.EventType
	calls    []notify.Call
	refuse   error
	channels []notify.Channel
}

func (m *messages) Available() []notify.Channel { return m.channels }

func (m *messages) Order(_ context.Context, d notify.Direct) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.refuse == nil {
		m.orders = append(m.orders, d)
	}
	return m.refuse
}

func (m *messages) Call(_ context.Context, c notify.Call) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.calls = append(m.calls, c)
	return nil
}

func (m *messages) Emit(_ context.Context, e notify.Event) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, known := notify.EventByType(e.Type); !known {
		return fmt.Errorf("the event %q is not in the catalogue", e.Type)
	}
	m.events = append(m.events, e.Type)
	return nil
}

// last returns the last order.
func (m *messages) last(t testing.TB) notify.Direct {
	t.Helper()
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.orders) == 0 {
		t.Fatal("nothing was sent")
	}
	return m.orders[len(m.orders)-1]
}

// devices are phones of Ivan. The signed message is the JSON of the decision.
type devices struct {
	kids    []string
	woken   []string
	old     bool // they have no key of the service
	offline int  // QR codes that were made
	asked   confirm.OfflineOrder
}

func (d *devices) Approvers(_ context.Context, userID string) (list []confirm.Approver, err error) {
	if userID != ivanID {
		return nil, nil
	}
	for _, kid := range d.kids {
		list = append(list, confirm.Approver{Kid: kid, Name: "phone " + kid})
	}
	return list, nil
}

func (d *devices) OpenDecision(_ context.Context, signed []byte) (v confirm.Decision, err error) {
	if err := json.Unmarshal(signed, &v); err != nil || !slices.Contains(d.kids, v.Kid) {
		return v, fault.New(fault.Unauthorized, "unknown device")
	}
	return v, nil
}

// Offline returns a code that depends on all that it is asked for.
func (d *devices) Offline(_ context.Context, userID, kid string, o confirm.OfflineOrder) (qr, code string, err error) {
	if d.old {
		return "", "", nil
	}
	d.offline++
	d.asked = o
	return fmt.Sprintf("QR %d for %s of %s", d.offline, kid, userID), fmt.Sprintf("%s%06d", kid, d.offline), nil
}

func (d *devices) Wake(_ context.Context, userID, kid string) error {
	d.woken = append(d.woken, userID+" "+kid)
	return nil
}

func (d *devices) Reach(context.Context, audit.Principal, string) error { return nil }

func open(t testing.TB, change func(*confirm.Settings)) *world {
	t.Helper()
	file := filepath.Join(t.TempDir(), "tamga.db")
	w := openOn(t, storetest.Open(t, storetest.SQLiteFile(t, file)), change)
	w.file = file
	w.furnish()
	return w
}

// openOn makes a service over a database that has the users of the tests already.
func openOn(t testing.TB, db *store.DB, change func(*confirm.Settings)) *world {
	t.Helper()
	w := &world{
		t: t, db: db, now: start, messages: &messages{channels: []notify.Channel{notify.SMS, notify.Email}},
		devices: &devices{kids: []string{"41", "42"}},
	}
	var err error
	w.ring, err = vault.NewRing("k", map[string][]byte{"k": bytes.Repeat([]byte{7}, vault.MasterKeySize)}, rand.Reader)
	w.must(err)
	contacts, tokens, records := store.Contacts{DB: db}, store.Tokens{DB: db}, store.Confirmations{DB: db}
	sessions := session.New(tokens)
	w.book, err = contact.New(contact.DefaultSettings(), contact.Deps{
		Store: contacts, Codes: contacts, Reach: w.devices, Methods: sessions, Confirmations: storetest.Unconfirmed{}, Notices: w.messages, Vault: w.ring, Now: w.clock, Rand: rand.Reader,
	})
	w.must(err)
	passwords, err := oath.New(oath.DefaultSettings(), oath.Deps{
		Store: tokens, Sessions: sessions, Confirmations: storetest.Unconfirmed{}, Reach: w.devices, Events: w.messages, Vault: w.ring, Now: w.clock, Rand: rand.Reader,
	})
	w.must(err)
	w.deps = confirm.Deps{
		Store: records, Answers: records, Codes: contacts, Assigned: records, Contacts: w.book,
		Oath: passwords, Devices: w.devices, Messages: w.messages, Vault: w.ring, Audit: store.Audit{DB: db}, Now: w.clock, Rand: rand.Reader,
	}
	settings := confirm.DefaultSettings()
	settings.Language = "en"
	if change != nil {
		change(&settings)
	}
	w.Service, err = confirm.New(settings, w.deps)
	w.must(err)
	return w
}

// furnish adds the users, and what Ivan confirms with.
func (w *world) furnish() {
	w.t.Helper()
	ctx := w.t.Context()
	users := store.Users{DB: w.db}
	w.must(users.AddGroup(ctx, user.Group{Name: "Default"}))
	for id, login := range map[string]string{ivanID: "ivan", annaID: "anna"} {
		w.must(users.AddUser(ctx, user.User{ID: id, Login: login, Group: "Default", CreatedAt: start}, login))
	}
	for _, c := range []struct {
		kind  contact.Kind
		value string
	}{{contact.Phone, phone}, {contact.Email, email}} {
		_, err := w.book.Add(ctx, ivan, ivanID, c.kind, c.value)
		w.must(err)
		_, err = w.book.Confirm(ctx, ivan, ivanID, c.kind, c.value)
		w.must(err)
		w.must(w.book.SetSecondaryAuth(ctx, ivan, ivanID, c.kind, c.value))
	}
	passwords := w.deps.Oath.(*oath.Service)
	_, err := passwords.ImportTokens(ctx, []stock.Token{{Serial: "T1", Time: true, Algorithm: otp.SHA1, Digits: 6, Period: period, Secret: []byte(seed)}})
	w.must(err)
	w.must(passwords.SetToken(ctx, ivan, ivanID, oath.Codes{Serial: "T1", FirstOTP: w.oathCode(-1)}))
	w.assign("otpviasms")
	w.messages.events = nil // those of the factors
}

// assign gives Ivan these methods and no others.
func (w *world) assign(names ...string) {
	w.t.Helper()
	tokens := store.Tokens{DB: w.db}
	for _, m := range confirm.Rows() {
		_, err := tokens.DeleteMethod(w.t.Context(), ivanID, m.Assigned)
		w.must(err)
	}
	for _, name := range names {
		w.must(tokens.SetMethod(w.t.Context(), ivanID, signin.StoredMethod{Name: name, Level: 2}))
	}
}

// oathCode returns the code of Ivan's token, some steps from now.
func (w *world) oathCode(steps int64) string {
	k, err := otp.New(otp.SHA1, 6, []byte(seed))
	w.must(err)
	return k.Code(otp.Step(w.clock(), period) + steps)
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// is fails the test unless err is the fault of a code, "" for none.
func (w *world) is(name string, err error, want string) {
	w.t.Helper()
	got := ""
	if f, ok := fault.As(err); ok {
		got = f.Code
	}
	if got != want || (err != nil) != (want != "") {
		w.t.Errorf("%s: %v, want %q", name, err, want)
	}
}

// order returns an order of three documents.
func order() confirm.Draft {
	o := confirm.Draft{
		Purpose: confirm.ForOperation, Outline: []byte("the outline"), Bytes: 100,
		Fields: what.Fields{Action: "SignDocuments", Certificate: make(what.Hex, 32), PublicKey: make(what.Hex, 32), SignatureType: "CAdES"},
	}
	for _, name := range []string{"договор.pdf", "b.pdf", "c.pdf"} {
		o.Fields.Documents = append(o.Fields.Documents, what.Document{Name: name, Size: 5, Digest: make(what.Hex, 32)})
	}
	return o
}

func (w *world) create() confirm.Record {
	w.t.Helper()
	r, err := w.Create(w.t.Context(), ivan, order())
	w.must(err)
	return r
}

// challenge begins the only challenge of a record.
func (w *world) challenge(r confirm.Record, a confirm.Ask) confirm.Prompt {
	w.t.Helper()
	a.ID = r.ID
	p, err := w.Challenge(w.t.Context(), ivan, a)
	w.must(err)
	if len(p.Choices) > 0 {
		w.t.Fatalf("want a challenge, got the choices %v", p.Choices)
	}
	return p
}

// bySMS creates a record and begins a challenge. It returns the code too.
func (w *world) bySMS() (confirm.Record, string) {
	w.t.Helper()
	r := w.challenge(w.create(), confirm.Ask{Methods: []string{"otpviasms"}}).Record
	return r, w.messages.last(w.t).Data["Code"]
}

// confirmed creates a record and confirms it.
func (w *world) confirmed() confirm.Record {
	w.t.Helper()
	r, code := w.bySMS()
	p, err := w.Answer(w.t.Context(), ivan, r.RefID, code)
	w.must(err)
	return p.Record
}

// decision returns the signed approval of a device.
func decision(r confirm.Record, change func(v *confirm.Decision)) []byte {
	v := confirm.Decision{UserID: r.UserID, Kid: r.Address, ID: r.ID, What: r.What[:], Approved: true, Number: r.Number}
	if change != nil {
		change(&v)
	}
	signed, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return signed
}

// other returns a code of the same length.
func other(code string) string {
	b := []byte(code)
	b[0] = '0' + (b[0]-'0'+1)%10
	return string(b)
}

// state returns the stored record.
func (w *world) stored(id string) confirm.Record {
	w.t.Helper()
	r, found, err := w.deps.Store.Confirmation(w.t.Context(), id)
	w.must(err)
	if !found {
		w.t.Fatal("no record")
	}
	return r
}

// TestTransitions compares the state machine with its rules, from every state.
func TestTransitions(t *testing.T) {
	want := map[confirm.State]map[confirm.Step]confirm.State{
		confirm.Created: {confirm.StepChallenge: confirm.Challenged, confirm.StepDecline: confirm.Declined, confirm.StepCancel: confirm.Cancelled, confirm.StepExpire: confirm.Expired},
		confirm.Challenged: {
			confirm.StepChallenge: confirm.Challenged, confirm.StepConfirm: confirm.Confirmed, confirm.StepDecline: confirm.Declined,
			confirm.StepExhaust: confirm.Error, confirm.StepCancel: confirm.Cancelled, confirm.StepExpire: confirm.Expired,
		},
		confirm.Confirmed: {
			confirm.StepComplete: confirm.Completed, confirm.StepFail: confirm.Error, confirm.StepCancel: confirm.Cancelled, confirm.StepExpire: confirm.Expired,
		},
	}
	for _, from := range confirm.States() {
		if from.Final() != (want[from] == nil) {
			t.Errorf("%s is final: %v", from, from.Final())
		}
		for _, step := range confirm.Steps() {
			to, allowed := from.After(step)
			wanted, ok := want[from][step]
			if !ok {
				wanted = from
			}
			if to != wanted || allowed != ok {
				t.Errorf("%s from %s: %s, %v; want %s, %v", step, from, to, allowed, wanted, ok)
			}
		}
	}
}

// noted checks that the present state of a record was the last one to send its event and to
// write its audit entry.
func (w *world) noted(id string, state confirm.State) {
	w.t.Helper()
	if event := stateEvents[state]; event == "" || w.messages.events[len(w.messages.events)-1] != event {
		w.t.Errorf("the events end with %v, want that of %s", w.messages.events[max(0, len(w.messages.events)-3):], state)
	}
	entries, err := store.Audit{DB: w.db}.Last(w.t.Context(), 1)
	w.must(err)
	if len(entries) != 1 || entries[0].Operation != "Confirmation" || entries[0].Object != id || !strings.HasPrefix(entries[0].Detail, string(state)+" SignDocuments ") {
		w.t.Errorf("the last audit entry is %+v, want %s of %s", entries, state, id)
	}
}

// stateEvents has the event of each state that a step leads to.
var stateEvents = map[confirm.State]notify.EventType{
	confirm.Challenged: notify.ConfirmationRequested, confirm.Confirmed: notify.ConfirmationGiven, confirm.Declined: notify.ConfirmationDeclined,
	confirm.Cancelled: notify.ConfirmationCancelled, confirm.Expired: notify.ConfirmationExpired, confirm.Completed: notify.ConfirmationCompleted,
	confirm.Error: notify.ConfirmationFailed,
}

// TestEveryStepFromEveryState calls the service for each step on a record in each state,
// and compares with the state machine.
func TestEveryStepFromEveryState(t *testing.T) {
	ctx := t.Context()
	w := open(t, func(s *confirm.Settings) { s.Codes.Attempts = 1 })
	// bring makes a record in a state, and returns the code of its challenge.
	bring := map[confirm.State]func() (confirm.Record, string){
		confirm.Created:    func() (confirm.Record, string) { return w.create(), "000000" },
		confirm.Challenged: w.bySMS,
		confirm.Confirmed:  func() (confirm.Record, string) { return w.confirmed(), w.messages.last(t).Data["Code"] },
		confirm.Declined: func() (confirm.Record, string) {
			w.assign("mydss")
			defer w.assign("otpviasms")
			p := w.challenge(w.create(), confirm.Ask{Method: "mydss", Address: "41"})
			r, err := w.Approve(ctx, decision(p.Record, func(v *confirm.Decision) { v.Approved = false }))
			w.must(err)
			return r, "000000"
		},
		confirm.Cancelled: func() (confirm.Record, string) {
			r, code := w.bySMS()
			_, err := w.Cancel(ctx, ivan, r.ID)
			w.must(err)
			return r, code
		},
		confirm.Expired: func() (confirm.Record, string) {
			r, code := w.bySMS()
			w.wait(1200 * time.Second)
			w.must(w.Sweep(ctx))
			return r, code
		},
		confirm.Completed: func() (confirm.Record, string) {
			r := w.confirmed()
			w.must(w.spend(r))
			return r, w.messages.last(t).Data["Code"]
		},
		confirm.Error: func() (confirm.Record, string) {
			r, code := w.bySMS()
			_, err := w.Answer(ctx, ivan, r.RefID, other(code))
			w.is("the last wrong code", err, fault.MaxAttempts)
			return r, code
		},
	}
	do := map[confirm.Step]func(r confirm.Record, code string) error{
		confirm.StepChallenge: func(r confirm.Record, _ string) error {
			p, err := w.Challenge(ctx, ivan, confirm.Ask{ID: r.ID, Methods: []string{"otpviasms"}})
			if err == nil && p.Record.State != confirm.Challenged {
				err = errors.New("no challenge") // a confirmed record is returned as it is
			}
			return err
		},
		confirm.StepConfirm: func(r confirm.Record, code string) error {
			_, err := w.Answer(ctx, ivan, r.RefID, code)
			return err
		},
		confirm.StepExhaust: func(r confirm.Record, code string) error {
			_, err := w.Answer(ctx, ivan, r.RefID, other(code))
			if fault.Is(err, fault.MaxAttempts) && w.stored(r.ID).State == confirm.Error && r.State == confirm.Challenged {
				return nil
			}
			return err
		},
		confirm.StepDecline: func(r confirm.Record, _ string) error {
			_, err := w.Decline(ctx, ivan, r.ID)
			return err
		},
		confirm.StepCancel: func(r confirm.Record, _ string) error {
			_, err := w.Cancel(ctx, ivan, r.ID)
			return err
		},
		confirm.StepExpire: func(r confirm.Record, _ string) error {
			w.wait(1200 * time.Second)
			if err := w.Sweep(ctx); err != nil {
				return err
			}
			if w.stored(r.ID).State != confirm.Expired {
				return errors.New("not expired")
			}
			return nil
		},
		confirm.StepComplete: func(r confirm.Record, _ string) error {
			return w.spend(r)
		},
		confirm.StepFail: func(r confirm.Record, _ string) error {
			return w.fail(r)
		},
	}
	for _, from := range confirm.States() {
		for _, step := range confirm.Steps() {
			w.must(w.Forgive(ctx, ivanID))
			r, code := bring[from]()
			if got := w.stored(r.ID).State; got != from {
				t.Fatalf("the record is %s, want %s", got, from)
			}
			r = w.stored(r.ID)
			to, allowed := from.After(step)
			err := do[step](r, code)
			repeated := step == confirm.StepCancel && from == confirm.Cancelled || step == confirm.StepExpire && from == confirm.Expired ||
				step == confirm.StepDecline && from == confirm.Declined || step == confirm.StepConfirm && (from == confirm.Confirmed || from == confirm.Completed)
			if (err == nil) != (allowed || repeated) {
				t.Errorf("%s from %s: %v", step, from, err)
			}
			if got := w.stored(r.ID).State; got != to {
				t.Errorf("%s from %s: the state is %s, want %s", step, from, got, to)
			}
			if allowed {
				w.noted(r.ID, to)
			}
		}
	}
}
