// SPDX-License-Identifier: Apache-2.0

package phone_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tamga/internal/app"
	"tamga/internal/domain/audit"
	"tamga/internal/domain/confirm"
	devmsg "tamga/internal/domain/device/message"
	"tamga/pki/suite"
	"tamga/pki/x509gost"

	"tamga/internal/tamgatest"
)

// rotated replaces the key of the service with the command of an administrator. The device goes on
// with QR codes of either key, learns the new one when it polls, and refuses the old one that ended.
func rotated(t *testing.T, base *app.Base, data, userID, file string, run func(stdin string, args ...string) tamgatest.Result) {
	t.Helper()
	who := audit.Principal{UserID: userID, ClientID: "client"}
	qr := func() string {
		t.Helper()
		r, err := base.Confirm.Create(t.Context(), who, confirm.Draft{Purpose: confirm.ForOperation, Fields: fields(1)})
		if err != nil {
			t.Fatal(err)
		}
		p, err := base.Confirm.Challenge(t.Context(), who, confirm.Ask{ID: r.ID, Methods: []string{"mydss"}})
		if err != nil {
			t.Fatal(err)
		}
		return p.QR
	}
	rotate := func(args ...string) tamgatest.Result {
		t.Helper()
		return tamgatest.Run(t.Context(), "", append([]string{"key", "rotate-devices", "--data", data}, args...)...)
	}
	reads := func(name, qr string, want bool) {
		t.Helper()
		if r := run("", "scan", "--qr-text", qr); (r.Failure == nil) != want {
			t.Errorf("%s: %s, %v", name, r.Out, r.Failure)
		}
	}

	before := qr()
	if r := rotate("--overlap", "1m"); r.Failure == nil || !strings.Contains(r.Failure.Error(), "overlap") {
		t.Errorf("a short overlap: %s, %v", r.Out, r.Failure)
	}
	if r := rotate(); r.Failure != nil || !strings.Contains(r.Out, "learn the new key") {
		t.Fatalf("rotate: %s, %v", r.Out, r.Failure)
	}
	if r := rotate(); r.Failure == nil || !strings.Contains(r.Failure.Error(), "is valid until") {
		t.Errorf("a second time: %s, %v", r.Out, r.Failure)
	}
	reads("the old key before the poll", qr(), true)
	if r := run("", "poll", "--json"); r.Failure != nil || !strings.Contains(r.Out, "new_service_key") {
		t.Fatalf("poll: %s, %v", r.Out, r.Failure)
	}
	if r := run("", "list", "--json"); r.Failure != nil {
		t.Fatal(r.Failure)
	}
	if r := run("", "poll", "--json"); r.Failure != nil || strings.Contains(r.Out, "new_service_key") {
		t.Errorf("the service offers a key that the device knows: %s, %v", r.Out, r.Failure)
	}
	reads("the old key during the overlap", before, true)
	after := qr()
	reads("the new key", after, true)

	kept := tamgatest.ReadFile(t, file)
	var device map[string]any
	if err := json.Unmarshal(kept, &device); err != nil {
		t.Fatal(err)
	}
	former := device["former_service_key"].(map[string]any)
	former["until"] = time.Now().Unix()
	ended, err := json.Marshal(device)
	if err != nil {
		t.Fatal(err)
	}
	tamgatest.WriteFile(t, file, string(ended))
	reads("the old key after its end", before, false)
	reads("the new key after the end of the old one", after, true)

	if r := rotate("--at-once", "--json"); r.Failure != nil || !strings.Contains(r.Out, "old_until") {
		t.Errorf("at once: %s, %v", r.Out, r.Failure)
	}
	if got := qr(); got != "" {
		t.Error("a device is asked with a key that it does not know")
	}
	if r := run("", "poll", "--json"); r.Failure != nil || strings.Contains(r.Out, "new_service_key") {
		t.Errorf("a key that ended introduces another one: %s, %v", r.Out, r.Failure)
	}
}

// TestForgedServiceKey: a program between the device and the service gives the device no key of its
// own. The device keeps what it has, and tells the service nothing.
func TestForgedServiceKey(t *testing.T) {
	s := suite.GOST2012x256
	type side struct {
		sign func(service string, after []byte, until int64) devmsg.Successor
		spki []byte
	}
	newSide := func() side {
		key, err := s.Generate(nil)
		if err != nil {
			t.Fatal(err)
		}
		spki, err := x509gost.MarshalPublicKey(key.Public(), s)
		if err != nil {
			t.Fatal(err)
		}
		return side{func(service string, after []byte, until int64) devmsg.Successor {
			n, err := devmsg.NewSuccessor(service, spki, after, until, key, nil)
			if err != nil {
				t.Fatal(err)
			}
			return n
		}, spki}
	}
	first, second, third := newSide(), newSide(), newSide()
	var offered *devmsg.Successor
	var told []byte
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var signed devmsg.Signed
		if err := json.NewDecoder(r.Body).Decode(&signed); err != nil {
			t.Error(err)
		}
		m, err := devmsg.Parse(signed)
		if err != nil {
			t.Error(err)
			return
		}
		a := devmsg.Answer{Kid: "1", State: "Active", Operations: []devmsg.Waiting{}}
		switch m.Type {
		case devmsg.Register:
			a.ServiceKey = first.spki
		case devmsg.Poll:
			a.Successor = offered
		case devmsg.ServiceKey:
			var p devmsg.KnownKey
			if err := json.Unmarshal(m.Payload, &p); err != nil {
				t.Error(err)
			}
			told = p.Key
		}
		if err := json.NewEncoder(w).Encode(a); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(server.Close)
	file := filepath.Join(t.TempDir(), "phone.json")
	if out, err := tamgatest.Phone(t, file, "register", "--service", server.URL); err != nil {
		t.Fatalf("%s, %v", out, err)
	}
	knows := func(key []byte) bool {
		t.Helper()
		var device struct {
			Key []byte `json:"service_key"`
		}
		if err := json.Unmarshal(tamgatest.ReadFile(t, file), &device); err != nil {
			t.Fatal(err)
		}
		return string(device.Key) == string(key)
	}
	soon := time.Now().Add(24 * time.Hour).Unix()
	offer := func(n devmsg.Successor) error {
		offered, told = &n, nil
		_, err := tamgatest.Phone(t, file, "poll")
		return err
	}
	refused := func(known side, cases map[string]devmsg.Successor) {
		t.Helper()
		for name, n := range cases {
			if err := offer(n); err == nil || !strings.Contains(err.Error(), "keeps its key") || told != nil || !knows(known.spki) {
				t.Errorf("%s: %v, told %x", name, err, told)
			}
		}
	}
	swapped := first.sign(server.URL, second.spki, soon)
	swapped.Key = third.spki
	later := first.sign(server.URL, second.spki, soon)
	later.Until++
	refused(first, map[string]devmsg.Successor{
		"signed by the new key": second.sign(server.URL, second.spki, soon),
		"of another service":    first.sign(server.URL+"/", second.spki, soon),
		"another key":           swapped,
		"another end":           later,
		"an old statement":      first.sign(server.URL, second.spki, time.Now().Unix()-1),
		"an end too late":       first.sign(server.URL, second.spki, time.Now().Add(401*24*time.Hour).Unix()),
		"nothing":               {},
	})
	if err := offer(first.sign(server.URL, second.spki, soon)); err != nil || string(told) != string(second.spki) || !knows(second.spki) {
		t.Fatalf("the new key: %v", err)
	}
	// The old key introduces one key. Who has it later gives the device no other one.
	refused(second, map[string]devmsg.Successor{
		"signed by the former key": first.sign(server.URL, third.spki, soon),
		"back to the former key":   first.sign(server.URL, first.spki, soon),
	})
	// The service has not heard the device.
	if err := offer(first.sign(server.URL, second.spki, soon)); err != nil || string(told) != string(second.spki) {
		t.Errorf("told again: %v", err)
	}
	if out, err := tamgatest.Phone(t, file, "list"); err != nil {
		t.Errorf("list: %s, %v", out, err)
	}
}
