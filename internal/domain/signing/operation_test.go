// SPDX-License-Identifier: Apache-2.0

package signing

import (
	"strings"
	"testing"

	"tamga/internal/domain/fault"
	"tamga/internal/domain/operation"
	"tamga/sig"
	"tamga/sig/cades"
	"tamga/sig/ooxml"
	"tamga/sig/pdf"
	"tamga/sig/raw"
	"tamga/sig/xmldsig"
)

func TestTemplates(t *testing.T) {
	s := &Operations{Templates: map[string]Template{"t": {Rules: []TemplateRule{
		{Extensions: []string{"pdf"}, Type: "PDF", Params: map[string]string{"PDFFormat": "CMS"}},
		{Extensions: []string{"txt"}, Type: "CAdES", Params: map[string]string{"IsDetached": "True", "CADESType": "BES"}},
	}}}}
	for _, c := range []struct {
		name, askedType string
		params          map[string]string
		want            string // type and parameters; "" is a fault
	}{
		{"a.pdf", "", nil, "PDF map[PDFFormat:CMS]"},
		{"A.B.PDF #002", "pdf", nil, "PDF map[PDFFormat:CMS]"},
		{"a.txt", "", map[string]string{" isdetached": "False"}, "CAdES map[ isdetached:False CADESType:BES]"},
		{"a.txt", "PDF", nil, ""},
		{"a", "", nil, ""},
		{"", "", nil, ""},
		{"pdf", "", nil, ""},
	} {
		how, err := s.ruleOf(&plan{Template: "t", Type: c.askedType, Params: c.params}, &operation.Document{OriginalName: c.name})
		got := ""
		if err == nil {
			got = how.signatureType + " " + sprintMap(how.params)
		}
		if got != c.want || err != nil && !fault.Is(err, fault.InvalidSignatureParams) {
			t.Errorf("%q: %q, %v; want %q", c.name, got, err, c.want)
		}
	}
	if p := s.Templates["t"].Rules[1].Params; p["IsDetached"] != "True" {
		t.Error("a request changed the template")
	}
}

func sprintMap(m map[string]string) string {
	var keys []string
	for _, k := range []string{" isdetached", "CADESType", "IsDetached", "PDFFormat"} {
		if v, ok := m[k]; ok {
			keys = append(keys, k+":"+v)
		}
	}
	return "map[" + strings.Join(keys, " ") + "]"
}

func TestNames(t *testing.T) {
	s := &Service{Formats: sig.Formats{raw.New(), cades.New(), xmldsig.New(), pdf.New(), ooxml.New()}}
	long := strings.Repeat("ж", 300)
	for _, c := range []struct{ name, kind, want string }{
		{"a.sig", "CAdES Cosign", "a.sig"}, {"a.txt.P7S", "cms cosign", "a.txt.P7S"}, {"a.sig", "CAdES Countersign", "a.sig"}, {"a.sig", "CAdES Sign", "a.sig.sig"},
		{long, "CAdES Cosign", long[:2*255]}, {"a.sig", "GOST3410 Cosign", "a.sig.sig"},
		{"a.txt", "CAdES", "a.txt.sig"}, {"a.pdf", "pdf", "a.pdf"}, {"", "XMLDSig", "document"}, {"", "GOST3410", "document.sig"},
		{long, "CMS", long[:2*251] + ".sig"}, {long, "MSOffice", long[:2*255]},
	} {
		kind, added, _ := strings.Cut(c.kind, " ")
		if got := s.resultName(c.name, kind, sig.Params{" cmsSignatureType": added}); got != c.want {
			t.Errorf("%.20q, %s: %q", c.name, c.kind, got)
		}
	}
	if got := describe([]Input{{Name: "a\r\nb\u202etxt"}, {}}); got != "a  b txt and 1 more" {
		t.Errorf("%q", got)
	}
}
