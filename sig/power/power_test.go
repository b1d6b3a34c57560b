// SPDX-License-Identifier: Apache-2.0

package power_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tamga/internal/sigtest"
	"tamga/sig/budget"
	"tamga/sig/power"
)

var moscow = time.FixedZone("", 3*60*60)

func day(y, m, d int) time.Time { return time.Date(y, time.Month(m), d, 0, 0, 0, 0, moscow) }

// TestRead reads a power and one that was passed on, with all fields.
func TestRead(t *testing.T) {
	head := power.Party{Name: "Петрова Анна Сергеевна", INN: "500100732259", SNILS: "11223344595"}
	employee := power.Party{Name: "Иванов Иван Иванович", INN: "123456789012", SNILS: "12345678901", Acting: []power.Party{}}
	second := power.Party{Name: "Сидоров Пётр Ильич", INN: "210987654321", SNILS: "98765432101", Acting: []power.Party{}}
	organization := power.Party{Name: "Общество", INN: "7707083893", OGRN: "1027700132195", Organization: true, Acting: []power.Party{head}}
	first := sigtest.NewPower()
	first.Number, first.Words, first.Limits = strings.ToUpper(first.Number), "Подписывать счета", 2
	first.Notary = &sigtest.Identifiers{Surname: "Нотариус", Given: "Нина Ивановна"}
	passed := sigtest.NewPower()
	passed.Number, passed.Delegation, passed.First, passed.Parent, passed.Joint = "b", "2", "A", "C", "2"
	passed.Principals, passed.Representatives = []sigtest.Identifiers{sigtest.Employee}, []sigtest.Identifiers{sigtest.Second, sigtest.Employee}
	for _, c := range []struct {
		name string
		p    sigtest.Power
		want power.Power
	}{
		{"a first one", first, power.Power{
			Family: "EMCHD_1", Number: "4f1c2d3e-5a6b-4c7d-8e9f-0a1b2c3d4e5f", Internal: "17", From: day(2025, 1, 1), Until: day(2026, 1, 1), Delegation: power.DelegationNone,
			Principals: []power.Party{organization}, Representatives: []power.Party{employee}, Notary: &power.Name{Surname: "Нотариус", Given: "Нина Ивановна"},
			Rights: []power.Right{{Text: "Подписывать счета"}, {Code: "BBR_1", Text: "Подписание документов", Limits: 2}},
		}},
		{"passed on", passed, power.Power{
			Family: "EMCHD_1", Number: "b", Internal: "17", From: day(2025, 1, 1), Until: day(2026, 1, 1), Delegation: power.DelegationOnce, Joint: true,
			Principals: []power.Party{employee}, Representatives: []power.Party{second, employee},
			Rights: []power.Right{{Code: "BBR_1", Text: "Подписание документов"}}, First: "a", Parent: "c",
		}},
	} {
		got, err := power.Read(t.Context(), c.p.XML())
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if diff := cmp.Diff(&c.want, got); diff != "" {
			t.Errorf("%s: %s", c.name, diff)
		}
	}
}

// TestOlderForms reads documents of older forms by the names that they have.
func TestOlderForms(t *testing.T) {
	const form002 = `<Доверенность ВерсФорм="002" ИдФайл="ON_DOVBB_1"><Документ><Довер>` +
		`<СвДов НомДовер="N-1" ДатаВыдДовер="01.01.2025" ДатаКонДовер="31.12.2025" ПрПередов="1" ПрСовмПолн="2"/>` +
		`<СвДоверит><Доверит><РосОргДовер><СвРосОрг НаимОрг="Общество" ИННЮЛ="7707083893" ОГРН="1027700132195"/><ЛицоБезДов><СвФЛ ИННФЛ="500100732259" СНИЛС="112-233-445 95"/></ЛицоБезДов></РосОргДовер></Доверит></СвДоверит>` +
		`<СвУпПред><Пред><СведФизЛ ИННФЛ="123456789012" СНИЛС="12345678901"><ФИО Фамилия="Иванов" Имя="Иван"/></СведФизЛ></Пред></СвУпПред>` +
		`<СвПолн><ТекстПолн>Подписывать</ТекстПолн></СвПолн></Довер></Документ></Доверенность>`
	const passed002 = `<Доверенность ВерсФорм="002"><Документ><Передов><СвДовПер НомДоверN="N-1"><СвОснДовер НомДовер0="N-0"/>` +
		`<СвПереДовер НомДовер="N-2" ДатаВыдДовер="2025-01-01" ДатаКонДовер="2025-12-31"/></СвДовПер>` +
		`<СвПередПолн><ПередПолн><СвОрг НаимОрг="Общество" ИННЮЛ="7707083893"/></ПередПолн></СвПередПолн>` +
		`<СвПолучПолн><Пред><СведФизЛ ИННФЛ="123456789012"/></Пред></СвПолучПолн><СвПолн><МашПолн КодПолн="X"/></СвПолн></Передов></Документ></Доверенность>`
	const tax = `<Файл ИдФайл="ON_DOVEL_1" ВерсФорм="5.01"><Документ><СвДов НомДовер="7" ДатаВыдДовер="01.02.2025" СрокДейст="01.02.2025"/>` +
		`<СвДоверит><НаимОрг>Общество</НаимОрг><ИННЮЛ>7707083893</ИННЮЛ></СвДоверит><СвУпПред><ИННФЛ>123456789012</ИННФЛ></СвУпПред><СвПолн><Полн КодПолн="01"/></СвПолн></Документ></Файл>`
	for _, c := range []struct {
		document, family, number, principal, person, parent string
		until                                               time.Time
		joint                                               bool
		rights                                              power.Right
	}{
		{form002, "002", "n-1", "7707083893", "123456789012", "", day(2026, 1, 1), true, power.Right{Text: "Подписывать"}},
		{passed002, "002", "n-2", "7707083893", "123456789012", "n-1", day(2026, 1, 1), false, power.Right{Code: "X"}},
		{tax, "5.01", "7", "7707083893", "123456789012", "", day(2025, 2, 2), false, power.Right{Code: "01"}},
		{windows1251(tax), "5.01", "7", "7707083893", "123456789012", "", day(2025, 2, 2), false, power.Right{Code: "01"}},
	} {
		if !power.Recognises([]byte(c.document)) {
			t.Errorf("%s: not recognised", c.number)
		}
		p, err := power.Read(t.Context(), []byte(c.document))
		if err != nil {
			t.Errorf("%s: %v", c.number, err)
			continue
		}
		if p.Family != c.family || p.Number != c.number || p.Principals[0].INN != c.principal || p.Representatives[0].INN != c.person || p.Parent != c.parent ||
			!p.Until.Equal(c.until) || p.Joint != c.joint || len(p.Rights) != 1 || p.Rights[0] != c.rights {
			t.Errorf("%s: %+v", c.number, p)
		}
	}
}

// windows1251 encodes a text with a declaration.
func windows1251(text string) string {
	var b strings.Builder
	b.WriteString(`<?xml version="1.0" encoding="windows-1251"?>`)
	for _, r := range text {
		if r >= 'А' && r <= 'я' {
			b.WriteByte(byte(r-'А') + 0xC0)
		} else {
			b.WriteByte(byte(r))
		}
	}
	return b.String()
}

// TestRefused reads documents that are no powers, or that two programs could read differently.
func TestRefused(t *testing.T) {
	good := string(sigtest.NewPower().XML())
	replaced := func(old, text string) string {
		t.Helper()
		if !strings.Contains(good, old) {
			t.Fatalf("%s is not in the document", old)
		}
		return strings.Replace(good, old, text, 1)
	}
	people := sigtest.NewPower()
	people.Representatives = make([]sigtest.Identifiers, 101)
	for i := range people.Representatives {
		people.Representatives[i] = sigtest.Employee
	}
	many := sigtest.NewPower()
	many.Codes = make([]string, 1001)
	for i := range many.Codes {
		many.Codes[i] = "X"
	}
	deep := sigtest.NewPower()
	deep.Inside = strings.Repeat("<a>", 100) + strings.Repeat("</a>", 100)
	for _, c := range []struct{ name, document, want string }{
		{"no XML", "%PDF-1.7", "an XML document expected"},
		{"empty", "", "an XML document expected"},
		{"an entity", strings.Replace(good, "<Доверенность", `<!DOCTYPE x [<!ENTITY e SYSTEM "file:///etc/passwd">]><Доверенность`, 1), "an XML document expected"},
		{"a document type", strings.Replace(good, "<Доверенность", `<!DOCTYPE x SYSTEM "http://example.org/x.dtd"><Доверенность`, 1), "an XML document expected"},
		{"another root", "<a/>", "Доверенность expected"},
		{"too long", good + strings.Repeat(" ", power.MaxSize), "at most"},
		{"too deep", string(deep.XML()), "an XML document expected"},
		{"no document", `<Доверенность xmlns="urn://x-artefacts/EMCHD_1"/>`, "no element Документ"},
		{"two documents", replaced("</Документ>", "</Документ><Документ/>"), "two elements Документ"},
		{"a first one and one passed on", replaced("</Документ>", "<Передов/></Документ>"), "that was passed on"},
		{"nothing in it", `<Доверенность xmlns="urn://x-artefacts/EMCHD_1"><Документ/></Доверенность>`, "Довер or Передов"},
		{"two first ones", replaced("</Документ>", "<Довер/></Документ>"), "two elements Довер"},
		{"no number", replaced(" НомДовер=", " Ном="), "no number"},
		{"a long number", replaced(` НомДовер="`, ` НомДовер="`+strings.Repeat("1", 65)), "no number"},
		{"a wrong day", replaced(`СрокДейст="2025-12-31"`, `СрокДейст="2025-02-30"`), `СрокДейст or ДатаКонДовер is "2025-02-30"`},
		{"ends before it begins", replaced(`СрокДейст="2025-12-31"`, `СрокДейст="2024-12-31"`), "ends on 2024-12-31"},
		{"unknown delegation", replaced(`ПрПередов="1"`, `ПрПередов="4"`), `ПрПередов is "4"`},
		{"unknown joint powers", replaced(`ПрСовмПолн="1"`, `ПрСовмПолн="0"`), `ПрСовмПолн is "0"`},
		{"no principal", strings.ReplaceAll(good, "СвДоверит", "СвДове"), "names no one in СвДоверит"},
		{"no representative", strings.ReplaceAll(good, "СвУпПред", "СвУпп"), "names no one in СвУпПред"},
		{"a representative without numbers", replaced(`ИННФЛ="123456789012" СНИЛС="123-456-789 01"`, ""), "has no INN, OGRN or SNILS"},
		{"joint heads without numbers", replaced(`ПолнЮЛ="1"><СвФЛ ИННФЛ="500100732259" СНИЛС="112-233-445 95"`, `ПолнЮЛ="2"><СвФЛ`), "ПолнЮЛ 2 names no person"},
		{"joint heads, one without numbers", replaced(`</РосОргДовер>`, `<ЛицоБезДов ПолнЮЛ="2"><СвФЛ/></ЛицоБезДов></РосОргДовер>`), "ПолнЮЛ 2 names no person"},
		{"joint heads, an organization alone", replaced(`</РосОргДовер>`, `<ЛицоБезДов ПолнЮЛ="2"><СвЮЛ ИННЮЛ="7700000016" ОГРН="1027700000016"/></ЛицоБезДов></РосОргДовер>`), "ПолнЮЛ 2 names no person"},
		{"two representatives in one", replaced("</СведФизЛ></Пред>", `</СведФизЛ><СведФизЛ ИННФЛ="1"/></Пред>`), "has 2 parties"},
		{"two places for one", replaced("</Пред>", `</Пред><Пред/>`), "two parties"},
		{"no rights", strings.ReplaceAll(good, "СвПолн", "СвПол"), "no element СвПолн"},
		{"many representatives", string(people.XML()), "more than 100 parties"},
		{"many rights", string(many.XML()), "more than 1000 powers"},
		{"passed on from nowhere", strings.NewReplacer("<Довер>", "<Передов>", "</Довер>", "</Передов>").Replace(good), "does not name the first power"},
		{"a notary without a name", replaced("</Довер>", "<СвНотУд/></Довер>"), "names no notary"},
	} {
		p, err := power.Read(t.Context(), []byte(c.document))
		var wrong *power.Error
		if !errors.As(err, &wrong) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, %v; want %q", c.name, p, err, c.want)
		}
	}
}

// TestCost reads within a budget.
func TestCost(t *testing.T) {
	document := sigtest.NewPower().XML()
	for _, limits := range []budget.Limits{{Steps: 100, Memory: 1 << 20}, {Steps: 1 << 20, Memory: 1000}} {
		var exceeded *budget.Exceeded
		if _, err := power.Read(budget.With(t.Context(), limits), document); !errors.As(err, &exceeded) {
			t.Errorf("%+v: %v", limits, err)
		}
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := power.Read(ended, document); !errors.Is(err, context.Canceled) {
		t.Errorf("after the end: %v", err)
	}
}

// TestRecognises tells powers from other files by their beginning.
func TestRecognises(t *testing.T) {
	good := string(sigtest.NewPower().XML())
	for _, c := range []struct {
		head string
		want bool
	}{
		{good, true}, {"\xef\xbb\xbf" + good, true}, {"<!-- <a> -->" + "<x:Доверенность xmlns:x='y'>", true}, {"<!-- <Доверенность>", false},
		{"<x:Доверенность xmlns:x='y'>", true}, {"<Доверенность>", true}, {"<Доверенность\n a='1'>", true}, {"<Доверенности>", false},
		{"<Файл ИдФайл='ON_DOVEL_1'>", true}, {"<Файл ИдФайл='ON_NSCHFDOPPR'>", false}, {"<a/>", false}, {"", false}, {"<", false}, {"0\x82" + good, false}, {"PK\x03\x04", false}, {"<?xml", false},
	} {
		if got := power.Recognises([]byte(c.head)); got != c.want {
			t.Errorf("%.40q: %v", c.head, got)
		}
	}
}

// FuzzRead checks that no document makes the reader panic, and that what is read has what the judge needs.
func FuzzRead(f *testing.F) {
	f.Add(sigtest.NewPower().XML())
	passed := sigtest.NewPower()
	passed.First, passed.Parent = "a", "b"
	f.Add(passed.XML())
	f.Add([]byte(windows1251(`<Файл ИдФайл="ON_DOVEL_1"><Документ><СвДов НомДовер="7" ДатаВыдДовер="01.02.2025" СрокДейст="01.02.2025"/><СвДоверит ИННЮЛ="7707083893"/><СвУпПред ИННФЛ="1"/><СвПолн/></Документ></Файл>`)))
	f.Fuzz(func(t *testing.T, document []byte) {
		power.Recognises(document[:min(len(document), 1<<10)])
		p, err := power.Read(t.Context(), document)
		if err != nil {
			return
		}
		if p.Number == "" || len(p.Principals) == 0 || len(p.Representatives) == 0 || !p.From.Before(p.Until) {
			t.Errorf("%+v", p)
		}
		for _, one := range append(p.Principals, p.Representatives...) {
			if one.INN == "" && one.OGRN == "" && one.SNILS == "" {
				t.Errorf("a party without numbers: %+v", one)
			}
		}
	})
}
