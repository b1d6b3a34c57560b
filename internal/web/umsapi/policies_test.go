// SPDX-License-Identifier: Apache-2.0

package umsapi

import (
	"bufio"
	"encoding/json"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tamga/internal/domain/notify"
	"tamga/internal/domain/policy"
)

// TestPolicyRoutesAreTheSpecification: every operation of the table has its route, every
// route is an operation of the table, and none is in the way of the rest of the surface.
func TestPolicyRoutesAreTheSpecification(t *testing.T) {
	f, err := os.Open("testdata/policies.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var want, have []string
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if words := strings.Fields(lines.Text()); len(words) == 3 && words[0] != "#" {
			want = append(want, strings.Join(words, " "))
		}
	}
	mux := http.NewServeMux()
	for _, r := range slices.Concat(PolicyRoutes(nil, "ru"), DeviceRoutes(nil), New(nil, nil, nil, nil, Rules{Local: "realsts"}).Routes()) {
		mux.HandleFunc(r.Method+" "+r.Path, func(http.ResponseWriter, *http.Request) {}) // panics when two conflict
	}
	for _, r := range PolicyRoutes(nil, "ru") {
		have = append(have, r.Name+" "+r.Method+" "+r.Path)
		if r.Right != Operator {
			t.Errorf("%s has the right %q", r.Name, r.Right)
		}
	}
	slices.Sort(want)
	slices.Sort(have)
	if d := cmp.Diff(want, have); d != "" || len(want) != 7 {
		t.Errorf("%d operations: %s", len(want), d)
	}
}

func TestReadActions(t *testing.T) {
	const some = policy.SignDocument | policy.RenewCertificate | policy.HoldCertificate | policy.UnholdCertificate
	for text, want := range map[string]policy.Action{
		`[]`: 0, `[2]`: policy.SignDocument, `[2,64,768]`: some, `["signdocument","64",256,"UnholdCertificate"]`: some,
		`["RenewCertificate, SignDocument",768]`: some, `834`: some, `"SignDocument"`: policy.SignDocument, `[2,2]`: policy.SignDocument, `[4095]`: policy.All,
	} {
		var got, stored actionList
		if err := got.FromValue(decode(t, text)); err != nil || got != (actionList{true, want}) {
			t.Errorf("%s is %v, %v; want %v", text, got, err, want)
		}
		kept, err := json.Marshal(got)
		if e := json.Unmarshal(kept, &stored); err != nil || e != nil || stored != got {
			t.Errorf("%s is stored as %s, %v, %v", text, kept, err, e)
		}
	}
	for _, text := range []string{`null`, `{}`, `[null]`, `[true]`, `[[2]]`, `[{"Action":2}]`, `[0]`, `[-2]`, `[4096]`, `[2.5]`, `[2e0]`, `["Sign"]`, `[""]`, `["SignDocument,"]`, `""`, `true`, `18446744073709551618`} {
		var got actionList
		if err := got.FromValue(decode(t, text)); err == nil {
			t.Errorf("%s is taken as %v", text, got)
		}
	}
}

func TestReadNotifiers(t *testing.T) {
	want := map[string][]string{"UserPasswordChanged": {"Email", "sms"}, "SomethingNew": {}}
	for _, text := range []string{
		`{"userpasswordCHANGED":["Email","sms"],"SomethingNew":[]}`,
		`{"Policy":{"UserPasswordChanged":["Email","sms"],"SomethingNew":null},"ChangesAllowed":true,"AvailableNotifiers":["Email"]}`,
	} {
		if got, err := readNotifiers(decode(t, text)); err != nil || cmp.Diff(want, got) != "" {
			t.Errorf("%s is %v, %v", text, got, err)
		}
	}
	if got, err := readNotifiers(decode(t, `{}`)); err != nil || got == nil || len(got) != 0 {
		t.Errorf("nothing is %v, %v", got, err)
	}
	for _, text := range []string{`null`, `[]`, `"Email"`, `{"UserCreated":"Email"}`, `{"UserCreated":[1]}`, `{"UserCreated":{}}`, `{"UserCreated":[],"usercreated":[]}`} {
		if got, err := readNotifiers(decode(t, text)); err == nil {
			t.Errorf("%s is taken as %v", text, got)
		}
	}
}

// decode reads JSON as web/rest does for a body of any kind.
func decode(t *testing.T, text string) (v any) {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		t.Fatal(err)
	}
	return v
}

// TestFailEvents: every operation of the surface is one that changes something of the
// account and has its event, or one that does not and has none.
func TestFailEvents(t *testing.T) {
	for _, r := range slices.Concat(PolicyRoutes(nil, "ru"), DeviceRoutes(nil), New(nil, nil, nil, nil, Rules{Local: "realsts"}).Routes()) {
		event := FailEvent(r.Name)
		if _, known := notify.EventByType(event); event != "" && !known {
			t.Errorf("%s fails with %s, which is not in the catalogue", r.Name, event)
		}
		if r.Method == "GET" && event != "" {
			t.Errorf("%s only reads, and fails with %s", r.Name, event)
		}
		if phone := strings.Contains(r.Name, "Phone") && !strings.HasPrefix(r.Name, "RequireUser") && !strings.HasPrefix(r.Name, "Check") && r.Method != "GET"; phone != (event == notify.UserPhoneChangeFail) {
			t.Errorf("%s fails with %q", r.Name, event)
		}
	}
	for operation, want := range map[string]notify.EventType{
		"RegisterUser": notify.UserCreateFail, "RegisterUser2": notify.UserCreateFail, "DeleteUser": notify.UserDeleteFail, "DeleteUserEmail": notify.UserAccountChangeFail,
		"DeleteUserLogin": notify.UserAccountChangeFail, "ResetPasswordAndSendSms": notify.UserPasswordChangeFail, "Get": "", "GetUsers": "", "RevokeUserGrants": "",
		"SetUserAccessPolicy": notify.UserAccountChangeFail, "ResendMyDssKInitOtp": "", "RestoreUserOtpTokenSync": notify.UserAccountChangeFail,
	} {
		if got := FailEvent(operation); got != want {
			t.Errorf("%s fails with %q, want %q", operation, got, want)
		}
	}
}
