// SPDX-License-Identifier: Apache-2.0

// Package print makes print forms: a password on a sheet of paper, as HTML, XML, PDF or a Word
// document, all from one template. Begin with New, then call Printer.Print. The package does not
// print: the caller sends the form to the user.
package print

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"text/template"
	"time"

	"tamga/internal/domain/fault"
	"tamga/internal/domain/notify"
	"tamga/internal/domain/signin"
)

// Printer makes print forms. The zero Printer prints in Russian with the built-in template. It
// implements signin.Printer.
type Printer struct {
	// Zone is the time zone of the date; nil: UTC.
	Zone            *time.Location
	language, title string
	blocks          []block
}

var _ signin.Printer = Printer{}

//go:embed templates/*.txt
var builtin embed.FS

// New returns a printer for a language, "ru" or "en", and an installation with the name title. A
// file password-form.LANGUAGE.txt in own replaces the built-in template. own may be nil.
//
// A template is a list of lines: "title TEXT", "text TEXT", "field NAME LABEL = VALUE", "secret
// NAME LABEL = VALUE". NAME is for programs that read the XML form. TEXT and VALUE may contain
// {{.Title}}, {{.DisplayName}}, {{.Login}}, {{.Password}} and {{.Date}}. Their values are always
// plain text and are never read as markup.
func New(language, title string, own fs.FS) (Printer, error) {
	file := "password-form." + language + ".txt"
	text, err := builtin.ReadFile("templates/" + file)
	if err != nil {
		return Printer{}, fmt.Errorf("print: language %q; want ru or en", language)
	}
	if own != nil {
		switch replaced, err := fs.ReadFile(own, file); {
		case err == nil:
			text = replaced
		case !errors.Is(err, fs.ErrNotExist):
			return Printer{}, fmt.Errorf("print: template %s: %w", file, err)
		}
	}
	blocks, err := parse(file, string(text))
	return Printer{language: language, title: title, blocks: blocks}, err
}

// values are the values that a template may use.
type values struct{ Title, DisplayName, Login, Password, Date string }

// block is a line of a template.
type block struct {
	kind        string // "title", "text", "field", "secret"
	name, label string // of a field or secret
	text        *template.Template
}

// filled is a block with its values.
type filled struct {
	Kind, Name, Label, Text string
}

func parse(file, text string) ([]block, error) {
	var blocks []block
	for i, line := range strings.Split(text, "\n") {
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		wrong := func(why string) error { return fmt.Errorf("print: template %s, line %d: %s", file, i+1, why) }
		kind, rest, _ := strings.Cut(line, " ")
		b := block{kind: kind}
		switch kind {
		case "title", "text":
		case "field", "secret":
			var ok bool
			b.name, rest, _ = strings.Cut(strings.TrimSpace(rest), " ")
			if b.label, rest, ok = strings.Cut(rest, "="); !ok || !isName(b.name) {
				return nil, wrong(kind + ": want NAME LABEL = VALUE with NAME in lower-case letters")
			}
			b.label = strings.TrimSpace(b.label)
		default:
			return nil, wrong("a line must begin with title, text, field or secret")
		}
		var err error
		if b.text, err = template.New(file).Parse(strings.TrimSpace(rest)); err == nil {
			_, err = b.fill(values{})
		}
		if err != nil {
			return nil, wrong("want text with {{.Title}}, {{.DisplayName}}, {{.Login}}, {{.Password}} or {{.Date}}: " + err.Error())
		}
		blocks = append(blocks, b)
	}
	if len(blocks) == 0 || blocks[0].kind != "title" {
		return nil, fmt.Errorf("print: template %s: the first line must be a title", file)
	}
	return blocks, nil
}

func isName(s string) bool {
	return s != "" && strings.Trim(s, "abcdefghijklmnopqrstuvwxyz") == ""
}

func (b block) fill(v values) (filled, error) {
	var text strings.Builder
	err := b.text.Execute(&text, v)
	return filled{b.kind, b.name, b.label, text.String()}, err
}

// formats has the renderer, the file name and the media type of each format.
var formats = map[signin.PrintFormat]struct {
	name, contentType string
	render            func(p *page) ([]byte, error)
}{
	signin.HTML: {"password.html", "text/html; charset=utf-8", renderHTML},
	signin.XML:  {"password.xml", "application/xml; charset=utf-8", renderXML},
	signin.PDF:  {"password.pdf", "application/pdf", renderPDF},
	// The media type is that of the example in the specification.
	signin.Word: {"password.docx", "application/msword", renderWord},
}

// page holds a form to be rendered.
type page struct {
	Language string
	Title    string
	Blocks   []filled
	form     signin.PasswordForm
}

// date returns a time in the zone of the installation, which it names.
func (p Printer) date(at time.Time) string {
	zone := p.Zone
	if zone == nil {
		zone = time.UTC
	}
	at = at.In(zone)
	return at.Format("02.01.2006 15:04 ") + notify.ZoneName(at, p.language)
}

// Print implements signin.Printer. Faults: invalid_parameters for an unknown format; wrong_operation
// for a PDF with a login that its fonts cannot show.
func (p Printer) Print(_ context.Context, format signin.PrintFormat, form signin.PasswordForm) (signin.PrintedForm, error) {
	f, ok := formats[format]
	if !ok {
		return signin.PrintedForm{}, fault.New(fault.InvalidParameters, "format: unknown; want Html, Xml, Pdf or Word")
	}
	if p.blocks == nil {
		var err error
		if p, err = New("ru", "Tamga", nil); err != nil {
			return signin.PrintedForm{}, err
		}
	}
	if form.Password != notify.OneLine(form.Password) {
		return signin.PrintedForm{}, errors.New("print: the password has characters that cannot be printed")
	}
	v := values{
		Title: notify.OneLine(p.title), DisplayName: notify.OneLine(form.DisplayName), Login: notify.OneLine(form.Login),
		Password: form.Password, Date: p.date(form.At),
	}
	out := &page{Language: p.language, form: form}
	for _, b := range p.blocks {
		line, err := b.fill(v)
		if err != nil {
			return signin.PrintedForm{}, fmt.Errorf("print: %w", err)
		}
		if line.Kind == "title" && out.Title == "" {
			out.Title = line.Text
		}
		out.Blocks = append(out.Blocks, line)
	}
	content, err := f.render(out)
	if err != nil {
		return signin.PrintedForm{}, err
	}
	return signin.PrintedForm{Name: f.name, ContentType: f.contentType, Content: content}, nil
}
