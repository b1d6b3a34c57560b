// SPDX-License-Identifier: Apache-2.0

//go:build linux

package setup_test

import (
	"bufio"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"tamga/internal/adapter/store/storetest"
	"tamga/internal/tamgatest"
)

// sound is a sound installation. Tests break a copy of it.
type sound struct {
	t   *testing.T
	dir string
}

// newSound makes one with init, with nothing for the doctor to complain of.
func newSound(t *testing.T, flags ...string) *sound {
	t.Helper()
	s := &sound{t: t, dir: t.TempDir()}
	config := filepath.Join(s.dir, "tamga.yaml")
	server := &tamgatest.Server{T: t}
	server.MustRun(append([]string{"init", "--yes", "--public-url", "https://sign.example.org", "--listen", "127.0.0.1:0", "--config", config}, flags...)...)
	password := tamgatest.WriteFile(t, filepath.Join(s.dir, "password"), "correct horse battery staple\n")
	server.MustRun("operator", "add", "second", "--group", "Default", "--password-file", password, "--config", config)
	text := string(tamgatest.ReadFile(t, config)) + "trusted_proxies: [127.0.0.1]\n"
	tamgatest.WriteFile(t, config, text)
	return s
}

// copied returns a copy of the installation, and the path of its configuration.
func (s *sound) copied(t *testing.T) (dir, config string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "i")
	if out, err := exec.Command("cp", "-a", s.dir, dir).CombinedOutput(); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	return dir, filepath.Join(dir, "tamga.yaml")
}

// certificate makes a certificate for sign.example.org that ends after a time, and its key.
func certificate(t *testing.T, dir, name string, life time.Duration) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, DNSNames: []string{"sign.example.org"},
		NotBefore: time.Now().Add(-48 * time.Hour), NotAfter: time.Now().Add(life), IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageCRLSign | x509.KeyUsageDigitalSignature,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	tamgatest.WriteFile(t, filepath.Join(dir, name+".pem"), string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})))
	tamgatest.WriteFile(t, filepath.Join(dir, name+".key"), string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret})))
	parsed, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	list, err := x509.CreateRevocationList(rand.Reader, &x509.RevocationList{Number: big.NewInt(1), ThisUpdate: time.Now().Add(-48 * time.Hour), NextUpdate: time.Now().Add(life)}, parsed, key)
	if err != nil {
		t.Fatal(err)
	}
	tamgatest.WriteFile(t, filepath.Join(dir, name+".crl"), string(pem.EncodeToMemory(&pem.Block{Type: "X509 CRL", Bytes: list})))
}

// plainMail is a mail server without STARTTLS.
func plainMail(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				fmt.Fprint(conn, "220 mail.example.org ESMTP\r\n")
				lines := bufio.NewScanner(conn)
				for lines.Scan() {
					if strings.HasPrefix(lines.Text(), "QUIT") {
						return
					}
					fmt.Fprint(conn, "250 mail.example.org\r\n")
				}
			}()
		}
	}()
	return l.Addr().String()
}

// mostTime is the bound of a whole run.
const mostTime = 5 * time.Second

// alone measures one run at a time.
var alone sync.Mutex

// inTime checks that a run that took too long was slowed down by the machine: when it runs alone, it takes mostTime at most beside
// what the sound installation takes just then.
func (s *sound) inTime(t *testing.T, config string, flags []string) {
	t.Helper()
	alone.Lock()
	defer alone.Unlock()
	begun := time.Now()
	examine(t, filepath.Join(s.dir, "tamga.yaml"))
	base := time.Since(begun)
	begun = time.Now()
	examine(t, config, flags...)
	if took := time.Since(begun); took > mostTime+base {
		t.Errorf("it took %v, the sound one %v", took, base)
	}
}

// silent accepts connections and never answers.
func silent(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l.Addr().String() // the system accepts for it
}

// everythingSilent lets the port, mail, SMS, an identity provider, a bucket and time stamps be silent at once, so that the doctor
// waits for each of them as long as it ever does.
func everythingSilent(t *testing.T, dir, _ string) []string {
	key := tamgatest.WriteFile(t, filepath.Join(dir, "silent.key"), "abcdefgh\n")
	return set(
		"listen="+silent(t),
		"messages.mail={address: '"+silent(t)+"', from: tamga@example.org}",
		"messages.sms.smpp={address: '"+silent(t)+"', system_id: tamga, from: tamga, password_file: "+key+"}",
		"external=[{name: corp, title: Corp, issuer: 'http://"+silent(t)+"', client_id: tamga, claim: sub}]",
		"bucket={endpoint: 'http://"+silent(t)+"', region: a, name: a, access_key_file: "+key+", secret_key_file: "+key+", path_style: true}",
		"evidence={allow_networks: [127.0.0.1], tsp_services: [{name: main, url: 'https://"+silent(t)+"/tsp'}]}",
	)(t, dir, "")
}

// broken is an installation with one thing wrong.
type broken struct {
	name   string
	harm   func(t *testing.T, dir, config string) (flags []string)
	state  string // fault or warning
	text   string // the thing, in the finding
	remedy string
}

func set(flags ...string) func(*testing.T, string, string) []string {
	return func(*testing.T, string, string) (list []string) {
		for _, f := range flags {
			list = append(list, "--set", f)
		}
		return list
	}
}

// rewrite replaces a part of the configuration.
func rewrite(from, to string) func(*testing.T, string, string) []string {
	return func(t *testing.T, _, config string) []string {
		text := string(tamgatest.ReadFile(t, config))
		if !strings.Contains(text, from) {
			t.Fatalf("the configuration has no %q", from)
		}
		tamgatest.WriteFile(t, config, strings.Replace(text, from, to, 1))
		return nil
	}
}

// find runs doctor over each broken copy, and looks for the finding.
func (s *sound) find(t *testing.T, list []broken) {
	for _, c := range list {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir, config := s.copied(t)
			flags := c.harm(t, dir, config)
			begun := time.Now()
			found, code := examine(t, config, flags...)
			if time.Since(begun) > mostTime {
				s.inTime(t, config, flags)
			}
			has := false
			for _, f := range found {
				has = has || f.State == c.state && strings.Contains(f.Text, c.text) && strings.Contains(f.Remedy, c.remedy)
				if strings.ContainsRune(f.Text+f.Remedy, '\uFFFD') {
					t.Errorf("a broken character in %+v", f)
				}
			}
			if !has || (code != 0) != (c.state == "fault") {
				t.Errorf("exit code %d, no %s with %q and %q in:\n%+v", code, c.state, c.text, c.remedy, found)
			}
		})
	}
}

// TestBroken breaks sound installations over SQLite, one thing each.
func TestBroken(t *testing.T) {
	t.Parallel()
	s := newSound(t)
	if found, code := examine(t, filepath.Join(s.dir, "tamga.yaml")); code != 0 {
		t.Fatalf("the sound one: %+v", found)
	} else {
		for _, f := range found {
			if f.State != "ok" {
				t.Errorf("the sound one: %+v", f)
			}
		}
	}
	const nothing = "127.0.0.1:1"
	file := func(name string) func(dir string) string {
		return func(dir string) string { return filepath.Join(dir, name) }
	}
	key, database := file("secrets/master-1.key"), file("data/tamga.db")
	s.find(t, []broken{
		{"YAML", rewrite("listen:", "listen: [\nlisten:"), "fault", "yaml", "form of the file"},
		{"misspelt setting", rewrite("listen:", "lisen:"), "fault", "lisen", "correct the name"},
		{"value of another kind", rewrite("factor_delay: 24h", "factor_delay: [1]"), "fault", "factor_delay", ""},
		{"public_url without a scheme", rewrite("https://sign.example.org", "sign.example.org"), "fault", "public_url", "the address that people use"},
		{"every address", set("listen=0.0.0.0:8080", "public_url=''"), "fault", "public_url", "set public_url"},
		{"address of another machine", set("listen=192.0.2.1:8080"), "fault", "192.0.2.1", "an address of this machine"},
		{"port of another program", func(t *testing.T, _, _ string) []string {
			return []string{"--set", "listen=" + plainMail(t)}
		}, "fault", "another program", "ss -ltnp"},
		{"messages captured", set("messages.capture=true"), "warning", "shown to every client", "messages.capture"},
		{"no delay of factors", set("users.factor_delay=0s"), "warning", "at once", "users.factor_delay"},
		{"no master key", func(t *testing.T, dir, _ string) []string { return removed(t, key(dir)) }, "fault", "master key 1", "your copy"},
		{"short master key", func(t *testing.T, dir, _ string) []string { tamgatest.WriteFile(t, key(dir), "0123\n"); return nil }, "fault", "64 hexadecimal digits", "right file"},
		{"open master key", func(t *testing.T, dir, _ string) []string { return mode(t, key(dir), 0o644) }, "fault", "read by others", "chmod"},
		{"master key of another", func(t *testing.T, dir, _ string) []string {
			tamgatest.WriteFile(t, key(dir), strings.Repeat("0123456789abcdef", 4)+"\n")
			return nil
		}, "fault", "wrong master key", "put the master key back"},
		{"open directory of secrets", func(t *testing.T, dir, _ string) []string { return mode(t, filepath.Join(dir, "secrets"), 0o777) }, "fault", "other users can replace", "chmod go-w"},
		{"closed blob_dir", set("blob_dir=/proc/1"), "fault", "blob_dir", "user of the service"},
		{"spool_dir that cannot be made", set("spool_dir=/proc/nothing/spool"), "fault", "spool_dir", ""},
		{"full disk", fullDisk, "fault", "nothing can be written", "make room"},
		{"damaged file", func(t *testing.T, dir, _ string) []string {
			f, err := os.OpenFile(database(dir), os.O_WRONLY, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			for at := int64(3 * 4096); at < 40*4096; at += 4096 {
				f.WriteAt([]byte("damaged damaged damaged"), at)
			}
			return nil
		}, "fault", "", "restore the last backup"},
		{"no database any more", func(t *testing.T, dir, _ string) []string {
			tamgatest.WriteFile(t, database(dir), strings.Repeat("no SQLite", 1000))
			return nil
		}, "fault", "", "restore the last backup"},
		{"root file", func(t *testing.T, dir, _ string) []string {
			return []string{"--set", "evidence.root_files=[" + tamgatest.WriteFile(t, filepath.Join(dir, "root.pem"), "no certificate\n") + "]"}
		}, "fault", "evidence.root_files", "docs/config.md"},
		{"no TLS certificate", set("tls={certificate_file: gone.pem, key_file: gone.key}"), "fault", "tls.certificate_file", "correct the path"},
		{"key of another certificate", withTLS("one", "other", time.Hour*9999), "fault", "do not belong together", "its own key"},
		{"ended certificate", withTLS("one", "one", -time.Hour), "fault", "ended on", "replace the certificate"},
		{"certificate ends in three days", withTLS("one", "one", 72*time.Hour), "warning", "ends on", "replace the certificate"},
		{"mail server away", set("messages.mail={address: '" + nothing + "', from: tamga@example.org}"), "fault", "the mail server", "messages.mail"},
		{"mail without STARTTLS", func(t *testing.T, _, _ string) []string {
			return []string{"--set", "messages.mail={address: '" + plainMail(t) + "', from: tamga@example.org}"}
		}, "fault", "STARTTLS", "switch STARTTLS on"},
		{"message centre away", func(t *testing.T, dir, _ string) []string {
			return []string{"--set", "messages.sms.smpp={address: '" + nothing + "', system_id: tamga, from: tamga, password_file: " + tamgatest.WriteFile(t, filepath.Join(dir, "smpp"), "secret\n") + "}"}
		}, "fault", "the SMS service", "messages.sms"},
		{"identity provider away", set("external=[{name: corp, title: Corp, issuer: 'http://" + nothing + "', client_id: tamga, claim: sub}]"), "fault", "the identity provider corp", "external"},
		{"collector of audit entries away", set("audit.export={address: '" + nothing + "', security: none}"), "fault", "the collector of audit entries", "audit.export.address"},
		{"directory away", set("directories=[{name: corp, servers: ['ldap://" + nothing + "'], base: 'dc=example', default_group: Default}]"), "fault", "the directory corp", "directories"},
		{"collector away", set("tracing.endpoint=http://" + nothing), "warning", "collector of traces", "tracing.endpoint"},
		{"stamps away", set("evidence={allow_networks: [127.0.0.1], tsp_services: [{name: main, url: 'http://" + nothing + "/tsp'}]}"), "warning", "the time-stamp service main", "firewall"},
		{"stamps in a network that is not allowed", set("evidence.tsp_services=[{name: main, url: 'http://" + nothing + "/tsp'}]"), "warning", "the time-stamp service main", "evidence.allow_networks"},
		{"everything silent", everythingSilent, "fault", "the mail server", "messages.mail"},
		{"ended list of operators", func(t *testing.T, dir, _ string) []string {
			certificate(t, dir, "operators", -time.Hour)
			return []string{"--set", "operator_certificates={authorities_file: operators.pem, revocation_files: [operators.crl]}"}
		}, "fault", "operator_certificates.revocation_files[0]", "present list"},
		{"bucket away", func(t *testing.T, dir, _ string) []string {
			k := tamgatest.WriteFile(t, filepath.Join(dir, "bucket.key"), "abcdefgh\n")
			return []string{"--set", "bucket={endpoint: 'http://" + nothing + "', region: a, name: a, access_key_file: " + k + ", secret_key_file: " + k + ", path_style: true}"}
		}, "fault", "documents cannot be kept", "bucket.endpoint"},
		{"front end may not enter", func(t *testing.T, dir, _ string) []string {
			return []string{"--set", "gost_tls={socket: '" + filepath.Join(dir, "secrets", "front.sock") + "', front_end_user: daemon}"}
		}, "fault", "may not enter", "chmod o+x"},
	})
	t.Run("no operator", func(t *testing.T) {
		t.Parallel()
		dir, config := s.copied(t)
		server := &tamgatest.Server{T: t}
		server.MustRun("operator", "delete", "second", "--yes", "--config", config)
		server.MustRun("operator", "delete", "operator", "--yes", "--config", config)
		_ = dir
		found, code := examine(t, config)
		has := false
		for _, f := range found {
			has = has || f.State == "warning" && f.Text == "there is no operator"
		}
		if !has || code != 0 {
			t.Errorf("exit code %d, %+v", code, found)
		}
	})
	t.Run("file of another user", func(t *testing.T) {
		t.Parallel()
		if os.Getuid() != 0 {
			t.Skip("only root makes files of others")
		}
		dir, config := s.copied(t)
		open := filepath.Dir(dir)
		for ; open != "/" && strings.HasPrefix(open, os.TempDir()+"/"); open = filepath.Dir(open) {
			os.Chmod(open, 0o755)
		}
		if out, err := exec.Command("chown", "-R", "daemon", dir).CombinedOutput(); err != nil {
			t.Fatalf("%v %s", err, out)
		}
		if err := os.Chown(filepath.Join(dir, "data", "tamga.db"), 0, 0); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(filepath.Join(dir, "data", "tamga.db"), 0o600); err != nil {
			t.Fatal(err)
		}
		cmd := tamgatest.ProcessOf(t, "doctor", "--config", config)
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 1, Gid: 1}}
		cmd.Dir = dir
		program := filepath.Join(dir, "program") // the directory of tests is closed to others
		if out, err := exec.Command("cp", cmd.Path, program).CombinedOutput(); err != nil {
			t.Fatalf("%v %s", err, out)
		}
		cmd.Path = program
		out, err := cmd.CombinedOutput()
		if err == nil || !strings.Contains(string(out), "give the file of the database and its directory to the user of the service") {
			t.Errorf("%v\n%s", err, out)
		}
	})
}

// TestBrokenBehindCredentials opens secrets of which the doctor gets closed copies, as tamga-admin gives them.
func TestBrokenBehindCredentials(t *testing.T) {
	s := newSound(t)
	dir, config := s.copied(t)
	given := t.TempDir()
	secrets := filepath.Join(dir, "secrets")
	if out, err := exec.Command("cp", "-r", secrets+"/.", given).CombinedOutput(); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	t.Setenv("CREDENTIALS_DIRECTORY", given)
	want := func(text, remedy string) {
		t.Helper()
		found, code := examine(t, config)
		has := code == 0 && text == ""
		for _, f := range found {
			has = has || text != "" && code == 1 && strings.Contains(f.Text, text) && f.Remedy == remedy
		}
		if !has {
			t.Errorf("want %q, %q; exit code %d, %+v", text, remedy, code, found)
		}
	}
	key := filepath.Join(secrets, "master-1.key")
	want("", "")
	mode(t, key, 0o644)
	want("other users can read master key 1 in "+key, "chmod 600 "+key)
	mode(t, key, 0o600)
	mode(t, secrets, 0o777)
	want("other users can replace files in "+secrets, "chmod go-w "+secrets)
}

func removed(t *testing.T, file string) []string {
	t.Helper()
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	return nil
}

func mode(t *testing.T, file string, m os.FileMode) []string {
	t.Helper()
	if err := os.Chmod(file, m); err != nil {
		t.Fatal(err)
	}
	return nil
}

// withTLS sets a certificate that ends after a time, with the key of one of two.
func withTLS(name, key string, life time.Duration) func(*testing.T, string, string) []string {
	return func(t *testing.T, dir, _ string) []string {
		certificate(t, dir, "one", life)
		certificate(t, dir, "other", life)
		return []string{"--set", "tls={certificate_file: " + name + ".pem, key_file: " + key + ".key}"}
	}
}

// fullDisk puts blob_dir on a disk without a free byte.
func fullDisk(t *testing.T, dir, _ string) []string {
	t.Helper()
	full := filepath.Join(dir, "full")
	if err := os.Mkdir(full, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount("tmpfs", full, "tmpfs", 0, "size=64k"); err != nil {
		t.Skipf("a small disk cannot be mounted here: %v", err)
	}
	t.Cleanup(func() { syscall.Unmount(full, syscall.MNT_DETACH) })
	f, err := os.Create(filepath.Join(full, "filler"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for err == nil {
		_, err = f.Write(make([]byte, 4096))
	}
	return []string{"--set", "blob_dir=full"}
}

// TestBrokenPostgres breaks an installation over PostgreSQL with TLS.
func TestBrokenPostgres(t *testing.T) {
	t.Parallel()
	g := storetest.GuardedPostgreSQL(t)
	const role, password = "daemon", "right"
	address := g.Owned(t, role, password)
	tcp := strings.Replace(address.TCP, ":"+password+"@", "@", 1)
	dir := t.TempDir()
	right := tamgatest.WriteFile(t, filepath.Join(dir, "right"), password+"\n")
	wrong := tamgatest.WriteFile(t, filepath.Join(dir, "wrong"), "wrong\n")
	s := newSound(t, "--database", tcp, "--database-password-file", right)
	if found, code := examine(t, filepath.Join(s.dir, "tamga.yaml")); code != 0 || strings.Contains(fmt.Sprint(found), "warning") {
		t.Fatalf("the sound one: %+v", found)
	}
	bare := tcp[:strings.Index(tcp, "?")]
	database := filepath.Base(bare)
	other := func(name string) string { return strings.Replace(tcp, "/"+database+"?", "/"+name+"?", 1) }
	nameOf := func(a storetest.Addresses) string {
		return filepath.Base(a.TCP[:strings.Index(a.TCP, "?")])
	}
	empty := nameOf(g.Owned(t, "games", password))
	g.Do(t, "ALTER DATABASE "+empty+" OWNER TO "+role)
	latin := nameOf(g.Owned(t, "bin", password, "ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0"))
	g.Do(t, "ALTER DATABASE "+latin+" OWNER TO "+role)
	// Tables that the role may not use, and tables of another role that it may use.
	denied, lent := nameOf(g.Owned(t, "sys", password)), nameOf(g.Owned(t, "man", password))
	for user, name := range map[string]string{"sys": denied, "man": lent} {
		file := tamgatest.WriteFile(t, filepath.Join(dir, user), password+"\n")
		(&tamgatest.Server{T: t}).MustRun("migrate", "--config", filepath.Join(s.dir, "tamga.yaml"),
			"--set", "database="+strings.Replace(other(name), role+"@", user+"@", 1), "--set", "database_password_file="+file)
	}
	g.In(t, lent, "GRANT ALL ON ALL TABLES IN SCHEMA public TO "+role)
	s.find(t, []broken{
		{"nothing listens", set("database=postgres://daemon@127.0.0.1:1/tamga?sslmode=verify-full"), "fault", "connection refused", "start the database server"},
		{"wrong password", set("database_password_file=" + wrong), "fault", "password authentication failed", "ALTER ROLE"},
		{"no such database", set("database=" + other("gone")), "fault", "does not exist", "createdb"},
		{"permission denied", set("database=" + other(denied)), "fault", "permission denied", "own the database"},
		{"tables of another owner", set("database=" + other(lent)), "fault", "belong to the role man", "REASSIGN OWNED"},
		{"no sslmode", set("database=" + bare), "warning", "no sslmode", "sslmode=verify-full"},
		{"authority unknown", set("database=" + bare + "?sslmode=verify-full"), "fault", "unknown authority", "sslrootcert"},
		{"empty", set("database=" + other(empty)), "fault", "no tables", "tamga migrate"},
		{"encoding", set("database=" + other(latin)), "fault", "LATIN1", "make another database"},
	})
}
