// SPDX-License-Identifier: Apache-2.0

package operator_test

import (
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"tamga/internal/tamgatest"
	"tamga/internal/tamgatest/pagetest"
)

// TestSearchWays has a table of the ways in which people look for one person: each finds this person, and words of a name, numbers
// and addresses find no person with a similar one. BenchmarkPages measures the search among a million people.
func TestSearchWays(t *testing.T) {
	t.Parallel()
	p := pagetest.NewPerson(t, "otpviasms")
	p.Confirms(pagetest.BitSignDocument)
	named := func(id, name, inn, snils string) {
		t.Helper()
		p.OK(tamgatest.Ours, "POST", "/ums/user/"+id+"/dn", fmt.Sprintf(`{"11":%q,"4":%q,"3":%q}`, name, inn, snils))
	}
	named(p.Id, "Фёдоров-Лисицын Алексей Ильич", "500100732259", "11223344595")
	p.OK(tamgatest.Ours, "POST", "/ums/user/"+p.Id+"/emails", `"a.fedorov@romashka.example"`)
	for i, name := range []string{
		"Фёдорова Алексия Ильинична", "Лисицына Полина Алексеевна", "Федоренко Виталий Юрьевич", "Алексеев Илья Фёдорович", "Лисин Алексей Петрович", "Ильичёв Пётр Лисандрович",
	} {
		id, _, _, _ := p.Register()
		named(id, name, "", fmt.Sprintf("1122334%04d", 1000+i))
	}
	p.Shows(p.Post("/certificates/request", url.Values{"suite": {"gost2001"}}), "accepted")
	signed := p.Upload("/sign", map[string]string{"certificate": "1"}, pagetest.File{Field: "file", Name: "Договор поставки № 17.txt", Content: "x"})
	operation := strings.TrimPrefix(p.Find(signed, pagetest.ConfirmLink)[1], "/confirm/")
	b := pagetest.Operator(p.UMS, p.Dev.Operator.Login)
	serial := strings.ReplaceAll(p.Find(b.Get(pagetest.PersonAt(p.Id)+"/certificates"), regexp.MustCompile(`<code>([0-9A-Fa-f: ]{16,})</code>`))[1], " ", "")

	alone := []string{
		// Words of the name: all, some, in any order, their beginnings, with е for ё, in any case, with a hyphen or a blank.
		"Фёдоров-Лисицын Алексей Ильич", "Фёдоров-Лисицын", "Алексей Ильич Фёдоров-Лисицын", "Ильич Алексей Фёдоров", "Фёдоров Лисицын Алексей", "Лисицын Фёдоров",
		"федоров-лисицын", "ФЕДОРОВ-ЛИСИЦЫН", "ФЁДОРОВ-ЛИСИЦЫН АЛЕКСЕЙ", "фед лис", "фёд лис", "лис фед", "ал ил фед лис", "  фёдоров   лисицын  ", "Фёдоров, Лисицын",
		"федоров-лисицын а", "лисицын а и", "фЁдОрОв лИсИцЫн",
		// The phone: as people write it.
		"79250000078", "+79250000078", "+7 925 000-00-78", "8 925 000-00-78", "8 (925) 000-00-78", "89250000078", "+7(925)0000078", "925 000 00 78", "7-925-000-00-78", "7 925 000 00 78",
		// Numbers of documents and other identifiers.
		"112-233-445 95", "11223344595", "112 233 445 95", "500100732259", "5001 0073 2259",
		p.Dev.User.Login, strings.ToUpper(p.Dev.User.Login), "a.fedorov@romashka.example", "A.Fedorov@Romashka.Example", "a.fedorov",
	}
	things := []string{ // what belongs to the person
		serial, strings.ToLower(serial), serial[:12], operation, strings.ToUpper(operation), "Договор поставки", "поставки договор", "договор 17",
	}
	if n := len(alone) + len(things); n < 40 {
		t.Errorf("%d ways, want 40", n)
	}
	for _, text := range alone {
		page := b.Get("/operator/people?" + url.Values{"q": {text}}.Encode())
		if page.Status != 200 || !strings.Contains(page.Text, "1 person found") || !strings.Contains(page.Text, pagetest.PersonAt(p.Id)+`"`) {
			t.Errorf("%q does not find the person alone: %d, %q", text, page.Status, regexp.MustCompile(`[0-9]+ (person|people) found`).FindString(page.Text))
		}
	}
	for _, text := range things {
		page := b.Get("/operator/people?" + url.Values{"q": {text}}.Encode())
		if page.Status != 200 || !strings.Contains(page.Text, pagetest.PersonAt(p.Id)) {
			t.Errorf("%q does not lead to the person: %d", text, page.Status)
		}
	}
}
