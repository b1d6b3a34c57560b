// SPDX-License-Identifier: Apache-2.0

package view

import (
	"fmt"
	"html/template"
	"io/fs"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/feature/plural"
	"golang.org/x/text/language"

	"tamga/internal/domain/fault"
	"tamga/internal/web/rest/look"
)

// The catalogues have one text in a line: "key = text". A key that ends in |one, |few or
// |many is the form of a text for a number; the text has %d in its place. Each language has a
// folder, each group of pages a file. This package has the texts that several areas use, and each area its own; see [Add].

// Words are the texts of the pages in one language.
type Words struct {
	Language string // "en" or "ru"
	name     string // of the language, in itself
	tag      language.Tag
	texts    map[string]string
	zone     *time.Location // of the reader; nil: UTC
	marks    bool           // times are marks, see timesIn
	// templates parse the pages, by AREA/NAME.
	templates map[string]func() *template.Template

	// Operations and Outcomes return the identifiers in the audit log with their names, by name.
	Operations, Outcomes func() []Option
}

// Languages are the languages of the pages, those of rest.Languages.
var Languages = []*Words{
	newWords("en", "English", language.English),
	newWords("ru", "Русский", language.Russian),
}

func init() { Add("", shared, nil) }

func newWords(code, name string, tag language.Tag) *Words {
	w := &Words{Language: code, name: name, tag: tag, texts: map[string]string{}, templates: map[string]func() *template.Template{}}
	w.Operations = sync.OnceValue(func() []Option { return w.Family("audited.") })
	w.Outcomes = sync.OnceValue(func() []Option { return w.Family("outcome.") })
	return w
}

// read adds the texts of an area.
func (w *Words) read(files fs.FS) {
	list, err := fs.Glob(files, "words/"+w.Language+"/*.txt")
	if err != nil {
		panic(err)
	}
	for _, file := range list {
		data, err := fs.ReadFile(files, file)
		if err != nil {
			panic(err)
		}
		for line := range strings.Lines(string(data)) {
			key, text, ok := strings.Cut(strings.TrimSpace(line), " = ")
			if _, there := w.texts[key]; there {
				panic("pages: " + file + ": " + key + " has a text in another file")
			}
			if ok {
				w.texts[key] = text
			}
		}
	}
}

// WordsIn returns the texts in a language of rest.Languages. Those of the empty language, which
// commands have for English, are English.
func WordsIn(code string) *Words {
	if i := slices.IndexFunc(Languages, func(w *Words) bool { return w.Language == code }); i >= 0 {
		return Languages[i]
	}
	return Languages[0]
}

// Text returns a text with its values. A key without a text is returned itself, and a test
// finds it.
func (w *Words) Text(key string, values ...any) string {
	text, ok := w.texts[key]
	if !ok {
		return key
	}
	if len(values) == 0 {
		return text
	}
	return fmt.Sprintf(text, values...)
}

// all returns the texts of several keys.
func (w *Words) all(keys []string) []string {
	texts := make([]string, len(keys))
	for i, key := range keys {
		texts[i] = w.Text(key)
	}
	return texts
}

// Done returns the words for what a form of some pages has done, "" for none.
func (w *Words) Done(pages, form string) string { return w.texts[pages+".done."+form] }

// TextOr returns a text, or otherwise if there is none.
func (w *Words) TextOr(key, otherwise string) string {
	if text, ok := w.Lookup(key); ok && text != "-" {
		return text
	}
	return otherwise
}

// Lookup returns a text and whether there is one.
func (w *Words) Lookup(key string) (text string, ok bool) {
	text, ok = w.texts[key]
	return text, ok
}

// HasText reports whether the catalogues have a text. All languages have the same texts.
func HasText(key string) bool { return Languages[0].texts[key] != "" }

// forms are the names of plural forms in the catalogues.
var forms = map[plural.Form]string{plural.One: "one", plural.Few: "few"}

// Count returns the form of a text for a number.
func (w *Words) Count(key string, n int) string { return w.Text(w.form(key, int64(n)), n) }

// form returns the key of the form of a text for a number.
func (w *Words) form(key string, n int64) string {
	form, ok := forms[plural.Cardinal.MatchPlural(w.tag, int(n%1_000_000), 0, 0, 0, 0)]
	if _, there := w.texts[key+"|"+form]; !ok || !there {
		form = "many"
	}
	return key + "|" + form
}

// Fault returns what a refusal means, in the language of the reader. The message of the
// fault, which says what exactly was wrong, is shown below it; see own.
func (w *Words) Fault(f *fault.Error) string {
	if f.Code == fault.Failed && f.Message != "" { // the specification has this code for documents, too
		return w.Text("fault.reason")
	}
	if text, ok := w.texts["fault."+strings.ReplaceAll(f.Code, " ", "_")]; ok {
		return text
	}
	return w.Text("fault.other")
}

// exact are the codes whose sentence says less than each of our messages, or nearly the same. Some
// of them are for several things: a PIN or a code that is wrong, new PINs that differ, a wrong
// password, a damaged document.
var exact = map[string]bool{
	fault.InvalidPIN: true, fault.AuthenticationFailed: true, fault.Failed: true,
	fault.NotFound: true, fault.KeyNotFound: true, fault.CertificateNotFound: true, fault.RequestNotFound: true,
	fault.DuplicateLogin: true, fault.DuplicateName: true, fault.DuplicatePhone: true, fault.DuplicateEmail: true,
	fault.RequestStatus: true, fault.CertificateStatus: true, fault.ContactUnconfirmed: true, fault.KInitExists: true,
	fault.MaxTokens: true, fault.MaxAttempts: true, fault.InvalidCode: true, fault.InvalidLicense: true,
	fault.InvalidFilterValue: true, fault.UnsupportedOperation: true, fault.InvalidRecipients: true,
	fault.DocumentInfoInvalid: true,
}

// Refusal returns what a refusal means, and the message that is shown below it: "" if the
// sentence says the same.
func (w *Words) Refusal(f *fault.Error) (sentence, detail string) {
	sentence = w.Fault(f)
	own := w.Own(f.Message)
	switch {
	case f.Code == fault.UserNotFound: // its messages say less
		return sentence, ""
	case (exact[f.Code] || strings.HasPrefix(f.Message, "the tokens cannot be read: ")) && Languages[1].Own(f.Message) != "":
		return asSentence(own), ""
	}
	plain := strings.TrimSuffix(strings.ToLower(sentence), ".")
	if !strings.HasPrefix(strings.ToLower(own), plain) {
		return sentence, f.Message
	}
	if len(own) > len(sentence) { // it says more
		sentence = asSentence(own)
	}
	return sentence, ""
}

// Say returns a refusal in words: what it means, and after it what exactly was wrong, each a sentence.
func (w *Words) Say(f *fault.Error) string {
	sentence, detail := w.Refusal(f)
	if detail == "" {
		return sentence
	}
	if own := w.Own(detail); own != "" {
		return sentence + " " + asSentence(own)
	}
	return sentence + " " + w.Text("fault.english") + " " + detail
}

// asSentence returns a message with a capital letter at its begin and a full stop at its end.
func asSentence(message string) string {
	first, size := utf8.DecodeRuneInString(message)
	return string(unicode.ToUpper(first)) + strings.TrimSuffix(message[size:], ".") + "."
}

// Reason returns what exactly was wrong, in a language of the pages, for commands. A message without
// a text in this language follows what its code means.
func Reason(language string, f *fault.Error) string {
	w := WordsIn(language)
	if own := w.Own(f.Message); own != "" {
		return own
	}
	if f.Message == "" {
		return w.Fault(f)
	}
	return w.Fault(f) + " " + w.Text("fault.english") + " " + f.Message
}

// digest returns the name of an algorithm of digests for people. Most have a name in every language.
func (w *Words) digest(name string) string {
	if text, ok := w.texts["digest."+name]; ok {
		return text
	}
	return name
}

// Size returns a number of bytes for people.
func (w *Words) Size(n int64) string {
	if n < 1000 {
		return w.measure(n, "B")
	}
	unit, value := "B", float64(n)
	for _, next := range []string{"KB", "MB", "GB", "TB"} {
		if value < 1000 {
			break
		}
		unit, value = next, value/1000
	}
	text := fmt.Sprintf("%.1f", value)
	if value >= 100 {
		text = fmt.Sprintf("%.0f", value)
	}
	if w.Language == "ru" {
		text = strings.Replace(text, ".", ",", 1)
	}
	return text + "\u00a0" + w.Text("unit."+unit)
}

// Span returns a length of time for people, to the millisecond, in at most two units.
func (w *Words) Span(d time.Duration) string {
	if d == 24*time.Hour { // people say 24 hours, and days for more
		return w.measure(24, "hour")
	}
	var parts []string
	for _, u := range []struct {
		unit string
		of   time.Duration
	}{{"day", 24 * time.Hour}, {"hour", time.Hour}, {"minute", time.Minute}, {"second", time.Second}, {"ms", time.Millisecond}} {
		if n := d / u.of; n > 0 {
			parts = append(parts, w.measure(int64(n), u.unit))
		}
		d %= u.of
	}
	if len(parts) == 0 {
		return w.measure(0, "ms")
	}
	return strings.Join(parts[:min(2, len(parts))], " ")
}

// measure returns a number with a unit.
func (w *Words) measure(n int64, unit string) string {
	key := "unit." + unit
	if unit == "B" { // the others are abbreviations
		key = w.form(key, n)
	}
	return w.number(n) + "\u00a0" + w.Text(key)
}

// number returns a number with its digits in groups, if it has more than four.
func (w *Words) number(n int64) string {
	text, between := strconv.FormatInt(n, 10), ","
	if w.Language == "ru" {
		between = "\u00a0"
	}
	if len(text) > 4 {
		for i := len(text) - 3; i > 0; i -= 3 {
			text = text[:i] + between + text[i:]
		}
	}
	return text
}

// ConfirmedBy says by which method a person has confirmed, with its address; "" without a confirmation.
func (w *Words) ConfirmedBy(method, label string) string {
	if method == "" {
		return ""
	}
	text := w.TextOr("confirm.way."+method, method)
	if label != "" {
		text += ": " + Visible(label)
	}
	return text
}

// Bytes is a size in bytes.
type Bytes int64

// Limit returns the value of a limit for people. A size has the unit that it has in the file of
// the settings.
func (w *Words) Limit(value any) string {
	switch v := value.(type) {
	case time.Duration:
		return w.Span(v)
	case int:
		return w.number(int64(v))
	case int64:
		return w.number(v)
	case Bytes:
		for _, u := range []struct {
			unit string
			of   Bytes
		}{{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}} {
			if v > 0 && v%u.of == 0 {
				return w.measure(int64(v/u.of), u.unit)
			}
		}
		return w.measure(int64(v), "B")
	}
	text := fmt.Sprint(value)
	if w.Language == "ru" {
		text = strings.Replace(text, ".", ",", 1)
	}
	return text
}

// When returns a time for people, in the zone of the reader, which it names; "" for the zero time.
func (w *Words) When(t time.Time) string {
	return w.timeIn(markWhen, t, func(t time.Time) string { return w.dayOf(t) + ", " + w.Clock(t) })
}

// Moment returns a time with its seconds, in digits: for logs and for lists that other programs read.
func (w *Words) Moment(t time.Time) string {
	return w.timeIn(markMoment, t, func(t time.Time) string {
		layout := "2 Jan 2006 15:04:05 "
		if w.Language == "ru" {
			layout = "02.01.2006 15:04:05 "
		}
		return t.Format(layout) + w.zoneName(t)
	})
}

func (w *Words) timeIn(form string, t time.Time, said func(t time.Time) string) string {
	switch {
	case t.IsZero():
		return ""
	case w.marks:
		return mark(form, t)
	}
	return said(t.In(w.Location()))
}

// Clock returns the time of the day for people, with the zone of the reader.
func (w *Words) Clock(t time.Time) string {
	return w.timeIn(markClock, t, func(t time.Time) string { return t.Format("15:04") + "\u00a0(" + w.zoneName(t) + ")" })
}

// Day returns the day of a time for people, in the zone of the reader.
func (w *Words) Day(t time.Time) string {
	if w.marks {
		return mark(markDay, t)
	}
	return w.dayOf(t.In(w.Location()))
}

// months are the Russian months as dates have them.
var months = [...]string{"января", "февраля", "марта", "апреля", "мая", "июня", "июля", "августа", "сентября", "октября", "ноября", "декабря"}

// dayOf names the day of a time, whose number and month stay on one line.
func (w *Words) dayOf(t time.Time) string {
	if w.Language == "ru" {
		return fmt.Sprintf("%d\u00a0%s %d", t.Day(), months[t.Month()-1], t.Year())
	}
	return t.Format("2\u00a0Jan 2006")
}

// functions are those of the templates.
func (w *Words) functions() template.FuncMap {
	return template.FuncMap{
		"t": w.Text, "audited": w.Audited, "count": w.Count, "size": w.Size, "limit": w.Limit, "when": w.When, "moment": w.Moment, "clock": w.Clock, "day": w.Day, "part": part, "own": w.Own, "icon": look.Icon, "seal": seal, "texts": w.all, "tone": tone, "person": PersonIn, "visible": Visible, "suite": w.Suite, "digest": w.digest, "list": func(values ...any) []any { return values },
		"language": func() string { return w.Language }, "languages": func() []choice {
			var list []choice
			for _, l := range Languages {
				list = append(list, choice{l.Language, l.name, l.Language == w.Language})
			}
			return list
		},
	}
}

// choice is an entry of the switch of the language.
type choice struct {
	Code, Name string
	Chosen     bool
}
