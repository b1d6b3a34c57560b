// SPDX-License-Identifier: Apache-2.0

package notify_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"tamga/internal/adapter/store"
	"tamga/internal/domain/notify"
)

const form = "operation"

// stored are bodies by the identifiers of their messages.
type stored map[string]string

func (s stored) OpenBody(_ context.Context, id string) (notify.Body, error) {
	text, ok := s[id]
	if !ok {
		return nil, notify.Permanent(errors.New("nothing is stored"))
	}
	return body{strings.NewReader(text)}, nil
}

type body struct{ *strings.Reader }

func (body) Close() error { return nil }

// line sends requests to addresses.
type line struct {
	post
	send func(ctx context.Context) error // nil: at once
}

func (l *line) Send(ctx context.Context, m notify.Message) error {
	if l.send != nil {
		if err := l.send(ctx); err != nil {
			return err
		}
	}
	return l.post.Send(ctx, m)
}

// bodies returns what was sent, in its order.
func (l *line) bodies(t *testing.T) (list []string) {
	for _, m := range l.sent {
		text := m.Text
		if m.Body != nil {
			var b strings.Builder
			if _, err := m.Body.WriteTo(&b); err != nil {
				t.Error(err)
			}
			text = b.String()
		}
		list = append(list, m.ID+" "+text)
	}
	return list
}

// calling is an office with a line.
func calling(t *testing.T, change func(*notify.Settings)) (*office, *line) {
	o, l := open(t, nil), &line{post: post{channel: notify.Callback}}
	o.deps.Notifiers = []notify.Notifier{l}
	o.Service = o.another(t, change)
	return o, l
}

const (
	first  = "00000000-0000-4000-8000-000000000001"
	second = "00000000-0000-4000-8000-000000000002"
)

func (o *office) call(t *testing.T, c notify.Call) {
	t.Helper()
	c.To = "https://example.org/"
	if err := o.Call(t.Context(), c); err != nil {
		t.Fatal(err)
	}
}

// A request with an identifier keeps it and waits for no other, those without wait for each other.
func TestCallsOfTheirOwn(t *testing.T) {
	o, l := calling(t, nil)
	failing := true
	l.fail = func(m notify.Message) error {
		if failing && (m.ID == first || m.Text == "a") {
			return errors.New("busy")
		}
		return nil
	}
	o.call(t, notify.Call{ID: first, Body: "1"})
	o.call(t, notify.Call{ID: second, Body: "2"})
	o.call(t, notify.Call{Body: "a"})
	o.call(t, notify.Call{Body: "b"})
	o.flush(t)
	if d := cmp.Diff([]string{second + " 2"}, l.bodies(t)); d != "" {
		t.Error(d)
	}
	failing, o.now = false, o.now.Add(time.Minute)
	o.flush(t)
	if len(l.sent) != 4 || l.sent[1].ID != first || l.sent[2].Text != "a" || l.sent[3].Text != "b" {
		t.Errorf("sent %q", l.bodies(t))
	}
	if err := o.Call(t.Context(), notify.Call{To: "https://example.org/", Form: form}); err == nil {
		t.Error("nothing says which body is to be opened")
	}
}

// A body of a form is opened at each attempt. What is not stored any more is given up.
func TestBodies(t *testing.T) {
	o, l := calling(t, nil)
	bodies := stored{first: "before"}
	o.OpenBodies(form, bodies)
	l.fail = func(notify.Message) error { return errors.New("busy") }
	o.call(t, notify.Call{ID: first, Form: form})
	o.call(t, notify.Call{ID: second, Form: form, Expires: start.Add(time.Hour)})
	o.flush(t)
	r, err := o.Message(t.Context(), second)
	if err != nil || r.State != notify.Dead || r.Error != "nothing is stored" || !r.ExpiresAt.Equal(start.Add(time.Hour)) {
		t.Errorf("%+v, %v", r, err)
	}
	l.fail, bodies[first], o.now = nil, "after", o.now.Add(time.Minute)
	if err := o.another(t, nil).Flush(t.Context()); err != nil { // a process that opens none
		t.Error(err)
	}
	if r, err := o.Message(t.Context(), first); err != nil || r.State != notify.Pending || len(l.sent) != 0 {
		t.Errorf("%+v, %v", r, err)
	}
	o.now = o.now.Add(time.Minute)
	o.flush(t)
	if d := cmp.Diff([]string{first + " after"}, l.bodies(t)); d != "" {
		t.Error(d)
	}
}

// extended notes the ends that leases get.
type extended struct {
	store.Outbox
	ends *[]time.Time
}

func (s extended) ExtendMessage(ctx context.Context, id, lease string, until time.Time) (bool, error) {
	*s.ends = append(*s.ends, until)
	return s.Outbox.ExtendMessage(ctx, id, lease, until)
}

// A body may take longer than a lease and an attempt at other messages, which extends its lease. It ends
// when it is of no use any more.
func TestLongBody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o, l := calling(t, nil)
		began := time.Now()
		var ends []time.Time
		o.deps.Store, o.deps.Now = extended{store.Outbox{DB: o.db}, &ends}, time.Now
		o.Service = o.another(t, func(s *notify.Settings) { s.SendTime, s.Lease = 20*time.Second, 30*time.Second })
		o.OpenBodies(form, stored{first: "long", second: "endless"})
		l.send = func(ctx context.Context) error {
			select {
			case <-time.After(61 * time.Second):
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		o.call(t, notify.Call{ID: first, Form: form})
		o.flush(t)
		if d := cmp.Diff([]string{first + " long"}, l.bodies(t)); d != "" {
			t.Error(d)
		}
		if len(ends) != 6 || !ends[5].Equal(began.Add(90*time.Second)) {
			t.Errorf("extended to %v", ends)
		}
		o.call(t, notify.Call{ID: second, Form: form, Expires: time.Now().Add(50 * time.Second)})
		o.flush(t)
		o.call(t, notify.Call{Body: "short"})
		o.flush(t)
		if len(l.sent) != 1 || time.Since(began) > 3*time.Minute {
			t.Errorf("sent %q after %v", l.bodies(t), time.Since(began))
		}
	})
}

// A process that is asked to stop gives a long body back at once, and finishes a short one.
func TestStopped(t *testing.T) {
	o, l := calling(t, nil)
	o.OpenBodies(form, stored{first: "long"})
	for _, c := range []struct {
		call notify.Call
		want notify.State
	}{{notify.Call{ID: first, Form: form}, notify.Pending}, {notify.Call{ID: second, Body: "short"}, notify.Sent}} {
		ctx, stop := context.WithCancel(t.Context())
		l.send = func(ctx context.Context) error {
			stop()
			if c.want == notify.Pending {
				<-ctx.Done()
			}
			return ctx.Err()
		}
		o.call(t, c.call)
		_ = o.Flush(ctx)
		if r, err := o.Message(t.Context(), c.call.ID); err != nil || r.State != c.want || !r.DueAt.Equal(o.now) {
			t.Errorf("%+v, %v", r, err)
		}
		l.send = nil
		o.flush(t)
		if len(l.sent) == 0 || l.sent[len(l.sent)-1].ID != c.call.ID {
			t.Errorf("sent %q", l.bodies(t))
		}
	}
}
