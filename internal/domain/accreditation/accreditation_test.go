// SPDX-License-Identifier: Apache-2.0

package accreditation_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"tamga/internal/adapter/store"
	"tamga/internal/adapter/store/storetest"
	"tamga/internal/domain/accreditation"
	"tamga/internal/domain/fault"
	"tamga/internal/sigtest"
	"tamga/pki/suite"
	"tamga/pki/x509gost"
	"tamga/sig"
	"tamga/sig/xmldsig"
)

// TestImport imports lists in another order, damaged and by another signer. The last good one stays.
func TestImport(t *testing.T) {
	s := suite.GOST2012x256
	root := sigtest.Root(t, s)
	ministry, other := root.Signer(t, s, "Ministry"), root.Signer(t, s, "Other")
	signer := root.Signer(t, s, "Signer")
	now := sigtest.Time
	clock := func() time.Time { return now }
	db := storetest.SQLite(t)
	newService := func() *accreditation.Service {
		return &accreditation.Service{Store: store.TrustLists{DB: db}, Signers: []*x509gost.Certificate{ministry.Certificate}, Now: clock, Every: time.Hour}
	}
	service, another := newService(), newService()
	list := func(by *sigtest.Party, version int, date time.Time, status string) []byte {
		return by.AuthorityList(t, xmldsig.New(), version, date, status, signer.Certificate.NotBefore, root.Certificate)
	}
	quality := func(s *accreditation.Service) string {
		t.Helper()
		r := &sig.Report{Signatures: []sig.Signature{{Signer: signer.Certificate, Chain: []*x509gost.Certificate{signer.Certificate, root.Certificate}, SigningTime: now}}}
		if err := s.Qualify(t.Context(), r, now); err != nil {
			t.Fatal(err)
		}
		if r.Signatures[0].Quality == nil {
			return ""
		}
		return r.Signatures[0].Quality.Code
	}
	if got := quality(service); got != "" {
		t.Errorf("without a list: %q", got)
	}
	day := now.AddDate(0, 0, -40)
	for _, c := range []struct {
		name     string
		document []byte
		older    bool
		why      string // "": it is accepted
		changed  bool
		quality  string
	}{
		{"by another", list(other, 2, day, "Действует"), false, "another key", false, ""},
		{"the first", list(ministry, 2, day, "Действует"), false, "", true, "qualified"},
		{"the same", list(ministry, 2, day, "Действует"), false, "", false, "qualified"},
		{"an earlier version", list(ministry, 1, day.Add(time.Hour), "Прекращена"), false, "older list", false, "qualified"},
		{"an earlier date", list(ministry, 3, day.Add(-time.Hour), "Прекращена"), false, "older list", false, "qualified"},
		{"cut off", list(ministry, 3, day, "Прекращена")[:2000], false, "ends in the middle", false, "qualified"},
		{"not even XML", []byte("<html>"), false, "ends in the middle", false, "qualified"},
		{"a later one", list(ministry, 3, day.Add(time.Hour), "Прекращена"), false, "", true, "advanced-at-issue"},
		{"an earlier one that is wanted", list(ministry, 2, day, "Действует"), true, "", true, "qualified"},
	} {
		r, err := service.Import(t.Context(), bytes.NewReader(c.document), c.older)
		if f, is := fault.As(err); c.why == "" && err != nil || c.why != "" && (!is || f.Code != fault.InvalidContent || !strings.Contains(f.Message, c.why)) {
			t.Errorf("%s: %v, want %q", c.name, err, c.why)
		}
		if err == nil && (r.Changed != c.changed || r.Authorities != 1 || r.Certificates != 1) {
			t.Errorf("%s: %+v", c.name, r)
		}
		if got := quality(service); got != c.quality {
			t.Errorf("%s: %q, want %q", c.name, got, c.quality)
		}
		now = now.Add(time.Minute) // another process sees it within a minute
		if got := quality(another); got != c.quality {
			t.Errorf("%s, in another process: %q, want %q", c.name, got, c.quality)
		}
	}
	none := &accreditation.Service{Store: store.TrustLists{DB: db}, Now: clock}
	if _, err := none.Import(t.Context(), bytes.NewReader(list(ministry, 9, day, "Действует")), false); err == nil || !strings.Contains(err.Error(), "trust_list.signer_files") {
		t.Errorf("without signers: %v", err)
	}
}

// TestRefresh fetches when it is time to, once for all processes, and again soon after a failure.
func TestRefresh(t *testing.T) {
	s := suite.GOST2012x256
	root := sigtest.Root(t, s)
	ministry := root.Signer(t, s, "Ministry")
	now := sigtest.Time
	db := storetest.SQLite(t)
	var fetched int
	var document []byte
	var fails error
	source := func(context.Context) (io.ReadSeeker, func(), error) {
		fetched++
		return bytes.NewReader(document), func() {}, fails
	}
	services := make([]*accreditation.Service, 2)
	for i := range services {
		services[i] = &accreditation.Service{Store: store.TrustLists{DB: db}, Signers: []*x509gost.Certificate{ministry.Certificate}, Now: func() time.Time { return now }, Source: source, Every: 24 * time.Hour}
	}
	document = ministry.AuthorityList(t, xmldsig.New(), 1, now, "Действует", now, root.Certificate)
	for _, c := range []struct {
		after   time.Duration
		fails   error
		why     string
		fetched int
	}{
		{0, errors.New("no route"), "no route", 2}, // each process tries
		{time.Minute, nil, "", 2},
		{time.Hour, nil, "", 3},
		{time.Hour, nil, "", 3},
		{24 * time.Hour, nil, "", 4}, // the same list is noted as checked
		{time.Hour, nil, "", 4},
	} {
		now, fails = now.Add(c.after), c.fails
		for _, s := range services {
			if err := s.Refresh(t.Context()); (err == nil) != (c.why == "") || err != nil && !strings.Contains(err.Error(), c.why) {
				t.Errorf("after %s: %v, want %q", c.after, err, c.why)
			}
		}
		if fetched != c.fetched {
			t.Errorf("after %s it was fetched %d times, want %d", c.after, fetched, c.fetched)
		}
	}
	now, document = now.Add(25*time.Hour), []byte("<html/>")
	if err := services[0].Refresh(t.Context()); err == nil || !strings.Contains(err.Error(), "the stored one stays") {
		t.Errorf("a page instead of a list: %v", err)
	}
	if info, found, err := services[0].Info(t.Context()); err != nil || !found || info.Version != 1 {
		t.Errorf("%+v %v %v", info, found, err)
	}
}
