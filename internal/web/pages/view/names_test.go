// SPDX-License-Identifier: Apache-2.0

package view

import (
	"testing"

	"tamga/internal/domain/keys"
	"tamga/pki/x509gost"
)

func TestPersonIn(t *testing.T) {
	for name, want := range map[string]string{
		"CN=Demo User,C=RU":         "Demo User",
		"C=RU,O=Works,CN=Demo User": "Demo User (Works)",
		"CN=Works,O=Works":          "Works",
		`O=A\,CN=b,CN=c`:            "c (A,CN=b)",
		`CN=a\+O=b`:                 "a+O=b",
		`CN=a+O=b`:                  "a (b)",
		`CN=\ a\0Ab\ `:              "a b",
		"CN=a\u202Eb":               "a b",
		`CN=<img src=x>`:            "<img src=x>",
		"CN=a,CN=b":                 "CN=a,CN=b", // which of them is it?
		"CN=":                       "CN=",
		"CN=\u200b":                 "CN=[U+200B]",
		"SNILS=12345678901":         "SNILS=12345678901",
		"":                          "",
		`CN=a\`:                     `a\`,
		`CN=a\4`:                    "a4",
	} {
		if got := PersonIn(name); got != want {
			t.Errorf("%q is %q, want %q", name, got, want)
		}
	}
	// The names of certificates are read as they are written.
	for _, value := range []string{`a"b`, `,`, `\`, "+x+", " a ", "#1", "Общество <имя>; и\nдругое"} {
		name, err := x509gost.BuildName([]x509gost.Attribute{{OID: x509gost.OIDCommonName, Value: value}, {OID: x509gost.OIDOrganization, Value: "o" + value}})
		if err != nil {
			t.Fatal(err)
		}
		for attribute, want := range map[string]string{"CN": value, "O": "o" + value} {
			if got := partsOf(name.String(), attribute); len(got) != 1 || got[0] != want {
				t.Errorf("%s has the %s %q, want %q", name, attribute, got, want)
			}
		}
	}
}

// TestVisible checks that no character of an untrusted text hides what a text says.
func TestVisible(t *testing.T) {
	for text, want := range map[string]string{
		"": "", "Иван\n<b> 👍": "Иван\n<b> 👍", "CN=\u202egpj.exe": "CN=[U+202E]gpj.exe", "a\u200bb\x00\u2028": "a[U+200B]b[U+0000][U+2028]",
	} {
		if got := Visible(text); got != want {
			t.Errorf("%q is %q, want %q", text, got, want)
		}
	}
	if got := PersonIn("CN=a\u202e,CN=b"); got != "CN=a[U+202E],CN=b" {
		t.Errorf("a name that is returned whole is %q", got)
	}
}

func TestShortSerial(t *testing.T) {
	for serial, want := range map[string]string{"": "", "0A": "0A", "0123456789AB": "0123456789AB", "0123456789ABCDEF": "…89ABCDEF"} {
		if got := shortSerial(serial); got != want {
			t.Errorf("%q is %q, want %q", serial, got, want)
		}
	}
}

// TestSuites checks that every kind of key that a person can have is called by words.
func TestSuites(t *testing.T) {
	for _, w := range Languages {
		for _, name := range keys.Suites() {
			if w.Suite(name) == name {
				t.Errorf("%s: no words for %s", w.Language, name)
			}
		}
	}
}
