// SPDX-License-Identifier: Apache-2.0

package account

import (
	"cmp"
	"slices"

	"tamga/internal/domain/contact"
	"tamga/internal/domain/oath"
	"tamga/internal/domain/passkey"
	"tamga/internal/domain/signin"
	"tamga/internal/web/pages/view"
)

// way is one way to confirm, with what is missing.
type way struct {
	Icon, Title, Hint string
	Kind              string // of its tag: good, warn for a way that lacks something, "" for one that an operator must assign
	Contact           string // that codes may go to from now on; "": nothing to press
	At                string // part of the page with what is missing; "" for none
}

// Tag is the key of the state.
func (w way) Tag() string {
	switch w.Kind {
	case "good":
		return "devices.ready"
	case "warn":
		return "devices.lacks"
	}
	return "devices.unassigned"
}

// Disc is the class of the sign.
func (w way) Disc() string { return cmp.Or(w.Kind, "off") }

// methodDevice is the name of the method of devices.
var methodDevice = func() string {
	m, _ := signin.MethodNamed("mydss")
	return m.Name
}()

// ways returns all ways to confirm, also those that lack something. Devices, apps, contacts and passkeys that are there
// without being assigned wait for an operator.
func (f *factors) ways(w *view.Words, passkeys bool) []way {
	has := func(method string) bool { return slices.Contains(f.methods, method) }
	var list []way
	add := func(one way, method string) {
		if !has(method) {
			one.Kind, one.Hint, one.Contact, one.At = "", w.Text("devices.by_operator"), "", ""
		}
		list = append(list, one)
	}
	for i := range f.devices.Devices {
		d := &f.devices.Devices[i]
		one := way{Icon: "phone", Title: w.Text("devices.way_device", view.Visible(cmp.Or(d.Name, d.Type, w.Text("devices.nameless")))), Kind: "good", Hint: w.Text("devices.until", w.Day(d.NotAfter))}
		if d.Blocked {
			one.Kind, one.Hint, one.At = "warn", w.Text("devices.is_blocked"), "#devices"
		} else if !d.Verified {
			one.Kind, one.Hint, one.At = "warn", w.Text("devices.must_verify"), "#devices"
		}
		add(one, methodDevice)
	}
	if len(f.devices.Devices) == 0 && has(methodDevice) {
		list = append(list, way{Icon: "phone", Title: w.Text("devices.way_phone"), Kind: "warn", Hint: w.Text("devices.connect_one"), At: "#devices"})
	}
	switch {
	case f.hasToken:
		title := w.Text("devices.way_app")
		if !f.token.App {
			title = w.Text("devices.has_token", f.token.Serial)
		}
		add(way{Icon: "codes", Title: title, Kind: "good"}, oath.Method)
	case has(oath.Method):
		list = append(list, way{Icon: "codes", Title: w.Text("devices.way_app"), Kind: "warn", Hint: w.Text("devices.add_one"), At: "#app"})
	}
	for _, kind := range []contact.Kind{contact.Phone, contact.Email} {
		one := way{Icon: "sms", Title: w.Text("method." + kind.Method), Kind: "warn", Hint: w.Text("devices.no_reachable"), At: "#contacts"}
		if kind.Type == contact.EmailAddress {
			one.Icon = "mail"
		}
		there := false
		for _, c := range f.contacts {
			if c.Type != kind.Type || !c.Confirmed {
				continue
			}
			if there = true; c.SecondaryAuth {
				one.Kind, one.Hint, one.Contact, one.At = "good", c.Value, "", ""
				break
			}
			one.Hint, one.Contact = w.Text("devices.allow_codes", c.Value), c.Value
		}
		if there || has(kind.Method) {
			add(one, kind.Method)
		}
	}
	switch {
	case !passkeys:
	case len(f.passkeys) > 0:
		for i := range f.passkeys {
			add(way{Icon: "passkey", Title: w.Text("devices.way_passkey", f.passkeys[i].Name), Kind: "good"}, passkey.Method)
		}
	case has(passkey.Method):
		list = append(list, way{Icon: "passkey", Title: w.Text("method.passkey"), Kind: "warn", Hint: w.Text("devices.add_one"), At: "#passkeys"})
	}
	return list
}
