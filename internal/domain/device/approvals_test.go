// SPDX-License-Identifier: Apache-2.0

package device_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tamga/internal/domain/device"
	"tamga/internal/domain/device/message"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/notify"
	"tamga/pki/suite"
)

// decision is an approval of the operation "1".
var decision = message.Decision{ID: "1", What: strings.Repeat("ab", 32), Declined: []int{2}, Number: "07"}

func (b *bench) open(m message.Signed) (device.Decision, error) {
	b.t.Helper()
	signed, err := json.Marshal(m)
	must(b.t, err)
	return b.approvals.OpenDecision(b.t.Context(), signed)
}

// TestDecision: what a device signed arrives, once.
func TestDecision(t *testing.T) {
	for _, s := range suites {
		b := newBench(t)
		g := b.active(s)
		m := g.say(message.Confirm, decision)
		v, err := b.open(m)
		must(t, err)
		want1 := device.Decision{
			UserID: b.petrov, Kid: g.kid, ID: "1", What: []byte(strings.Repeat("\xab", 32)), Approved: true,
			Declined: []int{2}, Number: "07", SignedAt: b.clock, Key: g.spki,
		}
		if d := cmp.Diff(want1, v); d != "" {
			t.Error(d)
		}
		_, err = b.open(m)
		want(t, "a replayed message", err, fault.InvalidObjectState)
		v, err = b.open(g.say(message.Decline, message.Decision{ID: "1", What: decision.What}))
		if err != nil || v.Approved {
			t.Errorf("declined: %+v, %v", v, err)
		}
	}
}

// TestDecisionRefused: no decision comes from a message that is not a fresh one of a device
// that may act for its user.
func TestDecisionRefused(t *testing.T) {
	block := func(b *bench, g *gadget) {
		_, err := b.SetBlocked(b.t.Context(), b.operator, b.petrov, g.kid, true)
		must(b.t, err)
	}
	for _, c := range []struct {
		name   string
		before func(b *bench, g *gadget)
		kind   string
		change func(h *message.Header)
		what   any
		code   string
	}{
		{"blocked", block, message.Confirm, nil, decision, fault.AccessDenied},
		{"blocked, declining", block, message.Decline, nil, message.Decision{ID: "1"}, fault.AccessDenied},
		{"removed", func(b *bench, g *gadget) { must(b.t, b.Delete(b.t.Context(), b.operator, b.petrov, g.kid)) }, message.Confirm, nil, decision, fault.Unauthorized},
		{"expired key", func(b *bench, _ *gadget) { b.clock = b.clock.Add(3 * 365 * 24 * time.Hour) }, message.Confirm, nil, decision, fault.AccessDenied},
		{"user locked", func(b *bench, _ *gadget) { must(b.t, b.users.SetLocked(b.t.Context(), b.operator, b.petrov, true)) }, message.Confirm, nil, decision, fault.AccessDenied},
		{"reordered", func(b *bench, g *gadget) { g.number += 5; _, err := g.poll(); must(b.t, err); g.number -= 6 }, message.Confirm, nil, decision, fault.InvalidObjectState},
		{"another key", func(b *bench, g *gadget) { g.key = b.gadget(g.suite).key }, message.Confirm, nil, decision, fault.Unauthorized},
		{"another type", nil, message.Poll, nil, decision, fault.InvalidParameters},
		{"another service", nil, message.Confirm, func(h *message.Header) { h.Service += "/" }, decision, fault.InvalidParameters},
		{"late", nil, message.Confirm, func(h *message.Header) { h.Time -= 301 }, decision, fault.WrongTime},
		{"unknown device", nil, message.Confirm, func(h *message.Header) { h.Kid = "1" }, decision, fault.Unauthorized},
		{"no decision", nil, message.Confirm, nil, []int{1}, fault.InvalidParameters},
		{"no digest", nil, message.Confirm, nil, message.Decision{ID: "1", What: "x"}, fault.InvalidParameters},
		{"declining some", nil, message.Decline, nil, decision, fault.InvalidParameters},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t)
			g := b.active(suite.ECDSAP256)
			if c.before != nil {
				c.before(b, g)
			}
			h := g.header(c.kind)
			if c.change != nil {
				c.change(&h)
			}
			_, err := b.open(g.sign(h, c.what))
			want(t, c.name, err, c.code)
		})
	}
	b := newBench(t)
	_, err := b.open(b.registered(suite.ECDSAP256).say(message.Confirm, decision))
	want(t, "a device that was not verified", err, fault.AccessDenied)
	_, err = b.approvals.OpenDecision(t.Context(), []byte("x"))
	want(t, "no message", err, fault.InvalidParameters)
}

// TestApprovers: only active devices may confirm.
func TestApprovers(t *testing.T) {
	b := newBench(t)
	has := func(kids ...string) {
		t.Helper()
		list, err := b.approvals.Approvers(t.Context(), b.petrov)
		must(t, err)
		var got []string
		for _, d := range list {
			got = append(got, d.Kid)
		}
		if !slices.Equal(got, kids) {
			t.Errorf("%v may confirm, want %v", got, kids)
		}
	}
	g := b.registered(suite.ECDSAP256)
	has()
	v, err := b.BeginVerification(t.Context(), b.operator, b.petrov, g.kid)
	must(t, err)
	_, err = g.verify(v)
	must(t, err)
	has(g.kid)
	for _, block := range []bool{true, false} {
		_, err = b.SetBlocked(t.Context(), b.operator, b.petrov, g.kid, block)
		must(t, err)
		if block {
			has()
		}
	}
	has(g.kid)
	_, err = b.Leave(t.Context(), g.say(message.Leave, struct{}{}))
	must(t, err)
	has()
	want1 := []string{"a device was verified", "a device was blocked", "the block of a device was lifted", "a device was removed"}
	if d := cmp.Diff(want1, b.ended); d != "" {
		t.Errorf("confirmations ended for other reasons: %s", d)
	}
}

// TestWake: a push goes to the device that is asked and says nothing about the operation.
func TestWake(t *testing.T) {
	b := newBench(t)
	g := b.active(suite.ECDSAP256)
	before := len(b.post.orders)
	wake := func(want int) {
		t.Helper()
		must(t, b.approvals.Wake(t.Context(), b.petrov, g.kid))
		if got := len(b.post.orders) - before; got != want {
			t.Fatalf("%d messages, want %d", got, want)
		}
	}
	wake(0)
	b.post.channels = append(b.post.channels, notify.Push)
	wake(0)
	_, err := b.SetPush(t.Context(), g.say(message.Push, message.PushAddress{Address: "token", OSType: 2}))
	must(t, err)
	wake(1)
	order := b.post.orders[before]
	to, ok := device.ParsePushTarget(order.To)
	if !ok || to.Kid != g.kid || to.Address != "token" || order.Channel != notify.Push || order.Template != notify.TemplateDeviceWake || len(order.Data) != 0 {
		t.Errorf("the push is %+v", order)
	}
	_, err = b.SetBlocked(t.Context(), b.operator, b.petrov, g.kid, true)
	must(t, err)
	wake(1)
	want(t, "the device of another user", b.approvals.Wake(t.Context(), b.sidorova, g.kid), fault.KeyNotFound)
}
