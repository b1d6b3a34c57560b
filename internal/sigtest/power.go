// SPDX-License-Identifier: Apache-2.0

package sigtest

import (
	"cmp"
	"fmt"
	"strings"
	"testing"

	"tamga/pki/suite"
	"tamga/pki/x509gost"
)

// Identity makes a signer whose certificate has identifiers of Russian registers. Empty ones are left out.
func (p *Party) Identity(t testing.TB, s *suite.Suite, id Identifiers) *Party {
	t.Helper()
	attributes := []x509gost.Attribute{{OID: x509gost.OIDCommonName, Value: cmp.Or(id.Organization, strings.TrimSpace(id.Surname+" "+id.Given))}}
	for _, one := range []struct {
		oid   x509gost.OID
		value string
	}{
		{x509gost.OIDSurname, id.Surname}, {x509gost.OIDGivenName, id.Given}, {x509gost.OIDOrganization, id.Organization},
		{x509gost.OIDINN, id.INN}, {x509gost.OIDSNILS, id.SNILS}, {x509gost.OIDINNLE, id.INNLE}, {x509gost.OIDOGRN, id.OGRN}, {x509gost.OIDOGRNIP, id.OGRNIP},
	} {
		if one.value != "" {
			attributes = append(attributes, x509gost.Attribute{OID: one.oid, Value: one.value})
		}
	}
	subject, err := x509gost.BuildName(attributes)
	if err != nil {
		t.Fatal(err)
	}
	return p.Issue(t, s, "Identity", func(template *x509gost.Template) { template.Subject = subject })
}

// Identifiers are those of the subject of a certificate.
type Identifiers struct{ Surname, Given, INN, SNILS, Organization, INNLE, OGRN, OGRNIP string }

// The parties of powers in tests: an organization by its head, and two of its people.
var (
	Head     = Identifiers{Surname: "Петрова", Given: "Анна Сергеевна", INN: "500100732259", SNILS: "11223344595", Organization: "Общество", INNLE: "7707083893", OGRN: "1027700132195"}
	Employee = Identifiers{Surname: "Иванов", Given: "Иван Иванович", INN: "123456789012", SNILS: "12345678901"}
	Second   = Identifiers{Surname: "Сидоров", Given: "Пётр Ильич", INN: "210987654321", SNILS: "98765432101"}
)

// Power is a machine-readable power of attorney of the form EMCHD_1, to be changed by tests.
type Power struct {
	Number, Internal string
	From, Until      string // days
	Delegation       string // ПрПередов
	Joint            string // ПрСовмПолн
	JointHeads       string // ПолнЮЛ
	Principals       []Identifiers
	Representatives  []Identifiers
	Codes            []string
	Words            string
	Limits           int    // restrictions of each code
	First, Parent    string // of a power that was passed on
	Notary           *Identifiers
	Inside           string // XML before the end of the document
}

// NewPower returns a power of Head for Employee that is in force at Time, for the code "BBR_1".
func NewPower() Power {
	return Power{
		Number: "4f1c2d3e-5a6b-4c7d-8e9f-0a1b2c3d4e5f", Internal: "17", From: "2025-01-01", Until: "2025-12-31", Delegation: "1", Joint: "1", JointHeads: "1",
		Principals: []Identifiers{Head}, Representatives: []Identifiers{Employee}, Codes: []string{"BBR_1"},
	}
}

// XML returns the document.
func (p Power) XML() []byte {
	var b strings.Builder
	w := func(format string, args ...any) { fmt.Fprintf(&b, format, args...) }
	w(`<?xml version="1.0" encoding="UTF-8"?>`+"\n"+`<Доверенность xmlns="urn://x-artefacts/EMCHD_1" ВерсФорм="EMCHD_1" ПрЭлФорм="00000000" ИдФайл="ON_EMCHD_20250101_%s"><Документ>`, p.Number)
	about := fmt.Sprintf(`ВидДовер="1" ПрПередов="%s" ВнНомДовер="%s" НомДовер="%s" ДатаВыдДовер="%s" СрокДейст="%s"`, p.Delegation, p.Internal, p.Number, p.From, p.Until)
	holder, principal, party, russian, person, receiver := "Довер", "СвДоверит", "Доверит", "РосОргДовер", "ФЛДовер", "СвУпПред"
	if p.First != "" {
		holder, principal, party, russian, person, receiver = "Передов", "СвПередПолн", "ПередПолн", "РосОргПерПолн", "ФЛПерПолн", "СвПолучПолн"
		w(`<Передов ПрНалПередов="1"><СвПервДовер ПрДовер="1" ФормДовер="1" ДатаВыдДовер="2025-01-01" СрокДейст="2025-12-31" НомДоверПерв="%s"/>`, p.First)
		if p.Parent != "" {
			w(`<СвПередов ПрДовер="2" ФормДовер="1" ДатаВыдДовер="2025-01-01" СрокДейст="2025-12-31" НомДоверN="%s"/>`, p.Parent)
		}
		w(`<СвПереДовер %s><СведСист>https://example.org</СведСист></СвПереДовер>`, about)
	} else {
		w(`<Довер><СвДов %s><СведСист>https://example.org</СведСист></СвДов>`, about)
	}
	human := func(id Identifiers) string {
		given, patronymic, _ := strings.Cut(id.Given, " ")
		return fmt.Sprintf(`<СведФЛ ПрГражд="1"><ФИО Фамилия="%s" Имя="%s" Отчество="%s"/></СведФЛ>`, id.Surname, given, patronymic)
	}
	for _, id := range p.Principals {
		w(`<%s><%s>`, principal, party)
		if id.INNLE != "" {
			w(`<%s ЕИОУК="0" ЕИОФЛ="1" ЕИОИП="0"><СвРосОрг НаимОрг="%s" ИННЮЛ="%s" КПП="770701001" ОГРН="%s"/>`, russian, id.Organization, id.INNLE, id.OGRN)
			if id.INN != "" || id.SNILS != "" {
				w(`<ЛицоБезДов ПолнЮЛ="%s"><СвФЛ ИННФЛ="%s" СНИЛС="%s" Должность="Директор">%s</СвФЛ></ЛицоБезДов>`, p.JointHeads, id.INN, dashed(id.SNILS), human(id))
			}
			w(`</%s>`, russian)
		} else {
			w(`<%s ИННФЛ="%s" СНИЛС="%s">%s</%s>`, person, id.INN, dashed(id.SNILS), human(id), person)
		}
		w(`</%s></%s>`, party, principal)
	}
	for _, id := range p.Representatives {
		w(`<%s ТипПред="3"><Пред>`, receiver)
		if id.INNLE != "" {
			w(`<СведОрг НаимОрг="%s" ИННЮЛ="%s" КПП="770701001" ОГРН="%s"/>`, id.Organization, id.INNLE, id.OGRN)
		} else {
			w(`<СведФизЛ ИННФЛ="%s" СНИЛС="%s" Должность="Специалист">%s</СведФизЛ>`, id.INN, dashed(id.SNILS), human(id))
		}
		w(`</Пред></%s>`, receiver)
	}
	kind := "1"
	if p.Words != "" {
		kind = "0"
	}
	w(`<СвПолн ТипПолн="%s" ПрСовмПолн="%s">`, kind, p.Joint)
	if p.Words != "" {
		w(`<ТекстПолн>%s</ТекстПолн>`, p.Words)
	}
	for _, code := range p.Codes {
		w(`<МашПолн КодПолн="%s" НаимПолн="Подписание документов">`, code)
		for i := range p.Limits {
			w(`<ОгрСвПолн ИдОгр="%d" КодОгр="1" НаимОгр="Сумма"><ТексЗначОгр>100</ТексЗначОгр></ОгрСвПолн>`, i+1)
		}
		w(`</МашПолн>`)
	}
	w(`</СвПолн>`)
	if n := p.Notary; n != nil {
		given, patronymic, _ := strings.Cut(n.Given, " ")
		w(`<СвНотУд МестоДовер="Москва" УплНотДейст="0"><СвНотДейств Должность="Нотариус" РегНомНот="77/1-н"><ФИОНотДейств Фамилия="%s" Имя="%s" Отчество="%s"/></СвНотДейств></СвНотУд>`, n.Surname, given, patronymic)
	}
	w(`</%s></Документ>%s</Доверенность>`, holder, p.Inside)
	return []byte(b.String())
}

// dashed returns a SNILS as documents have it.
func dashed(s string) string {
	if len(s) != 11 {
		return s
	}
	return s[:3] + "-" + s[3:6] + "-" + s[6:9] + " " + s[9:]
}
