// SPDX-License-Identifier: Apache-2.0

package what_test

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"tamga/internal/domain/confirm/what"
	"tamga/internal/domain/policy"
)

// public is the rule of a caller without secret parameters.
func public(string) bool { return false }

func values(t testing.TB, m map[string]string) what.Values {
	t.Helper()
	v, err := what.NewValues(m, public)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func sum(t testing.TB, f what.Fields) what.Digest {
	t.Helper()
	d, err := f.Sum()
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// TestVectors checks testdata/what.json. Another program made it, with the digest of
// OpenSSL: testdata/what.py.
func TestVectors(t *testing.T) {
	text, err := os.ReadFile("testdata/what.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []struct {
		Name, Action  string
		Certificate   what.Hex
		PublicKey     what.Hex `json:"public_key"`
		SignatureType string   `json:"signature_type"`
		Parameters    map[string]string
		Ways          []struct {
			SignatureType string `json:"signature_type"`
			Parameters    map[string]string
		}
		Arguments map[string]string
		Documents []what.Document
		Encoded   what.Hex
		Digest    string
	}
	if err := json.Unmarshal(text, &cases); err != nil {
		t.Fatal(err)
	}
	if len(cases) < 13 {
		t.Fatalf("only %d vectors", len(cases))
	}
	for _, c := range cases {
		t.Run(c.Name, func(t *testing.T) {
			f := what.Fields{
				Action: c.Action, Certificate: c.Certificate, PublicKey: c.PublicKey, SignatureType: c.SignatureType,
				Parameters: values(t, c.Parameters), Arguments: values(t, c.Arguments), Documents: c.Documents,
			}
			for _, w := range c.Ways {
				f.Ways = append(f.Ways, what.Way{SignatureType: w.SignatureType, Parameters: values(t, w.Parameters)})
			}
			encoded, err := f.Encode()
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(encoded, c.Encoded) {
				t.Errorf("encoded %x, want %x", encoded, []byte(c.Encoded))
			}
			if got := sum(t, f).String(); got != c.Digest {
				t.Errorf("digest %s, want %s", got, c.Digest)
			}
			// The stored form gives the same digest.
			stored, err := json.Marshal(f)
			if err != nil {
				t.Fatal(err)
			}
			var read what.Fields
			if err := json.Unmarshal(stored, &read); err != nil {
				t.Fatal(err)
			}
			if got := sum(t, read).String(); got != c.Digest {
				t.Errorf("after storing: %s, want %s; stored as %s", got, c.Digest, stored)
			}
		})
	}
}

// full returns fields of one way, each of them set.
func full(t testing.TB) what.Fields {
	digest := func(b byte) what.Hex { return bytes.Repeat([]byte{b}, what.Size) }
	return what.Fields{
		Action: "SignDocuments", Certificate: digest(1), PublicKey: digest(2), SignatureType: "CAdES",
		Parameters: values(t, map[string]string{"CADESType": "T", "Picture": strings.Repeat("x", 2000)}),
		Arguments:  values(t, map[string]string{"a": "1"}),
		Documents: []what.Document{
			{Name: "a.pdf", Size: 5, Digest: digest(3), Original: &what.Original{Size: 6, Digest: digest(4)}},
			{Name: "b.pdf", Size: 7, Digest: digest(5), Hash: "SHA-256"},
		},
	}
}

// several returns fields of two ways, each of them set.
func several(t testing.TB) what.Fields {
	f := full(t)
	f.Ways = []what.Way{{f.SignatureType, f.Parameters}, {"PDF", values(t, map[string]string{"PDFFormat": "CMS"})}}
	f.SignatureType, f.Parameters = "", what.Values{}
	f.Documents = append(f.Documents, full(t).Documents...)
	f.Documents[1].Way, f.Documents[2].Way = 1, 1
	return f
}

// TestEachFieldMatters changes each value that can be reached from Fields, one at a time,
// and expects another digest each time. A field that is added later is walked too.
func TestEachFieldMatters(t *testing.T) {
	want := sum(t, full(t))
	seen := map[what.Digest]string{want: "nothing changed"}
	changes := 0
	change := func(name string, f what.Fields) {
		t.Helper()
		changes++
		got := sum(t, f)
		if before, known := seen[got]; known {
			t.Errorf("%s: the digest is that of: %s", name, before)
		}
		seen[got] = name
	}
	f := full(t)
	walk(t, "Fields", reflect.ValueOf(&f).Elem(), func(name string) { change(name, f) }, "Fields.Ways", "Way")
	if changes < 15 {
		t.Errorf("only %d fields were changed", changes)
	}
	f = several(t)
	change("several ways", f)
	before := changes
	walk(t, "Fields", reflect.ValueOf(&f).Elem(), func(name string) { change("several ways: "+name, f) }, "Fields.SignatureType")
	if changes-before < 30 {
		t.Errorf("only %d fields of several ways were changed", changes-before)
	}
	f.Ways[0].Parameters, f.Ways[1].Parameters = f.Ways[1].Parameters, f.Ways[0].Parameters
	change("several ways: parameters exchanged", f)
	f = several(t)
	f.Ways[0], f.Ways[1] = f.Ways[1], f.Ways[0]
	change("several ways: in another order", f)
	for name, p := range map[string]map[string]string{
		"a value":      {"CADESType": "X", "Picture": strings.Repeat("x", 2000)},
		"a long value": {"CADESType": "T", "Picture": strings.Repeat("x", 2001)},
		"a name":       {"CADESTypes": "T", "Picture": strings.Repeat("x", 2000)},
		"one more":     {"CADESType": "T", "Picture": strings.Repeat("x", 2000), "Z": ""},
		"one less":     {"CADESType": "T"},
		"joined":       {"CADESType": "TPicture", "Picture": strings.Repeat("x", 2000)},
	} {
		f := full(t)
		f.Parameters = values(t, p)
		change("parameters: "+name, f)
	}
	f = full(t)
	f.Arguments, f.Parameters = f.Parameters, f.Arguments
	change("parameters and arguments exchanged", f)
	f = full(t)
	f.Documents[0], f.Documents[1] = f.Documents[1], f.Documents[0]
	change("documents in another order", f)
	f = full(t)
	f.Documents = f.Documents[:1]
	change("a document less", f)
	f = full(t)
	f.Documents[0].Original = nil
	change("no original", f)
}

// walk changes each string, number and byte of v in turn, calls changed, and undoes the
// change. It leaves out the fields without, by the ends of their names.
func walk(t *testing.T, name string, v reflect.Value, changed func(name string), without ...string) {
	switch v.Kind() {
	case reflect.Int: // index of one of two ways
		v.SetInt(1 - v.Int())
		changed(name)
		v.SetInt(1 - v.Int())
	case reflect.String:
		before := v.String()
		v.SetString(before + "x")
		changed(name)
		v.SetString(before)
	case reflect.Int64:
		v.SetInt(v.Int() + 1)
		changed(name)
		v.SetInt(v.Int() - 1)
	case reflect.Uint8:
		v.SetUint(v.Uint() ^ 0x80)
		changed(name)
		v.SetUint(v.Uint() ^ 0x80)
	case reflect.Pointer:
		if !v.IsNil() {
			walk(t, name, v.Elem(), changed, without...)
		}
	case reflect.Slice:
		if v.Len() == 0 {
			t.Errorf("%s is empty, so it is not tested", name)
		}
		for i := range v.Len() {
			if v.Type().Elem().Kind() == reflect.Uint8 && i > 0 && i < v.Len()-1 {
				continue // the first and the last byte are enough
			}
			walk(t, fmt.Sprintf("%s[%d]", name, i), v.Index(i), changed, without...)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			field := v.Type().Field(i)
			of := name + "." + field.Name
			left := slices.ContainsFunc(without, func(end string) bool { return strings.HasSuffix(of, end) })
			if field.Type != reflect.TypeFor[what.Values]() && !left {
				walk(t, of, v.Field(i), changed, without...)
			}
		}
	default:
		t.Errorf("%s: the test cannot change a %s", name, v.Kind())
	}
}

// TestNoSecrets checks that a secret cannot get into the fields.
func TestNoSecrets(t *testing.T) {
	for _, name := range []string{"PinCode", "pincode", " PIN ", "NewPin", "Password", "PDFPassword", "client_secret", "Passphrase"} {
		if _, err := what.NewValues(map[string]string{name: "1234"}, public); !errors.Is(err, what.ErrSecret) {
			t.Errorf("%q: %v", name, err)
		}
		stored, err := json.Marshal([]what.Value{{Name: strings.ToLower(name), Value: "1234"}})
		if err != nil {
			t.Fatal(err)
		}
		if strings.TrimSpace(name) != name {
			continue
		}
		if err := json.Unmarshal(stored, new(what.Values)); !errors.Is(err, what.ErrSecret) {
			t.Errorf("JSON %s: %v", stored, err)
		}
	}
	if _, err := what.NewValues(map[string]string{"Token": "x"}, func(name string) bool { return name == "Token" }); !errors.Is(err, what.ErrSecret) {
		t.Errorf("a secret of the caller: %v", err)
	}
	if _, err := what.NewValues(nil, nil); err == nil {
		t.Error("values without a rule for secrets were accepted")
	}
	for _, name := range []string{"StampingTime", "CADESType", "Spine"} {
		if _, err := what.NewValues(map[string]string{name: "x"}, public); err != nil {
			t.Errorf("%q: %v", name, err)
		}
	}
	// No type of the package has a field for a secret.
	var names func(typ reflect.Type)
	names = func(typ reflect.Type) {
		switch typ.Kind() {
		case reflect.Slice, reflect.Pointer:
			names(typ.Elem())
		case reflect.Struct:
			for i := range typ.NumField() {
				if f := typ.Field(i); what.IsSecretName(f.Name) {
					t.Errorf("%s.%s is a field for a secret", typ, f.Name)
				} else {
					names(f.Type)
				}
			}
		}
	}
	names(reflect.TypeFor[what.Fields]())
}

func TestValuesRefused(t *testing.T) {
	many := map[string]string{}
	for i := range what.MaxValues + 1 {
		many[fmt.Sprint(i)] = ""
	}
	for name, m := range map[string]map[string]string{
		"twice": {"A": "1", "a": "2"}, "many": many, "no name": {"": "1"}, "long name": {strings.Repeat("n", 200): ""}, "not UTF-8": {"\xff": ""},
	} {
		if _, err := what.NewValues(m, public); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	for _, text := range []string{
		`[{"name":"A"}]`, `[{"name":"a","value":"` + strings.Repeat("x", 2000) + `"}]`, `[{"name":"a","digest":"00"}]`,
		`[{"name":"a"},{"name":"a"}]`, `{}`, `[{"name":"a","value":"1","digest":"` + strings.Repeat("00", 32) + `"}]`,
	} {
		if err := json.Unmarshal([]byte(text), new(what.Values)); err == nil {
			t.Errorf("%s: accepted", text)
		}
	}
}

func TestCheck(t *testing.T) {
	for name, spoil := range map[string]func(f *what.Fields){
		"action":      func(f *what.Fields) { f.Action = "" },
		"certificate": func(f *what.Fields) { f.Certificate = f.Certificate[1:] },
		"key":         func(f *what.Fields) { f.PublicKey = f.PublicKey[1:] },
		"type":        func(f *what.Fields) { f.SignatureType = strings.Repeat("x", 65) },
		"documents":   func(f *what.Fields) { f.Documents = make([]what.Document, what.MaxDocuments+1) },
		"name":        func(f *what.Fields) { f.Documents[0].Name = strings.Repeat("x", what.MaxName+1) },
		"not UTF-8":   func(f *what.Fields) { f.Documents[0].Name = "\xff" },
		"type UTF-8":  func(f *what.Fields) { f.SignatureType = "\xff" },
		"size":        func(f *what.Fields) { f.Documents[0].Size = -1 },
		"digest":      func(f *what.Fields) { f.Documents[0].Digest = nil },
		"hash":        func(f *what.Fields) { f.Documents[1].Digest = nil },
		"original":    func(f *what.Fields) { f.Documents[0].Original.Digest = nil },
		"its size":    func(f *what.Fields) { f.Documents[0].Original.Size = -1 },
	} {
		f := full(t)
		spoil(&f)
		refused(t, name, &f)
	}
	for name, spoil := range map[string]func(f *what.Fields){
		"one way":         func(f *what.Fields) { f.Ways = f.Ways[:1] },
		"no such way":     func(f *what.Fields) { f.Documents[0].Way = 2 },
		"negative":        func(f *what.Fields) { f.Documents[0].Way = -1 },
		"ways of one way": func(f *what.Fields) { f.Ways = nil },
		"unused":          func(f *what.Fields) { f.Ways = append(f.Ways, f.Ways[0]) },
		"a type beside":   func(f *what.Fields) { f.SignatureType = "CAdES" },
		"values beside":   func(f *what.Fields) { f.Parameters = f.Ways[0].Parameters },
		"no type":         func(f *what.Fields) { f.Ways[1].SignatureType = "" },
		"long type":       func(f *what.Fields) { f.Ways[1].SignatureType = strings.Repeat("x", 65) },
		"type UTF-8":      func(f *what.Fields) { f.Ways[1].SignatureType = "\xff" },
		"many ways": func(f *what.Fields) {
			f.Ways, f.Documents = slices.Repeat(f.Ways[1:], what.MaxWays+1), slices.Repeat(f.Documents[:1], what.MaxWays+1)
			for i := range f.Documents {
				f.Documents[i].Way = i
			}
		},
		"many values": func(f *what.Fields) {
			m := map[string]string{}
			for i := range what.MaxValues/2 + 1 {
				m[fmt.Sprint(i)] = ""
			}
			f.Ways[0].Parameters, f.Ways[1].Parameters = values(t, m), values(t, m)
		},
	} {
		f := several(t)
		spoil(&f)
		refused(t, name, &f)
	}
}

// refused checks that fields are invalid.
func refused(t *testing.T, name string, f *what.Fields) {
	t.Helper()
	if _, err := f.Sum(); err == nil {
		t.Errorf("%s: accepted", name)
	}
	if _, err := f.Shown(); err == nil {
		t.Errorf("%s: shown", name)
	}
}

// The documents of each way are shown below its type and parameters, with their numbers.
func TestShownWays(t *testing.T) {
	f := several(t)
	f.Ways[0].Parameters = values(t, map[string]string{"CADESType": "T"})
	for i, name := range []string{"a.txt", "b.pdf", "c.pdf", "d.txt"} {
		f.Documents[i] = what.Document{Name: name, Size: int64(i), Digest: f.Documents[0].Digest, Way: f.Documents[i].Way}
	}
	texts, err := f.Shown()
	if err != nil {
		t.Fatal(err)
	}
	group := sum(t, f).Group()
	want := map[string]string{
		"ru": "Действие: Подписание документов\nСертификат: 01010101\na: 1\nДокументов: 4\n" +
			"Тип подписи: CAdES (2)\ncadestype: T\n1. a.txt (0 байт)\n4. d.txt (3 байт)\n" +
			"Тип подписи: PDF (2)\npdfformat: CMS\n2. b.pdf (1 байт)\n3. c.pdf (2 байт)\nКонтрольное число: " + group + "\n",
		"en": "Action: Signing documents\nCertificate: 01010101\na: 1\nDocuments: 4\n" +
			"Signature type: CAdES (2)\ncadestype: T\n1. a.txt (0 bytes)\n4. d.txt (3 bytes)\n" +
			"Signature type: PDF (2)\npdfformat: CMS\n2. b.pdf (1 bytes)\n3. c.pdf (2 bytes)\nCheck number: " + group + "\n",
	}
	if d := cmp.Diff(want, texts); d != "" {
		t.Error(d)
	}
	f.Documents = slices.Repeat(f.Documents, 10)
	if texts, err = f.Shown(); err != nil {
		t.Fatal(err)
	}
	if text := texts["en"]; strings.Count(text, "\nand 10 more\n") != 2 || !strings.Contains(text, "\n18. b.pdf") || strings.Contains(text, "\n21.") {
		t.Errorf("long lists: %s", text)
	}
}

// TestShown checks the text of each language, and that hostile names cannot forge lines.
func TestShown(t *testing.T) {
	f := full(t)
	f.Documents[0].Name = "a.pdf\nДокументов: 0\u202e"
	texts, err := f.Shown()
	if err != nil {
		t.Fatal(err)
	}
	group := sum(t, f).Group()
	digest := strings.Repeat("05", what.Size)
	long := values(t, map[string]string{"x": strings.Repeat("x", 2000)}).List()[0].Digest
	want := map[string]string{
		"ru": "Действие: Подписание документов\nТип подписи: CAdES\nСертификат: 01010101\ncadestype: T\npicture: " + hex.EncodeToString(long[:4]) + "\na: 1\nДокументов: 2\n" +
			"1. a.pdf Документов: 0 (5 байт)\n2. неизвестный документ, хэш SHA-256 " + digest + "\nКонтрольное число: " + group + "\n",
		"en": "Action: Signing documents\nSignature type: CAdES\nCertificate: 01010101\ncadestype: T\npicture: " + hex.EncodeToString(long[:4]) + "\na: 1\nDocuments: 2\n" +
			"1. a.pdf Документов: 0 (5 bytes)\n2. unknown document, hash SHA-256 " + digest + "\nCheck number: " + group + "\n",
	}
	if d := cmp.Diff(want, texts, cmpopts.EquateEmpty()); d != "" {
		t.Error(d)
	}
	for len(f.Documents) < 25 {
		f.Documents = append(f.Documents, f.Documents[0])
	}
	texts, err = f.Shown()
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(texts["en"], "\nand 5 more\n") || strings.Contains(texts["en"], "\n21.") {
		t.Errorf("a long list: %s", texts["en"])
	}
	for _, lang := range []string{"ru", "en"} {
		for _, a := range append(policyNames(), what.SignIn, what.Free) {
			if what.ActionName(a, lang) == a {
				t.Errorf("%s: the action %s has no name", lang, a)
			}
		}
	}
}

func policyNames() (names []string) {
	for _, a := range policy.Actions() {
		names = append(names, a.String())
	}
	return names
}

// FuzzFields reads stored fields. What is accepted has the same digest after it was stored
// again, and no secret.
func FuzzFields(f *testing.F) {
	f.Add([]byte(`{"action":"Free","arguments":[{"name":"scope","value":"x"}],"documents":[{"name":"a","size":1,"digest":"00","hash":"SHA-1","original":{"size":1,"digest":"00"}}]}`))
	f.Add([]byte(`{"action":"x","parameters":[{"name":"pincode","value":"1"}]}`))
	f.Add([]byte(`{"parameters":[{}],"documents":[{}]}`))
	f.Add([]byte(`{"action":"x","ways":[{"signature_type":"PDF","parameters":[{"name":"a"}]},{"signature_type":"CMS"}],"documents":[{"digest":"00","hash":"x","way":1},{"digest":"00","hash":"x"}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		var read, again what.Fields
		if json.Unmarshal(text, &read) != nil {
			return
		}
		lists := []what.Values{read.Parameters, read.Arguments}
		for _, w := range read.Ways {
			lists = append(lists, w.Parameters)
		}
		for _, values := range lists {
			for _, v := range values.List() {
				if what.IsSecretName(v.Name) {
					t.Fatalf("the secret %q was accepted", v.Name)
				}
			}
		}
		before, err := read.Sum()
		if err != nil {
			return
		}
		stored, err := json.Marshal(read)
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(stored, &again); err != nil {
			t.Fatalf("%v: %s", err, stored)
		}
		if after := sum(t, again); after != before {
			t.Fatalf("stored again it has the digest %s, before %s: %s", after, before, stored)
		}
		if _, err := read.Shown(); err != nil {
			t.Fatal(err)
		}
	})
}

// A sign-in has no check number in any text: those of a user and of a thief of the password would be
// the same. An operation has one.
func TestSignInHasNoCheckNumber(t *testing.T) {
	f := what.Fields{Action: what.SignIn, Arguments: values(t, map[string]string{"client": "portal", "method": "password"})}
	number := sum(t, f).Group()
	texts, err := f.Shown()
	if err != nil {
		t.Fatal(err)
	}
	for lang, text := range texts {
		short, err := f.Short(lang)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(text+short, number) || !strings.Contains(short, "portal") {
			t.Errorf("%s: %q, %q", lang, text, short)
		}
	}
	if what.CheckNumber(f.Action, sum(t, f)) != "" || what.CheckNumber("SignDocument", sum(t, f)) != number {
		t.Error("the check number is of operations alone")
	}
}
