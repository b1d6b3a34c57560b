// SPDX-License-Identifier: Apache-2.0

package gosttls_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tamga/internal/cli/gosttls"
	"tamga/internal/cli/program"
	"tamga/internal/judge"

	"tamga/internal/tamgatest"
)

// frontEnd is a server of --dev with HAProxy and gost-engine in front, and an
// operator with a certificate.
type frontEnd struct {
	*tamgatest.Server
	tool   *judge.Tool
	config string // directory of gost-tls init
	port   string
}

// operatorKey makes a key and a certificate of the built-in authority. OpenSSL with gost-engine makes
// the key and the request.
func (f *frontEnd) operatorKey(name, algorithm, set, digest string) {
	f.T.Helper()
	for _, args := range [][]string{
		{"genpkey", "-algorithm", algorithm, "-pkeyopt", "paramset:" + set, "-out", name + ".key"},
		{"req", "-new", "-" + digest, "-key", name + ".key", "-subj", "/CN=" + name, "-out", name + ".csr"},
	} {
		if _, err := f.tool.Run(args...); err != nil {
			f.T.Fatal(err)
		}
	}
	f.MustRun("gost-tls", "certify", filepath.Join(f.tool.Dir, name+".csr"), "-o", filepath.Join(f.tool.Dir, name+".pem"), "--data", f.Dir)
}

func startFrontEnd(t *testing.T) *frontEnd {
	t.Helper()
	tool := judge.OpenSSL(t)
	judge.HAProxyProgram(t)
	// The path of a socket must be short, and the one of a test directory may be too long.
	run, err := os.MkdirTemp("", "tamga")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(run) })
	socket := filepath.Join(run, "gost.sock")
	f := &frontEnd{tool: tool, config: filepath.Join(t.TempDir(), "gost-tls")}
	f.Server = tamgatest.Start(t, "--set", "gost_tls.socket="+socket)
	set := []string{"--data", f.Dir, "--set", "gost_tls.socket=" + socket}

	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, f.port, _ = net.SplitHostPort(free.Addr().String())
	free.Close()
	f.MustRun(append([]string{"gost-tls", "init", "--dir", f.config, "--name", "localhost", "--listen", "127.0.0.1:" + f.port}, set...)...)
	f.MustRun(append([]string{"gost-tls", "check", "--dir", f.config}, set...)...)
	judge.HAProxy(t, filepath.Join(f.config, gosttls.FrontEndConfig), filepath.Join(f.config, gosttls.FrontEndOpenSSL), "127.0.0.1:"+f.port)

	f.operatorKey("operator", "gost2012_256", "A", "md_gost12_256")
	f.MustRun("operator", "certificate", "add", f.Dev.Operator.Login, filepath.Join(f.tool.Dir, "operator.pem"), "--data", f.Dir)
	return f
}

// written returns an HTTP request for one answer.
func written(method, path, body string, headers ...string) string {
	all := append([]string{"Host: localhost", "Connection: close", fmt.Sprintf("Content-Length: %d", len(body))}, headers...)
	return method + " " + path + " HTTP/1.1\r\n" + strings.Join(all, "\r\n") + "\r\n\r\n" + body
}

// talk sends a request through the front end with the key of a name.
func (f *frontEnd) talk(say, name string, args ...string) string {
	f.T.Helper()
	args = append([]string{"-connect", "127.0.0.1:" + f.port, "-servername", "localhost", "-CAfile", filepath.Join(f.config, gosttls.FrontEndRoot), "-verify_return_error"}, args...)
	if name != "" {
		args = append(args, "-cert", name+".pem", "-key", name+".key")
	}
	return f.tool.Talk(say, args...)
}

func (f *frontEnd) expect(name, want, got string) {
	f.T.Helper()
	if !strings.Contains(got, want) {
		f.T.Errorf("%s: no %q in\n%s", name, want, got)
	}
}

// secondStep has the operator confirm a sign-in by certificate with a code. Each call proves the first
// step by its connection.
func (f *frontEnd) secondStep(t *testing.T) {
	w := tamgatest.NewUMS(f.Server)
	const phone = "79250000078"
	user := "/ums/user/" + f.Dev.Operator.ID
	w.OK(tamgatest.TwoGroup, "POST", user+"/phones", `"`+phone+`"`)
	for _, path := range []string{"/phones/" + phone + "/confirm", "/phones/" + phone + "/secondaryauth", "/authmethod/otpviasms?level=2"} {
		w.OK(tamgatest.TwoGroup, "POST", user+path, "")
	}
	defer w.OK(tamgatest.TwoGroup, "DELETE", user+"/authmethod/otpviasms", "")
	f.operatorKey("other", "gost2012_256", "A", "md_gost12_256")
	f.MustRun("operator", "certificate", "add", tamgatest.TwoGroup, filepath.Join(f.tool.Dir, "other.pem"), "--data", f.Dir)

	ask := func(name, ref, code string) string {
		t.Helper()
		answer := ""
		if ref != "" {
			answer = fmt.Sprintf(`,"ChallengeResponse":{"TextChallengeResponse":[{"RefId":%q,"Value":%q}]}`, ref, code)
		}
		return f.talk(written("POST", "/STS/confirmation", fmt.Sprintf(`{"Resource":%q,"ClientId":%q%s}`, f.Dev.Resource, f.Dev.ClientID, answer)), name, "-tls1_2")
	}
	value := func(out, key string) string {
		_, rest, _ := strings.Cut(out, `"`+key+`":"`)
		text, _, _ := strings.Cut(rest, `"`)
		return text
	}
	begun := ask("operator", "", "")
	ref := value(begun, "RefID")
	if ref == "" || strings.Contains(begun, "AccessToken") || !strings.Contains(begun, `"IsFinal":false`) {
		t.Fatalf("the first call is answered\n%s", begun)
	}
	code := w.Code(phone)
	if out := ask("other", ref, code); strings.Contains(out, "AccessToken") {
		t.Errorf("the code with the certificate of another operator is answered\n%s", out)
	}
	status, body := f.Do(t.Context(), "POST", f.Dev.IDPURL+"/confirmation", "",
		strings.NewReader(fmt.Sprintf(`{"Resource":%q,"ClientId":%q,"ChallengeResponse":{"TextChallengeResponse":[{"RefId":%q,"Value":%q}]}}`, f.Dev.Resource, f.Dev.ClientID, ref, code)))
	if status != 401 || bytes.Contains(body, []byte("AccessToken")) {
		t.Errorf("the code without a certificate is answered %d %s", status, body)
	}
	wrong := "0" + code[1:]
	if wrong == code {
		wrong = "1" + code[1:]
	}
	if out := ask("operator", ref, wrong); strings.Contains(out, "AccessToken") || !strings.Contains(out, `"IsFinal":false,"IsError":false`) {
		t.Errorf("a wrong code is answered\n%s", out)
	}
	done := ask("operator", ref, code)
	token := value(done, "AccessToken")
	if token == "" || !strings.Contains(done, `"IsFinal":true,"IsError":false`) {
		t.Fatalf("the code is answered\n%s", done)
	}
	if status, body := f.Do(t.Context(), "GET", f.Dev.IDPURL+"/ums/policy", token, nil); status != 200 {
		t.Errorf("the token opens user management with %d %s", status, body)
	}
	if out := ask("other", ref, code); strings.Contains(out, "AccessToken") {
		t.Errorf("the code a second time with the certificate of another operator is answered\n%s", out)
	}
	if out := ask("operator", ref, code); value(out, "AccessToken") != token {
		t.Errorf("the code a second time is answered\n%s", out)
	}
	f.expect("user management by certificate alone", "HTTP/1.1 401", f.talk(written("GET", "/STS/ums/policy", ""), "operator", "-tls1_2"))
}

// TestGOSTTLS runs HAProxy with gost-engine as the front end, and clients with OpenSSL and GnuTLS.
func TestGOSTTLS(t *testing.T) {
	f := startFrontEnd(t)
	policy := written("GET", "/STS/ums/policy", "")
	for suite := range strings.SplitSeq(gosttls.Ciphers, ":") {
		f.expect(suite, "HTTP/1.1 200 OK", f.talk(policy, "operator", "-tls1_2", "-cipher", suite))
	}
	f.expect("no suite chosen", `"AvaliableIdentifierTypes"`, f.talk(policy, "operator"))

	t.Run("GnuTLS", func(t *testing.T) {
		pem := func(name string) string { return filepath.Join(f.tool.Dir, name) }
		out := judge.TalkGnuTLS(t, f.tool.Dir, policy, "--priority", "NONE:+VERS-TLS1.2:+GOST:+COMP-NULL", "--x509cafile", filepath.Join(f.config, gosttls.FrontEndRoot),
			"--x509certfile", pem("operator.pem"), "--x509keyfile", pem("operator.key"), "-p", f.port, "localhost")
		f.expect("GnuTLS", "HTTP/1.1 200 OK", out)
	})

	t.Run("confirmation", func(t *testing.T) {
		ask := func(name string) string {
			return f.talk(written("POST", "/STS/confirmation", fmt.Sprintf(`{"Resource":%q,"ClientId":%q}`, f.Dev.Resource, f.Dev.ClientID)), name, "-tls1_2")
		}
		f.expect("a user without a second step", `"IsFinal":true,"IsError":false,"AccessToken":"ey`, ask("operator"))
	})
	t.Run("second step", f.secondStep)

	t.Run("code", func(t *testing.T) {
		out := f.talk(written("GET", "/STS/oauth/authorize/certificate?client_id="+f.Dev.ClientID+
			"&response_type=code&scope=dss&redirect_uri=urn:ietf:wg:oauth:2.0:oob:auto&resource="+f.Dev.Resource, ""), "operator", "-tls1_2")
		_, rest, found := strings.Cut(out, "Location: urn:ietf:wg:oauth:2.0:oob:auto?code=")
		if !found {
			t.Fatalf("no code in\n%s", out)
		}
		code, _, _ := strings.Cut(rest, "\r\n")
		if strings.Trim(code, "0123456789abcdef") != "" {
			t.Errorf("a client that lower-cases or cuts it spoils the code %q", code)
		}
		exchange := func() (int, []byte) {
			response, err := http.Post(f.Dev.TokenURL, "application/x-www-form-urlencoded", strings.NewReader(
				"grant_type=authorization_code&code="+code+"&redirect_uri=urn:ietf:wg:oauth:2.0:oob:auto&client_id="+f.Dev.ClientID))
			if err != nil {
				t.Fatal(err)
			}
			return tamgatest.ReadAll(t, response)
		}
		status, body := exchange()
		var token struct {
			AccessToken string `json:"access_token"`
		}
		if err := json.Unmarshal(body, &token); err != nil || status != 200 {
			t.Fatalf("the code is exchanged for %d %s", status, body)
		}
		if status, body := f.Do(t.Context(), "GET", f.Dev.IDPURL+"/ums/policy", token.AccessToken, nil); status != 200 {
			t.Errorf("the token opens user management with %d %s", status, body)
		}
		if status, body := exchange(); status != 400 || !bytes.Contains(body, []byte("invalid_grant")) {
			t.Errorf("the code a second time is answered %d %s", status, body)
		}
	})

	t.Run("refused", func(t *testing.T) {
		f.operatorKey("foreign", "gost2012_512", "A", "md_gost12_512")
		f.expect("a certificate of no user", "HTTP/1.1 401", f.talk(policy, "foreign", "-tls1_2"))
		for _, args := range [][]string{
			{"genpkey", "-algorithm", "gost2012_256", "-pkeyopt", "paramset:A", "-out", "forged.key"},
			{"req", "-x509", "-new", "-md_gost12_256", "-key", "forged.key", "-subj", "/CN=operator", "-out", "forged.pem"},
		} {
			if _, err := f.tool.Run(args...); err != nil {
				t.Fatal(err)
			}
		}
		f.expect("a certificate of another authority", "alert", f.talk(policy, "forged", "-tls1_2"))
		f.expect("no certificate", "alert", f.talk(policy, "", "-tls1_2"))
		f.expect("a foreign Host", "HTTP/1.1 421", f.talk(strings.Replace(policy, "Host: localhost", "Host: evil.example", 1), "operator", "-tls1_2"))

		block, _ := pem.Decode(f.tool.Read("operator.pem"))
		value := base64.StdEncoding.EncodeToString(block.Bytes)
		for _, name := range []string{"Client-Cert", "client-cert", "CLIENT-CERT", "Client-Cert-Chain", "client_cert", "Client_Cert_Chain"} {
			forged := written("GET", "/STS/ums/policy", "", name+": :"+value+":")
			f.expect("a forged "+name+" with a certificate of one's own", "HTTP/1.1 200", f.talk(forged, "operator", "-tls1_2"))
			f.expect("a forged "+name+" with a foreign certificate", "HTTP/1.1 401", f.talk(forged, "foreign", "-tls1_2"))
		}
		out := f.talk(written("GET", "/STS/ums/policy", "", "X-Forwarded-For: 192.0.2.1", "Forwarded: for=192.0.2.1", "X-Forwarded-Host: evil.example"), "operator", "-tls1_2")
		f.expect("forged forwarding headers", "HTTP/1.1 200", out)
	})

	t.Run("revoked", func(t *testing.T) {
		f.MustRun("gost-tls", "revoke", filepath.Join(f.tool.Dir, "operator.pem"), "--data", f.Dir)
		f.expect("a revoked certificate", "HTTP/1.1 401", f.talk(policy, "operator", "-tls1_2"))
	})

	var log bytes.Buffer
	if err := program.Run(t.Context(), tamgatest.Version, []string{"audit", "--data", f.Dir, "--operation", "GetPolicy", "--json", "--limit", "0"}, strings.NewReader(""), &log, &log); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(log.String(), `"method":"certificate","actor":"","remote":"127.0.0.1"`) || strings.Contains(log.String(), "192.0.2.1") {
		t.Errorf("the log does not say where the calls came from:\n%s", log.String())
	}
}

// Class 12: paths that mean one thing to the proxy and another to us.
func TestPathTricksThroughTheFrontEnd(t *testing.T) {
	f := startFrontEnd(t)
	id := f.Dev.User.ID
	for _, path := range []string{
		"/STS/ums/user/" + id + "/emails/a%2Fb%40example.ru/confirm",
		"/STS/ums/user/" + id + "/emails/..%2F..%2F" + id + "/confirm",
		"/STS/ums/user/" + id + "/emails/%252e%252e%252f/confirm",
		"/STS/ums/user/" + id + "/phones/7916%00/confirm",
		"/STS/ums/user/" + id + "/phones/%c0%ae%c0%ae%c0%af/confirm",
		"/STS/ums/user/" + id + "/phones/%ff%fe/confirm",
		"/STS/ums/user/" + id + "/phones/../lockout?lock=true",
		"/STS/ums/user/" + id + "/phones/%2e%2e/lockout?lock=true",
		"/STS//ums//user/" + id + "/lockout?lock=true",
		"/STS/ums/user/%2e%2e/users",
		"//evil.example/STS/ums/user/" + id + "/lockout?lock=true",
	} {
		out := f.talk(written("POST", path, ""), "operator", "-tls1_2")
		// A redirect to the address without doubled slashes does nothing by itself.
		redirected := strings.Contains(path, "//") && strings.Contains(out, "HTTP/1.1 307")
		if !strings.Contains(out, "HTTP/1.1 400") && !strings.Contains(out, "HTTP/1.1 404") && !redirected {
			t.Errorf("%s is answered\n%.300s", path, out[max(0, strings.Index(out, "HTTP/1.1")):])
		}
	}
	if status, body := f.Do(t.Context(), "GET", f.Dev.IDPURL+"/ums/user/"+id, f.TokenOf(f.Dev.Operator.Login, f.Dev.Operator.Password), nil); status != 200 || !bytes.Contains(body, []byte(`"AccountLocked":false`)) {
		t.Errorf("after the tricks the user is %d %s", status, body)
	}
}

// TestGOSTTLSCheck checks that each known mistake in the file is found.
func TestGOSTTLSCheck(t *testing.T) {
	p := tamgatest.Start(t)
	dir := filepath.Join(t.TempDir(), "front")
	socket := filepath.Join(t.TempDir(), "gost.sock")
	set := []string{"--data", p.Dir, "--set", "gost_tls.socket=" + socket}
	p.MustRun(append([]string{"gost-tls", "init", "--dir", dir, "--name", "localhost", "--listen", ":4430"}, set...)...)
	file := filepath.Join(dir, gosttls.FrontEndConfig)
	good, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if found := wrong(gosttls.ParseProxy(string(good)), socket); len(found) != 0 {
		t.Errorf("what init wrote is wrong: %q", found)
	}
	for _, c := range []struct{ name, old, new, says string }{
		{"mixed port", "ssl-max-ver TLSv1.2", "ssl-max-ver TLSv1.3", "TLS 1.2 alone"},
		{"no upper version", "ssl-max-ver TLSv1.2", "", "TLS 1.2 alone"},
		{"a second certificate", "ca-file", "crt /etc/ecdsa.pem ca-file", "mixed port"},
		{"other suites", "ciphers GOST2012", "ciphers ECDHE-ECDSA-AES128-GCM-SHA256:GOST2012", "GOST suites alone"},
		{"a certificate is a choice", "verify required", "verify optional", "demands a certificate"},
		{"tickets", "no-tls-tickets", "", "session tickets"},
		{"session cache", "tune.ssl.cachesize 0", "tune.ssl.cachesize 20000", "session cache"},
		{"one exact name", "del-header x-tamga-tls- -m beg", "del-header x-tamga-tls-", "forge x-tamga-tls-"},
		{"forged certificates pass", "http-request del-header client-cert -m beg\n", "", "forge client-cert"},
		{"with an underscore", "http-request del-header client_cert -m beg\n", "", "forge client_cert"},
		{"removed at times", "del-header client-cert -m beg", "del-header client-cert -m beg if { src 127.0.0.1 }", "forge client-cert"},
		{"every Host", "http-request deny deny_status 421", "http-request deny deny_status 403", "foreign Host"},
		{"a common name is no identity", ":%[ssl_c_der,base64]:", "%[ssl_c_s_dn(cn)]", "forwarded"},
		{"secrets in the log", "  log-format", "  option httplog\n  log-format", "queries"},
		{"another socket", "unix@" + socket, "127.0.0.1:8080", "service's socket"},
		{"a plain port", "  bind ", "  bind :8000\n  bind ", "speaks TLS"},
	} {
		changed := strings.Replace(string(good), c.old, c.new, 1)
		if changed == string(good) {
			t.Errorf("%s: the file has no %q", c.name, c.old)
		}
		if found := strings.Join(wrong(gosttls.ParseProxy(changed), socket), "\n"); !strings.Contains(found, c.says) {
			t.Errorf("%s: found %q, want %q", c.name, found, c.says)
		}
	}
	// The order matters: a header that is removed after it was set is not sent.
	line := "  http-request del-header client-cert -m beg\n"
	late := strings.Replace(string(good), line, "", 1) + "\nfrontend more\n" + line
	if found := strings.Join(wrong(gosttls.ParseProxy(late), socket), "\n"); !strings.Contains(found, "forge client-cert") {
		t.Errorf("a late removal: found %q", found)
	}

	bundle := filepath.Join(dir, gosttls.FrontEndServer)
	for _, c := range []struct {
		name, says string
		spoil      func() error
	}{
		{"a readable key", "chmod 600", func() error { return os.Chmod(bundle, 0o644) }},
		{"another key", "want a certificate and its key", func() error { return os.WriteFile(bundle, []byte("x"), 0o600) }},
		{"no engine", "gost-engine is not installed", func() error {
			return os.WriteFile(filepath.Join(dir, gosttls.FrontEndOpenSSL), []byte("dynamic_path = /nowhere/gost.so\nactivate = 1\n"), 0o644)
		}},
	} {
		if err := c.spoil(); err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		err := program.Run(t.Context(), tamgatest.Version, append([]string{"gost-tls", "check", "--dir", dir}, set...), strings.NewReader(""), &out, &out)
		if err == nil || !strings.Contains(out.String(), c.says) {
			t.Errorf("%s: %v\n%s", c.name, err, out.String())
		}
		os.Chmod(bundle, 0o600)
	}
	err = program.Run(t.Context(), tamgatest.Version, append([]string{"gost-tls", "init", "--dir", dir}, set...), strings.NewReader(""), &bytes.Buffer{}, &bytes.Buffer{})
	if err == nil || !strings.Contains(err.Error(), "--force") {
		t.Errorf("init over what is there: %v", err)
	}
}

// wrong returns the failed checks.
func wrong(p *gosttls.ProxyConfig, socket string) (found []string) {
	for _, k := range p.Check(socket) {
		if !k.Wrong.IsZero() {
			found = append(found, k.Trap.String())
		}
	}
	return found
}
