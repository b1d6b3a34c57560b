// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"tamga/internal/adapter/store/storetest"
	"tamga/internal/app/dev"
	"tamga/internal/judge"
	"tamga/internal/tamgatest"
	"tamga/internal/testsize"
	"tamga/pki/ocsp"
	"tamga/pki/suite"
	"tamga/pki/x509gost"
)

// installation is an installation that tamga init made, with a user who can sign.
type installation struct {
	t              *testing.T
	dir, config    string
	secret         string // of the client app
	withPIN, plain int64  // certificates of petrov
}

// read returns a file as text.
func read(t *testing.T, name string) string { t.Helper(); return string(tamgatest.ReadFile(t, name)) }

const userPassword = "correct horse battery staple"

// initialize makes an installation with init and flags, and petrov.
func initialize(t *testing.T, flags ...string) *installation {
	t.Helper()
	i := initializeEmpty(t, flags...)
	i.people()
	return i
}

// initializeEmpty makes an installation with init and flags.
func initializeEmpty(t *testing.T, flags ...string) *installation {
	t.Helper()
	dir := t.TempDir()
	i := &installation{t: t, dir: dir, config: filepath.Join(dir, "etc", "tamga.yaml")}
	i.run(append([]string{"init", "--yes", "--public-url", "http://sign.example.org", "--listen", "127.0.0.1:0",
		"--data", filepath.Join(dir, "data"), "--client", "app"}, flags...)...)
	i.secret = strings.TrimSpace(read(t, filepath.Join(dir, "etc", "secrets", "client-app.secret")))
	return i
}

// people adds petrov and his certificates.
func (i *installation) people() {
	i.t.Helper()
	password := tamgatest.WriteFile(i.t, filepath.Join(i.dir, "password"), userPassword+"\n")
	pin := tamgatest.WriteFile(i.t, filepath.Join(i.dir, "pin"), "805173\n")
	i.run("user", "add", "petrov", "--group", "Default", "--password-file", password)
	i.plain = i.issue()
	i.withPIN = i.issue("--pin-file", pin)
}

func (i *installation) issue(flags ...string) int64 {
	i.t.Helper()
	var made struct{ ID int64 }
	if err := json.Unmarshal([]byte(i.run(append([]string{"cert", "issue", "petrov", "--json"}, flags...)...)), &made); err != nil {
		i.t.Fatal(err)
	}
	return made.ID
}

// run runs a command over the installation.
func (i *installation) run(args ...string) string {
	i.t.Helper()
	r := i.try(args...)
	if r.Failure != nil {
		i.t.Fatalf("tamga %s: %v\n%s%s", strings.Join(args, " "), r.Failure, r.Out, r.Err)
	}
	return r.Out
}

func (i *installation) try(args ...string) tamgatest.Result {
	return tamgatest.Run(context.Background(), "", append(args, "--config", i.config)...)
}

func (i *installation) serve() *tamgatest.Server {
	i.t.Helper()
	return serveText(i.t, i.config)
}

// serveText starts a server with a log that the test reads.
func serveText(t *testing.T, config string) *tamgatest.Server {
	t.Helper()
	return tamgatest.StartArgs(t, "serve", "--config", config, "--set", "log.format=text")
}

// token signs petrov in at a server.
func (i *installation) token(s *tamgatest.Server) (string, error) {
	form := url.Values{"grant_type": {"password"}, "username": {"petrov"}, "password": {userPassword}, "resource": {"urn:cryptopro:dss:signserver:signserver"}}
	request, err := http.NewRequest("POST", s.URL+"/STS/oauth/token", strings.NewReader(form.Encode()))
	if err != nil {
		return "", err
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	request.SetBasicAuth("app", i.secret)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	var answer struct {
		AccessToken string `json:"access_token"`
	}
	if err != nil || response.StatusCode != 200 || json.Unmarshal(body, &answer) != nil {
		return "", fmt.Errorf("no token: %d %s, %v", response.StatusCode, body, err)
	}
	return answer.AccessToken, nil
}

// post sends a request and returns its body if the status is 200.
func post(address, token, kind string, body []byte) ([]byte, error) {
	request, err := http.NewRequest("POST", address, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", kind)
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != 200 {
		err = fmt.Errorf("%s: %d %s", address, response.StatusCode, text)
	}
	return text, err
}

// sign signs "document" and returns the message.
func sign(s *tamgatest.Server, token string, body []byte) ([]byte, error) {
	answer, err := post(s.URL+"/SignServer/rest/api/documents", token, "application/json; charset=utf-8", body)
	if err != nil {
		return nil, err
	}
	var text string
	if err := json.Unmarshal(answer, &text); err != nil {
		return nil, err
	}
	return base64.StdEncoding.DecodeString(text)
}

// TestInit goes from nothing to a signature that OpenSSL verifies, and repeats init.
func TestInit(t *testing.T) {
	t.Parallel()
	i := initialize(t)
	for name, want := range map[string]os.FileMode{
		"etc/secrets": 0o700, "etc/secrets/master-1.key": 0o600, "etc/secrets/operator.password": 0o600,
		"etc/secrets/client-app.secret": 0o600, "etc/tamga.yaml": 0o640, "data": 0o700,
	} {
		info, err := os.Stat(filepath.Join(i.dir, name))
		if err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v, %v, want mode %o", name, info.Mode().Perm(), err, want)
		}
	}
	text := read(t, i.config)
	for _, want := range []string{"factor_delay: 24h\n", "second_operator: [gives_secret, weakens_policy, deletes]"} {
		if !strings.Contains(text, want) {
			t.Errorf("the configuration lacks %q:\n%s", want, text)
		}
	}
	i.run("config", "check")
	// The first operator sees the operator pages that are for administrators.
	var people []struct{ ID, Login string }
	if err := json.Unmarshal([]byte(i.run("operator", "list", "--json")), &people); err != nil || len(people) != 1 || !strings.Contains(text, fmt.Sprintf("administrators: [%q]", people[0].ID)) {
		t.Errorf("operators %+v, %v are not the administrators of the pages in:\n%s", people, err, text)
	}

	tool := judge.OpenSSL(t)
	server := i.serve()
	token, err := i.token(server)
	if err != nil {
		t.Fatal(err)
	}
	message, err := sign(server, token, signingBody(t, i.plain, ""))
	if err != nil {
		t.Fatal(err)
	}
	tool.Write("message", message)
	tool.Write("document", []byte("document"))
	tool.Write("roots.pem", []byte(i.run("ca", "export")))
	tool.Write("all.pem", []byte(i.run("ca", "export", "--all")))
	if _, err := tool.Run("cms", "-verify", "-binary", "-inform", "DER", "-in", "message", "-content", "document", "-CAfile", "roots.pem", "-certfile", "all.pem", "-out", "out"); err != nil {
		t.Error(err)
	}

	// Beside a running server nothing changes.
	var said struct {
		Steps []struct {
			What string
			Made bool
		}
		Next []string
	}
	if err := json.Unmarshal([]byte(i.run("init", "--json")), &said); err != nil || len(said.Steps) < 6 || len(said.Next) == 0 {
		t.Fatalf("%+v, %v", said, err)
	}
	for _, s := range said.Steps {
		if s.Made {
			t.Errorf("a repeated init made: %s", s.What)
		}
	}
	if !slices.ContainsFunc(said.Next, func(s string) bool {
		return strings.HasPrefix(s, "Operator operator sees groups") && strings.Contains(s, "pages.administrators in "+i.config)
	}) {
		t.Errorf("init does not name the administrator of the pages: %q", said.Next)
	}
	if out := i.run("init"); !strings.Contains(out, "nothing was changed") || !strings.Contains(out, "What comes next") {
		t.Errorf("a repeated init says:\n%s", out)
	}
	if read(t, i.config) != text {
		t.Error("a repeated init changed the configuration")
	}
	if err := server.Stop(); err != nil {
		t.Error(err)
	}

	// A lost master key is not replaced by a new one.
	key := filepath.Join(i.dir, "etc", "secrets", "master-1.key")
	if err := os.Rename(key, key+".away"); err != nil {
		t.Fatal(err)
	}
	if r := i.try("init"); r.Failure == nil || !strings.Contains(r.Failure.Error(), "put the file back") {
		t.Errorf("init without the master key: %v\n%s", r.Failure, r.Out)
	}
	// Another key under the same name is named as what it is.
	tamgatest.WriteFile(t, key, strings.Repeat("0123456789abcdef", 4)+"\n")
	if r := i.try("group", "list"); r.Failure == nil || !strings.Contains(r.Failure.Error(), "wrong master key") {
		t.Errorf("a command with another master key: %v", r.Failure)
	}
}

func last(words []string) string { return words[len(words)-1] }

// TestInitContinues stops init after each step, by removing what later steps made, and repeats it.
// TestNamesOfOthersNeedAnOperator checks that with the configuration of init no request alone makes a certificate in
// the name of another user, and that an operator sees what differs.
func TestNamesOfOthersNeedAnOperator(t *testing.T) {
	t.Parallel()
	i := initialize(t)
	server := i.serve()
	token, err := i.token(server)
	if err != nil {
		t.Fatal(err)
	}
	ask := func(path, body string) string {
		t.Helper()
		answer, err := post(server.URL+"/SignServer/api/"+path, token, "application/json", []byte(body))
		if err != nil {
			return err.Error()
		}
		return string(answer)
	}
	if out := ask("requests", `{"AuthorityId":1,"DistinguishedName":{"CN":"Romanov\u202e"}}`); !strings.Contains(out, "invalid_subject_name") {
		t.Errorf("a character of direction: %s", out)
	}
	var q struct {
		ID, CertificateID int64
		Status            string
	}
	if out := ask("requests", `{"AuthorityId":1,"DistinguishedName":{"CN":"Romanov","SNILS":"11223344595"}}`); json.Unmarshal([]byte(out), &q) != nil || q.Status != "PENDING" || q.CertificateID != 0 {
		t.Fatalf("a request in another name: %s", out)
	}
	var listed []struct {
		ID          int64
		Differences []struct{ Name, Asked, Registered string }
	}
	if err := json.Unmarshal([]byte(i.run("request", "list", "--json")), &listed); err != nil || len(listed) != 1 || len(listed[0].Differences) != 2 {
		t.Fatalf("%+v, %v", listed, err)
	}
	for _, d := range listed[0].Differences {
		if d.Name == "CN" && (d.Asked != "Romanov" || d.Registered != "petrov") || d.Name == "SNILS" && (d.Asked != "11223344595" || d.Registered != "") {
			t.Errorf("%+v", d)
		}
	}
	// Without a terminal nothing is certified without the word for it, whatever standard input says.
	before := i.run("cert", "list", "petrov")
	for _, flags := range [][]string{nil, {"--json"}} {
		if r := i.try(append([]string{"request", "approve", strconv.FormatInt(q.ID, 10)}, flags...)...); r.Failure == nil || !strings.Contains(r.Failure.Error(), "--yes") || !strings.Contains(r.Err, "CN: asked for Romanov, registered petrov") {
			t.Errorf("without --yes: %v\n%s%s", r.Failure, r.Out, r.Err)
		}
	}
	if after := i.run("cert", "list", "petrov"); after != before {
		t.Errorf("without --yes it certified:\n%s", after)
	}
	if r := i.try("request", "approve", strconv.FormatInt(q.ID, 10), "--yes"); r.Failure != nil || !strings.Contains(r.Err, "CN: asked for Romanov, registered petrov") || !strings.Contains(r.Err, "SNILS: asked for 11223344595, registered nothing") {
		t.Errorf("%v\n%s%s", r.Failure, r.Out, r.Err)
	}
	// An administrator who types a name is shown the differences.
	if r := i.try("cert", "issue", "petrov", "--subject", "CN=Romanov"); r.Failure != nil || !strings.Contains(r.Err, "CN: asked for Romanov, registered petrov") {
		t.Errorf("%v\n%s%s", r.Failure, r.Out, r.Err)
	}
	if r := i.try("cert", "issue", "petrov"); r.Failure != nil || strings.Contains(r.Err, "differs") {
		t.Errorf("%v\n%s%s", r.Failure, r.Out, r.Err)
	}
}

func TestInitContinues(t *testing.T) {
	t.Parallel()
	for _, left := range [][]string{
		{},
		{"etc/tamga.yaml"},
		{"etc/tamga.yaml", "etc/secrets/master-1.key"},
	} {
		first := t.TempDir()
		args := func(dir string) []string {
			return []string{"init", "--yes", "--public-url", "http://sign.example.org", "--config", filepath.Join(dir, "etc/tamga.yaml"), "--operator", "olga"}
		}
		(&tamgatest.Server{T: t}).MustRun(args(first)...)
		half := t.TempDir()
		for _, name := range left {
			if err := os.MkdirAll(filepath.Dir(filepath.Join(half, name)), 0o700); err != nil {
				t.Fatal(err)
			}
			tamgatest.WriteFile(t, filepath.Join(half, name), read(t, filepath.Join(first, name)))
		}
		out := (&tamgatest.Server{T: t}).MustRun(args(half)...)
		for _, name := range []string{"etc/tamga.yaml", "etc/secrets/master-1.key"} {
			state := "made "
			for _, have := range left {
				if have == name {
					state = "exists "
				}
			}
			found := false
			for line := range strings.Lines(out) {
				found = found || strings.HasPrefix(line, state) && strings.Contains(line, name)
			}
			if !found {
				t.Errorf("with %v: no line %s for %s:\n%s", left, state, name, out)
			}
		}
		s := &tamgatest.Server{T: t}
		if list := s.MustRun("operator", "list", "--config", filepath.Join(half, "etc/tamga.yaml")); !strings.Contains(list, "olga") {
			t.Errorf("with %v: no operator:\n%s", left, list)
		} else if id := last(strings.Fields(list)); !strings.Contains(read(t, filepath.Join(half, "etc/tamga.yaml")), "administrators: ["+strconv.Quote(id)+"]") {
			t.Errorf("with %v: operator %s is not the administrator of the pages", left, id)
		}
		// A configuration that is made anew for a database with operators names none of them: init says so.
		if err := os.Remove(filepath.Join(half, "etc/tamga.yaml")); err != nil {
			t.Fatal(err)
		}
		out = s.MustRun(args(half)...)
		if strings.Contains(read(t, filepath.Join(half, "etc/tamga.yaml")), "pages:") || !strings.Contains(out, "Name an operator in pages.administrators of ") {
			t.Errorf("with %v, the configuration anew:\n%s", left, out)
		}
	}
	// A wrong answer leaves no configuration behind.
	dir := t.TempDir()
	r := tamgatest.Run(t.Context(), "", "init", "--yes", "--public-url", "not an address", "--config", filepath.Join(dir, "tamga.yaml"))
	if names := tamgatest.Listing(t, dir); r.Failure == nil || len(names) > 0 {
		t.Errorf("%v leaves %q", r.Failure, names)
	}
}

// statusQuery returns an OCSP request for the issuing authority.
func (i *installation) statusQuery() []byte {
	i.t.Helper()
	var list []struct{ Name, PEM string }
	if err := json.Unmarshal([]byte(i.run("ca", "export", "--all", "--json")), &list); err != nil {
		i.t.Fatal(err)
	}
	named := map[string]*x509gost.Certificate{}
	for _, c := range list {
		block, _ := pem.Decode([]byte(c.PEM))
		if block == nil {
			i.t.Fatalf("%s: %q", c.Name, c.PEM)
		}
		var err error
		if named[c.Name], err = x509gost.ParseCertificate(block.Bytes); err != nil {
			i.t.Fatal(err)
		}
	}
	query, err := ocsp.CreateRequest(named["gost"], named["gost-root"], suite.SHA1, nil)
	if err != nil {
		i.t.Fatal(err)
	}
	return query
}

// load asks servers for signatures, tokens, time stamps, OCSP answers and revocation lists until stop is called, which returns how many
// were answered. Every failure is an error of the test.
func (i *installation) load(servers ...*tamgatest.Server) (stop func() int64) {
	i.t.Helper()
	token, err := i.token(servers[0])
	if err != nil {
		i.t.Fatal(err)
	}
	// A TimeStampReq (RFC 3161) for a digest by SHA-256.
	query := append([]byte("\x30\x36\x02\x01\x01\x30\x31\x30\x0d\x06\x09\x60\x86\x48\x01\x65\x03\x04\x02\x01\x05\x00\x04\x20"), make([]byte, 32)...)
	status := i.statusQuery()
	var done atomic.Int64
	ended := make(chan struct{})
	var workers sync.WaitGroup
	var mu sync.Mutex
	var failed []error
	for n, s := range servers {
		for _, work := range []func() error{
			func() error { _, err := sign(s, token, signingBody(i.t, i.plain, "")); return err },
			func() error { _, err := sign(s, token, signingBody(i.t, i.withPIN, "805173")); return err },
			func() error {
				_, err := post(s.URL+"/pki/tsp", "", "application/timestamp-query", query)
				if err != nil && strings.Contains(err.Error(), "too_many_requests") {
					return nil // the bound of callers without a token, on a fast machine
				}
				return err
			},
			func() error { // a token of now
				token, err := i.token(s)
				if err == nil {
					_, err = sign(s, token, signingBody(i.t, i.plain, ""))
				}
				return err
			},
			func() error {
				answer, err := post(s.URL+"/pki/ocsp", "", "application/ocsp-request", status)
				if err == nil && !bytes.Contains(answer[:min(len(answer), 12)], []byte("\x0a\x01\x00")) { // successful
					err = fmt.Errorf("an OCSP answer begins with %x", answer[:min(len(answer), 12)])
				}
				return err
			},
			func() error {
				response, err := http.Get(s.URL + "/pki/gost.crl")
				if err != nil {
					return err
				}
				defer response.Body.Close()
				if response.StatusCode != 200 {
					return fmt.Errorf("a revocation list: %d", response.StatusCode)
				}
				_, err = io.Copy(io.Discard, response.Body)
				return err
			},
		} {
			next := pauses(false)
			workers.Go(func() {
				for {
					select {
					case <-ended:
						return
					case <-next:
					}
					if err := work(); err != nil {
						mu.Lock()
						failed = append(failed, fmt.Errorf("server %d: %w", n, err))
						mu.Unlock()
						return
					}
					done.Add(1)
				}
			})
		}
	}
	return func() int64 {
		i.t.Helper()
		close(ended)
		workers.Wait()
		if err := errors.Join(failed...); err != nil {
			i.t.Errorf("under load: %v", err)
		}
		return done.Load()
	}
}

// keyStatus is what key status prints.
type keyStatus struct {
	Active string
	Keys   []struct {
		ID        string
		Records   int64
		Documents int64
	}
	Processes []struct{ Active string }
}

func (i *installation) keyStatus() (s keyStatus) {
	i.t.Helper()
	if err := json.Unmarshal([]byte(i.run("key", "status", "--json")), &s); err != nil {
		i.t.Fatal(err)
	}
	return s
}

// TestRotateMasterKey replaces the master key under load, without a failed request, and then works
// without the old one.
func TestRotateMasterKey(t *testing.T) {
	if testsize.Of() == testsize.Quick {
		t.Skip("rotates under load")
	}
	t.Parallel()
	i := initialize(t)
	server := i.serve()
	token, err := i.token(server)
	if err != nil {
		t.Fatal(err)
	}
	server.Dev = &dev.Description{DocumentsURL: server.URL + "/DocumentStore"}
	stored := tamgatest.Documents(server, token)
	content := bytes.Repeat([]byte("document "), 20_000)
	document, deleted := stored.Put(content, map[string]string{"FileName": "a.txt"}), stored.Put(content, map[string]string{"FileName": "b.txt"})
	stop := i.load(server)
	i.run("key", "rotate")
	status := i.keyStatus()
	if status.Active != "2" || len(status.Processes) != 1 || status.Processes[0].Active != "2" {
		t.Errorf("after the rotation: %+v", status)
	}
	for _, k := range status.Keys {
		if k.Documents != 0 {
			t.Errorf("documents are not resealed: %+v", k)
		}
		if k.ID == "1" && k.Records != 0 || k.ID == "2" && k.Records < 10 {
			t.Errorf("after the rotation: %+v", status)
		}
	}
	// Documents that were uploaded soon after are looked at again.
	later := stored.Put(content, map[string]string{"FileName": "c.txt"})
	if s := i.keyStatus(); s.Keys[0].Documents != 1 {
		t.Errorf("after an upload: %+v", s)
	}
	i.run("key", "reseal")
	if s := i.keyStatus(); s.Keys[0].Documents != 0 {
		t.Errorf("after resealing again: %+v", s)
	}
	stored.Ask("DELETE", "/"+deleted, nil)
	if n := stop(); n == 0 {
		t.Error("no request was answered")
	}
	if err := server.Stop(); err != nil {
		t.Error(err)
	}
	if left := i.keyStatus(); len(left.Processes) != 0 {
		t.Errorf("a stopped server is still among %+v", left.Processes)
	}

	// Without the old key everything opens.
	text := strings.ReplaceAll(read(t, i.config), "    \"1\": \"secrets/master-1.key\"\n", "")
	tamgatest.WriteFile(t, i.config, text)
	server = i.serve()
	if token, err = i.token(server); err != nil {
		t.Fatal(err)
	}
	server.Dev = &dev.Description{DocumentsURL: server.URL + "/DocumentStore"}
	stored = tamgatest.Documents(server, token)
	for _, id := range []string{document, later} {
		if got := stored.Content(id); !bytes.Equal(got, content) {
			t.Errorf("a stored document has %d bytes without the old key", len(got))
		}
	}
	for _, body := range [][]byte{signingBody(t, i.plain, ""), signingBody(t, i.withPIN, "805173")} {
		if _, err := sign(server, token, body); err != nil {
			t.Error(err)
		}
	}
	if err := server.Stop(); err != nil {
		t.Error(err)
	}
}

// TestRotateOnTwoMachines replaces the master key of two processes over PostgreSQL, each with its own
// configuration. Until the second one has the new key, both seal with the old one.
func TestRotateOnTwoMachines(t *testing.T) {
	t.Parallel()
	database := storetest.PostgreSQL(t).Database(t)
	i := initialize(t, "--database", database)
	other := filepath.Join(i.dir, "etc", "other.yaml")
	tamgatest.WriteFile(t, other, read(t, i.config))
	one, two := i.serve(), serveText(t, other)
	stop := i.load(one, two)
	r := i.try("key", "rotate", "--wait", "5s")
	if r.Failure == nil || !strings.Contains(r.Failure.Error(), "do not seal with master key") {
		t.Errorf("a rotation that one machine knows nothing of: %v\n%s", r.Failure, r.Out)
	}
	if r := i.try("key", "reseal"); r.Failure == nil || !strings.Contains(r.Failure.Error(), "not every process") {
		t.Errorf("resealing before all have the key: %v", r.Failure)
	}
	for _, p := range i.keyStatus().Processes {
		if p.Active != "1" {
			t.Errorf("a process seals with %s", p.Active)
		}
	}
	tamgatest.WriteFile(t, other, read(t, i.config))
	i.run("key", "rotate") // goes on
	status := i.keyStatus()
	if status.Active != "2" || len(status.Processes) != 2 || len(status.Keys) != 2 || status.Keys[0].Records != 0 {
		t.Errorf("after the rotation: %+v", status)
	}
	if n := stop(); n == 0 {
		t.Error("no request was answered")
	}
	for _, s := range []*tamgatest.Server{one, two} {
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
	}
}

// TestRotateTokenKeys replaces the key that signs tokens under load.
// A second process signs with the new key at once. No request fails, and tokens of both keys work on both.
func TestRotateTokenKeys(t *testing.T) {
	if testsize.Of() == testsize.Quick {
		t.Skip("rotates under load")
	}
	t.Parallel()
	i := initialize(t)
	tamgatest.WriteFile(t, i.config, read(t, i.config)+"tokens: {key_overlap: 0s}\n")
	keyOf := func(token string) string {
		t.Helper()
		head, err := base64.RawURLEncoding.DecodeString(token[:strings.Index(token, ".")])
		var header struct{ KID string }
		if err != nil || json.Unmarshal(head, &header) != nil || header.KID == "" {
			t.Fatalf("%s, %v", head, err)
		}
		return header.KID
	}
	servers := []*tamgatest.Server{i.serve()}
	tokens := map[string]string{} // by key
	for range 2 {
		last := servers[len(servers)-1]
		token, err := i.token(last)
		if err != nil {
			t.Fatal(err)
		}
		tokens[keyOf(token)] = token
		stop := i.load(servers...)
		i.run("key", "rotate-tokens")
		servers = append(servers, i.serve())
		fresh, err := i.token(servers[len(servers)-1])
		if err != nil {
			t.Fatal(err)
		}
		tokens[keyOf(fresh)] = fresh
		for _, s := range servers {
			for _, token := range tokens {
				if _, err := sign(s, token, signingBody(t, i.plain, "")); err != nil {
					t.Error(err)
				}
			}
		}
		if n := stop(); n == 0 {
			t.Error("no request was answered")
		}
	}
	if len(tokens) != 3 {
		t.Errorf("tokens are signed with %d keys", len(tokens))
	}
}

// TestRecover makes shares, loses the master key and recovers it.
func TestRecover(t *testing.T) {
	t.Parallel()
	i := initialize(t)
	shares := filepath.Join(i.dir, "shares")
	i.run("key", "split", "-o", shares)
	if names := tamgatest.Listing(t, shares); len(names) != 5 {
		t.Fatalf("shares: %q", names)
	}
	key := filepath.Join(i.dir, "etc", "secrets", "master-1.key")
	before := read(t, key)
	s := &tamgatest.Server{T: t}
	share := func(n int) string { return filepath.Join(shares, fmt.Sprintf("master-1-share-%d.txt", n)) }
	if r := tamgatest.Run(t.Context(), "", "key", "recover", "-o", key, share(1), share(2), share(3)); r.Failure == nil || !strings.Contains(r.Failure.Error(), "never overwritten") {
		t.Errorf("over an existing key: %v", r.Failure)
	}
	if err := os.Remove(key); err != nil {
		t.Fatal(err)
	}
	if r := tamgatest.Run(t.Context(), "", "key", "recover", "-o", key, share(1), share(2)); r.Failure == nil || !strings.Contains(r.Failure.Error(), "not enough") {
		t.Errorf("two shares: %v", r.Failure)
	}
	s.MustRun("key", "recover", "-o", key, share(5), share(2), share(4))
	if read(t, key) != before {
		t.Error("another key was recovered")
	}
	if info, err := os.Stat(key); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	i.run("group", "list")
}
