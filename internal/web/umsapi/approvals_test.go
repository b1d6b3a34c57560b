// SPDX-License-Identifier: Apache-2.0

package umsapi_test

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"tamga/internal/adapter/store/storetest"
	"tamga/internal/tamgatest"
)

// approvalRequest is a request that waits.
type approvalRequest struct {
	ID, Operation, UserID, Requester, State, Method, Target string
	NeedsApproval                                           bool
}

// waiting returns the requests that an operator sees.
func waiting(t *testing.T, w *tamgatest.UMS, who string) (list []approvalRequest) {
	t.Helper()
	w.OK(who, "GET", "/ums/approvals", "").Into(t, &list)
	return list
}

// mustWait calls an operation that must wait, and returns the identifier of its request.
func mustWait(t *testing.T, w *tamgatest.UMS, who, method, path, body string) string {
	t.Helper()
	a := w.Ask(who, method, path, body)
	if a.Status != 400 || !strings.Contains(a.Body, `"wrong_operation"`) {
		t.Fatalf("does not wait: %v", a)
	}
	for _, r := range waiting(t, w, tamgatest.TwoGroup) {
		if strings.Contains(a.Body, r.ID) {
			return r.ID
		}
	}
	t.Fatalf("the answer names no request: %v", a)
	return ""
}

// TestSecondOperator: an operation that needs a second operator waits for one, who is not its
// requester, and is carried out once.
func TestSecondOperator(t *testing.T) { onBothEngines(t, testSecondOperator) }

// onBothEngines runs a test with the settings of each engine.
func onBothEngines(t *testing.T, test func(t *testing.T, settings ...string)) {
	t.Parallel()
	t.Run("SQLite", func(t *testing.T) { t.Parallel(); test(t) })
	t.Run("PostgreSQL", func(t *testing.T) {
		t.Parallel()
		test(t, "--set", "database="+storetest.PostgreSQL(t).Migrated(t))
	})
}

func testSecondOperator(t *testing.T, settings ...string) {
	w := tamgatest.StartUMS(t, append(settings, "--set", "users.second_operator=[gives_secret, ends_access]")...)
	id, _, _, _ := w.Register() // without such an effect
	reset := "/ums/user/" + id + "/password"
	request := mustWait(t, w, tamgatest.Ours, "POST", reset, "")
	if same := mustWait(t, w, tamgatest.Ours, "POST", reset, ""); same != request {
		t.Errorf("the same call has request %s, want %s", same, request)
	}
	at := "/ums/approvals/" + request
	for who, status := range map[string]int{tamgatest.Ours: 403, tamgatest.Foreign: 404, tamgatest.Plain: 403, tamgatest.Anonymous: 401} {
		if a := w.Ask(who, "POST", at+"/approve", ""); a.Status != status {
			t.Errorf("%s approves: %v, want %d", who, a, status)
		}
	}
	if list := waiting(t, w, tamgatest.Foreign); len(list) != 0 {
		t.Errorf("an operator of another group sees %v", list)
	}
	var detail approvalRequest
	w.OK(tamgatest.TwoGroup, "GET", at, "").Into(t, &detail)
	if detail.Operation != "ResetPassword" || detail.UserID != id || detail.Requester != w.Dev.Operator.Login || !detail.NeedsApproval || detail.State != "Waiting" || !strings.HasSuffix(detail.Target, reset) {
		t.Errorf("%+v", detail)
	}
	w.OK(tamgatest.TwoGroup, "POST", at+"/approve", "")
	if a := w.Ask(tamgatest.TwoGroup, "POST", at+"/approve", ""); a.Status != 400 {
		t.Errorf("approved twice: %v", a)
	}
	// Another call than the approved one waits on its own.
	if other := mustWait(t, w, tamgatest.TwoGroup, "POST", reset, ""); other == request {
		t.Error("another operator has the same request")
	} else {
		w.OK(tamgatest.TwoGroup, "POST", "/ums/approvals/"+other+"/refuse", "")
	}
	var mu sync.Mutex
	passwords := map[string]bool{}
	var callers sync.WaitGroup
	for range 16 {
		callers.Go(func() {
			if a := w.Ask(tamgatest.Ours, "POST", reset, ""); a.Status == 200 {
				mu.Lock()
				defer mu.Unlock()
				passwords[a.Body] = true
			}
		})
	}
	callers.Wait()
	if len(passwords) != 1 {
		t.Errorf("%d passwords were made, want 1", len(passwords))
	}
	// A refused one is not carried out, and a new call asks again.
	approve := "/ums/user/" + id + "/approve?approved=false"
	refused := mustWait(t, w, tamgatest.Ours, "POST", approve, "")
	if r := w.TryCommand("approval", "list"); r.Failure != nil || !strings.Contains(r.Out, refused) {
		t.Errorf("%s, %v", r.Out, r.Failure)
	}
	if r := w.TryCommand("approval", "refuse", refused); r.Failure != nil {
		t.Error(r.Failure)
	}
	again := mustWait(t, w, tamgatest.Ours, "POST", approve, "")
	if again == refused {
		t.Error("a refused request is open")
	}
	if r := w.TryCommand("approval", "approve", again); r.Failure != nil {
		t.Error(r.Failure)
	}
	w.OK(tamgatest.Ours, "POST", approve, "")
	if again2 := mustWait(t, w, tamgatest.Ours, "POST", approve, ""); again2 == again {
		t.Error("an approval counts twice")
	}
}

// TestFactorDelay: a change of what a user signs in or confirms with waits, the user is told
// and may cancel it. What the user does not have yet is set at once.
func TestFactorDelay(t *testing.T) { onBothEngines(t, testFactorDelay) }

func testFactorDelay(t *testing.T, settings ...string) {
	w := tamgatest.StartUMS(t, append(settings, "--set", "users.factor_delay=24h")...)
	id, login, phone, email := w.Register()
	user := "/ums/user/" + id
	for _, path := range []string{"/phones/" + phone + "/confirm", "/emails/" + email + "/confirm", "/phones/" + phone + "/secondaryauth", "/authmethod/password"} {
		w.OK(tamgatest.Ours, "POST", user+path, "") // no factor yet
	}
	w.Command("user", "password", login, "--password-file", tamgatest.PasswordFile(t)) // an administrator
	w.Tokens["user"] = w.TokenOf(login, tamgatest.Password)
	for _, c := range []struct{ method, path, body string }{
		{"POST", "/password", ""}, {"POST", "/authmethod/oath", ""}, {"POST", "/oath/app", "{}"}, {"DELETE", "/authmethod/password", ""},
		{"POST", "/emails/" + email + "/secondaryauth", ""}, {"DELETE", "/phones/" + phone, ""}, {"DELETE", "/mydss", ""},
		{"POST", "/mydss/lockout", `{"Kid":"1","Lock":false}`}, {"POST", "/phonenumber", `"79250000099"`}, {"POST", "/email", `"other@example.ru"`}, {"POST", "/phones/" + phone + "/primary", ""},
	} {
		mustWait(t, w, tamgatest.Ours, c.method, user+c.path, c.body)
	}
	w.OK(tamgatest.Ours, "POST", user+"/operationpolicy", `[2, 4]`) // asks for more
	mustWait(t, w, tamgatest.Ours, "POST", user+"/operationpolicy", `[2]`)
	if a := w.Ask(tamgatest.Ours, "POST", user+"/mydss/lockout", `{"Kid":"1","Lock":true}`); strings.Contains(a.Body, "wrong_operation") {
		t.Errorf("a block of a device waits: %v", a)
	}
	// A new policy is judged as it is read: in every spelling it asks for less.
	for _, body := range []string{"\xEF\xBB\xBF[]", " [ ] ", "\"SignDocument\"", `2`} {
		mustWait(t, w, tamgatest.Ours, "POST", user+"/operationpolicy", body)
	}
	mustWait(t, w, tamgatest.Ours, "POST", user+"/mydss/lockout", "\xEF\xBB\xBF"+`{"KID":"1","lock":0}`)
	for _, body := range []string{`{"Kid":"1","lock":true,"Lock":false}`, `{"Kid":"1","Lock":true,"Lock":false}`} {
		if a := w.Ask(tamgatest.Ours, "POST", user+"/mydss/lockout", body); a.Status != 400 || !strings.Contains(a.Body, "Lock is given twice") {
			t.Errorf("%s: %v", body, a)
		}
	}
	mustWait(t, w, tamgatest.Ours, "POST", user+"/notificationpolicy", `{}`)
	w.OK(tamgatest.Ours, "POST", user+"/accesspolicy", `[2]`)
	mustWait(t, w, tamgatest.Ours, "POST", user+"/accesspolicy", `[]`)
	mustWait(t, w, tamgatest.Ours, "POST", user+"/mydss/init/get", "") // gives out a secret
	// A code is no part of the request: the same one with another code is the same.
	otp := func(code string) string {
		return mustWait(t, w, tamgatest.Ours, "POST", user+"/oath", fmt.Sprintf(`{"Serial":"1","FirstOtp":%q}`, code))
	}
	if a, b := otp("111111"), otp("222222"); a != b {
		t.Errorf("requests %s and %s", a, b)
	}
	w.TokenOf(login, tamgatest.Password) // the password is the old one

	told := 0
	for _, m := range w.Captured() {
		if strings.Contains(m.Text, "вступит в силу позже") {
			told++
		}
	}
	if told < 10 {
		t.Errorf("%d messages tell of changes that wait", told)
	}
	var changes []approvalRequest
	w.OK("user", "GET", "/changes", "").Into(t, &changes)
	if len(changes) != 17 {
		t.Errorf("the user sees %d changes", len(changes))
	}
	for _, who := range []string{tamgatest.Plain, tamgatest.Ours} {
		if a := w.Ask(who, "POST", "/changes/"+changes[0].ID+"/cancel", ""); a.Status != 404 {
			t.Errorf("%s cancels: %v", who, a)
		}
	}
	w.OK("user", "POST", "/changes/"+changes[0].ID+"/cancel", "")
	if a := w.Ask("user", "POST", "/changes/"+changes[0].ID+"/cancel", ""); a.Status != 400 {
		t.Errorf("cancelled twice: %v", a)
	}
	if a := w.Ask(tamgatest.TwoGroup, "POST", "/ums/approvals/"+changes[1].ID+"/approve", ""); a.Status != 400 {
		t.Errorf("an approval ends the delay: %v", a)
	}
	w.OK(tamgatest.TwoGroup, "POST", "/ums/approvals/"+changes[1].ID+"/refuse", "")
	w.OK("user", "GET", "/changes", "").Into(t, &changes)
	if len(changes) != 15 {
		t.Errorf("the user sees %d changes", len(changes))
	}
}

// TestBlockedFactorCounts: a device that is blocked is still what the user confirms with, so the
// next one waits.
func TestBlockedFactorCounts(t *testing.T) { onBothEngines(t, testBlockedFactorCounts) }

func testBlockedFactorCounts(t *testing.T, settings ...string) {
	w := tamgatest.StartUMS(t, append(settings, "--set", "users.factor_delay=24h")...)
	id, _, phone, _ := w.Register()
	user := "/ums/user/" + id
	w.OK(tamgatest.Ours, "POST", user+"/phones/"+phone+"/confirm", "")
	w.OK(tamgatest.Ours, "POST", user+"/authmethod/mydss", "")
	kid := addDevice(t, w, id) // the first one
	for name, then := range map[string]func(){
		"before": func() {}, "blocked": func() { w.OK(tamgatest.Ours, "POST", user+"/mydss/lockout", `{"Kid":"`+kid+`","Lock":true}`) },
	} {
		then()
		for _, c := range []struct{ method, path, body string }{
			{"POST", "/mydss/init", `{"Msisdn":"` + phone + `"}`}, {"POST", "/mydss/assign", `{"Kid":"` + kid + `"}`}, {"POST", "/oath/app", ""},
			{"POST", "/authmethod/idonly", ""}, {"POST", "/mydss/lockout", `{"Kid":"` + kid + `","Lock":false}`}, {"POST", "/mydss/delete", `{"Kid":"` + kid + `"}`},
		} {
			if a := w.Ask(tamgatest.Ours, c.method, user+c.path, c.body); a.Status != 400 || !strings.Contains(a.Body, "takes effect only after a delay") {
				t.Errorf("%s: %v", name, a)
			}
		}
	}
}

// addDevice registers and verifies a device of a user.
func addDevice(t *testing.T, w *tamgatest.UMS, id string) (kid string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "phone.json")
	phone := func(args ...string) string {
		t.Helper()
		out, err := tamgatest.Phone(t, file, args...)
		if err != nil {
			t.Fatalf("%s: %v", out, err)
		}
		return out
	}
	phone("register", "--service", w.Dev.DevicesURL, "--name", "Phone", "--suite", "ecdsa-p256")
	var facts struct{ Kid string }
	if err := json.Unmarshal([]byte(phone("show", "--json")), &facts); err != nil {
		t.Fatal(err)
	}
	w.OK(tamgatest.Ours, "POST", "/ums/user/"+id+"/mydss/assign", `{"Kid":"`+facts.Kid+`"}`)
	_, text := w.Verification(id, facts.Kid)
	phone("verify", "--qr-text", text)
	return facts.Kid
}

// TestApprovedValueRuns: what a second operator has approved is what runs, however the repetition
// is spelled. Every operation that gives out a secret needs the approval.
func TestApprovedValueRuns(t *testing.T) { onBothEngines(t, testApprovedValueRuns) }

func testApprovedValueRuns(t *testing.T, settings ...string) {
	w := tamgatest.StartUMS(t, append(settings, "--set", "users.second_operator=[gives_secret]")...)
	id, _, phone, _ := w.Register()
	user := "/ums/user/" + id
	w.OK(tamgatest.Ours, "POST", user+"/phones/"+phone+"/confirm", "")
	send := user + "/password/send"
	to := `"NotificationDestinations":[{"Type":"PhoneNumber","Value":` + phone + `}]`
	for _, body := range []string{`{` + to + `,"ReturnRawPassword":false,"returnRawPassword":true}`, `{` + to + `,"ReturnRawPassword":true,"ReturnRawPassword":false}`} {
		if a := w.Ask(tamgatest.Ours, "POST", send, body); a.Status != 400 || !strings.Contains(a.Body, "ReturnRawPassword is given twice") {
			t.Errorf("%s: %v", body, a)
		}
	}
	request := mustWait(t, w, tamgatest.Ours, "POST", send, `{`+to+`,"ReturnRawPassword":false}`)
	var detail struct {
		Body    string
		Effects []string
	}
	w.OK(tamgatest.TwoGroup, "GET", "/ums/approvals/"+request, "").Into(t, &detail)
	if !strings.Contains(detail.Body, `"ReturnRawPassword":false`) || strings.Join(detail.Effects, " ") != "gives_secret adds_factor removes_factor" {
		t.Errorf("%+v", detail)
	}
	w.OK(tamgatest.TwoGroup, "POST", "/ums/approvals/"+request+"/approve", "")
	if other := mustWait(t, w, tamgatest.Ours, "POST", send, `{`+to+`,"ReturnRawPassword":true}`); other == request {
		t.Error("another value is the same request")
	}
	var mu sync.Mutex
	var answers []string
	var callers sync.WaitGroup
	for range 8 { // the same value in other words, once
		callers.Go(func() {
			if a := w.Ask(tamgatest.Ours, "POST", send, "\xEF\xBB\xBF"+` { "returnRawPassword" : 0 , `+to+`, "Unknown": 1 } `); a.Status == 200 {
				mu.Lock()
				defer mu.Unlock()
				answers = append(answers, a.Body)
			}
		})
	}
	callers.Wait()
	if len(answers) != 1 || strings.Contains(answers[0], "Password") {
		t.Errorf("carried out as %q", answers)
	}
	for _, path := range []string{
		"/password", "/password/send/sms", "/password/send/email", "/password/print?format=Pdf", "/oath/app",
		"/mydss/init", "/mydss/init/get", "/mydss/sendqr", "/mydss/init/sendqr", "/mydss/init/resendotp", "/mydss/verify/get",
	} {
		mustWait(t, w, tamgatest.Ours, "POST", user+path, "")
	}
}

// TestFactorSinceApproval: a request that was approved while the user had no factor waits for the
// delay if the user has one by the time it is carried out.
func TestFactorSinceApproval(t *testing.T) { onBothEngines(t, testFactorSinceApproval) }

func testFactorSinceApproval(t *testing.T, settings ...string) {
	w := tamgatest.StartUMS(t, append(settings, "--set", "users.second_operator=[gives_secret]", "--set", "users.factor_delay=24h")...)
	id, login, _, _ := w.Register()
	user := "/ums/user/" + id
	request := mustWait(t, w, tamgatest.Ours, "POST", user+"/oath/app", "")
	w.OK(tamgatest.TwoGroup, "POST", "/ums/approvals/"+request+"/approve", "")
	w.OK(tamgatest.Ours, "POST", user+"/authmethod/password", "")
	w.Command("user", "password", login, "--password-file", tamgatest.PasswordFile(t))
	for range 2 {
		if a := w.Ask(tamgatest.Ours, "POST", user+"/oath/app", ""); a.Status != 400 || !strings.Contains(a.Body, request+" takes effect only after a delay") {
			t.Errorf("%v", a)
		}
	}
	w.Tokens["user"] = w.TokenOf(login, tamgatest.Password)
	var changes []approvalRequest
	if w.OK("user", "GET", "/changes", "").Into(t, &changes); len(changes) != 1 || changes[0].ID != request || changes[0].State != "Approved" {
		t.Errorf("the user sees %+v", changes)
	}
}

// TestConfirmedChange: a change that the user confirms with a factor of before waits no
// longer. No other user can confirm it, and it is confirmed once.
func TestConfirmedChange(t *testing.T) { onBothEngines(t, testConfirmedChange) }

func testConfirmedChange(t *testing.T, settings ...string) {
	w := tamgatest.StartUMS(t, append(settings, "--set", "users.factor_delay=24h")...)
	id, login, phone, _ := w.Register()
	user := "/ums/user/" + id
	for _, path := range []string{"/phones/" + phone + "/confirm", "/phones/" + phone + "/secondaryauth", "/authmethod/password", "/authmethod/otpviasms?level=1"} {
		w.OK(tamgatest.Ours, "POST", user+path, "") // no factor yet
	}
	w.Command("user", "password", login, "--password-file", tamgatest.PasswordFile(t))
	w.Tokens["user"] = w.TokenOf(login, tamgatest.Password)

	reset := user + "/authmethod/oath?level=1"
	change := mustWait(t, w, tamgatest.Ours, "POST", reset, "")
	at := "/changes/" + change + "/confirm"
	for _, who := range []string{tamgatest.Plain, tamgatest.Ours} {
		if a := w.Ask(who, "POST", at, ""); a.Status != 404 {
			t.Errorf("%s confirms: %v", who, a)
		}
	}
	confirm := func(operation string) string {
		t.Helper()
		ask := func(more string) (got struct {
			AccessToken string
			Challenge   struct{ ContextData struct{ RefID string } }
		}) {
			t.Helper()
			w.OK("user", "POST", "/v2.0/confirmation", fmt.Sprintf(`{"Resource":%q,"ClientId":%q%s}`, w.Dev.Resource, w.Dev.ClientID, more)).Into(t, &got)
			return got
		}
		ref := ask(fmt.Sprintf(`,"OperationId":%q`, operation)).Challenge.ContextData.RefID
		return ask(fmt.Sprintf(`,"ChallengeResponse":{"TextChallengeResponse":[{"RefId":%q,"Value":%q}]}`, ref, w.Code(phone))).AccessToken
	}
	propose := func(path string) (operation string) {
		t.Helper()
		var got struct{ OperationID string }
		w.OK("user", "POST", path, "").Into(t, &got)
		return got.OperationID
	}
	w.Tokens["confirmed"] = confirm(propose(at))
	// The token is that of one change.
	another := mustWait(t, w, tamgatest.Ours, "POST", user+"/password", "")
	if a := w.Ask("confirmed", "POST", "/changes/"+another+"/confirm", ""); a.Status != 400 {
		t.Errorf("another change: %v", a)
	}
	if a := w.Ask("confirmed", "GET", "/changes", ""); a.Status != 401 {
		t.Errorf("another route: %v", a)
	}
	for range 2 { // the repetition changes nothing
		w.OK("confirmed", "POST", at, "")
	}
	mustWait(t, w, tamgatest.Ours, "POST", user+"/password", "") // the other one waits
	if a := w.Ask("user", "POST", at, ""); a.Status != 400 || !strings.Contains(a.Body, "wrong_operation") {
		t.Errorf("confirmed again: %v", a)
	}
	// The confirmation alone ends the delay: its client need not come back.
	confirm(propose("/changes/" + another + "/confirm"))
	for {
		if a := w.Ask(tamgatest.Ours, "POST", user+"/password", ""); a.Status == 200 {
			break
		} else if a.Status != 400 || !strings.Contains(a.Body, `"wrong_operation"`) {
			t.Fatalf("after the confirmation: %v", a)
		}
	}
	w.OK(tamgatest.Ours, "POST", reset, "") // carried out, which cancels what the user has open
}
