// SPDX-License-Identifier: Apache-2.0

package confirm_test

import (
	"context"
	"crypto/rand"
	"database/sql"
	"fmt"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"tamga/gost/streebog"
	"tamga/internal/adapter/store"
	"tamga/internal/adapter/store/storetest"
	"tamga/internal/domain/audit"
	"tamga/internal/domain/confirm"
	"tamga/internal/domain/confirm/what"
	"tamga/internal/domain/contact"
	"tamga/internal/domain/notify"
	"tamga/internal/domain/policy"
	"tamga/internal/domain/signin"
	"tamga/internal/domain/user"
	"tamga/internal/testsize"
)

// The installation of the benchmark: a million records, and a hundredth of that with
// -short.
const (
	manyRecords = 1_000_000
	manyUsers   = 64
)

// quiet accepts every message.
type quiet struct{}

func (q *quiet) Channel() notify.Channel                    { return notify.SMS }
func (q *quiet) Send(context.Context, notify.Message) error { return nil }

// overheard passes orders on and keeps the codes in them.
type overheard struct {
	*notify.Service
	codes map[string]string // by user; one caller at a time
}

func (o *overheard) Order(ctx context.Context, d notify.Direct) error {
	o.codes[d.UserID] = d.Data["Code"]
	return o.Service.Order(ctx, d)
}

// BenchmarkConfirm polls, and creates, challenges and confirms operations on a document of
// 1 KiB, in a database with many records. cpu-µs/op is the processor time of this process:
// it is that of the server, without the database server of PostgreSQL and without waiting
// for the disk.
//
//	go test -run '^$' -bench Confirm -benchtime 3s ./internal/domain/confirm
func BenchmarkConfirm(b *testing.B) {
	records := manyRecords
	if testsize.Of() == testsize.Quick {
		records /= 100
	}
	for _, engine := range []struct {
		name, driver, id string // id is an expression for a random identifier
		url              func(b *testing.B) string
	}{
		{"SQLite", "sqlite", "lower(hex(randomblob(16)))", func(b *testing.B) string { return "sqlite:" + filepath.Join(b.TempDir(), "tamga.db") }},
		{"PostgreSQL", "pgx", "CAST(gen_random_uuid() AS TEXT)", func(b *testing.B) string {
			return storetest.OwnPostgreSQL(b, "fsync=on", "max_wal_size=4GB").Database(b)
		}},
	} {
		b.Run(engine.name, func(b *testing.B) {
			url := engine.url(b)
			w := openOn(b, storetest.Open(b, url), nil)
			users := w.crowd(manyUsers)
			w.fill(engine.driver, strings.TrimPrefix(url, "sqlite:"), engine.id, records)
			o := &overheard{w.realMessages(), map[string]string{}}
			w.deps.Messages = o
			settings := confirm.DefaultSettings()
			settings.Open.Records = 1 << 40
			settings.Documents.User, settings.Documents.All = settings.Open, settings.Open
			settings.Documents.User.Bytes, settings.Documents.All.Bytes = 1<<50, 1<<50
			var err error
			w.Service, err = confirm.New(settings, w.deps)
			w.must(err)

			b.Run("Poll", func(b *testing.B) {
				r, err := w.Create(b.Context(), users[0], w.smallDraft())
				w.must(err)
				_, err = w.Challenge(b.Context(), users[0], confirm.Ask{ID: r.ID})
				w.must(err)
				measure(b, func(int) error {
					_, err := w.Poll(b.Context(), users[0], r.RefID)
					return err
				})
			})
			b.Run("CreateChallengeConfirm", func(b *testing.B) {
				measure(b, func(i int) error {
					who := users[i%len(users)]
					r, err := w.Create(b.Context(), who, w.smallDraft())
					if err != nil {
						return err
					}
					p, err := w.Challenge(b.Context(), who, confirm.Ask{ID: r.ID, Methods: []string{"mydss", "otpviasms", "otpviaemail"}, Fallback: []string{"oath"}})
					if err != nil {
						return err
					}
					p, err = w.Answer(b.Context(), who, p.Record.RefID, o.codes[who.UserID])
					if err == nil && p.Record.State != confirm.Confirmed {
						err = fmt.Errorf("the record is %s", p.Record.State)
					}
					return err
				})
			})
		})
	}
}

// measure runs do and reports the processor time of the process.
func measure(b *testing.B, do func(i int) error) {
	b.Helper()
	before := processorTime(b)
	i := 0
	for b.Loop() {
		if err := do(i); err != nil {
			b.Fatal(err)
		}
		i++
	}
	b.ReportMetric(float64((processorTime(b)-before).Microseconds())/float64(i), "cpu-µs/op")
}

func processorTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// crowd adds users with a phone.
func (w *world) crowd(n int) (list []audit.Principal) {
	w.t.Helper()
	ctx := w.t.Context()
	users, tokens := store.Users{DB: w.db}, store.Tokens{DB: w.db}
	w.must(users.AddGroup(ctx, user.Group{Name: "Default"}))
	for i := range n {
		id, login, number := fmt.Sprintf("00000000-0000-4000-8000-%012d", i), fmt.Sprint("user", i), fmt.Sprint(79160000000+i)
		w.must(users.AddUser(ctx, user.User{ID: id, Login: login, Group: "Default", CreatedAt: start}, login))
		_, err := w.book.Add(ctx, ivan, id, contact.Phone, number)
		w.must(err)
		_, err = w.book.Confirm(ctx, ivan, id, contact.Phone, number)
		w.must(err)
		w.must(w.book.SetSecondaryAuth(ctx, ivan, id, contact.Phone, number))
		w.must(tokens.SetMethod(ctx, id, signin.StoredMethod{Name: "otpviasms", Level: 2}))
		list = append(list, audit.Principal{UserID: id, Login: login, ClientID: "client"})
	}
	return list
}

// fill adds records of other users: half of them open.
func (w *world) fill(driver, source, id string, records int) {
	w.t.Helper()
	pool, err := sql.Open(driver, source)
	w.must(err)
	defer pool.Close()
	at := start.UnixMilli()
	for _, statement := range []string{
		fmt.Sprintf(`INSERT INTO confirmations (id, ref_id, user_id, client_id, operator, sign_in, purpose, action, documents, what, bytes,
				state, method, address, label, number, round, sent_at, answer_before, attempts, resends, declined, code, message,
				created_at, updated_at, confirm_before, confirmed_at, complete_before, due_at, ended_at, origin)
			WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %d)
			SELECT %s, %s, 'user ' || (i %% 100000), 'client', '', '', 'operation', 'SignDocument', 1, %s, 1024,
				CASE WHEN i %% 2 = 0 THEN 'Challenged' ELSE 'Completed' END, 'otpviasms', '79160000000', '***0000', '', 1, %d, %d, 0, 0, '', '', '',
				%d, %d, %d, 0, 0, %d + i, CASE WHEN i %% 2 = 0 THEN 0 ELSE %d END, '' FROM n`,
			records, id, id, map[string]string{"sqlite": "zeroblob(32)", "pgx": "decode(repeat('00', 32), 'hex')"}[driver],
			at, at+300_000, at, at, at+1_200_000, at+1_200_000, at),
		`INSERT INTO confirmation_contents (id, fields, shown, offline, result, approval, outline)
			SELECT id, what, what, what, what, what, what FROM confirmations`,
		"ANALYZE",
	} {
		_, err := pool.Exec(statement)
		w.must(err)
	}
}

// realMessages returns a service of messages with its outbox, budgets and policies.
func (w *world) realMessages() *notify.Service {
	w.t.Helper()
	templates, err := notify.NewTemplates("Тамга", nil)
	w.must(err)
	settings := notify.DefaultSettings()
	settings.Budgets = map[notify.Channel]notify.Budget{notify.SMS: {Recipient: 1 << 30, Actor: 1 << 30, Prefix: 1 << 30}}
	policies := &policy.Service{Store: store.Policies{DB: w.db}, Defaults: map[policy.Kind]policy.Setting{policy.Notification: {Notifiers: notify.StandardDefaults()}}}
	m, err := notify.New(settings, notify.Deps{
		Store: store.Outbox{DB: w.db}, Vault: w.ring, Templates: templates, Notifiers: []notify.Notifier{&quiet{}},
		Preferences: notify.ByPolicy{Policies: policies}, Recipients: contact.Addresses{Store: store.Contacts{DB: w.db}}, Now: w.clock, Rand: rand.Reader,
	})
	w.must(err)
	return m
}

// smallDraft returns a draft about a document of 1 KiB.
func (w *world) smallDraft() confirm.Draft {
	document := make([]byte, 1024)
	sum := streebog.Sum256(document)
	parameters, err := what.NewValues(map[string]string{"CADESType": "BES", "IsDetached": "True"}, func(string) bool { return false })
	w.must(err)
	return confirm.Draft{
		Purpose: confirm.ForOperation, Bytes: 1024,
		Fields: what.Fields{
			Action: "SignDocument", Certificate: make(what.Hex, 32), PublicKey: make(what.Hex, 32), SignatureType: "CAdES", Parameters: parameters,
			Documents: []what.Document{{Name: "договор.pdf", Size: 1024, Digest: sum[:]}},
		},
	}
}
