// SPDX-License-Identifier: Apache-2.0

package umsapi_test

import (
	"encoding/base32"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"tamga/internal/adapter/store/storetest"
	"tamga/internal/domain/oath/otp"
	"tamga/internal/judge"

	"tamga/internal/tamgatest"
	"tamga/internal/testsize"
)

// hardware is a token of a user: it makes its codes in turn.
type hardware struct {
	key  *otp.Key
	step int64
}

func newHardware(t testing.TB, secret []byte, step int64) *hardware {
	t.Helper()
	k, err := otp.New(otp.SHA1, 6, secret)
	if err != nil {
		t.Fatal(err)
	}
	return &hardware{k, step}
}

// press shows the next code.
func (h *hardware) press() string {
	h.step++
	return h.key.Code(h.step - 1)
}

// plant makes a secret that the world must not tell, in each of the forms there are.
func plant(w *tamgatest.UMS, seed string) []byte {
	secret := []byte((seed + " abcdefghijklmnopqrstuvwxyz")[:20])
	w.AddSecrets(string(secret), hex.EncodeToString(secret), base32.StdEncoding.EncodeToString(secret), base64.StdEncoding.EncodeToString(secret))
	return secret
}

// file writes a file for a command, for its owner alone.
func file(w *tamgatest.UMS, name, text string) string {
	w.T.Helper()
	file := filepath.Join(w.T.TempDir(), name)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		w.T.Fatal(err)
	}
	return file
}

// importCSV puts HOTP tokens into the stock.
func importCSV(w *tamgatest.UMS, tokens map[string][]byte) {
	w.T.Helper()
	text := "serial,type,secret_hex\n"
	for serial, secret := range tokens {
		text += serial + ",HOTP," + hex.EncodeToString(secret) + "\n"
	}
	w.Command("token", "import", file(w, "tokens.csv", text))
}

// walkOath goes through the operations on tokens, with a stock from both kinds of files,
// a picture that another program reads and an app that another program is.
func walkOath(w *tamgatest.UMS, t *testing.T) {
	id, login, _, _ := w.Register()
	oath := "/ums/user/" + id + "/oath"
	refused := func(a tamgatest.Answer, code string) {
		t.Helper()
		if a.Status != 400 || !strings.Contains(a.Body, `"error":"`+code+`"`) {
			t.Errorf("%v, want %s", a, code)
		}
	}
	body := func(words ...string) string {
		text, err := json.Marshal(map[string]string{"Serial": words[0], "FirstOtp": words[1], "SecondOtp": words[2]})
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	refused(w.Ask(tamgatest.Ours, "GET", oath, ""), "key_not_found")
	refused(w.Ask(tamgatest.Ours, "DELETE", oath, ""), "key_not_found")

	csvSecret, pskcSecret := plant(w, "csv"), plant(w, "pskc")
	importCSV(w, map[string][]byte{"CSV-1": csvSecret, "10020": plant(w, "number")})
	container := file(w, "tokens.xml", tamgatest.EncryptedContainer("PSKC-1", pskcSecret, "a password of it"))
	fails := []string{"token", "import", container}
	if err := w.TryCommand(fails...).Failure; err == nil || !strings.Contains(err.Error(), "password: give it") {
		t.Errorf("an encrypted container without its password: %v", err)
	}
	if r := w.TryCommand(append(fails, "--password-file", file(w, "wrong", "another password"))...); r.Failure == nil {
		t.Error("an encrypted container with another password was imported")
	}
	password := file(w, "right", "a password of it\n")
	w.AddSecrets("a password of it")
	if said := w.Command("token", "import", container, "--password-file", password); !strings.HasPrefix(said, "Imported 1 tokens") {
		t.Errorf("import: %s", said)
	}
	if said := w.Command("token", "import", container, "--password-file", password, "--json"); !strings.Contains(said, `"imported": 0`) || !strings.Contains(said, "PSKC-1") {
		t.Errorf("import again: %s", said)
	}
	if said := w.Command("token", "list", "--free"); !strings.Contains(said, "CSV-1") || !strings.Contains(said, "PSKC-1") || !strings.Contains(said, "in stock") {
		t.Errorf("list: %s", said)
	}

	csv, pskc := newHardware(t, csvSecret, 0), newHardware(t, pskcSecret, 40)
	refused(w.Ask(tamgatest.Ours, "POST", oath, ""), "invalid_parameters")
	refused(w.Ask(tamgatest.Ours, "POST", oath, `{"Serial":"CSV-1"}`), "invalid_parameters")
	refused(w.Ask(tamgatest.Ours, "POST", oath, `{"Serial":"CSV-1","FirstOtp":123456}`), "invalid_parameters")
	refused(w.Ask(tamgatest.Ours, "POST", oath, body("CSV-9", "123456", "")), "key_not_found")
	refused(w.Ask(tamgatest.Ours, "POST", oath, body("CSV-1", pskc.key.Code(99), "")), "invalid_confirmation_code")
	w.OK(tamgatest.Ours, "POST", oath, `{"serial":"csv-1","FIRSTOTP":"`+csv.press()+`"}`)
	if a := w.OK(tamgatest.Ours, "GET", oath+"/", ""); a.Body != `{"Serial":"CSV-1","Type":"HOTP"}` {
		t.Errorf("info: %v", a)
	}
	refused(w.Ask(tamgatest.Ours, "POST", oath, body("CSV-1", csv.key.Code(0), "")), "invalid_confirmation_code")
	csv.step += 700 // pressed at play
	refused(w.Ask(tamgatest.Ours, "POST", oath+"/sync", body("CSV-1", csv.press(), "")), "invalid_parameters")
	w.OK(tamgatest.Ours, "POST", oath+"/sync/", body("CSV-1", csv.press(), csv.press()))
	w.OK(tamgatest.Ours, "POST", oath, body("CSV-1", csv.press(), ""))
	w.OK(tamgatest.Ours, "POST", oath, body("PSKC-1", pskc.press(), pskc.press()))
	refused(w.Ask(tamgatest.Ours, "POST", oath+"/sync", body("CSV-1", csv.press(), csv.press())), "key_not_found")
	w.OK(tamgatest.Ours, "POST", oath, `{"Serial":10020,"FirstOtp":"`+newHardware(t, plant(w, "number"), 0).press()+`"}`)
	if said := w.Command("token", "list", "--user", login, "--json"); !strings.Contains(said, `"serial": "10020"`) || strings.Contains(said, "CSV-1") {
		t.Errorf("list: %s", said)
	}

	var app struct {
		QrCode                                 []byte
		QrCodeData, SecretBase32, Serial, Type string
	}
	w.OK(tamgatest.Ours, "POST", oath+"/app", "{}").Into(t, &app)
	if app.Type != "TOtp" || app.Serial == "" || !strings.HasPrefix(string(app.QrCode), "GIF8") {
		t.Errorf("app data: %q %q %.6q", app.Type, app.Serial, app.QrCode)
	}
	if read := judge.ZBar(t).Read(app.QrCode, "gif"); read != app.QrCodeData {
		t.Errorf("zbarimg reads %q, the answer says %q", read, app.QrCodeData)
	}
	u, err := url.Parse(app.QrCodeData)
	if err != nil || u.Scheme != "otpauth" || u.Host != "totp" || !strings.HasSuffix(u.Path, ":"+login) || u.Query().Get("secret") != app.SecretBase32 {
		t.Errorf("otpauth URI %s: %v", app.QrCodeData, err)
	}
	secret, err := base32.StdEncoding.WithPadding(base32.NoPadding).DecodeString(app.SecretBase32)
	if err != nil {
		t.Fatal(err)
	}
	// The app is oathtool; the step before is good as well, should the time run on now.
	codes := judge.OATHToolkit(t).TOTP("SHA1", secret, 6, 30*time.Second, time.Now().Add(30*time.Second), 2)
	w.OK(tamgatest.Ours, "POST", oath, body(app.Serial, codes[0], ""))
	if a := w.OK(tamgatest.Ours, "GET", oath, ""); a.Body != `{"Serial":"`+app.Serial+`","Type":"TOtp"}` {
		t.Errorf("info: %v", a)
	}
	if strings.Contains(w.Logged(), app.SecretBase32) {
		t.Error("the secret of the app is in the log")
	}
	w.OK(tamgatest.Ours, "DELETE", oath+"/", "")
	refused(w.Ask(tamgatest.Ours, "GET", oath, ""), "key_not_found")

	// Guesses lock the token, not the user, and only for those who guess.
	w.OK(tamgatest.Ours, "POST", oath, body("CSV-1", csv.press(), ""))
	for range 5 {
		refused(w.Ask(tamgatest.Ours, "POST", oath, body("CSV-1", csv.key.Code(5000), "")), "invalid_confirmation_code")
	}
	refused(w.Ask(tamgatest.Ours, "POST", oath, body("CSV-1", csv.press(), "")), "max_attempts_exceeded")
	refused(w.Ask(tamgatest.Ours, "POST", oath+"/sync", body("CSV-1", csv.press(), csv.press())), "max_attempts_exceeded")
	if said := w.Command("token", "list", "--user", login); !strings.Contains(said, "locked until") {
		t.Errorf("list: %s", said)
	}
	w.Command("token", "unlock", "CSV-1")
	w.OK(tamgatest.Ours, "POST", oath, body("CSV-1", csv.press(), ""))
	for range 5 {
		refused(w.Ask(tamgatest.Ours, "POST", oath, body("CSV-1", csv.key.Code(5000), "")), "invalid_confirmation_code")
	}
	w.OK(tamgatest.Ours, "POST", "/ums/user/"+id+"/lockout?lock=False", "{}")
	w.OK(tamgatest.Ours, "POST", oath, body("CSV-1", csv.press(), ""))
	w.OK(tamgatest.Ours, "DELETE", oath, "")
	w.Command("token", "discard", "CSV-1")
	refused(w.Ask(tamgatest.Ours, "POST", oath, body("CSV-1", csv.press(), "")), "key_not_found")

	// None of the secrets is in a file of the installation, however it came there.
	plantedNowhere(w, t, csvSecret, pskcSecret, secret)
}

// plantedNowhere looks for secrets in every file of the installation (class 27).
func plantedNowhere(w *tamgatest.UMS, t *testing.T, secrets ...[]byte) {
	t.Helper()
	files := 0
	err := filepath.WalkDir(w.Dir, func(name string, d os.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		data, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		files++
		for _, s := range secrets {
			for _, form := range []string{string(s), hex.EncodeToString(s), strings.TrimRight(base32.StdEncoding.EncodeToString(s), "="), base64.StdEncoding.EncodeToString(s)} {
				if strings.Contains(string(data), form) {
					t.Errorf("a secret of a token is in %s", d.Name())
				}
			}
		}
		return nil
	})
	if err != nil || files == 0 {
		t.Errorf("%d files were looked through, %v", files, err)
	}
}

// Class 1: a thousand submissions of one code at once, to three processes over one
// database, are accepted once.
func TestTokenCodeIsAcceptedOnce(t *testing.T) {
	t.Parallel()
	for name, database := range map[string]func(t *testing.T) string{
		"SQLite":     func(t *testing.T) string { return "sqlite:tamga.db" },
		"PostgreSQL": func(t *testing.T) string { return storetest.PostgreSQL(t).Database(t) },
	} {
		t.Run(name, func(t *testing.T) { tokenCodeIsAcceptedOnce(t, database(t)) })
	}
}

func tokenCodeIsAcceptedOnce(t *testing.T, database string) {
	dir := t.TempDir()
	write := func(name, text string) string {
		t.Helper()
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	write("master.key", strings.Repeat("0123456789abcdef", 4)+"\n")
	password := write("password", "correct horse battery staple\n")
	config := write("tamga.yaml", fmt.Sprintf(`
listen: 127.0.0.1:0
public_url: http://sign.example.org
database: %q
master_keys: {active: a, files: {a: master.key}}
clients:
  - {id: operators, password_grant: true}
oath: {attempts: 1000, max_attempts: 1000}
log: {format: text, level: error}
`, database))
	secret := []byte("12345678901234567890")
	p := &tamgatest.Server{T: t}
	command := func(args ...string) string { return p.MustRun(append(args, "--config", config)...) }
	command("migrate")
	command("group", "add", "Default")
	command("operator", "add", "op", "--group", "Default", "--password-file", password)
	command("user", "add", "petrov", "--group", "Default", "--password-file", password)
	var made []struct{ ID, Login string }
	if err := json.Unmarshal([]byte(command("user", "list", "--json")), &made); err != nil {
		t.Fatal(err)
	}
	user := ""
	for _, u := range made {
		if u.Login == "petrov" {
			user = u.ID
		}
	}
	command("token", "import", write("tokens.csv", "serial,type,secret_hex\nH1,HOTP,"+hex.EncodeToString(secret)+"\n"))

	var servers []*tamgatest.Server
	for range 3 {
		servers = append(servers, tamgatest.StartArgs(t, "serve", "--config", config, "--set", "log.level=info"))
	}
	form := url.Values{"grant_type": {"password"}, "client_id": {"operators"}, "username": {"op"}, "password": {"correct horse battery staple"},
		"resource": {"urn:cryptopro:dss:signserver:signserver"}}
	response, err := http.PostForm(servers[0].URL+"/STS/oauth/token", form)
	if err != nil {
		t.Fatal(err)
	}
	status, text := tamgatest.ReadAll(t, response)
	var token struct {
		AccessToken string `json:"access_token"`
	}
	if err := json.Unmarshal(text, &token); err != nil || status != 200 {
		t.Fatalf("no token: %d %s", status, text)
	}
	client := &http.Client{Transport: &http.Transport{MaxConnsPerHost: 40, MaxIdleConnsPerHost: 40}}
	defer client.CloseIdleConnections()
	h := newHardware(t, secret, 0)
	senders := 1000
	if testsize.Of() < testsize.Whole {
		senders = 300
	}
	for round := range 2 {
		body := fmt.Sprintf(`{"Serial":"H1","FirstOtp":%q}`, h.press())
		var mu sync.Mutex
		answers := map[string]int{}
		var all sync.WaitGroup
		gate := make(chan struct{})
		for i := range senders {
			all.Go(func() {
				request, err := http.NewRequest("POST", servers[i%3].URL+"/STS/ums/user/"+user+"/oath", strings.NewReader(body))
				if err != nil {
					t.Error(err)
					return
				}
				request.Header.Set("Authorization", "Bearer "+token.AccessToken)
				<-gate
				response, err := client.Do(request)
				if err != nil {
					t.Error(err)
					return
				}
				defer response.Body.Close()
				text, _ := io.ReadAll(response.Body)
				var failure struct {
					Error string `json:"error"`
				}
				json.Unmarshal(text, &failure)
				mu.Lock()
				defer mu.Unlock()
				answers[fmt.Sprint(response.StatusCode, " ", failure.Error)]++
			})
		}
		begun := time.Now()
		close(gate)
		all.Wait()
		t.Logf("round %d: %v in %v", round, answers, time.Since(begun))
		if answers["200 "] != 1 {
			t.Errorf("round %d: answers %v, want one success", round, answers)
		}
		for a := range answers {
			if a != "200 " && a != "400 invalid_confirmation_code" && a != "400 max_attempts_exceeded" {
				t.Errorf("round %d: an answer is %s", round, a)
			}
		}
		command("token", "unlock", "H1")
	}
}
