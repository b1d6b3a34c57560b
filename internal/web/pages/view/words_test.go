// SPDX-License-Identifier: Apache-2.0

package view

import (
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"tamga/internal/domain/confirm/what"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/notify"
	"tamga/internal/domain/policy"
	"tamga/internal/web/rest"
)

// families are the beginnings of keys whose end is a value.
var families = []string{
	"account.done.",
	"account.object.",
	"action.",
	"approvals.state.",
	"audit.shows.",
	"audit.what.",
	"audit.who.",
	"audited.",
	"bulk.do.",
	"certificate.status.",
	"certificates.done.",
	"channel.",
	"check.",
	"code.",
	"column.",
	"command.",
	"comparison.",
	"confirm.ask.",
	"confirm.document.",
	"confirm.field.",
	"confirm.kind.",
	"confirm.value.",
	"confirm.way.",
	"delay.",
	"device.state.",
	"devices.done.",
	"digest.",
	"document.",
	"ends.",
	"failed.check.",
	"fault.",
	"field.",
	"finding.",
	"format.",
	"front.done.",
	"installation.",
	"integrity.",
	"lack.",
	"level.",
	"limit.",
	"messages.language.",
	"messages.only.",
	"messages.state.",
	"messages.template.",
	"method.",
	"moment.",
	"operation.",
	"outcome.",
	"person.needs.",
	"policy.kind.",
	"print.",
	"power.verdict.",
	"quality.",
	"protection.",
	"reason.",
	"reference.about.",
	"reference.answer.",
	"reference.in.",
	"reference.operation.",
	"reference.outside.",
	"reference.security.",
	"reference.status.",
	"provider.",
	"reference.tag.",
	"register.day.",
	"register.hint.",
	"register.method.",
	"register.password.",
	"register.period.",
	"register.verdict.",
	"report.check.",
	"reports.done.",
	"request.status.",
	"request.type.",
	"requests.kind.",
	"requests.status.",
	"row.",
	"rules.",
	"services.source.",
	"stamp.",
	"suite.",
	"token.kind.",
	"unit.",
	"until.",
	"verdict.",
	"verdict.short.",
	"verify.chip.",
	"verify.kind.",
	"verify.known.",
	"verify.open.",
	"zone.",
}

// TestCatalogues checks that every text is there in every language, with the same values,
// and that each is used.
func TestCatalogues(t *testing.T) {
	used := map[string]bool{}
	key := regexp.MustCompile(`"([a-z_]+(?:\.[a-z_]+)+)"`)
	err := filepath.WalkDir("..", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || strings.HasSuffix(name, "_test.go") || slices.Contains([]string{".txt", ".mjs", ".sh", ".json"}, filepath.Ext(name)) {
			return err
		}
		text, err := os.ReadFile(name)
		for _, m := range key.FindAllStringSubmatch(string(text), -1) {
			used[m[1]] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	values := regexp.MustCompile("%[ds]")
	for _, w := range Languages {
		if len(w.texts) < 100 {
			t.Fatalf("%s: only %d texts", w.Language, len(w.texts))
		}
		for key, text := range w.texts {
			name, form, _ := strings.Cut(key, "|")
			inFamily := slices.ContainsFunc(families, func(f string) bool { return strings.HasPrefix(name, f) })
			if !used[name] && !inFamily {
				t.Errorf("%s: no page uses %s", w.Language, name)
			}
			for _, other := range Languages {
				same, ok := other.texts[key]
				if !ok && form == "" {
					t.Errorf("%s has no text for %s", other.Language, key)
				}
				if ok && !slices.Equal(values.FindAllString(text, -1), values.FindAllString(same, -1)) {
					t.Errorf("%s: the values of the languages differ: %q and %q", key, text, same)
				}
			}
		}
	}
	texts := slices.Sorted(maps.Keys(used))
	for _, name := range texts {
		_, plain := Languages[0].texts[name]
		_, many := Languages[0].texts[name+"|many"]
		if !plain && !many && !slices.Contains(notTexts, name) {
			t.Errorf("%s has no text", name)
		}
	}
}

// TestOwnTexts checks that an area uses no text of another one: texts of several areas are in this package.
func TestOwnTexts(t *testing.T) {
	read := func(pattern string, each func(area, text string)) {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) < 10 {
			t.Fatalf("%s: %d files, %v", pattern, len(files), err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if area, _, _ := strings.Cut(strings.TrimPrefix(filepath.ToSlash(file), "../"), "/"); !strings.HasSuffix(file, "_test.go") {
				each(area, string(text))
			}
		}
	}
	areaOf := map[string]string{} // by key
	read("../*/words/*/*.txt", func(area, text string) {
		for line := range strings.Lines(text) {
			key, _, _ := strings.Cut(line, " = ")
			key, _, _ = strings.Cut(key, "|")
			areaOf[key] = area
		}
	})
	key := regexp.MustCompile(`"([a-z_]+(?:\.[a-z_]+)+)"`)
	uses := func(area, text string) {
		for _, m := range key.FindAllStringSubmatch(text, -1) {
			if of := areaOf[m[1]]; of != "" && of != area && of != "view" {
				t.Errorf("%s uses the text %s of %s", area, m[1], of)
			}
		}
	}
	read("../*/*.go", uses)
	read("../*/templates/*.html", uses)
}

// TestOutcomes checks that each code that can be the outcome of an audit entry has words.
func TestOutcomes(t *testing.T) {
	code := regexp.MustCompile(`(?m)^\t\w+ += "(\w[\w ]*)"`)
	found := 0
	for _, file := range []string{"../../../domain/fault/fault.go", "../../../domain/audit/audit.go", "../../../domain/token/error.go", "../../rest/mount.go"} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range code.FindAllStringSubmatch(string(text), -1) {
			if found++; m[1] == "attempt" || m[1] == "done" { // phases
				continue
			}
			for _, w := range Languages {
				if words := w.Outcome(m[1]); words == m[1] {
					t.Errorf("%s: no words for the outcome %q", w.Language, m[1])
				}
			}
		}
	}
	if found < 75 {
		t.Errorf("only %d codes", found)
	}
	if got := Languages[1].Outcome("of an earlier release"); got != "of an earlier release" {
		t.Errorf("an unknown outcome is %q", got)
	}
}

// notTexts look like keys but are not.
var notTexts = []string{
	"a.pdf",
	"a.pdf.sig",
	"all.zip",
	"audit.csv",
	"audit.jsonl",
	"decrypted.zip",
	"encrypted.zip",
	"multipart.form",
	"openapi.json",
	"pdf.min.mjs",
	"pdf.worker.min.mjs",
	"people.csv",
	"proof.json",
	"report.json",
	"report.pdf",
	"reports.csv",
	"reports.zip",
	"signatures.csv", "signatures.pdf",
	"signatures.xlsx",
	"signed.zip",
	"wait.js",
}

func TestWords(t *testing.T) {
	en, ru := WordsIn("en"), WordsIn("ru")
	if en.Language != "en" || ru.Language != "ru" || WordsIn("") != en || len(Languages) != len(rest.Languages) {
		t.Fatal("the texts are not in the language that is asked for")
	}
	for n, want := range map[int][2]string{
		1: {"1 document is signed", "Подписан 1 документ"}, 2: {"2 documents are signed", "Подписано 2 документа"},
		5: {"5 documents are signed", "Подписано 5 документов"}, 11: {"11 documents are signed", "Подписано 11 документов"},
		21: {"21 documents are signed", "Подписан 21 документ"},
	} {
		if got := [2]string{en.Count("signed.done", n), ru.Count("signed.done", n)}; got != want {
			t.Errorf("%d: %q, want %q", n, got, want)
		}
	}
	for n, want := range map[int64][2]string{
		0: {"0\u00a0bytes", "0\u00a0байт"}, 1: {"1\u00a0byte", "1\u00a0байт"}, 4: {"4\u00a0bytes", "4\u00a0байта"}, 12: {"12\u00a0bytes", "12\u00a0байт"}, 871: {"871\u00a0bytes", "871\u00a0байт"},
		999: {"999\u00a0bytes", "999\u00a0байт"}, 1500: {"1.5\u00a0KB", "1,5\u00a0КБ"},
		2 << 30: {"2.1\u00a0GB", "2,1\u00a0ГБ"},
	} {
		if got := [2]string{en.Size(n), ru.Size(n)}; got != want {
			t.Errorf("%d: %q, want %q", n, got, want)
		}
	}
	for d, want := range map[time.Duration][2]string{
		12 * time.Hour: {"12\u00a0h", "12\u00a0ч"}, 90 * time.Second: {"1\u00a0min 30\u00a0s", "1\u00a0мин 30\u00a0с"},
		24 * time.Hour: {"24\u00a0h", "24\u00a0ч"}, 24*time.Hour + time.Second: {"1\u00a0d 1\u00a0s", "1\u00a0сут 1\u00a0с"}, 26*time.Hour + time.Minute + time.Second: {"1\u00a0d 2\u00a0h", "1\u00a0сут 2\u00a0ч"},
		12 * time.Millisecond: {"12\u00a0ms", "12\u00a0мс"}, time.Microsecond: {"0\u00a0ms", "0\u00a0мс"},
	} {
		if got := [2]string{en.Span(d), ru.Span(d)}; got != want {
			t.Errorf("%v: %q, want %q", d, got, want)
		}
	}
	for _, c := range []struct {
		value any
		want  [2]string
	}{
		{1000, [2]string{"1000", "1000"}}, {10000, [2]string{"10,000", "10\u00a0000"}}, {int64(1234567), [2]string{"1,234,567", "1\u00a0234\u00a0567"}},
		{30 * time.Minute, [2]string{"30\u00a0min", "30\u00a0мин"}}, {Bytes(1024 << 30), [2]string{"1024\u00a0GB", "1024\u00a0ГБ"}},
		{Bytes(1<<20 + 1), [2]string{"1,048,577\u00a0bytes", "1\u00a0048\u00a0577\u00a0байт"}}, {0.5, [2]string{"0.5", "0,5"}},
	} {
		if got := [2]string{en.Limit(c.value), ru.Limit(c.value)}; got != c.want {
			t.Errorf("%v: %q, want %q", c.value, got, c.want)
		}
	}
	for operation, want := range map[string][2]string{
		"SignDocument": {"Sign a document", "Подписание документа"}, "Forgotten": {"Forgotten", "Forgotten"}, "": {"", ""},
	} {
		if got := [2]string{en.Audited(operation), ru.Audited(operation)}; got != want {
			t.Errorf("%q: %q, want %q", operation, got, want)
		}
	}
	at := time.Date(2026, 3, 5, 9, 7, 0, 0, time.UTC)
	for name, want := range map[string][2]string{
		"Europe/Moscow": {"5\u00a0Mar 2026, 12:07\u00a0(MSK)", "5\u00a0марта 2026, 12:07\u00a0(МСК)"}, "Asia/Yekaterinburg": {"5\u00a0Mar 2026, 14:07\u00a0(UTC+5)", "5\u00a0марта 2026, 14:07\u00a0(UTC+5)"}, "Asia/Kolkata": {"5\u00a0Mar 2026, 14:37\u00a0(IST)", "5\u00a0марта 2026, 14:37\u00a0(IST)"},
		"America/St_Johns": {"5\u00a0Mar 2026, 05:37\u00a0(NST)", "5\u00a0марта 2026, 05:37\u00a0(NST)"}, "Asia/Kathmandu": {"5\u00a0Mar 2026, 14:52\u00a0(UTC+5:45)", "5\u00a0марта 2026, 14:52\u00a0(UTC+5:45)"}, "Europe/London": {"5\u00a0Mar 2026, 09:07\u00a0(GMT)", "5\u00a0марта 2026, 09:07\u00a0(GMT)"},
		"../../etc/passwd": {"5\u00a0Mar 2026, 09:07\u00a0(UTC)", "5\u00a0марта 2026, 09:07\u00a0(UTC)"}, "Local": {"5\u00a0Mar 2026, 09:07\u00a0(UTC)", "5\u00a0марта 2026, 09:07\u00a0(UTC)"}, "Mars/Base": {"5\u00a0Mar 2026, 09:07\u00a0(UTC)", "5\u00a0марта 2026, 09:07\u00a0(UTC)"},
	} {
		zone := notify.Zone(name, time.UTC)
		if got := [2]string{en.In(zone).When(at), ru.In(zone).When(at)}; got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	marking := *en
	marking.marks = true
	page := marking.When(at) + "|" + marking.Moment(at) + "|" + marking.Day(at) + "|" + marking.Clock(at) + "|" + marking.When(time.Time{}) + "|\ue0f1x1\ue0f1"
	if got, want := string(en.In(notify.Zone("Asia/Vladivostok", nil)).timesIn([]byte(page))), "5\u00a0Mar 2026, 19:07\u00a0(UTC+10)|5 Mar 2026 19:07:00 UTC+10|5\u00a0Mar 2026|19:07\u00a0(UTC+10)||\ue0f1x1\ue0f1"; got != want {
		t.Errorf("a page has %q, want %q", got, want)
	}
	if got := []string{en.When(at), ru.When(at), en.Day(at), ru.Day(at), ru.When(time.Time{})}; !slices.Equal(got,
		[]string{"5\u00a0Mar 2026, 09:07\u00a0(UTC)", "5\u00a0марта 2026, 09:07\u00a0(UTC)", "5\u00a0Mar 2026", "5\u00a0марта 2026", ""}) {
		t.Errorf("%q", got)
	}
}

// TestRefusal checks that a page does not say the same twice.
func TestRefusal(t *testing.T) {
	for _, c := range []struct {
		code, message                    string
		sentence, detail, sentenceRU, ru string
	}{
		{fault.InvalidPIN, "the PIN is wrong", "The PIN is wrong.", "", "ПИН-код неверен.", ""},
		{fault.AuthenticationFailed, "the code is wrong: 4 of 5 attempts are left", "The code is wrong: 4 of 5 attempts are left.", "", "Код неверен. Осталось попыток: 4 из 5.", ""},
		{fault.InvalidPIN, "the two new PINs differ: type the same one twice", "The two new PINs differ: type the same one twice.", "", "Новые ПИН-коды не совпадают: введите один и тот же дважды.", ""},
		{fault.InvalidPIN, "a message without a text", "The PIN is wrong.", "a message without a text", "ПИН-код неверен.", "a message without a text"},
		{fault.InvalidPIN, "", "The PIN is wrong.", "", "ПИН-код неверен.", ""},
		{fault.UserNotFound, "User not found", "There is no such person, or the person is not in your groups.", "", "Такого пользователя нет, или он не в ваших группах.", ""},
		{fault.NotFound, "there is no such group", "There is no such group.", "", "Такой группы нет.", ""},
		{fault.NotFound, "", "Not found: it does not exist any more, or it is not yours.", "", "Не найдено: этого уже нет, или оно принадлежит не вам.", ""},
		{fault.DuplicateLogin, `login: "anna" is taken, or looks the same as one that is`, `The login "anna" is taken, or looks the same as one that is.`, "", "Логин «anna» занят или неотличим от занятого.", ""},
		{fault.DuplicateName, "components: another user has this distinguished name", "Another person has this name for certificates.", "", "Такое имя в сертификате уже есть у другого пользователя.", ""},
		{fault.KeyNotFound, "Serial: there is no such token in stock", "There is no such token in stock.", "", "Такого токена нет на складе.", ""},
		{fault.RequestStatus, "request 7 is decided already: ACCEPTED", "Request 7 is decided already: ACCEPTED.", "", "По запросу 7 уже принято решение.", ""},
		{fault.InvalidContent, "the tokens cannot be read: the file is empty: want a header line", "The tokens cannot be read: the file is empty: want a header line.", "", "Файл не читается: файл пуст, нужна строка заголовка.", ""},
		{fault.InvalidEmail, "e-mail: it has no domain", "The e-mail address is not right.", "e-mail: it has no domain", "Адрес почты указан неверно.", ""},
		{fault.AccessDenied, "this is for operators", "This is not allowed.", "this is for operators", "Это действие запрещено.", "this is for operators"},
	} {
		for i, want := range [][2]string{{c.sentence, c.detail}, {c.sentenceRU, c.ru}} {
			sentence, detail := Languages[i].Refusal(fault.New(c.code, c.message))
			if sentence != want[0] || detail != want[1] {
				t.Errorf("%s %q: %q, %q, want %q", Languages[i].Language, c.message, sentence, detail, want)
			}
		}
	}
}

// TestRussianTerms checks that the Russian texts have the words of the law on electronic signatures
// (63-ФЗ) for certificates, one word for each thing, and are right where a rule is easy to miss.
func TestRussianTerms(t *testing.T) {
	wrong := regexp.MustCompile(`(?i)сертификат\S*( %s)?( уже)? отозван(\s|\.|$)|отзыв\S* сертификат|отозван\S* ли|(^|\s)с штамп|СМС|^Интерфейс$|закрыт\S+ ключ\S* подпис`)
	texts := map[string]string{"details": detailsRU}
	maps.Copy(texts, Languages[1].texts)
	for _, e := range notify.Events() {
		texts[string(e.Type)] = e.Description["ru"]
	}
	for _, action := range policy.Actions() { // pages, devices and the policy of the interface have these names
		texts[action.String()] = what.ActionName(action.String(), what.Russian)
		if texts[action.String()] == action.String() {
			t.Errorf("%s has no Russian name", action)
		}
	}
	for key, text := range texts {
		if strings.HasPrefix(key, "reference.about.") { // words that people look for
			continue
		}
		for line := range strings.Lines(text) {
			if m := wrong.FindString(line); m != "" {
				t.Errorf("%s says %q in %q", key, m, line)
			}
		}
	}
	for _, bad := range []string{"Сертификат %s уже отозван.", "Сертификат отозван", "Отзыв сертификата", "С штампом времени", "Код по СМС", "Интерфейс"} {
		if !wrong.MatchString(bad) {
			t.Errorf("%q is not noticed", bad)
		}
	}
}

// TestLocal checks that a page leads to no other site.
func TestLocal(t *testing.T) {
	for to, want := range map[string]string{
		"/sign": "/sign", "/signed?operation=a%2Cb": "/signed?operation=a%2Cb", "": "/start", "//evil.example": "/start",
		"https://evil.example/": "/start", "/\\evil.example": "/start", "/\t/evil.example": "/start", "javascript:alert(1)": "/start", "sign": "/start",
	} {
		if got := Local(to); got != want {
			t.Errorf("%q leads to %q, want %q", to, got, want)
		}
	}
}

// TestSay: a refusal in one text is one sentence or two, never a sentence with a clause behind its full stop.
func TestSay(t *testing.T) {
	for _, c := range []struct {
		f      *fault.Error
		en, ru string
	}{
		{
			fault.Newf(fault.DocumentInfoInvalid, "the name of the file %.64q is too long, or has characters that no name may have: rename it", "a"),
			`The name of the file "a" is too long, or has characters that no name may have: rename it.`,
			"Имя файла «a» слишком длинное, или в нём есть недопустимые символы: переименуйте файл.",
		},
		{
			fault.Newf(fault.ContentRequired, "the file %.64q is empty: leave it out", "a"),
			`No file was chosen, or it is empty. The file "a" is empty: leave it out.`,
			"Файл не выбран или пуст. Файл «a» пуст: уберите его.",
		},
	} {
		for language, want := range map[string]string{"en": c.en, "ru": c.ru} {
			if got := WordsIn(language).Say(c.f); got != want {
				t.Errorf("%s: %s, want %s", language, got, want)
			}
		}
	}
}
