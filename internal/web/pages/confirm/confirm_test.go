// SPDX-License-Identifier: Apache-2.0

package confirm_test

import (
	"encoding/json"
	"encoding/pem"
	"fmt"
	"html"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"tamga/gost/streebog"
	"tamga/internal/tamgatest"
	"tamga/internal/tamgatest/pagetest"
)

// waits signs files that wait for a confirmation and returns the address of that page.
func waits(p *pagetest.Person, files ...pagetest.File) string {
	p.T.Helper()
	page := p.Shows(p.Upload("/sign", map[string]string{"certificate": "1"}, files...), "Waits for confirmation")
	return p.Find(page, pagetest.ConfirmLink)[1]
}

// carriedOut returns the page of a confirmation when no process carries it out any more.
func carriedOut(p *pagetest.Person, at string) pagetest.Page {
	p.T.Helper()
	for {
		page := p.Shows(p.Get(at))
		if !strings.Contains(page.Text, `data-state="Confirmed `) {
			return page
		}
	}
}

// device registers a verified device of the user.
func device(p *pagetest.Person) string {
	p.T.Helper()
	file, _ := p.Device(p.Id, `Phone <b>"1"</b>`)
	return file
}

// TestConfirm confirms operations in a page: by a code, on a device, by document.
func TestConfirm(t *testing.T) {
	p := pagetest.NewPerson(t, "otpviasms", "mydss")
	p.Confirms(pagetest.BitSignDocument, pagetest.BitSignDocuments)
	b := p.Browser

	t.Run("by code", func(t *testing.T) {
		at := waits(p, pagetest.File{Field: "file", Name: pagetest.HostileName, Content: "text of the document"})
		b.Shows(b.Get("/confirm"), "Signing a document", at)
		b.Shows(b.Get("/start"), "waits for your answer", `href="`+at+`"`, "asked for by &#34;Pages of this service&#34;")
		page := b.Shows(b.Get(at), "<dd>Pages of this service</dd>", "<dd>CAdES-BES, detached</dd>", `<a href="/certificates/1">Demo User</a>`, "<code>isdetached</code></dt><dd><code>True</code>", "Check number", "Code by SMS: ***0078", "Decline all")
		if strings.Contains(page.Text, "<img src=x") || strings.Contains(page.Text, `name="code"`) {
			t.Errorf("a name became a part of the page, or a code is asked before one was sent:\n%s", page.Text)
		}
		if got := b.Shows(b.Get(at + "/documents/0")); got.Text != "text of the document" || !strings.HasPrefix(got.Header.Get("Content-Disposition"), "attachment") {
			t.Errorf("the document: %q %v", got.Text, got.Header)
		}
		if got := b.Shows(b.Get(at + "/shown/0")); got.Text != "text of the document" || got.Header.Get("Content-Type") != "text/plain; charset=utf-8" || got.Header.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("the text: %q %v", got.Text, got.Header)
		}
		b.Is(b.Get(at+"/documents/1"), 404)
		b.Is(b.Get(at+"/pdf/0"), 400, "only pictures, texts and PDF")
		page = b.Shows(b.Post(at, url.Values{"choice": {"otpviasms"}}), `name="code"`, "Type the code that was sent by SMS")
		code := p.Code(p.Phone)
		b.Is(b.Post(at, url.Values{"code": {""}}), 400)
		wrong := string('0'+(code[0]-'0'+1)%10) + code[1:]
		if page = b.Post(at, url.Values{"code": {wrong}}); page.Status == 200 || !strings.Contains(page.Text, "The code is wrong") {
			t.Errorf("a wrong code: %d\n%s", page.Status, page.Text)
		}
		b.Find(page, regexp.MustCompile(`action="(`+at+`)" id="answer"`))                 // the next one may be right
		tab := &pagetest.Browser{TB: t, Site: b.Site, Client: b.Client, Header: b.Header} // another tab
		tab.Shows(tab.Get(at), `name="code"`)
		page = b.Shows(b.Post(at, url.Values{"code": {" " + code[:3] + " " + code[3:]}}), ">Signed<")
		if page.At.Path != "/signed" {
			t.Errorf("after the code the browser is at %s", page.At)
		}
		// The other tab, and the back button, show what has happened.
		if page = tab.Shows(tab.Post(at, url.Values{"code": {code}}), "<h1>Confirmed, and the documents are signed</h1>", "Done", "/signed?", `href="/signatures">See the signatures`); page.At.Path != at {
			t.Errorf("the other tab is at %s", page.At)
		}
		b.Shows(b.Post(at, url.Values{"decline": {"yes"}}), "Done")
		b.Shows(b.Post(at, url.Values{"choice": {"otpviasms"}}), "Done")
		b.Shows(b.Get("/confirm"), "Nothing waits")
		b.Is(b.Get(at+"/documents/0"), 400)
	})
	t.Run("decryption", func(t *testing.T) {
		file, err := os.ReadFile(p.Path(p.Cert("gost2012-256", false).PEM))
		if err != nil {
			t.Fatal(err)
		}
		block, _ := pem.Decode(file)
		token := p.Token()
		message := p.Signed("POST", "/api/documents/encrypt", token, map[string]any{"Content": []byte("the plaintext"), "Encryption": map[string]any{"Certificates": [][]byte{block.Bytes}}})
		one := map[string]any{"Content": message, "ContentInfo": pagetest.HostileName + ".p7m"}
		status, body := p.Call("POST", "/api/v2/decryption", token, map[string]any{"ForceConfirmation": true, "BinaryData": []any{one, one}, "Decryption": map[string]any{"Type": 0}})
		var created struct{ Operation struct{ ID string } }
		if err := json.Unmarshal(body, &created); err != nil || status != 200 || created.Operation.ID == "" {
			t.Fatalf("%d %s", status, body)
		}
		at := "/confirm/" + created.Operation.ID
		page := b.Shows(b.Get(at), "Decrypting a document", "<dt>Application</dt>", "<dt>Recipient</dt><dd>CN=Demo User", "<dt>Form of the message</dt><dd>CMS</dd>", fmt.Sprintf("%x", streebog.Sum256(message)))
		if strings.Contains(page.Text, "the plaintext") || strings.Contains(page.Text, "<img src=x") {
			t.Errorf("the page has the plaintext, or a name became a part of it:\n%s", page.Text)
		}
		if got := b.Shows(b.Get(at + "/documents/0")); got.Text != string(message) {
			t.Errorf("the document is not the encrypted message: %q", got.Text)
		}
		b.Shows(b.Post(at, url.Values{"choice": {"otpviasms"}}), `aria-label="Decrypt: `)
		b.Shows(b.Post(at, url.Values{"decline": {"yes"}}))
	})
	t.Run("a PDF is shown", func(t *testing.T) {
		content := string(tamgatest.PDFOf(2000))
		at := waits(p, pagetest.File{Field: "file", Name: pagetest.HostileName + ".pdf", Content: content})
		page := b.Shows(b.Get(at+"/shown/0"), `data-document="`+at+`/documents/0"`, "Next page", html.EscapeString("onerror"))
		policy := page.Header.Get("Content-Security-Policy")
		if page.At.Path != at+"/pdf/0" || strings.Contains(page.Text, "<img src=x") || !strings.Contains(policy, " "+p.Dev.BaseURL[:strings.Index(p.Dev.BaseURL, "/SignServer")]+"/assets/pdfjs-") || strings.Contains(policy, "unsafe") {
			t.Errorf("%s, %s:\n%s", page.At, policy, page.Text)
		}
		if got := b.Shows(b.Get(at + "/documents/0")); got.Text != content {
			t.Error("the page draws other bytes than those that will be signed")
		}
		other := pagetest.New(t, p.Server)
		other.Shows(other.SignIn("/start", p.Dev.Operator.Login, p.Dev.Operator.Password))
		for _, path := range []string{"/pdf/0", "/shown/0", "/documents/0"} {
			if got := other.Get(at + path); got.Status < 400 {
				t.Errorf("another person sees %s: %d", path, got.Status)
			}
		}
		b.Shows(b.Post(at, url.Values{"decline": {"yes"}}))
	})
	t.Run("by document", func(t *testing.T) {
		at := waits(p, pagetest.File{Field: "file", Name: "one.txt", Content: "1"}, pagetest.File{Field: "file", Name: "two.txt", Content: "2"}, pagetest.File{Field: "file", Name: "three.txt", Content: "3"})
		b.Shows(b.Post(at, url.Values{"choice": {"otpviasms"}}), `name="document" value="2" form="answer" checked`)
		code := p.Code(p.Phone)
		all, but := []string{"0", "1", "2"}, []string{"0", "2"}
		b.Is(b.Post(at, url.Values{"code": {code}, "listed": {"0", "3"}, "document": {"0"}}), 400)
		b.Is(b.Post(at, url.Values{"code": {code}, "listed": all}), 400)
		b.Is(b.Post(at, url.Values{"code": {code}, "listed": {"x"}}), 400)
		b.Is(b.Post(at, url.Values{"code": {code}, "declined": {"1"}}), 400, "older than this service")
		// After a wrong code, the marks are still there.
		b.Is(b.Post(at, url.Values{"code": {"wrong"}, "listed": all, "document": but}), 400, `id="wrong">`, `<span>The code is wrong`, `name="document" value="1" form="answer" aria`, `name="document" value="2" form="answer" checked`)
		// So they are after a new code and while another method is chosen.
		marked := []string{`name="document" value="0" form="answer" checked`, `name="document" value="1" form="answer" aria`, `name="others" value="yes" form="answer" formnovalidate`}
		b.Is(b.Post(at, url.Values{"again": {"yes"}, "listed": all, "document": but}), 200, marked...)
		b.Is(b.Post(at, url.Values{"others": {"yes"}, "listed": all, "document": but}), 200, `id="answer"`, `name="choice" value="otpviasms`, marked[1])
		b.Is(b.Post(at, url.Values{"choice": {"otpviasms"}, "listed": all, "document": but}), 200, marked...)
		code = p.Code(p.Phone)
		b.Is(b.Get(at+"?others=yes&declined=x.1."), 200, marked[1])
		page := b.Shows(b.Post(at, url.Values{"code": {code}, "listed": all, "document": but}), "Declined")
		if n := strings.Count(page.Text, ">Signed<"); n != 2 || strings.Count(page.Text, ">Declined<") != 1 {
			t.Errorf("%d of 2 are signed:\n%s", n, page.Text)
		}
	})
	t.Run("a damaged document", func(t *testing.T) {
		one := map[string]string{"certificate": "1"}
		good, bad := pagetest.File{Field: "file", Name: "good.xml", Content: "<a/>"}, pagetest.File{Field: "file", Name: "bad.xml", Content: "<a>"}
		b.Is(b.Upload("/sign", one, good, bad), 400, "This is about the files:</p>\n<ul class=\"dots\">\n<li>bad.xml</li>\n</ul>")
		page := b.Upload("/sign", one, pagetest.File{Field: "file", Name: "a.txt", Content: "a"}, good, bad)
		b.Is(page, 400, "This is about the files:</p>\n<ul class=\"dots\">\n<li>bad.xml</li>\n</ul>", "Nothing is signed")
		b.Header.Set("Accept-Language", "ru")
		defer b.Header.Set("Accept-Language", "en")
		b.Is(b.Upload("/sign", one, good, bad), 400, "Это касается файлов:</p>\n<ul class=\"dots\">\n<li>bad.xml</li>\n</ul>")
	})
	t.Run("several formats", func(t *testing.T) {
		at := waits(p, pagetest.File{Field: "file", Name: "a.txt", Content: "a"}, pagetest.File{Field: "file", Name: "b.xml", Content: "<b/>"}, pagetest.File{Field: "file", Name: "c.txt", Content: "c"})
		b.Shows(b.Get(at), "CAdES-BES, detached: 2 documents", "XML, signature in the document: 1 document", `<li class="hint">CAdES-BES, detached</li>`, "ways[1].xmldsigtype")
		b.Shows(b.Post(at, url.Values{"choice": {"otpviasms"}}))
		page := b.Shows(b.Post(at, url.Values{"code": {p.Code(p.Phone)}}), "3 documents are signed", ">a.txt.sig</a>", ">b (signed).xml</a>", ">c.txt.sig</a>")
		if strings.Contains(page.Text, "/confirm/") {
			t.Errorf("something waits for another confirmation:\n%s", page.Text)
		}
	})
	t.Run("decline", func(t *testing.T) {
		at := waits(p, pagetest.File{Field: "file", Name: "one.txt", Content: "1"})
		b.Shows(b.Post(at, url.Values{"decline": {"yes"}}), "Declined")
		b.Shows(b.Post(at, url.Values{"choice": {"otpviasms"}}), "Declined")
		b.Is(b.Post(at+"/none", url.Values{"decline": {"yes"}}), 404)
		b.Is(b.Get("/confirm/"+tamgatest.Missing), 400, "does not wait for you")
	})
	t.Run("on a device", func(t *testing.T) {
		phone := device(p)
		at := waits(p, pagetest.File{Field: "file", Name: "a.pdf", Content: string(tamgatest.PDFOf(2000))})
		id := strings.TrimPrefix(at, "/confirm/")
		page := b.Shows(b.Get(at), "On the device: Phone &lt;b&gt;")
		choice := b.Find(page, regexp.MustCompile(`name="choice" value="(mobile[^"]*)"`))[1]
		page = b.Shows(b.Post(at, url.Values{"choice": {choice}}), "Confirm on your device", `src="data:image/gif;base64,`, `data-wait="/waiting?for=confirmation&amp;id=`)
		if policy := page.Header.Get("Content-Security-Policy"); !strings.Contains(policy, "img-src data:") || !strings.Contains(policy, "script-src 'sha256-") {
			t.Errorf("the policy is %s", policy)
		}
		number := b.Find(page, pagetest.ShownNumber)[1]
		b.Shows(b.Get(at+"/shown/0"), "data-view") // drawn by our scripts, never handed to the browser
		p.OnPhone(phone, "approve", id, "--number", number, "--yes")
		if page = carriedOut(p, at); !strings.Contains(page.Text, "Done") || strings.Contains(page.Text, `name="finish"`) {
			t.Errorf("after the approval on the device the page is\n%s", page.Text)
		}
		b.Shows(b.Get("/signed?operation="+id), ">Signed<")
		b.Shows(b.Post(at, url.Values{"finish": {"yes"}}), "Done") // the form of an earlier release
		at = waits(p, pagetest.File{Field: "file", Name: "b.txt", Content: "b"})
		b.Shows(b.Post(at, url.Values{"choice": {choice}}))
		p.OnPhone(phone, "decline", strings.TrimPrefix(at, "/confirm/"), "--yes")
		b.Shows(b.Get(at), "Declined")
	})
	t.Run("a PIN", func(t *testing.T) {
		withPIN := p.Cert("gost2012-256", true)
		number := strconv.FormatInt(withPIN.ID, 10)
		form := map[string]string{"certificate": number}
		b.Is(b.Upload("/sign", form, pagetest.File{Field: "file", Name: "a.txt", Content: "a"}), 400, "The key of this certificate has a PIN: give it")
		phone := device(p)
		present := withPIN.PIN
		changed := func(next string) {
			b.Shows(b.Post("/certificates/"+number+"/do/pin", url.Values{"pin": {present}, "new": {next}, "again": {next}}))
			present = next
		}
		for _, by := range []string{"code", "device"} {
			form["pin"] = present
			page := b.Shows(b.Upload("/sign", form, pagetest.File{Field: "file", Name: by + ".txt", Content: by}), "Waits for confirmation")
			at := p.Find(page, pagetest.ConfirmLink)[1]
			changed(present + "1")
			if by == "code" {
				b.Shows(b.Post(at, url.Values{"choice": {"otpviasms"}}))
				b.Is(b.Post(at, url.Values{"code": {p.Code(p.Phone)}}), 400, `id="wrong">`, `<span>The PIN is wrong`, `name="pin"`)
			} else {
				page = b.Shows(b.Get(at), "On the device")
				all := regexp.MustCompile(`name="choice" value="(mobile[^"]*)"`).FindAllStringSubmatch(page.Text, -1)
				page = b.Shows(b.Post(at, url.Values{"choice": {all[len(all)-1][1]}}))
				p.OnPhone(phone, "approve", strings.TrimPrefix(at, "/confirm/"), "--number", b.Find(page, pagetest.ShownNumber)[1], "--yes")
				carriedOut(p, at)
			}
			b.Shows(b.Get(at), "You have confirmed the operation. It waits for the PIN", `name="pin"`)
			b.Shows(b.Get("/signed?operation="+strings.TrimPrefix(at, "/confirm/")), "It waits for the PIN", `href="`+at+`">Continue`)
			b.Is(b.Post(at, url.Values{"finish": {"yes"}, "pin": {"000000"}}), 400, `id="wrong">`, `<span>The PIN is wrong`, `name="pin"`)
			b.Shows(b.Post(at, url.Values{"finish": {"yes"}, "pin": {present}}), ">Signed<")
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
		b.Shows(b.Get(at), p.Dev.ClientID, "x.txt")
		b.Shows(b.Post(at, url.Values{"choice": {"otpviasms"}}))
		b.Shows(b.Post(at, url.Values{"code": {p.Code(p.Phone)}}), "<h1>The operation is confirmed</h1>", "The application "+p.Dev.ClientID+" carries it out")
		if page := b.Get(at); strings.Contains(page.Text, "Next request") {
			t.Errorf("the page names another request, and there is no other:\n%s", page.Text)
		}
		next := waits(p, pagetest.File{Field: "file", Name: "next.txt", Content: "next"})
		b.Shows(b.Get(at), `class="btn primary" href="`+next+`">Next request`)
		b.Shows(b.Post(next, url.Values{"decline": {"yes"}}), "Declined")
		if page := b.Get("/signed?operation=" + m[1]); strings.Contains(page.Text, "/confirm/") || strings.Contains(page.Text, "data-wait") {
			t.Errorf("the pages carry out what an application has begun:\n%s", page.Text)
		}
		b.Shows(b.Post(at, url.Values{"finish": {"yes"}}), "carries it out") // which this page does not
	})
	t.Run("another person", func(t *testing.T) {
		at := waits(p, pagetest.File{Field: "file", Name: "one.txt", Content: "1"})
		other := pagetest.New(t, p.Server)
		other.Shows(other.SignIn("/confirm", p.Dev.Operator.Login, p.Dev.Operator.Password), "Nothing waits")
		for _, address := range []string{at, at + "/documents/0", at + "/shown/0"} {
			other.Is(other.Get(address), 400)
		}
		for _, form := range []url.Values{{"decline": {"yes"}}, {"choice": {"otpviasms"}}, {"code": {"123456"}}, {"finish": {"yes"}}} {
			other.Is(other.Post(at, form), 400)
		}
		foreign := &pagetest.Browser{TB: t, Site: b.Site, Client: b.Client, Header: http.Header{"Sec-Fetch-Site": {"cross-site"}}}
		foreign.Is(foreign.Post(at, url.Values{"decline": {"yes"}}), 403)
		b.Shows(b.Get(at), "Decline all")
	})
	t.Run("locked", func(t *testing.T) {
		at := waits(p, pagetest.File{Field: "file", Name: "one.txt", Content: "1"})
		b.Shows(b.Get(at), "To be signed", "one.txt")
		if p := b.Shows(b.Post(at, url.Values{"choice": {"otpviasms"}}), `<section class="stack near" id="answering">`); p.At.Fragment != "answering" {
			t.Errorf("the field of the code is out of sight at %s", p.At)
		}
		code := p.Code(p.Phone)
		p.Command("user", "lock", p.Dev.User.Login)
		b.Is(b.Post(at, url.Values{"code": {code}}), 401, "Nothing was done or changed", `href="/sign-in?to=`+url.QueryEscape(at)+`"`)
		p.Command("user", "unlock", p.Dev.User.Login)
		b.SignIn("/start", p.Dev.User.Login, p.Dev.User.Password)
		if p := b.Shows(b.Get(at), "Cancelled"); strings.Contains(p.Text, "Open the other documents") {
			t.Errorf("the page asks to look at documents that are not signed any more:\n%s", p.Text)
		}
	})
}

// TestWrongPINIsTriedOnce: the PIN of an order that is wrong by the time of its approval costs one attempt, whether the
// page or another process tries it, and no more when the page is asked again.
func TestWrongPINIsTriedOnce(t *testing.T) {
	t.Parallel()
	p := pagetest.NewPersonWith(t, []string{"--set", "pin.attempts=3"}, "otpviasms", "mydss")
	p.Confirms(pagetest.BitSignDocument)
	b := p.Browser
	key := p.Cert("gost2012-256", true)
	number, present := strconv.FormatInt(key.ID, 10), key.PIN
	phone := device(p)
	for _, by := range []string{"code", "device"} {
		page := b.Shows(b.Upload("/sign", map[string]string{"certificate": number, "pin": present}, pagetest.File{Field: "file", Name: by + ".txt", Content: by}), "Waits for confirmation")
		at := p.Find(page, pagetest.ConfirmLink)[1]
		next := present + "1"
		b.Shows(b.Post("/certificates/"+number+"/do/pin", url.Values{"pin": {present}, "new": {next}, "again": {next}}))
		present = next
		if by == "code" {
			b.Shows(b.Post(at, url.Values{"choice": {"otpviasms"}}))
			b.Is(b.Post(at, url.Values{"code": {p.Code(p.Phone)}}), 400, "The PIN is wrong")
		} else {
			page = b.Shows(b.Get(at), "On the device")
			page = b.Shows(b.Post(at, url.Values{"choice": {b.Find(page, regexp.MustCompile(`name="choice" value="(mobile[^"]*)"`))[1]}}))
			p.OnPhone(phone, "approve", strings.TrimPrefix(at, "/confirm/"), "--number", b.Find(page, pagetest.ShownNumber)[1], "--yes")
		}
		carriedOut(p, at)
		for range 3 {
			b.Is(b.Post(at, url.Values{"finish": {"yes"}}), 400, "The PIN is wrong")
		}
		b.Is(b.Post(at, url.Values{"finish": {"yes"}, "pin": {"000000"}}), 400, "The PIN is wrong")
		b.Shows(b.Post(at, url.Values{"finish": {"yes"}, "pin": {present}}), ">Signed<") // the last attempt
	}
}

// TestUnderWay lists what waits for its user on a page of operators, who cancel it there. An
// operator of another group does not see it.
func TestUnderWay(t *testing.T) {
	t.Parallel()
	p := pagetest.NewPerson(t, "otpviasms")
	p.Confirms(pagetest.BitSignDocument)
	at := waits(p, pagetest.File{Field: "file", Name: pagetest.HostileName, Content: "text"})
	id := strings.TrimPrefix(at, "/confirm/")
	ours, foreign := pagetest.Operator(p.UMS, p.Dev.Operator.Login), pagetest.Operator(p.UMS, tamgatest.Foreign)
	if page := foreign.Shows(foreign.Get("/operator/operations"), "Nothing is under way"); strings.Contains(page.Text, id) {
		t.Error("an operator of another group sees the operation")
	}
	ours.Shows(ours.Get("/operator/operations"), id, pagetest.PersonAt(p.Id), "<td>Sign a document", "Waits for confirmation")
	ours.Shows(ours.Get("/operator/operations?since=99999999999999&after="+id), "Nothing is under way")
	ours.Shows(ours.SendCommand(pagetest.PersonAt(p.Id)+"/operation-cancel?of="+id, nil))
	ours.Shows(ours.Get("/operator/operations"), "Nothing is under way")
}
