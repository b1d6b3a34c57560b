// SPDX-License-Identifier: Apache-2.0

package stamp

import (
	"bytes"
	"compress/zlib"
	"errors"
	"image"
	"io"
	"math"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// lined returns a request as a client of the interface sends it: a table of lines with
// margins that move them to the right of an icon, spacers of a small size, an underlined
// title.
func lined() *Request {
	black := object{"Red": 0, "Green": 0, "Blue": 0}
	font := func(size, style int) object {
		return object{"FontSize": size, "FontFamily": "times", "FontStyle": style, "FontColor": black}
	}
	gap := func(n int) object { return object{"Text": " ", "Font": object{"FontSize": n}} }
	r := sample()
	r.TemplateID = 2
	return r.with(object{
		"Content": []object{
			{"Text": "ДОКУМЕНТ ПОДПИСАН", "Margin": 65, "Font": font(9, 1)},
			{"Text": "ЭЛЕКТРОННОЙ ПОДПИСЬЮ", "Margin": 55, "Font": font(9, 1)},
			gap(2),
			{"Text": "СВЕДЕНИЯ О СЕРТИФИКАТЕ ЭП", "Margin": 53, "Font": font(8, 5)},
			gap(5),
			{"Text": "Сертификат: 4B6EF3934B373724AA818A6F8EA36FF400273EBC", "Font": font(8, 0)},
			gap(3),
			{"Text": "Кому выдан: Иванов Иван Иванович", "Font": font(8, 0)},
		},
		"TemplateId": 2, "Page": 1,
		"Icon": object{"Image": pngOf(seal(250)), "LowerLeftX": 15, "LowerLeftY": 52, "Scale": 15},
		"Rect": object{"LowerLeftX": 100, "LowerLeftY": 100, "UpperRightX": 336, "UpperRightY": 199, "BorderRadius": 7, "BorderWeight": 2,
			"BorderColor": black, "BackgroundColor": nil, "ContentMargin": 6},
	})
}

// TestSame: the same request gives the same bytes, also concurrently.
func TestSame(t *testing.T) {
	want := []*Appearance{render(t, sample(), a4), render(t, lined(), a4)}
	var wait sync.WaitGroup
	for range 8 {
		wait.Go(func() {
			got := []*Appearance{render(t, sample(), a4), render(t, lined(), a4)}
			if d := cmp.Diff(want, got); d != "" {
				t.Error(d)
			}
		})
	}
	wait.Wait()
}

// TestSize: a stamp adds little to a file.
func TestSize(t *testing.T) {
	for name, test := range map[string]struct {
		r    *Request
		most int
	}{"text": {sample(), 10000}, "logo and lines": {lined(), 15000}} {
		if n := added(render(t, test.r, a4)); n > test.most {
			t.Errorf("%s: %d bytes, at most %d wanted", name, n, test.most)
		}
	}
}

// TestReferences: every reference of an object is to another one, every other object is
// referred to, and names in braces are only references.
func TestReferences(t *testing.T) {
	for _, r := range []*Request{sample(), lined()} {
		a := render(t, r, a4)
		checkObjects(t, a)
		used := map[int]bool{0: true}
		for _, o := range a.Objects {
			for _, m := range reference.FindAllStringSubmatch(o.Dict, -1) {
				n, _ := strconv.Atoi(m[1])
				used[n] = true
			}
		}
		if len(used) != len(a.Objects) {
			t.Errorf("%d objects, %d in use", len(a.Objects), len(used))
		}
	}
}

// checkObjects checks that a stamp can be written into a file.
func checkObjects(t testing.TB, a *Appearance) {
	t.Helper()
	for i, o := range a.Objects {
		plain := reference.ReplaceAllStringFunc(o.Dict, func(m string) string {
			if n, err := strconv.Atoi(m[1 : len(m)-1]); err != nil || n == i || n >= len(a.Objects) {
				t.Errorf("object %d refers to %s", i, m)
			}
			return ""
		})
		if strings.ContainsAny(plain, "{}\x00\r\n\\") || !strings.HasPrefix(plain, "<< ") || !strings.HasSuffix(plain, " >>") ||
			strings.Count(plain, "<<") != strings.Count(plain, ">>") || strings.Count(plain, "[") != strings.Count(plain, "]") {
			t.Errorf("object %d: %s", i, o.Dict)
		}
		if strings.Contains(o.Dict, "/FlateDecode") {
			z, err := zlib.NewReader(bytes.NewReader(o.Stream))
			if err != nil {
				t.Fatal(err)
			}
			data, err := io.ReadAll(z)
			if err != nil {
				t.Fatal(err)
			}
			if i == 0 {
				checkContent(t, data)
			}
		}
	}
}

// operands is how many numbers an operator takes. The others take names and strings.
var operands = map[string]int{"q": 0, "Q": 0, "rg": 3, "RG": 3, "w": 1, "re": 4, "m": 2, "l": 2, "c": 6, "h": 0, "f": 0, "S": 0, "B": 0, "W": 0, "n": 0, "cm": 6, "BT": 0, "ET": 0, "Td": 2}

// checkContent parses a content stream: each operator has the right number of finite
// numbers, and saved and restored states are balanced.
func checkContent(t testing.TB, data []byte) {
	t.Helper()
	depth, numbers := 0, 0
	for _, word := range strings.Fields(string(data)) {
		if f, err := strconv.ParseFloat(word, 64); err == nil {
			if math.IsInf(f, 0) || math.Abs(f) > 1e9 || strings.ContainsAny(word, "eExX") {
				t.Errorf("the number %s", word)
			}
			numbers++
			continue
		}
		switch word {
		case "q":
			depth++
		case "Q":
			depth--
		}
		switch n, known := operands[word]; {
		case known && n != numbers:
			t.Errorf("%s with %d numbers", word, numbers)
		case !known && word != "Tf" && word != "Tj" && word != "Do" && word[0] != '/' && strings.Trim(word, "<>0123456789ABCDEF") != "":
			t.Errorf("the content has %q", word)
		}
		if numbers = 0; depth < 0 {
			t.Error("more states restored than saved")
		}
	}
	if depth != 0 {
		t.Errorf("%d states are not restored", depth)
	}
}

// FuzzRender: for any parameters and page the result is a stamp that can be written, or
// an error that names the parameter.
func FuzzRender(f *testing.F) {
	f.Add(1, []byte(nil), "Иванов", "01", 595.0, 842.0, 0, 1.0)
	f.Add(2, lined().Appearance, "Иванов\nИван", "01AB", 842.0, 595.0, 90, 0.0)
	f.Add(0, []byte(`{"content":[{"Text":"x","Font":{"FontSize":"500"}}],"Rect":{"LowerLeftX":1,"LowerLeftY":1,"UpperRightX":1.001,"UpperRightY":800}}`), "\x00(", "\\", 0.0, 0.0, 270, 2.0)
	f.Add(3, []byte(`{"Background":{"Image":"`+pngOf(seal(8))+`","Scale":1e-2,"LowerLeftX":-1e5},"Rect":{"BorderRadius":1e5,"BorderWeight":100}}`), "", "", 1e-9, 1e9, -90, 75000.0)
	f.Add(3, []byte(`{"Icon":{"Image":"`+encoded(cmyk([4]uint8{1, 2, 3, 4}))+`"}}`), "", "", 100.0, 100.0, 180, 1.0)
	f.Add(2, []byte(`{"Icon":{"Image":"`+encoded(exif(jpegOf(image.NewGray(image.Rect(0, 0, 9, 9))), 6, true))+`"}}`), "", "", 100.0, 100.0, 180, 1.0)
	f.Fuzz(func(t *testing.T, template int, appearance []byte, signer, serial string, width, height float64, rotate int, unit float64) {
		r := sample()
		r.TemplateID, r.Appearance, r.Signer, r.Serial = template, appearance, signer, serial
		p := Page{MediaBox: [4]float64{0, 0, width, height}, Rotate: rotate, UserUnit: unit, Taken: [][4]float64{{0, 0, height, unit}}}
		if rotate%2 != 0 {
			r.Field = &Field{Rect: [4]float64{1, 2, width, height}}
		}
		a, err := Render(r, func(n int) (Page, error) {
			if n != 0 {
				t.Errorf("page %d was asked for", n)
			}
			return p, nil
		})
		var param *ParamError
		if err != nil {
			if !errors.As(err, &param) || param.Parameter == "" || param.Text == "" {
				t.Errorf("the error %v", err)
			}
			return
		}
		for _, v := range a.Rect {
			if math.IsNaN(v) || math.IsInf(v, 0) {
				t.Errorf("the rectangle %v", a.Rect)
			}
		}
		checkObjects(t, a)
	})
}

func BenchmarkRender(b *testing.B) {
	noise := seal(250)
	for name, r := range map[string]*Request{"text": sample(), "logo": lined(), "image": func() *Request {
		r := sample()
		r.TemplateID = 3
		return r.with(object{"Background": object{"Image": encoded(jpegOf(noise))}})
	}()} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			size := 0
			for b.Loop() {
				size = added(render(b, r, a4))
			}
			b.ReportMetric(float64(size), "bytes/stamp")
		})
	}
}
