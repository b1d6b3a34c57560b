// SPDX-License-Identifier: Apache-2.0

package pages

import (
	"embed"
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
)

// The catalogues have one text in a line: "key = text". A key that ends in |one, |few or
// |many is the form of a text for a number; the text has %d in its place. Each language has a
// folder, each group of pages a file. frame.txt has what several groups use.
//
//go:embed words/*/*.txt
var catalogues embed.FS

// words are the texts of the pages in one language.
type words struct {
	language string // "en" or "ru"
	name     string // of the language, in itself
	tag      language.Tag
	texts    map[string]string

	// operations and outcomes are the identifiers in the audit log with their names, by name.
	operations, outcomes func() []option
}

// languages are the languages of the pages, those of rest.Languages.
var languages = []*words{
	readWords("en", "English", language.English),
	readWords("ru", "Русский", language.Russian),
}

func readWords(code, name string, tag language.Tag) *words {
	w := &words{language: code, name: name, tag: tag, texts: map[string]string{}}
	w.operations = sync.OnceValue(func() []option { return w.family("audited.") })
	w.outcomes = sync.OnceValue(func() []option { return w.family("outcome.") })
	files, err := fs.Glob(catalogues, "words/"+code+"/*.txt")
	if err != nil {
		panic(err)
	}
	for _, file := range files {
		data, err := catalogues.ReadFile(file)
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
	return w
}

// wordsIn returns the texts in a language of rest.Languages. Those of the empty language, which
// commands have for English, are English.
func wordsIn(code string) *words {
	if i := slices.IndexFunc(languages, func(w *words) bool { return w.language == code }); i >= 0 {
		return languages[i]
	}
	return languages[0]
}

// text returns a text with its values. A key without a text is returned itself, and a test
// finds it.
func (w *words) text(key string, values ...any) string {
	text, ok := w.texts[key]
	if !ok {
		return key
	}
	if len(values) == 0 {
		return text
	}
	return fmt.Sprintf(text, values...)
}

// done returns the words for what a form of some pages has done, "" for none.
func (w *words) done(pages, form string) string { return w.texts[pages+".done."+form] }

// known returns a text, or otherwise if there is none.
func (w *words) known(key, otherwise string) string {
	if text, ok := w.lookup(key); ok && text != "-" {
		return text
	}
	return otherwise
}

// lookup returns a text and whether there is one.
func (w *words) lookup(key string) (text string, ok bool) {
	text, ok = w.texts[key]
	return text, ok
}

// hasText reports whether the catalogues have a text. All languages have the same texts.
func hasText(key string) bool { return languages[0].texts[key] != "" }

// forms are the names of plural forms in the catalogues.
var forms = map[plural.Form]string{plural.One: "one", plural.Few: "few"}

// count returns the form of a text for a number.
func (w *words) count(key string, n int) string { return w.text(w.form(key, int64(n)), n) }

// form returns the key of the form of a text for a number.
func (w *words) form(key string, n int64) string {
	form, ok := forms[plural.Cardinal.MatchPlural(w.tag, int(n%1_000_000), 0, 0, 0, 0)]
	if _, there := w.texts[key+"|"+form]; !ok || !there {
		form = "many"
	}
	return key + "|" + form
}

// fault returns what a refusal means, in the language of the reader. The message of the
// fault, which says what exactly was wrong, is shown below it; see own.
func (w *words) fault(f *fault.Error) string {
	if f.Code == fault.Failed && f.Message != "" { // the specification has this code for documents, too
		return w.text("fault.reason")
	}
	if text, ok := w.texts["fault."+strings.ReplaceAll(f.Code, " ", "_")]; ok {
		return text
	}
	return w.text("fault.other")
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
	fault.InvalidFilterValue: true, fault.UnsupportedOperation: true,
}

// refusal returns what a refusal means, and the message that is shown below it: "" if the
// sentence says the same.
func (w *words) refusal(f *fault.Error) (sentence, detail string) {
	sentence = w.fault(f)
	own := w.own(f.Message)
	switch {
	case f.Code == fault.UserNotFound: // its messages say less
		return sentence, ""
	case (exact[f.Code] || strings.HasPrefix(f.Message, "the tokens cannot be read: ")) && languages[1].own(f.Message) != "":
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

// asSentence returns a message with a capital letter at its begin and a full stop at its end.
func asSentence(message string) string {
	first, size := utf8.DecodeRuneInString(message)
	return string(unicode.ToUpper(first)) + strings.TrimSuffix(message[size:], ".") + "."
}

// Sentence returns what a refusal means, in a language of the pages, for commands.
func Sentence(code string, f *fault.Error) string { return wordsIn(code).fault(f) }

// Reason returns what exactly was wrong, in a language of the pages, for commands. A message without
// a text in this language follows what its code means.
func Reason(language string, f *fault.Error) string {
	w := wordsIn(language)
	if own := w.own(f.Message); own != "" {
		return own
	}
	if f.Message == "" {
		return w.fault(f)
	}
	return w.fault(f) + " " + w.text("fault.english") + " " + f.Message
}

// Finding returns what a finding means by its code, or else by its indication of EN 319 102-1, in
// a language of the pages, for commands. It returns "" for a note without a known code.
func Finding(language, code, indication string) string {
	w := wordsIn(language)
	if text, ok := w.texts["code."+code]; ok || indication == "" {
		return text
	}
	return w.text("finding." + indication)
}

// digest returns the name of an algorithm of digests for people. Most have a name in every language.
func (w *words) digest(name string) string {
	if text, ok := w.texts["digest."+name]; ok {
		return text
	}
	return name
}

// size returns a number of bytes for people.
func (w *words) size(n int64) string {
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
	if w.language == "ru" {
		text = strings.Replace(text, ".", ",", 1)
	}
	return text + "\u00a0" + w.text("unit."+unit)
}

// span returns a length of time for people, to the millisecond, in at most two units.
func (w *words) span(d time.Duration) string {
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
func (w *words) measure(n int64, unit string) string {
	key := "unit." + unit
	if unit == "B" { // the others are abbreviations
		key = w.form(key, n)
	}
	return w.number(n) + "\u00a0" + w.text(key)
}

// number returns a number with its digits in groups, if it has more than four.
func (w *words) number(n int64) string {
	text, between := strconv.FormatInt(n, 10), ","
	if w.language == "ru" {
		between = "\u00a0"
	}
	if len(text) > 4 {
		for i := len(text) - 3; i > 0; i -= 3 {
			text = text[:i] + between + text[i:]
		}
	}
	return text
}

// Bytes is a size in bytes.
type Bytes int64

// limit returns the value of a limit for people. A size has the unit that it has in the file of
// the settings.
func (w *words) limit(value any) string {
	switch v := value.(type) {
	case time.Duration:
		return w.span(v)
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
	if w.language == "ru" {
		text = strings.Replace(text, ".", ",", 1)
	}
	return text
}

// when returns a time for people, in UTC, "" for the zero time.
func (w *words) when(t time.Time) string {
	switch {
	case t.IsZero():
		return ""
	case w.language == "ru":
		return t.UTC().Format("02.01.2006 15:04 UTC")
	}
	return t.UTC().Format("2 Jan 2006 15:04 UTC")
}

// moment returns a time with its seconds for people.
func (w *words) moment(t time.Time) string {
	return strings.Replace(w.when(t), " UTC", t.UTC().Format(":05")+" UTC", 1)
}

// day returns the day of a time for people.
func (w *words) day(t time.Time) string {
	if w.language == "ru" {
		return t.UTC().Format("02.01.2006")
	}
	return t.UTC().Format("2 Jan 2006")
}

// functions are those of the templates.
func (w *words) functions() template.FuncMap {
	return template.FuncMap{
		"t": w.text, "rows": w.rows, "cells": w.cells, "links": w.links, "audited": w.audited, "count": w.count, "size": w.size, "limit": w.limit, "when": w.when, "day": w.day, "part": part, "own": w.own, "person": personIn, "visible": visible, "suite": w.suite, "digest": w.digest, "list": func(values ...any) []any { return values },
		"language": func() string { return w.language }, "languages": func() []choice {
			var list []choice
			for _, l := range languages {
				list = append(list, choice{l.language, l.name, l == w})
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
