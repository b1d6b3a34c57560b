// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"tamga/internal/domain/fault"
)

type objectRequest struct{ Value Blob }

// TestBlobObject: an object is kept as it came, duplicates included, and only
// within bounds.
func TestBlobObject(t *testing.T) {
	for text, want := range map[string]string{
		`{}`: `{}`,
		` { "a" : [ 1 , { } , [ ] ] , "b" : null , "" : "\u00e9\ud83d\ude00\"" } `: `{"a":[1,{},[]],"b":null,"":"é😀\""}`,
		`{"n":-0.5E+10,"t":true,"f":false}`:                                        `{"n":-0.5E+10,"t":true,"f":false}`,
		`{"a":"` + strings.Repeat("x", ShortBlob-8) + `"}`:                         `{"a":"` + strings.Repeat("x", ShortBlob-8) + `"}`,
		`{"a":"` + strings.Repeat("x", ShortBlob-7) + `"}`:                         "",
		`{"a":[` + strings.Repeat("1,", ShortBlob) + `1]}`:                         "",
		`{"` + strings.Repeat("k", maxName+1) + `":1}`:                             "",
		strings.Repeat(`{"a":`, maxDepth) + strings.Repeat("}", maxDepth):          "",
		`{"a":`: "",
		`{"a"}`: "",
	} {
		var v objectRequest
		_, err := readJSON(strings.NewReader(`{"Value":`+text+`}`), &v, nil)
		if want == "" {
			if !fault.Is(err, fault.InvalidParameters) {
				t.Errorf("%.60s: %v", text, err)
			}
			continue
		}
		got, ok := v.Value.Object()
		if err != nil || !ok || got != want {
			t.Errorf("%.60s: got %.60s, %v, %v", text, got, ok, err)
		}
		if _, err := v.Value.Text(); err == nil || v.Value.Empty() {
			t.Errorf("%.60s: an object is a text or empty", text)
		}
	}
	for _, text := range []string{`[]`, `"{}"`, `1`, `null`} {
		var v objectRequest
		if _, err := readJSON(strings.NewReader(`{"Value":`+text+`}`), &v, nil); err != nil {
			t.Fatal(err)
		}
		if _, ok := v.Value.Object(); ok {
			t.Errorf("%s is an object", text)
		}
	}
}

// FuzzBlobObject compares with the standard library.
func FuzzBlobObject(f *testing.F) {
	f.Add(`{"a":[1,{"b":"\u00e9"}],"b":null}`)
	f.Add(`{"":-1e5,"x":"\ud800"}`)
	f.Fuzz(func(t *testing.T, text string) {
		var v objectRequest
		if _, err := readJSON(strings.NewReader(`{"Value":`+text+`}`), &v, nil); err != nil {
			return
		}
		got, ok := v.Value.Object()
		if !ok {
			return
		}
		decode := func(s string) (out any) {
			d := json.NewDecoder(bytes.NewReader([]byte(s)))
			d.UseNumber()
			if err := d.Decode(&out); err != nil {
				t.Fatalf("%q: %v", s, err)
			}
			return out
		}
		if len(got) > ShortBlob || !reflect.DeepEqual(decode(got), decode(text)) {
			t.Errorf("%q became %q", text, got)
		}
	})
}

// TestDocument: a Document is decoded whatever its length, and many of them cost a
// request nothing of what it may hold.
func TestDocument(t *testing.T) {
	type request struct {
		List []struct{ One, Other Document }
	}
	item := `{"One":"` + strings.Repeat("QUJD", 500) + `","Other":"QQ=="}`
	const n = 8000 // sixteen megabytes
	s := &sinks{}
	docs := s.documents()
	docs.most = 2 * n
	var v request
	if _, err := readJSON(strings.NewReader(`{"List":[`+strings.Repeat(item+",", n-1)+item+`]}`), &v, docs); err != nil {
		t.Fatal(err)
	}
	if len(v.List) != n || len(s.made) != 2*n || s.first != 1 {
		t.Fatalf("%d items, %d documents, %d of them no siblings", len(v.List), len(s.made), s.first)
	}
	for _, i := range []int{0, n - 1} {
		one, err := docs.Open(v.List[i].One)
		if err != nil || one.written.String() != strings.Repeat("ABC", 500) || one.finished != 1 {
			t.Errorf("item %d: %v", i, err)
		}
	}
	docs.close()

	docs = s.documents()
	docs.most = 1
	if _, err := readJSON(strings.NewReader(`{"List":[`+item+`]}`), &v, docs); !fault.Is(err, fault.InvalidParameters) || !strings.Contains(err.Error(), "more than 1 documents") {
		t.Errorf("one too many: %v", err)
	}
	docs.close()

	for text, says := range map[string]string{`"QQ"`: "not Base64", `{}`: "must be a string", `[1]`: "must be a string", `7`: "must be a string"} {
		docs := s.documents()
		var v struct{ Value Document }
		if _, err := readJSON(strings.NewReader(`{"Value":`+text+`}`), &v, docs); err != nil {
			t.Fatal(err)
		}
		if _, err := docs.Open(v.Value); v.Value.Empty() || !fault.Is(err, fault.InvalidContent) || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", text, err)
		}
		docs.close()
	}
	for _, text := range []string{`""`, `null`} {
		var v struct{ Value Document }
		if _, err := readJSON(strings.NewReader(`{"Value":`+text+`}`), &v, s.documents()); err != nil || !v.Value.Empty() {
			t.Errorf("%s is a document, %v", text, err)
		}
	}
}
