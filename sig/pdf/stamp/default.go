// SPDX-License-Identifier: Apache-2.0

package stamp

import (
	"slices"
	"strings"
	"time"
)

// The default look of a stamp.
var (
	ink    = rgb{27, 58, 140}  // frame and title
	dark   = rgb{16, 24, 48}   // values
	pale   = rgb{92, 104, 140} // labels
	frames = box{radius: 4, weight: 1, border: ink, margin: 7}
)

// The default size of a stamp, in points: the width is fixed, the height follows from the
// text.
const (
	widthText = 240
	widthLogo = 270
)

// The distance between lines as a multiple of the font size.
const (
	leadingDefault = 1.3
	leadingContent = 1.5 // clients of the interface compute their rectangles for this
)

// growth is the maximum factor by which the default text grows in a large stamp.
const growth = 2

// row is a line of the default text. A needed one is drawn even in the smallest stamp.
type row struct {
	label, value string
	needed       bool
}

// defaultText is the text of a stamp without Content: the words and data that GOST R
// 7.0.97-2016, 5.23 requires of the mark of an electronic signature and, if there is
// space, other data of the request.
func defaultText(r *Request) content {
	validity := ""
	switch from, to := day(r.NotBefore), day(r.NotAfter); {
	case from != "" && to != "":
		validity = "с " + from + " по " + to
	case from != "":
		validity = "с " + from
	case to != "":
		validity = "по " + to
	}
	moment := ""
	if !r.Time.IsZero() {
		moment = r.Time.Format("02.01.2006 15:04:05") + zone(r.Time)
	}
	all := []row{
		{"Сертификат:", r.Serial, true},
		{"Владелец:", r.Signer, true},
		{"Издатель:", r.Issuer, false},
		{"Действителен:", validity, true},
		{"Подписан:", moment, false},
		{"Причина:", r.Reason, false},
		{"Место:", r.Location, false},
	}
	all = slices.DeleteFunc(all, func(r row) bool { return strings.TrimSpace(r.value) == "" })
	needed := slices.DeleteFunc(slices.Clone(all), func(r row) bool { return !r.needed })
	return content{
		variants: [][]paragraph{columns(all), columns(needed), running(needed)},
		leading:  leadingDefault,
		growth:   growth,
		middle:   true,
	}
}

func title() paragraph {
	return paragraph{
		text:    []rune("ДОКУМЕНТ ПОДПИСАН ЭЛЕКТРОННОЙ ПОДПИСЬЮ"),
		style:   style{face: faceOf(sans, true, false), size: 9, colour: ink},
		centred: true,
	}
}

// columns lays rows out as a table: labels on the left, values to the right of them.
func columns(rows []row) []paragraph {
	face := faceOf(sans, false, false)
	label, value := style{face: face, size: 7, colour: pale}, style{face: face, size: 7, colour: dark}
	tab := 0.0
	for _, r := range rows {
		tab = max(tab, measure([]rune(r.label), label)+6)
	}
	list := []paragraph{title()}
	for i, r := range rows {
		p := paragraph{label: []rune(r.label), labelStyle: label, text: oneLine(r.value, face), style: value, tab: tab}
		if i == 0 {
			p.above = 3
		}
		list = append(list, p)
	}
	return list
}

// running lays rows out as one text.
func running(rows []row) []paragraph {
	value := style{face: faceOf(sans, false, false), size: 7, colour: dark}
	var all []string
	for _, r := range rows {
		all = append(all, r.label+" "+r.value)
	}
	list := []paragraph{title()}
	if len(all) > 0 {
		list = append(list, paragraph{text: oneLine(strings.Join(all, "; "), value.face), style: value})
	}
	return list
}

// oneLine returns a value of the certificate or the request as one line.
func oneLine(s string, f *face) []rune {
	var line []rune
	for i, part := range clean(bounded(s), f) {
		if i > 0 {
			line = append(line, ' ')
		}
		line = append(line, part...)
	}
	return line
}

// bounded truncates a text from the certificate or the request to the limit of a stamp.
// The layout truncates it visibly long before.
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
