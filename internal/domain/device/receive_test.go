package device_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"tamga/internal/adapter/store"
	"tamga/internal/adapter/store/storetest"
	"tamga/internal/domain/device"
	"tamga/internal/domain/device/message"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/notify"
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

// TestBlockedBeforeVerified: the state has both words, and what was begun is void.
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

// TestPhotographed: somebody else has a picture of the QR code.
func TestPhotographed(t *testing.T) {
	b := newBench(t)
	k := b.begin()
	code := b.post.code(t)
	owner, thief := b.gadget(suite.GOST2012x256), b.gadget(suite.ECDSAP256)
	for i := range 4 {
		_, err := thief.register(k, fmt.Sprintf("%08d", i))
		want(t, "a guess", err, fault.InvalidCode)
	}
	// What the owner said, heard on the way, does not fit another key.
	heard := owner.registration(k, code)
	_, err := b.Register(t.Context(), thief.say(message.Register, heard))
	want(t, "the owner's answer under another key", err, fault.KeyNotFound)
	a, err := owner.register(k, code)
	must(t, err)
	_, err = thief.register(k, code)
	want(t, "the right code, later", err, fault.KeyNotFound)
	// The owner's answer got lost on the way, and the device says it again.
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

	// Guessing uses the code up, and the owner sees that.
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

	// Without codes the first device has it.
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

// TestTooLate: a K-init and its code end to the second, also when the clock jumps.
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
	b.clock = k.NotAfter.Add(-time.Minute) // somebody set the clock back
	_, err = g.register(k, b.post.code(t))
	want(t, "an expired code", err, fault.InvalidCode)

	// The clock of a device may be wrong by the skew and no more.
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

// TestForgedMessages: each part of a message counts.
func TestForgedMessages(t *testing.T) {
	b := newBench(t)
	g := b.active(suite.GOST2012x256)
	stranger := b.gadget(suite.GOST2012x256)
	stranger.kid, stranger.number = g.kid, 100
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
		{"signature of a stranger", stranger.say(message.Poll, struct{}{}), fault.Unauthorized},
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
	h.Key = stranger.spki
	_, err = b.Register(t.Context(), g.sign(h, message.Registration{}))
	want(t, "a key that did not sign", err, fault.Unauthorized)
	for _, about := range []message.About{{Name: strings.Repeat("x", 101)}, {Name: "a\nb"}, {Type: "\u202e"}, {AppVersion: strings.Repeat("1", 51)}} {
		_, err = b.Register(t.Context(), mine.say(message.Register, message.Registration{Device: about}))
		want(t, fmt.Sprintf("%q", about), err, fault.InvalidParameters)
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

// TestTogether: many devices answer one QR code at once, on both databases.
func TestTogether(t *testing.T) {
	engines := map[string]func(t *testing.T) *bench{
		"SQLite": func(t *testing.T) *bench { return newBench(t) },
		"PostgreSQL": func(t *testing.T) *bench {
			return newBenchOn(t, storetest.Open(t, storetest.PostgreSQL(t).Database(t)))
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
			for i := range n { // each with a number of its own, so that the nonce decides
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
	want(t, "verified while nobody's", err, fault.InvalidCode)
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

	b = newBench(t, func(s *device.Settings) { s.Anonymous = 0 })
	_, err = register()
	want(t, "where none are taken", err, fault.WrongOperation)
}

// TestLimits: the bounds hold at registration too, which comes after init.
func TestLimits(t *testing.T) {
	b := newBench(t, func(s *device.Settings) { s.Devices = 2 })
	b.registered(suite.ECDSAP256)
	k := b.begin()
	nobodys := b.gadget(suite.ECDSAP256)
	a, err := b.Register(t.Context(), nobodys.say(message.Register, message.Registration{}))
	must(t, err)
	_, err = b.Assign(t.Context(), b.operator, b.petrov, a.Device.Kid)
	must(t, err)
	_, err = b.gadget(suite.ECDSAP256).register(k, b.post.code(t))
	want(t, "a third device", err, fault.MaxTokens)
}

// TestBarred: a locked user's devices are not listened to, and a deleted one's are gone.
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
	g.number++ // of a message that is on its way while the user is deleted
	m := g.say(message.Poll, struct{}{})
	must(t, store.Users{DB: b.db}.DeleteUser(t.Context(), b.petrov))
	_, err = b.Poll(t.Context(), m)
	want(t, "of a deleted user", err, fault.Unauthorized)
}

// TestLeave: a device may have itself forgotten.
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

// TestSwappedCells: whoever moves cells of the database has devices that are none.
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

// TestPush: addresses come from devices, operators only list and strike them.
func TestPush(t *testing.T) {
	b := newBench(t)
	ctx := t.Context()
	g := b.active(suite.ECDSAP256)
	set := func(p message.PushAddress) error {
		_, err := b.SetPush(ctx, g.say(message.Push, p))
		return err
	}
	want(t, "no such system", set(message.PushAddress{Address: "a", SystemID: "no"}), fault.InvalidSystem)
	want(t, "control characters", set(message.PushAddress{Address: "a\x00"}), fault.InvalidParameters)
	want(t, "too long", set(message.PushAddress{Address: strings.Repeat("a", 4097)}), fault.InvalidParameters)
	must(t, set(message.PushAddress{Address: "token-1", OSType: 2, SystemID: strings.ToUpper(systemID)}))
	list := func(f device.PushFilter) string {
		t.Helper()
		got, err := b.PushAddresses(ctx, b.operator, b.petrov, f)
		must(t, err)
		var words []string
		for _, c := range got {
			words = append(words, fmt.Sprintf("%s %s listed=%t notification=%t system=%s", c.Push.Address, c.Source, c.Push.Listed, c.Push.Notification, c.SystemName))
		}
		return strings.Join(words, "; ")
	}
	is := func(f device.PushFilter, want string) {
		t.Helper()
		if got := list(f); got != want {
			t.Errorf("%+v lists %q, want %q", f, got, want)
		}
	}
	targets := func(n int) {
		t.Helper()
		got, err := b.NotificationAddresses(ctx, b.petrov, notify.Push)
		if err != nil || len(got) != n {
			t.Errorf("notifications go to %v, %v; want %d", got, err, n)
		}
	}
	contact := "token-1 All listed=true notification=true system=Tamga"
	struck := "token-1 Tokens listed=false notification=false system=Tamga"
	is(device.PushFilter{}, contact)
	is(device.PushFilter{Source: "all", ActiveOnly: true}, contact)
	is(device.PushFilter{Source: "tokens"}, "")
	targets(1)
	if got, _ := b.NotificationAddresses(ctx, b.petrov, notify.SMS); got != nil {
		t.Errorf("SMS go to %v", got)
	}
	one, two := 1, 2
	a := device.PushAddress{Address: "token-1", OSType: &two, SystemID: systemID}
	for name, wrong := range map[string]device.PushAddress{
		"address": {Address: "token-2"}, "system": {Address: "token-1", SystemID: "x"}, "type": {Address: "token-1", OSType: &one}, "nothing": {},
	} {
		_, err := b.DeletePush(ctx, b.operator, b.petrov, wrong)
		want(t, "another "+name, err, fault.InvalidContactInfo)
	}
	_, err := b.DeletePush(ctx, b.operator, b.sidorova, a)
	want(t, "of another user", err, fault.InvalidContactInfo)

	c, err := b.SetPushNotification(ctx, b.operator, b.petrov, a, false)
	must(t, err)
	if c.Push.Notification {
		t.Error("it has notifications still")
	}
	targets(0)
	c, err = b.DeletePush(ctx, b.operator, b.petrov, a)
	must(t, err)
	if !c.Push.Listed || c.Source != device.SourceAll {
		t.Errorf("deleted was %+v", c)
	}
	is(device.PushFilter{}, "")
	is(device.PushFilter{Source: "All"}, struck)
	is(device.PushFilter{Source: "Tokens"}, struck)
	_, err = b.DeletePush(ctx, b.operator, b.petrov, a)
	want(t, "deleted again", err, fault.InvalidContactInfo)
	_, err = b.SetPushNotification(ctx, b.operator, b.petrov, a, true)
	want(t, "notifications of a deleted one", err, fault.InvalidContactInfo)
	must(t, set(message.PushAddress{Address: "token-1", OSType: 2, SystemID: systemID}))
	is(device.PushFilter{}, "") // the same one stays struck
	c, err = b.RestorePush(ctx, b.operator, b.petrov, a)
	must(t, err)
	if !c.Push.Listed || c.Push.Notification {
		t.Errorf("restored is %+v", c.Push)
	}
	must(t, set(message.PushAddress{Address: "token-2", OSType: 2, SystemID: systemID}))
	targets(1)
	_, err = b.SetBlocked(ctx, b.operator, b.petrov, g.kid, true)
	must(t, err)
	targets(0)
	is(device.PushFilter{ActiveOnly: true}, "")
	is(device.PushFilter{}, "token-2 All listed=true notification=true system=Tamga")
	_, err = b.SetBlocked(ctx, b.operator, b.petrov, g.kid, false)
	must(t, err)

	texts, err := b.NotificationAddresses(ctx, b.petrov, notify.Push)
	must(t, err)
	target, ok := device.ParsePushTarget(texts[0])
	if !ok || target != (device.PushTarget{Kid: g.kid, Address: "token-2", OSType: 2, SystemID: systemID}) {
		t.Errorf("the target is %+v", target)
	}
	old := target
	old.Address = "token-1"
	must(t, b.PushGone(ctx, old)) // it has another one meanwhile
	targets(1)
	must(t, b.PushGone(ctx, target))
	targets(0)
	is(device.PushFilter{Source: "All"}, "")
	must(t, set(message.PushAddress{Address: "token-3"}))
	must(t, set(message.PushAddress{}))
	is(device.PushFilter{Source: "All"}, "")
	_, err = b.PushAddresses(ctx, b.operator, b.petrov, device.PushFilter{Source: "some"})
	want(t, "unknown source", err, fault.InvalidParameters)
}

// TestRollback: a verification whose notice fails has not happened.
func TestRollback(t *testing.T) {
	b := newBench(t)
	g := b.registered(suite.ECDSAP256)
	v, err := b.BeginVerification(t.Context(), b.operator, b.petrov, g.kid)
	must(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := b.Verify(ctx, g.say(message.Verify, g.verification(v))); err == nil {
		t.Error("verified although the caller was gone")
	}
	_, err = g.verify(v)
	want(t, "again", err, "")
}

func FuzzPoll(f *testing.F) {
	b := newBench(f)
	g := b.active(suite.ECDSAP256)
	m := g.say(message.Poll, struct{}{})
	f.Add(m.Protected, m.Payload, m.Signature)
	f.Fuzz(func(t *testing.T, protected, payload, signature string) {
		s := message.Signed{Protected: protected, Payload: payload, Signature: signature}
		if _, err := b.Poll(t.Context(), s); err == nil && s != m {
			t.Errorf("a message that nobody made was taken: %v", s)
		}
		if _, err := b.Register(t.Context(), s); err == nil {
			t.Error("a device was registered by it")
		}
	})
}

// TestLastDevice: the method is told when the last device that speaks for a user is
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
