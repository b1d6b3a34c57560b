// SPDX-License-Identifier: Apache-2.0

package account_test

import (
	"bytes"
	"crypto/x509"
	"maps"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"tamga/internal/tamgatest"
	"tamga/internal/tamgatest/pagetest"
	"tamga/pki/pfx"
)

var certificateLink = regexp.MustCompile(`href="(/certificates/([0-9]+))"`)

// TestCertificates manages certificates in pages, also where a change must be confirmed.
func TestCertificates(t *testing.T) {
	p := pagetest.NewPerson(t, "otpviasms")
	b := p.Browser
	const pin = "7403918"
	page := b.Shows(b.Get("/certificates"), ">Demo User</a>", "<dd>GOST R 34.10-2012, 512 bit</dd>", "Request a certificate")
	if strings.Contains(page.Text, "CN=") || strings.Contains(page.Text, "gost2012") {
		t.Errorf("the list shows a distinguished name, or the identifier of a suite:\n%s", page.Text)
	}
	b.Shows(b.Get("/certificates/1"), "<dd>CN=Demo User,C=RU</dd>") // the details have all
	page = b.Shows(b.Get("/certificates/request"), `name="name.2.5.4.3" value="Demo User"`, `value="gost2001">GOST R 34.10-2001<`, "ECDSA P-256", ">Common name (CN)</label>", ">Taxpayer number (INN)</label>")
	b.Header.Set("Accept-Language", "ru")
	b.Shows(b.Get("/certificates/request"), ">Общее имя (CN)</label>", ">ИНН (INN)</label>", "ГОСТ Р 34.10-2012, 256 бит")
	b.Header.Set("Accept-Language", "en")
	const hostile = `<script>alert("имя")</script>`
	request := url.Values{"suite": {"gost2012-512"}, "name.2.5.4.3": {hostile}, "new": {pin}, "again": {pin}, "days": {" 30 "}, "usages": {"1.3.6.1.5.5.7.3.2; 1.3.6.1.5.5.7.3.36"}}
	b.Is(b.Post("/certificates/request", url.Values{"suite": {"gost2001"}, "days": {"0"}}), 400, "want a number of days")
	b.Is(b.Post("/certificates/request", url.Values{"suite": {"gost2001"}, "days": {"60000"}}), 400, "the life of a certificate")
	b.Is(b.Post("/certificates/request", url.Values{"suite": {"gost2001"}, "usages": {"1.2.x"}}), 400, "want object identifiers")
	b.Is(b.Post("/certificates/request", url.Values{"suite": {"none"}}), 400)
	// A form that is refused keeps what was typed, but for the PIN.
	typed := url.Values{"suite": {"gost2012-512"}, "name.2.5.4.3": {hostile}, "name.1.2.643.3.131.1.1": {"12"}, "days": {"40"}, "usages": {"1.2.3"}, "new": {pin}, "again": {pin}}
	page = b.Post("/certificates/request", typed)
	b.Is(page, 400, `role="alert"`, `value="gost2012-512" selected`, `name="name.2.5.4.3" value="&lt;script&gt;`, `name="name.1.2.643.3.131.1.1" value="12"`, `value="40"`, `value="1.2.3"`)
	if strings.Contains(page.Text, pin) || strings.Contains(page.Text, "<script>alert") {
		t.Errorf("the form has the PIN, or a name became a part of it:\n%s", page.Text)
	}
	b.Is(b.Post("/certificates/request", url.Values{"suite": {"gost2001"}, "new": {pin}, "again": {"other"}}), 400, "PINs differ")
	for _, form := range []string{"/certificates/request", "/certificates/1"} {
		b.Shows(b.Get(form), "At least 6 characters. Not one repeated character", "Leave both fields empty for a key without a PIN.")
	}
	page = b.Shows(b.Post("/certificates/request", request), "accepted", "&lt;script")
	if strings.Contains(page.Text, "<script>alert") {
		t.Errorf("a subject became a part of the page:\n%s", page.Text)
	}
	// A request is deleted by a form that asks first.
	deletion := b.Find(page, regexp.MustCompile(`popovertarget="request-([0-9]+)"[^>]*>Delete</button>\n<div popover id="request-([0-9]+)" role="dialog"[^>]*>\n<form method="post" action="(/certificates/do/requests/[0-9]+/delete)" class="stack near">\n<h2 [^>]*>Delete request ([0-9]+)\?</h2>\n<p>Only the request disappears from this list`))
	if one := deletion[1]; deletion[2] != one || deletion[4] != one || !strings.Contains(deletion[3], "/"+one+"/") || strings.Count(page.Text, deletion[3]) != 1 {
		t.Errorf("the deletion of a request does not ask first: %q", deletion[1:])
	}
	all := certificateLink.FindAllStringSubmatch(page.Text, -1)
	at, id := "", "0"
	for _, m := range all {
		if len(m[2]) > len(id) || m[2] > id {
			at, id = m[1], m[2]
		}
	}
	page = b.Shows(b.Get(at), "&lt;script", "PIN", `<button class="btn danger sure" name="status" value="revoke">Revoke for good`, `<button class="btn danger sure">Delete`)
	if strings.Contains(page.Text, "<script>alert") {
		t.Errorf("a subject became a part of the page:\n%s", page.Text)
	}
	b.Shows(b.Get("/certificates"), `</svg>ends soon</span>`)
	b.Shows(b.Get("/start"), "A certificate ends soon", `&#34;&lt;script&gt;`, " is valid until ", `<a class="btn" href="`+at+`">Renew`)
	b.Shows(b.Post(at+"/do/name", url.Values{"name": {`My "key" & <i>`}}), "The name is saved.", "My &#34;key&#34; &amp; &lt;i&gt;")
	b.Is(b.Post("/certificates/1/do/name", url.Values{"name": {`My "key" & <i>`}}), 400, "Another certificate of yours", `href="/certificates/1"`)
	page = b.Shows(b.Post(at+"/do/default", nil), "The default certificate is changed.")
	if !regexp.MustCompile(`default</span>[^\n]*</p>\n<h2><a href="` + at + `"`).MatchString(page.Text) {
		t.Errorf("certificate %s is not the default one:\n%s", id, page.Text)
	}
	file := b.Shows(b.Get(at + "/certificate.cer"))
	if file.Header.Get("Content-Type") != "application/pkix-cert" || file.Text[0] != 0x30 {
		t.Errorf("%v", file.Header)
	}
	if c, err := x509.ParseCertificate([]byte(file.Text)); err != nil || c.NotAfter.Sub(c.NotBefore) > 31*24*time.Hour || len(c.ExtKeyUsage) != 1 || len(c.UnknownExtKeyUsage) != 1 {
		t.Errorf("the certificate has another life or other purposes than the request: %v, %v", c, err)
	}

	// PIN, renewal, hold, revocation, deletion.
	const second = "5820467"
	b.Is(b.Post(at+"/do/pin", url.Values{"pin": {"000000"}, "new": {second}, "again": {second}}), 400, "The PIN is wrong")
	b.Shows(b.Post(at+"/do/pin", url.Values{"pin": {pin}, "new": {second}, "again": {second}}))
	b.Is(b.Post(at+"/do/renew", url.Values{"pin": {pin}}), 400, "The PIN is wrong")
	page = b.Shows(b.Post(at+"/do/renew", url.Values{"pin": {second}}))
	if n := len(certificateLink.FindAllString(page.Text, -1)); n != len(all)+2 { // a card has two links
		t.Errorf("after the renewal there are %d links to certificates, want %d", n, len(all)+2)
	}
	b.Shows(b.Post(at+"/do/status", url.Values{"status": {"hold"}, "comment": {"<b>lost</b>"}}))
	b.Shows(b.Get(at), "On hold", "&lt;b&gt;lost&lt;/b&gt;", "End the hold")
	b.Shows(b.Post(at+"/do/status", url.Values{"status": {"unhold"}}))
	b.Is(b.Post(at+"/do/status", url.Values{"status": {"revoke"}, "reason": {"1"}}), 400, "sure")
	b.Is(b.Post(at+"/do/status", url.Values{"status": {"revoke"}, "reason": {"2"}, "sure": {id}}), 400)
	b.Is(b.Post(at+"/do/status", url.Values{"status": {"none"}}), 400)
	b.Shows(b.Post(at+"/do/status", url.Values{"status": {"revoke"}, "reason": {"1"}, "sure": {id}}))
	b.Shows(b.Get(at), "Revoked", "the key may be known to others")
	b.Is(b.Post(at+"/do/status", url.Values{"status": {"unhold"}}), 400, "is not on hold.<")
	b.Is(b.Post(at+"/do/delete", nil), 400)
	b.Shows(b.Post(at+"/do/delete", url.Values{"sure": {id}}))
	b.Is(b.Get(at), 404, "You have no certificate of this number.<")
	b.Is(b.Get("/certificates/none"), 404)

	t.Run("confirmed", func(t *testing.T) {
		p.Confirms(pagetest.BitCreateRequest, pagetest.BitChangePIN)
		b.Is(b.Post("/certificates/request", url.Values{"suite": {"gost2001"}, "new": {"1"}, "again": {"1"}}), 400)
		page := b.Shows(b.Post("/certificates/request", request), "Request for a certificate", "&lt;script", "Code by SMS")
		at := page.At.Path
		// No name that hides what it says is certified.
		b.Is(b.Post("/certificates/request", url.Values{"suite": {"gost2001"}, "name.2.5.4.3": {"x\u202egpj"}}), 400, "has the character U&#43;202E")
		b.Shows(b.Post(at, url.Values{"choice": {"otpviasms"}}))
		code := p.Code(p.Phone)
		if page = b.Shows(b.Post(at, url.Values{"code": {code}}), "&lt;script", "Confirmed and done."); page.At.Path != "/certificates" {
			t.Errorf("after the code the browser is at %s", page.At)
		}
		b.Shows(b.Get(at), "Done", `href="/certificates"`)
		for _, text := range []string{pin, code} {
			if strings.Contains(b.Get(at).Text, text) {
				t.Errorf("the page shows a secret")
			}
		}
	})
	t.Run("export is off", func(t *testing.T) {
		if p := b.Shows(b.Get("/certificates/1")); strings.Contains(p.Text, "do/export") {
			t.Error("a key can be exported where the configuration does not allow it")
		}
		b.Is(b.Post("/certificates/1/do/export", url.Values{"password": {"12345678"}, "password_again": {"12345678"}}), 400, "forbids the export of keys")
	})
	t.Run("denied", func(t *testing.T) {
		p.Denies(pagetest.BitRevoke, pagetest.BitCreateRequest)
		b.Is(b.Get("/certificates/request"), 403, "ask your operator for one")
		if page := b.Shows(b.Get("/certificates")); strings.Contains(page.Text, `href="/certificates/request"`) {
			t.Error("the list leads to a request that is refused")
		}
		b.Is(b.Post("/certificates/1/do/status", url.Values{"status": {"revoke"}, "reason": {"0"}, "sure": {"1"}}), 403)
		b.Shows(b.Get("/certificates/1"), "Valid")
	})
	t.Run("another person", func(t *testing.T) {
		other := pagetest.New(t, p.Server)
		other.Shows(other.SignIn("/certificates", p.Dev.Operator.Login, p.Dev.Operator.Password), "no certificate yet")
		for path, says := range map[string]string{"/start": "You can soon sign for the first time", "/sign": "no certificate to sign with."} { // who lacks a certificate is led to the request
			if p := other.Shows(other.Get(path), says, `href="/certificates/request"`); strings.Contains(p.Text, "Ask your operator") {
				t.Errorf("%s leads to an operator:\n%s", path, p.Text)
			}
		}
		for _, path := range []string{"/certificates/1", "/certificates/1/certificate.cer", "/certificate-requests/1/request.p10"} {
			other.Is(other.Get(path), 404)
		}
		for _, path := range []string{"default", "name", "pin", "renew", "status", "delete"} {
			other.Is(other.Post("/certificates/1/do/"+path, url.Values{"sure": {"1"}, "status": {"hold"}}), 404)
		}
	})
}

// TestExportKey takes keys out of the service, after a confirmation.
func TestExportKey(t *testing.T) {
	t.Parallel()
	p := pagetest.NewPersonWith(t, []string{"--set", "certificates.exportable_by_users=true"})
	b := p.Browser
	withPIN := p.Cert("gost2012-256", true)
	at := "/certificates/" + strconv.FormatInt(withPIN.ID, 10)
	const password = "secret of the file"
	form := url.Values{"pin": {withPIN.PIN}, "password": {password}, "password_again": {password}}
	export := at + "/do/export"
	b.Shows(b.Get(at), `action="`+export+`"`, "the file and its password can sign")
	b.Is(b.Post(export, form), 400, "no method to confirm with") // a session alone takes no key out
	p.OK(tamgatest.Ours, "POST", "/ums/user/"+p.Id+"/authmethod/otpviasms?level=1", "")
	for _, c := range []struct {
		field, value, want string
	}{
		{"pin", "000000", "The PIN is wrong"}, {"password_again", "other", "passwords of the file differ"},
	} {
		bad := maps.Clone(form)
		bad.Set(c.field, c.value)
		b.Is(b.Post(export, bad), 400, c.want)
	}
	b.Is(b.Post(export, url.Values{"pin": {withPIN.PIN}, "password": {"short"}, "password_again": {"short"}}), 400, "at least 8 characters")
	page := b.Shows(b.Post(export, form), "Export of a private key", "Code by SMS")
	confirmation := page.At.Path
	b.Shows(b.Post(confirmation, url.Values{"choice": {"otpviasms"}}))
	code := url.Values{"code": {p.Code(p.Phone)}}
	file := b.Shows(b.Post(confirmation, code))
	if got := file.Header.Get("Content-Disposition"); !strings.Contains(got, "certificate-"+strconv.FormatInt(withPIN.ID, 10)+".p12") || file.Header.Get("Cache-Control") != "no-store" {
		t.Errorf("the file: %v", file.Header)
	}
	bundle, err := pfx.Parse([]byte(file.Text), password)
	if err != nil {
		t.Fatal(err)
	}
	signer := bundle.Key
	if signer == nil || bundle.Certificate == nil {
		t.Fatal("the file has no key or no certificate")
	}
	if err := bundle.Certificate.Suite.Accepts(signer.Public()); err != nil || !bytes.Equal(bundle.Certificate.Raw, []byte(b.Shows(b.Get(at+"/certificate.cer")).Text)) {
		t.Errorf("the file has another key or certificate: %v", err)
	}
	again := b.Post(confirmation, code)
	if strings.HasPrefix(again.Text, "0") || again.Header.Get("Content-Disposition") != "" {
		t.Errorf("the confirmation gives the key twice: %v", again.Header)
	}
	log := p.Command("audit", "--user", p.Id, "--limit", "0", "--json")
	for _, want := range []string{"ExportKeyByPage", "the key of certificate " + strconv.FormatInt(withPIN.ID, 10) + " was exported"} {
		if !strings.Contains(log, want) {
			t.Errorf("the audit log has no %q", want)
		}
	}
	for name, secret := range map[string]string{"password": password, "PIN": withPIN.PIN} {
		if strings.Contains(log, secret) || strings.Contains(p.Logged(), secret) {
			t.Errorf("the logs have the %s", name)
		}
	}
	p.Denies(pagetest.BitPrivateKeyAccess)
	b.Is(b.Post(export, form), 403)
	if p := b.Shows(b.Get(at)); strings.Contains(p.Text, "do/export") {
		t.Error("the page offers what the policy denies")
	}
	other := pagetest.New(t, p.Server)
	other.Shows(other.SignIn("/certificates", p.Dev.Operator.Login, p.Dev.Operator.Password), "no certificate yet")
	other.Is(other.Post(export, form), 400) // an operator has nothing to confirm with either
}

// TestNumbersOfRequest checks that a request with a typing error in a number is doubted, and sent on the
// word of the person.
func TestNumbersOfRequest(t *testing.T) {
	t.Parallel()
	b := pagetest.NewPerson(t).Browser
	const (
		box  = `<input type="checkbox" name="as_is" value="yes"`
		form = "/certificates/request"
	)
	if page := b.Shows(b.Get(form)); strings.Contains(page.Text, box) {
		t.Error("the form offers to send wrong numbers before any number is wrong")
	}
	request := url.Values{"suite": {"gost2012-256"}, "name.2.5.4.3": {"Anna"}, "name.1.2.643.3.131.1.1": {"500100732258"}}
	b.Is(b.Post(form, request), 400, "Taxpayer number: the check digits do not fit", `value="500100732258"`, box+">")
	b.Header.Set("Accept-Language", "ru")
	b.Is(b.Post(form, request), 400, "ИНН: контрольные цифры не сходятся", "Номера верны: запросить сертификат с ними")
	b.Header.Set("Accept-Language", "en")
	if page := b.Shows(b.Get("/certificates")); strings.Contains(page.Text, ">Anna<") {
		t.Error("a doubted request is sent")
	}
	wrong := maps.Clone(request)
	wrong.Set("as_is", "yes")
	wrong.Set("days", "none")
	b.Is(b.Post(form, wrong), 400, "want a number of days", box+" checked>")
	wrong.Del("days")
	b.Shows(b.Post(form, wrong), "accepted", ">Anna<")
	request.Set("name.1.2.643.3.131.1.1", "500100732259")
	b.Shows(b.Post(form, request), "accepted")
}

// TestForEncryption requests a certificate for encryption, and deletes it: the dialog says what becomes unreadable, and
// wants the number.
func TestForEncryption(t *testing.T) {
	p := pagetest.NewPerson(t)
	b := p.Browser
	b.Shows(b.Get("/certificates/request"), `name="encryption"`)
	page := b.Shows(b.Post("/certificates/request", url.Values{"suite": {"gost2012-256"}, "name.2.5.4.3": {"Reader"}, "encryption": {"yes"}}), "For encryption")
	at, id := "", ""
	for _, m := range certificateLink.FindAllStringSubmatch(page.Text, -1) {
		if strings.Contains(b.Get(m[1]).Text, `<h1 id="of">Reader<`) {
			at, id = m[1], m[2]
		}
	}
	b.Shows(b.Get(at), "signatures and encryption", "Everything that was encrypted for it becomes unreadable", `name="sure"`)
	if other := b.Shows(b.Get("/certificates/1"), "<dd>signatures</dd>"); strings.Contains(other.Text, "becomes unreadable") {
		t.Error("a certificate that signs only is deleted with the warning of one for encryption")
	}
	b.Is(b.Post(at+"/do/delete", url.Values{"sure": {"1"}}), 400, "becomes unreadable", `aria-invalid="true"`)
	b.Shows(b.Get(at))
	b.Shows(b.Post(at+"/do/delete", url.Values{"sure": {id}}))
	b.Is(b.Get(at), 404)
	// Operators see the purposes of certificates and requests.
	o := pagetest.Operator(p.UMS, p.Dev.Operator.Login)
	o.Shows(o.Get(pagetest.PersonAt(p.Id)+"/certificates"), "For encryption", "for encryption, too")
}
