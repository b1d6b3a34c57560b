// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// KannelPassword is the password of the user "tamga" at Kannel.
const KannelPassword = "gate&way="

// Kannel runs the SMS gateway of that name, which accepts HTTP and sends by SMPP to
// centre. It returns the address of its HTTP interface.
func Kannel(t testing.TB, centre *Centre) (address string) {
	t.Helper()
	for _, program := range []string{"/usr/sbin/bearerbox", "/usr/sbin/smsbox"} {
		if _, err := os.Stat(program); err != nil {
			missing(t, program+" is not installed (Debian: kannel)")
		}
	}
	dir := t.TempDir()
	host := ownHost()
	admin, box, send := freePort(t, host), freePort(t, host), freePort(t, host)
	_, centrePort, err := net.SplitHostPort(centre.Address)
	if err != nil {
		t.Fatal(err)
	}
	config := filepath.Join(dir, "kannel.conf")
	text := fmt.Sprintf(`group = core
admin-port = %[2]d
admin-port-ssl = false
admin-interface = %[1]s
admin-password = x
smsbox-port = %[3]d
smsbox-interface = %[1]s
box-deny-ip = "*.*.*.*"
box-allow-ip = "127.0.0.1"
store-type = file
store-location = %[4]s

group = smsc
smsc = smpp
smsc-id = centre
host = 127.0.0.1
port = %[5]s
smsc-username = tamga
smsc-password = secret12
system-type = ""
transceiver-mode = true

group = smsbox
bearerbox-host = %[1]s
sendsms-port = %[6]d
sendsms-interface = %[1]s

group = sendsms-user
username = tamga
password = "%[7]s"
max-messages = 10
concatenation = true

group = sms-service
keyword = default
max-messages = 0
text = ""
`, host, admin, box, filepath.Join(dir, "store"), centrePort, send, KannelPassword)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	run := func(program string) {
		cmd := exec.Command(program, "-v", "3", config)
		cmd.Dir = dir
		log, err := os.Create(filepath.Join(dir, filepath.Base(program)+".log"))
		if err != nil {
			t.Fatal(err)
		}
		cmd.Stdout, cmd.Stderr = log, log
		if err := cmd.Start(); err != nil {
			t.Fatalf("judge: %s: %v", program, err)
		}
		t.Cleanup(func() {
			cmd.Process.Kill()
			cmd.Wait()
			log.Close()
			if t.Failed() {
				said, _ := os.ReadFile(log.Name())
				t.Logf("judge: %s says:\n%s", filepath.Base(program), said)
			}
		})
	}
	run("/usr/sbin/bearerbox")
	wait(t, fmt.Sprintf("http://%s:%d/status.txt", host, admin))
	run("/usr/sbin/smsbox")
	address = fmt.Sprintf("http://%s:%d/cgi-bin/sendsms", host, send)
	wait(t, address)
	return address
}

// ownHost returns an address of this machine that no other test has. A port that is free
// there stays free: connections and servers of other tests are at other addresses.
func ownHost() string {
	return fmt.Sprintf("127.%d.%d.%d", 1+rand.N(250), rand.N(250), 1+rand.N(250))
}

// freePort returns a port of a host that is free now.
func freePort(t testing.TB, host string) int {
	t.Helper()
	listener, err := net.Listen("tcp", net.JoinHostPort(host, "0"))
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().(*net.TCPAddr).Port
}

// wait waits until a server answers at an address.
func wait(t testing.TB, address string) {
	t.Helper()
	client := http.Client{Timeout: time.Second}
	for begun := time.Now(); ; time.Sleep(20 * time.Millisecond) {
		response, err := client.Get(address)
		if err == nil {
			response.Body.Close()
			return
		}
		if time.Since(begun) > patience {
			t.Fatalf("judge: nothing answers at %s: %v", address, err)
		}
	}
}
