package main

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"tamga/internal/app/dev"
)

// TestMain makes the test binary stand in for the program itself: as the
// command "tamga" of the scripts, and as a server in a process of its own that a
// test can kill.
func TestMain(m *testing.M) {
	// Parallel tests here wait most of the time, so their number does not depend on the processors.
	// The command line counts before.
	if err := flag.Set("test.parallel", "8"); err != nil {
		panic(err)
	}
	testscript.Main(asProgram{m}, map[string]func(){"tamga": main})
}

const asProgramVariable = "TAMGA_TEST_RUN_PROGRAM"

type asProgram struct{ m *testing.M }

func (a asProgram) Run() int {
	if os.Getenv(asProgramVariable) != "" {
		main()
		return 0
	}
	return a.m.Run()
}

// process is a server in a process of its own.
type process struct {
	t    testing.TB
	cmd  *exec.Cmd
	url  string // scheme, host and port it listens on
	dir  string // of --dev
	dev  *dev.Description
	done chan struct{}

	mu  sync.Mutex
	log strings.Builder // what it wrote to standard error
}

// logged is what the process wrote to standard error so far.
func (p *process) logged() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.log.String()
}

// startDev starts "tamga serve --dev" over dir and waits until it is ready. The
// program is the test binary itself, so the race detector watches the server too.
func startDev(t testing.TB, dir string, more ...string) *process {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return startProgram(t, program, dir, more...)
}

// plainProgram builds the program as it is delivered: the race detector's own
// memory would hide what a test of memory looks for.
func plainProgram(t testing.TB) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "tamga")
	build := exec.Command("go", "build", "-o", program, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building the program: %v\n%s", err, out)
	}
	return program
}

func startProgram(t testing.TB, program, dir string, more ...string) *process {
	t.Helper()
	p := startServer(t, program, append([]string{"serve", "--dev", "--data", dir, "--listen", "127.0.0.1:0"}, more...)...)
	p.dir = dir
	var err error
	if p.dev, err = dev.Read(dir); err != nil {
		t.Fatal(err)
	}
	return p
}

// startServer starts the program and waits until it says that it listens.
func startServer(t testing.TB, program string, args ...string) *process {
	t.Helper()
	return startCommand(t, exec.Command(program, args...))
}

// startCommand is startServer for a command that is not started yet.
func startCommand(t testing.TB, cmd *exec.Cmd) *process {
	t.Helper()
	cmd.Env = append(os.Environ(), asProgramVariable+"=1")
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p := &process{t: t, cmd: cmd, done: make(chan struct{})}
	listening := make(chan string, 1)
	go func() {
		defer close(p.done)
		lines := bufio.NewScanner(stderr)
		lines.Buffer(nil, 1<<20)
		for lines.Scan() {
			if _, address, ok := strings.Cut(lines.Text(), "msg=listening address="); ok {
				address, _, _ = strings.Cut(address, " ")
				listening <- "http://" + address
			}
			p.mu.Lock()
			p.log.WriteString(lines.Text() + "\n")
			p.mu.Unlock()
			if testing.Verbose() {
				fmt.Fprintln(os.Stderr, "  server:", lines.Text())
			}
		}
	}()
	t.Cleanup(p.kill)
	select {
	case p.url = <-listening:
	case <-p.done:
		t.Fatal("the server ended before it was ready")
	case <-time.After(2 * time.Minute):
		t.Fatal("the server was not ready in two minutes")
	}
	return p
}

// kill ends the process the hard way, as a power cut would.
func (p *process) kill() {
	if p.cmd.ProcessState != nil {
		return
	}
	p.cmd.Process.Signal(syscall.SIGKILL)
	<-p.done
	p.cmd.Wait()
}

// stop ends the process the polite way and reports how it ended.
func (p *process) stop() error {
	p.cmd.Process.Signal(syscall.SIGTERM)
	<-p.done
	return p.cmd.Wait()
}

func (p *process) path(relative string) string { return filepath.Join(p.dir, relative) }

// cert returns the certificate of a suite, with or without a PIN.
func (p *process) cert(suite string, withPIN bool) dev.Certificate {
	p.t.Helper()
	for _, c := range p.dev.Certificates {
		if c.Suite == suite && (c.PIN != "") == withPIN {
			return c
		}
	}
	p.t.Fatalf("dev.json has no certificate %s (PIN: %t)", suite, withPIN)
	return dev.Certificate{}
}

// token signs the user demo in.
func (p *process) token() string {
	p.t.Helper()
	return p.tokenOf(p.dev.User.Login, p.dev.User.Password)
}

func (p *process) grant(login, password string) (int, []byte) {
	p.t.Helper()
	response, err := http.PostForm(p.dev.TokenURL, url.Values{
		"grant_type": {"password"}, "username": {login}, "password": {password},
		"client_id": {p.dev.ClientID}, "resource": {p.dev.Resource},
	})
	if err != nil {
		p.t.Fatal(err)
	}
	return readAll(p.t, response)
}

// post sends a signing request.
func (p *process) post(token string, body io.Reader) (int, []byte) {
	p.t.Helper()
	return p.do(context.Background(), "POST", p.dev.BaseURL+"/api/documents", token, body)
}

func (p *process) do(ctx context.Context, method, url, token string, body io.Reader) (int, []byte) {
	p.t.Helper()
	request, err := http.NewRequestWithContext(ctx, method, url, body)
	if err != nil {
		p.t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json; charset=utf-8")
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		p.t.Fatal(err)
	}
	return readAll(p.t, response)
}

func readAll(t testing.TB, response *http.Response) (int, []byte) {
	t.Helper()
	defer response.Body.Close()
	data, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, data
}

// memory reads a figure of /proc/PID/status in octets: VmHWM is the peak of the
// resident memory, VmRSS what it is now.
func (p *process) memory(name string) int64 {
	p.t.Helper()
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		p.t.Skipf("resident memory cannot be read here: %v", err)
	}
	for line := range strings.Lines(string(data)) {
		if rest, ok := strings.CutPrefix(line, name+":"); ok {
			n, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
			if err != nil {
				p.t.Fatal(err)
			}
			return n << 10
		}
	}
	p.t.Fatalf("no %s in the status of the process", name)
	return 0
}

// resetPeak makes VmHWM start again at the present size.
func (p *process) resetPeak() {
	p.t.Helper()
	if err := os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", p.cmd.Process.Pid), []byte("5"), 0o200); err != nil {
		p.t.Skipf("the peak of resident memory cannot be reset here: %v", err)
	}
}

// processorTime is what the process has taken of the processors, for itself and
// in the kernel, in steps of 10 ms.
func (p *process) processorTime() time.Duration {
	p.t.Helper()
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.cmd.Process.Pid))
	if err != nil {
		p.t.Skipf("processor time cannot be read here: %v", err)
	}
	_, rest, _ := strings.Cut(string(data), ") ") // the name may hold spaces
	fields := strings.Fields(rest)
	var ticks int64
	for _, f := range fields[11:13] { // utime and stime, fields 14 and 15
		n, err := strconv.ParseInt(f, 10, 64)
		if err != nil {
			p.t.Fatal(err)
		}
		ticks += n
	}
	return time.Duration(ticks) * 10 * time.Millisecond
}
