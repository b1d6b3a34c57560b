// SPDX-License-Identifier: Apache-2.0

package notify_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"

	"tamga/internal/adapter/store"
	"tamga/internal/adapter/store/storetest"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/notify"
	"tamga/internal/domain/vault"
)

var start = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// post is a notifier that keeps what it is given.
type post struct {
	channel notify.Channel
	mu      sync.Mutex
	sent    []notify.Message
	tried   int
	fail    func(m notify.Message) error // nil delivers
	arrived chan struct{}                // one for each delivery, when not nil
}

func (p *post) Channel() notify.Channel { return p.channel }

func (p *post) Send(_ context.Context, m notify.Message) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.tried++
	if p.fail != nil {
		if err := p.fail(m); err != nil {
			return err
		}
	}
	p.sent = append(p.sent, m)
	if p.arrived != nil {
		p.arrived <- struct{}{}
	}
	return nil
}

func (p *post) texts() (texts []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, m := range p.sent {
		texts = append(texts, m.To+": "+m.Text)
	}
	return texts
}

// office is a service with its surroundings; now is fixed until a test moves it.
type office struct {
	*notify.Service
	db       *store.DB
	sms      *post
	email    *post
	mu       sync.Mutex
	outcomes []string
	now      time.Time
	deps     notify.Deps
}

// standard is the policy of users who have none of their own.
type standard struct{}

func (standard) NotifiersOf(_ context.Context, _, event string) ([]string, error) {
	return notify.StandardDefaults()[event], nil
}

type addresses map[notify.Channel][]string

func (a addresses) NotificationAddresses(_ context.Context, userID string, channel notify.Channel) ([]string, error) {
	if userID != "user" {
		return nil, nil
	}
	return a[channel], nil
}

func (a addresses) ConfirmedAddresses(_ context.Context, userID string, channel notify.Channel) ([]string, error) {
	return map[notify.Channel][]string{notify.SMS: {"79260000009"}, notify.Push: {"device"}}[channel], nil
}

func open(t *testing.T, change func(*notify.Settings)) *office {
	t.Helper()
	o := &office{db: storetest.SQLite(t)}
	furnish(t, o)
	o.Service = o.another(t, change)
	return o
}

// furnish puts everything but the service into an office that has a database.
func furnish(t testing.TB, o *office) {
	t.Helper()
	o.sms, o.email, o.now = &post{channel: notify.SMS}, &post{channel: notify.Email}, start
	ring, err := vault.NewRing("k", map[string][]byte{"k": bytes.Repeat([]byte{7}, vault.MasterKeySize)}, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	texts, err := notify.NewTemplates("Тамга", nil)
	if err != nil {
		t.Fatal(err)
	}
	o.deps = notify.Deps{
		Store: store.Outbox{DB: o.db}, Vault: ring, Templates: texts,
		Notifiers:   []notify.Notifier{o.sms, o.email},
		Preferences: notify.ByPolicy{Policies: standard{}},
		Recipients:  addresses{notify.SMS: {"79260000001"}, notify.Email: {"a@b.ru", "c@d.ru"}},
		Now:         func() time.Time { return o.now },
		Rand:        rand.Reader,
		Delivered: func(_ notify.Channel, outcome string, _ error) {
			o.mu.Lock()
			defer o.mu.Unlock()
			o.outcomes = append(o.outcomes, outcome)
		},
		Failed: func(err error) { t.Error(err) },
	}
}

// another is the service of another process over the same database.
func (o *office) another(t *testing.T, change func(*notify.Settings)) *notify.Service {
	t.Helper()
	s := notify.DefaultSettings()
	if change != nil {
		change(&s)
	}
	service, err := notify.New(s, o.deps)
	if err != nil {
		t.Fatal(err)
	}
	return service
}

func (o *office) order(t *testing.T, to, code string) {
	t.Helper()
	if err := o.Order(t.Context(), direct(to, code)); err != nil {
		t.Fatal(err)
	}
}

func direct(to, code string) notify.Direct {
	return notify.Direct{
		Channel: notify.SMS, To: to, Template: notify.TemplateContactCode, Lang: "en",
		Data: map[string]string{"Code": code, "Minutes": "5"}, UserID: "user", Actor: "operator",
	}
}

func (o *office) flush(t *testing.T) {
	t.Helper()
	if err := o.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func (o *office) records(t *testing.T) []notify.Record {
	t.Helper()
	list, err := o.List(t.Context(), notify.MessageQuery{Limit: 100})
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func TestOrder(t *testing.T) {
	o := open(t, nil)
	o.order(t, "79261234567", "123456")
	o.flush(t)
	want := "79261234567: 123456 is the code of Тамга, good for 5 min. Do not share it."
	if got := o.sms.texts(); len(got) != 1 || got[0] != want {
		t.Errorf("%q, want %q", got, want)
	}
	r := o.records(t)[0]
	if r.State != notify.Sent || len(r.Sealed) != 0 || r.Attempts != 1 || r.Subject != "contact-code" || r.ID != o.sms.sent[0].ID {
		t.Errorf("%+v", r)
	}
	d := direct("79261234567", "1")
	d.Channel = notify.Push
	if err := o.Order(t.Context(), d); !fault.Is(err, fault.WrongOperation) {
		t.Errorf("a channel without a notifier: %v", err)
	}
	if got := o.Available(); !cmp.Equal(got, []notify.Channel{notify.SMS, notify.Email}) {
		t.Errorf("available: %v", got)
	}
}

// A message exists if and only if its transaction commits.
func TestOrderIsPartOfItsTransaction(t *testing.T) {
	o := open(t, nil)
	failed := errors.New("no")
	err := o.db.Atomic(t.Context(), func(ctx context.Context) error {
		if err := o.Order(ctx, direct("79261234567", "123456")); err != nil {
			t.Error(err)
		}
		return failed
	})
	if !errors.Is(err, failed) {
		t.Fatal(err)
	}
	o.flush(t)
	if len(o.sms.sent) != 0 || len(o.records(t)) != 0 {
		t.Error("a message without a reason was sent")
	}
}

// Neither a code nor a password is readable in the files of the database, before the
// delivery or after it.
func TestSecretsAtRest(t *testing.T) {
	dir := t.TempDir()
	o := open(t, nil)
	o.db = storetest.Open(t, "sqlite:"+filepath.Join(dir, "tamga.db"))
	o.deps.Store = store.Outbox{DB: o.db}
	o.Service = o.another(t, nil)
	scan := func() {
		t.Helper()
		files, err := filepath.Glob(filepath.Join(dir, "*"))
		if err != nil || len(files) == 0 {
			t.Fatal(files, err)
		}
		for _, f := range files {
			data, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			for _, secret := range []string{"918273", "Secret-Password"} {
				if bytes.Contains(data, []byte(secret)) {
					t.Errorf("%s holds %s", filepath.Base(f), secret)
				}
			}
		}
	}
	o.sms.fail = func(notify.Message) error { return errors.New("the centre is down") }
	o.order(t, "79261234567", "918273")
	d := direct("79261234568", "")
	d.Template, d.Data = notify.TemplatePassword, map[string]string{"Login": "demo", "Password": "Secret-Password"}
	if err := o.Order(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	scan()
	o.flush(t)
	scan()
	o.sms.fail, o.now = nil, start.Add(time.Minute)
	o.flush(t)
	scan()
	if len(o.sms.sent) != 2 {
		t.Errorf("%d were sent, want 2", len(o.sms.sent))
	}
}

// A text moved to another message does not open, so it reaches no other recipient.
func TestSwappedRows(t *testing.T) {
	o := open(t, func(s *notify.Settings) { s.Attempts = 1 })
	o.order(t, "79260000001", "111111")
	o.order(t, "79260000002", "222222")
	list := o.records(t)
	a, b := list[0], list[1]
	o.deps.Store = swapped{store.Outbox{DB: o.db}, map[string][]byte{a.ID: b.Sealed, b.ID: a.Sealed}}
	o.Service = o.another(t, func(s *notify.Settings) { s.Attempts = 1 })
	o.flush(t)
	if len(o.sms.sent) != 0 {
		t.Errorf("sent %q", o.sms.texts())
	}
}

// TestLater: a system may say when it wants the next attempt, within the longest pause.
func TestLater(t *testing.T) {
	for _, c := range []struct{ asked, from, to time.Duration }{
		{0, 5 * time.Second, 10 * time.Second}, {time.Second, 5 * time.Second, 10 * time.Second}, {40 * time.Second, 40 * time.Second, 40 * time.Second},
		{time.Hour, time.Minute, time.Minute}, {-time.Second, 5 * time.Second, 10 * time.Second},
	} {
		o := open(t, func(s *notify.Settings) { s.FirstPause, s.LongestPause = 10*time.Second, time.Minute })
		o.sms.fail = func(notify.Message) error { return notify.After(errors.New("busy"), c.asked) }
		o.order(t, "79261234567", "123456")
		o.flush(t)
		r := o.records(t)[0]
		if pause := r.DueAt.Sub(o.now); pause < c.from || pause > c.to || r.Error != "busy" {
			t.Errorf("asked for %v: the pause is %v, want %v to %v (%s)", c.asked, pause, c.from, c.to, r.Error)
		}
	}
	if err := notify.After(nil, time.Second); err != nil {
		t.Error(err)
	}
}

// TestLink: a notifier gets the page that a message is about and the end of its use.
func TestLink(t *testing.T) {
	o := open(t, nil)
	ends := o.now.Add(time.Minute)
	if err := o.Order(t.Context(), notify.Direct{Channel: notify.SMS, To: "79260000001", Template: notify.TemplateBrowserWake, Link: "/confirm/1", Expires: ends}); err != nil {
		t.Fatal(err)
	}
	o.flush(t)
	if m := o.sms.sent[0]; m.Link != "/confirm/1" || !m.Expires.Equal(ends) {
		t.Errorf("the message is %+v", m)
	}
}

type swapped struct {
	store.Outbox
	sealed map[string][]byte
}

func (s swapped) ClaimMessages(ctx context.Context, channel notify.Channel, lease string, now, until time.Time, limit int) ([]notify.Record, error) {
	list, err := s.Outbox.ClaimMessages(ctx, channel, lease, now, until, limit)
	for i := range list {
		list[i].Sealed = s.sealed[list[i].ID]
	}
	return list, err
}

func TestRetries(t *testing.T) {
	o := open(t, func(s *notify.Settings) { s.Attempts, s.FirstPause, s.LongestPause = 5, 10*time.Second, time.Minute })
	o.sms.fail = func(notify.Message) error { return errors.New("the centre is down\r\nreally") }
	o.order(t, "79261234567", "123456")
	whole := []time.Duration{10 * time.Second, 20 * time.Second, 40 * time.Second, time.Minute}
	for i, w := range whole {
		o.flush(t)
		r := o.records(t)[0]
		if pause := r.DueAt.Sub(o.now); r.State != notify.Pending || r.Attempts != i+1 || pause < w/2 || pause > w {
			t.Fatalf("after attempt %d: %s, %d attempts, pause %v, want %v to %v", i+1, r.State, r.Attempts, pause, w/2, w)
		}
		if r.Error != "the centre is down  really" {
			t.Errorf("error %q", r.Error)
		}
		o.now = r.DueAt.Add(-time.Millisecond)
		o.flush(t)
		if o.sms.tried != i+1 {
			t.Fatalf("tried %d times before its time", o.sms.tried)
		}
		o.now = r.DueAt
	}
	o.flush(t)
	r := o.records(t)[0]
	if r.State != notify.Dead || r.Attempts != 5 || len(r.Sealed) == 0 {
		t.Fatalf("%+v", r)
	}
	if d := cmp.Diff([]string{"retried", "retried", "retried", "retried", "dead"}, o.outcomes); d != "" {
		t.Error(d)
	}
	// An administrator has it tried again.
	o.sms.fail = nil
	if err := o.Resend(t.Context(), r.ID); err != nil {
		t.Fatal(err)
	}
	if err := o.Resend(t.Context(), r.ID); !fault.Is(err, fault.WrongOperation) {
		t.Errorf("a message that waits: %v", err)
	}
	o.flush(t)
	if len(o.sms.sent) != 1 {
		t.Errorf("%d were sent, want 1", len(o.sms.sent))
	}
	if err := o.Resend(t.Context(), r.ID); !fault.Is(err, fault.WrongOperation) {
		t.Errorf("a message that was sent: %v", err)
	}
	if err := o.Resend(t.Context(), "unknown"); !fault.Is(err, fault.NotFound) {
		t.Errorf("no message: %v", err)
	}
}

func TestPermanent(t *testing.T) {
	o := open(t, nil)
	o.sms.fail = func(notify.Message) error { return notify.Permanent(errors.New("no such number")) }
	o.order(t, "79261234567", "123456")
	o.flush(t)
	if r := o.records(t)[0]; r.State != notify.Dead || r.Attempts != 1 || r.Error != "no such number" {
		t.Errorf("%+v", r)
	}
}

// An expired code is not sent, and cannot be sent again.
func TestExpired(t *testing.T) {
	o := open(t, nil)
	d := direct("79261234567", "123456")
	d.Expires = start.Add(5 * time.Minute)
	if err := o.Order(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	o.now = d.Expires
	o.flush(t)
	r := o.records(t)[0]
	if r.State != notify.Dead || len(r.Sealed) != 0 || o.sms.tried != 0 {
		t.Errorf("%+v, tried %d times", r, o.sms.tried)
	}
	if err := o.Resend(t.Context(), r.ID); !fault.Is(err, fault.WrongOperation) {
		t.Errorf("resent: %v", err)
	}
}

// Messages of one recipient arrive in their order, whatever fails. Other recipients do
// not wait.
func TestOrderOfARecipient(t *testing.T) {
	o := open(t, nil)
	failures := 2
	o.sms.fail = func(m notify.Message) error {
		if m.To == "79260000001" && failures > 0 {
			failures--
			return errors.New("busy")
		}
		return nil
	}
	o.order(t, "79260000001", "1")
	o.order(t, "79260000001", "2")
	o.order(t, "79260000002", "3")
	for range 3 {
		o.flush(t)
		o.now = o.now.Add(time.Minute)
	}
	var got []string
	for _, text := range o.sms.texts() {
		got = append(got, strings.Split(text, ",")[0])
	}
	want := []string{"79260000002: 3 is the code of Тамга", "79260000001: 1 is the code of Тамга", "79260000001: 2 is the code of Тамга"}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

// The message of a process that died goes out from another one when its lease ends.
func TestDeadProcess(t *testing.T) {
	o := open(t, nil)
	o.order(t, "79261234567", "123456")
	claimed, err := o.deps.Store.ClaimMessages(t.Context(), notify.SMS, "dead", o.now, o.now.Add(35*time.Second), 9)
	if err != nil || len(claimed) != 1 {
		t.Fatal(claimed, err)
	}
	o.now = start.Add(35 * time.Second)
	if err := o.another(t, nil).Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	if len(o.sms.sent) != 1 || o.sms.sent[0].ID != claimed[0].ID {
		t.Errorf("%v", o.sms.sent)
	}
}

// The loops of several processes deliver each message once and stop when asked.
func TestRun(t *testing.T) {
	o := open(t, nil)
	const messages = 60
	o.sms.arrived = make(chan struct{}, messages)
	services := []*notify.Service{o.another(t, nil), o.another(t, nil)}
	ctx, stop := context.WithCancel(t.Context())
	var loops sync.WaitGroup
	for _, s := range services {
		loops.Go(func() { s.Run(ctx) })
	}
	for n := range messages {
		if err := services[n%2].Order(t.Context(), direct(fmt.Sprintf("7926%07d", n%20*100_000), fmt.Sprint(n))); err != nil {
			t.Fatal(err)
		}
	}
	for range messages {
		<-o.sms.arrived
	}
	stop()
	loops.Wait()
	seen := map[string]int{}
	for _, m := range o.sms.sent {
		seen[m.ID]++
	}
	if len(seen) != messages || len(o.sms.sent) != messages {
		t.Errorf("%d messages, sent %d times, want %d once each", len(seen), len(o.sms.sent), messages)
	}
}

func TestEmit(t *testing.T) {
	o := open(t, func(s *notify.Settings) {
		s.Budgets = map[notify.Channel]notify.Budget{notify.Email: {Recipient: 1}}
	})
	for _, e := range []notify.Event{
		{Type: notify.UserPasswordReset, UserID: "user", Detail: "a\r\nBcc: b"},
		{Type: notify.UserPasswordReset, UserID: "another"},
		{Type: notify.UserAccountChanged, UserID: "user"},
	} {
		if err := o.Emit(t.Context(), e); err != nil {
			t.Fatal(err)
		}
	}
	if err := o.Emit(t.Context(), notify.Event{Type: "Unknown", UserID: "user"}); err == nil {
		t.Error("an event outside of the catalogue was taken")
	}
	o.flush(t)
	sms := "79260000001: Тамга: Пароль сброшен. 21.11.2026 12:00 UTC"
	if d := cmp.Diff([]string{sms}, o.sms.texts()); d != "" {
		t.Error(d)
	}
	mail := "Пароль сброшен.\n\na  Bcc: b\n\nВремя: 21.11.2026 12:00 UTC\n\nЕсли это сделали не вы и не по вашей просьбе, обратитесь к оператору."
	if d := cmp.Diff([]string{"a@b.ru: " + mail, "c@d.ru: " + mail}, o.email.texts()); d != "" {
		t.Error(d)
	}
	if got := o.email.sent[0].Subject; got != "Тамга: Пароль сброшен" {
		t.Errorf("subject %q", got)
	}
}

// A user who is being deleted is notified at the notification contacts, or else at all
// confirmed contacts. Other events use notification contacts only.
func TestLastWord(t *testing.T) {
	o := open(t, nil)
	for _, e := range []notify.Event{
		{Type: notify.UserDeleted, UserID: "user"},
		{Type: notify.UserDeleted, UserID: "another"},
		{Type: notify.UserPasswordReset, UserID: "another"},
	} {
		if err := o.Emit(t.Context(), e); err != nil {
			t.Fatal(err)
		}
	}
	o.flush(t)
	text := ": Тамга: Учётная запись удалена. 21.11.2026 12:00 UTC"
	if d := cmp.Diff([]string{"79260000001" + text, "79260000009" + text}, o.sms.texts()); d != "" {
		t.Error(d)
	}
	if n := len(o.email.sent); n != 2 {
		t.Errorf("%d e-mails, want those to the two addresses of the user with the role", n)
	}
}

// Values are values: they neither run as templates nor begin lines.
func TestTemplateInjection(t *testing.T) {
	o := open(t, nil)
	d := direct("79261234567", "{{.Code}}\r\nБанк: переведите\u202eоруб")
	if err := o.Order(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	o.flush(t)
	want := "79261234567: {{.Code}}  Банк: переведите оруб is the code of Тамга, good for 5 min. Do not share it."
	if got := o.sms.texts()[0]; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	d.Data = map[string]string{"Minutes": "5"}
	if err := o.Order(t.Context(), d); err == nil {
		t.Error("a text without its code was taken")
	}
}

func TestTemplates(t *testing.T) {
	own := func(text string) fstest.MapFS { return fstest.MapFS{"contact-code.ru.txt": {Data: []byte(text)}} }
	parts := `{{define "subject"}}s{{end}}{{define "email"}}e {{.Code}}{{end}}{{define "sms"}}k {{.Code}}{{end}}`
	if _, err := notify.NewTemplates("T", own(parts)); err != nil {
		t.Error(err)
	}
	for name, text := range map[string]string{
		"Syntax":       `{{define "subject"}`,
		"MissingPart":  `{{define "subject"}}s{{end}}`,
		"UnknownValue": strings.Replace(parts, ".Code", ".Password", 1),
	} {
		if _, err := notify.NewTemplates("T", own(text)); err == nil || !strings.Contains(err.Error(), "contact-code.ru") {
			t.Errorf("%s: %v, want one that names the file", name, err)
		}
	}
}

// TestConfirmationTexts checks that a message with a code says what the code confirms, with
// and without documents.
func TestConfirmationTexts(t *testing.T) {
	o := open(t, nil)
	order := func(lang, documents, name string) string {
		t.Helper()
		err := o.Order(t.Context(), notify.Direct{
			Channel: notify.SMS, To: "79260000001", Template: notify.TemplateConfirmationCode, Lang: lang,
			Data: map[string]string{"Action": "Подписание", "Documents": documents, "Name": name, "Group": "1a2b3c4d", "Code": "123456", "Minutes": "5"},
		})
		if err != nil {
			t.Fatal(err)
		}
		o.flush(t)
		texts := o.sms.texts()
		return texts[len(texts)-1]
	}
	for _, c := range []struct{ lang, documents, name, want string }{
		{"ru", "2", "a\nb.pdf", "79260000001: 123456 – код. Тамга: Подписание, документов: 2, «a b.pdf», контрольное число 1a2b3c4d. Действует 5 мин. Никому его не сообщайте."},
		{"ru", "", "", "79260000001: 123456 – код. Тамга: Подписание, контрольное число 1a2b3c4d. Действует 5 мин. Никому его не сообщайте."},
		{"en", "1", "a.pdf", `79260000001: 123456 is the code. Тамга: Подписание, documents: 1, "a.pdf", number 1a2b3c4d. Good for 5 min. Do not share it.`},
	} {
		if got := order(c.lang, c.documents, c.name); got != c.want {
			t.Errorf("got  %s\nwant %s", got, c.want)
		}
	}
}

func TestCatalogue(t *testing.T) {
	categories := map[string]bool{}
	for _, c := range notify.Categories() {
		categories[c.Category] = c.Description["ru"] != "" && c.Description["en"] != ""
	}
	seen := map[notify.EventType]bool{}
	for _, e := range notify.Events() {
		if seen[e.Type] || !categories[e.Category] || e.Description["ru"] == "" || e.Description["en"] == "" {
			t.Errorf("%+v", e)
		}
		seen[e.Type] = true
	}
}

func TestSettings(t *testing.T) {
	for name, change := range map[string]func(*notify.Settings){
		"language": func(s *notify.Settings) { s.Language = "de" },
		"attempts": func(s *notify.Settings) { s.Attempts = 0 },
		"lease":    func(s *notify.Settings) { s.Lease = s.SendTime },
		"budgets":  func(s *notify.Settings) { s.Budgets = map[notify.Channel]notify.Budget{notify.SMS: {Total: -1}} },
	} {
		s := notify.DefaultSettings()
		change(&s)
		if _, err := notify.New(s, notify.Deps{}); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := notify.New(notify.DefaultSettings(), notify.Deps{Notifiers: []notify.Notifier{&post{channel: notify.SMS}, &post{channel: notify.SMS}}}); err == nil {
		t.Error("two notifiers of a channel were taken")
	}
}

func TestSweep(t *testing.T) {
	o := open(t, nil)
	o.order(t, "79261234567", "123456")
	o.flush(t)
	o.now = start.Add(31 * 24 * time.Hour)
	if err := o.Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	if list := o.records(t); len(list) != 0 {
		t.Errorf("%v", list)
	}
}

// TestOneLine: text from outside stays one short line, and a second call changes nothing.
func TestOneLine(t *testing.T) {
	for _, c := range []struct{ value, want string }{
		{"Пётр Ильич «Ёж»", "Пётр Ильич «Ёж»"},
		{" a\r\nBcc: b\t", "a  Bcc: b"},
		{"x\u202egnp.exe\u2028\u200b\x00y", "x gnp.exe   y"},
		{"a\xffb\ufffec\U0001ffffd", "a b c d"},
		{strings.Repeat("ж", 301), strings.Repeat("ж", 300) + "…"},
		{"\n", ""},
	} {
		got := notify.OneLine(c.value)
		if got != c.want || notify.OneLine(got) != got {
			t.Errorf("%q: %q, want %q", c.value, got, c.want)
		}
	}
}

// TestPreview checks that a preview is the message that is sent, and that nothing is sent.
func TestPreview(t *testing.T) {
	o := open(t, nil)
	preview := func(about string) (texts []string) {
		list, err := o.Preview(about)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range list {
			if p.Lang == "ru" {
				texts = append(texts, string(p.Channel)+": "+p.Subject+": "+p.Text)
			}
		}
		return texts
	}
	templates, events := notify.Previewed()
	for _, e := range events {
		templates = append(templates, string(e.Type))
	}
	if len(templates) < 30 {
		t.Errorf("only %d messages", len(templates))
	}
	for _, about := range templates {
		if n := len(preview(about)); n == 0 && about != notify.TemplateDeviceWake && !strings.HasPrefix(about, "browser-") { // there is no push
			t.Errorf("%s has no text", about)
		}
	}
	previews := preview(string(notify.UserPasswordReset))
	if len(o.records(t)) != 0 {
		t.Fatal("a preview was put into the outbox")
	}
	if err := o.Emit(t.Context(), notify.Event{Type: notify.UserPasswordReset, UserID: "user"}); err != nil {
		t.Fatal(err)
	}
	o.flush(t)
	sent := []string{"SMS: : " + o.sms.sent[0].Text, "Email: " + o.email.sent[0].Subject + ": " + o.email.sent[0].Text}
	if d := cmp.Diff(sent, previews); d != "" {
		t.Error(d)
	}
	for _, about := range []string{"", "event", "factor", "UserCreateFail", "../password"} {
		if _, err := o.Preview(about); !fault.Is(err, fault.NotFound) {
			t.Errorf("%s: %v, want %s", about, err, fault.NotFound)
		}
	}
}

// Every message with a code begins with it, in both languages and on every channel: a telephone shows
// the first words alone. A message without a check number does not speak of one.
func TestCodesComeFirst(t *testing.T) {
	for _, template := range []string{notify.TemplateConfirmationCode, notify.TemplateContactCode, notify.TemplateDeviceCode} {
		for _, lang := range []string{"ru", "en"} {
			for _, channel := range []notify.Channel{notify.SMS, notify.Email} {
				o := open(t, nil)
				err := o.Order(t.Context(), notify.Direct{
					Channel: channel, To: "79260000001", Template: template, Lang: lang,
					Data: map[string]string{"Action": "A", "Documents": "", "Name": "", "Group": "", "Code": "123456", "Minutes": "5"},
				})
				if err != nil {
					t.Fatal(err)
				}
				o.flush(t)
				for _, m := range append(o.sms.sent, o.email.sent...) {
					if !strings.HasPrefix(m.Text, "123456") || strings.Contains(strings.ToLower(m.Text), "number") || strings.Contains(m.Text, "онтрольное") {
						t.Errorf("%s, %s, %s: %q", template, lang, channel, m.Text)
					}
				}
			}
		}
	}
}
