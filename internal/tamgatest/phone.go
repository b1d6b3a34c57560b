// SPDX-License-Identifier: Apache-2.0

package tamgatest

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	devmsg "tamga/internal/domain/device/message"
)

// Phone runs a command of a device and returns what it printed and said.
func Phone(t testing.TB, file string, args ...string) (string, error) {
	t.Helper()
	r := Run(t.Context(), "", append(append([]string{"phone"}, args...), "--file", file)...)
	return r.Out + r.Err, r.Failure
}

var eightDigits = regexp.MustCompile(`\b[0-9]{8}\b`)

// ActivationCode is the newest activation code sent to an address.
func (w *UMS) ActivationCode(to string) string {
	w.T.Helper()
	list := w.Captured()
	for i := len(list) - 1; i >= 0; i-- {
		if code := eightDigits.FindString(list[i].Text); list[i].To == to && code != "" {
			return code
		}
	}
	w.T.Fatalf("no activation code for %s among %d messages", to, len(list))
	return ""
}

// KInit begins an initialization and keeps its picture in a file.
func (w *UMS) KInit(id, body string) (file, text, kid string) {
	w.T.Helper()
	var made struct {
		KeyInfo    struct{ Kid string }
		QrCode     []byte
		QRCodeData string
	}
	w.OK(Ours, "POST", "/ums/user/"+id+"/mydss/init", body).Into(w.T, &made)
	file = filepath.Join(w.T.TempDir(), "kinit.gif")
	if err := os.WriteFile(file, made.QrCode, 0o600); err != nil {
		w.T.Fatal(err)
	}
	return file, made.QRCodeData, made.KeyInfo.Kid
}

// Verification gets a verification code and keeps its picture in a file.
func (w *UMS) Verification(id, kid string) (file, text string) {
	w.T.Helper()
	var made struct {
		QrCode     []byte
		QrCodeData string
		Data       devmsg.Verification
	}
	w.OK(Ours, "POST", "/ums/user/"+id+"/mydss/verify/get", `{"Kid":"`+kid+`"}`).Into(w.T, &made)
	if parsed, err := devmsg.ParseQR(made.QrCodeData); err != nil || parsed != made.Data {
		w.T.Errorf("the text of the code is %s, its data %v: %v", made.QrCodeData, made.Data, err)
	}
	file = filepath.Join(w.T.TempDir(), "verification.gif")
	if err := os.WriteFile(file, made.QrCode, 0o600); err != nil {
		w.T.Fatal(err)
	}
	return file, made.QrCodeData
}

// Device registers and verifies a device of a user, and returns its file and its identifier. More are further flags of its
// registration.
func (w *UMS) Device(id, name string, more ...string) (file, kid string) {
	w.T.Helper()
	file = filepath.Join(w.T.TempDir(), "phone.json")
	run := func(args ...string) string {
		w.T.Helper()
		out, err := Phone(w.T, file, args...)
		if err != nil {
			w.T.Fatalf("%s: %s, %v", args[0], out, err)
		}
		return out
	}
	run(append([]string{"register", "--service", w.Dev.DevicesURL, "--name", name}, more...)...)
	var facts struct{ Kid string }
	if err := json.Unmarshal([]byte(run("show", "--json")), &facts); err != nil {
		w.T.Fatal(err)
	}
	w.OK(Ours, "POST", "/ums/user/"+id+"/mydss/assign", `{"Kid":"`+facts.Kid+`"}`)
	_, text := w.Verification(id, facts.Kid)
	run("verify", "--qr-text", text)
	return file, facts.Kid
}
