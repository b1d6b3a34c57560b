// SPDX-License-Identifier: Apache-2.0

package asic_test

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	"tamga/internal/sigtest"
	"tamga/pki/suite"
	"tamga/pki/x509gost"
	"tamga/sig"
	"tamga/sig/asic"
)

// An evidence record proves when the files of its list existed: the signature among them passes after its certificate has ended. A
// record of something else, of a part of the list, or whose last time stamp has ended proves nothing.
func TestEvidenceRecord(t *testing.T) {
	su := suite.GOST2012x256
	root := sigtest.Root(t, su)
	signer := root.Issue(t, su, "Signer", func(c *x509gost.Template) { c.NotBefore, c.NotAfter = sigtest.Time, sigtest.Time.AddDate(0, 1, 0) })
	first, second := func() (a, b *sigtest.Services) {
		rootA, _, a := sigtest.Era(t, su, "A", sigtest.Time, sigtest.Time.AddDate(3, 0, 0))
		rootB, _, b := sigtest.Era(t, su, "B", sigtest.Time.AddDate(2, 0, 0), sigtest.Time.AddDate(9, 0, 0))
		root.Chain = append(root.Chain, rootA.Certificate, rootB.Certificate) // all are trusted
		return a, b
	}()
	good := byHand(t, signer)
	files := [][2]string{{"a.txt", "first"}, {"sub/b%20c.txt", "second"}, {"META-INF/ASiCManifest1.xml", good[4].Content}, {"META-INF/signature1.p7s", good[5].Content}}
	sums := func(h *suite.Hash) (list [][]byte) {
		for _, f := range files {
			list = append(list, h.Digest([]byte(f[1])).Sum)
		}
		return list
	}
	with := func(record []byte, list string) []byte {
		return sigtest.Zip(append(good[:len(good):len(good)], sigtest.ZipEntry{Name: "META-INF/ASiCEvidenceRecordManifest1.xml", Content: list}, sigtest.ZipEntry{Name: "META-INF/evidencerecord1.ers", Content: string(record)}), "")
	}
	list := listOf("META-INF/evidencerecord1.ers", suite.SHA256, files...)
	verify := func(container []byte, at time.Time) *sig.Report {
		t.Helper()
		c := &sig.Check{Document: bytes.NewReader(container), At: at, Roots: append([]*x509gost.Certificate{root.Certificate}, root.Chain...)}
		r, err := asic.New().Verify(context.Background(), c)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	made := func(h *suite.Hash, sums [][]byte, renewed bool) []byte {
		var r sigtest.Record
		r.Add(t, first, h, sums)
		if renewed {
			r.NewChain(t, second, suite.Streebog256, sumsOf(files, suite.Streebog256))
		}
		return r.DER()
	}
	plain, renewed := made(suite.SHA256, sums(suite.SHA256), false), made(suite.SHA256, sums(suite.SHA256), true)
	later := sigtest.Time.AddDate(1, 0, 0)
	for name, test := range map[string]struct {
		container []byte
		at        time.Time
		passes    bool
		finding   string
	}{
		"no record":             {sigtest.Zip(good, ""), later, false, "certificate-expired"},
		"a record":              {with(plain, list), later, true, ""},
		"after its end":         {with(plain, list), sigtest.Time.AddDate(4, 0, 0), false, "archive-time-stamp-lapsed"},
		"renewed":               {with(renewed, list), sigtest.Time.AddDate(4, 0, 0), true, ""},
		"after the second end":  {with(renewed, list), sigtest.Time.AddDate(10, 0, 0), false, "archive-time-stamp-lapsed"},
		"of other files":        {with(made(suite.SHA256, sums(suite.SHA256)[:3], false), list), later, false, "evidence-record"},
		"of a part of the list": {with(plain, listOf("META-INF/evidencerecord1.ers", suite.SHA256, files[:3]...)), later, false, "evidence-record"},
		"without a list":        {with(plain, "<a/>"), later, false, "evidence-record"},
		"cut":                   {with(plain[:len(plain)-1], list), later, false, "evidence-record"},
	} {
		r := verify(test.container, test.at)
		if got := describe(r); r.Passed() != test.passes || !strings.Contains(got, test.finding) {
			t.Errorf("%s: %s", name, got)
		}
		if test.passes {
			s := &r.Signatures[0]
			if len(r.Signatures) != 1 || s.Level != "BES" || !s.BestTime.Equal(s.TimeStamps[0].Time) {
				t.Errorf("%s: %+v", name, s)
			}
			if h, ok := s.GoodUntil(&sig.Check{At: test.at}); !ok || h.Until.Before(test.at) {
				t.Errorf("%s: good until %+v", name, h)
			}
		}
	}
	// A record of files alone.
	var alone sigtest.Record
	alone.Add(t, first, suite.SHA256, [][]byte{suite.SHA256.Digest([]byte("first")).Sum})
	single := []sigtest.ZipEntry{{Name: "mimetype", Content: mimeS, Store: true}, {Name: "a.txt", Content: "first"}, {Name: "META-INF/evidencerecord.ers", Content: string(alone.DER())}}
	r := verify(sigtest.Zip(single, ""), later)
	if got := describe(r); got != "passed : a.txt[0]" || r.Signatures[0].Level != sig.LevelDocumentStamp {
		t.Errorf("a record of a file: %s", got)
	}
	single[1].Content = "First"
	if r := verify(sigtest.Zip(single, ""), later); r.Verdict() != sig.Failed || r.Unsigned() {
		t.Errorf("a record of another file: %s", describe(r))
	}
}

func sumsOf(files [][2]string, h *suite.Hash) (list [][]byte) {
	for _, f := range files {
		list = append(list, h.Digest([]byte(f[1])).Sum)
	}
	return list
}
