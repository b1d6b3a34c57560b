// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"fmt"
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
	admin, box, send := freePort(t), freePort(t), freePort(t)
	_, centrePort, err := net.SplitHostPort(centre.Address)
	if err != nil {
		t.Fatal(err)
	}
	config := filepath.Join(dir, "kannel.conf")
	text := fmt.Sprintf(`group = core
admin-port = %d
admin-port-ssl = false
admin-interface = 127.0.0.1
admin-password = x
smsbox-port = %d
smsbox-interface = 127.0.0.1
box-deny-ip = "*.*.*.*"
box-allow-ip = "127.0.0.1"
store-type = file
store-location = %s

group = smsc
smsc = smpp
smsc-id = centre
host = 127.0.0.1
port = %s
smsc-username = tamga
smsc-password = secret12
system-type = ""
transceiver-mode = true

group = smsbox
bearerbox-host = 127.0.0.1
sendsms-port = %d
sendsms-interface = 127.0.0.1

group = sendsms-user
username = tamga
password = "%s"
max-messages = 10
concatenation = true

group = sms-service
keyword = default
max-messages = 0
text = ""
`, admin, box, filepath.Join(dir, "store"), centrePort, send, KannelPassword)
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
	wait(t, fmt.Sprintf("http://127.0.0.1:%d/status.txt", admin))
	run("/usr/sbin/smsbox")
	address = fmt.Sprintf("http://127.0.0.1:%d/cgi-bin/sendsms", send)
	wait(t, address)
	return address
}

// freePort returns a port that is free now.
func freePort(t testing.TB) int {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
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
