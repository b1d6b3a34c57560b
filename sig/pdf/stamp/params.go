// SPDX-License-Identifier: Apache-2.0

package stamp

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

// The parameters, as errors name them.
const (
	paramTemplate   = "PdfSignatureTemplateId"
	paramAppearance = "PdfSignatureAppearance"
)

// The templates of PdfSignatureTemplateId.
const (
	templateText  = 1
	templateLogo  = 2
	templateImage = 3
)

// Limits for a request. They are far beyond the needs of a stamp, and low enough that
// every request is fast.
const (
	maxJSON     = 12 << 20 // bytes; nearly all of it is the image in Base64
	maxContent  = 200      // entries of Content
	maxText     = 20000    // characters of all entries together
	maxFontSize = 500
	maxBorder   = 100
	maxLength   = 100000 // coordinates and margins; a page has at most 14400 units
	maxScale    = 100000
)

// settings is the parsed PdfSignatureAppearance.
type settings struct {
	template int       // 0: not given
	page     int       // 1-based; 0: not given
	content  []textual // nil: not given, the default text is drawn
	icon     *picture
	back     *picture
	box      box

	form     *form // of a mark; nil: its size decides
	untimed  bool  // a mark without the time
	position bool  // a mark with the position of its owner

	auto   bool   // the place is searched for
	beside string // beside this word, if it is there
}

// textual is one entry of Content.
type textual struct {
	text   string
	margin float64 // indentation from the left
	style  style
}

// picture is Icon or Background. Its image is decoded only when a template draws it.
type picture struct {
	path   string
	image  string
	placed bool // a position or a scale was given
	x, y   float64
	scale  float64 // per cent: at 100 a pixel is a point
}

// box is Rect.
type box struct {
	corners    *[4]float64 // nil: not given
	radius     float64
	weight     float64
	border     rgb
	background *rgb // nil: transparent
	margin     float64
	styled     bool // any key except the corners was given
	spaced     bool // the margin was given
}

// rgb is a colour, each part from 0 to 255.
type rgb [3]float64

// Default values of absent keys.
const (
	defaultFontSize = 8
	defaultMargin   = 5
	defaultWeight   = 1
	defaultScale    = 100
)

// readSettings parses PdfSignatureAppearance. Clients of this interface vary, so keys
// match in any letter case, unknown keys are ignored, null is the same as an absent key,
// and a number may be a string.
func readSettings(data []byte) (*settings, *ParamError) {
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf")) // some programs write a byte order mark before JSON
	switch {
	case len(data) > maxJSON:
		return nil, &ParamError{paramAppearance, fmt.Sprintf("is %d bytes long; at most %d are accepted", len(data), maxJSON)}
	case !utf8.Valid(data):
		return nil, &ParamError{paramAppearance, "is not UTF-8 text"}
	case !json.Valid(data):
		return nil, &ParamError{paramAppearance, "is not JSON"}
	}
	r := &jsonReader{}
	root := r.object("", data)
	s := &settings{
		template: r.integer(root, "TemplateId", 0, templateText, templateImage),
		page:     r.integer(root, "Page", 0, 1, math.MaxInt32),
		icon:     r.picture(root, "Icon"),
		back:     r.picture(root, "Background"),
		box:      r.box(root, "Rect"),
		content:  r.content(root, "Content"),
	}
	s.form = r.form(root, "Mark")
	s.untimed, s.position = !r.bool(root, "Time", true), r.bool(root, "Position", false)
	r.place(root, s)
	if r.fault != nil {
		return nil, r.fault
	}
	return s, nil
}

// maxWord is the length of the word that a stamp is placed beside, in characters.
const maxWord = 100

// place reads Place and Beside, which have the place of the stamp searched for.
func (r *jsonReader) place(n node, s *settings) {
	switch v := strings.ToLower(strings.TrimSpace(r.text(n, "Place"))); v {
	case "":
	case "auto":
		s.auto = true
	default:
		r.fail(n.at("Place"), "is %s; auto expected, or a place in Rect", short(v))
	}
	s.beside = strings.TrimSpace(r.text(n, "Beside"))
	if count := utf8.RuneCountInString(s.beside); count > maxWord {
		r.fail(n.at("Beside"), "has %d characters; at most %d are accepted", count, maxWord)
	}
	s.auto = s.auto || s.beside != ""
	if s.auto && s.box.corners != nil {
		r.fail(n.at("Rect"), "is a place, but the place is searched for by Place or Beside; leave one out")
	}
}

// form reads the name of a form of marks.
func (r *jsonReader) form(n node, key string) *form {
	name := strings.ToLower(strings.TrimSpace(r.text(n, key)))
	if name == "" {
		return nil
	}
	for _, f := range forms {
		if f.name == name {
			return f.form
		}
	}
	r.fail(n.at(key), "is %s; full or compact expected", short(name))
	return nil
}

// bool reads a boolean, which may be text.
func (r *jsonReader) bool(n node, key string, def bool) bool {
	raw := n.value(key)
	if raw == nil {
		return def
	}
	switch strings.ToLower(strings.Trim(string(raw), `" `)) {
	case "true", "1":
		return true
	case "false", "0":
		return false
	}
	r.fail(n.at(key), "is %s; true or false expected", short(string(raw)))
	return def
}

// jsonReader reads the known keys of a JSON value and keeps the first error. It goes only
// as deep as the known keys, however deep the value is.
type jsonReader struct{ fault *ParamError }

// node is an object: its values by lower-case key, and its path for errors.
type node struct {
	path   string
	values map[string]json.RawMessage
}

func (r *jsonReader) fail(path, format string, args ...any) {
	if r.fault == nil {
		text := fmt.Sprintf(format, args...)
		if path != "" {
			text = path + ": " + text
		}
		r.fault = &ParamError{paramAppearance, text}
	}
}

func (n node) at(key string) string {
	if n.path == "" {
		return key
	}
	return n.path + "." + key
}

// value returns the raw value of a key, nil if it is null or absent.
func (n node) value(key string) json.RawMessage {
	raw := n.values[strings.ToLower(key)]
	if string(raw) == "null" {
		return nil
	}
	return raw
}

func (n node) has(keys ...string) bool {
	for _, k := range keys {
		if n.value(k) != nil {
			return true
		}
	}
	return false
}

func (r *jsonReader) object(path string, raw json.RawMessage) node {
	n := node{path: path}
	if raw == nil {
		return n
	}
	var m map[string]json.RawMessage
	if err := json.Unmarshal(raw, &m); err != nil || m == nil {
		r.fail(path, "an object expected")
		return n
	}
	n.values = make(map[string]json.RawMessage, len(m))
	for k, v := range m {
		lower := strings.ToLower(strings.TrimSpace(k))
		if _, twice := n.values[lower]; twice {
			r.fail(path, "a key is given twice in different spelling: %s", short(k))
		}
		n.values[lower] = v
	}
	return n
}

// number reads a number within the limits. def is the value of an absent key.
func (r *jsonReader) number(n node, key string, def, least, most float64) float64 {
	raw := n.value(key)
	if raw == nil {
		return def
	}
	text := string(raw)
	if raw[0] == '"' {
		var s string
		if json.Unmarshal(raw, &s) != nil {
			s = ""
		}
		text = strings.TrimSpace(s)
	}
	// JSON has no infinities and no hexadecimal, which ParseFloat accepts.
	f, err := strconv.ParseFloat(text, 64)
	switch {
	case text == "" || strings.Trim(text, "0123456789+-.eE") != "" || err != nil && !math.IsInf(f, 0):
		r.fail(n.at(key), "is %s; a number expected", short(text))
		return def
	case f < least || f > most:
		r.fail(n.at(key), "is %s; must be from %s to %s", short(text), num(least), num(most))
		return def
	}
	return f
}

func (r *jsonReader) integer(n node, key string, def, least, most int) int {
	f := r.number(n, key, float64(def), float64(least), float64(most))
	if f != math.Trunc(f) {
		r.fail(n.at(key), "is %s; a whole number expected", num(f))
		return def
	}
	return int(f)
}

// text reads a string. A number is accepted as its digits.
func (r *jsonReader) text(n node, key string) string {
	raw := n.value(key)
	if raw == nil {
		return ""
	}
	if c := raw[0]; c == '-' || c >= '0' && c <= '9' {
		return string(raw)
	}
	var s string
	if json.Unmarshal(raw, &s) != nil {
		r.fail(n.at(key), "text expected")
	}
	return s
}

func (r *jsonReader) content(parent node, key string) []textual {
	raw := parent.value(key)
	if raw == nil {
		return nil
	}
	path := parent.at(key)
	var items []json.RawMessage
	if json.Unmarshal(raw, &items) != nil {
		r.fail(path, "an array expected")
		return nil
	}
	if len(items) > maxContent {
		r.fail(path, "has %d entries; at most %d are accepted", len(items), maxContent)
		return nil
	}
	content := make([]textual, 0, len(items))
	total := 0
	for i, item := range items {
		n := r.object(fmt.Sprintf("%s[%d]", path, i), item)
		t := textual{
			text:   r.text(n, "Text"),
			margin: r.number(n, "Margin", 0, 0, maxLength),
			style:  r.font(n, "Font"),
		}
		if total += utf8.RuneCountInString(t.text); total > maxText {
			r.fail(path, "has more than %d characters", maxText)
		}
		if r.fault != nil {
			return nil
		}
		content = append(content, t)
	}
	return content
}

// families are the values of FontFamily. The documentation names the faces arial and
// times; the others are common other names of the same faces.
var families = map[string]family{
	"arial": sans, "helvetica": sans, "liberation sans": sans, "sans-serif": sans,
	"times": serif, "times new roman": serif, "timesnewroman": serif, "times roman": serif, "times-roman": serif, "liberation serif": serif, "serif": serif,
}

// The bits of FontStyle.
const (
	styleBold = 1 << iota
	styleItalic
	styleUnderline
	styleStrike
	styleAll = 1<<iota - 1
)

func (r *jsonReader) font(parent node, key string) style {
	n := r.object(parent.at(key), parent.value(key))
	st := style{size: r.number(n, "FontSize", defaultFontSize, 0.1, maxFontSize)}
	fam := serif
	if name := strings.ToLower(strings.TrimSpace(r.text(n, "FontFamily"))); name != "" {
		var known bool
		if fam, known = families[name]; !known {
			r.fail(n.at("FontFamily"), "is %s; arial or times expected", short(name))
		}
	}
	bits := r.integer(n, "FontStyle", 0, 0, styleAll)
	st.face = faceOf(fam, bits&styleBold != 0, bits&styleItalic != 0)
	st.underline = bits&styleUnderline != 0
	st.strike = bits&styleStrike != 0
	if c := r.colour(n, "FontColor"); c != nil {
		st.colour = *c
	}
	return st
}

// colour reads {Red, Green, Blue}. An absent part is 0, an absent colour is nil.
func (r *jsonReader) colour(parent node, key string) *rgb {
	raw := parent.value(key)
	if raw == nil {
		return nil
	}
	n := r.object(parent.at(key), raw)
	return &rgb{r.number(n, "Red", 0, 0, 255), r.number(n, "Green", 0, 0, 255), r.number(n, "Blue", 0, 0, 255)}
}

func (r *jsonReader) picture(parent node, key string) *picture {
	raw := parent.value(key)
	if raw == nil {
		return nil
	}
	n := r.object(parent.at(key), raw)
	p := &picture{
		path:   n.at("Image"),
		image:  r.text(n, "Image"),
		placed: n.has("LowerLeftX", "LowerLeftY", "Scale"),
		x:      r.number(n, "LowerLeftX", 0, -maxLength, maxLength),
		y:      r.number(n, "LowerLeftY", 0, -maxLength, maxLength),
		scale:  r.number(n, "Scale", defaultScale, 0.01, maxScale),
	}
	if p.image == "" && !p.placed {
		return nil
	}
	return p
}

func (r *jsonReader) box(parent node, key string) box {
	n := r.object(parent.at(key), parent.value(key))
	b := box{
		radius:     r.number(n, "BorderRadius", 0, 0, maxLength),
		weight:     r.number(n, "BorderWeight", defaultWeight, 0, maxBorder),
		background: r.colour(n, "BackgroundColor"),
		margin:     r.number(n, "ContentMargin", defaultMargin, 0, maxLength),
		styled:     n.has("BorderRadius", "BorderWeight", "BorderColor", "BackgroundColor", "ContentMargin"),
		spaced:     n.has("ContentMargin"),
	}
	if c := r.colour(n, "BorderColor"); c != nil {
		b.border = *c
	}
	keys := [4]string{"LowerLeftX", "LowerLeftY", "UpperRightX", "UpperRightY"}
	if n.has(keys[:]...) {
		b.corners = new([4]float64)
		for i, k := range keys {
			if !n.has(k) {
				r.fail(n.at(k), "is missing; all four corners must be given")
			}
			b.corners[i] = r.number(n, k, 0, -maxLength, maxLength)
		}
	}
	return b
}

// short quotes a value from outside and truncates it, so that an error stays on one line.
func short(s string) string {
	const most = 40
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most], "") + "..."
	}
	return strconv.Quote(s)
}
