// SPDX-License-Identifier: Apache-2.0

package stamp

import (
	"image"
	"math"
	"strings"
	"testing"
	"unicode/utf8"

	"tamga/internal/judge"
)

// words returns text without the spaces that indicate its position.
func words(s string) string { return strings.Join(strings.Fields(s), " ") }

// TestText: a viewer extracts the exact text of a stamp.
func TestText(t *testing.T) {
	v := judge.PDFViewers(t)
	full := sample()
	full.Reason, full.Location = "Утверждаю", "г. Москва, ул. Тверская, д. 1"
	for _, test := range []struct {
		name string
		r    *Request
		want string
	}{
		{"mark", full, "ДОКУМЕНТ ПОДПИСАН ЭЛЕКТРОННОЙ ПОДПИСЬЮ Сертификат: 01D9A2C7F4B8E35000A1B2C3D4E5F601 Владелец: Иванов Иван Иванович " +
			"Действителен: с 01.02.2025 по 01.02.2026 Подписано: 04.03.2025 11:05 UTC"},
		{"only what is known", &Request{TemplateID: 1, Pages: 1, Signer: " ", Serial: "0A", NotAfter: full.NotAfter}, "ДОКУМЕНТ ПОДПИСАН ЭЛЕКТРОННОЙ ПОДПИСЬЮ Сертификат: 0A Действителен: по 01.02.2026"},
		{"look-alike letters", says("АAВBСCЕEНHКKМMОOРPТTХX аaсcеeоoрpхxуy"), "АAВBСCЕEНHКKМMОOРPТTХX аaсcеeоoрpхxуy"},
		{"the whole alphabet", says("АБВГДЕЁЖЗИЙКЛМНОПРСТУФХЦЧШЩЪЫЬЭЮЯ абвгдеёжзийклмнопрстуфхцчшщъыьэюя ІЇЄҐЎ"), "АБВГДЕЁЖЗИЙКЛМНОПРСТУФХЦЧШЩЪЫЬЭЮЯ абвгдеёжзийклмнопрстуфхцчшщъыьэюя ІЇЄҐЎ"},
		{"signs", says("№ 5 «А» – „Б“ — 10 ₽ § 3 … © É ß"), "№ 5 «А» – „Б“ — 10 руб. § 3 … © É ß"},
		{"what is syntax to PDF", says(`) Tj ET (\\ <FFFF> {1} /F0 % endstream endobj >>`), `) Tj ET (\\ <FFFF> {1} /F0 % endstream endobj >>`},
		{"a letter and its accent separate", says("Йод и\u0306 Ё"), "Йод й Ё"},
		{"signs the face has not", says("漢字 Иванов 😀 Ⅳ ＡＢ"), "□□ Иванов □ IV AB"},
		{"signs without a shape", says("А\x00Б\x1bВ\u202eГ\u200bД\u00adЕ\ufeffЖ\tЗ\x7f"), "АБВГДЕЖ З"},
		{"line breaks", says("один\r\nдва\rтри\n\nчетыре\u2028пять"), "один два три четыре пять"},
	} {
		a := render(t, test.r, a4)
		file := document(a4, a)
		v.Check(file)
		if got := words(v.Text(file)); got != test.want {
			t.Errorf("%s: %q, want %q", test.name, got, test.want)
		}
	}
}

// says returns a request for a stamp with one text.
func says(s string) *Request {
	return sample().with(object{"Content": []object{{"Text": s, "Font": object{"FontSize": 6, "FontFamily": "arial"}}}})
}

// TestFonts: every face is embedded as a subset, and its text can be extracted.
func TestFonts(t *testing.T) {
	v := judge.PDFViewers(t)
	var content []object
	for _, fam := range []string{"arial", "times"} {
		for style := range 16 {
			content = append(content, object{"Text": "Подпись № 1, Ёй", "Font": object{"FontSize": 9, "FontFamily": fam, "FontStyle": style}})
		}
	}
	a := render(t, sample().with(object{"Content": content, "Rect": object{"LowerLeftX": 20, "LowerLeftY": 20, "UpperRightX": 300, "UpperRightY": 700}}), a4)
	file := document(a4, a)
	v.Check(file)
	table := v.Fonts(file)
	for _, s := range sources {
		for _, s := range []*faceSource{s[0][0], s[0][1], s[1][0], s[1][1]} {
			if n := strings.Count(table, "+"+s.name+" "); n != 1 {
				t.Errorf("%s is there %d times", s.name, n)
			}
		}
	}
	rows := strings.Split(strings.TrimSpace(table), "\n")[2:]
	for _, row := range rows {
		if f := strings.Fields(row); strings.Join(f[1:7], " ") != "CID TrueType Identity-H yes yes yes" || f[0][6] != '+' {
			t.Errorf("pdffonts says %q", row)
		}
	}
	if len(rows) != 8 {
		t.Errorf("%d fonts, want 8:\n%s", len(rows), table)
	}
	if got, want := words(v.Text(file)), strings.TrimSpace(strings.Repeat("Подпись № 1, Ёй ", 32)); got != want {
		t.Errorf("the text reads %q", got)
	}
}

// TestViewersAgree: a viewer with its own font engine draws the same.
func TestViewersAgree(t *testing.T) {
	v := judge.PDFViewers(t)
	p := Page{MediaBox: [4]float64{0, 0, 300, 140}}
	r := sample()
	r.TemplateID = 2
	file := document(p, render(t, r.with(object{"Icon": object{"Image": pngOf(seal(120))}}), p))
	a, b := v.Picture(file, 1, 72), v.PictureByMuPDF(file, 1, 72)
	if d := difference(a, b, a.Bounds()); d > 0.02 {
		t.Errorf("the pictures differ by %.3f", d)
	}
	empty := v.Picture(document(p), 1, 72)
	if d := difference(a, empty, a.Bounds()); d < 0.03 {
		t.Errorf("the stamp differs from the empty page by only %.3f", d)
	}
}

// TestFit: in any box the text stays inside, and a text that does not fit is marked.
func TestFit(t *testing.T) {
	texts := map[string]content{
		"long":  contentText([]textual{{text: strings.Repeat("Съешь ещё этих мягких французских булок ", 40), style: style{face: faceOf(serif, false, false), size: 12}}}),
		"word":  contentText([]textual{{text: strings.Repeat("Щ", 300), margin: 20, style: style{face: faceOf(sans, true, false), size: 30}}}),
		"gaps":  contentText([]textual{{text: "Первая\n\n\n\n\nпоследняя", style: style{face: faceOf(sans, false, false), size: 8}}}),
		"small": contentText([]textual{{text: "мелко", style: style{face: faceOf(sans, false, false), size: 1}}, {text: " ", style: style{face: faceOf(sans, false, false), size: 2}}}),
	}
	for name, c := range texts {
		for _, w := range []float64{1, 7, 20, 60, 150, 230, 600} {
			for _, h := range []float64{1, 5, 12, 30, 80, 300} {
				l := fit(c, w, h)
				if l.height > h+0.02 {
					t.Errorf("%s in %v by %v: %v high", name, w, h, l.height)
				}
				all := ""
				for _, ln := range l.lines {
					for _, p := range ln.pieces {
						right := p.x + measure(p.text, p.style)
						if right > w+0.02 && len(p.text) > 1 {
							t.Errorf("%s in %v by %v: %q ends at %v", name, w, h, string(p.text), right)
						}
						if p.style.size < leastSize-1e-9 && name != "small" {
							t.Errorf("%s in %v by %v: size %v", name, w, h, p.style.size)
						}
						all += string(p.text)
					}
				}
				whole := math.MaxInt // letters of the shortest variant
				for _, v := range c.variants {
					n := 0
					for _, p := range v {
						n += utf8.RuneCountInString(strings.ReplaceAll(string(p.label)+string(p.text), " ", ""))
					}
					whole = min(whole, n)
				}
				shown := utf8.RuneCountInString(strings.ReplaceAll(all, " ", ""))
				if cut := strings.HasSuffix(all, "…"); len(l.lines) > 0 && !cut && shown < whole {
					t.Errorf("%s in %v by %v: %d of %d letters and no ellipsis: %q", name, w, h, shown, whole, all)
				}
			}
		}
	}
}

// TestWrap: where lines are split.
func TestWrap(t *testing.T) {
	st := style{face: faceOf(sans, false, false), size: 10}
	for _, test := range []struct {
		text string
		as   string // as wide as this
		want string
	}{
		{"один два три", "один два", "один два|три"},
		{"один два три", "один", "один|два|три"},
		{"", "x", ""},
		{"   ", "x", ""},
		{"юго-запад", "юго-", "юго-|зап|ад"},
		{"северо-запад", "северо", "северо|-запад"},
		{"юго-восток и юг", "восток и", "юго-|восток и|юг"},
		{"слово", "сл", "сл|о|в|о"},
		{"а слово б", "слов", "а|слов|о б"},
		{"один  два", "один", "один|два"},
		{"щщщ", "i", "щ|щ|щ"},
		{"ваза; б", "ваза", "ваз|а; б"},
	} {
		lines, _ := wrap([]rune(test.text), st, measure([]rune(test.as), st))
		var got []string
		for _, l := range lines {
			got = append(got, strings.TrimSpace(string(l)))
		}
		if s := strings.Join(got, "|"); s != test.want {
			t.Errorf("%q as wide as %q: %q, want %q", test.text, test.as, s, test.want)
		}
	}
}

// TestFaces: every face has the characters of Russian documents, and the metrics to
// replace Arial and Times New Roman.
func TestFaces(t *testing.T) {
	widths := map[family]map[rune]float64{sans: {'A': 667, 'i': 222, '0': 556}, serif: {'A': 722, 'i': 278, '0': 500}}
	for fam := range sources {
		for _, bold := range []bool{false, true} {
			for _, italic := range []bool{false, true} {
				f := faceOf(family(fam), bold, italic)
				for _, r := range "АЯЁаяёЙй№«»—… IVXabc019" + string(missing) {
					if f.glyphs[r] == 0 {
						t.Errorf("%s has no %q", f.name, r)
					}
				}
				if (f.italicAngle != 0) != italic || f.flags&flagNonsymbolic == 0 || (f.flags&flagSerif != 0) != (family(fam) == serif) {
					t.Errorf("%s: angle %d, flags %b", f.name, f.italicAngle, f.flags)
				}
				for name, v := range map[string]float64{"ascent": f.ascent, "descent": f.descent, "cap height": f.capHeight, "underline": f.underlineAt, "strike": f.strikeAt} {
					if v < 50 || v > 1000 {
						t.Errorf("%s: %s %v", f.name, name, v)
					}
				}
				if !bold && !italic {
					for r, want := range widths[family(fam)] {
						if math.Abs(f.width(r)-want) > 1 {
							t.Errorf("%s: %q is %v wide, want %v", f.name, r, f.width(r), want)
						}
					}
				}
				// A subset of all characters can be parsed as a face again.
				s := newSubset(f)
				for r := range rune(0x3000) {
					if f.glyphs[r] != 0 {
						s.encode(r)
					}
				}
				file, glyphs := s.file()
				if sum := checksum(file); sum != 0xB1B0AFBA {
					t.Errorf("%s: the file adds up to %08x", f.name, sum)
				}
				checkGlyphs(t, f.name, file, glyphs, len(s.runes))
			}
		}
	}
}

// checkGlyphs parses a subset: offsets in order, components within the file, metrics for
// every glyph.
func checkGlyphs(t *testing.T, name string, file []byte, glyphs, encoded int) {
	t.Helper()
	tables := map[string][]byte{}
	for i := range int(be.Uint16(file[4:])) {
		e := file[12+16*i:]
		tables[string(e[:4])] = file[be.Uint32(e[8:]):][:be.Uint32(e[12:])]
		if tag := string(e[:4]); tag != "head" && checksum(tables[tag]) != be.Uint32(e[4:]) {
			t.Errorf("%s: checksum of %s", name, tag)
		}
	}
	if n := int(be.Uint16(tables["maxp"][4:])); n != glyphs || len(tables["hmtx"]) != 4*n || len(tables["loca"]) != 4*(n+1) || n < encoded {
		t.Fatalf("%s: %d glyphs, %d said, tables of %d and %d bytes", name, n, glyphs, len(tables["hmtx"]), len(tables["loca"]))
	}
	composites := 0
	for g := range glyphs {
		from, to := be.Uint32(tables["loca"][4*g:]), be.Uint32(tables["loca"][4*g+4:])
		if to < from || int(to) > len(tables["glyf"]) {
			t.Fatalf("%s: glyph %d from %d to %d", name, g, from, to)
		}
		if outline := tables["glyf"][from:to]; len(outline) > 0 && int16(be.Uint16(outline)) < 0 {
			composites++
			plain(outline, func(c uint16) uint16 {
				if int(c) >= glyphs {
					t.Errorf("%s: glyph %d has component %d of %d", name, g, c, glyphs)
				}
				return c
			})
		}
	}
	if composites == 0 {
		t.Errorf("%s: no composite glyph was met", name)
	}
}

// TestRules: the lines of underlined and struck text are there and have its width.
func TestRules(t *testing.T) {
	v := judge.PDFViewers(t)
	p := Page{MediaBox: [4]float64{0, 0, 120, 40}}
	picture := func(style int) image.Image {
		r := sample().with(object{"Content": []object{{"Text": "Подпись", "Font": object{"FontSize": 16, "FontStyle": style}}},
			"Rect": object{"LowerLeftX": 0, "LowerLeftY": 0, "UpperRightX": 120, "UpperRightY": 40, "BorderWeight": 0}})
		return v.Picture(document(p, render(t, r, p)), 1, 72)
	}
	ink := func(m image.Image) int {
		n := 0
		for y := range m.Bounds().Dy() {
			for x := range m.Bounds().Dx() {
				if r, _, _, _ := m.At(x, y).RGBA(); r < 0x8000 {
					n++
				}
			}
		}
		return n
	}
	plain, under, struck := ink(picture(0)), ink(picture(4)), ink(picture(8))
	if under < plain+30 || struck < plain+15 {
		t.Errorf("dark points: plain %d, underlined %d, struck through %d", plain, under, struck)
	}
}
