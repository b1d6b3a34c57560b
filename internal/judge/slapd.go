// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// Slapd is a directory of OpenLDAP with its own configuration and data.
type Slapd struct {
	URL string // ldap://HOST:PORT

	t       testing.TB
	dir     string
	args    []string
	running *exec.Cmd
	log     bytes.Buffer
}

// The administrator of the directory, who reads and changes everything.
const (
	SlapdBase     = "dc=example,dc=org"
	SlapdAdmin    = "cn=admin," + SlapdBase
	SlapdPassword = "slapd-secret"
)

// RunSlapd starts slapd on loopback with entries (LDIF). certificate and key are PEM files for StartTLS, "" for none.
// If memberOf is true, people have the attribute memberOf of groups that are added by Modify: slapadd calls no overlay.
func RunSlapd(t testing.TB, certificate, key, ldif string, memberOf bool) *Slapd {
	t.Helper()
	for _, program := range []string{"/usr/sbin/slapd", "/usr/sbin/slapadd"} {
		if _, err := os.Stat(program); err != nil {
			missing(t, program+" is not installed (Debian: slapd)")
		}
	}
	s := &Slapd{t: t, dir: t.TempDir()}
	data := filepath.Join(s.dir, "data")
	if err := os.Mkdir(data, 0o700); err != nil {
		t.Fatal(err)
	}
	text := "include /etc/ldap/schema/core.schema\ninclude /etc/ldap/schema/cosine.schema\ninclude /etc/ldap/schema/inetorgperson.schema\n" +
		"modulepath /usr/lib/ldap\nmoduleload back_mdb\nmoduleload memberof\npidfile " + filepath.Join(s.dir, "pid") + "\n"
	if certificate != "" {
		text += "TLSCACertificateFile " + certificate + "\nTLSCertificateFile " + certificate + "\nTLSCertificateKeyFile " + key + "\n"
	}
	text += "sizelimit 500\ndatabase mdb\nmaxsize 4294967296\nsuffix \"" + SlapdBase + "\"\nrootdn \"" + SlapdAdmin + "\"\nrootpw " + SlapdPassword + "\ndirectory " + data +
		"\nindex objectClass,entryUUID eq\nindex uid,member eq\ndbnosync\n"
	if memberOf {
		text += "index memberOf eq\noverlay memberof\nmemberof-group-oc groupOfNames\nmemberof-member-ad member\nmemberof-memberof-ad memberOf\n"
	}
	config := filepath.Join(s.dir, "slapd.conf")
	write(t, config, []byte(text))
	write(t, filepath.Join(s.dir, "entries.ldif"), []byte("dn: "+SlapdBase+"\nobjectClass: dcObject\nobjectClass: organization\ndc: example\no: Example\n\n"+ldif))
	if out, err := exec.Command("/usr/sbin/slapadd", "-q", "-f", config, "-l", filepath.Join(s.dir, "entries.ldif")).CombinedOutput(); err != nil {
		t.Fatalf("judge: slapadd: %v\n%.4000s", err, out)
	}
	const host = "127.0.0.1"
	port := freePort(t, host)
	s.URL = fmt.Sprintf("ldap://%s:%d", host, port)
	s.args = []string{"-d", "0", "-f", config, "-h", s.URL}
	s.Start()
	t.Cleanup(s.Stop)
	return s
}

// Start starts it again after Stop, and waits until it answers.
func (s *Slapd) Start() {
	s.t.Helper()
	s.running = exec.Command("/usr/sbin/slapd", s.args...)
	s.running.Stdout, s.running.Stderr = &s.log, &s.log
	if err := s.running.Start(); err != nil {
		s.t.Fatalf("judge: slapd: %v", err)
	}
	for end := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		if exec.Command("/usr/bin/ldapwhoami", "-x", "-H", s.URL).Run() == nil {
			return
		}
		if time.Now().After(end) {
			s.t.Fatalf("judge: slapd does not answer: %s", s.log.String())
		}
	}
}

// Stop ends it.
func (s *Slapd) Stop() {
	if s.running == nil {
		return
	}
	s.running.Process.Signal(syscall.SIGTERM)
	s.running.Wait()
	s.running = nil
}

// Modify changes the directory (LDIF with changetype).
func (s *Slapd) Modify(ldif string) {
	s.t.Helper()
	cmd := exec.Command("/usr/bin/ldapmodify", "-x", "-H", s.URL, "-D", SlapdAdmin, "-w", SlapdPassword)
	cmd.Stdin = bytes.NewReader([]byte(ldif))
	if out, err := cmd.CombinedOutput(); err != nil {
		s.t.Fatalf("judge: ldapmodify: %v\n%s", err, out)
	}
}
