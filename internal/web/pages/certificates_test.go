// SPDX-License-Identifier: Apache-2.0

package pages_test

import (
	"crypto/x509"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"
)

var certificateLink = regexp.MustCompile(`href="(/certificates/([0-9]+))"`)

// TestCertificates manages certificates in pages, also where a change must be confirmed.
func TestCertificates(t *testing.T) {
	p := newPerson(t, "otpviasms")
	b := p.browser
	const pin = "7403918"
	b.ok(b.get("/certificates"), "gost2012-512", "Request a certificate")
	page := b.ok(b.get("/certificates/request"), `name="name.2.5.4.3" value="demo"`, "gost2001", "ecdsa-p256")
	const hostile = `<script>alert("имя")</script>`
	request := url.Values{"suite": {"gost2012-512"}, "name.2.5.4.3": {hostile}, "new": {pin}, "again": {pin}, "days": {" 30 "}, "usages": {"1.3.6.1.5.5.7.3.2; 1.3.6.1.5.5.7.3.36"}}
	b.is(b.post("/certificates/request", url.Values{"suite": {"gost2001"}, "days": {"0"}}), 400, "want a number of days")
	b.is(b.post("/certificates/request", url.Values{"suite": {"gost2001"}, "days": {"60000"}}), 400, "the life of a certificate")
	b.is(b.post("/certificates/request", url.Values{"suite": {"gost2001"}, "usages": {"1.2.x"}}), 400, "want object identifiers")
	b.is(b.post("/certificates/request", url.Values{"suite": {"none"}}), 400)
	b.is(b.post("/certificates/request", url.Values{"suite": {"gost2001"}, "new": {pin}, "again": {"other"}}), 400, "PINs differ")
	page = b.ok(b.post("/certificates/request", request), "accepted", "&lt;script")
	if strings.Contains(page.text, "<script>alert") {
		t.Errorf("a subject became a part of the page:\n%s", page.text)
	}
	all := certificateLink.FindAllStringSubmatch(page.text, -1)
	at, id := "", "0"
	for _, m := range all {
		if len(m[2]) > len(id) || m[2] > id {
			at, id = m[1], m[2]
		}
	}
	page = b.ok(b.get(at), "&lt;script", "Revoke for good", "PIN")
	if strings.Contains(page.text, "<script>alert") {
		t.Errorf("a subject became a part of the page:\n%s", page.text)
	}
	b.ok(b.post(at+"/do/name", url.Values{"name": {`My "key" & <i>`}}), "My &#34;key&#34; &amp; &lt;i&gt;")
	b.is(b.post("/certificates/1/do/name", url.Values{"name": {`My "key" & <i>`}}), 400, "Another certificate of yours", `href="/certificates/1"`)
	page = b.ok(b.post(at+"/do/default", nil))
	if !regexp.MustCompile(at + `">[^<]*</a> <span class="badge">default`).MatchString(page.text) {
		t.Errorf("certificate %s is not the default one:\n%s", id, page.text)
	}
	file := b.ok(b.get(at + "/certificate.cer"))
	if file.header.Get("Content-Type") != "application/pkix-cert" || file.text[0] != 0x30 {
		t.Errorf("%v", file.header)
	}
	if c, err := x509.ParseCertificate([]byte(file.text)); err != nil || c.NotAfter.Sub(c.NotBefore) > 31*24*time.Hour || len(c.ExtKeyUsage) != 1 || len(c.UnknownExtKeyUsage) != 1 {
		t.Errorf("the certificate has another life or other purposes than the request: %v, %v", c, err)
	}

	// PIN, renewal, hold, revocation, deletion.
	const second = "5820467"
	b.is(b.post(at+"/do/pin", url.Values{"pin": {"000000"}, "new": {second}, "again": {second}}), 400, "The PIN is wrong")
	b.ok(b.post(at+"/do/pin", url.Values{"pin": {pin}, "new": {second}, "again": {second}}))
	b.is(b.post(at+"/do/renew", url.Values{"pin": {pin}}), 400, "The PIN is wrong")
	page = b.ok(b.post(at+"/do/renew", url.Values{"pin": {second}}))
	if n := len(certificateLink.FindAllString(page.text, -1)); n != len(all)+1 {
		t.Errorf("after the renewal there are %d certificates, want %d", n, len(all)+1)
	}
	b.ok(b.post(at+"/do/status", url.Values{"status": {"hold"}, "comment": {"<b>lost</b>"}}))
	b.ok(b.get(at), "On hold", "&lt;b&gt;lost&lt;/b&gt;", "End the hold")
	b.ok(b.post(at+"/do/status", url.Values{"status": {"unhold"}}))
	b.is(b.post(at+"/do/status", url.Values{"status": {"revoke"}, "reason": {"1"}}), 400, "sure")
	b.is(b.post(at+"/do/status", url.Values{"status": {"revoke"}, "reason": {"2"}, "sure": {id}}), 400)
	b.is(b.post(at+"/do/status", url.Values{"status": {"none"}}), 400)
	b.ok(b.post(at+"/do/status", url.Values{"status": {"revoke"}, "reason": {"1"}, "sure": {id}}))
	b.ok(b.get(at), "Revoked", "the key may be known to others")
	b.is(b.post(at+"/do/status", url.Values{"status": {"unhold"}}), 400, "state of the certificate")
	b.is(b.post(at+"/do/delete", nil), 400)
	b.ok(b.post(at+"/do/delete", url.Values{"sure": {id}}))
	b.is(b.get(at), 404, "no such certificate")
	b.is(b.get("/certificates/none"), 404)

	t.Run("confirmed", func(t *testing.T) {
		p.confirms(bitCreateRequest, bitChangePIN)
		b.is(b.post("/certificates/request", url.Values{"suite": {"gost2001"}, "new": {"1"}, "again": {"1"}}), 400)
		page := b.ok(b.post("/certificates/request", request), "Request for a certificate", "&lt;script", "Code by SMS")
		at := page.at.Path
		b.ok(b.post(at, url.Values{"choice": {"otpviasms"}}))
		code := p.Code(p.phone)
		if page = b.ok(b.post(at, url.Values{"code": {code}}), "&lt;script"); page.at.Path != "/certificates" {
			t.Errorf("after the code the browser is at %s", page.at)
		}
		b.ok(b.get(at), "Done", `href="/certificates"`)
		for _, text := range []string{pin, code} {
			if strings.Contains(b.get(at).text, text) {
				t.Errorf("the page shows a secret")
			}
		}
	})
	t.Run("denied", func(t *testing.T) {
		p.denies(bitRevoke)
		b.is(b.post("/certificates/1/do/status", url.Values{"status": {"revoke"}, "reason": {"0"}, "sure": {"1"}}), 403)
		b.ok(b.get("/certificates/1"), "Valid")
	})
	t.Run("another person", func(t *testing.T) {
		other := newBrowser(t, p.Server)
		other.ok(other.signIn("/certificates", p.Dev.Operator.Login, p.Dev.Operator.Password), "no certificate")
		for _, path := range []string{"/certificates/1", "/certificates/1/certificate.cer", "/certificate-requests/1/request.p10"} {
			other.is(other.get(path), 404)
		}
		for _, path := range []string{"default", "name", "pin", "renew", "status", "delete"} {
			other.is(other.post("/certificates/1/do/"+path, url.Values{"sure": {"1"}, "status": {"hold"}}), 404)
		}
	})
}
