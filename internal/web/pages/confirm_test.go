// SPDX-License-Identifier: Apache-2.0

package pages_test

import (
	"encoding/json"
	"fmt"
	"html"
	"net/http"
	"net/url"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"tamga/internal/tamgatest"
)

// person is the user demo in a browser, with a phone that gets codes.
type person struct {
	*browser
	*tamgatest.UMS
	t     *testing.T
	id    string
	phone string
}

// newPerson starts a server and signs the user demo in. Methods are those to confirm with.
func newPerson(t *testing.T, methods ...string) *person {
	t.Helper()
	return newPersonWith(t, nil, methods...)
}

// newPersonWith is newPerson with further flags of the server.
func newPersonWith(t *testing.T, flags []string, methods ...string) *person {
	t.Helper()
	w := tamgatest.StartUMS(t, append([]string{"--set", "messages.budgets.sms.recipient=0", "--set", "confirmation.codes.resend=1s"}, flags...)...)
	p := &person{newBrowser(t, w.Server), w, t, w.Dev.User.ID, "79250000078"}
	phones := "/ums/user/" + p.id + "/phones"
	p.OK(tamgatest.Ours, "POST", phones, fmt.Sprintf("%q", p.phone))
	p.OK(tamgatest.Ours, "POST", phones+"/"+p.phone+"/confirm", "")
	p.OK(tamgatest.Ours, "POST", phones+"/"+p.phone+"/secondaryauth", "")
	for _, m := range methods {
		p.OK(tamgatest.Ours, "POST", "/ums/user/"+p.id+"/authmethod/"+m+"?level=1", "")
	}
	p.signIn("/start", w.Dev.User.Login, w.Dev.User.Password)
	return p
}

// confirms sets the actions that need a confirmation.
func (p *person) confirms(actions ...int) {
	p.t.Helper()
	text, err := json.Marshal(actions)
	if err != nil {
		p.t.Fatal(err)
	}
	p.OK(tamgatest.Ours, "POST", "/ums/user/"+p.id+"/operationpolicy", string(text))
}

// denies sets the actions that the user may not do.
func (p *person) denies(actions ...int) {
	p.t.Helper()
	text, err := json.Marshal(actions)
	if err != nil {
		p.t.Fatal(err)
	}
	p.OK(tamgatest.Ours, "POST", "/ums/user/"+p.id+"/accesspolicy", string(text))
}

// Bits of actions in policies.
const (
	bitSignDocument  = 2
	bitSignDocuments = 4
	bitCreateRequest = 16
	bitChangePIN     = 32
	bitRevoke        = 128

	bitPrivateKeyAccess = 2048
)

var (
	confirmLink = regexp.MustCompile(`href="(/confirm/[0-9a-f-]{36})"`)
	shownNumber = regexp.MustCompile(`class="number">([0-9]{2})<`)
)

// waits signs files that wait for a confirmation and returns the address of that page.
func (p *person) waits(files ...file) string {
	p.t.Helper()
	page := p.ok(p.upload("/sign", map[string]string{"certificate": "1"}, files...), "Waits for confirmation")
	return p.find(page, confirmLink)[1]
}

// carriedOut returns the page of a confirmation when no process carries it out any more.
func (p *person) carriedOut(at string) shown {
	p.t.Helper()
	for {
		page := p.ok(p.get(at))
		if !strings.Contains(page.text, `data-wait="Confirmed"`) {
			return page
		}
	}
}

// device registers a verified device of the user.
func (p *person) device() string {
	p.t.Helper()
	file := filepath.Join(p.t.TempDir(), "phone.json")
	p.onPhone(file, "register", "--service", p.Dev.DevicesURL, "--name", `Phone <b>"1"</b>`)
	var facts struct{ Kid string }
	if err := json.Unmarshal([]byte(p.onPhone(file, "show", "--json")), &facts); err != nil {
		p.t.Fatal(err)
	}
	p.OK(tamgatest.Ours, "POST", "/ums/user/"+p.id+"/mydss/assign", `{"Kid":"`+facts.Kid+`"}`)
	_, text := p.Verification(p.id, facts.Kid)
	p.onPhone(file, "verify", "--qr-text", text)
	return file
}

func (p *person) onPhone(file string, args ...string) string {
	p.t.Helper()
	out, err := tamgatest.Phone(p.t, file, args...)
	if err != nil {
		p.t.Fatalf("%s: %s, %v", args[0], out, err)
	}
	return out
}

const hostileName = `<img src=x onerror=alert(1)>&"'.txt`

// TestConfirm confirms operations in a page: by a code, on a device, by document.
func TestConfirm(t *testing.T) {
	p := newPerson(t, "otpviasms", "mydss")
	p.confirms(bitSignDocument, bitSignDocuments)
	b := p.browser

	t.Run("by code", func(t *testing.T) {
		at := p.waits(file{"file", hostileName, "text of the document"})
		b.ok(b.get("/confirm"), "Signing a document", at)
		b.ok(b.get("/start"), "Waits for you", `href="`+at+`"`, "asked by Pages of this service")
		page := b.ok(b.get(at), "<dd>Pages of this service</dd>", "<dd>CAdES-BES, detached</dd>", `<a href="/certificates/1">Demo User</a>`, "<code>isdetached</code></dt><dd><code>True</code>", "Check number", "Code by SMS: ***0078", "Decline all")
		if strings.Contains(page.text, "<img src=x") || strings.Contains(page.text, `name="code"`) {
			t.Errorf("a name became a part of the page, or a code is asked before one was sent:\n%s", page.text)
		}
		if got := b.ok(b.get(at + "/documents/0")); got.text != "text of the document" || !strings.HasPrefix(got.header.Get("Content-Disposition"), "attachment") {
			t.Errorf("the document: %q %v", got.text, got.header)
		}
		if got := b.ok(b.get(at + "/shown/0")); got.text != "text of the document" || got.header.Get("Content-Type") != "text/plain; charset=utf-8" || got.header.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("the text: %q %v", got.text, got.header)
		}
		b.is(b.get(at+"/documents/1"), 404)
		b.is(b.get(at+"/pdf/0"), 400, "only pictures, texts and PDF")
		page = b.ok(b.post(at, url.Values{"choice": {"otpviasms"}}), `name="code"`, "Type the code that was sent by SMS")
		code := p.Code(p.phone)
		b.is(b.post(at, url.Values{"code": {""}}), 400)
		wrong := string('0'+(code[0]-'0'+1)%10) + code[1:]
		if page = b.post(at, url.Values{"code": {wrong}}); page.status == 200 || !strings.Contains(page.text, "The code is wrong") {
			t.Errorf("a wrong code: %d\n%s", page.status, page.text)
		}
		b.find(page, regexp.MustCompile(`action="(`+at+`)" id="answer"`)) // the next one may be right
		tab := &browser{t, b.server, b.client, b.header}                  // another tab
		tab.ok(tab.get(at), `name="code"`)
		page = b.ok(b.post(at, url.Values{"code": {" " + code[:3] + " " + code[3:]}}), "<td>Signed")
		if page.at.Path != "/signed" {
			t.Errorf("after the code the browser is at %s", page.at)
		}
		// The other tab, and the back button, show what has happened.
		if page = tab.ok(tab.post(at, url.Values{"code": {code}}), "<h1>Confirmation of an operation</h1>", "Done", "/signed?"); page.at.Path != at {
			t.Errorf("the other tab is at %s", page.at)
		}
		b.ok(b.post(at, url.Values{"decline": {"yes"}}), "Done")
		b.ok(b.post(at, url.Values{"choice": {"otpviasms"}}), "Done")
		b.ok(b.get("/confirm"), "Nothing waits")
		b.is(b.get(at+"/documents/0"), 400)
	})
	t.Run("a PDF is shown", func(t *testing.T) {
		content := string(tamgatest.PDFOf(2000))
		at := p.waits(file{"file", hostileName + ".pdf", content})
		page := b.ok(b.get(at+"/shown/0"), `data-document="`+at+`/documents/0"`, "Next page", html.EscapeString("onerror"))
		policy := page.header.Get("Content-Security-Policy")
		if page.at.Path != at+"/pdf/0" || strings.Contains(page.text, "<img src=x") || !strings.Contains(policy, "worker-src "+p.Dev.BaseURL[:strings.Index(p.Dev.BaseURL, "/SignServer")]+"/assets/pdfjs-") || strings.Contains(policy, "unsafe") {
			t.Errorf("%s, %s:\n%s", page.at, policy, page.text)
		}
		if got := b.ok(b.get(at + "/documents/0")); got.text != content {
			t.Error("the page draws other bytes than those that will be signed")
		}
		other := newBrowser(t, p.Server)
		other.ok(other.signIn("/start", p.Dev.Operator.Login, p.Dev.Operator.Password))
		for _, path := range []string{"/pdf/0", "/shown/0", "/documents/0"} {
			if got := other.get(at + path); got.status < 400 {
				t.Errorf("another person sees %s: %d", path, got.status)
			}
		}
		b.ok(b.post(at, url.Values{"decline": {"yes"}}))
	})
	t.Run("by document", func(t *testing.T) {
		at := p.waits(file{"file", "one.txt", "1"}, file{"file", "two.txt", "2"}, file{"file", "three.txt", "3"})
		b.ok(b.post(at, url.Values{"choice": {"otpviasms"}}), `name="declined" value="2"`)
		code := p.Code(p.phone)
		b.is(b.post(at, url.Values{"code": {code}, "declined": {"3"}}), 400)
		b.is(b.post(at, url.Values{"code": {code}, "declined": {"0", "1", "2"}}), 400)
		b.is(b.post(at, url.Values{"code": {code}, "declined": {"x"}}), 400)
		// After a wrong code, the marks are still there.
		b.is(b.post(at, url.Values{"code": {"wrong"}, "declined": {"1"}}), 400, `role="alert" id="wrong">The code is wrong`, `value="1" form="answer" checked>`, `value="2" form="answer">`)
		// So they are after a new code and while another method is chosen.
		marked := []string{`value="0" form="answer">`, `value="1" form="answer" checked>`, `name="others" value="yes" form="answer" formnovalidate`}
		b.is(b.post(at, url.Values{"again": {"yes"}, "declined": {"1", "-1", "999"}}), 200, marked...)
		b.is(b.post(at, url.Values{"others": {"yes"}, "declined": {"1"}}), 200, `id="answer"`, `name="choice" value="otpviasms`, marked[1])
		b.is(b.post(at, url.Values{"choice": {"otpviasms"}, "declined": {"1"}}), 200, marked...)
		code = p.Code(p.phone)
		b.is(b.get(at+"?others=yes&declined=x.1."), 200, marked[1])
		page := b.ok(b.post(at, url.Values{"code": {code}, "declined": {"1"}}), "Declined")
		if n := strings.Count(page.text, "<td>Signed"); n != 2 || strings.Count(page.text, "<td>Declined") != 1 {
			t.Errorf("%d of 2 are signed:\n%s", n, page.text)
		}
	})
	t.Run("a damaged document", func(t *testing.T) {
		one := map[string]string{"certificate": "1"}
		good, bad := file{"file", "good.xml", "<a/>"}, file{"file", "bad.xml", "<a>"}
		b.is(b.upload("/sign", one, good, bad), 400, "The refusal is about these files:</p>\n<ul>\n<li>bad.xml</li>\n</ul>")
		page := b.upload("/sign", one, file{"file", "a.txt", "a"}, good, bad)
		b.is(page, 400, "The refusal is about these files:</p>\n<ul>\n<li>bad.xml</li>\n</ul>", "Nothing is signed")
		b.header.Set("Accept-Language", "ru")
		defer b.header.Set("Accept-Language", "en")
		b.is(b.upload("/sign", one, good, bad), 400, "Отказ касается этих файлов:</p>\n<ul>\n<li>bad.xml</li>\n</ul>")
	})
	t.Run("several formats", func(t *testing.T) {
		at := p.waits(file{"file", "a.txt", "a"}, file{"file", "b.xml", "<b/>"}, file{"file", "c.txt", "c"})
		b.ok(b.get(at), "CAdES-BES, detached: 2 documents", "XML, signature in the document: 1 document", `<th colspan="4">CAdES-BES, detached</th>`, "ways[1].xmldsigtype")
		b.ok(b.post(at, url.Values{"choice": {"otpviasms"}}))
		page := b.ok(b.post(at, url.Values{"code": {p.Code(p.phone)}}), "3 documents are signed", ">a.txt.sig</a>", ">b.xml</a>", ">c.txt.sig</a>")
		if strings.Contains(page.text, "/confirm/") {
			t.Errorf("something waits for another confirmation:\n%s", page.text)
		}
	})
	t.Run("decline", func(t *testing.T) {
		at := p.waits(file{"file", "one.txt", "1"})
		b.ok(b.post(at, url.Values{"decline": {"yes"}}), "Declined")
		b.ok(b.post(at, url.Values{"choice": {"otpviasms"}}), "Declined")
		b.is(b.post(at+"/none", url.Values{"decline": {"yes"}}), 404)
		b.is(b.get("/confirm/"+tamgatest.Missing), 400, "does not wait for you")
	})
	t.Run("on a device", func(t *testing.T) {
		phone := p.device()
		at := p.waits(file{"file", "a.pdf", string(tamgatest.PDFOf(2000))})
		id := strings.TrimPrefix(at, "/confirm/")
		page := b.ok(b.get(at), "On the device: Phone &lt;b&gt;")
		choice := b.find(page, regexp.MustCompile(`name="choice" value="(mobile[^"]*)"`))[1]
		page = b.ok(b.post(at, url.Values{"choice": {choice}}), "Confirm on your device", `src="data:image/gif;base64,`, `data-wait="Challenged 1"`)
		if policy := page.header.Get("Content-Security-Policy"); !strings.Contains(policy, "img-src data:") || !strings.Contains(policy, "script-src 'sha256-") {
			t.Errorf("the policy is %s", policy)
		}
		number := b.find(page, shownNumber)[1]
		b.ok(b.get(at+"/shown/0"), "data-view") // drawn by our scripts, never handed to the browser
		p.onPhone(phone, "approve", id, "--number", number, "--yes")
		if page = p.carriedOut(at); !strings.Contains(page.text, "Done") || strings.Contains(page.text, `name="finish"`) {
			t.Errorf("after the approval on the device the page is\n%s", page.text)
		}
		b.ok(b.get("/signed?operation="+id), "<td>Signed")
		b.ok(b.post(at, url.Values{"finish": {"yes"}}), "Done") // the form of an earlier release
		at = p.waits(file{"file", "b.txt", "b"})
		b.ok(b.post(at, url.Values{"choice": {choice}}))
		p.onPhone(phone, "decline", strings.TrimPrefix(at, "/confirm/"), "--yes")
		b.ok(b.get(at), "Declined")
	})
	t.Run("a PIN", func(t *testing.T) {
		withPIN := p.Cert("gost2012-256", true)
		number := strconv.FormatInt(withPIN.ID, 10)
		form := map[string]string{"certificate": number}
		b.is(b.upload("/sign", form, file{"file", "a.txt", "a"}), 400, "The key of this certificate has a PIN: give it")
		phone := p.device()
		present := withPIN.PIN
		changed := func(next string) {
			b.ok(b.post("/certificates/"+number+"/do/pin", url.Values{"pin": {present}, "new": {next}, "again": {next}}))
			present = next
		}
		for _, by := range []string{"code", "device"} {
			form["pin"] = present
			page := b.ok(b.upload("/sign", form, file{"file", by + ".txt", by}), "Waits for confirmation")
			at := p.find(page, confirmLink)[1]
			changed(present + "1")
			if by == "code" {
				b.ok(b.post(at, url.Values{"choice": {"otpviasms"}}))
				b.is(b.post(at, url.Values{"code": {p.Code(p.phone)}}), 400, `role="alert" id="wrong">The PIN is wrong`, `name="pin"`)
			} else {
				page = b.ok(b.get(at), "On the device")
				all := regexp.MustCompile(`name="choice" value="(mobile[^"]*)"`).FindAllStringSubmatch(page.text, -1)
				page = b.ok(b.post(at, url.Values{"choice": {all[len(all)-1][1]}}))
				p.onPhone(phone, "approve", strings.TrimPrefix(at, "/confirm/"), "--number", b.find(page, shownNumber)[1], "--yes")
				p.carriedOut(at)
			}
			b.ok(b.get(at), "You have confirmed it. It waits for the PIN", `name="pin"`)
			b.ok(b.get("/signed?operation="+strings.TrimPrefix(at, "/confirm/")), "It waits for the PIN", `href="`+at+`">Continue`)
			b.is(b.post(at, url.Values{"finish": {"yes"}, "pin": {"000000"}}), 400, `id="wrong">The PIN is wrong`, `name="pin"`)
			b.ok(b.post(at, url.Values{"finish": {"yes"}, "pin": {present}}), "<td>Signed")
		}
	})
	t.Run("of an application", func(t *testing.T) {
		status, body := p.Call("POST", "/api/v2/signature", p.Token(), map[string]any{
			"BinaryData": []any{map[string]any{"Content": []byte("x"), "ContentInfo": "x.txt"}},
			"Signature":  map[string]any{"Type": "CMS", "Parameters": map[string]any{}, "CertificateId": 1},
		})
		m := regexp.MustCompile(`"Id":"([0-9a-f-]{36})"`).FindStringSubmatch(string(body))
		if m == nil {
			m = regexp.MustCompile(`"ID":"([0-9a-f-]{36})"`).FindStringSubmatch(string(body))
		}
		if status != 200 || m == nil {
			t.Fatalf("%d %s", status, body)
		}
		at := "/confirm/" + m[1]
		b.ok(b.get(at), p.Dev.ClientID, "x.txt")
		b.ok(b.post(at, url.Values{"choice": {"otpviasms"}}))
		b.ok(b.post(at, url.Values{"code": {p.Code(p.phone)}}), "The application "+p.Dev.ClientID+" carries it out")
		if page := b.get("/signed?operation=" + m[1]); strings.Contains(page.text, "/confirm/") || strings.Contains(page.text, "data-wait") {
			t.Errorf("the pages carry out what an application has begun:\n%s", page.text)
		}
		b.ok(b.post(at, url.Values{"finish": {"yes"}}), "carries it out") // which this page does not
	})
	t.Run("another person", func(t *testing.T) {
		at := p.waits(file{"file", "one.txt", "1"})
		other := newBrowser(t, p.Server)
		other.ok(other.signIn("/confirm", p.Dev.Operator.Login, p.Dev.Operator.Password), "Nothing waits")
		for _, address := range []string{at, at + "/documents/0", at + "/shown/0"} {
			other.is(other.get(address), 400)
		}
		for _, form := range []url.Values{{"decline": {"yes"}}, {"choice": {"otpviasms"}}, {"code": {"123456"}}, {"finish": {"yes"}}} {
			other.is(other.post(at, form), 400)
		}
		foreign := &browser{t, b.server, b.client, http.Header{"Sec-Fetch-Site": {"cross-site"}}}
		foreign.is(foreign.post(at, url.Values{"decline": {"yes"}}), 403)
		b.ok(b.get(at), "Decline all")
	})
	t.Run("locked", func(t *testing.T) {
		at := p.waits(file{"file", "one.txt", "1"})
		b.ok(b.get(at), `<th scope="col">State</th>`) // nothing can be declined yet
		if p := b.ok(b.post(at, url.Values{"choice": {"otpviasms"}}), `<section id="answering">`); p.at.Fragment != "answering" {
			t.Errorf("the field of the code is out of sight at %s", p.at)
		}
		code := p.Code(p.phone)
		p.Command("user", "lock", p.Dev.User.Login)
		b.is(b.post(at, url.Values{"code": {code}}), 401, "Nothing was done or changed", `href="/sign-in?to=`+url.QueryEscape(at)+`"`)
		p.Command("user", "unlock", p.Dev.User.Login)
		b.signIn("/start", p.Dev.User.Login, p.Dev.User.Password)
		if p := b.ok(b.get(at), "Cancelled"); strings.Contains(p.text, "Open them") {
			t.Errorf("the page asks to look at documents that are not signed any more:\n%s", p.text)
		}
	})
}

// TestWrongPINIsTriedOnce: the PIN of an order that is wrong by the time of its approval costs one attempt, whether the
// page or another process tries it, and no more when the page is asked again.
func TestWrongPINIsTriedOnce(t *testing.T) {
	t.Parallel()
	p := newPersonWith(t, []string{"--set", "pin.attempts=3"}, "otpviasms", "mydss")
	p.confirms(bitSignDocument)
	b := p.browser
	key := p.Cert("gost2012-256", true)
	number, present := strconv.FormatInt(key.ID, 10), key.PIN
	phone := p.device()
	for _, by := range []string{"code", "device"} {
		page := b.ok(b.upload("/sign", map[string]string{"certificate": number, "pin": present}, file{"file", by + ".txt", by}), "Waits for confirmation")
		at := p.find(page, confirmLink)[1]
		next := present + "1"
		b.ok(b.post("/certificates/"+number+"/do/pin", url.Values{"pin": {present}, "new": {next}, "again": {next}}))
		present = next
		if by == "code" {
			b.ok(b.post(at, url.Values{"choice": {"otpviasms"}}))
			b.is(b.post(at, url.Values{"code": {p.Code(p.phone)}}), 400, "The PIN is wrong")
		} else {
			page = b.ok(b.get(at), "On the device")
			page = b.ok(b.post(at, url.Values{"choice": {b.find(page, regexp.MustCompile(`name="choice" value="(mobile[^"]*)"`))[1]}}))
			p.onPhone(phone, "approve", strings.TrimPrefix(at, "/confirm/"), "--number", b.find(page, shownNumber)[1], "--yes")
		}
		p.carriedOut(at)
		for range 3 {
			b.is(b.post(at, url.Values{"finish": {"yes"}}), 400, "The PIN is wrong")
		}
		b.is(b.post(at, url.Values{"finish": {"yes"}, "pin": {"000000"}}), 400, "The PIN is wrong")
		b.ok(b.post(at, url.Values{"finish": {"yes"}, "pin": {present}}), "<td>Signed") // the last attempt
	}
}

// TestUnderWay lists what waits for its user on a page of operators, who cancel it there. An
// operator of another group does not see it.
func TestUnderWay(t *testing.T) {
	t.Parallel()
	p := newPerson(t, "otpviasms")
	p.confirms(bitSignDocument)
	at := p.waits(file{"file", hostileName, "text"})
	id := strings.TrimPrefix(at, "/confirm/")
	ours, foreign := operator(p.UMS, p.Dev.Operator.Login), operator(p.UMS, tamgatest.Foreign)
	if page := foreign.ok(foreign.get("/operator/operations"), "Nothing is under way"); strings.Contains(page.text, id) {
		t.Error("an operator of another group sees the operation")
	}
	ours.ok(ours.get("/operator/operations"), id, personAt(p.id), "<td>Sign a document", "Waits for confirmation")
	ours.ok(ours.get("/operator/operations?since=99999999999999&after="+id), "Nothing is under way")
	ours.ok(ours.command(personAt(p.id)+"/operation-cancel?of="+id, nil))
	ours.ok(ours.get("/operator/operations"), "Nothing is under way")
}
