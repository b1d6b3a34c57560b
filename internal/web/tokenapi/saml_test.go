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

// TestSAMLLogin has users sign in at a provider of SAML that we did not write.
func TestSAMLLogin(t *testing.T) {
	t.Parallel()
	provider := judge.SAML(t)
	dir := t.TempDir()
	root := sigtest.Root(t, suite.RSASHA256)
	order := judge.SAMLOrder{Entity: "https://idp.example/metadata", SSO: "https://idp.example/sso", SignedRequests: true, SignAssertion: true, Login: "Demo"}
	pemOf := func(p *sigtest.Party) (key, certificate string) {
		der, err := x509.MarshalPKCS8PrivateKey(p.Key)
		if err != nil {
			t.Fatal(err)
		}
		return string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})), string(p.PEM())
	}
	write := func(name, text string) string {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	order.Key, order.Certificate = pemOf(root.Signer(t, suite.RSASHA256, "The provider"))
	key, certificate := pemOf(root.Signer(t, suite.RSASHA256, "The service"))
	s := startSignIn(t, "--set", `external=[{name: corp, title: "The corporation", saml: {metadata_file: "`+write("idp.xml", provider.Do(t, order).Metadata)+
		`", name_id_format: "urn:oasis:names:tc:SAML:2.0:nameid-format:persistent", key_file: "`+write("key.pem", key)+`", certificate_file: "`+write("certificate.pem", certificate)+`"}}, `+
		`{name: second, title: "Second", saml: {entity_id: "`+order.Entity+`", sso_url: "`+order.SSO+`", certificates_file: "`+write("idp.pem", order.Certificate)+`"}}]`)
	returns := s.Dev.IDPURL + "/oauth/external/corp/return"

	response, metadata := (&browser{s: s}).send("GET", s.Dev.IDPURL+"/oauth/external/corp/metadata", "")
	if response.StatusCode != 200 || response.Header.Get("Content-Type") != "application/samlmetadata+xml" {
		t.Fatalf("%d %s", response.StatusCode, metadata)
	}
	order.MetadataOfService = metadata

	// goThere leads a browser to the provider, which answers with a form.
	goThere := func(b *browser, change ...string) url.Values {
		t.Helper()
		_, page := b.send("GET", s.asked(change...), "")
		_, after, found := strings.Cut(page, `<a href="`)
		link, _, _ := strings.Cut(after, `"`)
		if !found || !strings.Contains(page, "The corporation") {
			t.Fatalf("no way to the provider: %s", page)
		}
		response, text := b.send("GET", html.UnescapeString(link), "")
		address := response.Header.Get("Location")
		to, err := url.Parse(address)
		if err != nil || response.StatusCode != 302 || !strings.HasPrefix(address, order.SSO+"?") {
			t.Fatalf("%d %s %s", response.StatusCode, address, text)
		}
		order := order
		order.Query = map[string]string{}
		for name, values := range to.Query() {
			order.Query[name] = values[0]
		}
		if state := order.Query["RelayState"]; len(state) != 64 {
			t.Errorf("RelayState has %d bytes, at most 80 may be sent", len(state))
		}
		answer := provider.Do(t, order)
		if answer.Destination != returns {
			t.Fatalf("%+v", answer)
		}
		return url.Values{"SAMLResponse": {answer.Response}, "RelayState": {order.Query["RelayState"]}}
	}
	post := func(b *browser, address string, form url.Values, headers ...string) (*http.Response, string) {
		t.Helper()
		return b.send("POST", address, form.Encode(), append([]string{"Content-Type", "application/x-www-form-urlencoded"}, headers...)...)
	}
	// repost is what a browser does with the page at the address of the provider's form:
	// the form came from another site, and no cookie of ours with it.
	repost := func(form url.Values) (address string, again url.Values) {
		t.Helper()
		response, page := post(&browser{s: s}, returns, form, "Sec-Fetch-Site", "cross-site")
		policy := response.Header.Get("Content-Security-Policy")
		if response.StatusCode != 200 || len(response.Cookies()) > 0 || !strings.Contains(policy, "script-src 'sha256-") || !strings.Contains(policy, "form-action "+s.URL+" https://app.example;") {
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
	come := func(b *browser, form url.Values) (*http.Response, url.Values, string) {
		t.Helper()
		address, again := repost(form)
		response, text := post(b, address, again, "Sec-Fetch-Site", "same-origin")
		to, err := url.Parse(response.Header.Get("Location"))
		if err != nil {
			t.Fatal(err)
		}
		return response, to.Query(), text
	}

	id, login, _, _ := s.Register()
	b := &browser{s: s}
	if _, q, text := come(b, goThere(b)); q.Get("error") != "access_denied" || q.Get("code") != "" {
		t.Errorf("who has no login there: %v %s", q, text)
	}
	s.OK("ours", "POST", "/ums/user/"+id+"/login", `{"Login":"DEMO","IssuerName":"Corp"}`)
	if _, q, text := come(b, goThere(b)); q.Get("error") != "access_denied" {
		t.Errorf("who may not sign in so: %v %s", q, text)
	}
	s.OK("ours", "POST", "/ums/user/"+id+"/authmethod/external", "{}")
	response, q, text := come(b, goThere(b, "scope", "openid dss offline_access"))
	if response.StatusCode != 303 || !codeForm.MatchString(q.Get("code")) || q.Get("state") != "st&te" {
		t.Fatalf("%d %v %s", response.StatusCode, q, text)
	}
	got := s.Read(s.exchangeCode(q.Get("code")))
	if !s.Works(got.AccessToken) || got.RefreshToken == "" || got.IDToken == "" {
		t.Fatalf("%+v", got)
	}
	if entries := s.Command("audit", "--json", "--operation", "ExternalReturn", "--user", id); !strings.Contains(entries, `"login":"`+login+`"`) {
		t.Errorf("the audit log does not say who it was: %s", entries)
	}

	s.Walk(t, "OfOthers", func(t *testing.T) {
		form := goThere(b)
		address, again := repost(form)
		other := &browser{s: s}
		other.send("GET", s.asked(), "")
		for name, other := range map[string]*browser{"another browser": {s: s}, "a browser of another sign-in": other} {
			if response, _ := post(other, address, again); response.StatusCode != 403 || response.Header.Get("Location") != "" {
				t.Errorf("%s: %d", name, response.StatusCode)
			}
		}
		if response, _ := post(b, address, again, "Sec-Fetch-Site", "cross-site"); response.StatusCode == 303 {
			t.Error("a form of another site with the cookie")
		}
		if response, _ := b.send("GET", returns+"?"+url.Values{"state": form["RelayState"], "code": form["SAMLResponse"]}.Encode(), ""); response.StatusCode != 403 {
			t.Errorf("by GET: %d", response.StatusCode)
		}
		// At the address of another provider, of the same name and keys even.
		if response, _ := post(b, strings.Replace(address, "/corp/", "/second/", 1), again); response.StatusCode != 403 {
			t.Errorf("at another provider's address: %d", response.StatusCode)
		}
		// The answer to a request of another browser.
		swapped := url.Values{"SAMLResponse": goThere(&browser{s: s})["SAMLResponse"], "RelayState": form["RelayState"]}
		if _, q, text := come(b, swapped); q.Get("error") != "access_denied" {
			t.Errorf("an answer for another user: %v %s", q, text)
		}
		for name, form := range map[string]url.Values{
			"unsolicited": {"SAMLResponse": form["SAMLResponse"], "RelayState": {""}}, "no state": {"SAMLResponse": form["SAMLResponse"]},
			"an unknown state": {"SAMLResponse": form["SAMLResponse"], "RelayState": {strings.Repeat("0", 64)}},
		} {
			if response, page := post(b, returns, form); response.StatusCode != 403 || strings.Contains(page, "SAMLResponse") {
				t.Errorf("%s: %d %s", name, response.StatusCode, page)
			}
		}
		if response, q, text := come(b, form); q.Get("code") == "" {
			t.Errorf("in person: %d %v %s", response.StatusCode, q, text)
		}
	})
	s.Walk(t, "Once", func(t *testing.T) {
		form := goThere(b)
		address, again := repost(form)
		answers := make([]*http.Response, 8)
		var wg sync.WaitGroup
		for i := range answers {
			wg.Go(func() { answers[i], _ = post(&browser{s: s, cookie: b.cookie}, address, again) })
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
		if response, _ := post(b, address, again); response.StatusCode != 403 {
			t.Errorf("once more: %d %s", response.StatusCode, response.Header.Get("Location"))
		}
		if response, _ := post(b, returns, form); response.StatusCode != 403 {
			t.Errorf("from the beginning: %d", response.StatusCode)
		}
	})
	s.Walk(t, "Refused", func(t *testing.T) {
		// A provider of the same name with another key.
		honest := order
		order.Key, order.Certificate = pemOf(root.Signer(t, suite.RSASHA256, "Another provider"))
		if _, q, text := come(b, goThere(b)); q.Get("error") != "access_denied" {
			t.Errorf("another key: %v %s", q, text)
		}
		order = honest
		order.SignAssertion = false
		if _, q, text := come(b, goThere(b)); q.Get("error") != "access_denied" {
			t.Errorf("unsigned: %v %s", q, text)
		}
		order = honest
		if response, _ := b.send("GET", s.Dev.IDPURL+"/oauth/external/none/metadata", ""); response.StatusCode == 200 {
			t.Error("metadata of a provider that is not there")
		}
	})

	s.OK("ours", "DELETE", "/ums/user/"+id+"/login?issuerName=corp", "")
	if s.Works(got.AccessToken) || s.Refresh("app", got.RefreshToken).Status != 400 {
		t.Error("the sign-in outlives the login it came of")
	}
}
