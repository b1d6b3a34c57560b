// SPDX-License-Identifier: Apache-2.0

// Package trustlist reads the list of accredited certification authorities that the Russian ministry of digital
// development publishes, and says whether a signature is a qualified one (Federal Law 63-FZ, articles 5, 11 and 16).
//
// Begin with [Read]. The list does not make a certificate trusted: anchors do. It answers whether the authority that
// issued a certificate was accredited when it did so and when the signature was made.
package trustlist

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"tamga/pki/x509gost"
	"tamga/sig/xmldsig"
	"tamga/sig/xmltree"
)

// The element names of the list, in no namespace. Their order varies between editions, so each is found by its name.
const (
	rootName      = "АккредитованныеУдостоверяющиеЦентры"
	authorityName = "УдостоверяющийЦентр"
)

// Limits of a list. The one of today has some 600 authorities, 5,000 certificates and tens of megabytes.
const (
	maxAuthoritySize = 4 << 20 // bytes of one element
	maxAuthorities   = 20_000
	maxCertificates  = 200_000
	maxStatuses      = 1_000 // of one authority
	maxAddresses     = 100   // of one key
	maxName          = 1_000 // characters of a text that is kept
)

// List is a verified list, without the certificates themselves.
type List struct {
	Version     int64 // Версия
	Date        time.Time
	Authorities []Authority
	// Unread counts certificates that are no DER of a certificate. They match nothing.
	Unread int

	issuers map[Issuer][]int // positions in Authorities, each once
}

// Authority is one accredited authority, or one that was.
type Authority struct {
	Name        string // Название
	INN         string
	OGRN        string
	Number      string // РеестровыйНомер, "" if the list has none
	Transferred string // ОГРН of the authority that its powers went to, "" if they did not
	// Present is the status of today (СтатусАккредитации): from its time on it alone counts. Statuses are the history before it,
	// by time. The zero Status: the list has none.
	Present  Status
	Statuses []Status
	// Unclear counts statuses that cannot be read. With one of them the authority counts as accredited at no time.
	Unclear int
	Keys    []Key
}

// Status is what an accreditation is from a time on.
type Status struct {
	Word string // as in the list
	From time.Time
}

// Accredited reports whether the status lets an authority issue qualified certificates. An unknown word does not.
func (s Status) Accredited() bool { return s.Word == "Действует" }

// Known reports whether the word is one of those that the list is known to have.
func (s Status) Known() bool {
	return slices.Contains([]string{"Действует", "Приостановлена", "Прекращена", "Аннулирована"}, s.Word)
}

// Key is a key of an authority, with the certificates for it.
type Key struct {
	ID string // ИдентификаторКлюча, as in the list
	// Issuers are digests of name and public key of the certificates.
	Issuers []Issuer
	CRLs    []string // addresses of revocation lists
}

// Issuer identifies who issued a certificate: SHA-256 of its Name and of its SubjectPublicKeyInfo, both in DER. Several
// certificates of one key have the same.
type Issuer [sha256.Size]byte

// IssuerOf returns the identity of the authority that a certificate is of.
func IssuerOf(c *x509gost.Certificate) Issuer {
	h := sha256.New()
	name, key := c.Subject.Raw, c.RawSPKI
	_, _ = fmt.Fprintf(h, "%d:", len(name)) // the boundary between both
	_, _ = h.Write(name)
	_, _ = h.Write(key)
	return Issuer(h.Sum(nil))
}

// Read verifies a list and reads it. signers are the certificates of which one has signed it. It reads the document twice
// and holds one authority at a time; what it returns is about a hundredth of the document.
func Read(ctx context.Context, document io.ReadSeeker, signers ...*x509gost.Certificate) (*List, error) {
	r := reader{list: &List{}}
	if err := xmldsig.VerifyRegister(ctx, document, signers, maxAuthoritySize, r.child); err != nil {
		return nil, err
	}
	if !r.hasVersion || !r.hasDate {
		return nil, fmt.Errorf("list of authorities: it has no Версия or no Дата")
	}
	r.list.index()
	return r.list, nil
}

// index makes the search by issuers.
func (l *List) index() {
	l.issuers = map[Issuer][]int{}
	for i := range l.Authorities {
		for _, k := range l.Authorities[i].Keys {
			for _, id := range k.Issuers {
				if !slices.Contains(l.issuers[id], i) {
					l.issuers[id] = append(l.issuers[id], i)
				}
			}
		}
	}
}

// reader collects what the children of the root say.
type reader struct {
	list                *List
	hasVersion, hasDate bool
	certificates        int
}

// faulty returns an error about an element. A list is read in pieces, so there is no line: authority adds which one it was.
func faulty(t *xmltree.Tree, n xmltree.Node, format string, args ...any) error {
	return fmt.Errorf("%s: %s", t.Name(n), fmt.Sprintf(format, args...))
}

func (r *reader) child(t *xmltree.Tree, n xmltree.Node) (err error) {
	if name := t.Name(t.Root()); !name.Is("", rootName) {
		return fmt.Errorf("list of authorities: the root element is %s, %s expected", name, rootName)
	}
	once := func(has *bool) error {
		if *has {
			return fmt.Errorf("list of authorities: %s occurs twice", t.Name(n))
		}
		*has = true
		return nil
	}
	switch name := t.Name(n); {
	case name.Is("", "Версия"):
		if r.list.Version, err = strconv.ParseInt(text(t, n), 10, 64); err != nil {
			return fmt.Errorf("list of authorities: Версия is %q, a number expected", text(t, n))
		}
		return once(&r.hasVersion)
	case name.Is("", "Дата"):
		if r.list.Date, err = moment(t, n); err != nil {
			return fmt.Errorf("list of authorities: %w", err)
		}
		return once(&r.hasDate)
	case name.Is("", authorityName):
		if len(r.list.Authorities) == maxAuthorities {
			return faulty(t, n, "there are more than %d", maxAuthorities)
		}
		a, err := r.authority(t, n)
		if err != nil {
			return fmt.Errorf("list of authorities: authority %d, %q: %w", len(r.list.Authorities)+1, a.Name, err)
		}
		r.list.Authorities = append(r.list.Authorities, a)
	}
	return nil // a field that this program does not need
}

// authority reads one authority.
func (r *reader) authority(t *xmltree.Tree, n xmltree.Node) (a Authority, err error) {
	for _, field := range []struct {
		name string
		to   *string
	}{{"Название", &a.Name}, {"ИНН", &a.INN}, {"ОГРН", &a.OGRN}, {"РеестровыйНомер", &a.Number}, {"ПолномочияПереданыУЦсОГРН", &a.Transferred}} {
		found, err := only(t, n, field.name)
		if err != nil {
			return a, err
		}
		if found != xmltree.None {
			*field.to = clip(text(t, found))
		}
	}
	// The status of today, and the statuses of the past. Either may be absent.
	current, err := only(t, n, "СтатусАккредитации")
	if err != nil {
		return a, err
	}
	if current != xmltree.None {
		var ok bool
		if a.Present, ok, err = status(t, current); err != nil {
			return a, err
		} else if !ok {
			a.Unclear++
		}
	}
	for history := range children(t, n, "ИсторияСтатусовАккредитации") {
		for c := range children(t, history, "СтатусАккредитации") {
			if len(a.Statuses) == maxStatuses {
				return a, faulty(t, c, "there are more than %d", maxStatuses)
			}
			past, ok, err := status(t, c)
			switch {
			case err != nil:
				return a, err
			case !ok:
				a.Unclear++
			default:
				a.Statuses = append(a.Statuses, past)
			}
		}
	}
	a.sortStatuses()
	for complexes := range children(t, n, "ПрограммноАппаратныеКомплексы") {
		for complex := range children(t, complexes, "ПрограммноАппаратныйКомплекс") {
			for keys := range children(t, complex, "КлючиУполномоченныхЛиц") {
				for key := range children(t, keys, "Ключ") {
					k, err := r.key(t, key)
					if err != nil {
						return a, err
					}
					a.Keys = append(a.Keys, k)
				}
			}
		}
	}
	return a, nil
}

// status reads a status. It returns false for one without a word or a date that can be read.
func status(t *xmltree.Tree, n xmltree.Node) (s Status, ok bool, err error) {
	word, err := only(t, n, "Статус")
	if err != nil {
		return s, false, err
	}
	from, err := only(t, n, "ДействуетС")
	if err != nil || word == xmltree.None || from == xmltree.None {
		return s, false, err
	}
	at, wrong := moment(t, from)
	s = Status{clip(text(t, word)), at}
	return s, wrong == nil && s.Word != "", nil
}

// sortStatuses sorts by time. Of two that begin at once the one that does not accredit counts.
func (a *Authority) sortStatuses() {
	slices.SortStableFunc(a.Statuses, func(x, y Status) int {
		if c := x.From.Compare(y.From); c != 0 {
			return c
		}
		return order(y) - order(x)
	})
}

func order(s Status) int {
	if s.Accredited() {
		return 1
	}
	return 0
}

// StatusAt returns the status at a time, and whether the list knows one.
func (a *Authority) StatusAt(at time.Time) (s Status, known bool) {
	if a.Unclear > 0 {
		return s, false
	}
	if a.Present.Word != "" && !a.Present.From.After(at) {
		return a.Present, true
	}
	for _, one := range a.Statuses {
		if !one.From.After(at) {
			s, known = one, true
		}
	}
	return s, known
}

// key reads one key of an authority.
func (r *reader) key(t *xmltree.Tree, n xmltree.Node) (k Key, err error) {
	id, err := only(t, n, "ИдентификаторКлюча")
	if err != nil {
		return k, err
	}
	if id != xmltree.None {
		k.ID = clip(text(t, id))
	}
	for addresses := range children(t, n, "АдресаСписковОтзыва") {
		for a := range children(t, addresses, "Адрес") {
			if address := text(t, a); address != "" && len(address) <= maxName && len(k.CRLs) < maxAddresses {
				k.CRLs = append(k.CRLs, address)
			}
		}
	}
	for list := range children(t, n, "Сертификаты") {
		for c := range children(t, list, "ДанныеСертификата") {
			if r.certificates++; r.certificates > maxCertificates {
				return k, faulty(t, c, "there are more than %d", maxCertificates)
			}
			data, err := only(t, c, "Данные")
			if err != nil {
				return k, err
			}
			if data == xmltree.None {
				continue // there are entries without one
			}
			der, err := xmltree.DecodeBase64(t.StringValue(data))
			if err != nil {
				r.list.Unread++
				continue
			}
			parsed, err := x509gost.ParseCertificate(der)
			if err != nil {
				r.list.Unread++
				continue
			}
			if issuer := IssuerOf(parsed); !slices.Contains(k.Issuers, issuer) {
				k.Issuers = append(k.Issuers, issuer)
			}
		}
	}
	return k, nil
}

// children returns the child elements of a name without a namespace.
func children(t *xmltree.Tree, n xmltree.Node, name string) func(func(xmltree.Node) bool) {
	return func(yield func(xmltree.Node) bool) {
		for c := range t.Elements(n) {
			if t.Is(c, "", name) && !yield(c) {
				return
			}
		}
	}
}

// only returns the child element of a name, None without one. Two are an error, because programs differ in which
// one they read.
func only(t *xmltree.Tree, n xmltree.Node, name string) (found xmltree.Node, err error) {
	found = xmltree.None
	for c := range children(t, n, name) {
		if found != xmltree.None {
			return found, faulty(t, c, "occurs twice in %s", t.Name(n))
		}
		found = c
	}
	return found, nil
}

// text returns the text of an element without white space around it.
func text(t *xmltree.Tree, n xmltree.Node) string { return strings.TrimSpace(t.StringValue(n)) }

// clip limits a text that is kept for people.
func clip(s string) string {
	if runes := []rune(s); len(runes) > maxName {
		return string(runes[:maxName])
	}
	return strings.Clone(s) // not a part of the document
}

// moscow is the zone of times without one.
var moscow = time.FixedZone("MSK", 3*60*60)

// moment reads a dateTime or a date of XML Schema. Without a zone it is the time of Moscow.
func moment(t *xmltree.Tree, n xmltree.Node) (time.Time, error) {
	value := text(t, n)
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02T15:04:05.999999999", "2006-01-02Z07:00", time.DateOnly} {
		if at, err := time.ParseInLocation(layout, value, moscow); err == nil {
			return at.UTC().Truncate(time.Millisecond), nil // as it is stored
		}
	}
	return time.Time{}, faulty(t, n, "%q is no date and no time of XML Schema", value)
}

// MarshalText returns the identity in hexadecimal.
func (i Issuer) MarshalText() ([]byte, error) { return []byte(hex.EncodeToString(i[:])), nil }

// UnmarshalText reads what MarshalText returns.
func (i *Issuer) UnmarshalText(text []byte) error {
	if hex.DecodedLen(len(text)) != len(i) {
		return fmt.Errorf("identity of an issuer: %d characters, %d expected", len(text), hex.EncodedLen(len(i)))
	}
	_, err := hex.Decode(i[:], text)
	return err
}

// Load reads a list that was stored as JSON. Who stored it has verified it.
func Load(stored []byte) (*List, error) {
	l := &List{}
	if err := json.Unmarshal(stored, l); err != nil {
		return nil, fmt.Errorf("list of authorities: %w", err)
	}
	l.index()
	return l, nil
}
