package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"tamga/internal/adapter/store/storetest"
	webconsole "tamga/internal/web/console"
)

// The callers of the tests of user management.
const (
	nobody   = ""         // no token
	ours     = "ours"     // an operator of the group Default
	foreign  = "foreign"  // an operator of the group Other
	twoGroup = "twogroup" // an operator of both
	plain    = "plain"    // a user who is no operator
)

// missing is the identifier of nobody.
const missing = "00000000-0000-4000-8000-000000000000"

// umsWorld is a server with operators of two groups.
type umsWorld struct {
	*process
	idp    string
	from   []string // how commands find the installation
	tokens map[string]string

	mu      sync.Mutex
	asked   []umsAnswer
	secrets []string // that no answer may hold
	serial  int
}

// umsAnswer is what came of one call.
type umsAnswer struct {
	method, path string
	status       int
	header       http.Header
	body         string
}

func (a umsAnswer) String() string {
	return fmt.Sprintf("%s %s: %d %s", a.method, a.path, a.status, a.body)
}

// onBothEngines runs a test over SQLite and over PostgreSQL, at the same time.
func onBothEngines(t *testing.T, test func(t *testing.T, w *umsWorld)) {
	t.Run("SQLite", func(t *testing.T) {
		t.Parallel()
		test(t, startUMS(t))
	})
	t.Run("PostgreSQL", func(t *testing.T) {
		t.Parallel()
		test(t, startUMS(t, "--set", "database="+storetest.PostgreSQL(t).Database(t)))
	})
}

func startUMS(t *testing.T, more ...string) *umsWorld {
	t.Helper()
	return startUMSAt(t, t.TempDir(), more...)
}

func startUMSAt(t *testing.T, dir string, more ...string) *umsWorld {
	t.Helper()
	const password = "correct horse battery staple"
	w := &umsWorld{process: startDev(t, dir, more...), tokens: map[string]string{}}
	w.idp, w.from = w.dev.IDPURL, append([]string{"--data", w.dir}, more...)
	file := filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(file, []byte(password), 0o600); err != nil {
		t.Fatal(err)
	}
	add := func(args ...string) {
		w.tamga(append(args, "--password-file", file)...)
	}
	w.tamga("group", "add", "Other")
	add("operator", "add", foreign, "--group", "Other")
	add("operator", "add", twoGroup, "--group", "Default", "--group", "Other")
	add("user", "add", plain, "--group", "Default")
	w.tokens[ours] = w.tokenOf(w.dev.Operator.Login, w.dev.Operator.Password)
	for _, login := range []string{foreign, twoGroup, plain} {
		w.tokens[login] = w.tokenOf(login, password)
	}
	w.secrets = append(w.secrets, password, w.dev.Operator.Password, w.dev.User.Password)
	for _, c := range w.dev.Certificates {
		if c.PIN != "" {
			w.secrets = append(w.secrets, c.PIN)
		}
	}
	return w
}

// tamga runs a command beside the server.
func (w *umsWorld) tamga(args ...string) string {
	w.t.Helper()
	return w.command("", append(args, w.from...)...)
}

// walk runs a part of a test, whose failures are its own.
func (w *umsWorld) walk(t *testing.T, name string, part func(*testing.T)) {
	t.Run(name, func(inner *testing.T) {
		w.t = inner
		defer func() { w.t = t }()
		part(inner)
	})
}

// ask calls an operation below {idp_url} with a body as it is, "" for none.
func (w *umsWorld) ask(who, method, path, body string, headers ...string) umsAnswer {
	w.t.Helper()
	var in io.Reader
	if body != "" {
		in = strings.NewReader(body)
	}
	request, err := http.NewRequest(method, w.idp+path, in)
	if err != nil {
		w.t.Fatalf("%s %s: %v", method, path, err)
	}
	if token := w.tokens[who]; token != "" {
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
		w.t.Fatalf("%s %s: %v", method, path, err)
	}
	status, text := readAll(w.t, response)
	a := umsAnswer{method, path, status, response.Header, string(text)}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.asked = append(w.asked, a)
	return a
}

// ok calls an operation that has to succeed.
func (w *umsWorld) ok(who, method, path, body string) umsAnswer {
	w.t.Helper()
	a := w.ask(who, method, path, body)
	if a.status != 200 {
		w.t.Fatalf("%v", a)
	}
	return a
}

// into reads the answer as JSON.
func (a umsAnswer) into(t testing.TB, v any) {
	t.Helper()
	if err := json.Unmarshal([]byte(a.body), v); err != nil {
		t.Fatalf("%v: %v", a, err)
	}
}

// register makes a user of the group Default with a login, a phone and an e-mail.
func (w *umsWorld) register() (id, login, phone, email string) {
	w.t.Helper()
	w.serial++
	login, phone, email = fmt.Sprintf("user%d", w.serial), fmt.Sprintf("7925%07d", w.serial), fmt.Sprintf("user%d@example.ru", w.serial)
	w.ok(ours, "POST", "/ums/user", fmt.Sprintf(`{"Login":%q,"PhoneNumber":%q,"Email":%q}`, login, phone, email)).into(w.t, &id)
	return id, login, phone, email
}

// captured are the messages the server would have sent.
func (w *umsWorld) captured() (list []webconsole.Message) {
	w.t.Helper()
	request, err := http.NewRequest("GET", w.dev.CapturedURL, nil)
	if err != nil {
		w.t.Fatal(err)
	}
	request.Header.Set("Accept", "application/json")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		w.t.Fatal(err)
	}
	status, body := readAll(w.t, response)
	if err := json.Unmarshal(body, &list); err != nil || status != 200 {
		w.t.Fatalf("captured messages: %d %s, %v", status, body, err)
	}
	return list
}

var sixDigits = regexp.MustCompile(`\b[0-9]{6}\b`)

// code is the newest code sent to an address. It becomes a secret.
func (w *umsWorld) code(to string) string {
	w.t.Helper()
	list := w.captured()
	for i := len(list) - 1; i >= 0; i-- {
		if code := sixDigits.FindString(list[i].Text); list[i].To == to && code != "" {
			w.secrets = append(w.secrets, code)
			return code
		}
	}
	w.t.Fatalf("no code for %s among %d messages", to, len(list))
	return ""
}

// operations are the specification's, as the surface's own test has them.
func operations(t testing.TB) (list []struct{ name, method, path string }) {
	t.Helper()
	f, err := os.Open("../../internal/web/umsapi/testdata/operations.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		words := strings.Fields(strings.TrimPrefix(lines.Text(), "+"))
		if len(words) != 3 || words[0] == "#" {
			continue
		}
		for method := range strings.SplitSeq(words[1], ",") {
			list = append(list, struct{ name, method, path string }{words[0], method, words[2]})
		}
	}
	return list
}

// pattern matches addresses of an operation, whatever stands for its parameters.
func pattern(path string) *regexp.Regexp {
	text := regexp.QuoteMeta(strings.TrimSuffix(path, "/"))
	for _, parameter := range []string{"id", "phone", "email"} {
		text = strings.ReplaceAll(text, `\{`+parameter+`\}`, `[^/?]+`)
	}
	return regexp.MustCompile(`^` + text + `/?(\?.*)?$`)
}

// scan looks through all answers and the log for what neither may hold (classes 6
// and 27).
func (w *umsWorld) scan() {
	w.t.Helper()
	for _, a := range w.asked {
		if strings.Contains(a.body, "$argon2") || strings.Contains(a.body, "sealed") {
			w.t.Errorf("a stored secret is in the answer of %v", a)
		}
		for _, s := range w.secrets {
			if tells(a.body, s) {
				w.t.Errorf("a secret is in the answer of %s %s", a.method, a.path)
			}
		}
		if a.status >= 500 {
			w.t.Errorf("%v", a)
		}
	}
	if len(w.asked) == 0 {
		w.t.Error("nothing was asked")
	}
	log := w.logged()
	for _, s := range w.secrets {
		if tells(log, s) {
			w.t.Error("a secret is in the log")
		}
	}
	if strings.Contains(log, "level=ERROR") || !strings.Contains(log, "msg=request") {
		w.t.Errorf("the log has errors, or is empty:\n%.5000s", log)
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

// try is ask for a server that may be gone.
func (w *umsWorld) try(who, path, body string) (status int, text []byte, err error) {
	request, err := http.NewRequest("POST", w.idp+path, strings.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	request.Header.Set("Authorization", "Bearer "+w.tokens[who])
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, nil, err
	}
	defer response.Body.Close()
	text, err = io.ReadAll(response.Body)
	return response.StatusCode, text, err
}
