// SPDX-License-Identifier: Apache-2.0

package pages_test

import (
	"html"
	"io"
	"net"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"tamga/internal/tamgatest"
)

// TestMessagesAgain has an administrator send again what a mail server has refused.
func TestMessagesAgain(t *testing.T) {
	t.Parallel()
	mail, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { mail.Close() })
	asked := make(chan bool, 100)
	go func() {
		for {
			c, err := mail.Accept()
			if err != nil {
				return
			}
			io.WriteString(c, "554 no service\r\n")
			c.Close()
			asked <- true
		}
	}()
	w := tamgatest.StartUMS(t, "--set", "messages.capture=false", "--set", "messages.attempts=1", "--set", "messages.mail.address="+mail.Addr().String(),
		"--set", "messages.mail.security=none", "--set", "messages.mail.from=tamga@example.org")
	id, _, _, email := w.Register()
	b, ru := operator(w, w.Dev.Operator.Login), operator(w, w.Dev.Operator.Login)
	ru.header.Set("Accept-Language", "ru")
	b.ok(b.deed(personAt(id)+"/email-code?of="+url.QueryEscape(email), nil), "The code is on its way")
	again := regexp.MustCompile(`href="(/operator/messages/message-again\?of=[0-9a-f-]{36})"`)
	// dead waits until the message is given up. The server refuses it at once.
	dead := func() string {
		t.Helper()
		<-asked
		for {
			p := b.ok(b.get("/operator/messages?state=dead"))
			if m := again.FindStringSubmatch(p.text); m != nil {
				return html.UnescapeString(m[1])
			}
		}
	}
	to := dead()
	b.ok(b.get("/operator/messages"), "Email "+email, "given up", "look here", "the server answered 554")
	ru.ok(ru.get("/operator/messages"), "Электронная почта "+email, "не доставлено", "отказал в соединении, код ответа 554.")
	if p := b.ok(b.get(to), "Email "+email+" – Code that confirms a contact"); strings.Contains(p.text, "<code>"+strings.TrimPrefix(to, "/operator/messages/message-again?of=")) {
		t.Error("the form shows an identifier in place of the message")
	}
	b.ok(b.deed(to, nil), "The message is queued")
	if second := dead(); second != to {
		t.Errorf("%s was sent again as %s", to, second)
	}
	b.ok(b.get("/operator/messages?state=sent"), "There is no message.")
	// A message that is gone since the form was opened.
	b.is(b.post("/operator/messages/message-again?of="+tamgatest.Missing, nil), 404, "there is no such message")
}

// TestTokenImport sends files of tokens, also wrong ones. The limit of their form is above that of
// other forms.
func TestTokenImport(t *testing.T) {
	t.Parallel()
	w := tamgatest.StartUMS(t)
	b, ru := operator(w, w.Dev.Operator.Login), operator(w, w.Dev.Operator.Login)
	ru.header.Set("Accept-Language", "ru")
	const at, head, line = "/operator/tokens/token-import", "serial,type,secret_hex\n", "H-1,HOTP,3132333435363738393031323334353637383930\n"
	pasted := func(text string) map[string]string { return map[string]string{"tokens": text} }
	of := func(content string) file { return file{"file", "tokens.csv", content} }
	b.ok(b.get(at), `enctype="multipart/form-data"`, `<input type="file" name="file"`, `<textarea id="tokens"`)
	for name, c := range map[string]struct {
		fields map[string]string
		files  []file
		status int
		want   string
	}{
		"a large text":            {pasted(head + strings.Repeat(line, 40_000)), nil, 400, "line 3 (H-1)"}, // 1.8 MB
		"a large file":            {nil, []file{of(head + strings.Repeat(line, 150_000))}, 400, "line 3 (H-1)"},
		"a file over the limit":   {nil, []file{of(strings.Repeat("x", 8<<20+1))}, 413, "the file is larger than 8 MiB"},
		"a request over it":       {nil, []file{of(strings.Repeat("x", 9<<20))}, 413, "the request is larger than"},
		"a text over the limit":   {pasted(strings.Repeat("x", 9<<20)), nil, 413, "the request is larger than"},
		"nothing":                 {nil, nil, 400, "choose the file of the vendor, or paste its text"},
		"no text":                 {pasted(" \n\t"), nil, 400, "choose the file of the vendor"},
		"an empty file":           {nil, []file{of("")}, 400, "the file is empty"},
		"two files":               {nil, []file{of(head + line), of(head + line)}, 400, "choose one file"},
		"an empty file and one":   {nil, []file{of(""), of(head + line)}, 400, "choose one file"},
		"a file and a text":       {pasted(head + line), []file{of(head + line)}, 400, "not both"},
		"a file in another field": {nil, []file{{"tokens", "tokens.csv", head + line}}, 400, "takes no file"},
		"another type":            {nil, []file{{"file", "tokens.xlsx", "PK\x03\x04\x14\x00\xff\xfe"}}, 400, "not text in UTF-8"},
		"another text":            {nil, []file{{"file", "tokens.html", "<html>" + hostileText}}, 400, "no PSKC container"},
		"UTF-16":                  {nil, []file{of("\xff\xfes\x00e\x00r\x00")}, 400, "not text in UTF-8"},
		"Windows-1251":            {nil, []file{of(head + "\xcd-1,HOTP,31\n")}, 400, "not text in UTF-8"},
		"a name of a stranger":    {nil, []file{{"file", hostileText, head + "H-1,HOTP,31\n"}}, 400, "line 2 (H-1): a secret of 1 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			b := &browser{t, b.server, b.client, b.header}
			p := b.upload(at, c.fields, c.files...)
			b.is(p, c.status, c.want)
			b.safe(p)
			if strings.Contains(p.text, "31323334") && c.fields == nil {
				t.Errorf("the page has the file:\n%s", p.text)
			}
		})
	}
	ru.is(ru.upload(at, nil, of(strings.Repeat("x", 9<<20))), 413, "Запрос больше", `href="`+at+`"`)
	ru.is(ru.upload(at, nil, of("\xff")), 400, "Файл не читается: это не текст в UTF-8 (нужен контейнер PSKC или CSV)")
	b.is(b.post(at, url.Values{"tokens": {head + line}}), 400, "send multipart/form-data")
	b.is(b.post("/operator/groups/group-add", url.Values{"group": {"x"}, "about": {strings.Repeat("x", 2<<20)}}), 413)

	// Nobody else imports tokens, and no other site does.
	foreign := operator(w, tamgatest.Foreign)
	foreign.is(foreign.upload(at, nil, of(head+line)), 403)
	plain := newBrowser(t, w.Server)
	plain.ok(plain.signIn("/start", tamgatest.Plain, tamgatest.Password))
	plain.is(plain.upload(at, nil, of(head+line)), 403)
	stranger := newBrowser(t, w.Server)
	stranger.ok(stranger.upload(at, nil, of(head+line)), `name="ticket"`) // the sign-in
	for name, value := range map[string]string{"Sec-Fetch-Site": "cross-site", "Origin": "https://evil.example"} {
		b.header.Set(name, value)
		b.is(b.upload(at, nil, of(head+line)), 403, "sent by another site")
		b.header.Del(name)
	}
	b.ok(b.get("/operator/tokens"), "There is no token.")

	b.ok(b.upload(at, map[string]string{"tokens": "", "password": "", "key": ""}, of("\ufeff"+head+line+" \n")), "<code>1</code>")
	b.ok(b.upload(at, pasted(head+line)), "<code>0</code>")
	sealed := file{"file", "tokens.xml", tamgatest.EncryptedContainer("P-1", []byte("12345678901234567890"), "of the vendor")}
	b.is(b.upload(at, map[string]string{"password": "another"}, sealed), 400)
	b.ok(b.upload(at, map[string]string{"password": "of the vendor"}, sealed), "<code>1</code>")
	if log := w.Command("audit", "--operation", "ImportTokens", "--limit", "0", "--json"); !strings.Contains(log, `"detail":"1 tokens"`) || strings.Contains(log, "31323334") {
		t.Errorf("the audit log:\n%s", log)
	}
	// The request has no form that a second operator could read.
	r := tamgatest.Run(t.Context(), "", "serve", "--dev", "--listen", "127.0.0.1:0", "--set", "users.second_operator=[ImportTokens]")
	if r.Code == 0 || !strings.Contains(r.Failure.Error(), `users.second_operator: "ImportTokens": want an operation of user management`) {
		t.Errorf("a program that cannot hold the import ends with %+v", r)
	}
	b.ok(b.get("/operator/tokens"), "<td>HOTP, by counter</td>")
}
