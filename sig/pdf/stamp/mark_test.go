// SPDX-License-Identifier: Apache-2.0

package stamp

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"image"
	"image/png"
	"io"
	"math"
	"strings"
	"testing"

	"tamga/internal/judge"
)

// longName is a name of so many letters in words of a name's length.
func longName(letters int) string {
	words := []string{"Константинопольская", "Преображенская", "Александра", "Владиславовна", "ибн", "Ёж"}
	var b []rune
	for i := 0; len(b) < letters; i++ {
		b = append(append(b, []rune(words[i%len(words)])...), ' ')
	}
	return strings.TrimSpace(string(b[:letters]))
}

// TestMark: programs extract exactly what a mark must say, whatever the name of the owner.
func TestMark(t *testing.T) {
	v := judge.PDFViewers(t)
	names := map[string]string{
		"plain":     "Иванова Мария Петровна",
		"two lines": "Константинопольская-Преображенская Александра Владиславовна",
		"200":       longName(200),
		"one word":  strings.Repeat("Щ", 200),
		"combining": "Йо\u0301жеф К\u0308е\u0301м Ма\u0301рия",
		"Hebrew":    "מרים בת דוד",
		"brackets":  "Иванов (И.) ООО «Ёж» <&>",
		"unknown":   "محمد 漢字",
	}
	for name, owner := range names {
		for form, want := range map[string]string{"full": "ДОКУМЕНТ ПОДПИСАН ЭЛЕКТРОННОЙ ПОДПИСЬЮ Сертификат: %s Владелец: %s Действителен: с 01.02.2025 по 01.02.2026", "compact": ""} {
			r := sample()
			r.Signer = owner
			file := document(a4, render(t, r.with(object{"Mark": form}), a4))
			v.Check(file)
			said := letters(v.Text(file))
			owner := string(oneLine(Explained(owner, "")))
			if want != "" {
				// Without the time a mark with a long name has what it must have.
				want := letters(fmt.Sprintf(want, r.Serial, owner))
				if got, _, _ := strings.Cut(said, "Подписано:"); got != want {
					t.Errorf("%s: %q, want %q", name, got, want)
				}
				continue
			}
			for _, part := range []string{"ДОКУМЕНТПОДПИСАНЭЛЕКТРОННОЙПОДПИСЬЮ", "01.02.2025–01.02.2026", "Сертификат" + r.Serial} {
				if !strings.Contains(said, part) {
					t.Errorf("%s, compact: %q has no %q", name, said, part)
				}
			}
			if rest := strings.ReplaceAll(said, "01.02.2025–01.02.2026", ""); !strings.Contains(rest, letters(owner)) {
				t.Errorf("%s, compact: %q has no %q", name, rest, owner)
			}
		}
	}
}

// TestExplained: a mark says which letters its faces lack, and only those.
func TestExplained(t *testing.T) {
	for text, want := range map[string][2]string{
		"Иванова Мария":                    {"", ""},
		"Әлия Ғұмарқызы Өңірбек Үміт Һ":    {"", ""},
		"Ґалаґан Їжакевич Јовановић Ђорђе": {"", ""},
		"Łukasz Żółć Nguyễn Văn Đức İpek":  {"", ""},
		"Νίκος Παπαδόπουλος, מרים בת דוד":  {"", ""},
		"😀 №":                 {"", ""},
		"محمد بن سلمان":       {" [буквы арабские]", " [Arabic letters]"},
		"王小明 (Wang Xiaoming)": {" [буквы китайские]", " [Chinese letters]"},
		"გიორგი ბერიძე":       {" [буквы грузинские]", " [Georgian letters]"},
		"Արամ Խաչատրյան":      {" [буквы армянские]", " [Armenian letters]"},
		"राहुल शर्मा, สมชาย ใจดี, 山田 たろう, 김민준": {" [буквы индийские, тайские, китайские, японские, корейские]", " [Devanagari, Thai, Chinese, Japanese, Korean letters]"},
		"ᏣᎳᎩ": {" [буквы другие]", " [other letters]"},
	} {
		if ru, en := Explained(text, "ru"), Explained(text, "en"); ru != text+want[0] || en != text+want[1] {
			t.Errorf("%q and %q, want %q with %q", ru, en, text, want)
		}
	}
}

// letters returns text without its white space and without marks of direction.
func letters(s string) string {
	return strings.NewReplacer("\u202a", "", "\u202b", "", "\u202c", "").Replace(strings.Join(strings.Fields(s), ""))
}

// TestMarkInside: in a mark of any size nothing leaves the frame, no two texts overlap, and nothing is cut.
func TestMarkInside(t *testing.T) {
	logo := pngOf(seal(30))
	for _, size := range [][2]float64{{198.4, 70.9}, {170, 34}, {99, 35}, {500, 80}, {100, 100}, {60, 300}, {600, 210}, {20, 5}} {
		for _, owner := range []string{"Иванова Мария Петровна", longName(200), strings.Repeat("Щ", 200), longName(2000), ""} {
			for _, form := range []string{"", "full", "compact"} {
				r := sample()
				r.Signer, r.Reason = owner, "Утверждаю"
				if r.with(object{"Mark": form, "Position": true}); len(owner)%2 == 0 {
					r.TemplateID = 2
					r.with(object{"Mark": form, "Icon": object{"Image": logo}})
				}
				s, template, err := settle(r)
				if err != nil {
					t.Fatal(err)
				}
				d := &drawing{request: r, settings: s, template: template}
				if err := d.prepare(); err != nil {
					t.Fatal(err)
				}
				sc := d.scene(size[0], size[1])
				all := ""
				for i, p := range sc.text {
					box := boxOf(p)
					if box.cut(rect{0, 0, sc.width, sc.height}) != box {
						t.Errorf("%v %q %.20s: %q leaves the mark: %v", size, form, owner, string(p.text), box)
					}
					for _, o := range sc.text[:i] {
						if m := box.cut(boxOf(o)); m.width() > 0.01*sc.width && m.height() > 0.02*sc.height {
							t.Errorf("%v %q %.20s: %q is over %q", size, form, owner, string(p.text), string(o.text))
						}
					}
					if string(p.text) != "01.02.2025–01.02.2026" {
						all += string(p.text)
					}
				}
				for _, need := range []string{owner, r.Serial} {
					if !strings.Contains(strings.ReplaceAll(all, " ", ""), strings.ReplaceAll(need, " ", "")) {
						t.Errorf("%v %q: %.300q has no %.50q", size, form, all, need)
					}
				}
			}
		}
	}
}

// boxOf returns about the ink of capital letters.
func boxOf(p piece) rect {
	return rect{p.x, p.y, p.x + measure(p.text, p.style), p.y + 0.7*p.style.size}
}

// TestMarkRows: which rows a mark has.
func TestMarkRows(t *testing.T) {
	full := "ДОКУМЕНТ ПОДПИСАН|ЭЛЕКТРОННОЙ ПОДПИСЬЮ|Сертификат:|01D9A2C7F4B8E35000A1B2C3D4E5F601|Владелец:|Иванов Иван Иванович"
	valid := "|Действителен:|с 01.02.2025 по 01.02.2026"
	for _, test := range []struct {
		appearance object
		owner      string
		want       string
	}{
		{object{}, "", full + valid + "|Подписано:|04.03.2025 11:05 UTC"},
		{object{"Time": false}, "", full + valid},
		{object{"Time": "false", "Position": "true"}, "", full + "|Должность:|Генеральный директор" + valid},
		// What a mark need not have makes space for a long name.
		{object{}, "Константинопольская-Преображенская Александра Владиславовна",
			strings.ReplaceAll(full, "Иванов Иван Иванович", "Константинопольская-Преображенская|Александра Владиславовна") + valid},
		{object{"Mark": "compact"}, "", "ДОКУМЕНТ ПОДПИСАН ЭЛЕКТРОННОЙ ПОДПИСЬЮ|Иванов Иван Иванович|01.02.2025–01.02.2026|Сертификат |01D9A2C7F4B8E35000A1B2C3D4E5F601"},
	} {
		r := sample()
		if test.owner != "" {
			r.Signer = test.owner
		}
		s, template, err := settle(r.with(test.appearance))
		if err != nil {
			t.Fatal(err)
		}
		d := &drawing{request: r, settings: s, template: template}
		if err := d.prepare(); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, p := range d.scene(d.natural(1000)).text {
			got = append(got, string(p.text))
		}
		if s := strings.Join(got, "|"); s != test.want {
			t.Errorf("%v: %s, want %s", test.appearance, s, test.want)
		}
	}
}

// TestMarkSize: a mark has its ordinary size, and a smaller one in proportion on a narrow page.
func TestMarkSize(t *testing.T) {
	for _, test := range []struct {
		form          string
		page          float64
		width, height float64 // millimetres
	}{{"full", 595, 70, 25}, {"compact", 595, 60, 12}, {"full", 99, 17.99, 6.43}} {
		a := render(t, sample().with(object{"Mark": test.form}), Page{MediaBox: [4]float64{0, 0, test.page, 842}})
		w, h := (a.Rect[2]-a.Rect[0])/millimetre, (a.Rect[3]-a.Rect[1])/millimetre
		if math.Abs(w-test.width) > 0.01 || math.Abs(h-test.height) > 0.01 {
			t.Errorf("%s on a page of %v: %.2f by %.2f mm", test.form, test.page, w, h)
		}
	}
}

// TestPreview: the picture of the page is the mark of the document: the same texts at the same places.
func TestPreview(t *testing.T) {
	r := sample()
	r.Signer = "Иванова <&> מרים 漢"
	r.TemplateID = 2
	r.with(object{"Icon": object{"Image": pngOf(seal(40))}})
	data, err := Preview(r)
	if err != nil {
		t.Fatal(err)
	}
	var said []string
	images := 0
	d := xml.NewDecoder(strings.NewReader(string(data)))
	for in := ""; ; {
		token, err := d.Token()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatalf("%v: %s", err, data)
		}
		switch token := token.(type) {
		case xml.StartElement:
			if in = token.Name.Local; in == "image" {
				images++
			}
			for _, a := range token.Attr {
				if strings.Contains(a.Value, "NaN") || strings.HasPrefix(a.Name.Local, "on") || a.Name.Local == "style" {
					t.Errorf("%s %s=%q", in, a.Name.Local, a.Value)
				}
			}
		case xml.EndElement:
			in = ""
		case xml.CharData:
			if in == "text" {
				said = append(said, string(token))
			}
		}
	}
	want := "ДОКУМЕНТ ПОДПИСАН|ЭЛЕКТРОННОЙ ПОДПИСЬЮ|Сертификат:|01D9A2C7F4B8E35000A1B2C3D4E5F601|Владелец:|Иванова <&> םירמ □ [буквы китайские]|Действителен:|с 01.02.2025 по 01.02.2026|Подписано:|04.03.2025 11:05 UTC"
	if got := strings.Join(said, "|"); got != want || images != 1 {
		t.Errorf("%d images, %s", images, got)
	}
	r.Appearance = []byte(`{"Mark":"small"}`)
	var param *ParamError
	if _, err := Preview(r); !errors.As(err, &param) || !strings.Contains(err.Error(), "full or compact expected") {
		t.Errorf("%v", err)
	}
}

// TestVisual: letters written from the right are drawn in their order.
func TestVisual(t *testing.T) {
	for in, want := range map[string]string{
		"Иванов":      "Иванов",
		"אבג":         "גבא",
		"Иван אבג 5":  "Иван 5 גבא",
		"אב 12 גד":    "דג 12 בא",
		"אב 1.5 גד":   "דג 1.5 בא",
		"א\u05B8ב":    "בא\u05B8",
		"«אב» x":      "«בא» x",
		"א (ב) א":     "א (ב) א",
		"123 Иванов":  "123 Иванов",
		"\u0301 one":  "\u0301 one",
		"אב, גד и אב": "דג ,בא и בא",
	} {
		if got := string(visual([]rune(in))); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

// TestMarkLogo: a mark has the logo of the installation, unless the request has an image or asks for none.
func TestMarkLogo(t *testing.T) {
	var b bytes.Buffer
	if err := png.Encode(&b, seal(50)); err != nil {
		t.Fatal(err)
	}
	logo, err := CheckLogo(b.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		template   int
		appearance object
		image      bool
	}{
		{0, object{"Place": "auto"}, true},
		{2, object{}, true},
		{1, object{}, false},
		{0, object{"Content": []object{{"Text": "x"}}}, false},
		{0, object{"Icon": object{"Image": pngOf(seal(20))}}, true},
	} {
		r := sample()
		r.TemplateID, r.Logo, r.Extend = test.template, logo, true
		a := render(t, r.with(test.appearance), a4)
		if has := strings.Contains(a.Objects[0].Dict, "/I0"); has != test.image {
			t.Errorf("template %d, %v: an image %v", test.template, test.appearance, has)
		}
	}
	for _, wrong := range [][]byte{nil, []byte("BM no picture"), b.Bytes()[:100]} {
		if _, err := CheckLogo(wrong); err == nil {
			t.Errorf("%.10q is a logo", wrong)
		}
	}
	large := new(bytes.Buffer)
	if err := png.Encode(large, image.NewGray(image.Rect(0, 0, 5000, 4000))); err != nil {
		t.Fatal(err)
	}
	if _, err := CheckLogo(large.Bytes()); err == nil || !strings.Contains(err.Error(), "at most 8 million pixels") {
		t.Errorf("20 megapixels: %v", err)
	}
}
