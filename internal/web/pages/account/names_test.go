// SPDX-License-Identifier: Apache-2.0

package account_test

import (
	"html"
	"net/url"
	"strings"
	"testing"

	"tamga/internal/tamgatest"
	"tamga/internal/tamgatest/pagetest"
)

// TestNamesOfPeople takes names of real shapes through a request and a certificate without a change.
func TestNamesOfPeople(t *testing.T) {
	t.Parallel()
	w := tamgatest.StartUMS(t)
	b := pagetest.New(t, w.Server)
	b.SignIn("/start", w.Dev.User.Login, w.Dev.User.Password)
	for _, name := range [][3]string{ // surname, given names, common name
		{"Ёлкина-Соловьёва", "Фёкла Константиновна", ""},
		{"Абдурахмангаджиевопетровский", "Абдурахмангаджимагомед Шихабуддинмагомедрасулович", ""},
		{"Җәләлетдинова", "Гөлүсә Әхмәтҗановна", ""},
		{"Ҕаабышев", "Дьөһөгөй Ньургуһунович", ""},
		{"О'Коннор", "Д’Артаньян Ильич", ""},
		{"фон дер Гольц-Миних", "Анна-Мария Юлиана Вильгельмовна", ""},
	} {
		name[2] = name[0] + " " + name[1]
		page := b.Post("/certificates/request", url.Values{"suite": {"gost2012-256"}, "name.2.5.4.3": {name[2]}, "name.2.5.4.4": {name[0]}, "name.2.5.4.42": {name[1]}, "name.1.2.643.100.3": {"112-233-445 95"}, "as_is": {"yes"}})
		b.Shows(page, "accepted")
		found := false
		for _, m := range certificateLink.FindAllStringSubmatch(page.Text, -1) {
			text := html.UnescapeString(b.Get(m[1]).Text)
			found = found || strings.Contains(text, "CN="+name[2]) && strings.Contains(text, "SN="+name[0]) && strings.Contains(text, "GN="+name[1]) && strings.Contains(text, "SNILS=11223344595") ||
				strings.Contains(text, "CN="+name[2]) && strings.Contains(text, name[0]+",") && strings.Contains(text, "11223344595")
		}
		if !found {
			t.Errorf("no certificate has the name %q", name)
		}
	}
	// A name above the bounds of X.520 is doubted beside its field, which keeps it, and taken as it is.
	long := "Федеральное государственное бюджетное образовательное учреждение высшего образования «Университет»"
	form := url.Values{"suite": {"gost2012-256"}, "name.2.5.4.3": {"Anna"}, "name.2.5.4.10": {long}, "name.1.2.643.100.3": {"112-233-445 96"}}
	page := b.Post("/certificates/request", form)
	b.Is(page, 400, `id="name.2.5.4.10-problem"`, `<span>Organisation: longer than 64 characters`, `id="name.1.2.643.100.3-problem"`, `<span>Insurance number: the check digits do not fit`, `value="112-233-445 96"`, html.EscapeString(long))
	form.Set("name.1.2.643.100.3", "112-233-445 95")
	form.Set("as_is", "yes")
	b.Shows(b.Post("/certificates/request", form), "accepted")
}
