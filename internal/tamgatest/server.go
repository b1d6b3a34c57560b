// SPDX-License-Identifier: Apache-2.0

package tamgatest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"tamga/internal/app"
	"tamga/internal/app/dev"
	"tamga/internal/cli/program"
	"tamga/internal/domain/password"
)

// Server is a running server. Its methods end the test T when something is wrong.
type Server struct {
	T   testing.TB
	URL string           // scheme, host and port it listens on
	Dir string           // of serve --dev, otherwise empty
	Dev *dev.Description // dev.json of Dir

	program  string   // of StartProgram; "" for this one
	settings []string // the flags --set it was started with and those of cheap, for Command
	log      *serverLog
	done     chan struct{} // closed when the server has ended
	cmd      *exec.Cmd     // of a process of its own, otherwise nil
	cancel   context.CancelCauseFunc
	err      error // how a server in this process ended
}

// Start starts "tamga serve --dev" in this process, over a copy of an installation that all servers
// of the test program begin with. More are further flags. The server stops at the end of the test.
//
// Certificates in the copy name no address of this server. A test that asks for their status uses
// [StartIn], whose installation is new.
func Start(t testing.TB, more ...string) *Server {
	t.Helper()
	dir := t.TempDir()
	if fitsCopy(more) {
		furnished.copyTo(t, dir)
	}
	return StartIn(t, dir, more...)
}

// fitsCopy reports whether a server with these flags can begin with a copy: one with another
// database or another cost of passwords needs an installation of its own.
func fitsCopy(flags []string) bool {
	return !slices.ContainsFunc(flags, func(flag string) bool {
		return strings.HasPrefix(flag, "database=") || strings.HasPrefix(flag, "argon2.")
	})
}

// Patience bounds waiting for what happens soon on a calm machine. It ends a test that hangs, and
// is long enough for a machine with much other work.
const Patience = 5 * time.Minute

// StartIn is Start over a directory, which may be empty.
func StartIn(t testing.TB, dir string, more ...string) *Server {
	t.Helper()
	return start(t, devFlags(dir, more)).over(dir, more)
}

// StartProcess is StartIn in a process of its own, which a test can kill. It needs [Main].
func StartProcess(t testing.TB, dir string, more ...string) *Server {
	t.Helper()
	return StartCommand(t, exec.Command(Program(t), devFlags(dir, more)...)).over(dir, more)
}

// StartProgram is StartProcess for another program than the test binary. It has DefaultCollector.
func StartProgram(t testing.TB, program, dir string, more ...string) *Server {
	t.Helper()
	cmd := exec.Command(program, devFlags(dir, more)...)
	cmd.Env = append(os.Environ(), DefaultCollector)
	s := StartCommand(t, cmd).over(dir, more)
	s.program = program
	return s
}

// DefaultCollector is the environment of a program whose memory is measured: tests may run with a
// garbage collector that saves processor time instead.
const DefaultCollector = "GOGC=100"

// StartArgs starts a command line of the program in a process of its own. It needs [Main].
func StartArgs(t testing.TB, args ...string) *Server {
	t.Helper()
	return StartCommand(t, exec.Command(Program(t), args...))
}

// Another starts a further server over the same installation, in a process of its own. Its
// public address is that of s. More are further flags.
func (s *Server) Another(more ...string) *Server {
	s.T.Helper()
	return StartArgs(s.T, slices.Concat(devFlags(s.Dir, s.settings), []string{"--set", "public_url=" + s.URL}, more)...)
}

// Program is the path of the test binary, which runs as the program in a process that
// [StartCommand] starts. It needs [Main].
func Program(t testing.TB) string {
	t.Helper()
	if !standsIn {
		t.Fatal("the TestMain of this package must call tamgatest.Main")
	}
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// cheap are the settings of a server under test: the least work for each password and PIN, since
// most tests sign in to do something else.
var cheap = []string{"--set", "argon2.memory=8MiB", "--set", "argon2.passes=1"}

// DefaultCost returns the flags that give a server the default work for each password and PIN,
// for tests that measure it.
func DefaultCost() []string {
	c := password.DefaultCost
	return []string{"--set", fmt.Sprintf("argon2.memory=%dKiB", c.MemoryKiB), "--set", fmt.Sprintf("argon2.passes=%d", c.Passes)}
}

func devFlags(dir string, more []string) []string {
	return slices.Concat([]string{"serve", "--dev", "--data", dir, "--listen", "127.0.0.1:0"}, cheap, more)
}

// over reads dev.json and keeps what further commands need to find the installation.
func (s *Server) over(dir string, more []string) *Server {
	s.T.Helper()
	s.Dir = dir
	s.settings = slices.Clone(cheap)
	for i, flag := range more {
		if flag == "--set" && i+1 < len(more) {
			s.settings = append(s.settings, flag, more[i+1])
		}
	}
	var err error
	if s.Dev, err = dev.Read(dir); err != nil {
		s.T.Fatal(err)
	}
	return s
}

// start runs the program in this process and waits until it says that it listens.
func start(t testing.TB, args []string) *Server {
	t.Helper()
	ctx, cancel := context.WithCancelCause(context.Background())
	s := &Server{T: t, log: newServerLog(), done: make(chan struct{}), cancel: cancel}
	go func() {
		defer close(s.done)
		s.err = program.Run(ctx, Version, args, strings.NewReader(""), io.Discard, s.log)
	}()
	t.Cleanup(func() {
		if err := s.Stop(); err != nil {
			t.Errorf("the server ended with: %v", err)
		}
	})
	s.wait()
	return s
}

// StartCommand starts a command line of the program in a process of its own and waits until it
// says that it listens.
func StartCommand(t testing.TB, cmd *exec.Cmd) *Server {
	t.Helper()
	cmd.Env = append(cmd.Environ(), AsProgram)
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	s := &Server{T: t, log: newServerLog(), done: make(chan struct{}), cmd: cmd}
	go func() {
		defer close(s.done)
		io.Copy(s.log, stderr)
	}()
	t.Cleanup(s.Kill)
	s.wait()
	return s
}

// wait waits until the server listens.
func (s *Server) wait() {
	s.T.Helper()
	select {
	case s.URL = <-s.log.listening:
	case <-s.done:
		s.T.Fatalf("the server ended before it was ready: %v\n%s", s.err, s.Logged())
	case <-time.After(Patience):
		s.T.Fatalf("the server was not ready in %v", Patience)
	}
}

// Logged is what the server wrote to its log so far.
func (s *Server) Logged() string {
	s.log.mu.Lock()
	defer s.log.mu.Unlock()
	return s.log.text.String()
}

// Process is the process of a server that has one of its own.
func (s *Server) Process() *os.Process {
	s.T.Helper()
	if s.cmd == nil {
		s.T.Fatal("the server has no process of its own: start it with StartProcess")
	}
	return s.cmd.Process
}

// Kill ends the process of a server the hard way, as a power cut would.
func (s *Server) Kill() {
	s.T.Helper()
	process := s.Process()
	if s.cmd.ProcessState != nil {
		return
	}
	process.Signal(syscall.SIGKILL)
	s.Wait()
}

// Stop ends the server the polite way and returns its error.
func (s *Server) Stop() error {
	if s.cmd != nil {
		s.cmd.Process.Signal(syscall.SIGTERM)
		return s.Wait()
	}
	// A connection that has never had a request would be waited for.
	http.DefaultClient.CloseIdleConnections()
	s.cancel(app.StopSignal{Signal: os.Interrupt})
	return s.Wait()
}

// Wait waits for the end of the server and returns its error.
func (s *Server) Wait() error {
	<-s.done
	if s.cmd != nil {
		return s.cmd.Wait()
	}
	if errors.Is(s.err, context.Canceled) {
		return nil
	}
	return s.err
}

// Command runs a sub-command over the installation of the server and returns what it printed.
func (s *Server) Command(args ...string) string {
	s.T.Helper()
	if s.program != "" { // it may be older than the database that this one knows
		out, err := exec.Command(s.program, s.flags(args)...).CombinedOutput()
		if err != nil {
			s.T.Fatalf("%s: %v\n%s", strings.Join(args, " "), err, out)
		}
		return string(out)
	}
	return s.MustRun(s.flags(args)...)
}

// TryCommand is Command for a sub-command that may fail.
func (s *Server) TryCommand(args ...string) Result {
	return Run(context.Background(), "", s.flags(args)...)
}

// CommandProcess is Command in a process of its own, which the caller starts and may kill. It needs
// [Main].
func (s *Server) CommandProcess(args ...string) *exec.Cmd {
	s.T.Helper()
	return ProcessOf(s.T, s.flags(args)...)
}

// ProcessOf is a process for a command line of the program, which the caller starts. It needs [Main].
func ProcessOf(t testing.TB, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(Program(t), args...)
	cmd.Env = append(os.Environ(), AsProgram)
	return cmd
}

func (s *Server) flags(args []string) []string {
	return slices.Concat(args, []string{"--data", s.Dir}, s.settings)
}

// MustRun runs a command line, without the flags that Command adds, and returns what it printed.
func (s *Server) MustRun(args ...string) string {
	s.T.Helper()
	r := Run(context.Background(), "", args...)
	if r.Failure != nil {
		s.T.Fatalf("tamga %s: %v\n%s", strings.Join(args, " "), r.Failure, r.Err)
	}
	return r.Out
}

// Path is the path of a file in the directory of the server.
func (s *Server) Path(relative string) string { return filepath.Join(s.Dir, relative) }

// serverLog keeps the log of a server and finds the address it listens on.
type serverLog struct {
	listening chan string

	mu   sync.Mutex
	text bytes.Buffer
	read int // up to here whole lines were looked at
}

func newServerLog() *serverLog { return &serverLog{listening: make(chan string, 1)} }

func (l *serverLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text.Write(p)
	for {
		line, _, whole := bytes.Cut(l.text.Bytes()[l.read:], []byte("\n"))
		if !whole {
			return len(p), nil
		}
		l.read += len(line) + 1
		if loud() {
			fmt.Fprintf(os.Stderr, "  server: %s\n", line)
		}
		if _, address, ok := strings.Cut(string(line), "msg=listening address="); ok {
			address, _, _ = strings.Cut(address, " ")
			select {
			case l.listening <- "http://" + address:
			default: // it said so before
			}
		}
	}
}

// loud reports whether logs are shown while the tests run: with -v, but not if that only serves to
// measure tests.
var loud = sync.OnceValue(func() bool { return testing.Verbose() && os.Getenv("TAMGA_TEST_QUIET") == "" })
