// SPDX-License-Identifier: Apache-2.0

package device_test

import (
	"crypto/ecdh"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"tamga/internal/adapter/store"
	"tamga/internal/domain/audit"
	"tamga/internal/domain/device"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/notify"
	"tamga/internal/domain/reach"
	"tamga/internal/domain/vault"
)

// subscribed returns what a browser says of itself.
func subscribed(t testing.TB, address string) device.BrowserOrder {
	t.Helper()
	key, err := ecdh.P256().GenerateKey(rand.Reader)
	must(t, err)
	return device.BrowserOrder{Address: address, Public: key.PublicKey().Bytes(), Secret: []byte("0123456789abcdef"), Name: "Chrome, Windows"}
}

// browsers are those of the users of a bench.
func (b *bench) browsers() *device.Browsers {
	ring, err := vault.NewRing("test", map[string][]byte{"test": make([]byte, vault.MasterKeySize)}, rand.Reader)
	must(b.t, err)
	return device.NewBrowsers(device.BrowserDeps{
		Store: store.Browsers{DB: b.db}, Vault: ring, Reach: reach.Self{}, Messages: b.post,
		Check: func(address string) error {
			if !strings.HasPrefix(address, "https://push.example/") {
				return fault.New(fault.InvalidParameters, "address: not here")
			}
			return nil
		},
		Now: func() time.Time { return b.clock },
	})
}

// TestBrowserKeys: what no browser says of itself is refused when it is registered.
func TestBrowserKeys(t *testing.T) {
	b := newBench(t)
	s, petrov := b.browsers(), audit.Principal{UserID: b.petrov}
	good := subscribed(t, "https://push.example/1")
	bad := func(name string, change func(o *device.BrowserOrder)) {
		t.Helper()
		o := good
		o.Public = append([]byte(nil), good.Public...)
		change(&o)
		want(t, name, s.Add(t.Context(), petrov, o), fault.InvalidParameters)
	}
	bad("another host", func(o *device.BrowserOrder) { o.Address = "https://other.example/1" })
	bad("no address", func(o *device.BrowserOrder) { o.Address = "" })
	bad("a long address", func(o *device.BrowserOrder) { o.Address += strings.Repeat("a", 2048) })
	bad("control characters", func(o *device.BrowserOrder) { o.Address += "\x00" })
	bad("no key", func(o *device.BrowserOrder) { o.Public = nil })
	bad("a short key", func(o *device.BrowserOrder) { o.Public = o.Public[:64] })
	bad("a compressed key", func(o *device.BrowserOrder) { o.Public = append([]byte{2}, o.Public[1:33]...) })
	bad("a point that is not on the curve", func(o *device.BrowserOrder) { o.Public[64] ^= 1 })
	bad("the point at infinity", func(o *device.BrowserOrder) { o.Public = []byte{0} })
	bad("no secret", func(o *device.BrowserOrder) { o.Secret = nil })
	bad("a long secret", func(o *device.BrowserOrder) { o.Secret = make([]byte, 17) })
	bad("no name", func(o *device.BrowserOrder) { o.Name = " \n" })
	bad("a long name", func(o *device.BrowserOrder) { o.Name = strings.Repeat("ю", 101) })
	if list, err := s.List(t.Context(), petrov, b.petrov); err != nil || len(list) != 0 {
		t.Errorf("%v, %v", list, err)
	}
}

// TestBrowsers: users add and remove their own, operators see the addresses, and messages are ordered without
// address and keys in the clear.
func TestBrowsers(t *testing.T) {
	b := newBench(t)
	ctx := t.Context()
	s, petrov, sidorova := b.browsers(), audit.Principal{UserID: b.petrov}, audit.Principal{UserID: b.sidorova}
	first, second := subscribed(t, "https://push.example/first"), subscribed(t, "https://push.example/second")
	must(t, s.Add(ctx, petrov, first))
	b.clock = b.clock.Add(time.Minute)
	second.Name = "Firefox\u202e, Linux"
	must(t, s.Add(ctx, petrov, second))
	must(t, s.Add(ctx, petrov, first)) // again: it is the same one
	list := func(userID string) string {
		t.Helper()
		all, err := s.List(ctx, audit.Principal{UserID: userID}, userID)
		must(t, err)
		var words []string
		for _, o := range all {
			words = append(words, o.Push.Address+" "+o.Name)
		}
		return strings.Join(words, "; ")
	}
	if got := list(b.petrov); got != "https://push.example/first Chrome, Windows; https://push.example/second Firefox , Linux" {
		t.Errorf("petrov has %s", got)
	}
	if _, err := s.List(ctx, sidorova, b.petrov); !fault.Is(err, fault.UserNotFound) {
		t.Errorf("another user: %v", err)
	}

	// The push address interface.
	contacts := func() string {
		t.Helper()
		got, err := b.PushAddresses(ctx, b.operator, b.petrov, device.PushFilter{Source: "All", ActiveOnly: true})
		must(t, err)
		var words []string
		for _, c := range got {
			words = append(words, fmt.Sprintf("%s %d %s %s %q %s listed=%t notification=%t", c.Push.Address, c.Push.OSType, c.State(), c.Source, c.SystemName, c.Name, c.Push.Listed, c.Push.Notification))
		}
		return strings.Join(words, "\n")
	}
	of := "https://push.example/first 4 Active All \"\" Chrome, Windows listed=true notification=true\n"
	if got := contacts(); !strings.HasPrefix(got, of) {
		t.Errorf("the addresses are\n%s", got)
	}
	if has, err := b.Has(ctx, b.petrov); err != nil || has {
		t.Errorf("a browser is a device: %t, %v", has, err)
	}
	if got, err := b.approvals.Approvers(ctx, b.petrov); err != nil || len(got) != 0 {
		t.Errorf("a browser may confirm: %v, %v", got, err)
	}
	targets := func(n int) (texts []string) {
		t.Helper()
		texts, err := b.NotificationAddresses(ctx, b.petrov, notify.Push)
		if err != nil || len(texts) != n {
			t.Errorf("notifications go to %v, %v; want %d", texts, err, n)
		}
		return texts
	}
	texts := targets(2)
	for _, text := range texts {
		if strings.Contains(text, "first") || strings.Contains(text, "second") || !strings.Contains(text, "https://push.example") {
			t.Errorf("the outbox would keep %s", text)
		}
	}
	four, wrong := device.OSTypeBrowser, 2
	a := device.PushAddress{Address: first.Address, OSType: &four}
	_, err := b.DeletePush(ctx, b.operator, b.petrov, device.PushAddress{Address: first.Address, OSType: &wrong})
	want(t, "another type", err, fault.InvalidContactInfo)
	_, err = b.DeletePush(ctx, b.operator, b.sidorova, a)
	want(t, "of another user", err, fault.InvalidContactInfo)
	_, err = b.DeletePush(ctx, b.other, b.petrov, a)
	want(t, "of another operator", err, fault.UserNotFound)
	_, err = b.SetPushNotification(ctx, b.operator, b.petrov, a, false)
	must(t, err)
	targets(1)
	_, err = b.DeletePush(ctx, b.operator, b.petrov, a)
	must(t, err)
	if got := contacts(); !strings.Contains(got, "first 4 Active Tokens") {
		t.Errorf("after the deletion the addresses are\n%s", got)
	}

	// What waits is said to the browsers that are among the contacts.
	until := b.clock.Add(20 * time.Minute)
	before := len(b.post.orders)
	must(t, s.Tell(ctx, b.petrov, "record", until))
	if len(b.post.orders) != before {
		t.Error("something is ordered without a sender")
	}
	b.post.channels = append(b.post.channels, notify.Push)
	must(t, s.Tell(ctx, b.petrov, "record", until))
	orders := b.post.orders[before:]
	if len(orders) != 1 || orders[0].Template != notify.TemplateBrowserWake || orders[0].Link != "/confirm/record" || !orders[0].Expires.Equal(until) || len(orders[0].Data) != 0 || orders[0].To != texts[1] {
		t.Errorf("ordered: %+v", orders)
	}
	_, err = b.RestorePush(ctx, b.operator, b.petrov, a)
	must(t, err)
	must(t, s.Add(ctx, petrov, first)) // the user switches it on again
	targets(2)

	// Trials go to an own browser.
	must(t, s.Try(ctx, petrov, idOf(t, s, petrov, 0)))
	if o := b.post.orders[len(b.post.orders)-1]; o.Template != notify.TemplateBrowserTrial || o.Link != "" || o.To != texts[0] {
		t.Errorf("the trial is %+v", o)
	}
	want(t, "a browser of another user", s.Try(ctx, sidorova, idOf(t, s, petrov, 0)), fault.KeyNotFound)

	// The sender finds the subscription of a recipient, until it is gone.
	to, ok := device.ParsePushTarget(texts[0])
	if !ok || to.Kid != "" {
		t.Errorf("the target is %+v", to)
	}
	o, found, err := b.Subscription(ctx, to)
	if err != nil || !found || o.Address != first.Address || string(o.Public) != string(first.Public) || string(o.Secret) != string(first.Secret) {
		t.Errorf("the subscription is %+v, %t, %v", o, found, err)
	}
	must(t, b.PushGone(ctx, to))
	must(t, b.PushGone(ctx, to))
	if _, found, err := b.Subscription(ctx, to); err != nil || found {
		t.Errorf("found %t, %v", found, err)
	}

	// A browser has one user at a time: another one who switches it on takes it.
	must(t, s.Add(ctx, sidorova, second))
	if got := list(b.petrov) + "|" + list(b.sidorova); got != "|https://push.example/second Firefox , Linux" {
		t.Errorf("they have %s", got)
	}
	want(t, "no such browser", s.Remove(ctx, petrov, b.petrov, idOf(t, s, sidorova, 0)), fault.KeyNotFound)
	want(t, "out of reach", s.Remove(ctx, petrov, b.sidorova, idOf(t, s, sidorova, 0)), fault.UserNotFound)
	must(t, s.Remove(ctx, sidorova, b.sidorova, idOf(t, s, sidorova, 0)))

	for i := range 10 {
		must(t, s.Add(ctx, petrov, subscribed(t, fmt.Sprintf("https://push.example/%d", i))))
	}
	want(t, "one too many", s.Add(ctx, petrov, subscribed(t, "https://push.example/10")), fault.WrongOperation)
	must(t, s.Add(ctx, petrov, subscribed(t, "https://push.example/9"))) // with new keys
}

func idOf(t testing.TB, s *device.Browsers, who audit.Principal, n int) string {
	t.Helper()
	list, err := s.List(t.Context(), who, who.UserID)
	must(t, err)
	return list[n].ID
}

// TestBrowserMoved: the row of a browser that another program gave to another user, or whose content was replaced, does
// not open.
func TestBrowserMoved(t *testing.T) {
	b := newBench(t)
	s := b.browsers()
	must(t, s.Add(t.Context(), audit.Principal{UserID: b.petrov}, subscribed(t, "https://push.example/1")))
	b.sql("UPDATE browsers SET user_id = ?", b.sidorova)
	if _, err := s.List(t.Context(), audit.Principal{UserID: b.sidorova}, b.sidorova); err == nil {
		t.Error("it opens")
	} else if _, known := errors.AsType[*fault.Error](err); known {
		t.Errorf("%v is for clients", err)
	}
}
