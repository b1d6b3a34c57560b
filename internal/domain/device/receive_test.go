// SPDX-License-Identifier: Apache-2.0

package device_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"tamga/internal/adapter/store"
	"tamga/internal/domain/device"
	"tamga/internal/domain/device/message"
	"tamga/internal/domain/fault"
	"tamga/pki/suite"
)

// TestLife takes a device of either kind of key from its QR code to its end.
func TestLife(t *testing.T) {
	for _, s := range suites {
		t.Run(s.Name, func(t *testing.T) {
			b := newBench(t)
			k := b.begin()
			g := b.gadget(s)
			_, err := g.register(k, "")
			want(t, "without a code", err, fault.InvalidCode)
			a, err := g.register(k, b.post.code(t))
			must(t, err)
			if d := a.Device; d.Kid != k.Kid || d.UserID != b.petrov || d.State() != device.NotVerified || d.Name != "Телефон" || a.Who.Login != "petrov" || a.Who.Method != "mydss" {
				t.Errorf("registered it is %+v of %+v", d, a.Who)
			}
			_, err = b.GetKInit(t.Context(), b.operator, b.petrov)
			want(t, "the initialization afterwards", err, fault.KeyNotFound)
			state := func(want string) {
				t.Helper()
				a, err := g.poll()
				if err != nil || a.Device.State() != want || b.state(g.kid) != want {
					t.Errorf("the device is %s by its own word (%v) and %s by the operator's, want %s", a.Device.State(), err, b.state(g.kid), want)
				}
				if has, err := b.HasActive(t.Context(), b.petrov); has != (want == device.Active) || err != nil {
					t.Errorf("the user has an active device: %t, %v", has, err)
				}
			}
			state(device.NotVerified)
			v, err := b.BeginVerification(t.Context(), b.operator, b.petrov, g.kid)
			must(t, err)
			if q, err := message.ParseQR(v.QRText); err != nil || q != v.Data || v.Data.Type != "Verification" || v.Data.Data.UID != b.petrov {
				t.Errorf("the verification code is %s: %v", v.QRText, err)
			}
			_, err = g.verify(v)
			must(t, err)
			state(device.Active)
			_, err = b.BeginVerification(t.Context(), b.operator, b.petrov, g.kid)
			want(t, "verifying it again", err, fault.WrongOperation)

			block := func(block bool, state string) {
				t.Helper()
				d, err := b.SetBlocked(t.Context(), b.operator, b.petrov, g.kid, block)
				must(t, err)
				if d.State() != state {
					t.Errorf("it is %s, want %s", d.State(), state)
				}
			}
			block(true, device.Blocked)
			block(true, device.Blocked)
			if len(b.lost) != 1 {
				t.Errorf("the method was told %d times that the last device is gone", len(b.lost))
			}
			for range 2 {
				_, err = g.poll()
				want(t, "a blocked device", err, fault.AccessDenied)
			}
			block(false, device.Active)
			state(device.Active)

			b.clock = b.clock.Add(3 * 365 * 24 * time.Hour) // the key ends
			_, err = g.poll()
			want(t, "an expired device", err, fault.AccessDenied)
			if has, err := b.HasActive(t.Context(), b.petrov); has || err != nil {
				t.Errorf("an expired device counts: %t, %v", has, err)
			}
			must(t, b.Delete(t.Context(), b.operator, b.petrov, g.kid))
			_, err = g.poll()
			want(t, "a deleted device", err, fault.Unauthorized)
		})
	}
}

// TestBlockedBeforeVerified: the state has both words, and the pending verification is
// void.
func TestBlockedBeforeVerified(t *testing.T) {
	b := newBench(t)
	g := b.registered(suite.ECDSAP256)
	v, err := b.BeginVerification(t.Context(), b.operator, b.petrov, g.kid)
	must(t, err)
	d, err := b.SetBlocked(t.Context(), b.operator, b.petrov, g.kid, true)
	must(t, err)
	if d.State() != "NotVerified,Blocked" {
		t.Errorf("the state is %s", d.State())
	}
	_, err = g.verify(v)
	want(t, "verified while blocked", err, fault.AccessDenied)
	_, err = b.BeginVerification(t.Context(), b.operator, b.petrov, g.kid)
	want(t, "verification begun while blocked", err, fault.WrongOperation)
	d, err = b.SetBlocked(t.Context(), b.operator, b.petrov, g.kid, false)
	must(t, err)
	if d.State() != device.NotVerified {
		t.Errorf("unblocked it is %s", d.State())
	}
	_, err = g.verify(v)
	want(t, "verified with a code from before", err, fault.InvalidCode)
}

// TestTooLate: a K-init and its code expire to the second, also when the clock jumps.
func TestTooLate(t *testing.T) {
	b := newBench(t)
	k := b.begin()
	code := b.post.code(t)
	g := b.gadget(suite.ECDSAP256)
	b.clock = b.clock.Add(10 * time.Minute)
	_, err := g.register(k, code)
	want(t, "after the life of the code", err, fault.InvalidCode)
	must(t, b.ResendCode(t.Context(), b.operator, b.petrov, device.KInitOrder{Phone: phone}))
	b.clock = k.NotAfter
	_, err = g.register(k, b.post.code(t))
	want(t, "after the life of the K-init", err, fault.KeyNotFound)
	b.clock = k.NotAfter.Add(-time.Minute) // the clock was set back
	_, err = g.register(k, b.post.code(t))
	want(t, "an expired code", err, fault.InvalidCode)

	// The error of a device's clock may be up to the skew.
	b = newBench(t)
	g = b.active(suite.ECDSAP256)
	for _, c := range []struct {
		off  time.Duration
		want string
	}{{5 * time.Minute, ""}, {-5 * time.Minute, ""}, {5*time.Minute + time.Second, fault.WrongTime}, {-5*time.Minute - time.Second, fault.WrongTime}} {
		h := g.header(message.Poll)
		h.Time += int64(c.off / time.Second)
		_, err := b.Poll(t.Context(), g.sign(h, struct{}{}))
		want(t, c.off.String(), err, c.want)
	}
	for _, extreme := range []int64{-1 << 63, 1<<63 - 1} {
		h := g.header(message.Poll)
		h.Time = extreme
		_, err := b.Poll(t.Context(), g.sign(h, struct{}{}))
		want(t, fmt.Sprint(extreme), err, fault.WrongTime)
	}
}

// TestNonce: a verification code is one device's, once, for its time.
func TestNonce(t *testing.T) {
	b := newBench(t)
	g := b.registered(suite.ECDSAP256)
	_, err := b.Verify(t.Context(), g.say(message.Verify, message.VerificationAnswer{}))
	want(t, "without a code", err, fault.InvalidCode)
	begin := func() device.Verification {
		t.Helper()
		v, err := b.BeginVerification(t.Context(), b.operator, b.petrov, g.kid)
		must(t, err)
		return v
	}
	former, v := begin(), begin()
	_, err = g.verify(former)
	want(t, "the former code", err, fault.InvalidCode)
	other := b.registered(suite.ECDSAP256)
	answer := g.verification(v)
	_, err = b.Verify(t.Context(), other.say(message.Verify, answer))
	want(t, "the code of another device", err, fault.InvalidCode)
	b.clock = b.clock.Add(10 * time.Minute)
	_, err = g.verify(v)
	want(t, "after its time", err, fault.InvalidCode)
	b.clock = b.clock.Add(-time.Second)
	_, err = g.verify(v)
	want(t, "just in time", err, "")
	_, err = g.verify(v)
	want(t, "again", err, fault.InvalidCode)
}

// TestAnonymous: devices without a K-init wait to be assigned.
func TestAnonymous(t *testing.T) {
	b := newBench(t, func(s *device.Settings) { s.Anonymous, s.Devices = 2, 1 })
	register := func() (*gadget, error) {
		g := b.gadget(suite.ECDSAP256)
		a, err := b.Register(t.Context(), g.say(message.Register, message.Registration{Device: message.About{Name: "A"}}))
		g.kid = a.Device.Kid
		return g, err
	}
	g, err := register()
	must(t, err)
	a, err := g.poll()
	if err != nil || a.Device.UserID != "" || a.Device.State() != device.NotVerified || a.Who.UserID != "" {
		t.Errorf("it is %+v, %v", a, err)
	}
	_, err = b.Verify(t.Context(), g.say(message.Verify, message.VerificationAnswer{Proof: []byte("x")}))
	want(t, "verified while unassigned", err, fault.InvalidCode)
	second, err := register()
	must(t, err)
	_, err = register()
	want(t, "a third that waits", err, fault.TooManyRequests)

	d, err := b.Assign(t.Context(), b.operator, b.petrov, g.kid)
	must(t, err)
	if d.State() != device.NotVerified || d.UserID != b.petrov || d.UserName != "petrov" || !d.NotAfter.Equal(b.clock.Add(3*365*24*time.Hour)) {
		t.Errorf("assigned it is %+v", d)
	}
	_, err = b.Assign(t.Context(), b.operator, b.petrov, g.kid)
	want(t, "assigned again", err, fault.KeyNotFound)
	_, err = b.Assign(t.Context(), b.operator, b.petrov, second.kid)
	want(t, "more than a user may have", err, fault.MaxTokens)
	v, err := b.BeginVerification(t.Context(), b.operator, b.petrov, g.kid)
	must(t, err)
	_, err = g.verify(v)
	want(t, "verified", err, "")

	b.clock = b.clock.Add(24 * time.Hour)
	_, err = b.Assign(t.Context(), b.operator, b.sidorova, second.kid)
	want(t, "after its time", err, fault.KeyNotFound)
	must(t, b.Sweep(t.Context()))
	_, err = second.poll()
	want(t, "swept away", err, fault.Unauthorized)
	_, err = g.poll()
	want(t, "one of a user", err, "")

	b = newBench(t, func(s *device.Settings) { s.Anonymous = 10 })
	b.admitAnonymous = func(context.Context) error { return fault.New(fault.TooManyRequests, "too many of this address") }
	_, err = register()
	want(t, "too many of an address", err, fault.TooManyRequests)
	b.admitAnonymous = nil
	_, err = register()
	must(t, err)
	b = newBench(t, func(s *device.Settings) { s.Anonymous = 0 })
	_, err = register()
	want(t, "where none are taken", err, fault.WrongOperation)
}

// TestLimits: the limits also apply at registration, which comes after init.
func TestLimits(t *testing.T) {
	b := newBench(t, func(s *device.Settings) { s.Devices = 2 })
	b.registered(suite.ECDSAP256)
	k := b.begin()
	unassigned := b.gadget(suite.ECDSAP256)
	a, err := b.Register(t.Context(), unassigned.say(message.Register, message.Registration{}))
	must(t, err)
	_, err = b.Assign(t.Context(), b.operator, b.petrov, a.Device.Kid)
	must(t, err)
	_, err = b.gadget(suite.ECDSAP256).register(k, b.post.code(t))
	want(t, "a third device", err, fault.MaxTokens)
}

// TestBarred: messages of a locked user's devices are refused, and a deleted user's
// devices are gone.
func TestBarred(t *testing.T) {
	b := newBench(t)
	g := b.active(suite.ECDSAP256)
	must(t, b.users.SetLocked(t.Context(), b.operator, b.petrov, true))
	_, err := g.poll()
	want(t, "of a locked user", err, fault.AccessDenied)
	must(t, b.users.SetLocked(t.Context(), b.operator, b.petrov, false))
	_, err = g.poll()
	want(t, "of an unlocked user", err, "")
	k := b.begin()
	must(t, b.users.SetLocked(t.Context(), b.operator, b.petrov, true))
	_, err = b.gadget(suite.ECDSAP256).register(k, b.post.code(t))
	want(t, "registered by a locked user", err, fault.AccessDenied)
	g.number++ // of a message sent while the user is deleted
	m := g.say(message.Poll, struct{}{})
	must(t, store.Users{DB: b.db}.DeleteUser(t.Context(), b.petrov))
	_, err = b.Poll(t.Context(), m)
	want(t, "of a deleted user", err, fault.Unauthorized)
}

// TestLeave: a device may delete itself.
func TestLeave(t *testing.T) {
	b := newBench(t)
	g := b.active(suite.ECDSAP256)
	_, err := b.Leave(t.Context(), g.say(message.Leave, struct{}{}))
	must(t, err)
	_, err = g.poll()
	want(t, "afterwards", err, fault.Unauthorized)
	if len(b.lost) != 1 || b.lost[0] != b.petrov {
		t.Errorf("the method was told of %v", b.lost)
	}
}

func FuzzPoll(f *testing.F) {
	b := newBench(f)
	g := b.active(suite.ECDSAP256)
	m := g.say(message.Poll, struct{}{})
	f.Add(m.Protected, m.Payload, m.Signature)
	f.Fuzz(func(t *testing.T, protected, payload, signature string) {
		s := message.Signed{Protected: protected, Payload: payload, Signature: signature}
		if _, err := b.Poll(t.Context(), s); err == nil && s != m {
			t.Errorf("a message that no device made was taken: %v", s)
		}
		if _, err := b.Register(t.Context(), s); err == nil {
			t.Error("a device was registered by it")
		}
	})
}

// TestLastDevice: the sessions end when the last device that may act for the user is
// gone, not before.
func TestLastDevice(t *testing.T) {
	b := newBench(t)
	first, second := b.active(suite.ECDSAP256), b.active(suite.ECDSAP256)
	third := b.registered(suite.ECDSAP256)
	must(t, b.Delete(t.Context(), b.operator, b.petrov, first.kid))
	if len(b.lost) != 0 {
		t.Error("told although another device is active")
	}
	_, err := b.SetBlocked(t.Context(), b.operator, b.petrov, second.kid, true)
	must(t, err)
	if len(b.lost) != 1 {
		t.Errorf("told %d times after the last active one was blocked", len(b.lost))
	}
	if s := b.state(third.kid); s != device.NotVerified {
		t.Errorf("the third is %s", s)
	}
}

// BenchmarkPoll is what a device costs every few seconds, and what devices that poll
// at once cost together.
func BenchmarkPoll(b *testing.B) {
	for _, s := range suites {
		for _, devices := range []int{1, 64} {
			b.Run(fmt.Sprintf("%s/devices=%d", s.Name, devices), func(b *testing.B) {
				bench := newBench(b, func(s *device.Settings) { s.Anonymous = devices })
				gadgets := make([]*gadget, devices)
				for i := range gadgets {
					gadgets[i] = bench.gadget(s)
					a, err := bench.Register(b.Context(), gadgets[i].say(message.Register, message.Registration{}))
					must(b, err)
					gadgets[i].kid = a.Device.Kid
				}
				messages := make([][]message.Signed, devices)
				for n := range b.N {
					g := n % devices
					messages[g] = append(messages[g], gadgets[g].say(message.Poll, struct{}{}))
				}
				b.ResetTimer()
				var group sync.WaitGroup
				for _, list := range messages {
					group.Go(func() {
						for _, m := range list {
							if _, err := bench.Poll(b.Context(), m); err != nil {
								b.Error(err)
							}
						}
					})
				}
				group.Wait()
				b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "polls/s")
			})
		}
	}
}
