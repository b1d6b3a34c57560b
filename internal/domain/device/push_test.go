// SPDX-License-Identifier: Apache-2.0

package device_test

import (
	"fmt"
	"strings"
	"testing"

	"tamga/internal/domain/device"
	"tamga/internal/domain/device/message"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/notify"
	"tamga/pki/suite"
)

// TestPush: addresses come from devices, operators only list and remove them.
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
	is(device.PushFilter{Source: "tokens"}, contact)
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
	is(device.PushFilter{}, "") // the same one stays removed
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
	must(t, b.PushGone(ctx, old)) // it has another one by now
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
