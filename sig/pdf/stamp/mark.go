// SPDX-License-Identifier: Apache-2.0

package stamp

import (
	"slices"
	"strings"
	"time"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// The look of a mark.
var (
	ink   = rgb{20, 65, 139} // frame and title
	dark  = rgb{15, 23, 40}  // values
	pale  = rgb{51, 65, 92}  // labels
	white = rgb{255, 255, 255}
)

// leadingContent is the distance between lines of Content as a multiple of the font size. Clients of the interface
// compute their rectangles for it.
const leadingContent = 1.5

// millimetre is the length of a millimetre, in points.
const millimetre = 72 / 25.4

// form is one of the two forms of a mark. Lengths are in millimetres of a mark of its ordinary size. A larger or
// smaller one has the same proportions.
type form struct {
	width, height float64
	weight        float64 // of the frame
	radius        float64
	side          float64 // from the sides to the text
	top           float64 // of the rows, from the top
	bottom        float64 // below the rows
	titleSize     float64
	title         []string  // its lines
	titleAt       []float64 // their base lines
	rule          float64   // of the line below the title, from the top; 0: none
	logo          float64   // side of the square of the logo
	logoAt        float64   // from the top
	beside        float64   // from the left to text beside the logo
	size          float64   // of the rows
	leading       float64
	tab           float64 // of the values
}

// The forms of a mark: the ordinary one, and one for a narrow strip.
var (
	full = &form{
		width: 70, height: 25, weight: 0.5, radius: 1.8, side: 2.5, top: 10.75, bottom: 1.15,
		titleSize: 2.55, title: []string{"ДОКУМЕНТ ПОДПИСАН", "ЭЛЕКТРОННОЙ ПОДПИСЬЮ"}, titleAt: []float64{4.75, 7.95}, rule: 10.2,
		logo: 7, logoAt: 1.8, beside: 11.5, size: 2.1, leading: 1.476, tab: 15.5,
	}
	compact = &form{
		width: 60, height: 12, weight: 0.5, radius: 1.4, side: 2, top: 4.4, bottom: 1,
		titleSize: 2, title: []string{"ДОКУМЕНТ ПОДПИСАН ЭЛЕКТРОННОЙ ПОДПИСЬЮ"}, titleAt: []float64{3.7},
		logo: 8, logoAt: 2, beside: 11.5, size: 2, leading: 1.6,
	}
)

// narrow is the ratio of height to width below which a mark has its compact form, unless the request has one.
const narrow = 0.27

// mark is the mark of an electronic signature as GOST R 7.0.97 wants it: the words "Документ подписан электронной
// подписью", the number of the certificate, its owner and its validity. What else the request has is in a full mark
// if there is space.
type mark struct {
	*form
	variants [][]paragraph // of the rows, the fullest first; the last has only what a mark must have
}

// formOf returns the form of a mark of this size.
func (s *settings) formOf(width, height float64) *form {
	switch {
	case s.form != nil:
		return s.form
	case height < narrow*width:
		return compact
	}
	return full
}

// row is a line of a mark. A needed one is in every mark.
type row struct {
	label, value string
	needed, bold bool
}

// markOf returns the mark of a request.
func markOf(r *Request, s *settings, f *form) *mark {
	from, to := day(r.NotBefore), day(r.NotAfter)
	if f == compact {
		dates := from
		if to != "" {
			dates += "–" + to
		}
		m := &mark{form: f}
		owner := paragraph{text: oneLine(Explained(r.Signer, "")), style: f.style(true, dark), aside: oneLine(dates), asideStyle: f.style(false, dark)}
		certificate := paragraph{label: []rune("Сертификат "), text: oneLine(r.Serial), labelStyle: f.style(false, pale), style: f.style(false, dark)}
		certificate.tab = measure(certificate.label, certificate.labelStyle)
		list := []paragraph{owner}
		if len(certificate.text) > 0 {
			list = append(list, certificate)
		}
		m.variants = [][]paragraph{list}
		return m
	}
	validity := ""
	switch {
	case from != "" && to != "":
		validity = "с " + from + " по " + to
	case from != "":
		validity = "с " + from
	case to != "":
		validity = "по " + to
	}
	moment, position := "", ""
	if !r.Time.IsZero() && !s.untimed {
		moment = When(r.Time)
	}
	if s.position {
		position = r.Position
	}
	all := []row{
		{"Сертификат:", r.Serial, true, false},
		{"Владелец:", r.Signer, true, true},
		{"Должность:", position, false, false},
		{"Действителен:", validity, true, false},
		{"Подписано:", moment, false, false},
		{"Причина:", r.Reason, false, false},
		{"Место:", r.Location, false, false},
	}
	all = slices.DeleteFunc(all, func(r row) bool { return strings.TrimSpace(r.value) == "" })
	m := &mark{form: f}
	for {
		m.variants = append(m.variants, f.rows(all))
		last := -1
		for i, r := range all {
			if !r.needed {
				last = i
			}
		}
		if last < 0 {
			return m
		}
		all = slices.Delete(slices.Clone(all), last, last+1)
	}
}

func (f *form) style(bold bool, colour rgb) style {
	return style{face: faceOf(sans, bold, false), size: f.size, colour: colour, small: true}
}

// rows lays rows out as a table: labels on the left, values to the right of them.
func (f *form) rows(rows []row) []paragraph {
	list := make([]paragraph, 0, len(rows))
	for _, r := range rows {
		list = append(list, paragraph{
			label: []rune(r.label), labelStyle: f.style(false, pale), text: oneLine(Explained(r.value, "")), style: f.style(r.bold, dark), tab: f.tab,
		})
	}
	return list
}

// How a mark makes space for a long name, in this order: lines move together, rows that a mark need not have are
// left out, the text shrinks, words are broken.
const (
	closeLeading  = 1.28
	closest       = 1.12
	smallestWhole = 0.5 // of the size: below, words are broken
	smallest      = 0.1
)

// arrange lays the rows of a mark out. It never leaves out a letter of what a mark must have.
func (m *mark) arrange(width, height float64) layout {
	b := fitting{width, height + 0.01, m.leading}
	for _, v := range m.variants {
		if l, ok := b.try(v, 1, closeLeading, true); ok {
			return b.search(l, closeLeading, m.leading, func(leading float64) (layout, bool) { return b.try(v, 1, leading, true) })
		}
	}
	needed := m.variants[len(m.variants)-1]
	b.leading = closeLeading
	if l, ok := b.shrinkTo(needed, smallestWhole, closest, true); ok {
		return l
	}
	l, _ := b.shrinkTo(needed, smallest, closest, false)
	return l
}

// scene lays a mark out in a frame of the given size.
func (m *mark) scene(width, height float64, frame box, pic *graphic) *scene {
	u := min(width/m.width, height/m.height) // points in a millimetre of the form
	s := &scene{width: width, height: height}
	s.frame(rect{0, 0, width, height}, frame)
	at := func(x, fromTop float64) (float64, float64) { return x * u, height - fromTop*u }
	left, right := m.side, width/u-m.side
	titleAt, begin := left, left
	if pic != nil {
		w, h := pic.size()
		scale := min(m.logo/w, m.logo/h)
		w, h = w*scale, h*scale
		x, y := at(left+(m.logo-w)/2, m.logoAt+(m.logo+h)/2)
		s.image(pic, rect{x, y, x + w*u, y + h*u}, rect{0, 0, width, height})
		if titleAt = m.beside; m.rule == 0 {
			begin = titleAt
		}
	}
	title := style{face: faceOf(sans, true, false), size: m.titleSize * u, colour: ink}
	for _, text := range m.title {
		title.size *= min(1, (right-titleAt)*u/measure([]rune(text), title))
	}
	for i, text := range m.title {
		x, y := at(titleAt, m.titleAt[i])
		if pic == nil && m.rule > 0 {
			x = (width - measure([]rune(text), title)) / 2
		}
		s.text = append(s.text, piece{x: x, y: y, text: []rune(text), style: title})
	}
	if m.rule > 0 {
		x0, y := at(left, m.rule)
		x1, _ := at(right, m.rule)
		s.rules = append(s.rules, rule{x0: x0, x1: x1, y: y, weight: 0.2 * u, colour: ink})
	}
	bottom := height/u - m.bottom
	l := m.arrange(right-begin, bottom-m.top)
	space := max(0, bottom-m.top-l.height) / 2
	if m.rule > 0 {
		space = min(space, 0.1*m.size) // a large mark has its rows below the title
	}
	for _, ln := range l.lines {
		for _, p := range ln.pieces {
			x, y := at(begin+p.x, m.top+space+ln.base)
			p.x, p.y, p.style.size = x, y, p.style.size*u
			s.text = append(s.text, p)
		}
	}
	return s
}

// oneLine returns a value of the certificate or the request as one line: composed characters, and none that change
// the direction of writing or have no shape. Characters that the face lacks stay: they are drawn as a box, and can
// still be searched and copied.
func oneLine(s string) []rune {
	var line []rune
	for _, r := range norm.NFC.String(strings.ToValidUTF8(bounded(s), "\uFFFD")) {
		switch {
		case unicode.IsSpace(r):
			r = ' '
		case unicode.In(r, unicode.Cc, unicode.Cf):
			continue
		}
		if r != ' ' || len(line) > 0 && line[len(line)-1] != ' ' {
			line = append(line, r)
		}
	}
	return trim(line)
}

// bounded truncates a text that no certificate has, since its letters could not be seen in a mark.
func bounded(s string) string {
	const most = 2000
	n := 0
	for i := range s {
		if n++; n > most {
			return s[:i] + "…"
		}
	}
	return s
}

func day(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.Format("02.01.2006")
}

// When returns a time as marks have it, with its time zone.
func When(t time.Time) string { return t.Format("02.01.2006 15:04") + zone(t) }

// zone returns the time zone of a time as text.
func zone(t time.Time) string {
	name, offset := t.Zone()
	switch {
	case offset == 0:
		return " UTC"
	case name == "MSK":
		return " (МСК)"
	}
	return t.Format(" (UTC-07:00)")
}
