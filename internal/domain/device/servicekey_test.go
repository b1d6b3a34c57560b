// SPDX-License-Identifier: Apache-2.0

package device_test

import (
	"bytes"
	"testing"
	"time"

	"tamga/internal/adapter/store"
	"tamga/internal/domain/device"
	"tamga/internal/domain/device/message"
	"tamga/internal/domain/fault"
	"tamga/pki/suite"
)

// known registers a device of petrov that is verified. It returns the key of the service that the
// device got.
func (b *bench) known(s *suite.Suite) (*gadget, []byte) {
	b.t.Helper()
	g := b.gadget(s)
	k := b.begin()
	a, err := g.register(k, b.post.code(b.t))
	must(b.t, err)
	v, err := b.BeginVerification(b.t.Context(), b.operator, b.petrov, g.kid)
	must(b.t, err)
	_, err = g.verify(v)
	must(b.t, err)
	return g, a.ServiceKey
}

// signedBy reports whether the next QR code for a device is signed with a key of the service.
func (b *bench) signedBy(g *gadget, key []byte) bool {
	b.t.Helper()
	qr, _ := b.offline(b.petrov, g.kid)
	if qr == "" {
		return false
	}
	q, err := message.ParseQR(qr)
	must(b.t, err)
	d := q.(message.Challenge).Data
	return d.Verify(key)
}

// TestRotateServiceKey: a device goes on with the key that it knows, learns the new one by a poll,
// and gets QR codes of the new key once it has said so. Another device of the user, which does not
// poll, has until the end of the old key.
func TestRotateServiceKey(t *testing.T) {
	const overlap = 24 * time.Hour
	for _, s := range suites {
		t.Run(s.Name, func(t *testing.T) {
			b := newBench(t)
			_, err := b.RotateServiceKey(t.Context(), s, overlap)
			want(t, "no key yet", err, fault.KeyNotFound)
			g, old := b.known(s)
			idle, same := b.known(s)
			if !bytes.Equal(old, same) {
				t.Fatal("two devices got two keys")
			}
			for _, wrong := range []time.Duration{-time.Hour, time.Minute, 401 * 24 * time.Hour} {
				_, err := b.RotateServiceKey(t.Context(), s, wrong)
				want(t, wrong.String(), err, fault.InvalidParameters)
			}
			if a, err := g.poll(); err != nil || a.Successor != nil {
				t.Fatalf("before: %v, %+v", err, a.Successor)
			}
			until, err := b.RotateServiceKey(t.Context(), s, overlap)
			must(t, err)
			if !until.Equal(b.clock.Add(overlap).Truncate(time.Second)) {
				t.Errorf("the old key ends at %s", until)
			}
			_, err = b.RotateServiceKey(t.Context(), s, overlap)
			want(t, "again at once", err, fault.WrongOperation)

			if !b.signedBy(g, old) {
				t.Error("the device is asked with a key that it does not know")
			}
			a, err := g.poll()
			must(t, err)
			n := a.Successor
			if n == nil || !n.Verify(serviceURL, old) || n.Until != until.Unix() || bytes.Equal(n.Key, old) {
				t.Fatalf("the new key is %+v", n)
			}
			for range 2 { // a repetition, since an answer may be lost
				_, err = b.KeepServiceKey(t.Context(), g.say(message.ServiceKey, message.KnownKey{Key: n.Key}))
				must(t, err)
			}
			if !b.signedBy(g, n.Key) || !b.signedBy(idle, old) {
				t.Error("a device is asked with a key that it does not know")
			}
			if a, err := g.poll(); err != nil || a.Successor != nil {
				t.Errorf("afterwards: %v, %+v", err, a.Successor)
			}
			if _, got := b.known(s); !bytes.Equal(got, n.Key) {
				t.Error("a new device gets the old key")
			}

			b.clock = until
			if qr, code := b.offline(b.petrov, idle.kid); qr != "" || code != "" {
				t.Error("a key is used after its end")
			}
			if a, err := idle.poll(); err != nil || a.Successor != nil {
				t.Errorf("a key introduces another one after its end: %v", err)
			}
			_, err = b.KeepServiceKey(t.Context(), idle.say(message.ServiceKey, message.KnownKey{Key: n.Key}))
			want(t, "after the end", err, fault.InvalidParameters)
			if !b.signedBy(g, n.Key) {
				t.Error("the new key ended with the old one")
			}
			must(t, b.Sweep(t.Context()))
			if _, found, err := (store.Devices{DB: b.db}).FormerKeyOf(t.Context(), s.Name, time.Unix(0, 0)); found || err != nil {
				t.Errorf("the old key is kept after its end: %v", err)
			}
			_, err = b.RotateServiceKey(t.Context(), s, overlap)
			must(t, err)
		})
	}
}

// TestRotateServiceKeyAtOnce: a key that may be known to others ends, and introduces no other one.
func TestRotateServiceKeyAtOnce(t *testing.T) {
	b := newBench(t)
	s := suite.ECDSAP256
	idle, first := b.known(s)
	other, _ := b.known(suite.GOST2012x256)
	_, err := b.RotateServiceKey(t.Context(), s, 24*time.Hour)
	must(t, err)
	g, second := b.known(s)
	if bytes.Equal(first, second) {
		t.Fatal("the key is the same")
	}
	_, err = b.RotateServiceKey(t.Context(), s, 0)
	must(t, err)
	for _, g := range []*gadget{idle, g} {
		if a, err := g.poll(); err != nil || a.Successor != nil {
			t.Errorf("a key that ended introduces another one: %v", err)
		}
		if qr, _ := b.offline(b.petrov, g.kid); qr != "" {
			t.Error("a key is used after its end")
		}
	}
	if qr, _ := b.offline(b.petrov, other.kid); qr == "" {
		t.Error("a key of the other kind ended")
	}
}

// TestKeepServiceKeyRefused: a device may name the new key, once it is offered, and no other one.
func TestKeepServiceKeyRefused(t *testing.T) {
	b := newBench(t)
	s := suite.ECDSAP256
	g, old := b.known(s)
	keep := func(key []byte) error {
		_, err := b.KeepServiceKey(t.Context(), g.say(message.ServiceKey, message.KnownKey{Key: key}))
		return err
	}
	must(t, keep(old))
	own := b.gadget(s)
	want(t, "a foreign key", keep(own.spki), fault.InvalidParameters)
	_, err := b.RotateServiceKey(t.Context(), s, time.Hour)
	must(t, err)
	want(t, "a foreign key instead of the new one", keep(own.spki), fault.InvalidParameters)
	want(t, "no key", keep(nil), fault.InvalidParameters)
	a, err := g.poll()
	must(t, err)
	own.kid = g.kid
	_, err = b.KeepServiceKey(t.Context(), own.say(message.ServiceKey, message.KnownKey{Key: a.Successor.Key}))
	want(t, "by another device", err, fault.Unauthorized)
	if !b.signedBy(g, old) {
		t.Error("a refused message changed the key")
	}
	_, err = b.SetBlocked(t.Context(), b.operator, b.petrov, g.kid, true)
	must(t, err)
	want(t, "a blocked device", keep(a.Successor.Key), fault.AccessDenied)
}

// TestFormerServiceKeyMoved: a former key that another program changed in the database is not used.
func TestFormerServiceKeyMoved(t *testing.T) {
	b := newBench(t)
	g, _ := b.known(suite.ECDSAP256)
	_, err := b.RotateServiceKey(t.Context(), suite.ECDSAP256, time.Hour)
	must(t, err)
	order := device.OfflineOrder{ID: "1", What: make([]byte, 32), Text: "text", Before: b.clock.Add(time.Minute)}
	if _, _, err := b.approvals.Offline(t.Context(), b.petrov, g.kid, order); err != nil {
		t.Fatal(err)
	}
	b.sql("UPDATE former_device_service_keys SET sealed = (SELECT sealed FROM device_service_keys)")
	if qr, _, err := b.approvals.Offline(t.Context(), b.petrov, g.kid, order); err == nil {
		t.Errorf("a key that was moved is used: %s", qr)
	}
}

// TestRepeatedRegistrationAfterRotation: a device that did not get the answer to its registration
// gets the present key, and the service knows that.
func TestRepeatedRegistrationAfterRotation(t *testing.T) {
	b := newBench(t)
	s := suite.GOST2012x256
	g := b.gadget(s)
	k := b.begin()
	a, err := g.register(k, b.post.code(t))
	must(t, err)
	_, err = b.RotateServiceKey(t.Context(), s, time.Hour)
	must(t, err)
	again, err := b.Register(t.Context(), g.say(message.Register, g.registration(k, "")))
	must(t, err)
	if bytes.Equal(again.ServiceKey, a.ServiceKey) {
		t.Error("the answer has the old key")
	}
	v, err := b.BeginVerification(t.Context(), b.operator, b.petrov, g.kid)
	must(t, err)
	_, err = g.verify(v)
	must(t, err)
	if !b.signedBy(g, again.ServiceKey) {
		t.Error("the device is asked with a key that it does not know")
	}
}
