// SPDX-License-Identifier: Apache-2.0

package view

import (
	"go/ast"
	"go/constant"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// faultsOf returns the messages of the faults that packages make with constant messages, and the names of
// values in place of what they are.
func faultsOf(t *testing.T, dirs ...string) (messages []string) {
	t.Helper()
	for _, dir := range dirs {
		files, err := filepath.Glob(filepath.Join(dir, "*.go"))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %d files, %v", dir, len(files), err)
		}
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
			if err != nil {
				t.Fatal(err)
			}
			ast.Inspect(parsed, func(n ast.Node) bool {
				call, ok := n.(*ast.CallExpr)
				if !ok || len(call.Args) < 2 {
					return true
				}
				called, ok := call.Fun.(*ast.SelectorExpr)
				if !ok || called.Sel.Name != "New" && called.Sel.Name != "Newf" {
					return true
				}
				if from, ok := called.X.(*ast.Ident); !ok || from.Name != "fault" {
					return true
				}
				if message := types.ExprString(call.Args[1]); strings.HasPrefix(message, `"`) {
					if text, ok := quotedText(call.Args[1]); ok && text != "" {
						messages = append(messages, text)
					}
				}
				return true
			})
		}
	}
	slices.Sort(messages)
	return slices.Compact(messages)
}

func quotedText(e ast.Expr) (string, bool) {
	switch x := e.(type) {
	case *ast.BasicLit:
		return constant.StringVal(constant.MakeFromLiteral(x.Value, x.Kind, 0)), true
	case *ast.BinaryExpr: // a text and what is added to it
		text, ok := quotedText(x.X)
		return text + "%s", ok
	}
	return "", false
}

// TestDetails checks that every message of these packages has a text in Russian, and that each
// text has as many values as its message.
func TestDetails(t *testing.T) {
	domain := func(name string) string { return filepath.Join("../../../domain", name) }
	messages := faultsOf(t, "..", "../*", domain("contact"), domain("approval"), domain("oath"), domain("confirm"), domain("keys"), domain("document"), domain("user"), domain("password"),
		domain("signing"), domain("encryption"), domain("vault"), domain("signin"), domain("device"), domain("policy"), domain("notify"), domain("passkey"), domain("token"), domain("reach"),
		"../../rest/limit", "../../umsapi", "../../rest", "../../../adapter/print", "../../../adapter/store", "../../../adapter/webhook", "../../../app")
	if len(messages) < 400 {
		t.Fatalf("only %d messages", len(messages))
	}
	ru := Languages[1]
	for _, m := range messages {
		if text := ru.Own(values.ReplaceAllString(m, "7")); text == "" || strings.Contains(text, "%!") {
			t.Errorf("no text for %q: %q", m, text)
		}
	}
	for language, lines := range map[string]string{"ru": detailsRU, "en": detailsEN} {
		known, seen := readDetails(language, lines), map[string]bool{}
		for line := range strings.Lines(lines) {
			message, text, _ := strings.Cut(strings.TrimSpace(line), " = ")
			if n, most := strings.Count(text, "%"), len(values.FindAllString(message, -1)); n != strings.Count(text, "%s")+strings.Count(text, "%v") || n > most {
				t.Errorf("%q has other values than %q", text, message)
			}
			for _, d := range known.varying { // the first that fits is used
				if made := values.ReplaceAllString(message, "7"); values.MatchString(message) && d.message.MatchString(made) {
					if d.text != text {
						t.Errorf("%q has the text of another message, %q", made, d.text)
					}
					break
				}
			}
			if seen[message] {
				t.Errorf("%q is there twice", message)
			}
			seen[message] = true
		}
	}
	// A page has other fields than the interface.
	en, found := Languages[0], 0
	field := regexp.MustCompile(`\b(OriginalDocument|PDFPassword|ChoiceSelected|EkuString|DistinguishedName|TemplateOid|ParametersOid|GroupId|AlgId|TSPAddress|Msisdn)\b`)
	for _, m := range append(messages, strings.Split(detailsEN, "\n")...) {
		m, _, _ = strings.Cut(m, " = ")
		if !field.MatchString(m) || strings.HasPrefix(m, "Signature.") || strings.HasSuffix(m, "send one of them") { // of programs alone
			continue
		}
		found++
		if text := en.Own(values.ReplaceAllString(m, "7")); field.MatchString(text) || strings.Contains(text, "%!") {
			t.Errorf("a page in English shows %q", text)
		}
	}
	if found < 40 {
		t.Errorf("only %d messages name a field of the interface", found)
	}
}

// TestFindings checks that every code of a finding has a sentence in every language, and that
// no sentence is of a code that no verifier has.
func TestFindings(t *testing.T) {
	written := regexp.MustCompile(`(?:\b[cC]ode[A-Z]\w* +=|\bCode:) +(certificateCode \+ )?"([a-z0-9-]+)"`)
	codes := map[string]bool{}
	for _, dir := range []string{"sig", "sig/raw", "sig/cades", "sig/xmldsig", "sig/ooxml", "sig/pdf", "sig/asic", "sig/power", "sig/evidence", "pki/cms", "pki/chain"} {
		files, err := filepath.Glob(filepath.Join("../../../..", dir, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		before := len(codes)
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range written.FindAllStringSubmatch(string(text), -1) {
				if dir == "pki/chain" || m[1] != "" {
					m[2] = "certificate-" + m[2]
				}
				codes[m[2]] = true
			}
		}
		if len(codes) == before && dir != "sig/raw" {
			t.Errorf("%s has no codes", dir)
		}
	}
	for _, w := range Languages {
		for code := range codes {
			if w.texts["code."+code] == "" {
				t.Errorf("%s has no sentence for the code %s", w.Language, code)
			}
		}
		for key := range w.texts {
			if code, ok := strings.CutPrefix(key, "code."); ok && !codes[code] {
				t.Errorf("%s has a sentence for the code %s, which no verifier has", w.Language, code)
			}
		}
	}
}

func TestOwn(t *testing.T) {
	en, ru := Languages[0], Languages[1]
	for message, want := range map[string]string{
		"the code is wrong":                           "Код неверен.",
		"the code is wrong: 2 of 3 attempts are left": "Код неверен. Осталось попыток: 2 из 3.",
		"nothing was done: type %s<b>\n to confirm":   "Ничего не сделано: для подтверждения введите %s<b>\n.",
		"request 7 waits for the approval of another operator: repeat it unchanged after that, before 2026-01-31T12:00:59Z": "Изменение 7 ждёт одобрения второго оператора. После одобрения повторите его без изменений не позднее 31\u00a0января 2026, 12:00\u00a0(UTC).",
		"the tokens cannot be read: line 2 (H-1): type: want HOTP or TOTP; line 3: counter: want 0 or more; and 4 more":     "Файл не читается: строка 2 (H-1): нужен тип HOTP или TOTP; строка 3: счётчик: 0 или больше; и ещё ошибок: 4.",
		"the tokens cannot be read: the file is empty: want a header line":                                                  "Файл не читается: файл пуст, нужна строка заголовка.",
		"the tokens cannot be read: key package 2: the secret: want Base64":                                                 "Файл не читается: пакет ключа 2: секрет – в Base64.",
		"the tokens cannot be read: line 1: line 2: line 3: line 4: type: want HOTP or TOTP":                                "Файл не читается: строка 1: строка 2: line 3: line 4: type: want HOTP or TOTP.",
		"it answers with HTTP 503: come back later":                                                                         "Служба ответила кодом HTTP 503: come back later",
		"the tokens cannot be read: something %s new":                                                                       "Файл не читается: (по-английски) something %s new.",
		"address: it is not an address of the public internet, and no exception is configured for it":                       "Это адрес внутренней сети, а исключение для него не задано (webhooks.allow_networks).",
		"mail: connecting to 127.0.0.1:25: dial tcp 127.0.0.1:25: connect: connection refused":                              "Нет соединения с почтовым сервером 127.0.0.1:25 (dial tcp 127.0.0.1:25: connect: connection refused).",
		"mail: connecting to mx.example.org:25: the server answered 554":                                                    "Почтовый сервер mx.example.org:25 отказал в соединении, код ответа 554.",
		"sms: the gateway answers 500":                                                                                      "Шлюз SMS ответил кодом 500.",
		"login: it mixes letters of Cyrillic and Latin, which look alike; write it in one script":                           "В логине смешаны похожие буквы кириллицы и латиницы: используйте один алфавит.",
		"too many messages for this caller within an hour, the limit is 30: try again later":                                "Слишком много сообщений по вашим запросам за час (предел – 30): повторите позже.",
		"CN (11): required": "CN: заполните это поле.",
		"CN (11): required; INN (4): want 12 to 12 characters of UTF-8; C (6): want one of RU, BY":       "CN: заполните это поле. INN: от 12 до 12 символов. C: нужно одно из значений: RU, BY.",
		"INN (4): want 12 digits; OGRN (1): the check digits do not fit, so at least one digit is wrong": "INN: нужно цифр: 12. OGRN: контрольные цифры не сходятся, хотя бы одна цифра неверна.",
		"INN (4): want 12 digits, the number of an organisation with 00 before its own 10":               "INN: нужно 12 цифр; у организации это 00 и 10 цифр её ИНН.",
		"group: want 1 to 64 characters of UTF-8":                                                        "Группа: от 1 до 64 символов.",
		"certificate 1 is on hold since 2026-01-31 15:26:37 UTC":                                         "Действие сертификата 1 приостановлено с 31\u00a0января 2026, 15:26\u00a0(UTC).",
		"password: want 8 to 256 characters of UTF-8":                                                    "Пароль: от 8 до 256 символов.",
		"the access policy is fixed: only an administrator may change it":                                "Правило «Запрещённые действия» меняет только администратор.",
		"an unknown message":            "",
		strings.Repeat("a", 1<<20):      "",
		"certificate 7 has this name":   "",
		"the whole document, 512 bytes": "весь документ, размер в байтах – 512",
		"the first 5 of 9 bytes, a revision of the document; later revisions: metadata, form filling": "первые 5 из 9 байт: версия документа; в более поздних версиях: метаданные, заполненные поля",
		"3 parts: /a, /b, /c; relationships in 1 parts: /d; not covered: /e":                          "частей: 3 (/a, /b, /c); связи в частях: 1 (/d); не подписано: /e",
	} {
		if got := ru.Own(message); got != want {
			t.Errorf("%.80q: %.80q, want %.80q", message, got, want)
		}
		if en.Own(message) != message {
			t.Errorf("%.80q is another text in English", message)
		}
	}
}

// TestCovers checks every form of what an XML signature covers, each part and several together.
func TestCovers(t *testing.T) {
	en, ru := Languages[0], Languages[1]
	const element, line = `element {urn:a}b with id "i" at /a/b[2]`, ", line 7"
	const elementRU = `элемент {urn:a}b с идентификатором «i», /a/b[2]`
	forms := map[string]string{
		"the whole document, root element a": "весь документ, корневой элемент a",
		`nothing by URI="#x"`:                `ничего по ссылке «#x»`,
	}
	for object, objectRU := range map[string]string{
		"":                              "",
		", an object in this signature": ": объект внутри этой подписи",
		", an object in this signature with a document as Base64": ": объект внутри этой подписи, документ в Base64",
		", an object in this signature with the element c":        ": объект внутри этой подписи с элементом c",
	} {
		forms[element+object] = elementRU + objectRU
		forms[element+line+object] = elementRU + ", строка 7" + objectRU
	}
	less := map[string]string{
		"": "", " (without this signature)": " (без этой подписи)", " (only the nodes that XPath selects, its text decoded from Base64)": " (только узлы, выбранные XPath, текст, раскодированный из Base64)",
		" (without this signature, in the form of SMEV 3)": " (без этой подписи, в форме СМЭВ 3)",
	}
	var all, allRU []string
	for form, want := range forms {
		for less, lessRU := range less {
			if got := ru.Own(form + less); got != want+lessRU {
				t.Errorf("%q: %q, want %q", form+less, got, want+lessRU)
			}
			if en.Own(form+less) != form+less {
				t.Errorf("%q is another text in English", form+less)
			}
			all, allRU = append(all, form+less), append(allRU, want+lessRU)
		}
	}
	if got, want := ru.Own(strings.Join(all, "; ")), strings.Join(allRU, "; "); got != want {
		t.Errorf("%q, want %q", got, want)
	}
	for message, want := range map[string]string{
		"the whole document, 5 bytes":                           "весь документ, размер в байтах – 5",
		"the whole document, root element a; something":         "",
		"the whole document, root element a (something)":        "весь документ, корневой элемент a (something)",
		"element " + strings.Repeat("a; ", maxDetail):           "",
		strings.Repeat("element a with id b at c; ", maxDetail): "",
	} {
		if got := ru.Own(message); got != want {
			t.Errorf("%.80q: %.80q, want %q", message, got, want)
		}
	}
}

// TestDetailsOfDocuments checks that what formats say of unfit documents has a text in Russian.
// Messages that are put together elsewhere are rare and technical.
func TestDetailsOfDocuments(t *testing.T) {
	made := regexp.MustCompile(`ErrDocument\{What: ("\w+"), Text: (?:fmt\.Sprintf\()?\s*("[^"]*")|\botherKind\(("[^"]*")`)
	ru, found := Languages[1], 0
	for _, dir := range []string{"raw", "cades", "xmldsig", "ooxml", "pdf"} {
		files, err := filepath.Glob(filepath.Join("../../../../sig", dir, "*.go"))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %d files, %v", dir, len(files), err)
		}
		for _, file := range files {
			source, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			for _, m := range made.FindAllSubmatch(source, -1) {
				what, text := string(m[1]), string(m[2])
				if m[3] != nil {
					what, text = `"Document"`, string(m[3])
				}
				message := strings.Trim(what, `"`) + ": " + values.ReplaceAllString(strings.Trim(text, `"`), "7")
				if strings.HasSuffix(text, ` "`) { // the beginning of one that is put together
					continue
				}
				found++
				if own := ru.Own(message); own == "" || strings.Contains(own, "%!") {
					t.Errorf("no text for %q: %q", message, own)
				}
			}
		}
	}
	if found < 30 {
		t.Errorf("only %d messages", found)
	}
	for message, want := range map[string]string{
		"Document: an XML document with signatures expected: xml: line 1, column 10: a document type declaration with an internal subset is refused": "В документе XML есть объявление типа (DOCTYPE), которое здесь не принимается.",
		"Document: an XML document expected for BES: xml: line 1, column 1: document type declarations are refused":                                  "В документе XML есть объявление типа (DOCTYPE), которое здесь не принимается.",
		"Document: an XML document with signatures expected: no element":                                                                             "Нужен документ XML с подписями.",
		"stamp: page must be a whole number from 1 to 9":                                                                                             "Штамп, поле «Страница»: нужно целое число от 1 до 9.",
	} {
		if got := ru.Own(message); got != want {
			t.Errorf("%q: %q, want %q", message, got, want)
		}
	}
	if got, want := ru.Own("Document: a PDF document expected: no header %PDF-"), "Файл не является документом PDF или повреждён."; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
