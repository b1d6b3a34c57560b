// SPDX-License-Identifier: Apache-2.0

package device_test

import (
	"encoding/json"
	"errors"
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

// TestErrors provokes each row of the error table of the specification. If several rows
// of one operation apply, the first one must win.
func TestErrors(t *testing.T) {
	mail, sms := []notify.Channel{notify.Email}, []notify.Channel{notify.SMS}
	type order = device.KInitOrder
	full := order{Phone: phone, Email: email, SystemID: systemID}
	initialize := func(o order) func(b *bench) error {
		return func(b *bench) error {
			_, err := b.Init(b.t.Context(), b.operator, b.petrov, o)
			return err
		}
	}
	resend := func(o order) func(b *bench) error {
		return func(b *bench) error { return b.ResendCode(b.t.Context(), b.operator, b.petrov, o) }
	}
	send := func(to string) func(b *bench) error {
		return func(b *bench) error { return b.SendKInit(b.t.Context(), b.operator, b.petrov, to) }
	}
	assign := func(kid string) func(b *bench) error {
		return func(b *bench) error {
			_, err := b.Assign(b.t.Context(), b.operator, b.petrov, kid)
			return err
		}
	}
	begun := func(b *bench) { b.begin() }
	later := func(b *bench) { b.begin(); b.clock = b.clock.Add(time.Minute) }
	noMail := func(b *bench) { later(b); b.post.channels = sms }
	loose := func(s *device.Settings) { s.ConfirmedContacts = false }
	codeless := func(s *device.Settings) { s.ActivationCodes = false }
	unlicensed := func(s *device.Settings) { s.InstallationLimit = 1 }
	one := func(s *device.Settings) { s.Devices = 1 }
	mailless := func(s *device.Settings) { s.SendQR = false }
	has := func(b *bench) { b.registered(suite.ECDSAP256) }
	hasAndBegun := func(b *bench) {
		g := b.gadget(suite.ECDSAP256)
		a, err := b.Register(b.t.Context(), g.say(message.Register, message.Registration{}))
		must(b.t, err)
		b.begin()
		_, err = b.Assign(b.t.Context(), b.operator, b.petrov, a.Device.Kid)
		must(b.t, err)
	}
	for _, c := range []struct {
		name   string
		adjust func(*device.Settings)
		before func(b *bench)
		do     func(b *bench) error
		want   string
	}{
		{"assign: no such device", nil, nil, assign("123456789012345"), fault.KeyNotFound},
		{"assign: no identifier", nil, nil, assign(""), fault.KeyNotFound},

		{"init", nil, nil, initialize(full), ""},
		{"init: phone alone", nil, nil, initialize(order{Phone: "+7 (926) 123-45-67"}), ""},
		{"init: e-mail alone", nil, nil, initialize(order{Email: "Petrov@Example.ru"}), ""},
		{"init: system in capitals", nil, nil, initialize(order{Phone: phone, SystemID: strings.ToUpper(systemID)}), ""},
		{"init: exists", nil, begun, initialize(full), fault.KInitExists},
		{"init: exists, and too many devices, no such system", one, hasAndBegun, initialize(order{SystemID: "no"}), fault.KInitExists},
		{"init: too many devices", one, has, initialize(full), fault.MaxTokens},
		{"init: too many devices, no such system", one, has, initialize(order{SystemID: "no"}), fault.MaxTokens},
		{"init: no such system", nil, nil, initialize(order{Phone: phone, SystemID: "00000000-0000-4000-8000-000000000000"}), fault.InvalidSystem},
		{"init: no such system and no contact", nil, nil, initialize(order{SystemID: "no"}), fault.InvalidSystem},
		{"init: no contact", nil, nil, initialize(order{}), fault.InvalidContactInfo},
		{"init: wrong phone", nil, nil, initialize(order{Phone: "call me"}), fault.InvalidContactInfo},
		{"init: wrong e-mail beside a phone", nil, nil, initialize(order{Phone: phone, Email: "petrov"}), fault.InvalidContactInfo},
		{"init: wrong e-mail, and no SMS configured", nil, func(b *bench) { b.post.channels = mail }, initialize(order{Phone: phone, Email: "petrov"}), fault.InvalidContactInfo},
		{"init: no SMS configured", nil, func(b *bench) { b.post.channels = mail }, initialize(full), fault.WrongOperation},
		{"init: no mail configured, and an unconfirmed phone", nil, func(b *bench) { b.post.channels = sms }, initialize(order{Phone: "79260000000", Email: email}), fault.WrongOperation},
		{"init: unknown contact", nil, nil, initialize(order{Phone: "79269999999"}), fault.WrongOperation},
		{"init: unknown contact beside an unconfirmed one", nil, nil, initialize(order{Phone: "79260000000", Email: "no@example.ru"}), fault.WrongOperation},
		{"init: unconfirmed", nil, nil, initialize(order{Phone: "79260000000"}), fault.ContactUnconfirmed},
		{"init: unconfirmed e-mail beside a confirmed phone", nil, nil, initialize(order{Phone: phone, Email: "new@example.ru"}), fault.ContactUnconfirmed},
		{"init: unconfirmed, and no licence", unlicensed, has, initialize(order{Phone: "79260000000"}), fault.ContactUnconfirmed},
		{"init: no licence", unlicensed, has, initialize(full), fault.InvalidLicense},
		{"init: unknown contacts where that is allowed", loose, nil, initialize(order{Phone: "79269999999", Email: "no@example.ru"}), ""},
		{"init: unconfirmed where that is allowed", loose, nil, initialize(order{Phone: "79260000000"}), ""},
		{"init: no contact where any is allowed", loose, nil, initialize(order{}), fault.InvalidContactInfo},
		{"init: without codes nothing is asked", codeless, nil, initialize(order{}), ""},
		{"init: without codes contacts are ignored", codeless, nil, initialize(order{Phone: "call me", Email: "petrov"}), ""},

		{"init/get: none", nil, nil, func(b *bench) error {
			_, err := b.GetKInit(b.t.Context(), b.operator, b.petrov)
			return err
		}, fault.KeyNotFound},

		{"sendqr", nil, begun, send("Petrov@Example.ru"), ""},
		{"sendqr: none", nil, nil, send(email), fault.KeyNotFound},
		{"sendqr: none, and no address", nil, nil, send(""), fault.KeyNotFound},
		{"sendqr: no address", nil, begun, send(" "), fault.InvalidContactInfo},
		{"sendqr: no address, and no mail", nil, noMail, send(""), fault.InvalidContactInfo},
		{"sendqr: wrong address", nil, begun, send("petrov"), fault.InvalidEmail},
		{"sendqr: wrong address, and switched off", mailless, begun, send("petrov"), fault.InvalidEmail},
		{"sendqr: no mail configured", nil, noMail, send(email), fault.WrongOperation},
		{"sendqr: switched off", mailless, begun, send(email), fault.WrongOperation},
		{"sendqr: switched off, and unconfirmed", mailless, begun, send("new@example.ru"), fault.WrongOperation},
		{"sendqr: unknown contact", nil, begun, send("no@example.ru"), fault.WrongOperation},
		{"sendqr: unconfirmed", nil, begun, send("new@example.ru"), fault.ContactUnconfirmed},
		{"sendqr: unknown contact where that is allowed", loose, begun, send("no@example.ru"), ""},

		{"resendotp", nil, later, resend(full), ""},
		{"resendotp: none", nil, nil, resend(full), fault.KeyNotFound},
		{"resendotp: none, and no contact", nil, nil, resend(order{}), fault.KeyNotFound},
		{"resendotp: no contact", nil, later, resend(order{}), fault.InvalidContactInfo},
		{"resendotp: wrong contact", nil, later, resend(order{Email: "petrov"}), fault.InvalidContactInfo},
		{"resendotp: no mail configured", nil, noMail, resend(order{Email: email}), fault.WrongOperation},
		{"resendotp: unknown contact", nil, later, resend(order{Phone: "79269999999"}), fault.WrongOperation},
		{"resendotp: unconfirmed", nil, later, resend(order{Phone: "79260000000"}), fault.ContactUnconfirmed},
		{"resendotp: too soon", nil, begun, resend(full), fault.TooManyRequests},
		{"resendotp: no code is needed", codeless, begun, resend(full), fault.WrongOperation},

		{"init/delete", nil, begun, func(b *bench) error { return b.DeleteKInit(b.t.Context(), b.operator, b.petrov) }, ""},
		{"init/delete: none", nil, nil, func(b *bench) error { return b.DeleteKInit(b.t.Context(), b.operator, b.petrov) }, fault.WrongOperation},

		{"verify/get: none", nil, nil, func(b *bench) error {
			_, err := b.BeginVerification(b.t.Context(), b.operator, b.petrov, "1")
			return err
		}, fault.KeyNotFound},
		{"lockout: none", nil, nil, func(b *bench) error {
			_, err := b.SetBlocked(b.t.Context(), b.operator, b.petrov, "1", true)
			return err
		}, fault.KeyNotFound},
		{"delete: none", nil, nil, func(b *bench) error { return b.Delete(b.t.Context(), b.operator, b.petrov, "1") }, fault.KeyNotFound},
		{"delete all: none", nil, nil, func(b *bench) error { return b.DeleteAll(b.t.Context(), b.operator, b.petrov) }, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			var adjust []func(*device.Settings)
			if c.adjust != nil {
				adjust = append(adjust, c.adjust)
			}
			b := newBench(t, adjust...)
			if c.before != nil {
				c.before(b)
			}
			orders := len(b.post.orders)
			err := c.do(b)
			want(t, c.name, err, c.want)
			if err != nil && len(b.post.orders) != orders {
				t.Errorf("what was refused sent %v", b.post.orders[orders:])
			}
		})
	}
}

// TestReach: users out of reach are not found, whatever else is wrong.
func TestReach(t *testing.T) {
	b := newBench(t)
	g := b.active(suite.ECDSAP256)
	must(t, func() error { _, err := b.Poll(t.Context(), g.say(message.Poll, struct{}{})); return err }())
	ctx := t.Context()
	for _, userID := range []string{b.petrov, "00000000-0000-4000-8000-000000000000"} {
		for name, do := range map[string]func() error{
			"assign":      func() error { _, err := b.Assign(ctx, b.other, userID, g.kid); return err },
			"init":        func() error { _, err := b.Init(ctx, b.other, userID, device.KInitOrder{}); return err },
			"get":         func() error { _, err := b.GetKInit(ctx, b.other, userID); return err },
			"sendqr":      func() error { return b.SendKInit(ctx, b.other, userID, "") },
			"resendotp":   func() error { return b.ResendCode(ctx, b.other, userID, device.KInitOrder{}) },
			"init/delete": func() error { return b.DeleteKInit(ctx, b.other, userID) },
			"verify/get":  func() error { _, err := b.BeginVerification(ctx, b.other, userID, g.kid); return err },
			"info":        func() error { _, err := b.Info(ctx, b.other, userID); return err },
			"lockout":     func() error { _, err := b.SetBlocked(ctx, b.other, userID, g.kid, true); return err },
			"delete":      func() error { return b.Delete(ctx, b.other, userID, g.kid) },
			"delete all":  func() error { return b.DeleteAll(ctx, b.other, userID) },
			"push":        func() error { _, err := b.PushAddresses(ctx, b.other, userID, device.PushFilter{}); return err },
			"push delete": func() error { _, err := b.DeletePush(ctx, b.other, userID, device.PushAddress{}); return err },
		} {
			want(t, name, do(), fault.UserNotFound)
		}
	}
	if s := b.state(g.kid); s != device.Active {
		t.Errorf("the device is %s after all these refusals", s)
	}
	// A device of another user within reach is not a device of this one.
	for name, err := range map[string]error{
		"lockout": func() error { _, err := b.SetBlocked(ctx, b.operator, b.sidorova, g.kid, true); return err }(),
		"delete":  b.Delete(ctx, b.operator, b.sidorova, g.kid),
		"verify":  func() error { _, err := b.BeginVerification(ctx, b.operator, b.sidorova, g.kid); return err }(),
		"assign":  func() error { _, err := b.Assign(ctx, b.operator, b.sidorova, g.kid); return err }(),
	} {
		want(t, name+" of another user's device", err, fault.KeyNotFound)
	}
}

// TestKInit: the content and the lifetime of an initialization.
func TestKInit(t *testing.T) {
	b := newBench(t)
	k, err := b.Init(t.Context(), b.operator, b.petrov, device.KInitOrder{Phone: phone, Email: email})
	must(t, err)
	var qr message.KInit
	must(t, json.Unmarshal([]byte(k.QRText), &qr))
	if d := cmp.Diff(message.KInit{Type: "Kinit", Version: 1, Data: message.KInitData{
		Kid: k.Kid, UID: b.petrov, ServiceURL: serviceURL, KeyContent: k.Content.KeyContent, ActivationRequired: true,
	}}, qr); d != "" {
		t.Error(d)
	}
	if len(k.Kid) != 15 || strings.Trim(k.Kid, "0123456789") != "" || k.Kid[0] == '0' {
		t.Errorf("the identifier is %q, want 15 decimal digits", k.Kid)
	}
	if k.UserName != "petrov" || k.SystemID != systemID || !k.NotAfter.Equal(b.clock.Add(24*time.Hour)) || !strings.Contains(string(k.QR), k.QRText) {
		t.Errorf("the initialization is %+v", k)
	}
	// One code to both.
	var to []string
	for _, o := range b.post.orders {
		to = append(to, string(o.Channel)+" "+o.To)
		if o.Template != notify.TemplateDeviceCode || o.Data["Code"] != b.post.code(t) || o.Data["Minutes"] != "10" || o.UserID != b.petrov || o.Actor != b.operator.UserID {
			t.Errorf("the order is %+v", o)
		}
	}
	if d := cmp.Diff([]string{"SMS " + phone, "Email " + email}, to); d != "" {
		t.Error(d)
	}
	again, err := b.GetKInit(t.Context(), b.operator, b.petrov)
	must(t, err)
	if d := cmp.Diff(k, again); d != "" {
		t.Errorf("got again it is another: %s", d)
	}
	info, err := b.Info(t.Context(), b.operator, b.petrov)
	must(t, err)
	if info.KInit == nil || info.KInit.Kid != k.Kid || info.KInit.State() != device.Active || len(info.Devices) != 0 {
		t.Errorf("the user has %+v", info)
	}
	must(t, b.SendKInit(t.Context(), b.operator, b.petrov, email))
	if o := b.post.orders[len(b.post.orders)-1]; o.Template != notify.TemplateDeviceQR || o.To != email || !slices.Equal(o.Picture, k.QR) || !o.Expires.Equal(k.NotAfter) {
		t.Errorf("the QR code was sent as %+v", o)
	}

	b.clock = k.NotAfter.Add(-time.Millisecond)
	_, err = b.GetKInit(t.Context(), b.operator, b.petrov)
	want(t, "just before its end", err, "")
	b.clock = k.NotAfter
	_, err = b.GetKInit(t.Context(), b.operator, b.petrov)
	want(t, "at its end", err, fault.KeyNotFound)
	want(t, "deleted at its end", b.DeleteKInit(t.Context(), b.operator, b.petrov), fault.WrongOperation)
	next := b.begin()
	if next.Kid == k.Kid || next.Content.KeyContent == k.Content.KeyContent {
		t.Error("the next initialization is like the one before")
	}
	must(t, b.DeleteKInit(t.Context(), b.operator, b.petrov))
	b.begin()
	must(t, b.DeleteAll(t.Context(), b.operator, b.petrov)) // deletes it too
	b.begin()
}

// TestInternal: an internal failure is not a fault and leaves nothing behind.
func TestInternal(t *testing.T) {
	b := newBench(t)
	failing, err := device.New(settingsOf(), device.Deps{
		Paint: func(string) ([]byte, error) { return nil, errors.New("no ink") },
		Rand:  endless{}, Now: func() time.Time { return b.clock },
	})
	must(t, err)
	_, err = failing.Init(t.Context(), b.operator, b.petrov, device.KInitOrder{Phone: phone})
	if _, isFault := fault.As(err); isFault || err == nil {
		t.Errorf("the failure is %v", err)
	}
	b.begin()
}

func settingsOf() device.Settings {
	s := device.DefaultSettings()
	s.ServiceURL, s.Systems = serviceURL, []device.System{{ID: systemID}}
	return s
}

type endless struct{}

func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = byte(i + 1)
	}
	return len(p), nil
}

// TestSettings: all settings out of bounds are reported at once.
func TestSettings(t *testing.T) {
	_, err := device.New(device.Settings{Systems: []device.System{{ID: "x"}}, InstallationLimit: -1, Anonymous: 1}, device.Deps{})
	for _, text := range []string{"service url", "GUID", "devices", "installation limit", "k-init", "verification", "device life", "skew", "poll", "anonymous life"} {
		if err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("%s is not told of: %v", text, err)
		}
	}
}
