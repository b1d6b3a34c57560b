// SPDX-License-Identifier: Apache-2.0

package cades_test

import (
	"encoding/asn1"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"testing"

	"tamga/internal/sigtest"
	"tamga/pki/suite"
	"tamga/sig"
	"tamga/sig/cades"
)

func TestAuthenticatedAttributes(t *testing.T) {
	s := suite.GOST2012x256
	root := sigtest.Root(t, s)
	p := root.Signer(t, s, "Signer")
	one, two := asn1.ObjectIdentifier{1, 2, 643, 100, 1}, asn1.ObjectIdentifier{2, 999, 4294967}
	object := `{ "1.2.643.100.1": "BAMBAgM=", "2.999.4294967": "MAoM\r\nCNC/0YDQuNC8" }`
	object = strings.ReplaceAll(object, `\r\n`, "") // JSON has no line breaks inside strings
	for name, value := range map[string]string{
		"object":         object,
		"Base64":         base64.StdEncoding.EncodeToString([]byte(object)),
		"Base64 in rows": base64.StdEncoding.EncodeToString([]byte(object))[:20] + "\r\n" + base64.StdEncoding.EncodeToString([]byte(object))[20:],
	} {
		for _, kind := range []string{"Sign", "Cosign", "Countersign"} {
			job := &sig.Job{Document: sigtest.Document(text), Params: sig.Params{"AuthenticatedAttributes": value, "CmsSignatureType": kind}}
			if kind != "Sign" {
				job.Document = sigtest.Document(sign(t, p, 0))
			}
			message := sigtest.Make(t, cades.New(), p, job)
			if r := verify(t, message, nil, root); !r.Passed() {
				t.Fatalf("%s %s: %v", name, kind, sigtest.Codes(r))
			}
			m := mustParse(t, message)
			si := m.Signers[len(m.Signers)-1]
			if kind == "Countersign" {
				list, err := si.Countersignatures()
				if err != nil {
					t.Fatal(err)
				}
				si = list[0]
			}
			a, ok1, _ := si.SignedAttribute(one)
			b, ok2, _ := si.SignedAttribute(two)
			if !ok1 || !ok2 || !slices.Equal(a, []byte{4, 3, 1, 2, 3}) || string(b) != "0\n\f\bприм" {
				t.Errorf("%s %s: %x %q", name, kind, a, b)
			}
		}
	}
	if _, err := sigtest.Try(t, cades.New(), p, &sig.Job{Document: sigtest.Document(text), Params: sig.Params{"AuthenticatedAttributes": "e30="}}); err != nil {
		t.Errorf("an empty object: %v", err)
	}
}

func TestAuthenticatedAttributesRefused(t *testing.T) {
	s := suite.ECDSAP256
	p := sigtest.Root(t, s).Signer(t, s, "Signer")
	many := make([]string, 33)
	for i := range many {
		many[i] = fmt.Sprintf(`"1.2.%d":"BQA="`, i)
	}
	tests := []struct{ name, value, text string }{
		{"no JSON", "hello", "neither"},
		{"a list", "WyJhIl0=", "not a JSON object"},
		{"cut short", `{"1.2.3":"BQA="`, "well-formed"},
		{"data after", `{"1.2.3":"BQA="} x`, "after"},
		{"a number", `{"1.2.3":5}`, "not a text"},
		{"an object inside", `{"1.2.3":{"a":"b"}}`, "not a text"},
		{"twice", `{"1.2.3":"BQA=","1.2.3":"BQA="}`, "twice"},
		{"no Base64", `{"1.2.3":"*"}`, "not Base64"},
		{"no element", `{"1.2.3":""}`, "DER"},
		{"two elements", `{"1.2.3":"BQAFAA=="}`, "DER"},
		{"an element cut short", `{"1.2.3":"BAU="}`, "DER"},
		{"an end mark", `{"1.2.3":"AAM0000="}`, "DER"},
		{"an indefinite length", `{"1.2.3":"MIAFAAAA"}`, "DER"},
		{"a long length", `{"1.2.3":"BIEBAA=="}`, "DER"},
		{"an empty name", `{"":"BQA="}`, "identifier"},
		{"one arc", `{"1":"BQA="}`, "identifier"},
		{"a first arc of 3", `{"3.1":"BQA="}`, "identifier"},
		{"a second arc of 40", `{"1.40":"BQA="}`, "identifier"},
		{"a zero in front", `{"1.02":"BQA="}`, "identifier"},
		{"a sign", `{"1.+2":"BQA="}`, "identifier"},
		{"a huge arc", `{"1.2.99999999999":"BQA="}`, "identifier"},
		{"too many", "{" + strings.Join(many, ",") + "}", "more than 32"},
		{"too long", strings.Repeat(" ", 100) + "{" + strings.Repeat(" ", 200<<10) + "}", "at most"},
		{"a long value", `{"1.2.3":"` + base64.StdEncoding.EncodeToString(append([]byte{4, 0x82, 0x9c, 0x40}, make([]byte, 40000)...)) + `"}`, "at most"},
	}
	for _, oid := range []string{"3", "4", "5", "6", "16.2.12", "16.2.14", "16.2.21", "16.2.22", "16.2.23", "16.2.24", "16.2.25", "16.2.26", "16.2.27", "16.2.47", "16.2.48"} {
		tests = append(tests, struct{ name, value, text string }{oid, `{"1.2.840.113549.1.9.` + oid + `":"BQA="}`, "leave it out"})
	}
	for _, test := range tests {
		_, err := sigtest.Try(t, cades.New(), p, &sig.Job{Document: sigtest.Document(text), Params: sig.Params{"AuthenticatedAttributes": test.value}})
		if !slices.Equal(sigtest.Faults(err), []string{"AuthenticatedAttributes"}) || !strings.Contains(err.Error(), test.text) {
			t.Errorf("%s: %v, want %q", test.name, err, test.text)
		}
	}
}
