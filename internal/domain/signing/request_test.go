// SPDX-License-Identifier: Apache-2.0

package signing

import (
	"context"
	"fmt"
	"io"
	"maps"
	"testing"

	"tamga/internal/domain/fault"
	"tamga/pki/chain"
	"tamga/pki/suite"
	"tamga/sig"
	"tamga/sig/pdf"
	"tamga/sig/xmldsig"
)

// TestStampAddress checks that the policy decides the address before a format sees it,
// and only if a time stamp is needed.
func TestStampAddress(t *testing.T) {
	s, _ := newService(t, suite.GOST2012x256)
	s.Formats = append(s.Formats, xmldsig.New(), pdf.New())
	const other = "http://other.example/"
	for _, c := range []struct {
		params map[string]string
		want   map[string]string // nil: refused
	}{
		{nil, map[string]string{}},
		{map[string]string{"CADESType": "BES", "TSPAddress": other}, map[string]string{"CADESType": "BES", "TSPAddress": other}},
		{map[string]string{"CADESType": "0"}, map[string]string{"CADESType": "0"}},
		{map[string]string{"CADESType": "T", "TSPAddress": ""}, map[string]string{"CADESType": "T", "TSPAddress": stampHere}},
		{map[string]string{"cadestype ": " xlt1", " tspAddress": " "}, map[string]string{"cadestype ": " xlt1", "TSPAddress": stampHere}},
		{map[string]string{"CADESType": "1", "TSPAddress": stampHere}, map[string]string{"CADESType": "1", "TSPAddress": stampHere}},
		{map[string]string{"CADESType": "2", "TSPAddress": other}, nil},
		{map[string]string{"XAdESType": "T", "TSPAddress": other}, nil},
		{map[string]string{"PDFFormat": "0", "TSPAddress": other}, nil},
		{map[string]string{"PDFFormat": "cades", "TSPAddress": ""}, map[string]string{"PDFFormat": "cades", "TSPAddress": stampHere}},
		{map[string]string{"PDFFormat": "CMS", "TSPAddress": other}, map[string]string{"PDFFormat": "CMS", "TSPAddress": other}},
		{map[string]string{"CADESType": "t"}, nil},
		{map[string]string{"CADESType": "XLT1"}, nil},
	} {
		given := maps.Clone(c.params)
		got, err := s.request(context.Background(), "CAdES", c.params)
		switch {
		case c.want == nil:
			if !fault.Is(err, fault.InvalidSignatureParams) {
				t.Errorf("%v: got %v", c.params, err)
			}
		case err != nil || !maps.Equal(got.decided(), c.want):
			t.Errorf("%v: got %v, %v", c.params, got, err)
		}
		if !maps.Equal(given, c.params) {
			t.Errorf("the client's parameters were changed to %v", c.params)
		}
	}
}

// TestTranslate checks that each sentinel error of the formats and of their evidence
// becomes the fault on which the client can act, and that other errors stay internal.
func TestTranslate(t *testing.T) {
	for _, c := range []struct {
		err  error
		code string
	}{
		{&sig.ErrParams{Faults: []sig.Fault{{Key: "Hash", Text: "x"}}}, fault.InvalidSignatureParams},
		{&sig.ErrDocument{What: "Document", Text: "is no message"}, fault.InvalidContent},
		{&sig.ErrDocument{What: "Document", Text: "is no XML", OtherKind: true}, fault.Failed},
		{&sig.ErrRoom{Need: 1}, fault.Failed},
		{&sig.ErrEvidence{What: "time stamp", Text: "the service does not answer"}, fault.Failed},
		{fmt.Errorf("revocation: %w", chain.ErrRevoked), fault.InvalidCertificate},
	} {
		got, ok := fault.As(translate(c.err))
		if !ok || got.Code != c.code {
			t.Errorf("%v becomes %v, want %s", c.err, got, c.code)
		}
	}
	if _, ok := fault.As(translate(io.ErrUnexpectedEOF)); ok {
		t.Error("a failing disk becomes a fault of the client")
	}
}
