// SPDX-License-Identifier: Apache-2.0

package confirm_test

import (
	"strings"
	"testing"

	"tamga/internal/adapter/store"
	"tamga/internal/domain/audit"
	"tamga/internal/domain/confirm"
	"tamga/internal/domain/fault"
)

const client = "https://client.example/called"

// called returns a world whose clients may name addresses, except those with "forbidden".
func called(t *testing.T) *world {
	w := open(t, nil)
	w.deps.Callbacks = &confirm.Callbacks{Store: store.Confirmations{DB: w.db}, Check: func(address string) error {
		if strings.Contains(address, "forbidden") {
			return fault.New(fault.InvalidParameters, "forbidden")
		}
		return nil
	}}
	w.deps.Render = func(r *confirm.Record) (string, error) {
		return string(r.State) + " " + r.ID, nil
	}
	var err error
	settings := confirm.DefaultSettings()
	settings.Language = "en"
	w.Service, err = confirm.New(settings, w.deps)
	w.must(err)
	return w
}

// TestCallback reports the answer of the user to the address that the client named, once.
func TestCallback(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	w := called(t)
	w.assign("otpviasms", "mydss")
	begin := func(a confirm.Ask) confirm.Record {
		t.Helper()
		r := w.create()
		a.Callback = client
		return w.challenge(r, a).Record
	}
	sms := confirm.Ask{Method: "otpviasms"}
	for _, c := range []struct {
		name string
		end  func() confirm.Record
		want string // the state that is reported; "" for none
	}{
		{"confirmed and carried out", func() confirm.Record {
			r := begin(sms)
			_, err := w.Answer(ctx, ivan, r.RefID, w.messages.last(t).Data["Code"])
			w.must(err)
			w.must(w.spend(w.stored(r.ID)))
			return r
		}, "Confirmed"},
		{"confirmed and cancelled", func() confirm.Record {
			r := begin(sms)
			_, err := w.Answer(ctx, ivan, r.RefID, w.messages.last(t).Data["Code"])
			w.must(err)
			w.must(w.CancelAll(ctx, ivan, ivanID, "a lock"))
			return r
		}, "Confirmed"},
		{"declined on a device", func() confirm.Record {
			r := begin(confirm.Ask{Method: "mydss", Address: "41"})
			_, err := w.Approve(ctx, decision(r, func(v *confirm.Decision) { v.Approved = false }))
			w.must(err)
			return r
		}, "Declined"},
		{"too many wrong codes", func() confirm.Record {
			r := begin(sms)
			for range 5 {
				w.Answer(ctx, ivan, r.RefID, other(w.messages.last(t).Data["Code"]))
			}
			w.must(w.Forgive(ctx, ivanID))
			return r
		}, "Error"},
		{"cancelled by the client", func() confirm.Record {
			r := begin(sms)
			_, err := w.Cancel(ctx, ivan, r.ID)
			w.must(err)
			return r
		}, "Cancelled"},
		{"cancelled by a change of the account", func() confirm.Record {
			r := begin(sms)
			w.must(w.CancelAll(ctx, audit.Principal{UserID: "operator"}, ivanID, "a lock"))
			return r
		}, "Cancelled"},
		{"named before the choice", func() confirm.Record {
			r := w.create()
			p, err := w.Challenge(ctx, ivan, confirm.Ask{ID: r.ID, Callback: client})
			if w.must(err); len(p.Choices) == 0 {
				t.Error("no choice")
			}
			r = w.challenge(r, sms).Record
			_, err = w.Answer(ctx, ivan, r.RefID, w.messages.last(t).Data["Code"])
			w.must(err)
			return r
		}, "Confirmed"},
		{"expired", func() confirm.Record {
			r := begin(sms)
			w.wait(confirm.DefaultSettings().Life)
			w.must(w.Sweep(ctx))
			return r
		}, "Expired"},
		{"no address", func() confirm.Record {
			r := w.challenge(w.create(), sms).Record
			_, err := w.Cancel(ctx, ivan, r.ID)
			w.must(err)
			return r
		}, ""},
	} {
		w.messages.calls = nil
		r := c.end()
		switch calls := w.messages.calls; {
		case c.want == "" && len(calls) > 0:
			t.Errorf("%s: %+v", c.name, calls)
		case c.want == "":
		case len(calls) != 1 || calls[0].To != client || calls[0].UserID != ivanID || calls[0].Body != c.want+" "+r.ID:
			t.Errorf("%s: %+v, want one of %s", c.name, calls, c.want)
		}
	}
}

// TestCallbackRefused refuses an address and leaves the record as it was.
func TestCallbackRefused(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	w := called(t)
	r := w.create()
	for _, address := range []string{"https://forbidden.example", "https://" + strings.Repeat("x", 2048)} {
		_, err := w.Challenge(ctx, ivan, confirm.Ask{ID: r.ID, Callback: address})
		w.is(address[:20], err, fault.InvalidParameters)
	}
	if got := w.stored(r.ID); got.State != confirm.Created || got.Callback != "" || len(w.messages.orders) != 0 {
		t.Errorf("%s, %q, %d messages", got.State, got.Callback, len(w.messages.orders))
	}
	none := open(t, nil)
	r = none.create()
	_, err := none.Challenge(ctx, ivan, confirm.Ask{ID: r.ID, Callback: client})
	none.is("no callbacks", err, fault.InvalidParameters)
}
