// SPDX-License-Identifier: Apache-2.0

package sign_test

import (
	"encoding/base64"
	"regexp"
	"strings"
	"testing"

	"tamga/internal/judge"
	"tamga/internal/sigtest"
	"tamga/internal/tamgatest"
	"tamga/internal/tamgatest/pagetest"
	"tamga/pki/suite"
	"tamga/sig"
	pdfformat "tamga/sig/pdf"
)

// changed returns a signature whose value has another last byte.
func changed(signature []byte) string {
	signature[len(signature)-1] ^= 1
	return string(signature)
}

// TestCardOnPages makes cards from the result of signing, from the register and from a verification. The code of a card
// leads to a stored report, and a visitor's card has none.
func TestCardOnPages(t *testing.T) {
	t.Parallel()
	tools := judge.PDF(t)
	b := pagetest.New(t, tamgatest.Start(t))
	b.Header.Set("Accept-Language", "ru")
	b.SignIn("/start", b.Site.Dev.User.Login, b.Site.Dev.User.Password)
	file := func(name, content string) pagetest.File {
		return pagetest.File{Field: "file", Name: name, Content: content}
	}
	pdf := string(tamgatest.PDFOf(2000))
	p := b.Shows(b.Upload("/sign", map[string]string{"certificate": "1", "format": "automatic"}, file("Договор.pdf", pdf), file("письмо.txt", "Привет")), "Карточка (PDF)", "на него ведёт QR-код карточки")
	refs := map[string]string{}
	for _, m := range regexp.MustCompile(`href="/signed/document/([0-9a-f-]{36})">([^<]+)</a>`).FindAllStringSubmatch(p.Text, -1) {
		refs[m[2]] = m[1]
	}
	signed := func(name string) string { return b.Shows(b.Get("/signed/document/" + refs[name])).Text }
	holds := func(card string, want map[string]string) {
		t.Helper()
		got := tools.Detached([]byte(card))
		if len(got) != len(want) {
			t.Errorf("the card holds %d files; want %d", len(got), len(want))
		}
		for name, content := range want {
			if string(got[name]) != content {
				t.Errorf("the card holds %s with %d bytes; want %d", name, len(got[name]), len(content))
			}
		}
	}
	says := func(card, want string) {
		t.Helper()
		text, err := tools.Text([]byte(card), "")
		if err != nil || !strings.Contains(strings.Join(strings.Fields(text), " "), want) {
			t.Errorf("the card does not say %q: %s %v", want, text, err)
		}
	}

	card := b.Shows(b.Post("/signed/card", map[string][]string{"ref": {refs["письмо.txt.sig"]}}))
	if d := card.Header.Get("Content-Disposition"); !strings.HasPrefix(d, "attachment") || card.Header.Get("Content-Type") != "application/pdf" {
		t.Errorf("the card is %s, %s", card.Header.Get("Content-Type"), d)
	}
	holds(card.Text, map[string]string{"письмо.txt": "Привет", "письмо.txt.sig": signed("письмо.txt.sig")})
	address := judge.ZBar(t).Read(lastPage(t, card.Text), "png")
	visitor := pagetest.New(t, b.Site)
	visitor.Header.Set("Accept-Language", "ru")
	visitor.Shows(visitor.Get(strings.TrimPrefix(address, b.Site.URL)), "Подпись действительна", "письмо.txt")
	b.Shows(b.Get("/verify/reports"), "письмо.txt")

	inside := b.Shows(b.Post("/signed/card", map[string][]string{"ref": {refs["Договор (подписан).pdf"]}})).Text
	holds(inside, map[string]string{"Договор (подписан).pdf": signed("Договор (подписан).pdf")})
	says(inside, "подпись внутри документа")

	// The register has the same button.
	list := b.Shows(b.Get("/signatures"))
	one := b.Find(list, regexp.MustCompile(`href="(/signatures/[^"/]+/[^"/]+)">письмо\.txt<`))[1]
	ref := b.Find(b.Shows(b.Get(one), "Карточка (PDF)"), regexp.MustCompile(`name="ref" value="([^"]+)"`))[1]
	holds(b.Shows(b.Post("/signed/card", map[string][]string{"ref": {ref}})).Text, map[string]string{"письмо.txt": "Привет", "письмо.txt.sig": signed("письмо.txt.sig")})

	// A verification: two signatures of one document are on one card.
	second := b.Shows(b.Upload("/sign", map[string]string{"certificate": "1", "format": "cades"}, file("письмо.txt", "Привет")))
	other := b.Shows(b.Get("/signed/document/" + b.Find(second, regexp.MustCompile(`href="/signed/document/([0-9a-f-]{36})"`))[1])).Text
	files := []pagetest.File{file("письмо.txt", "Привет"), file("письмо.txt.sig", signed("письмо.txt.sig")), file("ещё.sig", other)}
	page := visitor.Shows(visitor.Upload("/verify", nil, files...), "Карточка (PDF)")
	if strings.Contains(page.Text, "Отчёт о проверке сохраняется") {
		t.Error("a visitor's report is stored")
	}
	card = visitor.Shows(visitor.Upload("/verify", map[string]string{"answer": "card.2"}, files...))
	holds(card.Text, map[string]string{"письмо.txt": "Привет", "письмо.txt.sig": files[1].Content, "ещё.sig": other})
	says(card.Text, "Подпись 2 из 2")
	if strings.Contains(card.Text, "/Address") {
		t.Error("a visitor's card leads to a report")
	}
	if p := visitor.Shows(visitor.Upload("/verify", nil, file("письмо.txt", "Привет!"), files[1])); strings.Contains(p.Text, "card.") {
		t.Error("a card is offered of a signature that does not hold")
	}
	visitor.Is(visitor.Upload("/verify", map[string]string{"answer": "card.1"}, file("письмо.txt", "Привет!"), files[1]), 400, "не подтверждается")

	// A button that sends the form again is shown only where the form has the files. Stored results need no form.
	button := regexp.MustCompile(`name="answer" value="card\.`)
	if p := visitor.Shows(visitor.Upload("/verify", map[string]string{"carried": base64.StdEncoding.EncodeToString([]byte(files[1].Content)), "carried_name": files[1].Name}, files[0]), "Подпись действительна"); button.MatchString(p.Text) {
		t.Error("a card is offered whose signature is not in the form")
	}
	if p := visitor.Shows(visitor.Upload("/verify", nil, files[0], files[1], file("письмо.txt.p7s", changed([]byte(other)))), "недействительна"); button.MatchString(p.Text) {
		t.Error("a card is offered of a document with a signature that does not hold")
	}
	marks := regexp.MustCompile(`name="signature" value="([^"]+)"`).FindAllStringSubmatch(b.Shows(b.Get("/signatures")).Text, -1)
	again := b.Shows(b.Post("/signatures/do/verify", map[string][]string{"signature": {marks[0][1], marks[1][1]}}), "Карточка (PDF)")
	if button.MatchString(again.Text) || !strings.Contains(again.Text, `action="/signed/card"`) {
		t.Error("a card of marked signatures is of a form without files")
	}
	// A PDF is no signature of another file, whatever its name is.
	if p := visitor.Shows(visitor.Upload("/verify", nil, files[0], file("письмо.txt.sig", signed("Договор (подписан).pdf"))), "В файле нет подписи"); strings.Contains(p.Text, "письмо.txt.sig + ") {
		t.Error("a PDF passes for the signature of another file")
	}
	// The password of an encrypted PDF opens the signatures inside of it.
	locked, err := tools.QPDF(tamgatest.PDFOf(2000), "--encrypt", "тайна", "owner", "256", "--")
	if err != nil {
		t.Fatal(err)
	}
	party := sigtest.Root(t, suite.GOST2012x256).Signer(t, suite.GOST2012x256, "Иванова Мария Петровна")
	locked = sigtest.Make(t, pdfformat.New(), party, &sig.Job{Document: sigtest.Document(locked), Params: sig.Params{"PDFFormat": "CMS", "PDFPassword": "тайна"}})
	secret := map[string]string{"password": "тайна"}
	visitor.Shows(visitor.Upload("/verify", secret, file("тайна.pdf", string(locked))), `name="answer" value="card.0"`)
	secret["answer"] = "card.0"
	holds(visitor.Shows(visitor.Upload("/verify", secret, file("тайна.pdf", string(locked)))).Text, map[string]string{"тайна.pdf": string(locked)})
	visitor.Is(visitor.Upload("/verify", map[string]string{"answer": "card.0"}, file("тайна.pdf", string(locked))), 400, "без пароля")
	visitor.Is(visitor.Upload("/verify", map[string]string{"answer": "card.7"}, files...), 400)
	visitor.Is(visitor.Post("/signed/card", map[string][]string{"ref": {ref}}), 401)
	operator := pagetest.New(t, b.Site)
	operator.SignIn("/start", b.Site.Dev.Operator.Login, b.Site.Dev.Operator.Password)
	operator.Is(operator.Post("/signed/card", map[string][]string{"ref": {ref}}), 404)
}
