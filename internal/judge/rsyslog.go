// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Rsyslog is a receiver of syslog: rsyslogd with its own configuration and directory.
type Rsyslog struct {
	Address string // HOST:PORT; the same after Stop and Start

	t       testing.TB
	dir     string
	program string
	running *exec.Cmd
	log     bytes.Buffer
}

// Received is a message as rsyslog has read it.
type Received struct {
	Raw     string `json:"raw"`
	Host    string `json:"host"`
	App     string `json:"app"`
	Data    string `json:"data"` // structured data
	Message string `json:"message"`
}

// RsyslogTLS are the PEM files of a receiver with TLS, for the driver "ossl" (OpenSSL) or "gtls" (GnuTLS).
type RsyslogTLS struct {
	Driver, Authorities, Certificate, Key string
	ClientName                            string // clients must show a certificate with this name; "": they need none
}

// RunRsyslog starts rsyslogd. Without TLS it receives plain TCP.
func RunRsyslog(t testing.TB, secure *RsyslogTLS) *Rsyslog {
	t.Helper()
	r := &Rsyslog{t: t, dir: t.TempDir(), program: "/usr/sbin/rsyslogd"}
	if _, err := os.Stat(r.program); err != nil {
		missing(t, r.program+" is not installed (Debian: rsyslog)")
	}
	const host = "127.0.0.1" // certificates of tests name it
	port := freePort(t, host)
	r.Address = fmt.Sprintf("%s:%d", host, port)
	driver, global := "", ""
	if secure != nil {
		if driver = secure.Driver; driver != "" {
			if found, _ := filepath.Glob("/usr/lib/*/rsyslog/lmnsd_" + driver + ".so"); found == nil {
				missing(t, "the driver "+driver+" of rsyslog is not installed (Debian: rsyslog-openssl, rsyslog-gnutls)")
			}
		}
		global = fmt.Sprintf(` defaultNetstreamDriverCAFile="%s" defaultNetstreamDriverCertFile="%s" defaultNetstreamDriverKeyFile="%s"`, secure.Authorities, secure.Certificate, secure.Key)
		driver = fmt.Sprintf(` streamDriver.name="%s" streamDriver.mode="1" streamDriver.authMode="anon"`, secure.Driver)
		if secure.ClientName != "" {
			driver = fmt.Sprintf(` streamDriver.name="%s" streamDriver.mode="1" streamDriver.authMode="x509/name" permittedPeer=["%s"]`, secure.Driver, secure.ClientName)
		}
	}
	write(t, filepath.Join(r.dir, "rsyslog.conf"), []byte(fmt.Sprintf(`global(workDirectory="%[1]s" maxMessageSize="64k"%[2]s)
module(load="imtcp"%[3]s)
template(name="line" type="list" option.jsonf="on") {
  property(outname="raw" name="rawmsg" format="jsonf")
  property(outname="host" name="hostname" format="jsonf")
  property(outname="app" name="app-name" format="jsonf")
  property(outname="data" name="structured-data" format="jsonf")
  property(outname="message" name="msg" format="jsonf")
}
ruleset(name="all") { action(type="omfile" file="%[1]s/received" template="line") }
input(type="imtcp" address="%[4]s" port="%[5]d" ruleset="all")
`, r.dir, global, driver, host, port)))
	r.Start()
	t.Cleanup(r.Stop)
	return r
}

// Start starts it again after Stop, and waits until it listens.
func (r *Rsyslog) Start() {
	r.t.Helper()
	r.running = exec.Command(r.program, "-n", "-f", filepath.Join(r.dir, "rsyslog.conf"), "-i", filepath.Join(r.dir, "pid"))
	r.running.Stdout, r.running.Stderr = &r.log, &r.log
	if err := r.running.Start(); err != nil {
		r.t.Fatalf("judge: rsyslogd: %v", err)
	}
	for end := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		if conn, err := net.Dial("tcp", r.Address); err == nil {
			conn.Close()
			return
		}
		if time.Now().After(end) {
			r.t.Fatalf("judge: rsyslogd does not listen: %s", r.log.String())
		}
	}
}

// Stop ends it. Messages that it has taken are in its file then.
func (r *Rsyslog) Stop() {
	if r.running == nil {
		return
	}
	r.running.Process.Signal(syscall.SIGTERM) // it ignores SIGINT
	r.running.Wait()
	r.running = nil
}

// Received returns the messages that it has written.
func (r *Rsyslog) Received() (list []Received) {
	r.t.Helper()
	text, err := os.ReadFile(filepath.Join(r.dir, "received"))
	if err != nil && !os.IsNotExist(err) {
		r.t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		var m Received
		if !strings.HasSuffix(line, "\n") {
			break // it is being written
		}
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			r.t.Fatalf("judge: rsyslogd has written %q: %v", line, err)
		}
		list = append(list, m)
	}
	return list
}

// Await waits until enough reports true for the messages that were received.
func (r *Rsyslog) Await(enough func(list []Received) bool) []Received {
	r.t.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		list := r.Received()
		if enough(list) {
			return list
		}
		if time.Now().After(end) {
			r.t.Fatalf("judge: rsyslogd has received %d messages; its log:\n%s", len(list), r.log.String())
		}
	}
}
