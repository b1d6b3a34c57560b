// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"cmp"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"text/template"
	"time"
	"unicode"
	"unicode/utf8"
)

// The texts. Each is a file NAME.LANG.txt of text/template with three parts:
// "subject" and "email" for mail, "sms" for SMS.
const (
	TemplateContactCode = "contact-code" // Code, Minutes, Title
	TemplatePassword    = "password"     // Login, Password, Title
	TemplateEvent       = "event"        // Description, Detail, Time, Title
	TemplateFactor      = "factor"       // Description, Factor, Time, Title
	TemplateDeviceCode  = "device-code"  // Code, Minutes, Title
	TemplateDeviceQR    = "device-qr"    // Expires, Title; a picture goes with it
	TemplateDeviceWake  = "device-wake"  // Title
	// Of browsers: an operation waits, and a message of trial.
	TemplateBrowserWake  = "browser-wake"  // Title
	TemplateBrowserTrial = "browser-trial" // Title
	// Action, Documents and Name ("" without documents), Group, Code, Minutes, Title
	TemplateConfirmationCode = "confirmation-code"
)

var templateNames = []string{TemplateContactCode, TemplatePassword, TemplateEvent, TemplateFactor, TemplateDeviceCode, TemplateDeviceQR, TemplateDeviceWake, TemplateBrowserWake, TemplateBrowserTrial, TemplateConfirmationCode}

// languages of every text.
var languages = map[string]bool{"ru": true, "en": true}

// TimeLayout is how values have times. In a Russian text, a time has the form that is usual there.
const TimeLayout = "2006-01-02 15:04 MST"

// valueWhen is the value with a time that belongs to Detail.
const valueWhen = "When"

// maxValue is the most characters of a value in a text.
const maxValue = 300

//go:embed templates/*.txt
var builtin embed.FS

// Templates are the texts of messages. Values are never parsed as templates. They are
// inserted without control characters.
type Templates struct {
	// Zone is the time zone of times in texts; nil: UTC. It is set before the first use.
	Zone  *time.Location
	title string
	texts map[string]*template.Template // by "NAME.LANG"
	own   map[string]bool               // those that a file of the installation replaces
}

// NewTemplates parses the texts. Files in own, which may be nil, replace the texts of the
// program with the same names. title is the name of the installation in the texts. Every
// text is executed once, so an invalid file is reported here.
func NewTemplates(title string, own fs.FS) (*Templates, error) {
	t := &Templates{title: title, texts: map[string]*template.Template{}, own: map[string]bool{}}
	files, err := fs.Sub(builtin, "templates")
	if err != nil {
		return nil, err
	}
	for _, name := range templateNames {
		for lang := range languages {
			file := name + "." + lang + ".txt"
			text, err := fs.ReadFile(files, file)
			if err != nil {
				return nil, fmt.Errorf("notify: template %s: %w", file, err)
			}
			if own != nil {
				switch replaced, err := fs.ReadFile(own, file); {
				case err == nil:
					text, t.own[name+"."+lang] = replaced, true
				case !errors.Is(err, fs.ErrNotExist):
					return nil, fmt.Errorf("notify: template %s: %w", file, err)
				}
			}
			parsed, err := template.New(file).Option("missingkey=error").Parse(string(text))
			if err != nil {
				return nil, fmt.Errorf("notify: template %s: %w", file, err)
			}
			t.texts[name+"."+lang] = parsed
			for _, info := range ForUsers() {
				if _, err := t.render(name, lang, info.Channel, nil, sample[name][lang]); err != nil {
					return nil, err
				}
			}
		}
	}
	return t, nil
}

// sample holds all values that templates may name, for the check in NewTemplates and for
// Preview. Values that are words are there by language.
var sample = map[string]map[string]map[string]string{
	TemplateContactCode:  inAll(map[string]string{"Code": "000000", "Minutes": "5"}),
	TemplatePassword:     inAll(map[string]string{"Login": "ivanov", "Password": "********"}),
	TemplateEvent:        inAll(map[string]string{"Description": "description", "Detail": "detail", "Time": "time"}),
	TemplateFactor:       inAll(map[string]string{"Description": "description", "Factor": "factor", "Time": "time"}),
	TemplateDeviceCode:   inAll(map[string]string{"Code": "000000", "Minutes": "5"}),
	TemplateDeviceQR:     inAll(map[string]string{"Expires": "2026-01-31 12:00 UTC"}),
	TemplateDeviceWake:   inAll(map[string]string{}),
	TemplateBrowserWake:  inAll(map[string]string{}),
	TemplateBrowserTrial: inAll(map[string]string{}),
	TemplateConfirmationCode: {
		"ru": {"Action": "Подписание документов", "Documents": "2", "Name": "Договор.pdf", "Group": "01234567", "Code": "000000", "Minutes": "5"},
		"en": {"Action": "Signing documents", "Documents": "2", "Name": "Contract.pdf", "Group": "01234567", "Code": "000000", "Minutes": "5"},
	},
}

// inAll returns values that are the same in every language.
func inAll(values map[string]string) map[string]map[string]string {
	return map[string]map[string]string{"ru": values, "en": values}
}

// content is the sealed part of a message.
type content struct {
	Subject string `json:"subject"`
	Text    string `json:"text"`
	Picture []byte `json:"picture,omitempty"`
	Link    string `json:"link,omitempty"`

	Notice *Notice `json:"notice,omitempty"`
	Form   string  `json:"form,omitempty"` // of a body that is opened when it is sent
}

// render returns the text of a message, with times in a zone; nil: that of the installation.
func (t *Templates) render(name, lang string, channel Channel, zone *time.Location, data map[string]string) (content, error) {
	text := t.texts[name+"."+lang]
	if text == nil {
		return content{}, fmt.Errorf("notify: there is no template %q in language %q", name, lang)
	}
	values := map[string]string{"Title": OneLine(t.title)}
	for key, value := range data {
		if at, err := time.Parse(TimeLayout, value); err == nil {
			value = t.moment(at, lang, zone)
		}
		values[key] = OneLine(value)
	}
	if when := values[valueWhen]; when != "" {
		values["Detail"] = OneLine(values["Detail"] + ", " + when)
	}
	part := func(part string) (string, error) {
		var b strings.Builder
		if err := text.ExecuteTemplate(&b, part, values); err != nil {
			return "", fmt.Errorf("notify: template %s.%s: part %q cannot be filled in: want the values that the manual lists", name, lang, part)
		}
		return strings.TrimSpace(b.String()), nil
	}
	var c content
	var err error
	info := channel.Info()
	if info.Subject {
		if c.Subject, err = part("subject"); err != nil {
			return content{}, err
		}
		c.Subject = OneLine(c.Subject)
	}
	c.Text, err = part(cmp.Or(info.Part, "sms"))
	return c, err
}

// moment returns a time in a zone, which it names. nil is the zone of the installation.
func (t *Templates) moment(at time.Time, lang string, zone *time.Location) string {
	if zone = cmp.Or(zone, t.Zone); zone != nil {
		at = at.In(zone)
	}
	layout := "2006-01-02 15:04 "
	if lang == "ru" {
		layout = "02.01.2006 15:04 "
	}
	return at.Format(layout) + ZoneName(at, lang)
}

// ZoneName names the zone of a time as people know it.
func ZoneName(t time.Time, lang string) string {
	name, offset := t.Zone()
	switch {
	case offset == 0 && (t.Location() == time.UTC || name == "UTC"):
		return "UTC"
	case name == "MSK" && lang == "ru":
		return "МСК"
	case strings.Trim(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") == "":
		return name
	}
	sign, minutes := "+", offset/60
	if minutes < 0 {
		sign, minutes = "-", -minutes
	}
	if minutes%60 == 0 {
		return fmt.Sprintf("UTC%s%d", sign, minutes/60)
	}
	return fmt.Sprintf("UTC%s%d:%02d", sign, minutes/60, minutes%60)
}

// OneLine makes a value from outside safe for a line of a message, a form or a header. It
// replaces line breaks, control, invisible and bidi-control characters and noncharacters
// by spaces, trims the result and truncates it to 300 characters, with an ellipsis. A
// second call changes nothing.
func OneLine(s string) string {
	var b strings.Builder
	n := 0
	for _, r := range s {
		if n++; n > maxValue {
			b.WriteRune('…')
			break
		}
		switch {
		case r == utf8.RuneError, unicode.IsControl(r), unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Co):
			b.WriteByte(' ')
		case unicode.Is(unicode.Noncharacter_Code_Point, r):
			b.WriteByte(' ') // XML cannot contain some of them
		default:
			b.WriteRune(r)
		}
	}
	return strings.TrimSpace(b.String())
}
