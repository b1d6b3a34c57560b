// SPDX-License-Identifier: Apache-2.0

//go:build unix

package main

import (
	"bufio"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"tamga/internal/app/dev"
	"tamga/internal/tamgatest"
	"tamga/internal/testsize"
)

// TestReload replaces files and settings of a running server. A SIGHUP makes the server read them. An
// invalid configuration changes nothing.
func TestReload(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	first, firstKey, _ := serverFiles(t, t.TempDir())
	second, secondKey, _ := serverFiles(t, t.TempDir())
	copies := func(certificate, key string) {
		t.Helper()
		tamgatest.WriteFile(t, filepath.Join(dir, "tls.pem"), string(tamgatest.ReadFile(t, certificate)))
		tamgatest.WriteFile(t, filepath.Join(dir, "tls.key"), string(tamgatest.ReadFile(t, key)))
	}
	copies(first, firstKey)
	tamgatest.WriteFile(t, filepath.Join(dir, "master.key"), strings.Repeat("0123456789abcdef", 4)+"\n")
	tamgatest.WriteFile(t, filepath.Join(dir, "one.secret"), "the first secret\n")
	tamgatest.WriteFile(t, filepath.Join(dir, "two.secret"), "the second secret\n")
	config := func(secret, level, more string) string {
		return tamgatest.WriteFile(t, filepath.Join(dir, "tamga.yaml"), fmt.Sprintf(`
listen: 127.0.0.1:0
tls: {certificate_file: tls.pem, key_file: tls.key}
master_keys: {active: "1", files: {"1": master.key}}
clients: [{id: exchange, secret_file: %s, password_grant: true}]
log: {format: text, level: %s}
%s`, secret, level, more))
	}
	file := config("one.secret", "info", "")
	(&tamgatest.Server{T: t}).MustRun("migrate", "--config", file)
	s := tamgatest.StartArgs(t, "serve", "--config", file)
	address, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	known := func(secret string) bool {
		t.Helper()
		request, err := http.NewRequest("POST", "https://"+address.Host+"/STS/oauth/token", strings.NewReader(url.Values{"grant_type": {"password"}, "username": {"unknown"}, "password": {"x"}}.Encode()))
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		request.SetBasicAuth("exchange", secret)
		response, err := client.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		_, body := tamgatest.ReadAll(t, response)
		return !strings.Contains(string(body), "invalid_client")
	}
	shows := func(file string) bool {
		t.Helper()
		conn, err := tls.Dial("tcp", address.Host, &tls.Config{InsecureSkipVerify: true})
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		want, err := tls.LoadX509KeyPair(file, strings.TrimSuffix(file, filepath.Base(file))+filepath.Base(firstKey))
		if err != nil {
			t.Fatal(err)
		}
		return conn.ConnectionState().PeerCertificates[0].Equal(want.Leaf)
	}
	const done, refused, restart = "read the configuration again", "the previous one stays", "they need a restart"
	if !known("the first secret") || known("the second secret") || !shows(first) {
		t.Fatal("the server did not start with its configuration")
	}

	// Each request has a connection of its own, and none fails while files are replaced.
	ended, answered := make(chan struct{}), make(chan error, 2)
	for range cap(answered) {
		go func() {
			for n := 0; ; n++ {
				select {
				case <-ended:
					if n == 0 {
						answered <- errors.New("no request was answered")
					}
					answered <- nil
					return
				default:
				}
				response, err := client.Get("https://" + address.Host + "/readyz")
				if err == nil {
					_, err = io.Copy(io.Discard, response.Body)
					err = errors.Join(err, response.Body.Close())
				}
				if err == nil && response.StatusCode != 200 {
					err = fmt.Errorf("status %d", response.StatusCode)
				}
				if err != nil {
					answered <- fmt.Errorf("request %d: %w", n, err)
					return
				}
			}
		}()
	}

	copies(second, secondKey)
	config("two.secret", "debug", "")
	hangUp(t, s, done)
	if known("the first secret") || !known("the second secret") || !shows(second) || !strings.Contains(s.Logged(), "level=DEBUG") {
		t.Error("the reload did not read everything")
	}
	response, err := client.Get("https://" + address.Host + "/healthz")
	if err != nil {
		t.Fatal(err)
	}
	tamgatest.ReadAll(t, response)
	for !strings.Contains(s.Logged(), "level=DEBUG msg=request") { // written after the answer
		runtime.Gosched()
	}

	for _, spoil := range []func(){
		func() { copies(first, secondKey) },
		func() { copies(first, firstKey); config("missing.secret", "info", "") },
		func() { config("one.secret", "loud", "") },
		func() { config("one.secret", "info", "evidence: {root_files: [missing.pem]}") },
	} {
		spoil()
		hangUp(t, s, refused)
		if known("the first secret") || !known("the second secret") || !shows(second) {
			t.Error("an invalid configuration changed something")
		}
	}
	config("one.secret", "info", "batch_items: 7")
	hangUp(t, s, restart)
	if !known("the first secret") || !shows(first) {
		t.Error("a valid configuration after invalid ones was not read")
	}
	close(ended)
	for range cap(answered) {
		if err := <-answered; err != nil {
			t.Errorf("under load: %v", err)
		}
	}
}

// TestReloadRoots gives a running server the root of another authority, a broken file in its place, and
// no root again. A signature under that root passes only while the root is trusted.
func TestReloadRoots(t *testing.T) {
	t.Parallel()
	p := tamgatest.StartIn(t, t.TempDir()) // evidence is at its own address
	document := []byte("document")
	signature := p.Signed("POST", "/rest/api/documents", p.Token(), tamgatest.Request(document, "CAdES", p.Cert("gost2012-256", false).ID,
		tamgatest.Parameters{"CADESType": "XLT1", "TSPAddress": p.Dev.TSPURL}))
	dir := t.TempDir()
	tamgatest.WriteFile(t, filepath.Join(dir, "master.key"), strings.Repeat("0123456789abcdef", 4)+"\n")
	p.Command("ca", "export", "-o", filepath.Join(dir, "roots.pem"))
	tamgatest.WriteFile(t, filepath.Join(dir, "broken.pem"), "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n")
	config := func(roots string) string {
		return tamgatest.WriteFile(t, filepath.Join(dir, "tamga.yaml"), `
listen: 127.0.0.1:0
master_keys: {active: "1", files: {"1": master.key}}
log: {format: text}
evidence: {allow_networks: [127.0.0.0/8], root_files: [`+roots+`]}
`)
	}
	file := config("")
	p.MustRun("migrate", "--config", file)
	s := tamgatest.StartArgs(t, "serve", "--config", file)
	s.Dev = &dev.Description{SVSURL: strings.Replace(p.Dev.SVSURL, p.URL, s.URL, 1)}
	for _, step := range []struct {
		roots, said string
		passes      bool
	}{
		{"", "", false},
		{"roots.pem", "read the configuration again", true},
		{"broken.pem", "the previous one stays", true},
		{"roots.pem, missing.pem", "the previous one stays", true},
		{"", "read the configuration again", false},
	} {
		if step.said != "" {
			config(step.roots)
			hangUp(t, s, step.said)
		}
		if v := s.Verdicts(map[string]any{"SignatureType": "CAdES", "Content": signature}); *v[0].Result != step.passes {
			t.Errorf("with roots [%s]: %t, %s", step.roots, *v[0].Result, *v[0].Message)
		}
	}
}

// hangUp sends SIGHUP to a server and waits until it says something once more.
func hangUp(t *testing.T, s *tamgatest.Server, want string) {
	t.Helper()
	before := strings.Count(s.Logged(), want)
	if err := s.Process().Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	for strings.Count(s.Logged(), want) == before {
		runtime.Gosched()
	}
}

// awaitLog waits until a server says something.
func awaitLog(s *tamgatest.Server, want string) {
	for !strings.Contains(s.Logged(), want) {
		runtime.Gosched()
	}
}

// systemSocket is a socket that listens already and is passed to servers, as systemd does.
type systemSocket struct {
	t       *testing.T
	file    *os.File
	address string
}

func newSystemSocket(t *testing.T) systemSocket {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	f, err := listener.(*net.TCPListener).File()
	if err != nil {
		t.Fatal(err)
	}
	if err := listener.Close(); err != nil { // the file stays open
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return systemSocket{t, f, listener.Addr().String()}
}

func (s systemSocket) start(dir string, more ...string) *tamgatest.Server {
	s.t.Helper()
	const passing = `LISTEN_FDS=1 LISTEN_PID=$$ exec "$@"`
	cmd := exec.Command("sh", append([]string{"-c", passing, "sh", tamgatest.Program(s.t), "serve", "--dev", "--data", dir, "--listen", "127.0.0.1:1"}, more...)...)
	cmd.ExtraFiles = []*os.File{s.file}
	return tamgatest.StartCommand(s.t, cmd)
}

// TestSocketActivation starts a server with a socket that listens already, as systemd does.
func TestSocketActivation(t *testing.T) {
	t.Parallel()
	socket := newSystemSocket(t)
	s := socket.start(t.TempDir())
	if want := "http://" + socket.address; s.URL != want {
		t.Errorf("the server listens at %s, want %s", s.URL, want)
	}
	if status, _ := get(t, s.URL+"/healthz"); status != 200 {
		t.Errorf("/healthz: %d", status)
	}
}

// TestStopAnswersAccepted stops a server that has accepted a connection and has not got its request yet. It answers the
// request. A connection that is made later waits at the socket for the next server.
func TestStopAnswersAccepted(t *testing.T) {
	t.Parallel()
	socket, dir := newSystemSocket(t), t.TempDir()
	s := socket.start(dir)
	dial := func() net.Conn {
		conn, err := net.Dial("tcp", socket.address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		return conn
	}
	ask := func(conn net.Conn) *http.Response {
		t.Helper()
		fmt.Fprint(conn, "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
		answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatal(err)
		}
		return answer
	}
	accepted := dial()
	ask(dial()) // the server has accepted the connection before this one, too
	s.Process().Signal(syscall.SIGTERM)
	awaitLog(s, "stopping")
	if answer := ask(accepted); answer.StatusCode != 200 || !answer.Close {
		t.Errorf("a server that stops answers %d, and the connection ends: %v", answer.StatusCode, answer.Close)
	}
	later := dial()
	if err := s.Wait(); err != nil {
		t.Errorf("the stop ends with %v", err)
	}
	socket.start(dir)
	if answer := ask(later); answer.StatusCode != 200 {
		t.Errorf("the next server answers %d", answer.StatusCode)
	}
}

// TestRestartsOnASocket restarts a server under clients that take a new connection for each request, and clients that keep
// their connection until an answer ends it. No request is lost.
func TestRestartsOnASocket(t *testing.T) {
	t.Parallel()
	restarts := 10
	if testsize.Of() < testsize.Whole {
		restarts = 2
	}
	socket, dir := newSystemSocket(t), t.TempDir()
	s := socket.start(dir, "--set", "drain_time=1h")
	// Go's client does not repeat a POST.
	ask := func(client *http.Client) (closed bool, err error) {
		answer, err := client.Post("http://"+socket.address+"/STS/oauth/token", "application/x-www-form-urlencoded", strings.NewReader("grant_type=none"))
		if err != nil {
			return false, err
		}
		defer answer.Body.Close()
		if _, err := io.Copy(io.Discard, answer.Body); err != nil || answer.StatusCode != 401 {
			return false, fmt.Errorf("%d %v", answer.StatusCode, err)
		}
		return answer.Close, nil
	}
	var clients sync.WaitGroup
	ended := make(chan struct{})
	var asked, ends [4]atomic.Int64
	for i := range asked { // the odd ones keep their connections
		client := &http.Client{Transport: &http.Transport{DisableKeepAlives: i%2 == 0}}
		clients.Go(func() {
			defer client.CloseIdleConnections()
			for {
				select {
				case <-ended:
					return
				default:
				}
				closed, err := ask(client)
				if err != nil {
					t.Errorf("request %d of client %d: %v", asked[i].Load(), i, err)
					return
				}
				asked[i].Add(1)
				if closed {
					ends[i].Add(1)
				}
			}
		})
	}
	// more waits until each of the clients has another answer that is counted.
	more := func(counted *[4]atomic.Int64, clients ...int) {
		for _, i := range clients {
			for before := counted[i].Load(); counted[i].Load() == before && !t.Failed(); {
				runtime.Gosched()
			}
		}
	}
	for range restarts {
		more(&asked, 0, 1, 2, 3)
		s.Process().Signal(syscall.SIGTERM)
		more(&ends, 1, 3) // each client that keeps its connection was told that it ends
		s.Process().Signal(syscall.SIGTERM)
		if err := s.Wait(); err != nil {
			t.Errorf("the stop ends with %v", err)
		}
		s = socket.start(dir, "--set", "drain_time=1h")
	}
	more(&asked, 0, 1, 2, 3)
	close(ended)
	clients.Wait()
	t.Logf("%d restarts under %d, %d, %d and %d requests", restarts, asked[0].Load(), asked[1].Load(), asked[2].Load(), asked[3].Load())
}
