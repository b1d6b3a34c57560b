// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"bufio"
	_ "embed"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

//go:embed node/smppcentre.js
var centreProgram []byte

// Centre is a message centre of the npm package smpp 0.5.1, run by Node.js on loopback.
// It accepts the system "tamga" with the password "secret12".
type Centre struct {
	Address string
	t       testing.TB
	lines   chan []byte
}

// Short is a short message as the centre parsed it.
type Short struct {
	From    string  `json:"from"`
	FromTON int     `json:"from_ton"`
	FromNPI int     `json:"from_npi"`
	To      string  `json:"to"`
	ToTON   int     `json:"to_ton"`
	ToNPI   int     `json:"to_npi"`
	Coding  int     `json:"coding"`
	Text    string  `json:"text"`
	Parts   [][]int `json:"parts"` // elements of the user data header
}

// SMPPCentre starts a centre. refuse maps numbers to the SMPP status that refuses them.
func SMPPCentre(t testing.TB, refuse map[string]uint32) *Centre {
	t.Helper()
	node, err := exec.LookPath("node")
	if err != nil {
		missing(t, "the node program is not installed (Debian: nodejs, npm)")
	}
	cache, err := os.UserCacheDir()
	modules := filepath.Join(cache, "tamga-judges", "smpp", "node_modules")
	if err == nil {
		_, err = os.Stat(filepath.Join(modules, "smpp"))
	}
	if err != nil {
		missing(t, `the npm package smpp is not there (npm install --prefix ~/.cache/tamga-judges/smpp smpp@0.5.1)`)
	}
	script := filepath.Join(t.TempDir(), "smppcentre.js")
	if err := os.WriteFile(script, centreProgram, 0o600); err != nil {
		t.Fatal(err)
	}
	list := ""
	for number, status := range refuse {
		list += fmt.Sprintf("%s:%d,", number, status)
	}
	cmd := exec.Command(node, script)
	cmd.Env = append(os.Environ(), "NODE_PATH="+modules, "REFUSE="+list)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatalf("judge: node: %v", err)
	}
	c := &Centre{t: t, lines: make(chan []byte, 1000)}
	t.Cleanup(func() {
		stdin.Close() // the program ends with its input
		for range c.lines {
		}
		cmd.Wait()
	})
	go func() {
		defer close(c.lines)
		for in := bufio.NewScanner(stdout); in.Scan(); {
			c.lines <- append([]byte(nil), in.Bytes()...)
		}
	}()
	var started struct{ Port int }
	c.next(&started)
	c.Address = fmt.Sprintf("127.0.0.1:%d", started.Port)
	return c
}

// Next waits for the next message and returns it.
func (c *Centre) Next() Short {
	c.t.Helper()
	var s Short
	c.next(&s)
	return s
}

// Receipt waits for the response to the receipt that follows each message and returns its
// status.
func (c *Centre) Receipt() int {
	c.t.Helper()
	var r struct {
		Receipt *int `json:"receipt"`
	}
	c.next(&r)
	if r.Receipt == nil {
		c.t.Fatal("judge: the centre reports a message instead of the response to its receipt")
	}
	return *r.Receipt
}

func (c *Centre) next(v any) {
	c.t.Helper()
	line, ok := <-c.lines
	if !ok {
		c.t.Fatal("judge: the message centre has ended")
	}
	if err := json.Unmarshal(line, v); err != nil {
		c.t.Fatalf("judge: unexpected output of the message centre: %q: %v", line, err)
	}
}
