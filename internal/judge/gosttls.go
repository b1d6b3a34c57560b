package judge

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// HAProxy runs HAProxy (Debian: haproxy) with a configuration and gost-engine loaded
// by the OpenSSL configuration, until the test ends, and returns when it takes
// connections at the address.
func HAProxy(t testing.TB, config, opensslConfig, address string) {
	t.Helper()
	program := HAProxyProgram(t)
	cmd := exec.Command(program, "-db", "-f", config)
	cmd.Env = append(os.Environ(), "OPENSSL_CONF="+opensslConfig)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatalf("judge: haproxy: %v", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	t.Cleanup(func() {
		cmd.Process.Kill()
		<-ended
		if t.Failed() {
			t.Logf("judge: haproxy said:\n%s", out.String())
		}
	})
	deadline := time.After(30 * time.Second)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		if conn, err := net.Dial("tcp", address); err == nil {
			conn.Close()
			return
		}
		select {
		case err := <-ended:
			ended <- err
			t.Fatalf("judge: haproxy ended before it took connections: %v\n%s", err, out.String())
		case <-deadline:
			t.Fatal("judge: haproxy took no connections in 30 seconds")
		case <-tick.C: // nothing tells that it listens but asking it
		}
	}
}

// HAProxyProgram finds the haproxy program.
func HAProxyProgram(t testing.TB) string {
	t.Helper()
	for _, name := range []string{"haproxy", "/usr/sbin/haproxy"} {
		if program, err := exec.LookPath(name); err == nil {
			return program
		}
	}
	missing(t, "the haproxy program is not installed (Debian: haproxy)")
	return ""
}

// GnuTLS finds gnutls-cli (Debian: gnutls-bin), which speaks GOST-TLS without
// gost-engine.
func GnuTLS(t testing.TB) string {
	t.Helper()
	program, err := exec.LookPath("gnutls-cli")
	if err != nil {
		missing(t, "the gnutls-cli program is not installed (Debian: gnutls-bin)")
	}
	return program
}

// Talk connects with "openssl s_client" and the arguments, sends what is to be said
// and returns all that came back on both streams until the other side closed,
// whether or not the handshake came off.
func (tool *Tool) Talk(say string, args ...string) string {
	return talk(tool.t, tool.program, tool.Dir, []string{"OPENSSL_CONF=" + tool.conf}, say, append([]string{"s_client", "-ign_eof"}, args...))
}

// TalkGnuTLS does the same with gnutls-cli.
func TalkGnuTLS(t testing.TB, dir, say string, args ...string) string {
	return talk(t, GnuTLS(t), dir, nil, say, args)
}

func talk(t testing.TB, program, dir string, env []string, say string, args []string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), env...)
	// The end of its input would make the program close: it stays open until the
	// program ends because the other side closed.
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	fmt.Fprint(in, say)
	err = cmd.Wait()
	if ctx.Err() != nil {
		t.Fatalf("judge: %s %s: no end after %v: %v\n%s", program, strings.Join(args, " "), patience, err, out.String())
	}
	return out.String()
}
