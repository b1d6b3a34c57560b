// SPDX-License-Identifier: Apache-2.0

// Package power reads machine-readable powers of attorney (МЧД; Federal Law 63-FZ, articles 17.2 and 17.5) and says
// whether they let the signer of a document act.
//
// Begin with [Load], which takes powers with the signatures of their principals, and [Set.Judge], which judges the
// signatures of a document by them. [Read] alone reads one power and verifies nothing.
//
// The form EMCHD_1 is read by its schema. Forms before it (files ON_DOVBB and ON_DOVEL) are read by the same names of
// elements and attributes, and by those that only they have. The package knows no register: see [Statuses].
package power

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"tamga/sig"
	"tamga/sig/budget"
	"tamga/sig/xmltree"
)

// namespace is that of EMCHD_1. Older forms have none, or others.
const namespace = "urn://x-artefacts/EMCHD_1"

// familyUnified is Power.Family of a document in that namespace.
const familyUnified = "EMCHD_1"

// Limits of a power. Those in use have some tens of kilobytes.
const (
	MaxSize    = 4 << 20 // bytes of the document
	maxDepth   = 64      // of elements
	maxParties = 100     // principals, representatives, and people who act for one of them
	maxRights  = 1_000
	maxText    = 2_000 // characters of a text that is kept
	maxNumber  = 64    // characters of a number
)

// Delegation says whether a representative may pass the power on (ПрПередов).
type Delegation int

// The values of ПрПередов.
const (
	DelegationUnknown  Delegation = iota // the power does not say
	DelegationNone                       // 1
	DelegationOnce                       // 2
	DelegationRepeated                   // 3
)

// Power is a power of attorney as it is written. The texts are as in the document.
type Power struct {
	// Family is "EMCHD_1", or ВерсФорм of an older form.
	Family string
	// Number is НомДовер, in lower case: the number under which registers have the power. Internal is ВнНомДовер.
	Number, Internal string
	// From is the beginning of the day ДатаВыдДовер and Until the end of the day СрокДейст, both in Moscow: the power is in
	// force at From and no longer at Until.
	From, Until time.Time
	Delegation  Delegation
	// Joint reports that the representatives act only together (ПрСовмПолн 2).
	Joint bool
	// Principals gave the power, Representatives have it.
	Principals, Representatives []Party
	// Notary is the name of the notary who certified the power (СвНотУд), nil without one.
	Notary *Name
	Rights []Right
	// First is the number of the first power, if this one was passed on (Передов), and Parent that of the power that it
	// was passed on from. Both are "" for a first power.
	First, Parent string
}

// Party is a principal or a representative.
type Party struct {
	// Name is of the organization, the trader or the person.
	Name string
	// INN is of an organization (10 digits), or of a trader or a person (12 digits). OGRN is of an organization or a trader.
	INN, OGRN string
	// SNILS is of a trader or a person, in digits.
	SNILS string
	// Organization reports that this is an organization or a branch.
	Organization bool
	// Acting are the people and organizations that act for an organization without a power. JointHeads reports that those of a
	// principal act only together (ПолнЮЛ 2).
	Acting     []Party
	JointHeads bool
}

// Name is the name of a person.
type Name struct{ Surname, Given string }

// Right is one power that is granted.
type Right struct {
	// Code is КодПолн, "" for a power in words. Text is its name, or the words.
	Code, Text string
	// Limits counts its restrictions (ОгрСвПолн), which this package does not evaluate.
	Limits int
}

// Error reports a document that is no power of attorney, or one that two programs could read differently.
type Error struct{ Text string }

// Error implements error.
func (e *Error) Error() string { return "power of attorney: " + e.Text }

func faulty(format string, args ...any) error { return &Error{fmt.Sprintf(format, args...)} }

// encoded are the names of root elements in the encodings of such documents.
var encoded = func() (list [][]byte) {
	for _, name := range roots {
		list = append(list, []byte(name))
		var cyrillic []byte // in windows-1251
		for _, r := range name {
			cyrillic = append(cyrillic, byte(r-'А')+0xC0)
		}
		list = append(list, cyrillic)
	}
	return list
}()

// roots are the names of root elements.
var roots = []string{"Доверенность", "Файл"}

// Recognises reports by the beginning of a file, a kilobyte or all of it, whether the file may be a power: XML with such
// a root element and, for the root element of all files of the tax service, a name of such files.
func Recognises(head []byte) bool {
	rest := bytes.TrimLeft(bytes.TrimPrefix(head, []byte("\xef\xbb\xbf")), " \t\r\n")
	if !bytes.HasPrefix(rest, []byte("<")) {
		return false // XML inside of something else
	}
	for {
		at := bytes.IndexByte(rest, '<')
		if at < 0 || at+1 == len(rest) {
			return false
		}
		rest = rest[at+1:]
		if bytes.HasPrefix(rest, []byte("!--")) {
			_, rest, _ = bytes.Cut(rest, []byte("-->"))
		} else if rest[0] != '?' && rest[0] != '!' {
			break
		}
	}
	tag, _, _ := bytes.Cut(rest, []byte(">"))
	name, _, _ := bytes.Cut(tag, []byte(" "))
	name = bytes.TrimRight(name, "\r\n\t/")
	if colon := bytes.IndexByte(name, ':'); colon >= 0 {
		name = name[colon+1:]
	}
	at := slices.IndexFunc(encoded, func(known []byte) bool {
		return bytes.HasPrefix(name, known) && (len(name) == len(known) || strings.IndexByte("\r\n\t", name[len(known)]) >= 0)
	})
	if at < 0 {
		return false
	}
	return at < 2 || bytes.Contains(tag, []byte("ON_DOV")) || bytes.Contains(tag, []byte("ON_EMCHD"))
}

// Read reads a power. It does not verify its signatures. The budget of ctx pays for it.
func Read(ctx context.Context, document []byte) (*Power, error) {
	p, _, err := read(ctx, document)
	return p, err
}

// read also reports whether the document has an XML signature inside.
func read(ctx context.Context, document []byte) (p *Power, signed bool, err error) {
	if len(document) > MaxSize {
		return nil, false, faulty("it has %d bytes, at most %d expected", len(document), MaxSize)
	}
	p, err = sig.Within(ctx, bytes.NewReader(document), func(ctx context.Context) (*Power, error) {
		_, b := budget.Of(ctx, 0)
		t, err := xmltree.Parse(document, xmltree.Options{Size: MaxSize, Depth: maxDepth, Attributes: 64, Names: 1_000, Namespaces: 32, Budget: b})
		if err != nil {
			return nil, faulty("an XML document expected: %v", err)
		}
		if err := b.Spend(4 * int64(t.Len())); err != nil { // what follows visits each node some times
			return nil, err
		}
		r := reader{t: t, space: t.Name(t.Root()).Space, budget: b}
		p, err := r.read()
		for range t.Find(t.Root(), "http://www.w3.org/2000/09/xmldsig#", "Signature") {
			signed = true
		}
		return p, err
	})
	return p, signed && err == nil, err
}

type reader struct {
	t      *xmltree.Tree
	space  string
	budget *budget.Budget
}

func (r *reader) read() (*Power, error) {
	t := r.t
	root := t.Root()
	if !slices.Contains(roots, t.Name(root).Local) {
		return nil, faulty("the root element is %s, Доверенность expected", clip(t.Name(root).String()))
	}
	p := &Power{Family: familyUnified}
	if r.space != namespace {
		version, _ := t.Get(root, "ВерсФорм")
		p.Family = clip(version)
	}
	document, err := r.need(root, "Документ")
	if err != nil {
		return nil, err
	}
	first, err := r.only(document, "Довер", "Доверенность")
	if err != nil {
		return nil, err
	}
	passed, err := r.only(document, "Передов")
	switch {
	case err != nil:
		return nil, err
	case first != xmltree.None && passed != xmltree.None:
		return nil, faulty("it is a first power (Довер) and one that was passed on (Передов)")
	case passed != xmltree.None:
		return p, r.passedOn(p, passed)
	case first == xmltree.None && r.space == namespace:
		return nil, faulty("it has no element Довер or Передов")
	case first == xmltree.None:
		first = document // older forms may have no such element
	}
	return p, r.first(p, first)
}

// first reads a power that a principal gave: Документ/Довер.
func (r *reader) first(p *Power, n xmltree.Node) (err error) {
	about, err := r.need(n, "СвДов", "СвДовер")
	if err != nil {
		return err
	}
	if err = r.about(p, about); err != nil {
		return err
	}
	return r.rest(p, n, []string{"СвДоверит"}, []string{"СвУпПред", "СвПред"})
}

// passedOn reads a power that a representative passed on: Документ/Передов. СвПереДовер has its own number and dates,
// СвПередПолн who passes it on, СвПолучПолн who receives it.
func (r *reader) passedOn(p *Power, n xmltree.Node) (err error) {
	holder := n
	if older, err := r.only(n, "СвДовПер"); err != nil {
		return err
	} else if older != xmltree.None {
		holder = older // form 002
	}
	first, err := r.only(holder, "СвПервДовер", "СвОснДовер")
	if err != nil {
		return err
	}
	if first != xmltree.None {
		p.First = r.number(first, "НомДоверПерв", "НомДовер0")
	}
	if p.First == "" {
		return faulty("it was passed on and does not name the first power (СвПервДовер, НомДоверПерв)")
	}
	p.Parent = p.First
	before, err := r.only(holder, "СвПередов")
	if err != nil {
		return err
	}
	if before == xmltree.None {
		before = holder
	}
	if number := r.number(before, "НомДоверN"); number != "" {
		p.Parent = number
	}
	about, err := r.need(holder, "СвПереДовер")
	if err != nil {
		return err
	}
	if err = r.about(p, about); err != nil {
		return err
	}
	return r.rest(p, n, []string{"СвПередПолн", "СвДоверит"}, []string{"СвПолучПолн", "СвУпПред"})
}

// rest reads parties, rights and the notary.
func (r *reader) rest(p *Power, n xmltree.Node, principals, representatives []string) (err error) {
	if p.Principals, err = r.parties(n, principals, true); err != nil {
		return err
	}
	if p.Representatives, err = r.parties(n, representatives, false); err != nil {
		return err
	}
	if err = r.rights(p, n); err != nil {
		return err
	}
	certified, err := r.only(n, "СвНотУд")
	if err != nil || certified == xmltree.None {
		return err
	}
	for _, holder := range []string{"ВриоНот", "СвНотДейств"} { // who acts for a notary signs instead
		by, err := r.only(certified, holder)
		if err != nil {
			return err
		}
		if by == xmltree.None {
			continue
		}
		for name := range r.t.Elements(by) {
			surname, given := r.get(name, "Фамилия"), strings.Join(strings.Fields(r.get(name, "Имя")+" "+r.get(name, "Отчество")), " ")
			if surname != "" {
				p.Notary = &Name{clip(surname), clip(given)}
				return nil
			}
		}
	}
	return faulty("СвНотУд names no notary")
}

// moscow is where days begin and end.
var moscow = time.FixedZone("MSK", 3*60*60)

// about reads number, dates and delegation.
func (r *reader) about(p *Power, n xmltree.Node) error {
	p.Number, p.Internal = r.number(n, "НомДовер"), clip(r.get(n, "ВнНомДовер"))
	if p.Number == "" {
		return faulty("it has no number (НомДовер)")
	}
	from, err := r.day(n, "ДатаВыдДовер")
	if err != nil {
		return err
	}
	until, err := r.day(n, "СрокДейст", "ДатаКонДовер")
	if err != nil {
		return err
	}
	p.From, p.Until = from, until.AddDate(0, 0, 1)
	if !p.From.Before(p.Until) {
		return faulty("it ends on %s, before it begins on %s", until.Format(time.DateOnly), from.Format(time.DateOnly))
	}
	switch text := r.get(n, "ПрПередов"); text {
	case "1":
		p.Delegation = DelegationNone
	case "2":
		p.Delegation = DelegationOnce
	case "3":
		p.Delegation = DelegationRepeated
	case "":
	default:
		return faulty("ПрПередов is %q; 1, 2 or 3 expected", clip(text))
	}
	return r.joint(p, n)
}

// joint reads ПрСовмПолн, which is at the powers that are granted, and in form 002 at the number.
func (r *reader) joint(p *Power, n xmltree.Node) error {
	switch text := r.get(n, "ПрСовмПолн"); text {
	case "2":
		p.Joint = true
	case "1", "":
	default:
		return faulty("ПрСовмПолн is %q; 1 or 2 expected", clip(text))
	}
	return nil
}

// number reads a number of a power.
func (r *reader) number(n xmltree.Node, names ...string) string {
	text := strings.ToLower(r.get(n, names...))
	if len(text) > maxNumber {
		return ""
	}
	return text
}

// day reads a date: 2025-12-31 or, in older forms, 31.12.2025.
func (r *reader) day(n xmltree.Node, names ...string) (time.Time, error) {
	text := r.get(n, names...)
	for _, layout := range []string{time.DateOnly, "02.01.2006"} {
		if day, err := time.ParseInLocation(layout, text, moscow); err == nil {
			return day, nil
		}
	}
	return time.Time{}, faulty("%s is %q, a date such as 2025-12-31 expected", strings.Join(names, " or "), clip(text))
}

// parties reads the parties in the child elements of these names: the principals, or the representatives.
func (r *reader) parties(n xmltree.Node, names []string, principal bool) (list []Party, err error) {
	for c := range r.t.Elements(n) {
		if !r.isOne(c, names) {
			continue
		}
		inner := c
		for i := range r.t.Elements(c) {
			if r.isOne(i, []string{"Доверит", "Пред", "ПередПолн"}) {
				if inner != c {
					return nil, faulty("%s has two parties", names[0])
				}
				inner = i
			}
		}
		if len(list) == maxParties {
			return nil, faulty("it has more than %d parties in %s", maxParties, names[0])
		}
		one, err := r.party(inner)
		if err != nil {
			return nil, err
		}
		if principal {
			for head := range r.t.Find(inner, r.space, "ЛицоБезДов") {
				if r.get(head, "ПолнЮЛ") != "2" {
					continue
				}
				if err := r.budget.Spend(int64(r.t.Len())); err != nil { // one may be inside of another
					return nil, err
				}
				if one.JointHeads = true; !r.hasPerson(head) { // whose signature would be needed is not known
					return nil, faulty("ЛицоБезДов with ПолнЮЛ 2 names no person by INN or SNILS")
				}
			}
		}
		list = append(list, one)
	}
	if len(list) == 0 {
		return nil, faulty("it names no one in %s", strings.Join(names, " or "))
	}
	return list, nil
}

// hasPerson reports whether an element or one below it describes a person with a number.
func (r *reader) hasPerson(n xmltree.Node) bool {
	if one := r.described(n); !one.Organization && (one.INN != "" || one.OGRN != "" || one.SNILS != "") {
		return true
	}
	for c := range r.t.Elements(n) {
		if r.hasPerson(c) {
			return true
		}
	}
	return false
}

// party reads a party: the first organization, trader or person, and those below and beside it, who act for it.
// Elements are told apart by the identifiers that they have, because their names differ between forms.
func (r *reader) party(n xmltree.Node) (p Party, err error) {
	if r.space == namespace { // a choice in the schema
		choices := 0
		for range r.t.Elements(n) {
			choices++
		}
		if choices != 1 {
			return p, faulty("%s has %d parties, 1 expected", r.t.Name(n), choices)
		}
	}
	var all []Party
	var walk func(n xmltree.Node) error
	walk = func(n xmltree.Node) error {
		for c := range r.t.Elements(n) {
			one := r.described(c)
			if one.INN != "" || one.OGRN != "" || one.SNILS != "" {
				if len(all) > maxParties {
					return faulty("a party has more than %d people", maxParties)
				}
				all = append(all, one)
				if !one.Organization {
					continue // below it are only its name and address
				}
			}
			if err := walk(c); err != nil {
				return err
			}
		}
		return nil
	}
	if one := r.described(n); one.INN != "" || one.OGRN != "" || one.SNILS != "" {
		all = append(all, one)
	}
	if err := walk(n); err != nil {
		return p, err
	}
	if len(all) == 0 {
		return p, faulty("a party of %s has no INN, OGRN or SNILS", r.t.Name(n))
	}
	p = all[0]
	if at := slices.IndexFunc(all, func(one Party) bool { return one.Organization }); at > 0 && r.space != namespace {
		p, all[at] = all[at], all[0] // form 002 may name the person first
	}
	if p.Acting = all[1:]; len(p.Acting) > 0 && !p.Organization {
		return p, faulty("a party of %s has %d people, 1 expected", r.t.Name(n), len(all))
	}
	return p, nil
}

// described returns what an element says of a party in its attributes, or in children that have only text.
func (r *reader) described(n xmltree.Node) Party {
	if name := r.t.Name(n).Local; name == "УдЛичнФЛ" || name == "ФИО" {
		return Party{}
	}
	p := Party{INN: digits(r.get(n, "ИННЮЛ")), OGRN: digits(r.get(n, "ОГРН"))}
	if p.INN != "" || p.OGRN != "" {
		p.Organization, p.Name = true, clip(r.get(n, "НаимОрг", "НаимИО"))
		return p
	}
	p = Party{INN: digits(r.get(n, "ИННФЛ")), OGRN: digits(r.get(n, "ОГРНИП")), SNILS: digits(r.get(n, "СНИЛС"))}
	p.Name = clip(r.get(n, "НаимИП"))
	if p.Name == "" {
		p.Name = r.person(n, 0)
	}
	return p
}

// person returns the name in an element ФИО at most two levels below n.
func (r *reader) person(n xmltree.Node, depth int) string {
	for c := range r.t.Elements(n) {
		if r.is(c, "ФИО") {
			return clip(strings.Join(strings.Fields(r.get(c, "Фамилия")+" "+r.get(c, "Имя")+" "+r.get(c, "Отчество")), " "))
		}
		if depth < 2 {
			if name := r.person(c, depth+1); name != "" {
				return name
			}
		}
	}
	return ""
}

// rights reads the powers that are granted: СвПолн with ТекстПолн, or with МашПолн for each.
func (r *reader) rights(p *Power, n xmltree.Node) error {
	granted, err := r.need(n, "СвПолн")
	if err != nil {
		return err
	}
	if err := r.joint(p, granted); err != nil {
		return err
	}
	for c := range r.t.Elements(granted) {
		one := Right{Code: clip(r.get(c, "КодПолн"))}
		switch {
		case one.Code != "":
			one.Text = clip(r.get(c, "НаимПолн"))
			for l := range r.t.Elements(c) {
				if r.is(l, "ОгрСвПолн") {
					one.Limits++
				}
			}
		case r.isOne(c, []string{"ТекстПолн", "СодПолн"}):
			one.Text = clip(strings.TrimSpace(r.t.StringValue(c)))
		}
		if one == (Right{}) {
			continue
		}
		if len(p.Rights) == maxRights {
			return faulty("it grants more than %d powers", maxRights)
		}
		p.Rights = append(p.Rights, one)
	}
	return nil
}

func (r *reader) is(n xmltree.Node, local string) bool { return r.t.Is(n, r.space, local) }

func (r *reader) isOne(n xmltree.Node, names []string) bool {
	return slices.ContainsFunc(names, func(name string) bool { return r.is(n, name) })
}

// get returns the value of the first attribute of these names, or of the first child element that has only text.
func (r *reader) get(n xmltree.Node, names ...string) string {
	for _, name := range names {
		if value, ok := r.t.Get(n, name); ok {
			return strings.TrimSpace(value)
		}
		if c := r.t.Child(n, r.space, name); c != xmltree.None {
			for range r.t.Elements(c) {
				return ""
			}
			return strings.TrimSpace(r.t.StringValue(c))
		}
	}
	return ""
}

// only returns the child element of one of the names, None without one. Two are an error.
func (r *reader) only(n xmltree.Node, names ...string) (found xmltree.Node, err error) {
	found = xmltree.None
	for c := range r.t.Elements(n) {
		if !r.isOne(c, names) {
			continue
		}
		if found != xmltree.None {
			return found, faulty("%s has two elements %s", r.t.Name(n), r.t.Name(c))
		}
		found = c
	}
	return found, nil
}

// need is only for an element that must be there.
func (r *reader) need(n xmltree.Node, names ...string) (xmltree.Node, error) {
	found, err := r.only(n, names...)
	if err == nil && found == xmltree.None {
		err = faulty("%s has no element %s", r.t.Name(n), names[0])
	}
	return found, err
}

// digits returns the digits of an identifier. SNILS is written with and without separators.
func digits(s string) string {
	if len(s) > maxNumber {
		return ""
	}
	return strings.Map(func(r rune) rune {
		if r < '0' || r > '9' {
			return -1
		}
		return r
	}, s)
}

// clip limits a text that is kept.
func clip(s string) string {
	if runes := []rune(s); len(runes) > maxText {
		return string(runes[:maxText])
	}
	return strings.Clone(s)
}
