// SPDX-License-Identifier: Apache-2.0

package tokenapi_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"tamga/internal/tamgatest"
)

var twoDigits = regexp.MustCompile(`: (\d\d)$`)

// TestTitles has a device ask for the two digits that a client shows in Title, if the
// configuration says that the client shows it. A wrong number declines.
func TestTitles(t *testing.T) {
	t.Parallel()
	w := &stepping{confirming: &confirming{t: t, UMS: tamgatest.StartUMS(t, "--set",
		"clients=[{id: tamga-dev, password_grant: true, confirm_titles: true}, {id: plain, password_grant: true}]")}}
	w.id = w.Dev.User.ID
	w.assign("mydss?level=1")
	file := w.device()
	token := w.Token()
	// ask creates an operation and begins its challenge. It returns the reference, and the
	// number that the user sees.
	ask := func() (id, ref, number string) {
		t.Helper()
		var made struct{ Operation struct{ ID string } }
		status, body := w.Call("POST", "/api/v2/signature", token, json.RawMessage(v2Order))
		if json.Unmarshal(body, &made) != nil || made.Operation.ID == "" {
			t.Fatalf("%d %s", status, body)
		}
		first := w.ask("/v2.0/confirmation", "Bearer "+token, w.begin(fmt.Sprintf(`,"OperationId":%q`, made.Operation.ID)))
		m := twoDigits.FindStringSubmatch(*first.Challenge.Title.Value)
		if m == nil {
			t.Fatalf("the title is %q", *first.Challenge.Title.Value)
		}
		ref = first.Challenge.ContextData.RefID
		if again := w.ask("/v2.0/confirmation", "Bearer "+token, w.poll(ref)); *again.Challenge.Title.Value != *first.Challenge.Title.Value {
			t.Errorf("a poll has the title %q", *again.Challenge.Title.Value)
		}
		return made.Operation.ID, ref, m[1]
	}
	id, ref, number := ask()
	if out, err := tamgatest.Phone(t, file, "approve", id, "--number", number, "--yes"); err != nil {
		t.Fatal(out, err)
	}
	if done := w.ask("/v2.0/confirmation", "Bearer "+token, w.poll(ref)); done.AccessToken == "" {
		t.Errorf("%+v", done)
	}
	id, ref, number = ask()
	if out, err := tamgatest.Phone(t, file, "approve", id, "--number", wrong(number), "--yes"); err == nil {
		t.Errorf("a wrong number approves: %s", out)
	}
	if done := w.ask("/v2.0/confirmation", "Bearer "+token, w.poll(ref)); done.Error != "authentication_declined" {
		t.Errorf("after a wrong number: %+v", done)
	}
}

// TestDeviceSaysWhoAsks signs a user in by a client that shows no number. The device says who
// asks before the user approves, and a user who says "not me" is not asked again.
func TestDeviceSaysWhoAsks(t *testing.T) {
	t.Parallel()
	w := &stepping{confirming: &confirming{t: t, UMS: tamgatest.StartUMS(t)}}
	w.add("asked", "mydss")
	file := w.device()
	me := basic("asked", tamgatest.Password)
	if first := w.ask("/confirmation", me, w.begin("")); *first.IsFinal {
		t.Fatalf("%+v", first)
	}
	id := w.waiting(file)
	out, err := tamgatest.Phone(t, file, "show", id)
	if err != nil {
		t.Fatal(out, err)
	}
	for _, want := range []string{"application: " + w.Dev.ClientID + "\n", "network: 127.0.0.1\n", "asked at: 20"} {
		if !strings.Contains(out, want) {
			t.Errorf("the device does not show %q: %s", want, out)
		}
	}
	if out, err := tamgatest.Phone(t, file, "decline", id, "--not-me", "--yes"); err != nil {
		t.Fatal(out, err)
	}
	if next := w.ask("/confirmation", me, w.begin("")); !*next.IsFinal || next.Error != "max_attempts_exceeded" || !strings.Contains(next.ErrorDescription, "another method") {
		t.Errorf("after that: %+v", next)
	}
	w.OK(tamgatest.Ours, "POST", "/ums/user/"+w.id+"/lockout?lock=False", "")
	if next := w.ask("/confirmation", me, w.begin("")); *next.IsFinal {
		t.Errorf("after an operator has unlocked the user: %+v", next)
	}
}
