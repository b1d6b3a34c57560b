// SPDX-License-Identifier: Apache-2.0

package tokenapi_test

import (
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"html"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"tamga/internal/judge"
	"tamga/internal/sigtest"
	"tamga/pki/suite"
)

var hiddenField = regexp.MustCompile(`name="(\w+)" value="([^"]*)"`)

// samlLogin is a server whose users sign in at a provider of SAML.
type samlLogin struct {
	*signIn
	provider *judge.SAMLProvider
	order    judge.SAMLOrder // what the provider does
	root     *sigtest.Party
	returns  string // where the provider sends its form
}

// startSAMLLogin starts a provider and a server, and each knows the metadata of the other.
func startSAMLLogin(t *testing.T) *samlLogin {
	t.Helper()
	provider := judge.SAML(t)
	dir := t.TempDir()
	root := sigtest.Root(t, suite.RSASHA256)
	order := judge.SAMLOrder{Entity: "https://idp.example/metadata", SSO: "https://idp.example/sso", SignedRequests: true, SignAssertion: true, Login: "Demo"}
	write := func(name, text string) string {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	order.Key, order.Certificate = pemOf(t, root.Signer(t, suite.RSASHA256, "The provider"))
	key, certificate := pemOf(t, root.Signer(t, suite.RSASHA256, "The service"))
	s := startSignIn(t, "--set", `external=[{name: corp, title: "The corporation", saml: {metadata_file: "`+write("idp.xml", provider.Do(t, order).Metadata)+
		`", name_id_format: "urn:oasis:names:tc:SAML:2.0:nameid-format:persistent", key_file: "`+write("key.pem", key)+`", certificate_file: "`+write("certificate.pem", certificate)+`"}}, `+
		`{name: second, title: "Second", saml: {entity_id: "`+order.Entity+`", sso_url: "`+order.SSO+`", certificates_file: "`+write("idp.pem", order.Certificate)+`"}}]`)
	returns := s.Dev.IDPURL + "/oauth/external/corp/return"

	response, metadata := (&browser{s: s}).send("GET", s.Dev.IDPURL+"/oauth/external/corp/metadata", "")
	if response.StatusCode != 200 || response.Header.Get("Content-Type") != "application/samlmetadata+xml" {
		t.Fatalf("%d %s", response.StatusCode, metadata)
	}
	order.MetadataOfService = metadata
	return &samlLogin{s, provider, order, root, returns}
}

// pemOf returns the key and the certificate of a party as PEM.
func pemOf(t *testing.T, p *sigtest.Party) (key, certificate string) {
	t.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(p.Key)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})), string(p.PEM())
}

// goThere leads a browser to the provider, which answers with a form.
func (l *samlLogin) goThere(b *browser, change ...string) url.Values {
	t := l.T
	t.Helper()
	_, page := b.send("GET", l.asked(change...), "")
	_, after, found := strings.Cut(page, `<a class="btn full" href="`)
	link, _, _ := strings.Cut(after, `"`)
	if !found || !strings.Contains(page, "The corporation") {
		t.Fatalf("no way to the provider: %s", page)
	}
	response, text := b.send("GET", html.UnescapeString(link), "")
	address := response.Header.Get("Location")
	to, err := url.Parse(address)
	if err != nil || response.StatusCode != 302 || !strings.HasPrefix(address, l.order.SSO+"?") {
		t.Fatalf("%d %s %s", response.StatusCode, address, text)
	}
	order := l.order
	order.Query = map[string]string{}
	for name, values := range to.Query() {
		order.Query[name] = values[0]
	}
	if state := order.Query["RelayState"]; len(state) != 64 {
		t.Errorf("RelayState has %d bytes, at most 80 may be sent", len(state))
	}
	answer := l.provider.Do(t, order)
	if answer.Destination != l.returns {
		t.Fatalf("%+v", answer)
	}
	return url.Values{"SAMLResponse": {answer.Response}, "RelayState": {order.Query["RelayState"]}}
}

// post sends a form.
func (l *samlLogin) post(b *browser, address string, form url.Values, headers ...string) (*http.Response, string) {
	l.T.Helper()
	return b.send("POST", address, form.Encode(), append([]string{"Content-Type", "application/x-www-form-urlencoded"}, headers...)...)
}

// repost is what a browser does with the page at the address of the provider's form:
// the form came from another site, and no cookie of ours with it.
func (l *samlLogin) repost(form url.Values) (address string, again url.Values) {
	t := l.T
	t.Helper()
	response, page := l.post(&browser{s: l.signIn}, l.returns, form, "Sec-Fetch-Site", "cross-site")
	policy := response.Header.Get("Content-Security-Policy")
	if response.StatusCode != 200 || len(response.Cookies()) > 0 || !strings.Contains(policy, "script-src 'sha256-") || !strings.Contains(policy, "form-action "+l.URL+" https://app.example;") {
		t.Fatalf("%d %v %s %s", response.StatusCode, response.Cookies(), policy, page)
	}
	// The script that posts the form is the one that the policy names.
	_, script, _ := strings.Cut(page, "<script>")
	script, _, _ = strings.Cut(script, "</script>")
	if sum := sha256.Sum256([]byte(script)); script == "" || !strings.Contains(policy, "script-src 'sha256-"+base64.StdEncoding.EncodeToString(sum[:])+"'") {
		t.Errorf("the script %q is not that of %s", script, policy)
	}
	again = url.Values{}
	for _, m := range hiddenField.FindAllStringSubmatch(page, -1) {
		again.Set(m[1], html.UnescapeString(m[2]))
	}
	_, after, _ := strings.Cut(page, ` action="`)
	address, _, _ = strings.Cut(after, `"`)
	return html.UnescapeString(address), again
}

// come comes back from the provider with its form.
func (l *samlLogin) come(b *browser, form url.Values) (*http.Response, url.Values, string) {
	l.T.Helper()
	address, again := l.repost(form)
	response, text := l.post(b, address, again, "Sec-Fetch-Site", "same-origin")
	to, err := url.Parse(response.Header.Get("Location"))
	if err != nil {
		l.T.Fatal(err)
	}
	return response, to.Query(), text
}

// TestSAMLLogin has users sign in at a provider of SAML that we did not write.
func TestSAMLLogin(t *testing.T) {
	t.Parallel()
	l := startSAMLLogin(t)
	id, login, _, _ := l.Register()
	b := &browser{s: l.signIn}
	if _, q, text := l.come(b, l.goThere(b)); q.Get("error") != "access_denied" || q.Get("code") != "" {
		t.Errorf("who has no login there: %v %s", q, text)
	}
	l.OK("ours", "POST", "/ums/user/"+id+"/login", `{"Login":"DEMO","IssuerName":"Corp"}`)
	if _, q, text := l.come(b, l.goThere(b)); q.Get("error") != "access_denied" {
		t.Errorf("who may not sign in so: %v %s", q, text)
	}
	l.OK("ours", "POST", "/ums/user/"+id+"/authmethod/external", "{}")
	response, q, text := l.come(b, l.goThere(b, "scope", "openid dss offline_access"))
	if response.StatusCode != 303 || !codeForm.MatchString(q.Get("code")) || q.Get("state") != "st&te" {
		t.Fatalf("%d %v %s", response.StatusCode, q, text)
	}
	got := l.Read(l.exchangeCode(q.Get("code")))
	if !l.Works(got.AccessToken) || got.RefreshToken == "" || got.IDToken == "" {
		t.Fatalf("%+v", got)
	}
	if entries := l.Command("audit", "--json", "--operation", "ExternalReturn", "--user", id); !strings.Contains(entries, `"login":"`+login+`"`) {
		t.Errorf("the audit log does not say who it was: %s", entries)
	}

	l.Walk(t, "OfOthers", func(t *testing.T) { samlOfOthers(t, l, b) })
	l.Walk(t, "Once", func(t *testing.T) { samlOnce(t, l, b) })
	l.Walk(t, "Refused", func(t *testing.T) { samlRefused(t, l, b) })

	l.OK("ours", "DELETE", "/ums/user/"+id+"/login?issuerName=corp", "")
	if l.Works(got.AccessToken) || l.Refresh("app", got.RefreshToken).Status != 400 {
		t.Error("the sign-in outlives the login it came of")
	}
}

// samlOfOthers posts answers for another user.
func samlOfOthers(t *testing.T, l *samlLogin, b *browser) {
	form := l.goThere(b)
	address, again := l.repost(form)
	other := &browser{s: l.signIn}
	other.send("GET", l.asked(), "")
	for name, other := range map[string]*browser{"another browser": {s: l.signIn}, "a browser of another sign-in": other} {
		if response, _ := l.post(other, address, again); response.StatusCode != 403 || response.Header.Get("Location") != "" {
			t.Errorf("%s: %d", name, response.StatusCode)
		}
	}
	if response, _ := l.post(b, address, again, "Sec-Fetch-Site", "cross-site"); response.StatusCode == 303 {
		t.Error("a form of another site with the cookie")
	}
	if response, _ := b.send("GET", l.returns+"?"+url.Values{"state": form["RelayState"], "code": form["SAMLResponse"]}.Encode(), ""); response.StatusCode != 403 {
		t.Errorf("by GET: %d", response.StatusCode)
	}
	// At the address of another provider, of the same name and keys even.
	if response, _ := l.post(b, strings.Replace(address, "/corp/", "/second/", 1), again); response.StatusCode != 403 {
		t.Errorf("at another provider's address: %d", response.StatusCode)
	}
	// The answer to a request of another browser.
	swapped := url.Values{"SAMLResponse": l.goThere(&browser{s: l.signIn})["SAMLResponse"], "RelayState": form["RelayState"]}
	if _, q, text := l.come(b, swapped); q.Get("error") != "access_denied" {
		t.Errorf("an answer for another user: %v %s", q, text)
	}
	for name, form := range map[string]url.Values{
		"unsolicited": {"SAMLResponse": form["SAMLResponse"], "RelayState": {""}}, "no state": {"SAMLResponse": form["SAMLResponse"]},
		"an unknown state": {"SAMLResponse": form["SAMLResponse"], "RelayState": {strings.Repeat("0", 64)}},
	} {
		if response, page := l.post(b, l.returns, form); response.StatusCode != 403 || strings.Contains(page, "SAMLResponse") {
			t.Errorf("%s: %d %s", name, response.StatusCode, page)
		}
	}
	if response, q, text := l.come(b, form); q.Get("code") == "" {
		t.Errorf("in person: %d %v %s", response.StatusCode, q, text)
	}
}

// samlOnce posts one answer many times.
func samlOnce(t *testing.T, l *samlLogin, b *browser) {
	form := l.goThere(b)
	address, again := l.repost(form)
	answers := make([]*http.Response, 8)
	var wg sync.WaitGroup
	for i := range answers {
		wg.Go(func() { answers[i], _ = l.post(&browser{s: l.signIn, cookie: b.cookie}, address, again) })
	}
	wg.Wait()
	codes := 0
	for _, a := range answers {
		if strings.Contains(a.Header.Get("Location"), "?code=") {
			codes++
		}
	}
	if codes != 1 {
		t.Errorf("one answer was good for %d codes", codes)
	}
	if response, _ := l.post(b, address, again); response.StatusCode != 403 {
		t.Errorf("once more: %d %s", response.StatusCode, response.Header.Get("Location"))
	}
	if response, _ := l.post(b, l.returns, form); response.StatusCode != 403 {
		t.Errorf("from the beginning: %d", response.StatusCode)
	}
}

// samlRefused posts answers that the provider did not sign.
func samlRefused(t *testing.T, l *samlLogin, b *browser) {
	// A provider of the same name with another key.
	honest := l.order
	l.order.Key, l.order.Certificate = pemOf(t, l.root.Signer(t, suite.RSASHA256, "Another provider"))
	if _, q, text := l.come(b, l.goThere(b)); q.Get("error") != "access_denied" {
		t.Errorf("another key: %v %s", q, text)
	}
	l.order = honest
	l.order.SignAssertion = false
	if _, q, text := l.come(b, l.goThere(b)); q.Get("error") != "access_denied" {
		t.Errorf("unsigned: %v %s", q, text)
	}
	l.order = honest
	if response, _ := b.send("GET", l.Dev.IDPURL+"/oauth/external/none/metadata", ""); response.StatusCode == 200 {
		t.Error("metadata of a provider that is not there")
	}
}
