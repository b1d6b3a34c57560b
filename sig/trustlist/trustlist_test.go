// SPDX-License-Identifier: Apache-2.0

package trustlist_test

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"tamga/internal/judge"
	"tamga/internal/sigtest"
	"tamga/internal/testsize"
	"tamga/pki/suite"
	"tamga/pki/x509gost"
	"tamga/sig"
	"tamga/sig/trustlist"
	"tamga/sig/xmldsig"
)

// listOf returns a list before it is signed.
func listOf(by *sigtest.Party, authorities ...string) string {
	return `<?xml version="1.0" encoding="utf-8"?><АккредитованныеУдостоверяющиеЦентры xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xsi:noNamespaceSchemaLocation="TSL.xsd">` +
		"\n<Версия>7</Версия><Дата>2025-06-01T12:00:00</Дата>\n" + strings.Join(authorities, "\n") + by.ListTemplate() + `</АккредитованныеУдостоверяющиеЦентры>`
}

// authority is a generator of one authority.
type authority struct {
	name, inn   string
	now         status   // СтатусАккредитации
	past        []status // ИсторияСтатусовАккредитации
	complexes   [][]*x509gost.Certificate
	ogrn        string // 1 if empty
	transferred string
	unreadable  bool
}

type status struct{ word, from string }

func (s status) xml() string {
	if s.word == "" {
		return ""
	}
	return "<СтатусАккредитации><Статус>" + s.word + "</Статус><ДействуетС>" + s.from + "</ДействуетС></СтатусАккредитации>"
}

func (a authority) xml() string {
	var b strings.Builder
	fmt.Fprintf(&b, "<УдостоверяющийЦентр><Название>%s</Название><ЭлектроннаяПочта>a@example.org</ЭлектроннаяПочта><Адрес><Страна>RU</Страна></Адрес><ПрограммноАппаратныеКомплексы>", a.name)
	for _, complex := range a.complexes {
		b.WriteString("<ПрограммноАппаратныйКомплекс><Псевдоним>1</Псевдоним><КлючиУполномоченныхЛиц>")
		for _, c := range complex {
			fmt.Fprintf(&b, "<Ключ><ИдентификаторКлюча>%x</ИдентификаторКлюча><АдресаСписковОтзыва><Адрес>http://example.org/1.crl</Адрес></АдресаСписковОтзыва><Сертификаты><ДанныеСертификата><Отпечаток>00</Отпечаток><Данные>%s</Данные></ДанныеСертификата></Сертификаты></Ключ>",
				c.SubjectKeyID, base64.StdEncoding.EncodeToString(c.Raw))
		}
		if a.unreadable {
			b.WriteString("<Ключ><ИдентификаторКлюча/><Сертификаты><ДанныеСертификата><Данные>AAAA</Данные></ДанныеСертификата><ДанныеСертификата/></Сертификаты></Ключ><Ключ/>")
		}
		b.WriteString("</КлючиУполномоченныхЛиц></ПрограммноАппаратныйКомплекс>")
	}
	b.WriteString("<ПрограммноАппаратныйКомплекс/></ПрограммноАппаратныеКомплексы>")
	fmt.Fprintf(&b, "<ИНН>%s</ИНН><ОГРН>%s</ОГРН><РеестровыйНомер>12</РеестровыйНомер>%s<ИсторияСтатусовАккредитации>", a.inn, cmp.Or(a.ogrn, "1"), a.now.xml())
	for _, s := range a.past {
		b.WriteString(s.xml())
	}
	b.WriteString("</ИсторияСтатусовАккредитации>")
	if a.transferred != "" {
		b.WriteString("<ПолномочияПереданыУЦсОГРН>" + a.transferred + "</ПолномочияПереданыУЦсОГРН>")
	}
	b.WriteString("</УдостоверяющийЦентр>")
	return b.String()
}

// signed returns a list signed by a party.
func signed(t testing.TB, by *sigtest.Party, text string) []byte {
	t.Helper()
	return sigtest.Make(t, xmldsig.New(), by, &sig.Job{Document: sigtest.Document([]byte(text)), Params: sig.Params{"XMLDsigType": "XMLTemplate"}})
}

// TestQuality makes lists whose statuses begin and end around the issue of a certificate and the moment of a signature.
func TestQuality(t *testing.T) {
	s := suite.GOST2012x256
	root := sigtest.Root(t, s)
	ministry := root.Signer(t, s, "Ministry")
	sub, unlisted := root.Authority(t, "Authority"), root.Authority(t, "Unlisted")
	issued := time.Date(2024, 3, 1, 9, 0, 0, 0, time.UTC)
	made := time.Date(2024, 5, 1, 9, 0, 0, 0, time.UTC)
	checked := made.AddDate(9, 0, 0)
	of := func(by *sigtest.Party) []*x509gost.Certificate {
		p := by.Issue(t, s, "Signer", func(c *x509gost.Template) { c.NotBefore = issued })
		return append([]*x509gost.Certificate{p.Certificate}, p.Chain...)
	}
	path := of(sub)
	keys := [][]*x509gost.Certificate{{sub.Certificate}}
	const on, paused, ended, void = "Действует", "Приостановлена", "Прекращена", "Аннулирована"
	for _, c := range []struct {
		name        string
		authorities []authority
		path        []*x509gost.Certificate
		code, text  string
	}{
		{"accredited long before", []authority{{now: status{on, "2020-01-01"}, complexes: keys}}, path, "qualified", "was accredited when"},
		{"accredited since the second of issue", []authority{{now: status{on, "2024-03-01T12:00:00"}, complexes: keys}}, path, "qualified", ""},
		{"a second later", []authority{{now: status{on, "2024-03-01T12:00:01"}, complexes: keys}}, path, "advanced-at-issue", "no status of that time"},
		{"the day of issue in Moscow", []authority{{now: status{on, "2024-03-01"}, complexes: keys}}, path, "qualified", ""},
		{"with a zone", []authority{{now: status{on, "2024-03-01T09:00:00Z"}, complexes: keys}}, path, "qualified", ""},
		{"ended between", []authority{{now: status{ended, "2024-04-01"}, past: []status{{on, "2020-01-01"}}, complexes: keys}}, path, "advanced-at-signed", "Прекращена"},
		{"ended afterwards", []authority{{now: status{void, "2024-05-02"}, past: []status{{on, "2020-01-01"}}, complexes: keys}}, path, "qualified", ""},
		{"suspended at issue, resumed", []authority{{now: status{on, "2024-04-01"}, past: []status{{on, "2020-01-01"}, {paused, "2024-02-01"}}, complexes: keys}}, path, "advanced-at-issue", "Приостановлена"},
		{"suspended and resumed between", []authority{{now: status{on, "2024-04-20"}, past: []status{{paused, "2024-04-01"}, {on, "2020-01-01"}}, complexes: keys}}, path, "qualified", ""},
		{"two at once: the present one counts", []authority{{now: status{on, "2024-01-01"}, past: []status{{ended, "2024-01-01"}}, complexes: keys}}, path, "qualified", ""},
		{"two at once in the history", []authority{{past: []status{{on, "2024-01-01"}, {ended, "2024-01-01"}}, complexes: keys}}, path, "advanced-at-issue", "Прекращена"},
		{"the present one ends it, the history has a later one", []authority{{now: status{void, "2024-02-01"}, past: []status{{on, "2024-02-01T12:00:00"}}, complexes: keys}}, path, "advanced-at-issue", "Аннулирована"},
		{"a status without a date", []authority{{now: status{on, "2020-01-01"}, past: []status{{ended, ""}}, complexes: keys}}, path, "advanced-at-issue", "no status"},
		{"a status of another form", []authority{{now: status{on, "long ago"}, complexes: keys}}, path, "advanced-at-issue", "no status"},
		{"an unknown word", []authority{{now: status{"Продлена", "2020-01-01"}, complexes: keys}}, path, "advanced-at-issue", "unknown status"},
		{"no status", []authority{{complexes: keys}}, path, "advanced-at-issue", "no status"},
		{"only a history", []authority{{past: []status{{on, "2020-01-01"}}, complexes: keys}}, path, "qualified", ""},
		{"not in the list", []authority{{now: status{on, "2020-01-01"}, complexes: keys}}, of(unlisted), "advanced-unlisted", "is not in the list"},
		{"no path", []authority{{now: status{on, "2020-01-01"}, complexes: keys}}, path[:1], "advanced-no-issuer", "itself trusted"},
		{"no complexes", []authority{{now: status{on, "2020-01-01"}}}, path, "advanced-unlisted", ""},
		{"two authorities with the key", []authority{{now: status{ended, "2024-01-01"}, complexes: keys}, {name: "Heir", ogrn: "2", now: status{on, "2020-01-01"}, complexes: keys}}, path, "qualified", "Heir"},
		{"transferred before the issue", []authority{{now: status{ended, "2024-01-01"}, past: []status{{on, "2015-01-01"}}, complexes: keys, transferred: "2"}, {name: "Heir", ogrn: "2", now: status{on, "2020-01-01"}, complexes: keys}}, path, "qualified", "Heir"},
		{"transferred between", []authority{{now: status{ended, "2024-04-01"}, past: []status{{on, "2015-01-01"}}, complexes: keys, transferred: "2"}, {name: "Heir", ogrn: "2", now: status{on, "2024-03-15"}, complexes: keys}}, path, "qualified", "УЦ"},
		{"transferred between to one that is suspended", []authority{{now: status{ended, "2024-04-01"}, past: []status{{on, "2015-01-01"}}, complexes: keys, transferred: "2"}, {name: "Heir", ogrn: "2", now: status{paused, "2024-04-15"}, past: []status{{on, "2020-01-01"}}, complexes: keys}}, path, "advanced-at-signed", "Heir"},
		{"suspended at issue and transferred later", []authority{{name: "Heir", ogrn: "2", now: status{on, "2015-01-01"}, complexes: keys}, {now: status{ended, "2024-06-01"}, past: []status{{on, "2015-01-01"}, {paused, "2024-02-01"}}, complexes: keys, transferred: "2"}}, path, "advanced-at-issue", "Приостановлена"},
		{"two complexes with one key", []authority{{now: status{on, "2020-01-01"}, complexes: append(keys, keys...)}}, path, "qualified", ""},
		{"another key, and certificates that cannot be read", []authority{{now: status{on, "2020-01-01"}, complexes: [][]*x509gost.Certificate{{unlisted.Certificate, sub.Certificate}}, unreadable: true}}, path, "qualified", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			var texts []string
			for _, a := range c.authorities {
				if a.name == "" {
					a.name = "УЦ &quot;Пример&quot;"
				}
				a.inn = "7700000000"
				texts = append(texts, a.xml())
			}
			list, err := trustlist.Read(t.Context(), bytes.NewReader(signed(t, ministry, listOf(ministry, texts...))), ministry.Certificate)
			if err != nil {
				t.Fatal(err)
			}
			if want := time.Date(2025, 6, 1, 9, 0, 0, 0, time.UTC); list.Version != 7 || !list.Date.Equal(want) || len(list.Authorities) != len(c.authorities) {
				t.Errorf("version %d of %s, %d authorities", list.Version, list.Date, len(list.Authorities))
			}
			if c.authorities[0].unreadable && list.Unread != 1 {
				t.Errorf("%d certificates were not read, want 1", list.Unread)
			}
			r := &sig.Report{Signatures: []sig.Signature{{Signer: c.path[0], Chain: c.path, SigningTime: made, BestTime: checked}}}
			list.Qualify(r, checked)
			q := r.Signatures[0].Quality
			if q.Code != c.code || q.Qualified != (c.code == "qualified") || !strings.Contains(q.Text, c.text) || q.Basis != sig.TimeClaimed || !q.At.Equal(made) || !q.Old {
				t.Errorf("%+v", q)
			}
			if listed := c.code != "advanced-unlisted" && c.code != "advanced-no-issuer"; listed != (q.INN == "7700000000") || listed != (q.Number == "12") {
				t.Errorf("%+v", q)
			}
		})
	}
	// A time stamp proves another time than the one that is claimed.
	list, err := trustlist.Read(t.Context(), bytes.NewReader(signed(t, ministry, listOf(ministry, authority{now: status{ended, "2024-06-01"}, past: []status{{on, "2020-01-01"}}, complexes: keys}.xml()))), ministry.Certificate)
	if err != nil {
		t.Fatal(err)
	}
	stamped := made.AddDate(0, 3, 0)
	r := &sig.Report{Signatures: []sig.Signature{{Signer: path[0], Chain: path, SigningTime: made, BestTime: stamped, TimeStamps: []sig.TimeStamp{{Time: stamped}}, Countersigners: []sig.Signature{{Signer: path[0], Chain: path, SigningTime: made}}}}}
	list.Qualify(r, checked)
	if q := r.Signatures[0].Quality; q.Code != "advanced-at-signed" || q.Basis != sig.TimeProven || q.Old {
		t.Errorf("with a time stamp: %+v", q)
	}
	if q := r.Signatures[0].Countersigners[0].Quality; q == nil || q.Code != "qualified" {
		t.Errorf("a countersignature: %+v", q)
	}
	// Nothing is said about what did not pass, and about time stamps of the document.
	r = &sig.Report{Signatures: []sig.Signature{
		{Signer: path[0], Chain: path, SigningTime: made, Findings: []sig.Finding{{Code: "signature-mismatch", Indication: sig.SigCryptoFailure}}},
		{Signer: path[0], Chain: path, SigningTime: made, Level: sig.LevelDocumentStamp},
		{Chain: path, SigningTime: made},
	}}
	list.Qualify(r, checked)
	for i := range r.Signatures {
		if q := r.Signatures[i].Quality; q != nil {
			t.Errorf("%d: %+v", i, q)
		}
	}
}

// TestHostileLists refuses lists that are not signed by the named certificate, or that programs read in different ways.
func TestHostileLists(t *testing.T) {
	s := suite.GOST2012x512
	root := sigtest.Root(t, s)
	ministry, other := root.Signer(t, s, "Ministry"), root.Signer(t, s, "Other")
	one := authority{name: "A", now: status{"Действует", "2020-01-01"}, complexes: [][]*x509gost.Certificate{{root.Certificate}}}.xml()
	for _, c := range []struct {
		name string
		text []byte
		why  string
	}{
		{"signed by another", signed(t, other, listOf(other, one)), "another key"},
		{"unsigned", []byte(strings.Replace(listOf(ministry, one), ministry.ListTemplate(), "", 1)), "no signature"},
		{"a template", []byte(listOf(ministry, one)), "another key"},
		{"changed", bytes.Replace(signed(t, ministry, listOf(ministry, one)), []byte("2020-01-01"), []byte("2010-01-01"), 1), "has changed"},
		{"an authority without its end", bytes.Replace(signed(t, ministry, listOf(ministry, one)), []byte("</УдостоверяющийЦентр>"), nil, 1), "ends in the middle"},
		{"an entity bomb", append([]byte(`<!DOCTYPE l [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]>`), signed(t, ministry, listOf(ministry, one))[len(`<?xml version="1.0" encoding="utf-8"?>`):]...), "document type"},
		{"another root", signed(t, ministry, "<l><a/>"+ministry.ListTemplate()+"</l>"), "root element"},
		{"no version", signed(t, ministry, strings.Replace(listOf(ministry, one), "<Версия>7</Версия>", "", 1)), "no Версия"},
		{"two versions", signed(t, ministry, strings.Replace(listOf(ministry, one), "<Версия>7</Версия>", "<Версия>7</Версия><Версия>8</Версия>", 1)), "occurs twice"},
		{"no number", signed(t, ministry, strings.Replace(listOf(ministry, one), ">7<", ">seven<", 1)), "a number expected"},
		{"an authority with two numbers", signed(t, ministry, listOf(ministry, one, strings.Replace(one, "</ИНН>", "</ИНН><ИНН>2</ИНН>", 1))), `authority 2, "A": ИНН: occurs twice`},
		{"no date", signed(t, ministry, strings.Replace(listOf(ministry, one), "2025-06-01T12:00:00", "yesterday", 1)), "no date"},
		{"two words", signed(t, ministry, listOf(ministry, strings.Replace(one, "<Статус>", "<Статус>Прекращена</Статус><Статус>", 1))), "occurs twice"},
	} {
		if _, err := trustlist.Read(t.Context(), bytes.NewReader(c.text), ministry.Certificate); err == nil || !strings.Contains(err.Error(), c.why) {
			t.Errorf("%s: %v, want %q", c.name, err, c.why)
		}
	}
}

// TestXMLSecSigns reads lists that xmlsec has signed with GOST, and shows ours to xmlsec.
func TestXMLSecSigns(t *testing.T) {
	x := judge.XMLSecGOST(t)
	for _, s := range []*suite.Suite{suite.GOST2012x256, suite.GOST2012x512} {
		root := sigtest.Root(t, s)
		ministry := root.Signer(t, s, "Ministry")
		text := listOf(ministry, authority{name: "A &amp; &#xD; B", now: status{"Действует", "2020-01-01"}, complexes: [][]*x509gost.Certificate{{root.Certificate}}}.xml())
		ours := signed(t, ministry, text)
		if err := x.Verify(ours, root.PEM(), sigtest.Time); err != nil {
			t.Errorf("%s: xmlsec refuses ours: %v", s.Name, err)
		}
		der, err := x509gost.MarshalPrivateKey(ministry.Key, s)
		if err != nil {
			t.Fatal(err)
		}
		made, err := x.Sign([]byte(text), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), ministry.PEM())
		if err != nil {
			t.Fatalf("%s: %v", s.Name, err)
		}
		list, err := trustlist.Read(t.Context(), bytes.NewReader(made), root.Certificate, ministry.Certificate)
		if err != nil || len(list.Authorities) != 1 || len(list.Authorities[0].Keys) != 1 || list.Authorities[0].Keys[0].CRLs[0] != "http://example.org/1.crl" {
			t.Errorf("%s: %+v, %v", s.Name, list, err)
		}
	}
}

// TestLargeList reads a list of 100 MB. What it holds at a time is below 64 MiB.
func TestLargeList(t *testing.T) {
	size := 10 << 20
	if testsize.Of() >= testsize.Whole {
		size = 50 << 20 // as much as a signature can be made over
	}
	s := suite.GOST2012x256
	root := sigtest.Root(t, s)
	ministry := root.Signer(t, s, "Ministry")
	one := authority{name: "A", now: status{"Действует", "2020-01-01"}, complexes: [][]*x509gost.Certificate{{root.Certificate, ministry.Certificate}}}.xml()
	var list []string
	for n := 0; n < size; n += len(one) {
		list = append(list, one)
	}
	// One is as large as an element may be, and the worst for a tree.
	list = append(list, strings.Replace(one, "<Адрес>", "<Адрес>"+strings.Repeat("<a/>", 900_000), 1))
	data := signed(t, ministry, listOf(ministry, list...))
	live := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := live()
	var most uint64
	in := &measured{Reader: bytes.NewReader(data), each: 8 << 20, do: func() { most = max(most, live()) }}
	if read, err := trustlist.Read(t.Context(), in, ministry.Certificate); err != nil || len(read.Authorities) != len(list) {
		t.Fatalf("%v, %v", read, err)
	}
	if most == 0 || most > before+32<<20 {
		t.Errorf("%d bytes in use at most, %d before", most, before)
	}
	t.Logf("%d bytes, %d authorities: %d bytes in use at most", len(data), len(list), most-before)
	runtime.KeepAlive(data)
}

// measured calls do after each so many bytes that are read.
type measured struct {
	*bytes.Reader
	each, n int
	do      func()
}

func (m *measured) Read(p []byte) (int, error) {
	n, err := m.Reader.Read(p)
	if m.n += n; m.n >= m.each {
		m.n = 0
		m.do()
	}
	return n, err
}

// FuzzRead reads lists with any authority in them.
func FuzzRead(f *testing.F) {
	s := suite.ECDSAP256
	root := sigtest.Root(f, s)
	ministry := root.Signer(f, s, "Ministry")
	f.Add(authority{name: "A", now: status{"Действует", "2020-01-01"}, complexes: [][]*x509gost.Certificate{{root.Certificate}}, unreadable: true, transferred: "1"}.xml())
	f.Add("<УдостоверяющийЦентр><ИсторияСтатусовАккредитации><СтатусАккредитации/></ИсторияСтатусовАккредитации></УдостоверяющийЦентр>")
	f.Fuzz(func(t *testing.T, text string) {
		made, err := sigtest.Try(t, xmldsig.New(), ministry, &sig.Job{Document: sigtest.Document([]byte(listOf(ministry, text))), Params: sig.Params{"XMLDsigType": "XMLTemplate"}})
		if err != nil {
			return
		}
		list, err := trustlist.Read(t.Context(), bytes.NewReader(made), ministry.Certificate)
		if err != nil {
			return
		}
		r := &sig.Report{Signatures: []sig.Signature{{Signer: ministry.Certificate, Chain: []*x509gost.Certificate{ministry.Certificate, root.Certificate}, SigningTime: sigtest.Time}}}
		list.Qualify(r, sigtest.Time)
		// By a plain reading of the statuses: of one authority, without transfers.
		if len(list.Authorities) != 1 || list.Authorities[0].Transferred != "" || r.Signatures[0].Quality.Code == "advanced-unlisted" {
			return
		}
		a := &list.Authorities[0]
		accredited := func(at time.Time) bool {
			last, known := trustlist.Status{}, false
			for _, s := range append(slices.Clone(a.Statuses), a.Present) {
				past := s != a.Present || slices.Contains(a.Statuses, s)
				if s.Word == "" || s.From.After(at) || past && a.Present.Word != "" && !a.Present.From.After(at) && s != a.Present {
					continue
				}
				if !known || s.From.After(last.From) || s.From.Equal(last.From) && !s.Accredited() {
					last, known = s, true
				}
			}
			return a.Unclear == 0 && last.Word == "Действует"
		}
		if q, want := r.Signatures[0].Quality, accredited(ministry.Certificate.NotBefore) && accredited(sigtest.Time); q.Qualified != want {
			t.Errorf("%+v, want %v: %+v", q, want, a)
		}
	})
}
