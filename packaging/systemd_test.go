// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// bootScript makes a Debian in the directory $1 the root of new namespaces, and starts systemd there. A container has a shared root
// because systemd mounts credentials of services from another namespace.
const bootScript = `set -e
root=$1
mount --bind "$root" "$root"
mount -t proc proc "$root/proc"
mount -t sysfs -o ro sysfs "$root/sys"
mount -t cgroup2 cgroup2 "$root/sys/fs/cgroup"
for dir in run tmp; do mount -t tmpfs -o mode=1777 tmpfs "$root/$dir"; done
mount -t tmpfs -o mode=755 tmpfs "$root/dev"
for n in null zero full random urandom tty; do touch "$root/dev/$n"; mount --bind "/dev/$n" "$root/dev/$n"; done
mkdir "$root/dev/pts" "$root/dev/shm" "$root/.host"
mount -t devpts -o newinstance,ptmxmode=0666 devpts "$root/dev/pts"
ln -s pts/ptmx "$root/dev/ptmx"
hostname tamga-test
cd "$root"
pivot_root . .host
umount -l /.host
mount --make-rshared /
exec env -i container=unshare PATH=/usr/sbin:/usr/bin:/sbin:/bin /lib/systemd/systemd --unit=multi-user.target
`

// booted starts systemd in a Debian, in namespaces of its own, with loopback as its network: servers there have the ports that
// administrators give them. It returns what runs a command inside. It skips the test on a machine that does not let systemd run.
func booted(t *testing.T, root string) (inside func(args ...string) (string, error)) {
	t.Helper()
	groups := t.TempDir()
	if err := syscall.Mount("none", groups, "cgroup2", 0, ""); err != nil {
		t.Skipf("this machine has no cgroup2: %v", err)
	}
	own := filepath.Join(groups, fmt.Sprint("tamga-test-", os.Getpid()))
	t.Cleanup(func() {
		// The processes are gone when their group can be removed.
		tick := time.NewTicker(50 * time.Millisecond)
		defer tick.Stop()
		for range 100 {
			if err := os.Remove(own); err == nil || os.IsNotExist(err) {
				break
			}
			var inner []string
			filepath.WalkDir(own, func(path string, e os.DirEntry, _ error) error {
				if e != nil && e.IsDir() && path != own {
					inner = append(inner, path)
				}
				return nil
			})
			for _, path := range slices.Backward(inner) {
				os.Remove(path)
			}
			<-tick.C
		}
		syscall.Unmount(groups, syscall.MNT_DETACH)
	})
	if err := os.Mkdir(own, 0o755); err != nil {
		t.Skipf("this machine lets no group of processes be made: %v", err)
	}
	group, err := os.Open(own)
	if err != nil {
		t.Fatal(err)
	}
	defer group.Close()
	var log bytes.Buffer
	cmd := exec.Command("unshare", "--mount", "--pid", "--fork", "--kill-child", "--uts", "--ipc", "--net", "--cgroup", "--propagation", "private", "sh", "-c", bootScript, "sh", root)
	cmd.Stdout, cmd.Stderr = &log, &log
	cmd.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(group.Fd())}
	if err := cmd.Start(); err != nil {
		t.Skipf("this machine makes no namespaces: %v", err)
	}
	t.Cleanup(func() {
		os.WriteFile(filepath.Join(own, "cgroup.kill"), []byte("1"), 0)
		cmd.Process.Kill()
		cmd.Wait()
	})
	inside = func(args ...string) (string, error) {
		children, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%[1]d/children", cmd.Process.Pid))
		if err != nil {
			return "", err
		}
		first := strings.TrimSpace(string(children))
		cmd := exec.Command("nsenter", append([]string{"-t", first, "-m", "-p", "-u", "-i", "-n", "-C", "--"}, args...)...)
		cmd.Env = []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C.UTF-8", "DEBIAN_FRONTEND=noninteractive"} // no proxies of this machine
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	state := ""
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for range 600 {
		out, _ := inside("systemctl", "is-system-running")
		if state = strings.TrimSpace(out); state == "running" || state == "degraded" {
			return inside
		}
		<-tick.C
	}
	if os.Getenv("CI") == "true" {
		t.Fatalf("systemd says %q:\n%s", state, log.String())
	}
	t.Skipf("systemd does not run on this machine, it says %q:\n%s", state, log.String())
	return nil
}

// machine is a Debian that systemd has started.
type machine struct {
	t    *testing.T // the step that runs
	root string
	run  func(args ...string) (string, error)
}

// step runs a part of the test. The parts after a failed one would fail for its reason.
func (m *machine) step(name string, f func()) {
	whole := m.t
	if !whole.Run(name, func(t *testing.T) { m.t = t; f() }) {
		whole.FailNow()
	}
	m.t = whole
}

func (m *machine) inside(args ...string) string {
	m.t.Helper()
	out, err := m.run(args...)
	if err != nil {
		log, _ := m.run("journalctl", "--no-pager", "-n", "50", "-o", "cat")
		m.t.Fatalf("%s: %v\n%s\n%s", strings.Join(args, " "), err, out, log)
	}
	return strings.TrimSpace(out)
}

func (m *machine) sh(script string) string {
	m.t.Helper()
	return m.inside("sh", "-ec", script)
}

// refused runs a script that must fail, and returns its output.
func (m *machine) refused(script string) string {
	m.t.Helper()
	out, err := m.run("sh", "-ec", script)
	if err == nil {
		m.t.Errorf("%s succeeds:\n%s", script, out)
	}
	return out
}

func (m *machine) put(file, text string, mode os.FileMode) {
	m.t.Helper()
	file = filepath.Join(m.root, file)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		m.t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), mode); err != nil {
		m.t.Fatal(err)
	}
}

// asking are clients that come one request after the other: a new connection for each, over both versions of HTTP, and connections
// that are kept.
const asking = `stop=/run/enough
count() { n=0; while [ ! -e $stop ]; do curl -sSf -m 60 "$@" >/dev/null; n=$((n+1)); done; echo $n rounds of "$@"; }
count --http2 https://sign.example.org/healthz & a=$!
count --http1.1 https://sign.example.org/healthz & b=$!
count --http1.1 "https://sign.example.org/healthz?[1-50]" & c=$!
wait $a && wait $b && wait $c`

// served lets requests come while something is done. Each must succeed.
func (m *machine) served(do func()) {
	m.t.Helper()
	type result struct {
		out string
		err error
	}
	ended := make(chan result, 1)
	go func() {
		out, err := m.run("sh", "-ec", asking)
		ended <- result{out, err}
	}()
	do()
	m.inside("touch", "/run/enough")
	r := <-ended
	m.inside("rm", "/run/enough")
	if r.err != nil || strings.Count(r.out, " rounds of ") != 3 || strings.Contains("\n"+r.out, "\n0 rounds") {
		m.t.Errorf("a request failed: %v, %s", r.err, r.out)
	}
	m.t.Log(strings.TrimSpace(r.out))
}

func (m *machine) pid() string {
	m.t.Helper()
	return m.inside("systemctl", "show", "-p", "MainPID", "--value", "tamga")
}

// token signs a user in by password, as an application does. It returns the status of the answer and the token.
func (m *machine) token(login, password string) (status, token string) {
	m.t.Helper()
	out := m.inside("sh", "-ec", `curl -sS -w '\n%{http_code}' -u "shop:$(cat /etc/tamga/secrets/client-shop.secret)" -d grant_type=password -d username="$1" `+
		`--data-urlencode password="$2" -d resource=urn:cryptopro:dss:signserver:signserver https://sign.example.org/STS/oauth/token`, "sh", login, password)
	end := strings.LastIndex(out, "\n") + 1
	var answer struct {
		AccessToken string `json:"access_token"`
	}
	if err := json.Unmarshal([]byte(out[:end]), &answer); err != nil {
		m.t.Errorf("%s: %v", out, err)
	}
	return out[end:], answer.AccessToken
}

// signs lets the person of the directory sign a document, and OpenSSL with gost-engine verify the signature under roots.pem.
func (m *machine) signs() {
	m.t.Helper()
	status, token := m.token("anna", annaPassword)
	if status != "200" || token == "" {
		m.t.Fatalf("a person of the directory gets %s", status)
	}
	out := m.inside("sh", "-ec", `cd /srv/proof; echo Hello > doc; curl -sSf https://sign.example.org/SignServer/api/documents -H "Authorization: Bearer $1" -d '{"Content":"SGVsbG8K",`+
		`"Signature":{"Type":"CAdES","Parameters":{"Hash":"False","CADESType":"BES","IsDetached":"True"},"CertificateId":0,"PinCode":""}}' | tr -d '"' | base64 -d > doc.p7s; `+
		`openssl cms -engine gost -verify -cades -binary -inform DER -in doc.p7s -content doc -CAfile roots.pem 2>&1`, "sh", token)
	if !strings.Contains(out, "CAdES Verification successful") {
		m.t.Errorf("OpenSSL says: %s", out)
	}
}

// policyByGOST asks for the policy of user management through the front end.
const policyByGOST = `OPENSSL_CONF=/etc/tamga/gost-tls/openssl-gost.cnf curl -sSf -m 60 --cacert /etc/tamga/gost-tls/server-ca.pem https://sign.example.org:4430/STS/ums/policy `

// operatorByGOST lets the operator manage users with a GOST certificate.
func (m *machine) operatorByGOST() {
	m.t.Helper()
	out := m.sh(policyByGOST + `--cert /srv/proof/operator.pem --key /srv/proof/operator.key -w '\n%{ssl_verify_result}'`)
	if !strings.Contains(out, `"AvaliableIdentifierTypes"`) || !strings.HasSuffix(out, "\n0") {
		m.t.Errorf("the operator gets %s", out)
	}
}

// findings returns the exit code of the doctor and what it complains of.
func (m *machine) findings() (healthy bool, complaints string) {
	m.t.Helper()
	out, err := m.run("tamga-admin", "doctor", "--json")
	var said struct {
		Findings []struct{ State, Text, Remedy string }
	}
	if json.Unmarshal([]byte(out), &said) != nil {
		m.t.Fatalf("the doctor says %s", out)
	}
	for _, f := range said.Findings {
		if f.State != "ok" {
			complaints += fmt.Sprintf("%s: %s (%s)\n", f.State, f.Text, f.Remedy)
		}
	}
	return err == nil, complaints
}

// annaPassword is the password of a person in the directory.
const annaPassword = "anna's password, 1"

// debianTools are the programs beside the package: the ones in its manual, and clients.
const debianTools = "adduser,debconf,systemd,systemd-sysv,dbus,ca-certificates,curl,openssl,haproxy,libengine-gost-openssl,slapd"

// prepare makes a Debian with an authority for TLS, which the machine trusts, and a directory of people.
func prepare(t *testing.T) string {
	t.Helper()
	root := filepath.Join(t.TempDir(), "root")
	output(t, installed(t, "mmdebstrap"), "--quiet", "--variant=minbase", "--include="+debianTools, "bookworm", root)
	m := machine{t: t, root: root}
	m.put("etc/hosts", "127.0.0.1 localhost sign.example.org ldap.example.org\n", 0o644)
	m.put("root/issue", `#!/bin/sh -e
# issue NAME KEY CERTIFICATE
cd /root
openssl req -x509 -CA ca.pem -CAkey ca.key -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 365 -subj "/CN=$1" -extensions usr_cert \
  -addext "subjectAltName=DNS:$1" -keyout "$2" -out "$3"
`, 0o755)
	m.put("etc/systemd/system/slapd.service", `[Service]
Type=forking
User=openldap
AmbientCapabilities=CAP_NET_BIND_SERVICE
RuntimeDirectory=slapd
PIDFile=/run/slapd/slapd.pid
ExecStart=/usr/sbin/slapd -h ldaps:/// -f /etc/ldap/slapd.conf
`, 0o644)
	m.put("etc/ldap/slapd.conf", `include /etc/ldap/schema/core.schema
include /etc/ldap/schema/cosine.schema
include /etc/ldap/schema/inetorgperson.schema
modulepath /usr/lib/ldap
moduleload back_mdb
pidfile /run/slapd/slapd.pid
TLSCertificateFile /etc/ldap/tls.pem
TLSCertificateKeyFile /etc/ldap/tls.key
database mdb
maxsize 104857600
suffix "dc=example,dc=org"
rootdn "cn=admin,dc=example,dc=org"
rootpw slapd-secret
directory /srv/ldap
`, 0o644)
	person := func(uid, password string) string {
		return fmt.Sprintf("dn: uid=%[1]s,ou=people,dc=example,dc=org\nobjectClass: inetOrgPerson\nuid: %[1]s\ncn: %[1]s\nsn: %[1]s\ndisplayName: %[1]s\nuserPassword: %[2]s\n\n", uid, password)
	}
	m.put("srv/entries.ldif", `dn: dc=example,dc=org
objectClass: dcObject
objectClass: organization
dc: example
o: Example

dn: ou=people,dc=example,dc=org
objectClass: organizationalUnit
ou: people

dn: ou=groups,dc=example,dc=org
objectClass: organizationalUnit
ou: groups

`+person("anna", annaPassword)+person("boris", "boris's password, 1")+`dn: cn=signers,ou=groups,dc=example,dc=org
objectClass: groupOfNames
cn: signers
member: uid=anna,ou=people,dc=example,dc=org
`, 0o644)
	output(t, "chroot", root, "sh", "-ec", `
cd /root
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 365 -subj "/CN=Example CA" -keyout ca.key -out ca.pem
cp ca.pem /usr/local/share/ca-certificates/example.crt
update-ca-certificates
./issue ldap.example.org /etc/ldap/tls.key /etc/ldap/tls.pem
install -d -o openldap -g openldap /srv/ldap
slapadd -q -f /etc/ldap/slapd.conf -l /srv/entries.ldif
chown -R openldap:openldap /srv/ldap /etc/ldap/tls.key
systemctl disable haproxy`)
	return root
}

// moreSettings are the settings that the manual has for a directory and for the front end for GOST TLS.
const moreSettings = `drain_time: 0s
gost_tls: {socket: /run/tamga/gost.sock, front_end_user: haproxy}
directories:
- name: corp
  servers: [ldaps://ldap.example.org]
  bind_dn: cn=admin,dc=example,dc=org
  bind_password_file: secrets/ldap.secret
  base: ou=people,dc=example,dc=org
  group_base: dc=example,dc=org
  groups: [{dn: "cn=signers,ou=groups,dc=example,dc=org", group: Staff}]
`

// trySystemd makes an installation in a clean Debian that systemd has started, as the manual says, from the package to a removal:
// HTTPS on its own port, an upgrade, people of a directory, GOST TLS, what the doctor finds, backup, purge and restore. older is
// the package to begin with.
func trySystemd(t *testing.T, older, newer string) {
	installed(t, "mmdebstrap")
	if os.Getuid() != 0 {
		t.Skip("a clean Debian needs root")
	}
	root := prepare(t)
	output(t, "cp", older, root+"/root/older.deb")
	output(t, "cp", newer, root+"/root/newer.deb")
	m := &machine{t: t, root: root, run: booted(t, root)}
	ready := func() {
		m.t.Helper()
		m.inside("tamga", "ready", "--config", "/etc/tamga/tamga.yaml")
	}

	m.step("HTTPS", func() {
		m.inside("dpkg", "-i", "/root/older.deb")
		m.put("etc/systemd/system/tamga.socket.d/listen.conf", "[Socket]\nListenStream=\nListenStream=0.0.0.0:443\n", 0o644)
		m.sh("umask 077; /root/issue sign.example.org /etc/tamga/secrets/tls.key /etc/tamga/tls.pem && chmod 644 /etc/tamga/tls.pem")
		m.inside("tamga", "init", "--yes", "--public-url", "https://sign.example.org", "--listen", "0.0.0.0:443", "--tls-certificate", "/etc/tamga/tls.pem", "--tls-key", "/etc/tamga/secrets/tls.key",
			"--client", "shop", "--config", "/etc/tamga/tamga.yaml", "--data", "/var/lib/tamga", "--user", "tamga")
		m.inside("systemctl", "daemon-reload")
		m.inside("systemctl", "enable", "--now", "tamga.socket", "tamga") // Type=notify: it is ready
		ready()
		m.inside("curl", "-sSf", "-o", "/dev/null", "https://sign.example.org/readyz")
		if out := m.refused("curl -sS https://ldap.example.org/readyz"); !strings.Contains(out, "ldap.example.org") {
			m.t.Errorf("for another name: %s", out)
		}
	})

	m.step("upgrade", func() {
		m.inside("tamga-admin", "group", "add", "Before")
		roots, first := m.inside("tamga-admin", "ca", "export"), m.pid()
		m.inside("dpkg", "-i", "/root/newer.deb")
		ready()
		if m.pid() == first {
			m.t.Error("the service is the one from before")
		}
		if after := m.inside("tamga-admin", "ca", "export"); after != roots {
			m.t.Errorf("other roots after the upgrade:\n%s", after)
		}
		if groups := m.inside("tamga-admin", "group", "list"); !strings.Contains(groups, "Before") {
			m.t.Errorf("after the upgrade: %s", groups)
		}
		m.put("srv/proof/roots.pem", roots+"\n", 0o644)
		m.sh("chown tamga: /srv/proof")
	})

	// again installs the package once more, which starts the service again, and starts it again by itself.
	again := func() {
		first := m.pid()
		m.served(func() { m.inside("dpkg", "-i", "/root/newer.deb") })
		second := m.pid()
		m.served(func() { m.inside("systemctl", "restart", "tamga") })
		if third := m.pid(); first == second || second == third {
			m.t.Errorf("the service has the processes %s, %s and %s", first, second, third)
		}
	}
	m.step("no request lost", again)

	m.step("reload", func() {
		first := m.pid()
		m.sh("umask 077; /root/issue sign.example.org /etc/tamga/secrets/tls.key /etc/tamga/tls.pem && chmod 644 /etc/tamga/tls.pem")
		m.served(func() {
			m.inside("systemctl", "reload", "tamga")
			// systemd does not wait until the signal has had its effect.
			m.sh(`want=$(openssl x509 -noout -fingerprint -in /etc/tamga/tls.pem)
for i in $(seq 100); do
  got=$(openssl s_client -connect 127.0.0.1:443 -servername sign.example.org </dev/null 2>/dev/null | openssl x509 -noout -fingerprint)
  [ "$got" != "$want" ] || exit 0
  sleep 0.1
done
echo "the service has $got, want $want"
exit 1`)
		})
		if got := m.inside("stat", "-c", "%a %U %G", "/run/tamga-secrets/tls.key"); got != "440 root tamga" {
			m.t.Errorf("after a reload the secret is %s", got)
		}
		if got := m.pid(); got != first {
			m.t.Errorf("a reload has started the service again: %s, then %s", first, got)
		}
	})

	m.step("directory", func() {
		m.inside("systemctl", "start", "slapd")
		m.sh("umask 077; echo slapd-secret > /etc/tamga/secrets/ldap.secret")
		m.put("srv/more.yaml", moreSettings, 0o644)
		m.sh("cat /srv/more.yaml >> /etc/tamga/tamga.yaml")
		m.inside("tamga-admin", "config", "check")
		m.inside("tamga-admin", "group", "add", "Staff")
		if plan := m.inside("tamga-admin", "directory", "sync", "corp", "--dry-run"); !strings.Contains(plan, "anna") || strings.Contains(plan, "boris") {
			m.t.Errorf("the plan: %s", plan)
		}
		m.inside("tamga-admin", "directory", "sync", "corp")
		m.inside("systemctl", "restart", "tamga")
		for _, c := range []struct{ login, password, want string }{
			{"anna", annaPassword, "200"}, {"anna", "another password, 1", "400"}, {"boris", "boris's password, 1", "400"},
		} {
			if status, _ := m.token(c.login, c.password); status != c.want {
				m.t.Errorf("%s with %q gets %s, want %s", c.login, c.password, status, c.want)
			}
		}
		m.inside("tamga-admin", "cert", "issue", "anna", "--default")
		m.signs()
	})

	m.step("no request lost without a drain", again)

	m.step("GOST TLS", func() {
		m.inside("tamga", "gost-tls", "init", "--dir", "/etc/tamga/gost-tls", "--name", "sign.example.org", "--listen", ":4430", "--config", "/etc/tamga/tamga.yaml")
		m.inside("tamga", "gost-tls", "check", "--dir", "/etc/tamga/gost-tls", "--config", "/etc/tamga/tamga.yaml")
		m.put("etc/systemd/system/haproxy.service.d/tamga.conf", "[Service]\nEnvironment=OPENSSL_CONF=/etc/tamga/gost-tls/openssl-gost.cnf\nEnvironment=CONFIG=/etc/tamga/gost-tls/haproxy.cfg\n", 0o644)
		m.inside("systemctl", "daemon-reload")
		m.inside("systemctl", "enable", "--now", "haproxy")
		m.sh(`cd /srv/proof
export OPENSSL_CONF=/etc/tamga/gost-tls/openssl-gost.cnf
openssl genpkey -algorithm gost2012_256 -pkeyopt paramset:A -out operator.key
openssl req -new -md_gost12_256 -key operator.key -subj /CN=operator -out operator.csr`)
		m.inside("tamga-admin", "gost-tls", "certify", "/srv/proof/operator.csr", "-o", "/srv/proof/operator.pem")
		m.inside("tamga-admin", "operator", "certificate", "add", "operator", "/srv/proof/operator.pem")
		m.operatorByGOST()
		m.refused(policyByGOST)
		// Files of root beside the data do not hinder the service.
		m.inside("systemctl", "restart", "tamga")
		m.operatorByGOST()
	})

	m.step("doctor", func() {
		m.sh("cd /srv/proof; umask 077; echo correct horse battery staple > password; chown tamga: password")
		m.inside("tamga-admin", "operator", "add", "second", "--group", "Default", "--password-file", "/srv/proof/password")
		m.inside("rm", "/srv/proof/password")
		sound := func(when string) {
			m.t.Helper()
			if healthy, complaints := m.findings(); !healthy || complaints != "" {
				m.t.Errorf("%s the doctor says\n%s", when, complaints)
			}
		}
		sound("in a sound installation")
		const secrets = "/etc/tamga/secrets/"
		for _, c := range []struct{ name, broken, mended, want string }{
			{"directory away", "systemctl stop slapd", "systemctl start slapd", "the directory corp"},
			{"password of the directory", "cp -a " + secrets + "ldap.secret /srv; echo other > " + secrets + "ldap.secret", "mv /srv/ldap.secret " + secrets, "Invalid Credentials"},
			{"key of another certificate", "cp -a " + secrets + "tls.key /srv; cp /root/ca.key " + secrets + "tls.key", "mv /srv/tls.key " + secrets, "do not belong together"},
			{"no master key", "mv " + secrets + "master-1.key /srv", "mv /srv/master-1.key " + secrets, "master key 1"},
			{"open master key", "chmod 755 " + secrets + "; chmod 644 " + secrets + "master-1.key", "chmod 600 " + secrets + "master-1.key; chmod 700 " + secrets, "other users can read master key 1"},
			{"open directory of secrets", "chmod 777 " + secrets, "chmod 700 " + secrets, "other users can replace files"},
			{"front end kept out", "chmod 750 /run/tamga", "chmod 755 /run/tamga", "may not enter"},
			{"documents of another user", "chown root /var/lib/tamga/blobs", "chown tamga /var/lib/tamga/blobs", "blob_dir"},
			{"form of the configuration", "cp -a /etc/tamga/tamga.yaml /srv; echo 'listen: [' >> /etc/tamga/tamga.yaml", "mv /srv/tamga.yaml /etc/tamga", "yaml"},
			{"database of another user", "systemctl stop tamga.socket tamga; chown root: /var/lib/tamga/tamga.db", "chown tamga: /var/lib/tamga/tamga.db; systemctl start tamga.socket tamga",
				"give the file of the database and its directory to the user of the service"},
			{"port of another program", "systemctl stop tamga.socket tamga; systemd-run -q --unit other openssl s_server -accept 0.0.0.0:443 -www -cert /root/ca.pem -key /root/ca.key; " +
				"curl -sk -o /dev/null --retry 20 --retry-delay 1 --retry-connrefused https://127.0.0.1", "systemctl stop other; systemctl start tamga.socket tamga", "another program than this service"},
		} {
			m.sh(c.broken)
			if healthy, complaints := m.findings(); healthy || !strings.Contains(complaints, c.want) {
				m.t.Errorf("%s: the doctor says\n%s", c.name, complaints)
			}
			m.sh(c.mended)
		}
		sound("after all was mended")
		// systemd does not repeat what fails again.
		m.sh("cp -a /etc/tamga/tamga.yaml /srv; echo 'listen: [' >> /etc/tamga/tamga.yaml")
		m.refused("systemctl restart tamga")
		for property, want := range map[string]string{"ActiveState": "failed", "ExecMainStatus": "78", "NRestarts": "0"} {
			if got := m.inside("systemctl", "show", "-p", property, "--value", "tamga"); got != want {
				m.t.Errorf("with an invalid configuration %s is %s, want %s", property, got, want)
			}
		}
		m.sh("mv /srv/tamga.yaml /etc/tamga; systemctl restart tamga.socket tamga")
		ready()
	})

	m.step("backup", func() {
		m.inside("systemctl", "enable", "--now", "tamga-backup.timer")
		m.inside("systemctl", "start", "tamga-backup.service")
		m.sh("tamga-admin backup verify $(ls -d /var/backups/tamga/* | tail -n 1)")
		m.inside("cp", "-a", "/etc/tamga", "/srv/etc")
		m.inside("tamga-admin", "group", "add", "After")
	})

	m.step("kill", func() {
		first := m.pid()
		m.sh("kill -9 " + first)
		m.inside("curl", "-sSf", "-m", "60", "-o", "/dev/null", "https://sign.example.org/healthz") // systemd has the connection meanwhile
		if again := m.pid(); again == first || again == "0" {
			m.t.Errorf("the service does not start again: %s", again)
		}
	})

	m.step("purge and restore", func() {
		m.sh("echo tamga tamga/purge boolean true | debconf-set-selections")
		m.inside("dpkg", "-P", "tamga")
		m.sh("[ ! -e /etc/tamga ] && [ ! -e /var/lib/tamga ] && [ ! -e /usr/bin/tamga ]")
		m.refused("systemctl is-active tamga")
		m.inside("dpkg", "-i", "/root/newer.deb")
		m.sh("rm -r /etc/tamga && cp -a /srv/etc /etc/tamga && tamga-admin restore $(ls -d /var/backups/tamga/* | tail -n 1)")
		m.inside("systemctl", "enable", "--now", "tamga.socket", "tamga")
		if status, _ := m.token("anna", annaPassword); status != "503" {
			m.t.Errorf("before the release a person gets %s", status)
		}
		m.inside("tamga-admin", "restore", "release", "--yes")
		m.sh("for i in $(seq 100); do ! tamga ready --config /etc/tamga/tamga.yaml || exit 0; sleep 0.1; done; exit 1")
		if groups := m.inside("tamga-admin", "group", "list"); !strings.Contains(groups, "Before") || strings.Contains(groups, "After") {
			m.t.Errorf("after the restore: %s", groups)
		}
		m.signs()
		m.operatorByGOST()
		if healthy, complaints := m.findings(); !healthy || complaints != "" {
			m.t.Errorf("after the restore the doctor says\n%s", complaints)
		}
	})

	m.step("removal", func() {
		if failed := m.inside("systemctl", "--failed", "--no-legend", "--plain"); strings.Contains(failed, "tamga") {
			m.t.Errorf("failed units: %s", failed)
		}
		m.inside("dpkg", "-r", "tamga")
		m.refused("systemctl is-active tamga")
		m.refused("curl -sS https://sign.example.org/healthz")
	})
}
