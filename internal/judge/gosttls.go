// SPDX-License-Identifier: Apache-2.0

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

// HAProxy runs HAProxy (Debian: haproxy) with a configuration until the test ends. The
// OpenSSL configuration loads gost-engine. HAProxy returns when the program accepts
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
	deadline := time.After(patience)
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
			t.Fatalf("judge: haproxy ended before it accepted connections: %v\n%s", err, out.String())
		case <-deadline:
			t.Fatalf("judge: haproxy accepted no connections in %v", patience)
		case <-tick.C: // the only way to learn that it listens is to connect
		}
	}
}

// HAProxyProgram returns the path of the haproxy program.
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

// GnuTLS returns the path of gnutls-cli (Debian: gnutls-bin), which supports GOST-TLS
// without gost-engine.
func GnuTLS(t testing.TB) string {
	t.Helper()
	program, err := exec.LookPath("gnutls-cli")
	if err != nil {
		missing(t, "the gnutls-cli program is not installed (Debian: gnutls-bin)")
	}
	return program
}

// Talk connects with "openssl s_client" and the arguments and sends say. It returns the
// output on both streams until the server closes, whether or not the handshake succeeded.
func (tool *Tool) Talk(say string, args ...string) string {
	return talk(tool.t, tool.program, tool.Dir, []string{"OPENSSL_CONF=" + tool.conf}, say, append([]string{"s_client", "-ign_eof"}, args...))
}

// TalkGnuTLS is Talk with gnutls-cli.
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
	// At the end of its input the program would close. The input stays open until the
	// program ends because the server closed.
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
		t.Fatalf("judge: %s %s: still running after %v: %v\n%s", program, strings.Join(args, " "), patience, err, out.String())
	}
	return out.String()
}
