// SPDX-License-Identifier: Apache-2.0

package confirm_test

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"tamga/internal/adapter/store"
	"tamga/internal/adapter/store/storetest"
	"tamga/internal/domain/audit"
	"tamga/internal/domain/confirm"
	"tamga/internal/domain/confirm/what"
	"tamga/internal/domain/contact"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/lock"
	"tamga/internal/domain/notify"
)

// TestSMS confirms by a code, and looks at all that is left behind.
func TestSMS(t *testing.T) {
	ctx := t.Context()
	w := open(t, nil)
	r := w.create()
	if r.State != confirm.Created || r.ID == r.RefID || r.Operator != "operator" || !r.ConfirmBefore.Equal(start.Add(1200*time.Second)) {
		t.Errorf("created: %+v", r)
	}
	p := w.challenge(r, confirm.Ask{Titles: true})
	code := w.messages.last(t).Data["Code"]
	if p.Record.Label != "***4567" || p.Record.Number != "" || !p.Record.AnswerBefore.Equal(start.Add(300*time.Second)) || len(code) != 6 {
		t.Errorf("challenged: %+v, code %q", p.Record, code)
	}
	want := notify.Direct{
		Channel: notify.SMS, To: phone, Template: notify.TemplateConfirmationCode, Lang: "en", UserID: ivanID, Actor: ivanID, Expires: start.Add(300 * time.Second),
		Data: map[string]string{"Action": "Signing documents", "Documents": "3", "Name": "договор.pdf", "Group": r.What.Group(), "Code": code, "Minutes": "5"},
	}
	if d := cmp.Diff(want, w.messages.last(t), cmpopts.IgnoreUnexported(notify.Direct{})); d != "" {
		t.Error(d)
	}
	p, err := w.Answer(ctx, ivan, r.RefID, other(code))
	w.is("a wrong code", err, "")
	if p.Wrong == nil || p.Wrong.Code != fault.AuthenticationFailed || !strings.Contains(p.Wrong.Message, "4 of 5") || p.Record.State != confirm.Challenged {
		t.Errorf("a wrong code: %+v", p)
	}
	w.wait(time.Second)
	p, err = w.Answer(ctx, ivan, strings.ToUpper(r.RefID), " "+code+"\n")
	w.is("the right code", err, "")
	now := w.clock()
	if p.Wrong != nil || p.Record.State != confirm.Confirmed || !p.Record.ConfirmedAt.Equal(now) || !p.Record.CompleteBefore.Equal(now.Add(300*time.Second)) {
		t.Errorf("the right code: %+v", p)
	}
	if d := cmp.Diff(w.stored(r.ID), p.Record); d != "" {
		t.Errorf("the answer differs from the stored record: %s", d)
	}
	if d := cmp.Diff([]confirm.DocumentState{confirm.Approved, confirm.Approved, confirm.Approved}, p.Record.DocumentStates()); d != "" {
		t.Error(d)
	}
	_, err = w.Answer(ctx, ivan, r.RefID, code)
	w.is("the same code again", err, "")
	p, err = w.Poll(ctx, ivan, r.RefID)
	w.is("a poll", err, "")
	if p.Record.State != confirm.Confirmed {
		t.Errorf("a poll: %s", p.Record.State)
	}
	if d := cmp.Diff([]notify.EventType{notify.ConfirmationCreated, notify.ConfirmationRequested, notify.ConfirmationGiven},
		slices.DeleteFunc(w.messages.events, func(e notify.EventType) bool { return e == notify.UserAccountChanged || e == notify.UserFactorChanged })); d != "" {
		t.Error(d)
	}
	var log []string
	entries, err := store.Audit{DB: w.db}.Last(ctx, 10)
	w.must(err)
	for _, e := range entries {
		log = append(log, e.Operation+" "+e.Outcome+" "+e.Object+" "+e.Detail+" "+e.Principal.Login)
	}
	about := "SignDocuments " + r.What.Group()
	if d := cmp.Diff([]string{
		"Confirmation ok " + r.ID + " Created " + about + " ivan",
		"Confirmation ok " + r.ID + " Challenged " + about + " otpviasms ***4567 challenge 1 ivan",
		"Confirmation ok " + r.ID + " Confirmed " + about + " otpviasms ***4567 challenge 1 ivan",
	}, log); d != "" {
		t.Error(d)
	}
	content, err := w.Content(ctx, ivan, r.ID)
	w.must(err)
	if string(content.Outline) != "the outline" || !strings.Contains(content.Shown["ru"], "договор.pdf") || !strings.Contains(content.Shown["en"], r.What.Group()) {
		t.Errorf("content: %+v", content)
	}
	// The code is not in the files of the database.
	for _, suffix := range []string{"", "-wal"} {
		data, err := os.ReadFile(w.file + suffix)
		w.must(err)
		if bytes.Contains(data, []byte(`"`+code+`"`)) {
			t.Errorf("the file %s contains the code %s", suffix, code)
		}
		if suffix == "-wal" && !bytes.Contains(data, []byte("the outline")) {
			t.Error("the scan of the file finds nothing at all")
		}
	}
}

// TestRepeat repeats the first call of a client.
func TestRepeat(t *testing.T) {
	ctx := t.Context()
	w := open(t, nil)
	r, first := w.bySMS()
	_, err := w.Answer(ctx, ivan, r.RefID, other(first))
	w.must(err)
	w.wait(59 * time.Second)
	p := w.challenge(r, confirm.Ask{})
	if len(w.messages.orders) != 1 || p.Record.Attempts != 1 {
		t.Errorf("within a minute: %d messages, %d attempts", len(w.messages.orders), p.Record.Attempts)
	}
	w.wait(time.Second)
	p = w.challenge(r, confirm.Ask{})
	second := w.messages.last(t).Data["Code"]
	if len(w.messages.orders) != 2 || p.Record.RefID != r.RefID || p.Record.Round != 1 || p.Record.Attempts != 1 || p.Record.Resends != 1 {
		t.Errorf("after a minute: %d messages, %+v", len(w.messages.orders), p.Record)
	}
	if d := cmp.Diff(w.stored(r.ID), p.Record); d != "" {
		t.Errorf("the answer differs from the stored record: %s", d)
	}
	if first != second { // one time in a million they are equal
		p, err = w.Answer(ctx, ivan, r.RefID, first)
		w.must(err)
		if p.Wrong == nil {
			t.Error("the first code is still valid")
		}
	}
	// When the budget of messages is used up nothing changes, and the code stays valid.
	w.wait(time.Minute)
	w.messages.refuse = fault.New(fault.TooManyRequests, "too many messages")
	before := w.stored(r.ID)
	_, err = w.Challenge(ctx, ivan, confirm.Ask{RefID: r.RefID})
	w.is("no budget", err, fault.TooManyRequests)
	if d := cmp.Diff(before, w.stored(r.ID)); d != "" {
		t.Error(d)
	}
	// A code that is too late can be replaced, as long as the record has not expired.
	w.wait(5 * time.Minute)
	w.messages.refuse = nil
	for name, call := range map[string]func() error{
		"answer": func() error { _, err := w.Answer(ctx, ivan, r.RefID, second); return err },
		"poll":   func() error { _, err := w.Poll(ctx, ivan, r.RefID); return err },
	} {
		w.is(name, call(), fault.TransactionExpired)
	}
	w.challenge(r, confirm.Ask{})
	p, err = w.Answer(ctx, ivan, r.RefID, w.messages.last(t).Data["Code"])
	w.must(err)
	if p.Record.State != confirm.Confirmed {
		t.Errorf("after a replacement: %s", p.Record.State)
	}
}

// TestAttempts uses up the attempts of a challenge.
func TestAttempts(t *testing.T) {
	ctx := t.Context()
	w := open(t, nil)
	r, code := w.bySMS()
	for n := 1; n < 5; n++ {
		p, err := w.Answer(ctx, ivan, r.RefID, other(code))
		w.must(err)
		if p.Wrong == nil || p.Record.Attempts != n {
			t.Errorf("attempt %d: %+v", n, p)
		}
	}
	_, err := w.Answer(ctx, ivan, r.RefID, other(code))
	w.is("the fifth", err, fault.MaxAttempts)
	for name, call := range map[string]func() error{
		"the right code": func() error { _, err := w.Answer(ctx, ivan, r.RefID, code); return err },
		"a poll":         func() error { _, err := w.Poll(ctx, ivan, r.RefID); return err },
		"another code":   func() error { _, err := w.Challenge(ctx, ivan, confirm.Ask{ID: r.ID}); return err },
	} {
		w.is(name, call(), fault.MaxAttempts)
	}
	got := w.stored(r.ID)
	if got.State != confirm.Error || got.Code != fault.MaxAttempts || w.messages.events[len(w.messages.events)-1] != notify.ConfirmationFailed {
		t.Errorf("after all: %+v, events %v", got, w.messages.events)
	}
}

// TestClosedMethod guesses over many records: a new operation for each guess does not help.
func TestClosedMethod(t *testing.T) {
	ctx := t.Context()
	w := open(t, nil)
	w.assign("otpviasms", "otpviaemail")
	sms := confirm.Ask{Method: "otpviasms"}
	for n := range 10 {
		r := w.challenge(w.create(), sms).Record
		code := w.messages.last(t).Data["Code"]
		if n == 5 { // a right answer takes back only itself
			_, err := w.Answer(ctx, ivan, r.RefID, code)
			w.must(err)
			r = w.challenge(w.create(), sms).Record
			code = w.messages.last(t).Data["Code"]
		}
		p, err := w.Answer(ctx, ivan, r.RefID, other(code))
		w.must(err)
		if p.Wrong == nil {
			t.Fatalf("guess %d: %+v", n, p)
		}
		w.wait(time.Second)
	}
	sent := len(w.messages.orders)
	r := w.create()
	sms.ID = r.ID
	_, err := w.Challenge(ctx, ivan, sms)
	w.is("another challenge", err, fault.MaxAttempts)
	if f, _ := fault.As(err); f == nil || f.After <= 14*time.Minute || f.After > 15*time.Minute {
		t.Errorf("closed for %v", f.After)
	}
	if len(w.messages.orders) != sent {
		t.Error("a message was sent by a closed method")
	}
	p := w.challenge(r, confirm.Ask{Method: "otpviaemail"})
	code := w.messages.last(t).Data["Code"]
	if p.Record.Label != "i***@example.org" {
		t.Errorf("label %q", p.Record.Label)
	}
	_, err = w.Answer(ctx, ivan, r.RefID, code)
	w.is("another method", err, "")

	// A challenge that began before does not accept an answer either, and the answer is not
	// counted.
	w.must(w.Forgive(ctx, ivanID))
	late, code := w.bySMS()
	for range 2 {
		guess := w.challenge(w.create(), confirm.Ask{Method: "otpviasms"}).Record
		for range 5 {
			_, err = w.Answer(ctx, ivan, guess.RefID, other(w.messages.last(t).Data["Code"]))
		}
		w.is("guesses", err, fault.MaxAttempts)
	}
	_, err = w.Answer(ctx, ivan, late.RefID, code)
	w.is("the right code while the method is closed", err, fault.MaxAttempts)
	if got := w.stored(late.ID); got.State != confirm.Challenged || got.Attempts != 0 {
		t.Errorf("while the method is closed: %s after %d attempts", got.State, got.Attempts)
	}
	w.wait(15 * time.Minute)
	r = w.create()
	w.challenge(r, confirm.Ask{Method: "otpviasms"})
	_, err = w.Answer(ctx, ivan, r.RefID, w.messages.last(t).Data["Code"])
	w.is("after the time", err, "")
}

// TestOath spends each step of a token once, over all records.
func TestOath(t *testing.T) {
	ctx := t.Context()
	w := open(t, nil)
	w.assign("oath")
	a, b := w.create(), w.create()
	for _, r := range []confirm.Record{a, b} {
		if p := w.challenge(r, confirm.Ask{}); p.Record.Method != "oath" || p.Record.Label != "T1" {
			t.Errorf("challenge: %+v", p.Record)
		}
	}
	if len(w.messages.orders) != 0 {
		t.Error("a message was sent")
	}
	code := w.oathCode(0)
	p, err := w.Answer(ctx, ivan, a.RefID, other(code))
	w.must(err)
	if p.Wrong == nil {
		t.Error("a wrong code was accepted")
	}
	p, err = w.Answer(ctx, ivan, a.RefID, code)
	w.must(err)
	if p.Record.State != confirm.Confirmed {
		t.Errorf("the right code: %s", p.Record.State)
	}
	p, err = w.Answer(ctx, ivan, b.RefID, code)
	w.must(err)
	if p.Wrong == nil {
		t.Error("the code of one step was accepted for two records")
	}
	w.wait(period)
	p, err = w.Answer(ctx, ivan, b.RefID, w.oathCode(0))
	w.must(err)
	if p.Record.State != confirm.Confirmed {
		t.Errorf("the next step: %s", p.Record.State)
	}
}

// TestChoices looks at what users may choose from.
func TestChoices(t *testing.T) {
	ctx := t.Context()
	w := open(t, func(s *confirm.Settings) { s.Methods = []string{"mydss", "mobile", "otpviasms", "oath"} })
	all := []string{"mydss", "otpviasms", "otpviaemail", "oath"}
	v1 := confirm.Ask{Methods: []string{"mobile", "otpviasms", "otpviaemail"}, Fallback: []string{"oath"}}
	for _, c := range []struct {
		name     string
		assigned []string
		ask      confirm.Ask
		want     string // choices, or the challenge after "="
		fault    string
	}{
		{"all", all, confirm.Ask{}, "mydss?41 phone 41, mydss?42 phone 42, mobile?41 phone 41, mobile?42 phone 42, otpviasms ***4567, oath T1", ""},
		{"v1", all, v1, "mobile?41 phone 41, mobile?42 phone 42, otpviasms ***4567", ""},
		{"one", []string{"otpviasms"}, v1, "=otpviasms ***4567", ""},
		{"the fallback", []string{"oath"}, v1, "=oath T1", ""},
		{"of known methods", all, confirm.Ask{Methods: []string{"oath", "airkey"}}, "=oath T1", ""},
		{"none that the client knows", []string{"oath"}, confirm.Ask{Methods: []string{"otpviasms"}}, "", fault.MethodNotConfirmed},
		{"chosen", all, confirm.Ask{Method: "mydss", Address: "42"}, "=mydss phone 42", ""},
		{"chosen without an address", all, confirm.Ask{Method: "mydss"}, "=mydss phone 41", ""},
		{"another device", all, confirm.Ask{Method: "mydss", Address: "43"}, "", fault.InvalidParameters},
		{"not accepted here", all, confirm.Ask{Method: "otpviaemail"}, "", fault.InvalidParameters},
		{"not assigned", []string{"oath"}, confirm.Ask{Method: "otpviasms"}, "", fault.InvalidParameters},
		{"not known to the client", all, confirm.Ask{Methods: []string{"otpviasms"}, Method: "oath"}, "", fault.InvalidParameters},
	} {
		t.Run(c.name, func(t *testing.T) {
			w.assign(c.assigned...)
			r := w.create()
			c.ask.ID = r.ID
			p, err := w.Challenge(ctx, ivan, c.ask)
			w.is(c.name, err, c.fault)
			var got []string
			for _, choice := range p.Choices {
				name := choice.Method
				if choice.Address != "" {
					name += "?" + choice.Address
				}
				got = append(got, name+" "+choice.Label)
			}
			text := strings.Join(got, ", ")
			if err == nil && len(p.Choices) == 0 {
				text = "=" + p.Record.Method + " " + p.Record.Label
			}
			if text != c.want {
				t.Errorf("%q, want %q", text, c.want)
			}
			want := confirm.Created
			if strings.HasPrefix(c.want, "=") {
				want = confirm.Challenged
			}
			if got := w.stored(r.ID).State; got != want {
				t.Errorf("the state is %s, want %s", got, want)
			}
		})
	}
	// Another choice begins another challenge; the first code is worth nothing then.
	w.assign(all...)
	r := w.challenge(w.create(), confirm.Ask{Method: "otpviasms"}).Record
	code := w.messages.last(t).Data["Code"]
	p := w.challenge(r, confirm.Ask{Method: "oath"})
	if p.Record.Round != 2 || p.Record.Method != "oath" {
		t.Errorf("another choice: %+v", p.Record)
	}
	if p, err := w.Answer(ctx, ivan, r.RefID, code); err != nil || p.Wrong == nil {
		t.Errorf("the code of the first challenge: %+v, %v", p, err)
	}
	// Without what the method needs, nothing can be created.
	for name, take := range map[string]func(){
		"no method":                     func() { w.assign() },
		"a method that is not accepted": func() { w.assign("otpviaemail") },
		"no channel":                    func() { w.assign("otpviasms"); w.messages.channels = nil },
	} {
		take()
		_, err := w.Create(ctx, ivan, order())
		w.is(name, err, fault.MethodNotConfirmed)
	}
	_, err := w.Create(ctx, anna, order())
	w.is("a user without anything", err, fault.MethodNotConfirmed)
	w.assign("otpviasms")
	w.messages.channels = []notify.Channel{notify.SMS}
	w.must(w.book.Delete(ctx, ivan, ivanID, contact.Phone, phone))
	_, err = w.Create(ctx, ivan, order())
	w.is("no phone", err, fault.MethodNotConfirmed)
}

// TestDevice confirms on devices.
func TestDevice(t *testing.T) {
	ctx := t.Context()
	w := open(t, nil)
	w.assign("mydss")
	ask := func(titles bool) confirm.Record {
		return w.challenge(w.create(), confirm.Ask{Method: "mydss", Address: "41", Titles: titles}).Record
	}
	for _, c := range []struct {
		name     string
		titles   bool
		change   func(r confirm.Record, v *confirm.Decision)
		fault    string
		state    confirm.State
		declined []int
	}{
		{"approved", false, nil, "", confirm.Confirmed, nil},
		{"with the number", true, nil, "", confirm.Confirmed, nil},
		{"without the number", true, func(_ confirm.Record, v *confirm.Decision) { v.Number = "" }, fault.AuthenticationDeclined, confirm.Declined, nil},
		{"another number", true, func(r confirm.Record, v *confirm.Decision) { v.Number = other(r.Number) }, fault.AuthenticationDeclined, confirm.Declined, nil},
		{"a number that was not asked for", false, func(_ confirm.Record, v *confirm.Decision) { v.Number = "11" }, "", confirm.Confirmed, nil},
		{"some declined", true, func(_ confirm.Record, v *confirm.Decision) { v.Declined = []int{2, 0, 2} }, "", confirm.Confirmed, []int{0, 2}},
		{"all declined", true, func(_ confirm.Record, v *confirm.Decision) { v.Declined = []int{2, 1, 0} }, "", confirm.Declined, nil},
		{"refused", true, func(_ confirm.Record, v *confirm.Decision) { v.Approved, v.Number = false, "" }, "", confirm.Declined, nil},
		{"no such document", false, func(_ confirm.Record, v *confirm.Decision) { v.Declined = []int{3} }, fault.InvalidParameters, confirm.Challenged, nil},
		{"a negative document", false, func(_ confirm.Record, v *confirm.Decision) { v.Declined = []int{-1} }, fault.InvalidParameters, confirm.Challenged, nil},
		{"something else shown", false, func(_ confirm.Record, v *confirm.Decision) { v.What = append([]byte{v.What[0] ^ 1}, v.What[1:]...) }, fault.InvalidTransaction, confirm.Challenged, nil},
		{"nothing shown", false, func(_ confirm.Record, v *confirm.Decision) { v.What = nil }, fault.InvalidTransaction, confirm.Challenged, nil},
		{"another device", false, func(_ confirm.Record, v *confirm.Decision) { v.Kid = "42" }, fault.InvalidTransaction, confirm.Challenged, nil},
		{"an unknown device", false, func(_ confirm.Record, v *confirm.Decision) { v.Kid = "43" }, fault.Unauthorized, confirm.Challenged, nil},
		{"another user", false, func(_ confirm.Record, v *confirm.Decision) { v.UserID = annaID }, fault.InvalidTransaction, confirm.Challenged, nil},
		{"no user", false, func(_ confirm.Record, v *confirm.Decision) { v.UserID = "" }, fault.InvalidTransaction, confirm.Challenged, nil},
		{"another record", false, func(_ confirm.Record, v *confirm.Decision) { v.ID = "00000000-0000-4000-8000-000000000009" }, fault.InvalidTransaction, confirm.Challenged, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := ask(c.titles)
			if !r.AnswerBefore.Equal(r.ConfirmBefore) || (len(r.Number) == 2) != c.titles {
				t.Fatalf("challenge: %+v", r)
			}
			signed := decision(r, func(v *confirm.Decision) {
				if c.change != nil {
					c.change(r, v)
				}
			})
			got, err := w.Approve(ctx, signed)
			w.is(c.name, err, c.fault)
			after := w.stored(r.ID)
			if after.State != c.state {
				t.Errorf("the state is %s, want %s", after.State, c.state)
			}
			if d := cmp.Diff(c.declined, after.Declined); d != "" {
				t.Error(d)
			}
			content, cerr := w.Content(ctx, ivan, r.ID)
			w.must(cerr)
			if kept := after.State != confirm.Challenged; kept != bytes.Equal(content.Approval, signed) {
				t.Errorf("the stored decision is %q", content.Approval)
			}
			if err == nil {
				if d := cmp.Diff(after, got); d != "" {
					t.Error(d)
				}
				again, err := w.Approve(ctx, signed) // the answer was lost
				w.is("again", err, "")
				if again.State != c.state {
					t.Errorf("again: %s", again.State)
				}
			}
		})
	}
	states := func(r confirm.Record) (list []confirm.DocumentState) { return r.DocumentStates() }
	r := ask(false)
	r, err := w.Approve(ctx, decision(r, func(v *confirm.Decision) { v.Declined = []int{1} }))
	w.must(err)
	if d := cmp.Diff([]confirm.DocumentState{confirm.Approved, confirm.Refused, confirm.Approved}, states(r)); d != "" {
		t.Error(d)
	}
	// A decision that was made before the expiry and arrives before it counts.
	r = ask(false)
	w.wait(1200*time.Second - time.Millisecond)
	_, err = w.Approve(ctx, decision(r, nil))
	w.is("late delivery", err, "")
	r = ask(false)
	w.wait(1200 * time.Second)
	_, err = w.Approve(ctx, decision(r, nil))
	w.is("too late", err, fault.TransactionExpired)
	// A device without a key of the service cannot answer a challenge by code, nor a code one
	// of a device.
	w.devices.old = true
	r = ask(false)
	_, err = w.Answer(ctx, ivan, r.RefID, "123456")
	w.is("a code", err, fault.InvalidParameters)
	if got := w.stored(r.ID); got.Attempts != 0 {
		t.Errorf("%d attempts", got.Attempts)
	}
	w.assign("otpviasms")
	bySMS, _ := w.bySMS()
	_, err = w.Approve(ctx, decision(bySMS, func(v *confirm.Decision) { v.Kid = "41" }))
	w.is("a device that was not asked", err, fault.InvalidTransaction)
	if !slices.Contains(w.devices.woken, ivanID+" 41") {
		t.Error("the device was not woken")
	}
}

// TestForeign checks that a record of another user looks like a missing one.
func TestForeign(t *testing.T) {
	ctx := t.Context()
	w := open(t, nil)
	r, code := w.bySMS()
	missing := "00000000-0000-4000-8000-000000000009"
	elsewhere := ivan
	elsewhere.ClientID = "another client"
	for name, call := range map[string]func(who audit.Principal, id, ref string) error{
		"Find":    func(who audit.Principal, id, _ string) error { _, err := w.Find(ctx, who, id); return err },
		"Content": func(who audit.Principal, id, _ string) error { _, err := w.Content(ctx, who, id); return err },
		"Challenge": func(who audit.Principal, id, _ string) error {
			_, err := w.Challenge(ctx, who, confirm.Ask{ID: id})
			return err
		},
		"Choice": func(who audit.Principal, _, ref string) error {
			_, err := w.Challenge(ctx, who, confirm.Ask{RefID: ref})
			return err
		},
		"Answer": func(who audit.Principal, _, ref string) error { _, err := w.Answer(ctx, who, ref, code); return err },
		"Poll":   func(who audit.Principal, _, ref string) error { _, err := w.Poll(ctx, who, ref); return err },
		"Cancel": func(who audit.Principal, id, _ string) error { _, err := w.Cancel(ctx, who, id); return err },
		"Ready":  func(who audit.Principal, id, _ string) error { _, _, err := w.Ready(ctx, who, id); return err },
		"Spend": func(who audit.Principal, id, _ string) error {
			_, err := w.Spend(ctx, who, id, r.What, lock.Set{}, nothing)
			return err
		},
	} {
		want := call(ivan, missing, missing)
		w.is(name, want, fault.InvalidTransaction)
		for _, who := range []audit.Principal{anna, anonymous, elsewhere} {
			if err := call(who, r.ID, r.RefID); err == nil || err.Error() != want.Error() {
				t.Errorf("%s by %+v: %v, want %v", name, who, err, want)
			}
		}
		for _, hostile := range []string{"", "\x00", "'; --", strings.Repeat("x", 10_000)} {
			w.is(name, call(ivan, hostile, hostile), fault.InvalidTransaction)
		}
	}
	if got := w.stored(r.ID); got.State != confirm.Challenged || got.Attempts != 0 {
		t.Errorf("after all: %s, %d attempts", got.State, got.Attempts)
	}
	noClient := ivan // Basic instead of a token
	noClient.ClientID = ""
	_, err := w.Poll(ctx, noClient, r.RefID)
	w.is("a poll without a client", err, "")
}

// readOnly fails the test when a method that writes is called.
type readOnly struct {
	confirm.Store
	t     *testing.T
	reads int
}

func (s *readOnly) ConfirmationByRef(ctx context.Context, ref string) (confirm.Record, bool, error) {
	s.reads++
	return s.Store.ConfirmationByRef(ctx, ref)
}

func (s *readOnly) Atomic(context.Context, lock.Set, func(ctx context.Context) error) error {
	s.t.Error("a poll began a transaction")
	return nil
}

// TestPollReads counts the calls of the store during a poll.
func TestPollReads(t *testing.T) {
	w := open(t, nil)
	r, _ := w.bySMS()
	s := &readOnly{Store: w.deps.Store, t: t}
	only := confirm.Deps{Store: s, Codes: w.deps.Codes, Vault: w.ring, Now: w.clock} // every other dependency is nil
	service, err := confirm.New(confirm.DefaultSettings(), only)
	w.must(err)
	p, err := service.Poll(t.Context(), ivan, r.RefID)
	w.must(err)
	if p.Record.State != confirm.Challenged || s.reads != 1 {
		t.Errorf("%s after %d reads, want one", p.Record.State, s.reads)
	}
}

// TestChangedDatabase changes the cells of a record past the store.
func TestChangedDatabase(t *testing.T) {
	for name, statement := range map[string]string{
		"fields":                 `UPDATE confirmation_contents SET fields = CAST(REPLACE(CAST(fields AS TEXT), 'b.pdf', 'x.pdf') AS BLOB) WHERE id = ?1`,
		"digest":                 `UPDATE confirmations SET what = zeroblob(32) WHERE id = ?1`,
		"fields that are broken": `UPDATE confirmation_contents SET fields = '{' WHERE id = ?1`,
	} {
		t.Run(name, func(t *testing.T) {
			w := open(t, nil)
			w.create()
			r := w.confirmed()
			pool, err := sql.Open("sqlite", w.file)
			w.must(err)
			defer pool.Close()
			_, err = pool.Exec(statement, r.ID)
			w.must(err)
			if _, err := w.Content(t.Context(), ivan, r.ID); err == nil {
				t.Error("a record was read whose cells were changed")
			} else if _, is := fault.As(err); is {
				t.Errorf("%v: want an internal error", err)
			}
		})
	}
}

// TestAnswersAtOnce answers one challenge by 64 callers over two handles of a database.
func TestAnswersAtOnce(t *testing.T) {
	cluster := storetest.PostgreSQL(t)
	for engine, url := range map[string]string{
		"SQLite": storetest.SQLiteFile(t, t.TempDir()+"/tamga.db"), "PostgreSQL": cluster.Migrated(t),
	} {
		t.Run(engine, func(t *testing.T) {
			one := openOn(t, storetest.Open(t, url), nil)
			one.furnish()
			two := openOn(t, storetest.Open(t, url), nil)
			for _, wrong := range []int{0, 4} { // callers with a wrong code among them
				one.must(one.Forgive(t.Context(), ivanID))
				r, code := one.bySMS()
				confirmed, errs := atOnce(64, func(i int) (bool, error) {
					w := []*world{one, two}[i%2]
					value := code
					if i < wrong {
						value = other(code)
					}
					p, err := w.Answer(t.Context(), ivan, r.RefID, value)
					return err == nil && p.Wrong == nil && p.Record.State == confirm.Confirmed, err
				})
				for _, err := range errs {
					if err != nil && !fault.Is(err, fault.InvalidTransaction) && !fault.Is(err, fault.MaxAttempts) {
						t.Error(err)
					}
				}
				// The right code again says the same, until a wrong one follows it.
				if confirmed < 1 || wrong == 0 && confirmed != 64 {
					t.Errorf("%d of 64 callers confirmed", confirmed)
				}
				entries, err := store.Audit{DB: one.db}.Last(t.Context(), 1000)
				one.must(err)
				if n := len(slices.DeleteFunc(entries, func(e audit.Entry) bool { return e.Object != r.ID || !strings.HasPrefix(e.Detail, "Confirmed ") })); n != 1 {
					t.Errorf("the record was confirmed %d times, want once", n)
				}
				if got := one.stored(r.ID); got.State != confirm.Confirmed || got.Attempts > 5 {
					t.Errorf("%s after %d attempts", got.State, got.Attempts)
				}
			}
			// Guesses only: no more than the five attempts are checked, whatever arrives at
			// once.
			one.must(one.Forgive(t.Context(), ivanID))
			r, code := one.bySMS()
			confirmed, _ := atOnce(64, func(i int) (bool, error) {
				p, err := []*world{one, two}[i%2].Answer(t.Context(), ivan, r.RefID, fmt.Sprintf("%06d", 1+i))
				return err == nil && p.Record.State == confirm.Confirmed, err
			})
			if got := one.stored(r.ID); got.State != confirm.Error || got.Attempts != 5 || confirmed != 0 {
				if code > "000064" {
					t.Errorf("%s after %d attempts, %d confirmed", got.State, got.Attempts, confirmed)
				}
			}
			// Spending once.
			one.must(one.Forgive(t.Context(), ivanID))
			r = one.confirmed()
			winner := make(chan int, 64)
			spent, errs := atOnce(64, func(i int) (bool, error) {
				w := []*world{one, two}[i%2]
				locked := []lock.Set{{}, lock.User(ivanID)}[i/2%2]
				spent, err := w.Spend(t.Context(), ivan, r.ID, r.What, locked, func(ctx context.Context, r *confirm.Record) error {
					if _, err := w.deps.Answers.CountWrong(ctx, ivanID, "beside", w.clock(), confirm.Limit{Wrong: 2, Window: time.Hour, Closed: time.Hour}); err != nil {
						return err
					}
					return w.Keep(ctx, r, fmt.Append(nil, i))
				})
				if spent {
					winner <- i
				}
				return spent, err
			})
			one.must(errors.Join(errs...))
			if spent != 1 {
				t.Fatalf("%d of 64 callers spent the record, want one", spent)
			}
			if given, _, err := one.Given(t.Context(), ivan, r.ID); err != nil || string(given) != fmt.Sprint(<-winner) {
				t.Errorf("the change of caller %s is kept, %v", given, err)
			}
			if closed, err := one.deps.Answers.ClosedUntil(t.Context(), ivanID, "beside"); err != nil || !closed.IsZero() {
				t.Errorf("a second change is kept: %v, %v", closed, err)
			}
			// Spending against cancelling.
			for range 5 {
				one.must(one.Forgive(t.Context(), ivanID))
				one.wait(time.Minute)
				r := one.confirmed()
				spent, errs := atOnce(16, func(i int) (bool, error) {
					w := []*world{one, two}[i%2]
					if i%4 > 1 {
						_, err := w.Cancel(t.Context(), ivan, r.ID)
						return false, err
					}
					return w.Spend(t.Context(), ivan, r.ID, r.What, lock.Set{}, nothing)
				})
				want := map[int]confirm.State{0: confirm.Cancelled, 1: confirm.Completed}[spent]
				if got := one.stored(r.ID).State; got != want {
					t.Errorf("%s after it was spent %d times", got, spent)
				}
				for i, err := range errs { // who cancels beside another one may be refused, too
					cancels, done := i%4 > 1, want == confirm.Completed
					if err != nil && !fault.Is(err, fault.InvalidTransaction) || !cancels && (err == nil) != done || cancels && done && err == nil {
						t.Errorf("%s, caller %d: %v", want, i, err)
					}
				}
			}
		})
	}
}

// atOnce runs n calls concurrently and returns how many reported true, and their errors.
func atOnce(n int, do func(i int) (bool, error)) (count int, errs []error) {
	won := make([]bool, n)
	errs = make([]error, n)
	var all sync.WaitGroup
	gate := make(chan struct{})
	for i := range n {
		all.Go(func() {
			<-gate
			won[i], errs[i] = do(i)
		})
	}
	close(gate)
	all.Wait()
	for _, w := range won {
		if w {
			count++
		}
	}
	return count, errs
}

// TestFields refuses fields that cannot be confirmed.
func TestFields(t *testing.T) {
	w := open(t, func(s *confirm.Settings) { s.RefuseHash = true })
	bad := order()
	bad.Fields.Documents[0].Name = strings.Repeat("x", 2000)
	_, err := w.Create(t.Context(), ivan, bad)
	w.is("a long name", err, fault.InvalidParameters)
	hash := order()
	hash.Fields.Documents[1].Hash = "SHA-256"
	_, err = w.Create(t.Context(), ivan, hash)
	w.is("a hash", err, fault.AccessDenied)
	// An action without documents, and a text of a client.
	arguments, err := what.Arguments(map[string]string{"scope": "checkprofile"})
	w.must(err)
	r, err := w.Create(t.Context(), ivan, confirm.Draft{Purpose: confirm.ForText, Fields: what.Fields{Action: what.Free, Arguments: arguments}, Life: time.Minute})
	w.must(err)
	if !r.ConfirmBefore.Equal(start.Add(time.Minute)) {
		t.Errorf("valid until %v", r.ConfirmBefore)
	}
	p := w.challenge(r, confirm.Ask{})
	if d := w.messages.last(t).Data; d["Documents"] != "" || d["Name"] != "" || d["Action"] != "Confirmation: checkprofile" || !p.Record.AnswerBefore.Equal(r.ConfirmBefore) {
		t.Errorf("message %v, valid until %v", d, p.Record.AnswerBefore)
	}
}
