// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"tamga/internal/domain/fault"
)

type inner struct {
	Name   Text
	Flag   bool
	Number int32
	Next   *inner
	List   []string
	Map    map[string]Text
	Bytes  []byte
	Any    any
	Float  float64
	Small  uint8
	Exact  json.Number
	Nested []inner
	Tagged string `json:"other_name"`
	Hidden string `json:"-"`
	Seen   Unread
}

func TestReaderBindsEveryKind(t *testing.T) {
	const text = "\xEF\xBB\xBF" + ` {"name": 12, "FLAG": true, "number": -7, "next": {"Name":"x","Next":null},
		"list": ["a", null, "\u00e9\ud83d\ude00\n"], "map": {"a": "1", "B": true, "c": 1.5e3},
		"bytes": "AQI=", "any": {"k": [1, "t", false, null]}, "float": 2.5, "small": 255, "exact": 1e400,
		"nested": [{"name": false}], "OTHER_NAME": "tag", "hidden": "no", "unknown": {"deep": [[{}]]}, "seen": [1]} `
	want := inner{
		Name: "12", Flag: true, Number: -7, Next: &inner{Name: "x"}, List: []string{"a", "", "é😀\n"},
		Map: map[string]Text{"a": "1", "B": "true", "c": "1.5e3"}, Bytes: []byte{1, 2},
		Any:   map[string]any{"k": []any{json.Number("1"), "t", false, nil}},
		Float: 2.5, Small: 255, Exact: "1e400", Nested: []inner{{Name: "false"}}, Tagged: "tag",
		Seen: Unread{Present: true},
	}
	for name, src := range map[string]io.Reader{
		"whole":        strings.NewReader(text),
		"byte by byte": iotest.OneByteReader(strings.NewReader(text)),
		"data and end": iotest.DataErrReader(strings.NewReader(text)),
	} {
		var got inner
		if present, err := readJSON(src, &got, nil); err != nil || !present {
			t.Fatalf("%s: present %v, error %v", name, present, err)
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s: -want +got\n%s", name, d)
		}
	}
}

// Some clients write truth values and numbers as texts, or truth values as numbers.
func TestReaderTakesScalarsInAnyForm(t *testing.T) {
	for text, want := range map[string]inner{
		`{"Flag":"True","Number":"-7","Small":"255"}`: {Flag: true, Number: -7, Small: 255},
		`{"Flag":1,"Number":" 12 ","Small":0}`:        {Flag: true, Number: 12},
		`{"Flag":"1"}`:                                {Flag: true},
		`{"Flag":0}`:                                  {},
		`{"Flag":"FALSE"}`:                            {},
		`{"Flag":null,"Number":null}`:                 {},
	} {
		var got inner
		_, err := readJSON(iotest.OneByteReader(strings.NewReader(text)), &got, nil)
		if d := cmp.Diff(want, got); d != "" || err != nil {
			t.Errorf("%s: %v %s", text, err, d)
		}
	}
}

// TestReaderRefusesDoubledKeys: readers differ in which of two equal keys counts, so an object
// with one is refused wherever its keys are read, also in two spellings.
func TestReaderRefusesDoubledKeys(t *testing.T) {
	type request struct {
		Lock   Text
		Next   *request
		Texts  map[string]Text
		Any    any
		Object Blob
	}
	for text, says := range map[string]string{
		`{"Lock":"a","Lock":"a"}`:                     "Lock is given twice",
		`{"lock":true,"Lock":false}`:                  "Lock is given twice",
		`{"Next":{"Lock":1,"LOCK":1}}`:                "Next.Lock is given twice",
		`{"Lock":null,"Lock":null}`:                   "Lock is given twice",
		`{"Lock":1,"\u004cock":1}`:                    "Lock is given twice",
		`{"Texts":{"Kind":"a","\u212aind":"b"}}`:      "is given twice", // the sign of kelvin
		`{"Texts":{"a":"1","A":"1"}}`:                 "Texts.A is given twice",
		`{"Any":{"b":[{"Lock":true,"lock":false}]}}`:  "Any.b.lock is given twice",
		`{"Any":[{"ключ":1,"КЛЮЧ":1}]}`:               "is given twice",
		`{"Object":{"a":{"b":1,"B":2}}}`:              "Object.a.B is given twice",
		"\xEF\xBB\xBF" + `{"Lock":false,"Lock":true}`: "Lock is given twice",
	} {
		var v request
		_, err := readJSON(iotest.OneByteReader(strings.NewReader(text)), &v, nil)
		if !fault.Is(err, fault.InvalidParameters) || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want %q", text, err, says)
		}
	}
	var texts map[string]string // JSON in a text
	if err := ReadJSON(`{"CN":"a","cn":"b"}`, &texts); !fault.Is(err, fault.InvalidParameters) {
		t.Errorf("a text with a key twice: %v", err)
	}
	// The same key in another object is another key, and what is not read does not count.
	var v request
	if _, err := readJSON(strings.NewReader(`{"Lock":1,"x":2,"X":3,"Next":{"Lock":1},"Any":[{"a":1},{"a":1}]}`), &v, nil); err != nil {
		t.Error(err)
	}
}

func TestReaderScalarBodies(t *testing.T) {
	var s string
	var b bool
	var l []int
	for text, v := range map[string]any{`"abc"`: &s, ` true `: &b, `[1,2]`: &l} {
		if _, err := readJSON(strings.NewReader(text), v, nil); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
	if s != "abc" || !b || len(l) != 2 {
		t.Errorf("got %q %v %v", s, b, l)
	}
	for _, text := range []string{"", " \r\n", "\xEF\xBB\xBF"} {
		if present, err := readJSON(strings.NewReader(text), &s, nil); present || err != nil {
			t.Errorf("%q: present %v, error %v", text, present, err)
		}
	}
}

func TestReaderRefuses(t *testing.T) {
	for _, c := range []struct{ text, code, says string }{
		{`{`, fault.InvalidParameters, "ends too early"},
		{`{"a"`, fault.InvalidParameters, "ends too early"},
		{`{"a":`, fault.InvalidParameters, "ends too early"},
		{`{"a":1`, fault.InvalidParameters, "ends too early"},
		{`{"a":"x`, fault.InvalidParameters, "ends too early"},
		{`{"a":"\u12`, fault.InvalidParameters, "ends too early"},
		{`{"a":tru`, fault.InvalidParameters, "ends too early"},
		{`{"a":-`, fault.InvalidParameters, "ends too early"},
		{`{"a":1.`, fault.InvalidParameters, "ends too early"},
		{`{} x`, fault.InvalidParameters, "goes on"},
		{`{}{}`, fault.InvalidParameters, "goes on"},
		{`{"a":1,}`, fault.InvalidParameters, "unexpected"},
		{`{,}`, fault.InvalidParameters, "unexpected"},
		{`{"a" 1}`, fault.InvalidParameters, "unexpected"},
		{`{a:1}`, fault.InvalidParameters, "unexpected"},
		{`{'a':1}`, fault.InvalidParameters, "unexpected"},
		{`{"a":01}`, fault.InvalidParameters, "unexpected"},
		{`{"a":+1}`, fault.InvalidParameters, "unexpected"},
		{`{"a":.5}`, fault.InvalidParameters, "unexpected"},
		{`{"a":NaN}`, fault.InvalidParameters, "unexpected"},
		{`{"a":[1,]}`, fault.InvalidParameters, "unexpected"},
		{`{"a":"` + "\n" + `"}`, fault.InvalidParameters, "control character"},
		{`{"a":"\x"}`, fault.InvalidParameters, "escape"},
		{`{"a":"\u00g0"}`, fault.InvalidParameters, "escape"},
		{`{"name":"x`, fault.InvalidParameters, "ends too early"},
		{`{"Flag":"yes"}`, fault.InvalidParameters, "Flag must be true or false"},
		{`{"Flag":""}`, fault.InvalidParameters, "Flag must be true or false"},
		{`{"Flag":2}`, fault.InvalidParameters, "Flag must be true or false"},
		{`{"Flag":[true]}`, fault.InvalidParameters, "Flag must be true or false"},
		{`{"Number":"1.5"}`, fault.InvalidParameters, "Number must be a whole number"},
		{`{"Number":""}`, fault.InvalidParameters, "Number must be a whole number"},
		{`{"Number":"` + strings.Repeat("9", 1000) + `"}`, fault.InvalidParameters, "Number must be a whole number"},
		{`{"Number":true}`, fault.InvalidParameters, "Number must be a whole number"},
		{`{"Small":"256"}`, fault.InvalidParameters, "Small must be"},
		{`{"Number":1.5}`, fault.InvalidParameters, "Number must be a whole number"},
		{`{"Number":99999999999}`, fault.InvalidParameters, "Number must be a whole number in range"},
		{`{"Small":-1}`, fault.InvalidParameters, "Small must be"},
		{`{"List":{}}`, fault.InvalidParameters, "List must be an array"},
		{`{"List":["a",["b"]]}`, fault.InvalidParameters, "List[1] must be a string"},
		{`{"Map":{"k":{}}}`, fault.InvalidParameters, "Map.k must be"},
		{`{"Next":{"Next":{"Name":[]}}}`, fault.InvalidParameters, "Next.Next.Name must be"},
		{`{"Bytes":"%%"}`, fault.InvalidParameters, "Bytes must be Base64"},
		{`[]`, fault.InvalidParameters, "the request body must be an object"},
		{`{"Exact":` + strings.Repeat("1", 65) + `}`, fault.InvalidParameters, "at most 64"},
		{`{"x":` + strings.Repeat("[", 1<<20), fault.InvalidParameters, "nests deeper"},
		{strings.Repeat(`{"Next":`, 1<<20), fault.InvalidParameters, "nests deeper"},
		{`{"Any":` + strings.Repeat(`[`, 1<<20), fault.InvalidParameters, "nests deeper"},
		{`{"Map":{"` + strings.Repeat("k", 300) + `":1}}`, fault.InvalidParameters, "longer than 256"},
		{`{"Name":"` + strings.Repeat("x", maxHeld+1) + `"}`, fault.TooLarge, "holds more"},
		{`{"List":[` + strings.Repeat(`"",`, maxHeld/10) + `""]}`, fault.TooLarge, "holds more"},
		{`{"Any":[` + strings.Repeat(`0,`, maxHeld/10) + `0]}`, fault.TooLarge, "holds more"},
		{`{"Nested":[` + strings.Repeat(`{},`, maxHeld/10) + `{}]}`, fault.TooLarge, "holds more"},
	} {
		var v inner
		_, err := readJSON(strings.NewReader(c.text), &v, nil)
		f, ok := fault.As(err)
		if !ok || f.Code != c.code || !strings.Contains(f.Message, c.says) {
			t.Errorf("%.40s: got %v, want %s saying %q", c.text, err, c.code, c.says)
		}
	}
}

// What is not asked for is read and not held, however large it is.
func TestReaderSkipsWithoutHolding(t *testing.T) {
	long := strings.Repeat("x", 4*maxHeld)
	text := `{"junk":"` + long + `","more":[` + strings.Repeat("1,", maxHeld) + `1],"` + long + `":1,"big":` + strings.Repeat("9", 4*maxHeld) + `,"Name":"n"}`
	var v inner
	if _, err := readJSON(strings.NewReader(text), &v, nil); err != nil || v.Name != "n" {
		t.Errorf("got %q, %v", v.Name, err)
	}
	if _, err := readJSON(strings.NewReader(`{"Seen":"`+long+`"}`), &v, nil); err != nil || !v.Seen.Present || v.Seen.Empty {
		t.Errorf("got %+v, %v", v.Seen, err)
	}
}

func TestReaderPassesOnErrorsOfTheStream(t *testing.T) {
	gone := errors.New("gone")
	for _, text := range []string{"", `{`, `{"Name":`, `{"Name":"x`, `{"Name":1`, `{"x":tr`, `{"Number":-`, `{}`} {
		var v inner
		_, err := readJSON(io.MultiReader(strings.NewReader(text), iotest.ErrReader(gone)), &v, nil)
		if !errors.Is(err, gone) {
			t.Errorf("%s: got %v", text, err)
		}
	}
}

func TestCompileRefusesWhatJSONCannotBe(t *testing.T) {
	type embeds struct{ inner }
	for name, v := range map[string]any{
		"channel": new(chan int), "function": new(func()), "map of int": new(map[int]string), "embedded": new(embeds),
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("compiled")
				}
			}()
			readJSON(strings.NewReader("{}"), v, nil)
		})
	}
}

// FuzzReader compares with encoding/json. Known differences: we bound depth,
// length of numbers and keys, and memory; we pass over a byte order mark; an
// empty text is no error.
func FuzzReader(f *testing.F) {
	for _, s := range []string{
		`{}`, `[]`, `null`, `true`, `"a"`, `-0.5e+7`, `{"a":[1,{"b":null}],"a":2}`, `"\ud83d\ude00\ud800\u0041\udc00"`,
		`"\ud800\ud800\udc00"`, "\"\xff\xfe\"", `"\/\b\f\n\r\t\"\\"`, `{"a":1}x`, `[1 2]`, "\xEF\xBB\xBF1", "\xEF", `01`, `1.`, `"`, `{"":""}`, ` `,
	} {
		f.Add([]byte(s))
	}
	f.Add([]byte(`{"name":1,"flag":true,"number":-1,"next":{"list":["a"],"map":{"k":"v"}},"bytes":"AQI=","float":1e9,"small":1,"exact":1.0,"nested":[{}],"seen":{}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		var want, got any
		d := json.NewDecoder(strings.NewReader(strings.TrimPrefix(string(text), "\xEF\xBB\xBF")))
		d.UseNumber()
		wantErr := d.Decode(&want)
		if wantErr == nil {
			if _, err := d.Token(); err != io.EOF {
				wantErr = errors.New("goes on")
			}
		}
		present, gotErr := readJSON(iotest.HalfReader(strings.NewReader(string(text))), &got, nil)
		// The same text as a value that is skipped must get the same verdict.
		var skipped struct{ Other int }
		if wrapped := `{"x":` + string(text) + `}`; json.Valid([]byte(wrapped)) {
			if _, err := readJSON(strings.NewReader(wrapped), &skipped, nil); err != nil && !limited(err) {
				t.Fatalf("skipping %q: %v", wrapped, err)
			}
		} else if _, err := readJSON(strings.NewReader(wrapped), &skipped, nil); err == nil {
			t.Fatalf("skipped %q", wrapped)
		}
		// Whatever it is, binding it to types of ours ends in a value or a fault.
		var typed inner
		if _, err := readJSON(strings.NewReader(string(text)), &typed, nil); err != nil {
			if _, ok := fault.As(err); !ok {
				t.Fatalf("%q: not a fault: %v", text, err)
			}
		}
		switch {
		case !present && gotErr == nil:
			if wantErr != io.EOF {
				t.Fatalf("taken for empty: %q (%v)", text, wantErr)
			}
		case gotErr != nil && limited(gotErr):
		case gotErr != nil && strings.Contains(gotErr.Error(), "is given twice"):
			// The decoder of the standard library takes the last one.
			if wantErr == nil && !doubled(string(text)) {
				t.Fatalf("%q: no key is there twice: %v", text, gotErr)
			}
		case gotErr == nil && doubled(string(text)):
			t.Fatalf("%q: a key is there twice", text)
		case (gotErr == nil) != (wantErr == nil):
			t.Fatalf("%q: got %v, want %v", text, gotErr, wantErr)
		case gotErr == nil:
			if d := cmp.Diff(want, got); d != "" {
				t.Fatalf("%q: -want +got\n%s", text, d)
			}
		default:
			if _, ok := fault.As(gotErr); !ok {
				t.Fatalf("%q: not a fault: %v", text, gotErr)
			}
		}
	})
}

// doubled reports whether an object of a JSON text has a key twice, without regard to letter case.
func doubled(text string) bool {
	d := json.NewDecoder(strings.NewReader(strings.TrimPrefix(text, "\xEF\xBB\xBF")))
	var value func() (twice bool, err error)
	value = func() (twice bool, err error) {
		token, err := d.Token()
		if token != json.Delim('{') && token != json.Delim('[') {
			return false, err
		}
		var keys []string
		for d.More() {
			if token == json.Delim('{') {
				key, err := d.Token()
				if err != nil {
					return twice, err
				}
				twice = twice || slices.ContainsFunc(keys, func(k string) bool { return strings.EqualFold(k, key.(string)) })
				keys = append(keys, key.(string))
			}
			inner, err := value()
			if twice = twice || inner; err != nil {
				return twice, err
			}
		}
		_, err = d.Token()
		return twice, err
	}
	twice, _ := value()
	return twice
}

// limited tells the limits of our own from faults of the text.
func limited(err error) bool {
	f, _ := fault.As(err)
	return f != nil && (f.Code == fault.TooLarge || strings.Contains(f.Message, "nests deeper") ||
		strings.Contains(f.Message, "longer than") || strings.Contains(f.Message, "at most"))
}
