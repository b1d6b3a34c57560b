package signing

import (
	"context"
	"maps"
	"testing"

	"tamga/internal/domain/fault"
	"tamga/pki/suite"
)

// TestStampAddress: the policy decides the address before a format sees it, and
// only where a time stamp is needed.
func TestStampAddress(t *testing.T) {
	s, _ := newService(t, suite.GOST2012x256)
	const other = "http://other.example/"
	for _, c := range []struct {
		params map[string]string
		want   map[string]string // nil is refused
	}{
		{nil, map[string]string{}},
		{map[string]string{"CADESType": "BES", "TSPAddress": other}, map[string]string{"CADESType": "BES", "TSPAddress": other}},
		{map[string]string{"CADESType": "0"}, map[string]string{"CADESType": "0"}},
		{map[string]string{"CADESType": "T", "TSPAddress": ""}, map[string]string{"CADESType": "T", "TSPAddress": stampHere}},
		{map[string]string{"cadestype ": " xlt1", " tspAddress": " "}, map[string]string{"cadestype ": " xlt1", "TSPAddress": stampHere}},
		{map[string]string{"CADESType": "1", "TSPAddress": stampHere}, map[string]string{"CADESType": "1", "TSPAddress": stampHere}},
		{map[string]string{"CADESType": "2", "TSPAddress": other}, nil},
		{map[string]string{"CADESType": "t"}, nil},
		{map[string]string{"CADESType": "XLT1"}, nil},
	} {
		given := maps.Clone(c.params)
		terms, err := s.terms(context.Background(), "CAdES", c.params)
		switch {
		case c.want == nil:
			if !fault.Is(err, fault.InvalidSignatureParams) {
				t.Errorf("%v: got %v", c.params, err)
			}
		case err != nil || !maps.Equal(terms.params, c.want):
			t.Errorf("%v: got %v, %v", c.params, terms, err)
		}
		if !maps.Equal(given, c.params) {
			t.Errorf("the client's parameters were changed to %v", c.params)
		}
	}
}
