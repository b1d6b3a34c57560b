// SPDX-License-Identifier: Apache-2.0

package phone_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tamga/internal/cli/phone"
	"tamga/internal/config"
	"tamga/internal/domain/device"
	devmsg "tamga/internal/domain/device/message"
	"tamga/internal/judge"

	"tamga/internal/tamgatest"
)

// TestPhone tests the whole life of a device: an operator over HTTP, and the command phone with images
// of QR codes.
func TestPhone(t *testing.T) {
	zbar := judge.ZBar(t)
	tamgatest.OnBothEngines(t, func(t *testing.T, w *tamgatest.UMS) {
		if w.Dev.MobileSystem != config.DefaultSystemID {
			t.Errorf("dev.json has the mobile system %q", w.Dev.MobileSystem)
		}
		for _, suite := range []string{"gost2012-256", "ecdsa-p256"} {
			w.Walk(t, suite, func(t *testing.T) {
				id, login, phone, _ := w.Register()
				user := "/ums/user/" + id
				w.OK(tamgatest.Ours, "POST", user+"/phones/"+phone+"/confirm", "")
				w.OK(tamgatest.Ours, "POST", user+"/authmethod/mydss?level=0", `{"Kid":"1"}`)
				picture, text, kid := w.KInit(id, fmt.Sprintf(`{"msisdn":%q,"SystemId":%q}`, phone, w.Dev.MobileSystem))
				gif, err := os.ReadFile(picture)
				if err != nil {
					t.Fatal(err)
				}
				if got := zbar.Read(gif, "gif"); got != text {
					t.Errorf("zbarimg reads %s, want %s", got, text)
				}
				file := filepath.Join(t.TempDir(), "phone.json")
				if out, err := tamgatest.Phone(t, file, "register", "--qr", picture, "--code", "00000000", "--suite", suite); err == nil || !strings.Contains(err.Error(), "invalid_confirmation_code") {
					t.Errorf("a wrong code: %s, %v", out, err)
				}
				out, err := tamgatest.Phone(t, file, "register", "--qr", picture, "--code", w.ActivationCode(phone), "--suite", suite, "--name", "Телефон Петрова")
				if err != nil || !strings.Contains(out, "device: "+kid+"\nstate: NotVerified\nuser: "+id+"\n") {
					t.Fatalf("registered: %s, %v", out, err)
				}
				verification, text := w.Verification(id, kid)
				if gif, err = os.ReadFile(verification); err != nil {
					t.Fatal(err)
				}
				if got := zbar.Read(gif, "gif"); got != text {
					t.Errorf("zbarimg reads %s, want %s", got, text)
				}
				if _, err := tamgatest.Phone(t, file, "register", "--qr", verification, "--code", "1"); err == nil {
					t.Error("registered with a verification code")
				}
				if out, err := tamgatest.Phone(t, file, "verify", "--qr", verification); err != nil || !strings.Contains(out, "state: Active\n") {
					t.Fatalf("verified: %s, %v", out, err)
				}
				if out, err := tamgatest.Phone(t, file, "verify", "--qr", verification); err == nil {
					t.Errorf("verified again: %s", out)
				}
				if out, err := tamgatest.Phone(t, file, "push", "--address", "token of "+kid, "--os-type", "2", "--json"); err != nil || !strings.Contains(out, `"push_listed":true`) {
					t.Errorf("push: %s, %v", out, err)
				}
				var pushes []struct{ Kid, DeviceName, State, Contact string }
				w.OK(tamgatest.Ours, "GET", user+"/pushaddress/true", "").Into(t, &pushes)
				if len(pushes) != 1 || pushes[0].Kid != kid || pushes[0].DeviceName != "Телефон Петрова" || pushes[0].State != "Active" ||
					pushes[0].Contact != `{"Address":"token of `+kid+`","OsType":2,"SystemId":"`+config.DefaultSystemID+`"}` {
					t.Errorf("the push addresses are %+v", pushes)
				}
				poll := func() string {
					t.Helper()
					out, err := tamgatest.Phone(t, file, "poll", "--json")
					if err != nil {
						return err.Error()
					}
					var a devmsg.Answer
					if err := json.Unmarshal([]byte(out), &a); err != nil {
						t.Fatal(err)
					}
					return a.State
				}
				if got := poll(); got != device.Active {
					t.Errorf("poll: %s", got)
				}
				if out, err := tamgatest.Phone(t, file, "show"); err != nil || !strings.Contains(out, "key: "+suite) || strings.Contains(out, `"key"`) {
					t.Errorf("show: %s, %v", out, err)
				}
				var info struct {
					Keys []struct{ Kid, State, UserName string }
				}
				w.OK(tamgatest.Ours, "GET", user+"/mydss", "").Into(t, &info)
				if len(info.Keys) != 1 || info.Keys[0].State != "Active" || info.Keys[0].UserName != login {
					t.Errorf("the operator sees %+v", info)
				}
				w.OK(tamgatest.Ours, "POST", user+"/mydss/lockout", `{"Kid":"`+kid+`","Lock":true}`)
				if got := poll(); !strings.Contains(got, "403 access_denied") {
					t.Errorf("a blocked device: %s", got)
				}
				w.OK(tamgatest.Ours, "POST", user+"/mydss/lockout", `{"Kid":"`+kid+`","Lock":false}`)
				w.OK(tamgatest.Ours, "POST", user+"/lockout?lock=True", "")
				if got := poll(); !strings.Contains(got, "403 access_denied") {
					t.Errorf("of a locked user: %s", got)
				}
				w.OK(tamgatest.Ours, "POST", user+"/lockout?lock=False", "")
				if got := poll(); got != device.Active {
					t.Errorf("of an unlocked user: %s", got)
				}
				if out, err := tamgatest.Phone(t, file, "leave", "--json"); err != nil || !strings.Contains(out, `"removed":"`+kid+`"`) {
					t.Errorf("leave: %s, %v", out, err)
				}
				if _, err := os.Stat(file); err == nil {
					t.Error("the file of the device is there still")
				}
				w.OK(tamgatest.Ours, "GET", user+"/mydss", "").Into(t, &info)
				if len(info.Keys) != 0 {
					t.Errorf("after it left the operator sees %+v", info)
				}
			})
		}
		w.Walk(t, "anonymous", func(t *testing.T) {
			id, _, _, _ := w.Register()
			file := filepath.Join(t.TempDir(), "phone.json")
			out, err := tamgatest.Phone(t, file, "register", "--service", w.Dev.DevicesURL)
			if err != nil || !strings.Contains(out, "Tell the operator the number") {
				t.Fatalf("registered: %s, %v", out, err)
			}
			var facts phone.Facts
			if out, err = tamgatest.Phone(t, file, "show", "--json"); err == nil {
				err = json.Unmarshal([]byte(out), &facts)
			}
			if err != nil {
				t.Fatal(err)
			}
			w.OK(tamgatest.Ours, "POST", "/ums/user/"+id+"/mydss/assign", `{"Kid":"`+facts.Kid+`"}`)
			verification, _ := w.Verification(id, facts.Kid)
			if out, err := tamgatest.Phone(t, file, "verify", "--qr", verification); err != nil || !strings.Contains(out, "state: Active") || !strings.Contains(out, "user: "+id) {
				t.Errorf("verified: %s, %v", out, err)
			}
			w.OK(tamgatest.Ours, "DELETE", "/ums/user/"+id, "")
			if out, err := tamgatest.Phone(t, file, "poll"); err == nil || !strings.Contains(err.Error(), "401") {
				t.Errorf("of a deleted user: %s, %v", out, err)
			}
			if _, err := tamgatest.Phone(t, file, "leave"); err == nil {
				t.Error("a device that the service does not know was removed")
			}
			if _, err := tamgatest.Phone(t, file, "leave", "--forget"); err != nil {
				t.Error(err)
			}
		})
		w.Walk(t, "QR code by e-mail", func(t *testing.T) {
			id, _, _, email := w.Register()
			user := "/ums/user/" + id
			w.OK(tamgatest.Ours, "POST", user+"/emails/"+email+"/confirm", "")
			_, _, kid := w.KInit(id, `{"Email":"`+email+`"}`)
			for _, path := range []string{"/mydss/init/sendqr", "/mydss/sendqr"} {
				w.OK(tamgatest.Ours, "POST", user+path, `{"Email":"`+email+`"}`)
			}
			n := 0
			for _, m := range w.Captured() {
				if m.To == email && strings.Contains(m.Subject, "QR") {
					n++
				}
			}
			if n != 2 {
				t.Errorf("%d messages with the QR code were sent, want 2", n)
			}
			w.OK(tamgatest.Ours, "POST", user+"/mydss/init/delete", "")
			if a := w.Ask(tamgatest.Ours, "POST", user+"/mydss/init/get", ""); a.Status != 400 || !strings.Contains(a.Body, "key_not_found") {
				t.Errorf("after it was deleted: %v (%s)", a, kid)
			}
		})
		// Who may not: the reach of every one of these operations.
		w.Walk(t, "rights", func(t *testing.T) {
			id, _, _, _ := w.Register()
			for _, path := range []string{
				"POST /mydss/assign", "POST /mydss/init", "POST /mydss/init/get", "POST /mydss/init/sendqr", "POST /mydss/sendqr", "POST /mydss/init/resendotp",
				"POST /mydss/init/delete", "POST /mydss/verify/get", "GET /mydss", "POST /mydss", "POST /mydss/lockout", "POST /mydss/delete", "DELETE /mydss",
				"GET /pushaddress/true", "GET /pushaddress", "POST /pushaddress/restore", "PATCH /pushaddress/restore",
				"POST /pushaddress/notification/true", "PATCH /pushaddress/notification/true", "DELETE /pushaddress/",
			} {
				method, path, _ := strings.Cut(path, " ")
				for who, want := range map[string]int{tamgatest.Anonymous: 401, tamgatest.Plain: 403, tamgatest.Foreign: 404} {
					if a := w.Ask(who, method, "/ums/user/"+id+path, ""); a.Status != want {
						t.Errorf("%q: %v, want %d", who, a, want)
					}
				}
				if a := w.Ask(tamgatest.Ours, method, "/ums/user/"+tamgatest.Missing+path, ""); a.Status != 404 {
					t.Errorf("a device without a user: %v", a)
				}
			}
		})
	})
}

// TestPhoneFile checks the errors that the command phone finds itself.
func TestPhoneFile(t *testing.T) {
	judge.ZBar(t)
	dir := t.TempDir()
	write := func(name, text string, mode os.FileMode) string {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		return file
	}
	none := filepath.Join(dir, "none.json")
	secret := base64.RawURLEncoding.EncodeToString(make([]byte, 32))
	kinit := `{"type":"Kinit","version":1,"data":{"kid":"1","uid":"u","service_url":"http://example.com/x","key_content":"` + secret + `","activation_required":false,"weakness":false}}`
	for _, c := range []struct {
		file string
		args []string
		want string
	}{
		{none, []string{"poll"}, "there is no device"},
		{none, []string{"register"}, "--qr FILE"},
		{none, []string{"register", "--qr", write("no.gif", "no picture", 0o600)}, "no QR code"},
		{none, []string{"register", "--qr-text", "{}"}, "version"},
		{none, []string{"register", "--qr-text", kinit}, "http"},
		{none, []string{"verify"}, "no QR code: give"},
		{none, []string{"verify", "--qr-text", kinit}, "registers a new device"},
		{write("open.json", "{}", 0o644), []string{"poll"}, "chmod 600"},
		{write("torn.json", "{", 0o600), []string{"poll"}, "not the file of a device"},
		{write("empty.json", "{}", 0o600), []string{"poll"}, "key"},
	} {
		if out, err := tamgatest.Phone(t, c.file, c.args...); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: %s, %v; want %q", c.args, out, err, c.want)
		}
		os.Remove(none)
	}
}

// TestPhoneClock checks that a device with a wrong clock uses the time of the service.
func TestPhoneClock(t *testing.T) {
	times, numbers := []int64{}, []int64{}
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
		times, numbers = append(times, m.Time), append(numbers, m.Number)
		there := time.Now().Add(time.Hour)
		w.Header().Set("Date", there.UTC().Format(http.TimeFormat))
		if off := there.Unix() - m.Time; off > 60 || off < -60 {
			w.WriteHeader(http.StatusBadRequest)
			fmt.Fprint(w, `{"error":"wrong_time","error_description":"the clock is wrong"}`)
			return
		}
		fmt.Fprint(w, `{"kid":"1","state":"NotVerified","operations":[]}`)
	}))
	t.Cleanup(server.Close)
	file := filepath.Join(t.TempDir(), "phone.json")
	for _, args := range [][]string{{"register", "--service", server.URL}, {"poll"}} {
		if out, err := tamgatest.Phone(t, file, args...); err != nil {
			t.Fatalf("%v: %s, %v", args, out, err)
		}
	}
	if len(times) != 3 {
		t.Errorf("%d messages were sent, want one that was refused, the same again and a poll", len(times))
	}
	for i := range numbers {
		if numbers[i] != int64(i+1) {
			t.Errorf("the numbers are %v", numbers)
		}
	}
}
