// SPDX-License-Identifier: Apache-2.0

package device_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"tamga/internal/adapter/store/storetest"
	"tamga/internal/domain/device"
	"tamga/internal/domain/device/message"
	"tamga/internal/domain/fault"
	"tamga/pki/suite"
)

// TestPhotographed: an attacker has a picture of the QR code.
func TestPhotographed(t *testing.T) {
	b := newBench(t)
	k := b.begin()
	code := b.post.code(t)
	owner, thief := b.gadget(suite.GOST2012x256), b.gadget(suite.ECDSAP256)
	for i := range 4 {
		_, err := thief.register(k, fmt.Sprintf("%08d", i))
		want(t, "a guess", err, fault.InvalidCode)
	}
	// An intercepted message of the owner does not work for another key.
	heard := owner.registration(k, code)
	_, err := b.Register(t.Context(), thief.say(message.Register, heard))
	want(t, "the owner's answer under another key", err, fault.KeyNotFound)
	a, err := owner.register(k, code)
	must(t, err)
	_, err = thief.register(k, code)
	want(t, "the right code, later", err, fault.KeyNotFound)
	// The answer to the owner was lost, and the device repeats its message.
	again, err := owner.register(k, code)
	if err != nil || again.Device.Kid != a.Device.Kid {
		t.Errorf("said again it is %+v, %v", again, err)
	}
	_, err = b.SetBlocked(t.Context(), b.operator, b.petrov, owner.kid, true)
	must(t, err)
	_, err = owner.register(k, code)
	want(t, "said again by a blocked device", err, fault.AccessDenied)
	info, err := b.Info(t.Context(), b.operator, b.petrov)
	must(t, err)
	if len(info.Devices) != 1 {
		t.Errorf("there are %d devices", len(info.Devices))
	}

	// Guesses use up the code, and the owner's attempt shows it.
	must(t, b.DeleteAll(t.Context(), b.operator, b.petrov))
	k = b.begin()
	code = b.post.code(t)
	for i := range 5 {
		_, err = thief.register(k, fmt.Sprintf("%08d", i))
		want(t, "a guess", err, fault.InvalidCode)
	}
	_, err = owner.register(k, code)
	want(t, "the right code after five guesses", err, fault.MaxAttempts)
	b.clock = b.clock.Add(time.Minute)
	must(t, b.ResendCode(t.Context(), b.operator, b.petrov, device.KInitOrder{Email: email}))
	_, err = owner.register(k, code)
	want(t, "the former code", err, fault.InvalidCode)
	_, err = owner.register(k, b.post.code(t))
	want(t, "another code", err, "")

	// Without codes the first device wins.
	b = newBench(t, func(s *device.Settings) { s.ActivationCodes = false })
	k, err = b.Init(t.Context(), b.operator, b.petrov, device.KInitOrder{})
	must(t, err)
	if k.Content.ActivationRequired || len(b.post.orders) != 0 {
		t.Error("a code was sent")
	}
	first, second := b.gadget(suite.ECDSAP256), b.gadget(suite.ECDSAP256)
	_, err = first.register(k, "")
	want(t, "the first", err, "")
	_, err = second.register(k, "")
	want(t, "the second", err, fault.KeyNotFound)
}

// TestForgedMessages: each part of a message is authenticated.
func TestForgedMessages(t *testing.T) {
	b := newBench(t)
	g := b.active(suite.GOST2012x256)
	forged := b.gadget(suite.GOST2012x256)
	forged.kid, forged.number = g.kid, 100
	mine := b.gadget(suite.ECDSAP256)
	a, err := b.Register(t.Context(), mine.say(message.Register, message.Registration{}))
	must(t, err)
	mine.kid = a.Device.Kid

	poll := g.say(message.Poll, struct{}{})
	other := g.say(message.Poll, struct{ X int }{1})
	change := func(fn func(h *message.Header)) message.Signed {
		h := g.header(message.Poll)
		fn(&h)
		return g.sign(h, struct{}{})
	}
	for _, c := range []struct {
		name string
		m    message.Signed
		want string
	}{
		{"payload of another", message.Signed{Protected: poll.Protected, Payload: other.Payload, Signature: poll.Signature}, fault.Unauthorized},
		{"header of another", message.Signed{Protected: other.Protected, Payload: poll.Payload, Signature: poll.Signature}, fault.Unauthorized},
		{"signature of another device", forged.say(message.Poll, struct{}{}), fault.Unauthorized},
		{"another device in its name", func() message.Signed {
			h := mine.header(message.Poll)
			h.Kid = g.kid
			return mine.sign(h, struct{}{})
		}(), fault.Unauthorized},
		{"no such device", change(func(h *message.Header) { h.Kid = "1" }), fault.Unauthorized},
		{"no device", change(func(h *message.Header) { h.Kid = "" }), fault.InvalidParameters},
		{"key beside the kid", change(func(h *message.Header) { h.Key = g.spki }), fault.InvalidParameters},
		{"another service", change(func(h *message.Header) { h.Service = "https://example.com" }), fault.InvalidParameters},
		{"another purpose", change(func(h *message.Header) { h.Type = message.Verify }), fault.InvalidParameters},
		{"reserved purpose", change(func(h *message.Header) { h.Type = message.Confirm }), fault.InvalidParameters},
		{"number 0", change(func(h *message.Header) { h.Number = 0 }), fault.InvalidParameters},
		{"payload of another kind", g.sign(g.header(message.Poll), []int{1}), fault.InvalidParameters},
		{"nothing", message.Signed{}, fault.InvalidParameters},
		{"no Base64URL", message.Signed{Protected: "+", Payload: "e30", Signature: "e30"}, fault.InvalidParameters},
		{"no JSON", message.Signed{Protected: "e30x", Payload: "e30", Signature: "e30"}, fault.InvalidParameters},
		{"too long", message.Signed{Protected: poll.Protected, Payload: strings.Repeat("A", 1<<15), Signature: poll.Signature}, fault.InvalidParameters},
	} {
		_, err := b.Poll(t.Context(), c.m)
		want(t, c.name, err, c.want)
	}
	_, err = b.Poll(t.Context(), poll)
	want(t, "the untouched message", err, "")
	_, err = b.Poll(t.Context(), poll)
	want(t, "the same again", err, fault.InvalidObjectState)
	_, err = b.Poll(t.Context(), g.say(message.Poll, struct{}{}))
	want(t, "the next", err, "")
	_, err = b.Poll(t.Context(), other)
	want(t, "one from before", err, fault.InvalidObjectState)

	// Keys that devices may not have.
	for _, s := range []*suite.Suite{suite.GOST2012x512, suite.GOST2001, suite.RSASHA256} {
		wrong := b.gadget(s)
		h := g.header(message.Register)
		h.Key = wrong.spki
		_, err := b.Register(t.Context(), g.sign(h, message.Registration{}))
		want(t, "a key of "+s.Name, err, fault.InvalidParameters)
	}
	h := g.header(message.Register)
	h.Key = forged.spki
	_, err = b.Register(t.Context(), g.sign(h, message.Registration{}))
	want(t, "a key that did not sign", err, fault.Unauthorized)
	for _, about := range []message.About{{Name: strings.Repeat("x", 101)}, {Name: "a\nb"}, {Type: "\u202e"}, {AppVersion: strings.Repeat("1", 51)}} {
		_, err = b.Register(t.Context(), mine.say(message.Register, message.Registration{Device: about}))
		want(t, fmt.Sprintf("%q", about), err, fault.InvalidParameters)
	}
}

// TestTogether: many devices answer one QR code at once, on both databases.
func TestTogether(t *testing.T) {
	engines := map[string]func(t *testing.T) *bench{
		"SQLite": func(t *testing.T) *bench { return newBench(t) },
		"PostgreSQL": func(t *testing.T) *bench {
			return newBenchOn(t, storetest.Open(t, storetest.PostgreSQL(t).Migrated(t)))
		},
	}
	for name, open := range engines {
		t.Run(name, func(t *testing.T) {
			b := open(t)
			k := b.begin()
			code := b.post.code(t)
			const n = 24
			messages := make([]message.Signed, n)
			gadgets := make([]*gadget, n)
			for i := range n {
				gadgets[i] = b.gadget(suite.ECDSAP256)
				messages[i] = gadgets[i].say(message.Register, gadgets[i].registration(k, code))
			}
			together := func(do func(i int) error) (won int) {
				t.Helper()
				var mu sync.Mutex
				var group sync.WaitGroup
				for i := range n {
					group.Go(func() {
						err := do(i)
						mu.Lock()
						defer mu.Unlock()
						if err == nil {
							won++
						} else if _, isFault := fault.As(err); !isFault {
							t.Error(err)
						}
					})
				}
				group.Wait()
				return won
			}
			owner := -1
			if won := together(func(i int) error {
				a, err := b.Register(t.Context(), messages[i])
				if err == nil && a.Device.UserID == b.petrov {
					owner = i
				}
				return err
			}); won != 1 {
				t.Fatalf("%d devices were registered, want one", won)
			}
			g := gadgets[owner]
			g.kid = k.Kid
			v, err := b.BeginVerification(t.Context(), b.operator, b.petrov, g.kid)
			must(t, err)
			answer := g.verification(v)
			for i := range n { // each with its own number, so that only the nonce decides
				messages[i] = g.say(message.Verify, answer)
			}
			if won := together(func(i int) error { _, err := b.Verify(t.Context(), messages[i]); return err }); won != 1 {
				t.Errorf("verified %d times, want once", won)
			}
			same := g.say(message.Poll, struct{}{})
			if won := together(func(int) error { _, err := b.Poll(t.Context(), same); return err }); won != 1 {
				t.Errorf("one message was taken %d times", won)
			}
		})
	}
}

// TestSwappedCells: devices whose cells in the database were swapped do not open.
func TestSwappedCells(t *testing.T) {
	swap := "WITH x AS MATERIALIZED (SELECT kid, %[1]s FROM devices) UPDATE devices SET %[1]s = (SELECT x.%[1]s FROM x WHERE x.kid <> devices.kid)"
	for _, c := range []struct{ name, statement string }{
		{"the records of two devices", fmt.Sprintf(swap, "sealed")},
		{"the owners of two devices", fmt.Sprintf(swap, "user_id")},
		{"the ends of two devices", "UPDATE devices SET not_after = not_after + 1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t)
			g := b.active(suite.ECDSAP256)
			other := b.gadget(suite.ECDSAP256)
			a, err := b.Register(t.Context(), other.say(message.Register, message.Registration{}))
			must(t, err)
			other.kid = a.Device.Kid
			_, err = b.Assign(t.Context(), b.operator, b.sidorova, other.kid)
			must(t, err)
			b.sql(c.statement)
			for _, g := range []*gadget{g, other} {
				_, err := g.poll()
				if _, isFault := fault.As(err); isFault || err == nil {
					t.Errorf("a device is listened to as %v", err)
				}
			}
			if has, err := b.HasActive(t.Context(), b.petrov); has || err == nil {
				t.Errorf("the user has an active device: %t, %v", has, err)
			}
			must(t, b.DeleteAll(t.Context(), b.operator, b.petrov)) // the way out
			must(t, b.DeleteAll(t.Context(), b.operator, b.sidorova))
			b.begin()
		})
	}
	t.Run("the end of a K-init", func(t *testing.T) {
		b := newBench(t)
		k := b.begin()
		b.sql("UPDATE device_kinits SET expires_at = expires_at + 1000000")
		_, err := b.gadget(suite.ECDSAP256).register(k, b.post.code(t))
		if _, isFault := fault.As(err); isFault || err == nil {
			t.Errorf("it is answered with %v", err)
		}
		must(t, b.DeleteKInit(t.Context(), b.operator, b.petrov))
	})
	t.Run("the owner of a K-init", func(t *testing.T) {
		b := newBench(t)
		k := b.begin()
		b.sql("UPDATE device_kinits SET user_id = ?", b.sidorova)
		_, err := b.gadget(suite.ECDSAP256).register(k, b.post.code(t))
		if _, isFault := fault.As(err); isFault || err == nil {
			t.Errorf("it is answered with %v", err)
		}
	})
	t.Run("nonces", func(t *testing.T) {
		b := newBench(t)
		g := b.registered(suite.ECDSAP256)
		v, err := b.BeginVerification(t.Context(), b.operator, b.petrov, g.kid)
		must(t, err)
		b.sql("UPDATE device_nonces SET expires_at = expires_at + 1")
		_, err = g.verify(v)
		want(t, "with another end", err, fault.InvalidCode)
		b.sql("UPDATE device_nonces SET expires_at = expires_at - 1, hash = x'00'")
		_, err = g.verify(v)
		want(t, "with another hash", err, fault.InvalidCode)
		if s := b.state(g.kid); s != device.NotVerified {
			t.Errorf("the device is %s", s)
		}
	})
}

// TestRollback: a verification whose notice fails is rolled back.
func TestRollback(t *testing.T) {
	b := newBench(t)
	g := b.registered(suite.ECDSAP256)
	v, err := b.BeginVerification(t.Context(), b.operator, b.petrov, g.kid)
	must(t, err)
	b.post.fails = errors.New("no room for messages")
	if _, err := g.verify(v); !errors.Is(err, b.post.fails) {
		t.Errorf("%v, want %v", err, b.post.fails)
	}
	b.post.fails = nil
	_, err = g.verify(v)
	want(t, "again", err, "")
}
