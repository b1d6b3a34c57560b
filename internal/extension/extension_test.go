// SPDX-License-Identifier: Apache-2.0

package extension

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"tamga/internal/testsize"
)

// extensions are the rows of the table of section 4 that a patch tries. A patch makes the files
// of one package, or one file of a package, and adds lines to the files that the row names.
var extensions = []struct {
	row, patch string
	elsewhere  int // files that the row cannot name: a setting is used where it is used
}{
	{row: "a signature format", patch: "format"},
	{row: "a level", patch: "level"},
	{row: "a notifier", patch: "notifier"},
	{row: "a channel", patch: "channel"},
	{row: "a key holder", patch: "holder"},
	{row: "a web interface", patch: "interface"},
	{row: "an authentication method", patch: "method"},
	{row: "a kind of operation", patch: "kind"},
	{row: "an endpoint", patch: "endpoint", elsewhere: 1}, // the route table of its surface; it orders the kind
	{row: "a setting", patch: "setting", elsewhere: 1},
	{row: "a sub-command", patch: "command"},
}

func patchOf(name string) string { return "testdata/" + name + ".patch" }

// rowsOf reads the table: what is in the second and third column of a row.
func rowsOf(t *testing.T) map[string]string {
	t.Helper()
	page, err := os.ReadFile(root + "/docs/architecture.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string]string{}
	for line := range strings.Lines(string(page)) {
		if cells := strings.Split(line, "|"); len(cells) == 5 {
			rows[strings.TrimSpace(cells[1])] = cells[2] + cells[3]
		}
	}
	return rows
}

// goFile finds the files that a row names.
var goFile = regexp.MustCompile("`([a-z0-9_/]+\\.go)`")

// TestTable compares each patch with its row of docs/architecture.md: it changes the files that
// the row names, each by one line besides imports and comments.
func TestTable(t *testing.T) {
	rows := rowsOf(t)
	for _, e := range extensions {
		t.Run(e.patch, func(t *testing.T) {
			row, ok := rows[e.row]
			if !ok {
				t.Fatalf("section 4 has no row %q", e.row)
			}
			named := map[string]bool{}
			for _, m := range goFile.FindAllStringSubmatch(row, -1) {
				named[m[1]] = true
			}
			packages, elsewhere := map[string]bool{}, 0
			for file, change := range changesOf(t, patchOf(e.patch)) {
				switch {
				case change.made:
					packages[filepath.Dir(file)] = true
					continue
				case filepath.Ext(file) == ".txt" && strings.Contains(row, "`"+filepath.Base(file)+"`"):
					continue // texts for people have as many lines as they need
				case named[file]:
					delete(named, file)
				default:
					elsewhere++
				}
				if change.added != 1 || change.removed > 1 {
					t.Errorf("%s: %d lines are added and %d removed, want one line", file, change.added, change.removed)
				}
			}
			if len(packages) > 1 {
				t.Errorf("the patch makes files in %d packages, want one", len(packages))
			}
			if elsewhere > e.elsewhere {
				t.Errorf("the patch changes %d files that the row does not name, want %d", elsewhere, e.elsewhere)
			}
			for file := range named {
				t.Errorf("the row names %s, and the patch does not need it", file)
			}
		})
	}
}

// change is what a patch does to a file. Imports, comments and empty lines do not count.
type change struct {
	made           bool
	added, removed int
}

var uncounted = regexp.MustCompile(`^.\s*(//.*|"[^"]*")?\s*$`)

func changesOf(t *testing.T, patch string) map[string]*change {
	t.Helper()
	text, err := os.ReadFile(patch)
	if err != nil {
		t.Fatal(err)
	}
	changes := map[string]*change{}
	var c *change
	made := false
	for line := range strings.Lines(string(text)) {
		switch {
		case strings.HasPrefix(line, "--- "):
			made = strings.HasPrefix(line, "--- /dev/null")
		case strings.HasPrefix(line, "+++ b/"):
			c = &change{made: made}
			changes[strings.TrimSpace(strings.TrimPrefix(line, "+++ b/"))] = c
		case c == nil || uncounted.MatchString(line):
		case line[0] == '+':
			c.added++
		case line[0] == '-' && !strings.HasPrefix(line, "---"):
			c.removed++
		}
	}
	return changes
}

// TestProgram builds one program with all patches, whose functions report that they are called,
// and tries what the page says with it. Two programs would take twice the time to compile.
func TestProgram(t *testing.T) {
	if testsize.Of() == testsize.Quick {
		t.Skip("it compiles the program; TestTable reads the patches in the quick form")
	}
	o := overlay{}
	for _, e := range extensions {
		o.apply(t, patchOf(e.patch))
	}
	o.trace(t)
	program := o.build(t)
	t.Run("walk", func(t *testing.T) { walk(t, program) })
	t.Run("extensions", func(t *testing.T) { tryExtensions(t, program) })
}

// tryExtensions tries each thing that the patches add.
func tryExtensions(t *testing.T, program string) {
	dir := t.TempDir()
	messages, telegrams, keys := filepath.Join(dir, "messages"), filepath.Join(dir, "telegrams"), newBox(t)
	for _, d := range []string{messages, telegrams} {
		if err := os.Mkdir(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	p := start(t, program, "messages.capture=false", "messages.sendfile.dir="+messages, "messages.telegraph.dir="+telegrams,
		"keys.rules=[{holder: box, suites: [gost2012-512]}]", "keys.box.socket="+keys.socket, "log.name=extended")
	demo := p.token(t, p.dev.User.Login, p.dev.User.Password)
	operator := p.token(t, p.dev.Operator.Login, p.dev.Operator.Password)
	people := p.dev.IDPURL + "/ums/user/" + p.dev.User.ID

	t.Run("format", func(t *testing.T) {
		signature := p.sign(t, demo, "plain", nil, []byte("a document"))
		if !regexp.MustCompile(`^PLAIN: [0-9a-f]{128}\n$`).Match(signature) {
			t.Fatalf("%q", signature)
		}
		if byNumber := p.sign(t, demo, "77", nil, []byte("a document")); len(byNumber) != len(signature) {
			t.Errorf("%q", byNumber)
		}
		file := write(t, dir, "signed", signature)
		for document, want := range map[string]int{"a document": 0, "another": 1} {
			out, code := run(program, "verify", file, "--original", write(t, dir, "document", []byte(document)),
				"--cert", filepath.Join(p.dir, p.dev.Certificates[0].PEM), "--data", p.dir, "--json")
			if code != want || !strings.Contains(out, `"plain"`) {
				t.Errorf("verify over %s: exit code %d\n%s", document, code, out)
			}
		}
	})
	t.Run("level", func(t *testing.T) {
		// A signature at the new level, one that is raised to it, and one that cannot be lowered.
		stamped := func(level string) map[string]string {
			return map[string]string{"CADESType": level, "TSPAddress": p.dev.TSPURL, "IsDetached": "False"}
		}
		added := []byte{0x2b, 6, 1, 4, 1, 0x81, 0xfd, 0x59, 1} // 1.3.6.1.4.1.32473.1
		enhance := func(message []byte, level string) *http.Response {
			return p.send(t, "POST", p.dev.BaseURL+"/api/signatures/enhance", demo, map[string]any{
				"Signature": message, "SignatureType": "CAdES",
				"SignatureParams": map[string]string{"CADESType": level, "TSPAddress": p.dev.TSPURL},
			})
		}
		sealed, long := p.sign(t, demo, "CAdES", stamped("Sealed"), []byte("a document")), p.sign(t, demo, "CAdES", stamped("XLT1"), []byte("a document"))
		var raised []byte
		decode(t, read(t, enhance(long, "Sealed")), &raised)
		for what, message := range map[string][]byte{"signed": sealed, "raised": raised} {
			if bytes.Count(message, added) != 1 {
				t.Errorf("%s: the message has %d of the new attributes", what, bytes.Count(message, added))
			}
			if out, code := run(program, "verify", write(t, dir, what+".p7s", message), "--data", p.dir); code != 0 {
				t.Errorf("%s: verify: exit code %d\n%s", what, code, out)
			}
		}
		if answer := enhance(sealed, "XLT1"); answer.StatusCode != http.StatusBadRequest {
			t.Errorf("lowered: %d %s", answer.StatusCode, read(t, answer))
		}
	})
	t.Run("interface", func(t *testing.T) {
		base, _, _ := strings.Cut(p.dev.BaseURL, "/SignServer")
		if answer := p.do(t, "GET", base+"/greet/greetings/Ada", demo, nil); string(answer) != `{"Greeting":"Hello, Ada."}` {
			t.Errorf("%s", answer)
		}
		if answer := p.send(t, "GET", base+"/greet/greetings/Ada", "", nil); answer.StatusCode != http.StatusUnauthorized {
			t.Errorf("without a token: %d", answer.StatusCode)
		}
		if described := p.do(t, "GET", base+"/openapi.json", "", nil); !bytes.Contains(described, []byte(`"/greet/greetings/{name}"`)) {
			t.Error("openapi.json does not have the interface")
		}
	})
	t.Run("holder", func(t *testing.T) {
		tryHolders(t, program, p, keys, demo)
		if out, code := run(program, "config", "check", "--config", write(t, dir, "holder.yaml", []byte("keys: {holder: box}\n"))); code == 0 || !strings.Contains(out, "keys.box.socket: want the socket of the service") {
			t.Errorf("config check: exit code %d\n%s", code, out)
		}
	})
	t.Run("notifier", func(t *testing.T) {
		p.do(t, "POST", people+"/emails", operator, "demo@example.org")
		p.do(t, "POST", people+"/emails/demo@example.org/requireconfirm", operator, nil)
		wait(t, p, filepath.Join(messages, "demo@example.org"), `[0-9]{4}`)
	})
	t.Run("channel", func(t *testing.T) {
		p.do(t, "POST", people+"/phones", operator, "+79990000001")
		p.do(t, "POST", people+"/phones/+79990000001/confirm", operator, nil)
		p.do(t, "POST", people+"/phones/+79990000001/notification", operator, true)
		p.do(t, "POST", people+"/notificationpolicy", operator, map[string][]string{"UserAccountChanged": {"Telegraph"}})
		p.do(t, "POST", people, operator, map[string]any{"PropertyType": 0, "Value": "Another Name"})
		wait(t, p, filepath.Join(telegrams, "79990000001"), `.`)
		if out, _ := run(program, "policy", "set", "--help"); !strings.Contains(strings.Join(strings.Fields(out), " "), "Email, SMS, Push, Telegraph") {
			t.Errorf("the help of policy set:\n%s", out)
		}
	})
	t.Run("method", func(t *testing.T) {
		p.do(t, "POST", people+"/authmethod/knock", operator, nil)
		if scheme := p.do(t, "GET", people+"/authmethod", operator, nil); !bytes.Contains(scheme, []byte("authenticationmethod/knock")) {
			t.Errorf("the methods of the user: %s", scheme)
		}
		raw := p.do(t, "POST", p.dev.IDPURL+"/ums/user/rawauthdata", operator, map[string]any{"UserId": p.dev.User.ID})
		if !bytes.Contains(raw, []byte("Knocks")) {
			t.Errorf("the data of the methods: %s", raw)
		}
		p.do(t, "DELETE", people+"/authmethod/knock", operator, nil)
	})
	t.Run("kind", func(t *testing.T) { tryKind(t, program, p, operator, people, messages) })
	t.Run("setting", func(t *testing.T) {
		if log := p.logged(); !strings.Contains(log, "installation=extended") {
			t.Errorf("the log has no name:\n%s", log)
		}
		if out, code := run(program, "config", "check", "--config", write(t, dir, "setting.yaml", []byte("log: {name: ''}\n"))); code == 0 || !strings.Contains(out, "log.name: want") {
			t.Errorf("config check: exit code %d\n%s", code, out)
		}
	})
	t.Run("command", func(t *testing.T) {
		if out, code := run(program, "greet", "Ada"); code != 0 || out != "Hello, Ada.\n" {
			t.Errorf("greet: exit code %d, %q", code, out)
		}
		if out, _ := run(program, "--help"); !strings.Contains(out, "Greet a person.") {
			t.Errorf("--help:\n%s", out)
		}
	})
}

// tryKind orders a note, which is an operation of the kind of a patch, by the endpoint of another patch,
// confirms it with a code by e-mail and has it written.
func tryKind(t *testing.T, program string, p *process, operator, people, messages string) {
	const email = "notes@example.org"
	p.do(t, "POST", people+"/emails", operator, email)
	for _, path := range []string{"/emails/" + email + "/confirm", "/emails/" + email + "/secondaryauth", "/authmethod/otpviaemail?level=1"} {
		p.do(t, "POST", people+path, operator, nil)
	}
	token := p.token(t, p.dev.User.Login, p.dev.User.Password)
	notes := p.dev.IDPURL + "/notes"
	type note struct {
		OperationID, State, Text string
		WrittenAt                *string
	}
	var ordered, written note
	decode(t, p.do(t, "POST", notes, token, map[string]string{"Text": "I have read the rules."}), &ordered)
	if ordered.OperationID == "" || ordered.State != "Created" || ordered.Text != "I have read the rules." || ordered.WrittenAt != nil {
		t.Fatalf("ordered: %+v", ordered)
	}
	inLog := func() int {
		out, code := run(program, "audit", "--operation", "WriteNote", "--data", p.dir)
		if code != 0 {
			t.Fatalf("audit: exit code %d\n%s", code, out)
		}
		return strings.Count(out, "I have read the rules.")
	}
	if n := inLog(); n != 0 {
		t.Errorf("the audit log has %d notes before the confirmation", n)
	}

	confirm := func(body map[string]any) (answer struct {
		AccessToken string
		Challenge   struct{ ContextData struct{ RefID string } }
	}) {
		body["Resource"], body["ClientId"] = p.dev.Resource, p.dev.ClientID
		decode(t, p.do(t, "POST", p.dev.IDPURL+"/v2.0/confirmation", token, body), &answer)
		return answer
	}
	asked := confirm(map[string]any{"OperationId": ordered.OperationID}).Challenge.ContextData.RefID
	code := wait(t, p, filepath.Join(messages, email), `\b[0-9]{6}\b`)
	confirmed := confirm(map[string]any{"ChallengeResponse": map[string]any{
		"TextChallengeResponse": []map[string]string{{"RefId": asked, "Value": code}},
	}}).AccessToken
	if confirmed == "" {
		t.Fatalf("the code %q gives no token", code)
	}
	if n := inLog(); n != 0 {
		t.Errorf("the audit log has %d notes before the operation is carried out", n)
	}
	first := p.do(t, "POST", notes, confirmed, struct{}{})
	decode(t, first, &written)
	if written.OperationID != ordered.OperationID || written.State != "Completed" || written.Text != ordered.Text || written.WrittenAt == nil {
		t.Errorf("written: %+v", written)
	}
	if again := p.do(t, "POST", notes, confirmed, struct{}{}); !bytes.Equal(again, first) {
		t.Errorf("a repeated call: %s, want %s", again, first)
	}
	if n := inLog(); n != 1 {
		t.Errorf("the audit log has %d notes, want one", n)
	}
}

func decode(t *testing.T, text []byte, into any) {
	t.Helper()
	if err := json.Unmarshal(text, into); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
}

// run runs a command to its end and returns what it printed and its exit code.
func run(program string, args ...string) (string, int) {
	command := exec.Command(program, args...)
	out, err := command.CombinedOutput()
	if err != nil && command.ProcessState == nil {
		return fmt.Sprint(err), -1
	}
	return string(out), command.ProcessState.ExitCode()
}

func write(t *testing.T, dir, name string, text []byte) string {
	t.Helper()
	file := filepath.Join(dir, name)
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// wait waits until a file of the server has what matches a pattern, and returns the match.
func wait(t *testing.T, p *process, file, pattern string) string {
	t.Helper()
	sought := regexp.MustCompile(pattern)
	for {
		text, _ := os.ReadFile(file) // not there yet, or without it
		if match := sought.Find(text); match != nil {
			return string(match)
		}
		select {
		case <-p.done:
			t.Fatal("the server ended")
		case <-time.After(10 * time.Millisecond):
		}
	}
}
