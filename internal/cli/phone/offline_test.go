// SPDX-License-Identifier: Apache-2.0

package phone_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"tamga/internal/app"
	"tamga/internal/domain/audit"
	"tamga/internal/domain/confirm"
	"tamga/internal/tamgatest"
)

// offline confirms operations of a user with a device that has no network.
func offline(t *testing.T, base *app.Base, userID, file string, run func(stdin string, args ...string) tamgatest.Result) {
	t.Helper()
	who := audit.Principal{UserID: userID, ClientID: "client"}
	ask := func(titles bool) confirm.Prompt {
		t.Helper()
		r, err := base.Confirm.Create(t.Context(), who, confirm.Draft{Purpose: confirm.ForOperation, Fields: fields(2)})
		if err != nil {
			t.Fatal(err)
		}
		p, err := base.Confirm.Challenge(t.Context(), who, confirm.Ask{ID: r.ID, Methods: []string{"mydss"}, Titles: titles})
		if err != nil || p.QR == "" {
			t.Fatalf("%v, the QR code %q", err, p.QR)
		}
		return p
	}
	state := func(p confirm.Prompt) confirm.State {
		t.Helper()
		r, err := base.Confirm.Find(t.Context(), who, p.Record.ID)
		if err != nil {
			t.Fatal(err)
		}
		return r.State
	}
	is := func(p confirm.Prompt, want confirm.State) {
		t.Helper()
		if got := state(p); got != want {
			t.Errorf("the operation is %s, want %s", got, want)
		}
	}
	var late []struct{ ID, State, Error string }
	send := func() tamgatest.Result {
		t.Helper()
		r := run("", "send", "--json")
		late = nil
		if err := json.Unmarshal([]byte(r.Out), &late); err != nil {
			t.Fatalf("%s: %v, %v", r.Out, err, r.Failure)
		}
		return r
	}

	// The code.
	first := ask(false)
	if r := run("", "scan", "--qr-text", first.QR); r.Failure != nil || !strings.Contains(r.Out, first.Record.ID) || !strings.Contains(r.Out, "договор 0.pdf") || !strings.Contains(r.Out, first.Record.What.Group()) {
		t.Errorf("scan: %s, %v", r.Out, r.Failure)
	}
	if r := run(first.QR, "scan", "--qr-text", "-", "--json"); r.Failure != nil || !strings.Contains(r.Out, first.Record.What.String()) {
		t.Errorf("scan: %s, %v", r.Out, r.Failure)
	}
	if r := run("no\n", "code", "--qr-text", first.QR); r.Failure == nil || strings.Contains(r.Out, "code:") {
		t.Errorf("a code without approval: %s", r.Out)
	}
	r := run("yes\n", "code", "--qr-text", first.QR)
	_, code, found := strings.Cut(r.Out, "code: ")
	if r.Failure != nil || !found {
		t.Fatalf("code: %s, %v", r.Out, r.Failure)
	}
	if p, err := base.Confirm.Answer(t.Context(), who, first.Record.RefID, code); err != nil || p.Record.State != confirm.Confirmed {
		t.Errorf("the code of the device: %v, %s", err, p.Record.State)
	}

	// Decisions that are delivered later.
	second, third, fourth, fifth := ask(true), ask(false), ask(false), ask(false)
	if r := run("", "sign", "--qr-text", second.QR, "--json"); r.Failure == nil || !strings.Contains(r.Failure.Error(), "--number") {
		t.Errorf("without the number: %v", r.Failure)
	}
	if r := run(second.Record.Number+"\nyes\n", "sign", "--qr-text", second.QR); r.Failure != nil || !strings.Contains(r.Out, "kept") {
		t.Errorf("sign: %s, %v", r.Out, r.Failure)
	}
	if r := run("", "sign", "--qr-text", third.QR, "--decline", "--yes"); r.Failure != nil {
		t.Error(r.Failure)
	}
	if r := run("", "approve", fourth.Record.ID, "--decline", "1", "--keep", "--yes"); r.Failure != nil || !strings.Contains(r.Out, "kept") {
		t.Errorf("approve --keep: %s, %v", r.Out, r.Failure)
	}
	if r := run("", "decline", fifth.Record.ID, "--keep", "--json"); r.Failure != nil {
		t.Error(r.Failure)
	}
	for _, p := range []confirm.Prompt{second, third, fourth, fifth} {
		is(p, confirm.Challenged)
	}
	if _, err := base.Confirm.Cancel(t.Context(), who, fifth.Record.ID); err != nil {
		t.Fatal(err)
	}
	copied := tamgatest.ReadFile(t, file)
	if r := send(); r.Failure == nil || !strings.Contains(r.Failure.Error(), "invalid_transaction") || len(late) != 4 ||
		late[0].State != "Confirmed" || late[1].State != "Declined" || late[2].State != "Confirmed" || late[3].Error != "invalid_transaction" {
		t.Errorf("sent: %+v, %v", late, r.Failure)
	}
	is(second, confirm.Confirmed)
	is(third, confirm.Declined)
	is(fourth, confirm.Confirmed)
	if stored, err := base.Confirm.Find(t.Context(), who, fourth.Record.ID); err != nil || !slices.Equal(stored.Declined, []int{1}) {
		t.Errorf("declined: %v, %v", stored.Declined, err)
	}
	if r := send(); r.Failure != nil || len(late) != 0 {
		t.Errorf("sent again: %+v, %v", late, r.Failure)
	}
	// A device that was restored from a copy counts too low. Its decisions stay in the file.
	kept := tamgatest.ReadFile(t, file)
	tamgatest.WriteFile(t, file, string(copied))
	if r := run("", "send"); r.Failure == nil || !strings.Contains(r.Failure.Error(), "4 decisions are kept") {
		t.Errorf("from a copy: %v", r.Failure)
	}
	tamgatest.WriteFile(t, file, string(kept))

	// QR codes that are not of the service, for this device and in time.
	var qr map[string]any
	if err := json.Unmarshal([]byte(ask(false).QR), &qr); err != nil {
		t.Fatal(err)
	}
	with := func(key string, value any) string {
		data := qr["data"].(map[string]any)
		before := data[key]
		data[key] = value
		defer func() { data[key] = before }()
		text, err := json.Marshal(qr)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	for name, text := range map[string]string{
		"another text":    with("text", "eA"),
		"another digest":  with("what", strings.Repeat("00", 32)),
		"another device":  with("kid", "1"),
		"another service": with("service_url", "https://example.org"),
		"another end":     with("before", 4_000_000_000),
		"the past":        with("before", 1),
		"malformed":       with("nonce", ""),
		"nothing":         "",
		"of another type": `{"type":"Verification","version":1,"data":{"kid":"1","service_url":"s"}}`,
	} {
		for _, command := range []string{"scan", "code", "sign"} {
			if r := run("", command, "--qr-text", text, "--json"); r.Failure == nil {
				t.Errorf("%s: %s: %s", name, command, r.Out)
			}
		}
	}
	for _, command := range []string{"register", "verify"} {
		if r := run("", command, "--qr-text", with("kid", "1")); r.Failure == nil {
			t.Errorf("%s takes the QR code of an operation", command)
		}
	}
	// A device that registered before there were such codes.
	tamgatest.WriteFile(t, file, strings.Replace(string(kept), `"service_key"`, `"former"`, 1))
	if r := run("", "code", "--qr-text", first.QR, "--json"); r.Failure == nil || !strings.Contains(r.Failure.Error(), "register it again") {
		t.Errorf("without the key of the service: %v", r.Failure)
	}
	tamgatest.WriteFile(t, file, string(kept))
}
