// SPDX-License-Identifier: Apache-2.0

package stamp

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func tryRender(r *Request) (*Appearance, error) {
	return Render(r, func(int) (Page, error) { return a4, nil })
}

// TestRefused: the error for an invalid value has its place in the JSON and the valid
// values.
func TestRefused(t *testing.T) {
	notImage := base64.StdEncoding.EncodeToString([]byte("BM no picture"))
	broken := pngOf(seal(20))
	broken = broken[:len(broken)/2/4*4]
	long := strings.Repeat(`{"Text":"x"},`, maxContent) + `{}`
	for _, test := range []struct {
		template   int
		appearance string
		want       string
	}{
		{4, `{}`, `PdfSignatureTemplateId: is 4; 1 (text), 2 (logo and text) or 3 (image) expected`},
		{-1, `{}`, `PdfSignatureTemplateId: is -1; `},
		{1, ` `, `PdfSignatureAppearance: is not JSON`},
		{1, `{"Content":[}`, `PdfSignatureAppearance: is not JSON`},
		{1, "{\"A\":\"\xff\"}", `PdfSignatureAppearance: is not UTF-8 text`},
		{1, `[]`, `PdfSignatureAppearance: an object expected`},
		{1, `"text"`, `PdfSignatureAppearance: an object expected`},
		{1, `null`, `PdfSignatureAppearance: an object expected`},
		{1, `{"Page":1,"page":2}`, `PdfSignatureAppearance: a key is given twice in different spelling: "`},
		{1, `{"TemplateId":2}`, `PdfSignatureAppearance: TemplateId: is 2, but PdfSignatureTemplateId is 1; leave one out`},
		{0, `{"TemplateId":7}`, `TemplateId: is "7"; must be from 1 to 3`},
		{0, `{"TemplateId":"text"}`, `TemplateId: is "text"; a number expected`},
		{1, `{"Page":0}`, `Page: is "0"; must be from 1 to 2147483647`},
		{1, `{"Page":1.5}`, `Page: is 1.5; a whole number expected`},
		{1, `{"Page":3}`, `Page: is 3, but the document has 1`},
		{1, `{"Page":true}`, `Page: is "true"; a number expected`},
		{1, `{"Page":1e999}`, `Page: is "1e999"; must be from 1 to`},
		{1, `{"Page":"0x1"}`, `Page: is "0x1"; a number expected`},
		{1, `{"Page":"NaN"}`, `Page: is "NaN"; a number expected`},
		{1, `{"Page":""}`, `Page: is ""; a number expected`},
		{1, `{"Content":{}}`, `Content: an array expected`},
		{1, `{"Content":[1]}`, `Content[0]: an object expected`},
		{1, `{"Content":[{},{"Text":{}}]}`, `Content[1].Text: text expected`},
		{1, `{"Content":[{"Margin":-1}]}`, `Content[0].Margin: is "-1"; must be from 0 to 100000`},
		{1, `{"Content":[{"Font":5}]}`, `Content[0].Font: an object expected`},
		{1, `{"Content":[{"Font":{"FontSize":0}}]}`, `Content[0].Font.FontSize: is "0"; must be from 0.1 to 500`},
		{1, `{"Content":[{"Font":{"FontFamily":"wingdings"}}]}`, `Content[0].Font.FontFamily: is "wingdings"; arial or times expected`},
		{1, `{"Content":[{"Font":{"FontStyle":16}}]}`, `Content[0].Font.FontStyle: is "16"; must be from 0 to 15`},
		{1, `{"Content":[{"Font":{"FontColor":{"Green":256}}}]}`, `Content[0].Font.FontColor.Green: is "256"; must be from 0 to 255`},
		{1, `{"Content":[` + long + `]}`, `Content: has 201 entries; at most 200 are accepted`},
		{1, `{"Content":[{"Text":"` + strings.Repeat("ж", maxText+1) + `"}]}`, `Content: has more than 20000 characters`},
		{1, `{"Rect":{"LowerLeftX":1}}`, `Rect.LowerLeftY: is missing; all four corners must be given`},
		{1, `{"Rect":{"LowerLeftX":1,"LowerLeftY":1,"UpperRightX":1e9,"UpperRightY":5}}`, `Rect.UpperRightX: is "1e9"; must be from -100000 to 100000`},
		{1, `{"Rect":{"LowerLeftX":700,"LowerLeftY":1,"UpperRightX":900,"UpperRightY":50}}`, `Rect: is outside of the page, which has 595 by 842 points`},
		{1, `{"Rect":{"BorderWeight":101}}`, `Rect.BorderWeight: is "101"; must be from 0 to 100`},
		{1, `{"Rect":{"BorderColor":"red"}}`, `Rect.BorderColor: an object expected`},
		{1, `{"Place":"left"}`, `Place: is "left"; auto expected, or a place in Rect`},
		{1, `{"Beside":"` + strings.Repeat("ж", 101) + `"}`, `Beside: has 101 characters; at most 100 are accepted`},
		{1, `{"Beside":"x","Rect":{"LowerLeftX":1,"LowerLeftY":1,"UpperRightX":100,"UpperRightY":50}}`, `Rect: is a place, but the place is searched for by Place or Beside; leave one out`},
		{1, `{"Place":"auto"}`, `Place: no page has a free place for the stamp`},
		{1, `{"Mark":"tiny"}`, `Mark: is "tiny"; full or compact expected`},
		{1, `{"Time":"later"}`, `Time: is "\"later\""; true or false expected`},
		{2, `{}`, `Icon.Image: is missing, but template 2 draws it`},
		{3, `{"Background":{}}`, `Background.Image: is missing, but template 3 draws it`},
		{3, ``, `Background.Image: is missing, but template 3 draws it`},
		{2, `{"Icon":{"Image":"%%"}}`, `Icon.Image: is not Base64: `},
		{2, `{"Icon":{"Image":"` + notImage + `"}}`, `Icon.Image: is not an image of a known kind; PNG, JPEG or GIF expected`},
		{2, `{"Icon":{"Image":"` + broken + `"}}`, `Icon.Image: is a broken PNG image: `},
		{2, `{"Icon":{"Scale":0}}`, `Icon.Scale: is "0"; must be from 0.01 to 100000`},
		{3, `{"Background":{"Image":7}}`, `Background.Image: is no`},
	} {
		r := sample()
		r.TemplateID, r.Appearance = test.template, []byte(test.appearance)
		a, err := tryRender(r)
		var param *ParamError
		if !errors.As(err, &param) || !strings.Contains(err.Error(), test.want) {
			t.Errorf("template %d, %.60s: %v, %v; want %s", test.template, test.appearance, a, err, test.want)
		} else if len(err.Error()) > 250 {
			t.Errorf("%.60s: an error of %d bytes", test.appearance, len(err.Error()))
		}
	}
}

// TestLenient: one request in the spellings of different clients.
func TestLenient(t *testing.T) {
	const plain = `{"Content":[{"Text":"Подпись","Margin":3,"Font":{"FontSize":8,"FontFamily":"arial","FontStyle":5,"FontColor":{"Red":1,"Green":2,"Blue":3}}}],"TemplateId":1,"Page":1,
		"Rect":{"LowerLeftX":10,"LowerLeftY":20,"UpperRightX":110,"UpperRightY":60,"BorderRadius":0,"BorderWeight":1,"BorderColor":{"Red":0,"Green":0,"Blue":0},"BackgroundColor":null,"ContentMargin":5}}`
	draw := func(appearance string) *Appearance {
		r := sample()
		r.Appearance = []byte(appearance)
		a, err := tryRender(r)
		if err != nil {
			t.Errorf("%.70s: %v", appearance, err)
		}
		return a
	}
	want := draw(plain)
	for name, other := range map[string]string{
		"byte order mark":   "\ufeff" + plain,
		"lower camel case":  strings.NewReplacer(`"Content"`, `"content"`, `"Rect"`, `"rect"`, `"FontStyle"`, `"fontStyle"`, `"LowerLeftX"`, `"lowerleftX"`).Replace(plain),
		"space behind keys": strings.NewReplacer(`"Page"`, `"Page "`, `"Text"`, `"Text "`).Replace(plain),
		"numbers as text":   strings.NewReplacer(`"FontSize":8`, `"FontSize":"8"`, `"LowerLeftX":10`, `"LowerLeftX":" 10.0 "`).Replace(plain),
		"unknown keys":      strings.NewReplacer(`"Page":1`, `"Page":1,"Comment":{"a":[null]},"Other":null`).Replace(plain),
		"defaults left out": strings.NewReplacer(`"BorderWeight":1,"BorderColor":{"Red":0,"Green":0,"Blue":0},"BackgroundColor":null,`, `"BorderWeight":null,`, `"BorderRadius":0,`, ``, `"TemplateId":1,"Page":1,`, ``).Replace(plain),
		"other name":        strings.NewReplacer(`"arial"`, `" Helvetica "`).Replace(plain),
		"corners exchanged": strings.NewReplacer(`"LowerLeftX":10`, `"LowerLeftX":110`, `"UpperRightX":110`, `"UpperRightX":10`).Replace(plain),
		"icon not drawn":    strings.NewReplacer(`"Page":1`, `"Page":1,"Icon":{"Image":"not decoded"}`).Replace(plain),
	} {
		if d := cmp.Diff(want, draw(other)); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
}

// TestTemplates: the sources that select the template.
func TestTemplates(t *testing.T) {
	picture := pngOf(seal(8))
	for _, test := range []struct {
		template    int
		appearance  object
		text, image bool
	}{
		{1, nil, true, false},
		{0, object{}, true, false},
		{0, object{"TemplateId": "3", "Icon": object{"Image": picture}}, false, true},
		{0, object{"Icon": object{"Image": picture}}, true, true},
		{0, object{"Background": object{"Image": picture}}, false, true},
		{2, object{"Icon": object{"Image": "data:image/png;base64," + strings.TrimRight(picture, "=")}}, true, true},
		{2, object{"Icon": object{"Image": picture[:40] + "\r\n" + picture[40:]}, "Content": []object{}}, false, true},
		{1, object{"Content": []object{}}, false, false},
		{3, object{"Background": object{"Image": picture}, "Content": []object{{"Text": "not drawn"}}}, false, true},
	} {
		r := sample()
		if r.TemplateID = test.template; test.appearance != nil {
			r.with(test.appearance)
		}
		a := render(t, r, a4)
		got := fmt.Sprint(strings.Contains(a.Objects[0].Dict, "/Font"), strings.Contains(a.Objects[0].Dict, "/XObject <<"))
		if want := fmt.Sprint(test.text, test.image); got != want {
			t.Errorf("template %d, %v: text and image %s, want %s", test.template, test.appearance, got, want)
		}
	}
}

// TestNothingToShow: an invisible signature needs no objects and does not ask for a page.
func TestNothingToShow(t *testing.T) {
	never := func(int) (Page, error) { t.Error("the page was asked for"); return Page{}, nil }
	for _, r := range []*Request{
		{Pages: 1},
		{Pages: 3, Field: &Field{Page: 2}},
		{Pages: 3, TemplateID: 1, Field: &Field{Page: 2, Rect: [4]float64{5, 5, 5, 90}}},
	} {
		a, err := Render(r, never)
		if err != nil || a.Objects != nil || a.Rect != [4]float64{} || r.Field != nil && a.Page != 2 {
			t.Errorf("%+v: %+v, %v", r, a, err)
		}
	}
	flat := sample().with(object{"Rect": object{"LowerLeftX": 0, "LowerLeftY": 0, "UpperRightX": 0, "UpperRightY": 0}})
	if a := render(t, flat, a4); a.Objects != nil || a.Rect != [4]float64{} {
		t.Errorf("empty rectangle: %+v", a)
	}
	broken := errors.New("no such page")
	if _, err := Render(sample(), func(int) (Page, error) { return Page{}, broken }); err != broken {
		t.Errorf("an error of the page came back as %v", err)
	}
}

// TestDeep: deep nesting outside of the known keys costs nothing and breaks nothing.
func TestDeep(t *testing.T) {
	for _, depth := range []int{1000, 9000, 200000} {
		r := sample()
		r.Appearance = []byte(`{"X":` + strings.Repeat("[", depth) + strings.Repeat("]", depth) + `}`)
		_, err := tryRender(r)
		if valid := json.Valid(r.Appearance); valid != (err == nil) {
			t.Errorf("depth %d: %v, valid JSON: %v", depth, err, valid)
		}
	}
	r := sample()
	r.Appearance = []byte(`{"X":"` + strings.Repeat("a", maxJSON) + `"}`)
	if _, err := tryRender(r); err == nil || !strings.Contains(err.Error(), "at most 12582912 are accepted") {
		t.Errorf("a long JSON: %v", err)
	}
}
