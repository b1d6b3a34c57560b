// SPDX-License-Identifier: Apache-2.0

package device_test

import (
	"strings"
	"testing"
	"time"

	"tamga/internal/domain/device"
	"tamga/internal/domain/device/message"
	"tamga/internal/domain/fault"
	"tamga/pki/suite"
)

func (b *bench) offline(userID, kid string) (qr, code string) {
	b.t.Helper()
	qr, code, err := b.approvals.Offline(b.t.Context(), userID, kid, device.OfflineOrder{
		ID: "1", What: make([]byte, 32), Text: "text", Number: true, Before: b.clock.Add(time.Minute),
	})
	must(b.t, err)
	return qr, code
}

// TestOffline: a device verifies a challenge with the key that it got at its registration,
// and makes the code that the service expects.
func TestOffline(t *testing.T) {
	for _, s := range suites {
		b := newBench(t)
		g := b.gadget(s)
		k := b.begin()
		m := g.say(message.Register, g.registration(k, b.post.code(t)))
		a, err := b.Register(t.Context(), m)
		must(t, err)
		g.kid = a.Device.Kid
		again, err := b.Register(t.Context(), g.say(message.Register, g.registration(k, "")))
		if err != nil || string(again.ServiceKey) != string(a.ServiceKey) {
			t.Errorf("%s: repeated: %v, another key of the service", s.Name, err)
		}
		if qr, code := b.offline(b.petrov, g.kid); qr != "" || code != "" {
			t.Errorf("%s: a device that is not verified is asked", s.Name)
		}
		v, err := b.BeginVerification(t.Context(), b.operator, b.petrov, g.kid)
		must(t, err)
		if a, err := g.verify(v); err != nil || a.ServiceKey != nil {
			t.Errorf("%s: %v, a key of the service outside of a registration", s.Name, err)
		}
		qr, code := b.offline(b.petrov, g.kid)
		q, err := message.ParseQR(qr)
		must(t, err)
		d := q.(message.Challenge).Data
		if !d.Verify(a.ServiceKey) || d.Kid != g.kid || d.ServiceURL != serviceURL || d.ID != "1" || !d.Number || d.Before != b.clock.Add(time.Minute).Unix() {
			t.Errorf("%s: the challenge %+v", s.Name, d)
		}
		if got, err := d.Code(g.key); err != nil || got != code {
			t.Errorf("%s: the device makes %s, %v, the service %s", s.Name, got, err, code)
		}
		_, _, err = b.approvals.Offline(t.Context(), b.sidorova, g.kid, device.OfflineOrder{})
		want(t, "the device of another user", err, fault.KeyNotFound)
		_, err = b.SetBlocked(t.Context(), b.operator, b.petrov, g.kid, true)
		must(t, err)
		if qr, code := b.offline(b.petrov, g.kid); qr != "" || code != "" {
			t.Errorf("%s: a blocked device is asked", s.Name)
		}
	}
}

// TestOfflineNeedsPin: a device that did not get the present key of the service is not asked.
func TestOfflineNeedsPin(t *testing.T) {
	b := newBench(t)
	g := b.active(suite.ECDSAP256)
	if qr, _ := b.offline(b.petrov, g.kid); qr == "" {
		t.Fatal("no challenge")
	}
	b.sql("DELETE FROM device_service_keys")
	if qr, code := b.offline(b.petrov, g.kid); qr != "" || code != "" {
		t.Error("a device is asked with a key of the service that it does not know")
	}
	b.sql("UPDATE device_service_keys SET algorithm = 'gost2012-256'")
	h := b.gadget(suite.GOST2012x256)
	if _, err := b.Register(t.Context(), h.say(message.Register, message.Registration{})); err == nil {
		t.Error("a key of the service that was moved is used")
	}
}

// TestDeliver: a decision that was signed before arrives inside of a fresh message, once.
func TestDeliver(t *testing.T) {
	for _, s := range suites {
		b := newBench(t)
		g := b.active(s)
		signedAt := b.clock
		early := g.say(message.Approval, decision)
		refusal := g.say(message.Refusal, message.Decision{ID: "1", What: decision.What})
		b.clock = b.clock.Add(3 * time.Hour)
		m := g.say(message.Deliver, message.Delivery{Message: early})
		v, err := b.open(m)
		must(t, err)
		if !v.Approved || v.ID != "1" || v.Number != "07" || len(v.Declined) != 1 || !v.SignedAt.Equal(signedAt) || v.Kid != g.kid || v.UserID != b.petrov {
			t.Errorf("%s: %+v", s.Name, v)
		}
		_, err = b.open(m)
		want(t, "a replayed message", err, fault.InvalidObjectState)
		_, err = b.open(early)
		want(t, "an approval that is not delivered", err, fault.InvalidParameters)
		v, err = b.open(g.say(message.Deliver, message.Delivery{Message: refusal}))
		if err != nil || v.Approved || !v.SignedAt.Equal(signedAt) {
			t.Errorf("%s: %v, %+v", s.Name, err, v)
		}
	}
}

// TestDeliverRefused: nothing else is taken out of a message.
func TestDeliverRefused(t *testing.T) {
	b := newBench(t)
	g := b.active(suite.ECDSAP256)
	other := b.gadget(suite.ECDSAP256)
	other.kid = g.kid
	inner := func(kind string, payload any, change func(h *message.Header)) message.Signed {
		h := g.header(kind)
		if change != nil {
			change(&h)
		}
		return g.sign(h, payload)
	}
	broken := inner(message.Approval, decision, nil)
	broken.Payload = inner(message.Approval, message.Decision{ID: "2", What: decision.What}, nil).Payload
	for _, c := range []struct {
		name  string
		inner message.Signed
		code  string
	}{
		{"nothing", message.Signed{}, fault.InvalidParameters},
		{"a fresh type", inner(message.Confirm, decision, nil), fault.InvalidParameters},
		{"a delivery in a delivery", inner(message.Deliver, message.Delivery{}, nil), fault.InvalidParameters},
		{"another key", other.sign(g.header(message.Approval), decision), fault.Unauthorized},
		{"another payload", broken, fault.Unauthorized},
		{"another device", inner(message.Approval, decision, func(h *message.Header) { h.Kid = "1" }), fault.InvalidParameters},
		{"another service", inner(message.Approval, decision, func(h *message.Header) { h.Service += "/" }), fault.InvalidParameters},
		{"a later number", inner(message.Approval, decision, func(h *message.Header) { h.Number += 1000 }), fault.InvalidParameters},
		{"a later time", inner(message.Approval, decision, func(h *message.Header) { h.Time += 301 }), fault.InvalidParameters},
		{"no decision", inner(message.Approval, []int{1}, nil), fault.InvalidParameters},
		{"no digest", inner(message.Approval, message.Decision{ID: "1", What: "x"}, nil), fault.InvalidParameters},
		{"declining some", inner(message.Refusal, decision, nil), fault.InvalidParameters},
		{"too long", message.Signed{Protected: "e30", Payload: strings.Repeat("A", 12000), Signature: "e30"}, fault.InvalidParameters},
	} {
		_, err := b.open(g.say(message.Deliver, message.Delivery{Message: c.inner}))
		want(t, c.name, err, c.code)
	}
	early := inner(message.Approval, decision, nil)
	_, err := b.SetBlocked(t.Context(), b.operator, b.petrov, g.kid, true)
	must(t, err)
	_, err = b.open(g.say(message.Deliver, message.Delivery{Message: early}))
	want(t, "a blocked device", err, fault.AccessDenied)
	must(t, b.Delete(t.Context(), b.operator, b.petrov, g.kid))
	replaced := b.active(suite.ECDSAP256)
	_, err = b.open(g.say(message.Deliver, message.Delivery{Message: early}))
	want(t, "a device that was removed", err, fault.Unauthorized)
	_, err = b.open(replaced.say(message.Deliver, message.Delivery{Message: early}))
	want(t, "an approval of the device that was replaced", err, fault.InvalidParameters)
}
