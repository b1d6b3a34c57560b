// SPDX-License-Identifier: Apache-2.0

package extension

import (
	"bytes"
	"crypto"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"tamga/pki/suite"
	"tamga/pki/x509gost"
)

// box is the service of the key holder of a patch: the keys are in its memory, and never anywhere else.
type box struct {
	socket   string
	mu       sync.Mutex
	keys     map[string]boxKey
	asked    map[string]int // requests by kind
	listener net.Listener   // nil: the service is away
}

type boxKey struct {
	suite *suite.Suite
	key   crypto.Signer
	pin   []byte
}

func newBox(t *testing.T) *box {
	t.Helper()
	b := &box{socket: filepath.Join(t.TempDir(), "box"), keys: map[string]boxKey{}, asked: map[string]int{}}
	b.open(t)
	t.Cleanup(b.close)
	return b
}

func (b *box) open(t *testing.T) {
	t.Helper()
	listener, err := net.Listen("unix", b.socket)
	if err != nil {
		t.Fatal(err)
	}
	b.mu.Lock()
	b.listener = listener
	b.mu.Unlock()
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go b.serve(conn)
		}
	}()
}

func (b *box) close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.listener != nil {
		b.listener.Close()
		b.listener = nil
	}
}

// count returns how many keys the box has, and how many requests of a kind it has answered.
func (b *box) count(kind string) (keys, requests int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.keys), b.asked[kind]
}

func (b *box) serve(conn net.Conn) {
	defer conn.Close()
	var q struct {
		Do, ID, Suite string
		PIN, NewPIN   []byte
		Digests       [][]byte
	}
	if json.NewDecoder(conn).Decode(&q) != nil {
		return
	}
	var a struct {
		Public []byte
		Values [][]byte
		Error  string
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.asked[q.Do]++
	k, found := b.keys[q.ID]
	opens := found && bytes.Equal(k.pin, q.PIN)
	var err error
	switch {
	case q.Do == "ready":
	case q.Do == "delete":
		delete(b.keys, q.ID)
	case q.Do == "generate":
		k.suite, _ = suite.ByName(q.Suite)
		k.pin = q.PIN
		if k.key, err = k.suite.Generate(rand.Reader); err == nil {
			a.Public, err = x509gost.MarshalPublicKey(k.key.Public(), k.suite)
			b.keys[q.ID] = k
		}
	case !found:
		err = fmt.Errorf("no key %s", q.ID)
	case !opens:
		a.Error = "pin"
	case q.Do == "rewrap":
		k.pin = q.NewPIN
		b.keys[q.ID] = k
	case q.Do == "sign":
		for _, sum := range q.Digests {
			value, e := k.suite.Sign(rand.Reader, k.key, suite.Digest{Hash: k.suite.Hash, Sum: sum})
			a.Values, err = append(a.Values, value), e
		}
	}
	if err != nil {
		a.Error = err.Error()
	}
	_ = json.NewEncoder(conn).Encode(a) // a client that is gone asks again
}

// tryHolders has one installation with two holders: one in its database, and a service of its own. A key
// of each signs, is renewed and deleted. While the service is away, its keys alone are unavailable.
func tryHolders(t *testing.T, program string, p *process, b *box, token string) {
	type certificate struct {
		ID   int64
		PEM  string `json:"CertificateBase64"`
		Name string `json:"-"`
	}
	suites := map[string]string{"software": "gost2012-256", "box": "gost2012-512"}
	list := func() (ids map[string][]int64) {
		ids = map[string][]int64{}
		var all []certificate
		decode(t, p.do(t, "GET", p.dev.BaseURL+"/api/certificates", token, nil), &all)
		for _, c := range all {
			raw, err := x509gost.ParseCertificates([]byte(c.PEM))
			if err != nil || len(raw) != 1 {
				t.Fatalf("certificate %d: %v", c.ID, err)
			}
			ids[raw[0].Suite.Name] = append(ids[raw[0].Suite.Name], c.ID)
		}
		return ids
	}
	sign := func(id int64) *http.Response {
		return p.send(t, "POST", p.dev.BaseURL+"/api/documents", token, map[string]any{
			"Content":   []byte("a document"),
			"Signature": map[string]any{"Type": "CAdES", "Parameters": map[string]string{"IsDetached": "False"}, "CertificateId": id, "PinCode": ""},
		})
	}
	made, _ := b.count("")
	if made == 0 {
		t.Fatal("no key was made in the box")
	}
	for holder, su := range suites {
		id := list()[su][0]
		_, before := b.count("sign")
		answer := sign(id)
		var signature []byte
		decode(t, read(t, answer), &signature)
		if out, code := run(program, "verify", write(t, t.TempDir(), "signed.p7s", signature), "--data", p.dir); code != 0 {
			t.Errorf("%s: verify: exit code %d\n%s", holder, code, out)
		}
		if _, after := b.count("sign"); (after > before) != (holder == "box") {
			t.Errorf("%s: the box signed %d times", holder, after-before)
		}
		p.do(t, "POST", p.dev.BaseURL+"/api/requests", token, map[string]any{"AuthorityId": 1, "Parameters": map[string]any{"RequestType": "Renew", "ActiveCertId": id}})
		renewed := list()[su]
		successor := slices.Max(renewed)
		if successor == id {
			t.Fatalf("%s: the certificate %d was not renewed: %v", holder, id, renewed)
		}
		if answer := sign(successor); answer.StatusCode != http.StatusOK {
			t.Errorf("%s: the renewed key: %d %s", holder, answer.StatusCode, read(t, answer))
		}
		before, _ = b.count("")
		p.do(t, "DELETE", fmt.Sprint(p.dev.BaseURL, "/api/certificates/", id), token, nil)
		if slices.Contains(list()[su], id) {
			t.Errorf("%s: the certificate %d is still there", holder, id)
		}
		if answer := sign(id); answer.StatusCode == http.StatusOK {
			t.Errorf("%s: the deleted key signs", holder)
		}
		for holder == "box" { // what is deleted is destroyed at once, or within a minute
			if now, _ := b.count(""); now == before-1 {
				break
			}
			select {
			case <-p.done:
				t.Fatal("the server ended")
			case <-time.After(50 * time.Millisecond):
			}
		}
	}
	if out, code := run(program, "audit", "--operation", "CreateRequest", "--data", p.dir); code != 0 || !strings.Contains(out, "holder box") || !strings.Contains(out, "holder software") {
		t.Errorf("audit: exit code %d\n%s", code, out)
	}

	b.close()
	ids := list()
	for holder, want := range map[string]int{"software": http.StatusOK, "box": http.StatusServiceUnavailable} {
		answer := sign(slices.Max(ids[suites[holder]]))
		if answer.StatusCode != want || want != http.StatusOK && answer.Header.Get("Retry-After") == "" {
			t.Errorf("%s while the service is away: %d %s", holder, answer.StatusCode, read(t, answer))
		}
	}
	base, _, _ := strings.Cut(p.dev.BaseURL, "/SignServer")
	if answer := p.send(t, "GET", base+"/readyz", "", nil); answer.StatusCode != http.StatusOK {
		t.Errorf("/readyz: %d %s", answer.StatusCode, read(t, answer))
	}
	metrics := string(p.do(t, "GET", base+"/metrics", "", nil))
	for _, want := range []string{`tamga_key_holder_ready{holder="software"} 1`, `tamga_key_holder_ready{holder="box"} 0`} {
		if !strings.Contains(metrics, want) {
			t.Errorf("/metrics has no %s", want)
		}
	}
	b.open(t)
	if answer := sign(slices.Max(ids[suites["box"]])); answer.StatusCode != http.StatusOK {
		t.Errorf("the service is back: %d %s", answer.StatusCode, read(t, answer))
	}
}
