// SPDX-License-Identifier: Apache-2.0

package extension

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// process is the extended program, running as serve --dev.
type process struct {
	cmd   *exec.Cmd
	dir   string
	trace string // file of the calls
	done  chan struct{}
	mu    sync.Mutex
	log   bytes.Buffer
	dev   struct {
		BaseURL  string `json:"base_url"`
		IDPURL   string `json:"idp_url"`
		TokenURL string `json:"token_url"`
		TSPURL   string `json:"tsp_url"`
		Resource string `json:"resource"`
		ClientID string `json:"client_id"`
		User     struct{ ID, Login, Password string }
		Operator struct{ ID, Login, Password string }

		Certificates []struct{ PEM string }
	}
}

// start starts serve --dev with settings and waits until it listens.
func start(t *testing.T, program string, settings ...string) *process {
	t.Helper()
	dir := t.TempDir()
	p := &process{dir: filepath.Join(dir, "data"), trace: filepath.Join(dir, "calls"), done: make(chan struct{})}
	args := []string{"serve", "--dev", "--data", p.dir, "--listen", "127.0.0.1:0"}
	for _, s := range settings {
		args = append(args, "--set", s)
	}
	p.cmd = exec.Command(program, args...)
	p.cmd.Env = append(os.Environ(), "TAMGA_TRACE="+p.trace)
	stderr, err := p.cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	listening := make(chan struct{}, 8)
	go func() {
		defer close(p.done)
		lines := bufio.NewScanner(stderr)
		lines.Buffer(nil, 1<<20)
		for lines.Scan() {
			p.mu.Lock()
			p.log.WriteString(lines.Text() + "\n")
			p.mu.Unlock()
			if strings.Contains(lines.Text(), "msg=listening ") {
				listening <- struct{}{}
			}
		}
	}()
	t.Cleanup(func() {
		p.cmd.Process.Kill()
		<-p.done
		p.cmd.Wait()
		if t.Failed() {
			t.Logf("the server:\n%s", p.logged())
		}
	})
	select {
	case <-listening:
	case <-p.done:
		t.Fatal("the server ended before it was ready")
	}
	text, err := os.ReadFile(filepath.Join(p.dir, "dev.json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &p.dev); err != nil {
		t.Fatal(err)
	}
	return p
}

// logged returns the log of the process so far.
func (p *process) logged() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.log.String()
}

// token signs a user in with a password.
func (p *process) token(t *testing.T, login, password string) string {
	t.Helper()
	response, err := http.PostForm(p.dev.TokenURL, url.Values{
		"grant_type": {"password"}, "username": {login}, "password": {password},
		"client_id": {p.dev.ClientID}, "resource": {p.dev.Resource},
	})
	if err != nil {
		t.Fatal(err)
	}
	var answer struct {
		Token string `json:"access_token"`
	}
	if err := json.Unmarshal(read(t, response), &answer); err != nil {
		t.Fatal(err)
	}
	return answer.Token
}

// do sends a request of the interface and returns its answer, which must be 200.
func (p *process) do(t *testing.T, method, address, token string, body any) []byte {
	t.Helper()
	response := p.send(t, method, address, token, body)
	answer := read(t, response)
	if response.StatusCode != http.StatusOK {
		t.Fatalf("%s %s: %d %s", method, address, response.StatusCode, answer)
	}
	return answer
}

// send sends a request of the interface. The caller reads its answer.
func (p *process) send(t *testing.T, method, address, token string, body any) *http.Response {
	t.Helper()
	var text []byte
	if body != nil {
		var err error
		if text, err = json.Marshal(body); err != nil {
			t.Fatal(err)
		}
	}
	request, err := http.NewRequest(method, address, bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json; charset=utf-8")
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	return response
}

func read(t *testing.T, response *http.Response) []byte {
	t.Helper()
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// sign has the user demo sign a document and returns the signature.
func (p *process) sign(t *testing.T, token, kind string, parameters map[string]string, document []byte) []byte {
	t.Helper()
	answer := p.do(t, "POST", p.dev.BaseURL+"/api/documents", token, map[string]any{
		"Content":   document,
		"Signature": map[string]any{"Type": kind, "Parameters": parameters, "CertificateId": 0, "PinCode": ""},
	})
	var signature []byte
	if err := json.Unmarshal(answer, &signature); err != nil {
		t.Fatalf("%v\n%s", err, answer)
	}
	return signature
}

// calls returns the functions that were called while one request of do was answered, by the
// goroutine that answered it and those it began.
func (p *process) calls(t *testing.T, do func()) []call {
	t.Helper()
	p.signal(t, p.trace+".on")
	do()
	p.signal(t, p.trace)
	text, err := os.ReadFile(p.trace)
	if err != nil {
		t.Fatal(err)
	}
	type event struct {
		goroutine string
		call
	}
	var events []event
	parent := map[string]string{}
	answering := ""
	for line := range strings.Lines(string(text)) {
		f := strings.Fields(line)
		if len(f) != 4 {
			t.Fatalf("trace: %q", line)
		}
		parent[f[0]] = strings.TrimPrefix(f[1], "<")
		e := event{f[0], call{f[2], f[3]}}
		events = append(events, e)
		if answering == "" && e.pkg == "web/signapi" {
			answering = e.goroutine
		}
	}
	var calls []call
	for _, e := range events {
		g := e.goroutine
		for g != answering && g != "" {
			g = parent[g]
		}
		if g == answering {
			calls = append(calls, e.call)
		}
	}
	return calls
}

// signal begins or ends the trace and waits until the process has made the file that says so.
func (p *process) signal(t *testing.T, file string) {
	t.Helper()
	if err := p.cmd.Process.Signal(syscall.SIGUSR1); err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(file); err == nil {
			return
		}
		select {
		case <-p.done:
			t.Fatal("the server ended")
		case <-time.After(10 * time.Millisecond):
		}
	}
}
