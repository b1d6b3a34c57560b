// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"tamga/internal/domain/fault"
	"tamga/internal/domain/policy"
)

func TestTSPAddress(t *testing.T) {
	const first, second, stored = "http://tsp.example/tsp.srf", "https://other.example:8443/tsp/", "http://stored.example/tsp"
	registered := policy.Rules{TSPServices: []policy.TSPService{{Name: "a", URL: first}, {Name: "b", URL: second}}}
	open := registered
	open.AllowThirdPartyTSP = true
	for _, c := range []struct {
		rules     policy.Rules
		requested string
		absent    bool
		want      string // the address, or the code of a fault
	}{
		{registered, "", true, fault.InvalidSignatureParams},
		{registered, "", false, first},
		{policy.Rules{}, "", false, stored},
		{policy.Rules{}, "HTTP://Stored.Example:80/tsp/", false, stored},
		{registered, stored, false, stored},
		{registered, second, false, second},
		{registered, "https://OTHER.example:8443/tsp", false, second},
		{registered, "http://tsp.example:80/tsp.srf", false, first},
		{registered, "https://tsp.example/tsp.srf", false, fault.AccessDenied},
		{registered, "http://tsp.example/TSP.srf", false, fault.AccessDenied},
		{registered, "http://third.example/", false, fault.AccessDenied},
		{open, "http://third.example/", false, "http://third.example/"},
		{open, first, false, first},
		{open, "ftp://third.example/", false, fault.InvalidSignatureParams},
		{open, "file:///etc/passwd", false, fault.InvalidSignatureParams},
		{open, "//third.example/", false, fault.InvalidSignatureParams},
		{open, "http:third.example", false, fault.InvalidSignatureParams},
		{open, "http://", false, fault.InvalidSignatureParams},
		{open, "http://:80/", false, fault.InvalidSignatureParams},
		{open, "http://user:word@third.example/", false, fault.InvalidSignatureParams},
		{open, "http://tsp.example@third.example/", false, fault.InvalidSignatureParams},
		{open, "http://third.example/#x", false, fault.InvalidSignatureParams},
		{open, "http://third.example/\x00", false, fault.InvalidSignatureParams},
		{open, "http://third.example/" + strings.Repeat("a", 2048), false, fault.InvalidSignatureParams},
	} {
		s := policy.Service{Rules: c.rules, Store: &denials{services: []policy.TSPService{{Name: "c", URL: stored}}}}
		got, err := s.TSPAddress(t.Context(), c.requested, !c.absent)
		if e, ok := fault.As(err); ok {
			got = e.Code
		} else if err != nil {
			t.Error(err)
		}
		if got != c.want {
			t.Errorf("%q: %q, want %q", c.requested, got, c.want)
		}
	}
	none := policy.Service{Store: &denials{}}
	if _, err := none.TSPAddress(t.Context(), "", true); !fault.Is(err, fault.InvalidSignatureParams) {
		t.Errorf("nothing registered: %v", err)
	}
	failing := policy.Service{Store: &denials{err: errors.New("no connection")}}
	if _, err := failing.TSPAddress(t.Context(), "", true); err == nil {
		t.Error("a store that fails gives an address")
	} else if _, ok := fault.As(err); ok {
		t.Errorf("a store that fails: %v, want its error", err)
	}
}

func TestTSPRegistration(t *testing.T) {
	good := policy.TSPService{Name: "tsp-1", Title: "Служба", URL: "http://tsp.example/", Class: "q", Policy: "1.2.643.2.2.38.4", PerMinute: 1}
	with := func(change func(*policy.TSPService)) policy.TSPService {
		t := good
		change(&t)
		return t
	}
	for _, c := range []struct {
		name string
		t    policy.TSPService
		code string
	}{
		{"good", good, ""},
		{"bare", policy.TSPService{Name: "a", URL: "https://tsp.example"}, ""},
		{"no name", with(func(t *policy.TSPService) { t.Name = "" }), fault.InvalidParameters},
		{"upper case", with(func(t *policy.TSPService) { t.Name = "TSP" }), fault.InvalidParameters},
		{"long name", with(func(t *policy.TSPService) { t.Name = strings.Repeat("a", 65) }), fault.InvalidParameters},
		{"two lines", with(func(t *policy.TSPService) { t.Title = "a\nb" }), fault.InvalidParameters},
		{"no UTF-8", with(func(t *policy.TSPService) { t.Title = "\xff" }), fault.InvalidParameters},
		{"class", with(func(t *policy.TSPService) { t.Class = "a b" }), fault.InvalidParameters},
		{"address", with(func(t *policy.TSPService) { t.URL = "ftp://tsp.example/" }), fault.InvalidParameters},
		{"quota", with(func(t *policy.TSPService) { t.PerMinute = -1 }), fault.InvalidParameters},
		{"arc of the root", with(func(t *policy.TSPService) { t.Policy = "3.1" }), fault.InvalidParameters},
		{"second arc", with(func(t *policy.TSPService) { t.Policy = "1.40" }), fault.InvalidParameters},
		{"one arc", with(func(t *policy.TSPService) { t.Policy = "1" }), fault.InvalidParameters},
		{"leading zero", with(func(t *policy.TSPService) { t.Policy = "1.2.03" }), fault.InvalidParameters},
		{"empty arc", with(func(t *policy.TSPService) { t.Policy = "1..3" }), fault.InvalidParameters},
		{"big second arc", with(func(t *policy.TSPService) { t.Policy = "2.999.1" }), ""},
		{"big arc", with(func(t *policy.TSPService) { t.Policy = "2.25.2147483647" }), ""},
		{"too big arc", with(func(t *policy.TSPService) { t.Policy = "2.25.2147483648" }), fault.InvalidParameters},
		{"sign", with(func(t *policy.TSPService) { t.Policy = "1.2.+3" }), fault.InvalidParameters},
		{"no number", with(func(t *policy.TSPService) { t.Policy = "1.2.x" }), fault.InvalidParameters},
	} {
		store := &denials{}
		err := (&policy.Service{Store: store}).AddTSPService(t.Context(), c.t)
		if c.code == "" && (err != nil || len(store.services) != 1) || c.code != "" && (!fault.Is(err, c.code) || len(store.services) != 0) {
			t.Errorf("%s: %v and %d stored, want %q", c.name, err, len(store.services), c.code)
		}
	}
}

func TestTSPServices(t *testing.T) {
	store := &denials{}
	s := policy.Service{Store: store, Rules: policy.Rules{TSPServices: []policy.TSPService{{Name: "config", URL: "http://config.example/"}}}}
	names := func() (list []string) {
		services, err := s.TSPServices(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, x := range services {
			list = append(list, x.Name)
		}
		return list
	}
	add := func(name, address, code string) {
		t.Helper()
		if err := s.AddTSPService(t.Context(), policy.TSPService{Name: name, URL: address}); (err == nil) != (code == "") || err != nil && !fault.Is(err, code) {
			t.Errorf("%s at %s: %v, want %q", name, address, err, code)
		}
	}
	add("b", "http://b.example", "")
	add("a", "http://a.example", "")
	add("a", "http://other.example", fault.InvalidObjectState)
	add("c", "http://B.example:80/", fault.InvalidObjectState)
	add("config", "http://other.example", fault.InvalidObjectState)
	add("d", "http://config.example", fault.InvalidObjectState)
	if got := names(); !slices.Equal(got, []string{"config", "b", "a"}) {
		t.Errorf("the list is %v", got)
	}
	// A service that another process registered is used at once. The configuration takes
	// precedence.
	store.services = append(store.services, policy.TSPService{Name: "late", URL: "http://late.example"}, policy.TSPService{Name: "twin", URL: "http://config.example"})
	if got := names(); !slices.Equal(got, []string{"config", "b", "a", "late"}) {
		t.Errorf("after a change behind our back: %v", got)
	}
	for name, code := range map[string]string{"config": fault.InvalidObjectState, "unknown": fault.NotFound, "b": ""} {
		if err := s.RemoveTSPService(t.Context(), name); (err == nil) != (code == "") || err != nil && !fault.Is(err, code) {
			t.Errorf("removing %s: %v, want %q", name, err, code)
		}
	}
	if got := names(); !slices.Equal(got, []string{"config", "a", "late"}) {
		t.Errorf("after a removal: %v", got)
	}
	for i := range 300 {
		store.services = append(store.services, policy.TSPService{Name: strings.Repeat("x", i+1), URL: "http://x.example/" + strings.Repeat("x", i)})
	}
	add("more", "http://more.example", fault.InvalidObjectState)
}
