// SPDX-License-Identifier: Apache-2.0

package umsapi_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tamga/internal/cli/admin"
	"tamga/internal/domain/notify"

	"tamga/internal/tamgatest"
)

// heardEvent is an event as a system that listens is told of it.
type heardEvent struct {
	ID        string
	Type      string
	Timestamp time.Time
	Data      struct {
		Category string
		UserID   string `json:"user_id"`
		ActorID  string `json:"actor_id"`
		Detail   string
	}
}

// ear is a system that listens. It checks signatures on its own.
type ear struct {
	*httptest.Server
	mu     sync.Mutex
	secret []byte
	status int // of its answers
	heard  []heardEvent
	faults []string
}

func newEar(t testing.TB) *ear {
	e := &ear{status: 200}
	e.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		e.mu.Lock()
		defer e.mu.Unlock()
		id, at := r.Header.Get("Webhook-Id"), r.Header.Get("Webhook-Timestamp")
		mac := hmac.New(sha256.New, e.secret)
		mac.Write([]byte(id + "." + at + "." + string(body)))
		said := heardEvent{ID: id}
		seconds, atErr := strconv.ParseInt(at, 10, 64)
		switch {
		case err != nil || r.Method != "POST" || r.Header.Get("Content-Type") != "application/json; charset=utf-8":
			e.faults = append(e.faults, fmt.Sprint(r.Method, r.Header, err))
		case r.Header.Get("Webhook-Signature") != "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)):
			e.faults = append(e.faults, "the signature is not good: "+string(body))
		case atErr != nil || time.Since(time.Unix(seconds, 0)).Abs() > 5*time.Minute:
			e.faults = append(e.faults, "sent at "+at)
		case json.Unmarshal(body, &said) != nil:
			e.faults = append(e.faults, string(body))
		}
		e.heard = append(e.heard, said)
		w.WriteHeader(e.status)
	}))
	t.Cleanup(e.Close)
	return e
}

// register has the ear told of events, of all where none is named.
func (e *ear) register(w *tamgatest.UMS, events ...string) (id string) {
	w.T.Helper()
	args := []string{"webhook", "add", e.URL + "/hook?token=of-theirs", "--json"}
	for _, x := range events {
		args = append(args, "--event", x)
	}
	var made admin.WebhookJSON
	if err := json.Unmarshal([]byte(w.Command(args...)), &made); err != nil {
		w.T.Fatal(err)
	}
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(made.Secret, "whsec_"))
	if err != nil || len(key) != notify.SecretSize {
		w.T.Fatalf("the secret has %d bytes: %v", len(key), err)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.secret = key
	w.AddSecrets(made.Secret, strings.TrimPrefix(made.Secret, "whsec_"))
	return made.ID
}

// new is what was heard since it was asked last. Nothing is under way any more.
func (e *ear) new(w *tamgatest.UMS) []heardEvent {
	w.T.Helper()
	w.Captured() // it waits for what is due, on every channel
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, f := range e.faults {
		w.T.Error(f)
	}
	heard := e.heard
	e.heard, e.faults = nil, nil
	return heard
}

// hooks lets a server reach systems on this machine.
var hooks = []string{"--set", "webhooks.allow_networks=[127.0.0.1]", "--set", "webhooks.plain_http=true"}

// tellings are the tables of docs/events.md or of its translation: the events of operations, done and failed,
// and the catalogue.
func tellings(t testing.TB, page string) (done, failed map[string]string, catalogue [][]string) {
	t.Helper()
	text, err := os.ReadFile("../../../docs/" + page)
	if err != nil {
		t.Fatal(err)
	}
	done, failed = map[string]string{}, map[string]string{}
	name := regexp.MustCompile(`\b[A-Z][A-Za-z0-9]*[a-z][A-Z][A-Za-z0-9]*\b`)
	for line := range strings.SplitSeq(string(text), "\n") {
		cells := strings.Split(strings.Trim(line, "| "), "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		switch {
		case len(cells) == 5 && name.MatchString(cells[0]):
			catalogue = append(catalogue, cells)
		case len(cells) == 3 && cells[0] != "Operation" && cells[0] != "---":
			for _, operation := range name.FindAllString(cells[0], -1) {
				done[operation], failed[operation] = strings.Trim(cells[1], "-"), strings.Trim(cells[2], "-")
			}
			if name.FindString(cells[0]) == "" || strings.HasPrefix(cells[0], "ResetPassword,") {
				operation, _, _ := strings.Cut(cells[0], ",")
				done[operation], failed[operation] = strings.Trim(cells[1], "-"), strings.Trim(cells[2], "-")
			}
		}
	}
	return done, failed, catalogue
}

// TestCatalogueOfEvents: the page and the program have the same events.
func TestCatalogueOfEvents(t *testing.T) {
	want := map[string][][]string{}
	for _, e := range notify.Events() {
		for language, text := range e.Description {
			want[language] = append(want[language], []string{string(e.Type), strconv.Itoa(e.Number), e.Category, string(e.Usage), text})
		}
		if e.Description["ru"] == "" || !slices.ContainsFunc(notify.Categories(), func(c notify.EventCategory) bool { return c.Category == e.Category }) {
			t.Errorf("%s has no description or no category", e.Type)
		}
	}
	for language, page := range map[string]string{"en": "events.md", "ru": "ru/events.md"} {
		if _, _, rows := tellings(t, page); !slices.EqualFunc(want[language], rows, slices.Equal[[]string]) {
			t.Errorf("%s: %s", page, cmp.Diff(want[language], rows))
		}
	}
}

// walk carries out operations of user management and looks at what is told of each.
type walk struct {
	*tamgatest.UMS
	ear          *ear
	done, failed map[string]string // events of operations, as docs/events.md has them
	walked       map[string]bool   // operations that were carried out
	operator     string            // identifier of the operator
	factors      map[string]string // operations that told of a factor, and of which
}

// look wants the events of an operation, whose names are separated by spaces.
func (k *walk) look(operation, want, userID string) {
	t := k.T
	t.Helper()
	var got []string
	for _, x := range k.ear.new(k.UMS) {
		if x.Data.UserID != userID || x.Data.ActorID != k.operator || x.Data.Category != "UserAccount" {
			t.Errorf("%s tells %+v", operation, x)
		}
		if x.Type == string(notify.UserFactorChanged) {
			k.factors[operation] = x.Data.Detail
			continue
		}
		got = append(got, x.Type)
	}
	if d := cmp.Diff(strings.Fields(want), got); d != "" && len(got)+len(want) > 0 {
		t.Errorf("%s: %s", operation, d)
	}
}

// ask calls an operation, which may be refused.
func (k *walk) ask(operation, userID, method, path, body string) tamgatest.Answer {
	k.T.Helper()
	if _, ok := k.done[operation]; !ok {
		k.T.Fatalf("docs/events.md knows no %s", operation)
	}
	a := k.Ask(tamgatest.Ours, method, path, body)
	if a.Status == 200 {
		k.walked[operation] = true
		k.look(operation, k.done[operation], userID)
	} else {
		k.look(operation+" refused", k.failed[operation], userID)
	}
	return a
}

// ok calls an operation that must succeed.
func (k *walk) ok(operation, userID, method, path, body string) {
	k.T.Helper()
	if a := k.ask(operation, userID, method, path, body); a.Status != 200 {
		k.T.Fatalf("%s: %v", operation, a)
	}
}

// refused calls an operation that must be refused.
func (k *walk) refused(operation, userID, method, path, body string) {
	k.T.Helper()
	if a := k.ask(operation, userID, method, path, body); a.Status != 400 {
		k.T.Errorf("%s: %v", operation, a)
	}
}

// callOnUser is a call of an operation on a user. The body CODE is for the code of the last
// message.
type callOnUser struct{ operation, method, path, body string }

// callsOnUser are calls on the user of TestEvents. Most operations succeed and are refused once.
func callsOnUser(system, id string) []callOnUser {
	base := "/ums/user/" + id
	phone, email := base+"/phones/79261112233", base+"/emails/"+url.PathEscape("heard@example.ru")
	return []callOnUser{
		{"SetUserProperty", "POST", base, `{"PropertyType":0,"Value":"Имя"}`},
		{"SetUserProperty", "PATCH", base, `{"PropertyType":7,"Value":"Имя"}`},
		{"SetUserApprovedStateAsync", "POST", base + "/approve?approved=true", ``},
		{"SetUserApprovedStateAsync", "POST", base + "/approve", ``},
		{"SetUserDistinguishedName", "POST", base + "/dn", `{"11":"Петров"}`},
		{"SetUserDistinguishedName", "POST", base + "/dn", `{"99":"Петров"}`},
		{"SetUserGroup", "POST", base + "/group?groupName=Default", `{"11":"Петров П."}`},
		{"SetUserGroup", "POST", base + "/group?groupName=Other", `{}`},
		{"SetUserLocalLogin", "POST", base + "/login/local?newLogin=listened", ``},
		{"SetUserLocalLogin", "POST", base + "/login/local?newLogin=operator", ``},
		{"SetUserLogin", "POST", base + "/login", `{"Login":"x","IssuerName":"elsewhere"}`},
		{"SetUserLogin", "POST", base + "/login", `{"Login":"x"}`},
		{"DeleteUserLogin", "DELETE", base + "/login?issuerName=elsewhere", ``},
		{"RequireUserPhoneConfirmation", "POST", phone + "/requireconfirm", ``},
		{"RequireUserPhoneConfirmation", "POST", phone + "/requireconfirm", ``},
		{"SubmitUserPhoneConfirmation", "POST", phone + "/submitconfirm", `"code"`},
		{"SubmitUserPhoneConfirmation", "POST", phone + "/submitconfirm", "CODE"},
		{"RequireUserEmailConfirmation", "POST", email + "/requireconfirm", ``},
		{"SubmitUserEmailConfirmation", "POST", email + "/submitconfirm", `"code"`},
		{"SubmitUserEmailConfirmation", "POST", email + "/submitconfirm", "CODE"},
		{"ConfirmUserPhone", "POST", phone + "/confirm", ``},
		{"ConfirmUserPhone", "POST", base + "/phones/79990000000/confirm", ``},
		{"SetUserPrimaryPhone", "POST", phone + "/primary", `true`},
		{"SetUserPrimaryPhone", "POST", phone + "/primary", ``},
		{"SetUserNotificationPhone", "POST", phone + "/notification", `true`},
		{"SetUserNotificationPhone", "POST", phone + "/notification", `"?"`},
		{"SetUserSecondaryAuthPhone", "POST", phone + "/secondaryauth", ``},
		{"ConfirmUserEmail", "PATCH", email + "/confirm", ``},
		{"SetUserPrimaryEmail", "POST", email + "/primary", `true`},
		{"SetUserNotificationEmail", "POST", email + "/notification", `true`},
		{"SetUserSecondaryAuthEmail", "POST", email + "/secondaryauth", ``},
		{"SetUserSecondaryAuthEmail", "POST", base + "/emails/unknown@example.ru/secondaryauth", ``},
		{"AddUserPhone", "POST", base + "/phones", `"79990000001"`},
		{"AddUserPhone", "POST", base + "/phones", `"what"`},
		{"AddUserEmail", "POST", base + "/emails", `"other@example.ru"`},
		{"AddUserEmail", "POST", base + "/emails", `"what"`},
		{"DeleteUserPhone", "DELETE", base + "/phones/79990000001", ``},
		{"DeleteUserPhone", "DELETE", base + "/phones/79990000001", ``},
		{"DeleteUserEmail", "DELETE", base + "/emails/other@example.ru", ``},
		{"SetUserMainPhone", "POST", base + "/phonenumber", `"79261112233"`},
		{"SetUserMainPhone", "POST", base + "/phonenumber", `""`},
		{"SetUserMainEmail", "POST", base + "/email", `"heard@example.ru"`},
		{"SetUserMainEmail", "POST", base + "/email", `"x"`},
		{"ConfirmUserPhone", "POST", phone + "/confirm", ``},
		{"ConfirmUserEmail", "POST", email + "/confirm", ``},
		{"SetUserSecondaryAuthPhone", "POST", phone + "/secondaryauth", ``},
		{"SetUserSecondaryAuthEmail", "POST", email + "/secondaryauth", ``},
		{"ResetPassword", "POST", base + "/password", ``},
		{"ResetPasswordAndSend", "POST", base + "/password/send", `{"ReturnRawPassword":true}`},
		{"ResetPasswordAndSend", "POST", base + "/password/send", `{"NotificationDestinations":[{"Type":"PhoneNumber","Value":"79990000000"}]}`},
		{"ResetPasswordAndSendSms", "POST", base + "/password/send/sms", ``},
		{"ResetPasswordAndSendSms", "POST", base + "/password/send/sms?destination=79990000000", ``},
		{"ResetPasswordAndSendEmail", "POST", base + "/password/send/email", ``},
		{"ResetPasswordAndPrint", "POST", base + "/password/print?format=Html", ``},
		{"ResetPasswordAndPrint", "POST", base + "/password/print", ``},
		{"SetUserAuthenticationMethodPassword", "POST", base + "/authmethod/password", ``},
		{"DeleteUserAuthenticationMethodPassword", "DELETE", base + "/authmethod/password", ``},
		{"CreateUserOathAppData", "POST", base + "/oath/app", `{}`},
		{"RemoveUserOtpToken", "DELETE", base + "/oath", ``},
		{"SetUserOtpToken", "POST", base + "/oath", `{"Serial":"none","FirstOtp":"000000"}`},
		{"RestoreUserOtpTokenSync", "POST", base + "/oath/sync", `{"Serial":"none","FirstOtp":"000000","SecondOtp":"000000"}`},
		{"CreateMyDssKInit", "POST", base + "/mydss/init", `{"Msisdn":"79261112233","SystemId":"` + system + `"}`},
		{"CreateMyDssKInit", "POST", base + "/mydss/init", `{"SystemId":"` + system + `"}`},
		{"DeleteMyDssKInit", "POST", base + "/mydss/init/delete", ``},
		{"DeleteMyDssKInit", "POST", base + "/mydss/init/delete", ``},
		{"AssignMyDssKey", "POST", base + "/mydss/assign", `{"Kid":"1"}`},
		{"LockoutMyDssDevice", "POST", base + "/mydss/lockout", `{"Kid":"1","Lock":true}`},
		{"DeleteMyDssKey", "POST", base + "/mydss/delete", `{"Kid":"1"}`},
		{"SetUserOperationPolicy", "POST", base + "/operationpolicy", `[2]`},
		{"SetUserOperationPolicy", "POST", base + "/operationpolicy", `[4096]`},
		{"SetUserAccessPolicy", "POST", base + "/accesspolicy", `[]`},
		{"SetUserAccessPolicy", "POST", base + "/accesspolicy", ``},
		{"SetNotificationPolicy", "POST", base + "/notificationpolicy", `{}`},
		{"SetNotificationPolicy", "POST", base + "/notificationpolicy", `{"UserCreated":["Pigeon"]}`},
		{"SetUserLockoutState", "POST", base + "/lockout?lock=True", `{}`},
		{"SetUserLockoutState", "POST", base + "/lockout", `{}`},
		{"SetUserLockoutStateEx", "POST", base + "/lockoutex", `{"LockUser":false}`},
		{"SetUserLockoutStateEx", "POST", base + "/lockoutex", `{}`},
		{"RevokeUserGrants", "POST", "/user/" + id + "/grants/revoke", ``},
		{"DeleteUserLocalLogin", "DELETE", base + "/login/local", ``},
		{"DeleteUser", "DELETE", base, ``},
	}
}

// TestEvents performs the operations of docs/events.md from outside, and each tells
// what the page says, at once and when it is refused.
func TestEvents(t *testing.T) {
	t.Parallel()
	w := tamgatest.StartUMS(t, append([]string{"--set", "messages.budgets.sms.recipient=0"}, hooks...)...)
	e := newEar(t)
	e.register(w)
	done, failed, _ := tellings(t, "events.md")
	var operator struct{ UserID string }
	w.OK(tamgatest.Ours, "GET", "/ums/user?type=Login&value="+w.Dev.Operator.Login, "").Into(t, &operator)
	k := &walk{w, e, done, failed, map[string]bool{}, operator.UserID, map[string]string{}}

	// A registration has an event about a user that was unknown before, so it is compared here.
	var id string
	w.OK(tamgatest.Ours, "POST", "/ums/user", `{"Login":"heard","PhoneNumber":"79261112233","Email":"heard@example.ru"}`).Into(t, &id)
	k.look("RegisterUser", done["RegisterUser"], id)
	k.walked["RegisterUser"] = true
	var second struct{ ID string }
	w.OK(tamgatest.Ours, "POST", "/ums/user/register", `{"Login":"heard too"}`).Into(t, &second)
	k.look("RegisterUser2", done["RegisterUser2"], second.ID)
	k.walked["RegisterUser2"] = true
	k.refused("RegisterUser", "", "POST", "/ums/user", `{"Login":"HEARD"}`)
	k.refused("RegisterUser2", "", "POST", "/ums/user/register", `{`)

	for _, c := range callsOnUser(w.Dev.MobileSystem, id) {
		body := c.body
		if body == "CODE" {
			list := w.Captured()
			body = `"` + tamgatest.SixDigits.FindString(list[len(list)-1].Text) + `"`
		}
		k.ask(c.operation, id, c.method, c.path, body)
	}
	k.ok("DeleteUser", second.ID, "DELETE", "/ums/user/"+second.ID, "")

	eventsOfDevices(t, k)

	// Of an unknown user, and of a user of another group, nothing is told.
	for _, user := range []string{tamgatest.Missing, id} {
		if a := w.Ask(tamgatest.Ours, "DELETE", "/ums/user/"+user, ""); a.Status != 404 {
			t.Errorf("%v", a)
		}
	}
	var theirs string
	w.OK(tamgatest.Foreign, "POST", "/ums/user", `{"Login":"theirs"}`).Into(t, &theirs)
	e.new(w)
	if a := w.Ask(tamgatest.Ours, "POST", "/ums/user/"+theirs+"/lockoutex", `{}`); a.Status != 404 {
		t.Errorf("%v", a)
	}
	k.look("a user of another group", "", "")

	// An administrator.
	w.Command("user", "add", "by hand", "--group", "Default", "--password-file", tamgatest.PasswordFile(t))
	heard := e.new(w)
	if len(heard) != 1 || heard[0].Type != done["`tamga user add`"] || heard[0].Data.ActorID != "" {
		t.Errorf("tamga user add tells %+v", heard)
	}
	if d := cmp.Diff(map[string]string{
		"SetUserLogin": "login at another provider", "SetUserSecondaryAuthPhone": "contact for codes", "SetUserSecondaryAuthEmail": "contact for codes",
		"ResetPassword": "password", "ResetPasswordAndSend": "password", "ResetPasswordAndSendSms": "password", "ResetPasswordAndSendEmail": "password", "ResetPasswordAndPrint": "password",
		"SetUserAuthenticationMethodPassword": "authentication method", "CreateUserOathAppData": "token for one-time passwords",
	}, k.factors); d != "" {
		t.Errorf("factors: %s", d)
	}
	// Operations that need a token of the stock, or an unassigned device, are only refused here.
	elsewhere := []string{"SetUserOtpToken", "RestoreUserOtpTokenSync", "AssignMyDssKey"}
	for operation := range done {
		if !k.walked[operation] && !slices.Contains(elsewhere, operation) && !strings.Contains(operation, " ") {
			t.Errorf("%s was not performed", operation)
		}
	}
	w.Scan()
}

// eventsOfDevices carries out the operations on the devices of a user.
func eventsOfDevices(t *testing.T, k *walk) {
	owner, _, phone, _ := k.Register()
	base := "/ums/user/" + owner
	k.OK(tamgatest.Ours, "POST", base+"/phones/"+phone+"/confirm", "")
	picture, _, kid := k.KInit(owner, fmt.Sprintf(`{"msisdn":%q,"SystemId":%q}`, phone, k.Dev.MobileSystem))
	file := t.TempDir() + "/phone.json"
	for _, args := range [][]string{{"register", "--qr", picture, "--code", k.ActivationCode(phone)}, {"verify", "--qr", ""}, {"push", "--address", "bell", "--os-type", "2"}} {
		if args[0] == "verify" {
			args[2], _ = k.Verification(owner, kid)
		}
		if out, err := tamgatest.Phone(t, file, args...); err != nil {
			t.Fatalf("%s: %s, %v", args[0], out, err)
		}
	}
	k.ear.new(k.UMS)
	bell := `{"Address":"bell","OsType":2,"SystemId":"` + k.Dev.MobileSystem + `"}`
	k.ok("SetUserNotificationPushAdress", owner, "POST", base+"/pushaddress/notification/true", bell)
	k.ok("DeleteUserPushAddress", owner, "DELETE", base+"/pushaddress", bell)
	k.refused("DeleteUserPushAddress", owner, "DELETE", base+"/pushaddress", bell)
	k.ok("RestoreUserPushAdressContact", owner, "PATCH", base+"/pushaddress/restore", bell)
	k.ok("LockoutMyDssDevice", owner, "POST", base+"/mydss/lockout", `{"Kid":"`+kid+`","Lock":true}`)
	k.ok("DeleteMyDssKey", owner, "POST", base+"/mydss/delete", `{"Kid":"`+kid+`"}`)
	k.ok("DeleteAllMyDssKeys", owner, "DELETE", base+"/mydss", "")
}

// TestEventsOfCertificates: what befalls the certificates of a user is told.
func TestEventsOfCertificates(t *testing.T) {
	t.Parallel()
	w := tamgatest.StartUMS(t, hooks...)
	e := newEar(t)
	e.register(w)
	token, pin := w.Token(), w.Cert("gost2012-256", true)
	own := fmt.Sprintf("/api/certificates/%d", w.Cert("ecdsa-p256", false).ID)
	for _, c := range []struct {
		method, path string
		body         any
		want         string
	}{
		{"POST", "/api/requests", map[string]any{"AuthorityId": 1}, "CertificatesRequested CertificateIssued"},
		{"POST", "/api/requests", map[string]any{"AuthorityId": 1, "Parameters": map[string]any{"RequestType": "RevokeRequest", "ActiveCertId": w.Cert("rsa-2048", false).ID}}, "RevokeRequestsRequested CertificateRevoked"},
		{"POST", fmt.Sprintf("/api/certificates/%d/pin", pin.ID), map[string]any{"OldPin": pin.PIN, "NewPin": pin.PIN + "1"}, "CertificatePinChanged"},
		{"POST", own + "/status", map[string]any{"Status": "HOLD"}, "CertificateHeld"},
		{"POST", own + "/status", map[string]any{"Status": "HOLD"}, ""}, // it is on hold already
		{"POST", own + "/status", map[string]any{"Status": "ACTIVE"}, "CertificateUnheld"},
		{"POST", own + "/status", map[string]any{"Status": "REVOKED", "RevocationReason": 0}, "CertificateRevoked"},
		{"DELETE", own, map[string]any{}, "CertificateDeleted"},
	} {
		status, answer := w.Call(c.method, c.path, token, c.body)
		if (status == 200) != (c.want != "") {
			t.Errorf("%s %s: %d %.300s", c.method, c.path, status, answer)
		}
		var got []string
		for _, x := range e.new(w) {
			got = append(got, x.Type)
			if x.Data.UserID != w.Dev.User.ID || x.Data.Category != "Certificates" {
				t.Errorf("%s %s tells %+v", c.method, c.path, x)
			}
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%s %s tells %v, want %s", c.method, c.path, got, c.want)
		}
	}
	w.OK(tamgatest.Ours, "GET", "/ums/policy", "")
	w.Scan()
}
