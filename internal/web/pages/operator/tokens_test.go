// SPDX-License-Identifier: Apache-2.0

package operator_test

import (
	"net/url"
	"strings"
	"testing"
	"time"

	"tamga/internal/domain/oath/otp"
	"tamga/internal/tamgatest"
	"tamga/internal/tamgatest/pagetest"
)

// TestTokenImport sends files of tokens, also wrong ones. The limit of their form is above that of
// other forms.
func TestTokenImport(t *testing.T) {
	t.Parallel()
	w := tamgatest.StartUMS(t)
	b, ru := pagetest.Operator(w, w.Dev.Operator.Login), pagetest.Operator(w, w.Dev.Operator.Login)
	ru.Header.Set("Accept-Language", "ru")
	const at, head, line = "/operator/tokens/token-import", "serial,type,secret_hex\n", "H-1,HOTP,3132333435363738393031323334353637383930\n"
	pasted := func(text string) map[string]string { return map[string]string{"tokens": text} }
	of := func(content string) pagetest.File {
		return pagetest.File{Field: "file", Name: "tokens.csv", Content: content}
	}
	b.Shows(b.Record(at), `enctype="multipart/form-data"`, `<input type="file" id="file" name="file"`, `<textarea id="tokens"`)
	for name, c := range map[string]struct {
		fields map[string]string
		files  []pagetest.File
		status int
		want   string
	}{
		"a large text":            {pasted(head + strings.Repeat(line, 40_000)), nil, 400, "line 3 (H-1)"}, // 1.8 MB
		"a large file":            {nil, []pagetest.File{of(head + strings.Repeat(line, 150_000))}, 400, "line 3 (H-1)"},
		"a file over the limit":   {nil, []pagetest.File{of(strings.Repeat("x", 8<<20+1))}, 413, "the file is larger than 8 MiB"},
		"a request over it":       {nil, []pagetest.File{of(strings.Repeat("x", 9<<20))}, 413, "the request is larger than"},
		"a text over the limit":   {pasted(strings.Repeat("x", 9<<20)), nil, 413, "the request is larger than"},
		"nothing":                 {nil, nil, 400, "choose the file of the vendor, or paste its text"},
		"no text":                 {pasted(" \n\t"), nil, 400, "choose the file of the vendor"},
		"an empty file":           {nil, []pagetest.File{of("")}, 400, "the file is empty"},
		"two files":               {nil, []pagetest.File{of(head + line), of(head + line)}, 400, "given twice"},
		"an empty file and one":   {nil, []pagetest.File{of(""), of(head + line)}, 400, "given twice"},
		"a file and a text":       {pasted(head + line), []pagetest.File{of(head + line)}, 400, "not both"},
		"a file in another field": {nil, []pagetest.File{{Field: "tokens", Name: "tokens.csv", Content: head + line}}, 400, "takes no file"},
		"another type":            {nil, []pagetest.File{{Field: "file", Name: "tokens.xlsx", Content: "PK\x03\x04\x14\x00\xff\xfe"}}, 400, "not text in UTF-8"},
		"another text":            {nil, []pagetest.File{{Field: "file", Name: "tokens.html", Content: "<html>" + pagetest.HostileText}}, 400, "no PSKC container"},
		"UTF-16":                  {nil, []pagetest.File{of("\xff\xfes\x00e\x00r\x00")}, 400, "not text in UTF-8"},
		"Windows-1251":            {nil, []pagetest.File{of(head + "\xcd-1,HOTP,31\n")}, 400, "not text in UTF-8"},
		"an untrusted name":       {nil, []pagetest.File{{Field: "file", Name: pagetest.HostileText, Content: head + "H-1,HOTP,31\n"}}, 400, "line 2 (H-1): a secret of 1 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			b := &pagetest.Browser{TB: t, Site: b.Site, Client: b.Client, Header: b.Header}
			p := b.Upload(at, c.fields, c.files...)
			b.Is(p, c.status, c.want)
			b.Safe(p)
			if strings.Contains(p.Text, "31323334") && c.fields == nil {
				t.Errorf("the page has the file:\n%s", p.Text)
			}
		})
	}
	ru.Is(ru.Upload(at, nil, of(strings.Repeat("x", 9<<20))), 413, "Запрос больше", `href="`+at+`"`)
	ru.Is(ru.Upload(at, nil, of("\xff")), 400, "Файл не читается: это не текст в UTF-8 (нужен контейнер PSKC или CSV)")
	b.Is(b.Post(at, url.Values{"tokens": {head + line}}), 400, "send multipart/form-data")
	b.Is(b.Post("/operator/groups/group-add", url.Values{"group": {"x"}, "about": {strings.Repeat("x", 2<<20)}}), 413)

	// No other person imports tokens, and no other site does.
	foreign := pagetest.Operator(w, tamgatest.Foreign)
	foreign.Is(foreign.Upload(at, nil, of(head+line)), 403)
	plain := pagetest.New(t, w.Server)
	plain.Shows(plain.SignIn("/start", tamgatest.Plain, tamgatest.Password))
	plain.Is(plain.Upload(at, nil, of(head+line)), 403)
	anonymous := pagetest.New(t, w.Server)
	anonymous.Is(anonymous.Upload(at, nil, of(head+line)), 401)
	for name, value := range map[string]string{"Sec-Fetch-Site": "cross-site", "Origin": "https://evil.example"} {
		b.Header.Set(name, value)
		b.Is(b.Upload(at, nil, of(head+line)), 403, "sent by another site")
		b.Header.Del(name)
	}
	b.Shows(b.Get("/operator/tokens"), "There is no token.")

	b.Shows(b.Upload(at, map[string]string{"tokens": "", "password": "", "key": ""}, of("\ufeff"+head+line+" \n")), "<code>1</code>")
	b.Shows(b.Upload(at, pasted(head+line)), "<code>0</code>")
	sealed := pagetest.File{Field: "file", Name: "tokens.xml", Content: tamgatest.EncryptedContainer("P-1", []byte("12345678901234567890"), "of the vendor")}
	b.Is(b.Upload(at, map[string]string{"password": "another"}, sealed), 400)
	b.Shows(b.Upload(at, map[string]string{"password": "of the vendor"}, sealed), "<code>1</code>")
	if log := w.Command("audit", "--operation", "ImportTokens", "--limit", "0", "--json"); !strings.Contains(log, `"detail":"1 tokens"`) || strings.Contains(log, "31323334") {
		t.Errorf("the audit log:\n%s", log)
	}
	b.Shows(b.Get("/operator/tokens"), "<td>HOTP, by counter</td>")
}

// TestTokenSync synchronises tokens by two codes in a row, right and wrong ones.
func TestTokenSync(t *testing.T) {
	t.Parallel()
	w := tamgatest.StartUMS(t)
	b, ru := pagetest.Operator(w, w.Dev.Operator.Login), pagetest.Operator(w, w.Dev.Operator.Login)
	ru.Header.Set("Accept-Language", "ru")
	seed := "31323334353637383930" + "31323334353637383930"
	b.Shows(b.Upload("/operator/tokens/token-import", map[string]string{"tokens": "serial,type,secret_hex\nH-1,HOTP," + seed + "\nT-1,TOTP," + seed + "\n"}))
	key, err := otp.New(otp.SHA1, 6, []byte("12345678901234567890"))
	if err != nil {
		t.Fatal(err)
	}
	const done, wrong = "The token is synchronised", "The two codes do not follow each other on this token"
	for serial, now := range map[string]int64{"H-1": 0, "T-1": otp.Step(time.Now(), 30*time.Second)} {
		t.Run(serial, func(t *testing.T) {
			b := &pagetest.Browser{TB: t, Site: w.Server, Client: b.Client, Header: b.Header}
			id, login, _, _ := w.Register()
			at := pagetest.PersonAt(id)
			sync := at + "/token-sync?of=" + serial
			pair := func(first, second int64) url.Values {
				return url.Values{"first": {key.Code(now + first)}, "second": {key.Code(now + second)}}
			}
			b.Is(b.Get(sync), 404, "The person does not have the token")
			b.Is(b.Post(sync, pair(0, 1)), 404, "The person does not have the token")
			form := pair(0, 1)
			form.Set("serial", serial)
			b.Shows(b.SendCommand(at+"/token-set", form), "The token is assigned")
			b.Shows(b.Get(sync), serial+" – ", `name="second" type="text" value="" autocomplete="off" required`)

			b.Shows(b.SendCommand(sync, pair(40, 41)), done)
			b.Is(b.SendCommand(sync, pair(40, 41)), 400, wrong) // they were used
			b.Is(b.SendCommand(sync, pair(20, 21)), 400, wrong) // older ones
			b.Is(b.SendCommand(sync, pair(52, 51)), 400, wrong)
			b.Is(b.SendCommand(sync, pair(51, 53)), 400, wrong)
			b.Shows(b.SendCommand(sync, pair(50, 51)), done) // after four wrong ones
			b.Is(b.SendCommand(sync, pair(1<<20, 1<<20+1)), 400, wrong)
			b.Is(b.SendCommand(sync, url.Values{"first": {key.Code(now + 60)}}), 400, "want two codes in a row")
			b.Is(b.SendCommand(sync, url.Values{"first": {pagetest.HostileText}, "second": {strings.Repeat("1", 1000)}}), 400, wrong)
			b.Is(b.Post(at+"/token-sync?of=X-1", pair(60, 61)), 404, "The person does not have the token")

			// The list of tokens leads to the form, and the form back to the list.
			from := sync + "&from=tokens"
			b.Shows(b.Get("/operator/tokens"), `href="`+strings.ReplaceAll(from, "&", "&amp;")+`">Synchronise<`, login)
			p := b.Shows(b.SendCommand(from, pair(60, 61)), done)
			if p.At.Path != "/operator/tokens" {
				t.Errorf("the form leads to %s", p.At)
			}

			// Wrong pairs lock the token, for right ones too, until it is unlocked.
			for range 5 {
				b.Is(b.SendCommand(sync, pair(60, 61)), 400, wrong)
			}
			b.Is(b.SendCommand(sync, pair(70, 71)), 400, "Too many wrong codes of this token")
			ru.Is(ru.SendCommand(sync, pair(70, 71)), 400, "пока оператор не разблокирует токен")
			b.Shows(b.SendCommand("/operator/tokens/token-unlock?of="+serial, nil), "The token is unlocked")
			ru.Is(ru.SendCommand(sync, pair(60, 61)), 400, "идут на токене не подряд")
			b.Shows(b.SendCommand(sync, pair(70, 71)), done)
			b.Shows(b.SendCommand(at+"/token-remove?of="+serial, nil))
			b.Is(b.Get(at+"/token-remove?of="+serial), 404, "The person does not have the token")
		})
	}
	foreign := pagetest.Operator(w, tamgatest.Foreign)
	id, _, _, _ := w.Register()
	foreign.Is(foreign.Post(pagetest.PersonAt(id)+"/token-sync", url.Values{"first": {"123456"}, "second": {"123457"}}), 404)
}
