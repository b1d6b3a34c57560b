// SPDX-License-Identifier: Apache-2.0

package tamgatest

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"tamga/internal/adapter/store/storetest"
)

// The callers of the tests of user management.
const (
	Anonymous = ""         // no token
	Ours      = "ours"     // an operator of the group Default
	Foreign   = "foreign"  // an operator of the group Other
	TwoGroup  = "twogroup" // an operator of both
	Plain     = "plain"    // a user who is no operator
)

// Missing is the identifier of no user.
const Missing = "00000000-0000-4000-8000-000000000000"

// UMS is a server with operators of two groups, and its callers. It keeps all answers, for Scan.
type UMS struct {
	*Server
	Tokens map[string]string // by caller: see the constants

	mu      sync.Mutex
	asked   []Answer
	secrets []string // that no answer may have
	serial  int      // of the last user that Register made
}

// Answer is what came of one call.
type Answer struct {
	Method, Path string
	Status       int
	Header       http.Header
	Body         string
}

func (a Answer) String() string {
	return fmt.Sprintf("%s %s: %d %s", a.Method, a.Path, a.Status, a.Body)
}

// WithPasskeys are the flags of a server that has passkeys.
func WithPasskeys() []string {
	return []string{"--listen", "localhost:0", "--set", "listen=localhost:0", "--set", "confirmation.methods=[mydss, mobile, otpviasms, otpviaemail, oath, passkey]"}
}

// OnBothEngines runs a test over SQLite and over PostgreSQL, at the same time. More are further
// flags of the servers.
func OnBothEngines(t *testing.T, test func(t *testing.T, w *UMS), more ...string) {
	t.Run("SQLite", func(t *testing.T) {
		t.Parallel()
		test(t, StartUMS(t, more...))
	})
	t.Run("PostgreSQL", func(t *testing.T) {
		t.Parallel()
		test(t, StartUMS(t, append(slices.Clone(more), "--set", "database="+storetest.PostgreSQL(t).Migrated(t))...))
	})
}

// StartUMS starts a server in this process, with operators of two groups.
func StartUMS(t testing.TB, more ...string) *UMS {
	t.Helper()
	if !fitsCopy(more) {
		return NewUMS(Start(t, more...))
	}
	dir := t.TempDir()
	withOperators.copyTo(t, dir)
	return callers(StartIn(t, dir, more...))
}

// StartUMSProcess is StartUMS over a directory and in a process of its own.
func StartUMSProcess(t testing.TB, dir string, more ...string) *UMS {
	t.Helper()
	return NewUMS(StartProcess(t, dir, more...))
}

// NewUMS adds the operators to a server of serve --dev and signs them in.
func NewUMS(s *Server) *UMS {
	s.T.Helper()
	addOperators(s.T, func(args ...string) { s.Command(args...) })
	return callers(s)
}

// addOperators runs the commands that add the operators of a UMS.
func addOperators(t testing.TB, command func(args ...string)) {
	t.Helper()
	file := PasswordFile(t)
	command("group", "add", "Other")
	command("operator", "add", Foreign, "--group", "Other", "--password-file", file)
	command("operator", "add", TwoGroup, "--group", "Default", "--group", "Other", "--password-file", file)
	command("user", "add", Plain, "--group", "Default", "--password-file", file)
}

// callers signs the operators of a server in.
func callers(s *Server) *UMS {
	s.T.Helper()
	w := &UMS{Server: s, Tokens: map[string]string{}}
	w.Tokens[Ours] = w.TokenOf(w.Dev.Operator.Login, w.Dev.Operator.Password)
	for _, login := range []string{Foreign, TwoGroup, Plain} {
		w.Tokens[login] = w.TokenOf(login, Password)
	}
	w.AddSecrets(Password, w.Dev.Operator.Password, w.Dev.User.Password)
	for _, c := range w.Dev.Certificates {
		if c.PIN != "" {
			w.AddSecrets(c.PIN)
		}
	}
	return w
}

// AddSecrets names what no answer and no line of the log may have. See Scan.
func (w *UMS) AddSecrets(secrets ...string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.secrets = append(w.secrets, secrets...)
}

// Walk runs a part of a test, whose failures are its own.
func (w *UMS) Walk(t *testing.T, name string, part func(*testing.T)) {
	t.Run(name, func(inner *testing.T) {
		w.T = inner
		defer func() { w.T = t }()
		part(inner)
	})
}

// Ask calls an operation below {idp_url} with a body as it is, "" for none.
func (w *UMS) Ask(who, method, path, body string, headers ...string) Answer {
	w.T.Helper()
	var in io.Reader
	if body != "" {
		in = strings.NewReader(body)
	}
	request, err := http.NewRequest(method, w.Dev.IDPURL+path, in)
	if err != nil {
		w.T.Fatalf("%s %s: %v", method, path, err)
	}
	if token := w.Tokens[who]; token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	for i := 0; i+1 < len(headers); i += 2 {
		if headers[i] == "Host" {
			request.Host = headers[i+1]
		}
		request.Header.Set(headers[i], headers[i+1])
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		w.T.Fatalf("%s %s: %v", method, path, err)
	}
	status, text := ReadAll(w.T, response)
	a := Answer{method, path, status, response.Header, string(text)}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.asked = append(w.asked, a)
	return a
}

// OK calls an operation that must succeed.
func (w *UMS) OK(who, method, path, body string) Answer {
	w.T.Helper()
	a := w.Ask(who, method, path, body)
	if a.Status != 200 {
		w.T.Fatalf("%v", a)
	}
	return a
}

// Asked returns all answers so far.
func (w *UMS) Asked() []Answer { return w.asked }

// Forget drops the answers so far: Scan does not check them.
func (w *UMS) Forget() { w.asked = nil }

// Into reads the answer as JSON.
func (a Answer) Into(t testing.TB, v any) {
	t.Helper()
	if err := json.Unmarshal([]byte(a.Body), v); err != nil {
		t.Fatalf("%v: %v", a, err)
	}
}

// Register makes a user of the group Default with a login, a phone and an e-mail.
func (w *UMS) Register() (id, login, phone, email string) {
	w.T.Helper()
	w.serial++
	login, phone, email = fmt.Sprintf("user%d", w.serial), fmt.Sprintf("7925%07d", w.serial), fmt.Sprintf("user%d@example.ru", w.serial)
	w.OK(Ours, "POST", "/ums/user", fmt.Sprintf(`{"Login":%q,"PhoneNumber":%q,"Email":%q}`, login, phone, email)).Into(w.T, &id)
	return id, login, phone, email
}

// SixDigits finds a code in the text of a message.
var SixDigits = regexp.MustCompile(`\b[0-9]{6}\b`)

// Code is the newest code sent to an address. It becomes a secret.
func (w *UMS) Code(to string) string {
	w.T.Helper()
	list := w.Captured()
	for i := len(list) - 1; i >= 0; i-- {
		if code := SixDigits.FindString(list[i].Text); list[i].To == to && code != "" {
			w.AddSecrets(code)
			return code
		}
	}
	w.T.Fatalf("no code for %s among %d messages", to, len(list))
	return ""
}

// Scan checks that no answer and no line of the log has a secret, that no answer was an
// internal error, and that the log has no errors.
func (w *UMS) Scan() {
	w.T.Helper()
	for _, a := range w.asked {
		if strings.Contains(a.Body, "$argon2") || strings.Contains(a.Body, "sealed") {
			w.T.Errorf("a stored secret is in the answer of %v", a)
		}
		for _, s := range w.secrets {
			if tells(a.Body, s) {
				w.T.Errorf("a secret is in the answer of %s %s", a.Method, a.Path)
			}
		}
		if a.Status >= 500 {
			w.T.Errorf("%v", a)
		}
	}
	if len(w.asked) == 0 {
		w.T.Error("nothing was asked")
	}
	log := w.Logged()
	for _, s := range w.secrets {
		if tells(log, s) {
			w.T.Error("a secret is in the log")
		}
	}
	if strings.Contains(log, "level=ERROR") || !strings.Contains(log, "msg=request") {
		w.T.Errorf("the log has errors, or is empty:\n%.5000s", log)
	}
}

// tells reports whether a text has a secret as a word of its own: six digits of a
// code may well be six of a longer number.
func tells(text, secret string) bool {
	for rest := text; ; {
		i := strings.Index(rest, secret)
		if i < 0 {
			return false
		}
		end := i + len(secret)
		if !(i > 0 && isWord(rest[i-1])) && !(end < len(rest) && isWord(rest[end])) {
			return true
		}
		rest = rest[i+1:]
	}
}

func isWord(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'z'
}

// Try is Ask for a server that may be gone.
func (w *UMS) Try(who, path, body string) (status int, text []byte, err error) {
	request, err := http.NewRequest("POST", w.Dev.IDPURL+path, strings.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	request.Header.Set("Authorization", "Bearer "+w.Tokens[who])
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, nil, err
	}
	defer response.Body.Close()
	text, err = io.ReadAll(response.Body)
	return response.StatusCode, text, err
}
