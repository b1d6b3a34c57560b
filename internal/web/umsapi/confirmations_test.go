// SPDX-License-Identifier: Apache-2.0

package umsapi_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"tamga/internal/adapter/store"
	"tamga/internal/domain/confirm"
	"tamga/internal/tamgatest"
	"tamga/internal/web/rest"
	"tamga/internal/web/umsapi"
)

// keep are the operations that change nothing that a confirmation rests on. A new
// operation is named here, or TestChangesCancelConfirmations carries it out and finds that
// it cancels.
var keep = strings.Fields(`RegisterUser RegisterUser2 CheckIdentifiersUnique GetUsers GetUserRawAuthenticationDataAsync
	SetUserDistinguishedName CheckDistinguishedNameUnique RevokeUserGrants SetNotificationPolicy RestoreUserOtpTokenSync
	AddUserPhone AddUserEmail CheckPhoneUnique CheckEmailUnique SetUserMainPhone SetUserMainEmail
	ConfirmUserPhone ConfirmUserEmail RequireUserPhoneConfirmation RequireUserEmailConfirmation
	SubmitUserPhoneConfirmation SubmitUserEmailConfirmation SetUserPrimaryPhone SetUserPrimaryEmail
	SetUserNotificationPhone SetUserNotificationEmail SetUserLocalLogin
	GetUserMyDssAuthInfo AssignMyDssKey CreateMyDssKInit GetMyDssKInit SendMyDssKInit ResendMyDssKInitOtp DeleteMyDssKInit GetMyDssVerificationData
	DeleteUserPushAddress RestoreUserPushAdressContact SetUserNotificationPushAdress`)

// TestChangesCancelConfirmations: a change of a password, device, method, policy or lock,
// or of a contact that gets codes, cancels what the user has begun to confirm.
func TestChangesCancelConfirmations(t *testing.T) {
	w := tamgatest.StartUMS(t, tamgatest.WithPasskeys()...)
	db, err := store.Open(t.Context(), store.Options{URL: "sqlite:" + sqliteOf(t, w.Dir), Limits: store.CommandLimits})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	records := store.Confirmations{DB: db}
	begin := func(userID string) (id string) {
		now := time.Now().UTC().Truncate(time.Millisecond)
		id = uuid.NewString()
		room, err := records.AddConfirmation(t.Context(), &confirm.Record{
			ID: id, RefID: uuid.NewString(), Subject: confirm.Subject{UserID: userID}, Purpose: confirm.ForOperation, Action: "SignDocument",
			State: confirm.Created, CreatedAt: now, UpdatedAt: now, ConfirmBefore: now.Add(time.Hour),
		}, &confirm.StoredContent{}, confirm.Quota{Records: 1000}, confirm.DefaultSettings().Documents)
		if err != nil || room != confirm.Added {
			t.Fatalf("a record: %v, %v", room, err)
		}
		return id
	}
	done := map[string]bool{}
	// step carries out do and compares what becomes of a record.
	step := func(name, userID string, cancels bool, do func()) {
		t.Helper()
		id := begin(userID)
		do()
		r, found, err := records.Confirmation(t.Context(), id)
		if err != nil || !found {
			t.Fatalf("%s: %t, %v", name, found, err)
		}
		if got := r.State == confirm.Cancelled; got != cancels {
			t.Errorf("%s: the confirmation is %s, want it cancelled: %t", name, r.State, cancels)
		}
		if cancels && !strings.HasPrefix(r.Message, "the operation was cancelled: ") {
			t.Errorf("%s: the message is %q", name, r.Message)
		}
		done[name] = done[name] || cancels
	}

	id, login, phone, email := w.Register()
	walk := func(name, method, path, body string) {
		t.Helper()
		step(name, id, !slices.Contains(keep, name), func() { w.OK(tamgatest.TwoGroup, method, "/ums/user/"+id+path, body) })
	}
	for kind, value := range map[string]string{"Phone": phone, "Email": email} {
		at, single := "/"+strings.ToLower(kind)+"s/"+value, map[string]string{"Phone": "/phonenumber", "Email": "/email"}[kind]
		walk("ConfirmUser"+kind, "POST", at+"/confirm", "")
		walk("SetUserNotification"+kind, "POST", at+"/notification?notification=true", "")
		walk("SetUserSecondaryAuth"+kind, "POST", at+"/secondaryauth", "")
		walk("DeleteUser"+kind, "DELETE", at, "")
		walk("SetUserMain"+kind, "POST", single, `"`+value+`"`)
		w.OK(tamgatest.Ours, "POST", "/ums/user/"+id+at+"/confirm", "")
		w.OK(tamgatest.Ours, "POST", "/ums/user/"+id+at+"/secondaryauth", "")
	}
	for _, m := range []struct{ route, operation string }{
		{"idonly", "IdOnly"}, {"password", "Password"}, {"cert", "Cert"}, {"external", "Saml"}, {"otpviasms", "OtpViaSms"}, {"otpviaemail", "OtpViaEmail"},
		{"oath", "OAth"}, {"mydss", "MyDss"}, {"passkey", "Passkey"},
	} {
		walk("SetUserAuthenticationMethod"+m.operation, "POST", "/authmethod/"+m.route, "")
		walk("DeleteUserAuthenticationMethod"+m.operation, "DELETE", "/authmethod/"+m.route, "")
	}
	walk("DeleteUserMainPhone", "DELETE", "/phonenumber", "")
	walk("DeleteUserMainEmail", "DELETE", "/email", "")
	walk("ResetPassword", "POST", "/password", "")
	walk("ResetPasswordAndPrint", "POST", "/password/print?format=Html", "")
	w.OK(tamgatest.Ours, "POST", "/ums/user/"+id+"/phonenumber", `"`+phone+`"`)
	w.OK(tamgatest.Ours, "POST", "/ums/user/"+id+"/email", `"`+email+`"`)
	for _, at := range []string{"/phones/" + phone, "/emails/" + email} {
		w.OK(tamgatest.Ours, "POST", "/ums/user/"+id+at+"/confirm", "")
		w.OK(tamgatest.Ours, "POST", "/ums/user/"+id+at+"/secondaryauth", "")
	}
	walk("ResetPasswordAndSend", "POST", "/password/send", `{"NotificationDestinations":[{"Type":"PhoneNumber"}]}`)
	walk("ResetPasswordAndSendSms", "POST", "/password/send/sms", "")
	walk("ResetPasswordAndSendEmail", "POST", "/password/send/email", "")

	walk("SetUserOperationPolicy", "POST", "/operationpolicy", `[2]`)
	walk("SetUserAccessPolicy", "POST", "/accesspolicy", `[]`)
	walk("SetNotificationPolicy", "POST", "/notificationpolicy", `{}`)
	walk("SetUserLockoutState", "POST", "/lockout?lock=True", "")
	walk("SetUserLockoutStateEx", "POST", "/lockoutex", `{"LockUser":false}`)
	walk("SetUserProperty", "POST", "", `{"PropertyType":1,"Value":"True"}`)
	// Unlocking opens a method that wrong codes closed.
	strict := confirm.Limit{Wrong: 1, Window: time.Hour, Closed: time.Hour}
	for range 2 {
		if _, err := records.CountWrong(t.Context(), id, "oath", time.Now(), strict); err != nil {
			t.Fatal(err)
		}
	}
	closed := func() bool {
		until, err := records.ClosedUntil(t.Context(), id, "oath")
		if err != nil {
			t.Fatal(err)
		}
		return until.After(time.Now())
	}
	if !closed() {
		t.Error("wrong codes do not close the method")
	}
	step("unlock", id, true, func() { w.OK(tamgatest.Ours, "POST", "/ums/user/"+id+"/lockout?lock=False", "") })
	if closed() {
		t.Error("the method is closed after the user was unlocked")
	}
	walk("SetUserApprovedStateAsync", "POST", "/approve?approved=false", "")
	w.OK(tamgatest.Ours, "POST", "/ums/user/"+id+"/approve?approved=true", "")
	walk("SetUserGroup", "POST", "/group?groupName=Default", "")

	importCSV(w, map[string][]byte{"CSV-1": plant(w, "csv")})
	token := newHardware(t, plant(w, "csv"), 0)
	walk("SetUserOtpToken", "POST", "/oath", `{"Serial":"CSV-1","FirstOtp":"`+token.press()+`"}`)
	walk("CreateUserOathAppData", "POST", "/oath/app", `{}`)
	walk("RemoveUserOtpToken", "DELETE", "/oath", "")

	device := func(file string, args ...string) {
		t.Helper()
		if out, err := tamgatest.Phone(t, file, args...); err != nil {
			t.Fatalf("%s: %s, %v", args[0], out, err)
		}
	}
	register := func() (file, kid string) {
		t.Helper()
		picture, _, kid := w.KInit(id, fmt.Sprintf(`{"msisdn":%q,"SystemId":%q}`, phone, w.Dev.MobileSystem))
		file = filepath.Join(t.TempDir(), "phone.json")
		step("a device registers", id, false, func() { device(file, "register", "--qr", picture, "--code", w.ActivationCode(phone)) })
		return file, kid
	}
	file, kid := register()
	verification, _ := w.Verification(id, kid)
	step("a device is verified", id, true, func() { device(file, "verify", "--qr", verification) })
	step("a device polls", id, false, func() { device(file, "poll") })
	walk("LockoutMyDssDevice", "POST", "/mydss/lockout", `{"Kid":"`+kid+`","Lock":true}`)
	w.OK(tamgatest.Ours, "POST", "/ums/user/"+id+"/mydss/lockout", `{"Kid":"`+kid+`","Lock":false}`)
	step("a device leaves", id, true, func() { device(file, "leave") })
	anonymous := filepath.Join(t.TempDir(), "anonymous.json")
	device(anonymous, "register", "--service", w.Dev.DevicesURL)
	shown, err := tamgatest.Phone(t, anonymous, "show", "--json")
	if err != nil {
		t.Fatal(err)
	}
	var facts struct {
		Kid string `json:"kid"`
	}
	if err := json.Unmarshal([]byte(shown), &facts); err != nil {
		t.Fatal(err)
	}
	walk("AssignMyDssKey", "POST", "/mydss/assign", `{"Kid":"`+facts.Kid+`"}`)
	walk("DeleteMyDssKey", "POST", "/mydss/delete", `{"Kid":"`+facts.Kid+`"}`)
	walk("DeleteAllMyDssKeys", "DELETE", "/mydss", "")

	step("tamga user password", id, true, func() { w.Command("user", "password", login, "--password-file", tamgatest.PasswordFile(t)) })
	step("tamga user lock", id, true, func() { w.Command("user", "lock", login) })
	step("tamga user unlock", id, true, func() { w.Command("user", "unlock", login) })
	step("tamga user deny", id, true, func() { w.Command("user", "deny", login, "SignDocument") })

	issuer := `{"Login":"ivan@corp","IssuerName":"https://adfs.example.ru"}`
	w.OK(tamgatest.Ours, "POST", "/ums/user/"+id+"/login", issuer)
	walk("SetUserLogin", "POST", "/login", strings.Replace(issuer, "ivan", "petr", 1))
	walk("DeleteUserLogin", "DELETE", "/login?issuerName=https%3A%2F%2Fadfs.example.ru", "")
	walk("DeleteUserLocalLogin", "DELETE", "/login/local", "")
	walk("DeleteUser", "DELETE", "", "")

	routes := slices.Concat(umsapi.New(nil, nil, nil, nil, umsapi.Rules{Local: "realsts"}).Routes(), umsapi.DeviceRoutes(nil), umsapi.PolicyRoutes(nil, "ru"))
	if !slices.ContainsFunc(routes, func(r rest.Route) bool { return r.Name == "ResetPassword" }) {
		t.Error("the routes lack ResetPassword")
	}
	for _, r := range routes {
		if r.Method != http.MethodGet && !slices.Contains(keep, r.Name) && !done[r.Name] {
			t.Errorf("%s %s (%s) was not seen to cancel confirmations: carry it out here, or name it among those that keep them", r.Method, r.Path, r.Name)
		}
	}
}

// sqliteOf returns the file of the database of serve --dev.
func sqliteOf(t *testing.T, dir string) string {
	t.Helper()
	list, err := filepath.Glob(filepath.Join(dir, "*.db"))
	if err != nil || len(list) != 1 {
		t.Fatalf("the databases in %s: %v, %v", dir, list, err)
	}
	return list[0]
}
