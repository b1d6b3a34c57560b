// SPDX-License-Identifier: Apache-2.0

package asic_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"tamga/internal/sigtest"
	"tamga/pki/suite"
	"tamga/pki/x509gost"
	"tamga/sig"
	"tamga/sig/asic"
)

// stampOf returns a time stamp over a text.
func stampOf(t testing.TB, services *sigtest.Services, text string) string {
	t.Helper()
	v, err := services.TimeStamp(context.Background(), "", suite.SHA256.Digest([]byte(text)))
	if err != nil {
		t.Fatal(err)
	}
	return string(v.Token().Raw)
}

// asZip returns the entries of a container as entries to write.
func asZip(t testing.TB, container []byte) (all []sigtest.ZipEntry) {
	for _, e := range entries(t, container) {
		all = append(all, sigtest.ZipEntry{Name: e.name, Content: e.content, Store: e.method == 0})
	}
	return all
}

// A time stamp over the file of ASiC-S, or over a list of ASiC-E, is a row of its own. It fails if it is of something
// else.
func TestTimeStampAlone(t *testing.T) {
	root := sigtest.Root(t, suite.ECDSAP256)
	services := sigtest.NewServices(t, root)
	list := listOf("META-INF/timestamp.tst", suite.SHA256, [2]string{"a", "first"}, [2]string{"b", "second"})
	single := []sigtest.ZipEntry{{Name: "mimetype", Content: mimeS, Store: true}, {Name: "a", Content: "first"}, {Name: "META-INF/timestamp.tst", Content: stampOf(t, services, "first")}}
	several := []sigtest.ZipEntry{
		{Name: "mimetype", Content: mimeE, Store: true}, {Name: "a", Content: "first"}, {Name: "b", Content: "second"},
		{Name: "META-INF/ASiCManifest.xml", Content: list}, {Name: "META-INF/timestamp.tst", Content: stampOf(t, services, list)},
	}
	change := func(entries []sigtest.ZipEntry, name, content string) []sigtest.ZipEntry {
		return edited(entries, name, func(e *sigtest.ZipEntry) { e.Content = content })
	}
	for _, c := range []struct {
		name    string
		entries []sigtest.ZipEntry
		want    string
	}{
		{"a file", single, "passed : a[0]"},
		{"a list", several, "passed : a[0] b[0]"},
		{"another file", change(single, "a", "First"), "failed covers-part digest-mismatch file-not-covered: a[]"},
		{"another file of the list", change(several, "b", "Second"), "failed covers-part digest-mismatch file-not-covered: a[] b[]"},
		{"another list", change(several, "META-INF/ASiCManifest.xml", listOf("META-INF/timestamp.tst", suite.SHA256, [2]string{"a", "first"})), "failed covers-part digest-mismatch file-not-covered: a[] b[]"},
		{"no list", without(several, "META-INF/ASiCManifest.xml"), "indeterminate covers-part file-not-covered manifest-missing: a[] b[]"},
		{"no token", change(single, "META-INF/timestamp.tst", "x"), "failed signature-malformed: a[]"},
	} {
		r := verified(t, root, sigtest.Zip(c.entries, ""))
		if got := describe(r); got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.name, got, c.want)
		}
		if len(r.Signatures) == 1 && r.Signatures[0].Level != "DocTimeStamp" {
			t.Errorf("%s: level %s", c.name, r.Signatures[0].Level)
		}
	}
}

// renewed adds an archive time stamp with a number over all entries.
func renewed(t testing.TB, services *sigtest.Services, all []sigtest.ZipEntry, number int, h *suite.Hash) []sigtest.ZipEntry {
	t.Helper()
	var files [][2]string
	for _, e := range all[1:] {
		files = append(files, [2]string{strings.ReplaceAll(strings.ReplaceAll(e.Name, "%", "%25"), "&", "%26"), e.Content})
	}
	stamp := fmt.Sprintf("META-INF/timestamp%03d.tst", number)
	list := listOf(stamp, h, files...)
	return append(slices.Clone(all), sigtest.ZipEntry{Name: fmt.Sprintf("META-INF/ASiCArchiveManifest%03d.xml", number), Content: list},
		sigtest.ZipEntry{Name: stamp, Content: stampOf(t, services, list)})
}

// An archive time stamp proves nothing after its certificate has ended, unless a later one was made before. Then the
// time stamps inside of the signature prove nothing either.
func TestArchiveLapses(t *testing.T) {
	su := suite.ECDSAP256
	year := func(n int) time.Time { return sigtest.Time.AddDate(n, 0, 0) }
	first, sub, services := sigtest.Era(t, su, "A", year(0), year(11))
	second, _, later := sigtest.Era(t, su, "B", year(9), year(20))
	later.Now = later.Now.Add(time.Hour)
	signer := sub.Issue(t, su, "Signer", func(c *x509gost.Template) { c.NotBefore, c.NotAfter = year(0), year(1) })
	at := func(entries []sigtest.ZipEntry, when time.Time) *sig.Report {
		t.Helper()
		r, err := asic.New().Verify(context.Background(), &sig.Check{
			Document: sigtest.Document(sigtest.Zip(entries, "")), At: when,
			Roots: []*x509gost.Certificate{first.Certificate, second.Certificate}, Intermediates: []*x509gost.Certificate{sub.Certificate},
		})
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	for _, m := range []mode{{"E", "CAdES"}, {"E", "XAdES"}} {
		for _, level := range []string{"BES", "T"} {
			key := map[string]string{"CAdES": "CADESType", "XAdES": "XAdESType"}[m.format]
			job := m.job(key, level, "TSPAddress", "http://tsp")
			job.Evidence = services
			made := asZip(t, sigtest.Make(t, asic.New(), signer, job))
			archived := renewed(t, services, made, 1, suite.SHA256)
			twice := renewed(t, later, archived, 2, suite.SHA256)
			for _, c := range []struct {
				name    string
				entries []sigtest.ZipEntry
				year    int
				passed  bool
				lapsed  bool
			}{
				{"archived", archived, 5, true, false},
				{"not renewed", archived, 12, false, true},
				{"renewed", twice, 12, true, false},
				{"not renewed again", twice, 21, false, true},
			} {
				r := at(c.entries, year(c.year))
				codes := describe(r)
				if r.Passed() != c.passed || strings.Contains(codes, "archive-time-stamp-lapsed") != c.lapsed {
					t.Errorf("%s %s, %s: %s", m, level, c.name, codes)
				}
				if c.passed && r.Signatures[0].BestTime.Sub(sigtest.Time) > time.Hour {
					t.Errorf("%s %s, %s: best time %s", m, level, c.name, r.Signatures[0].BestTime)
				}
			}
		}
	}
	// One by a service that is not trusted, beside a good certificate, is named.
	_, _, foreign := sigtest.Era(t, su, "C", year(0), year(11))
	made := asZip(t, sigtest.Make(t, asic.New(), signer, mode{"E", "CAdES"}.job()))
	r := at(renewed(t, foreign, made, 1, suite.SHA256), year(0))
	if !r.Passed() || !slices.ContainsFunc(r.Signatures[0].Findings, func(f sig.Finding) bool { return strings.Contains(f.Text, "proves no time") }) {
		t.Errorf("not trusted: %s, %+v", describe(r), r.Signatures[0].Findings)
	}
}

// A time stamp over a list proves nothing about files whose digests in the list could be forged.
func TestWeakList(t *testing.T) {
	su := suite.ECDSAP256
	root := sigtest.Root(t, su)
	services := sigtest.NewServices(t, root)
	signer := root.Issue(t, su, "Signer", func(c *x509gost.Template) { c.NotAfter = sigtest.Time.AddDate(1, 0, 0) })
	made := asZip(t, sigtest.Make(t, asic.New(), signer, mode{"E", "CAdES"}.job()))
	for _, c := range []struct {
		hash *suite.Hash
		want bool
	}{{suite.SHA256, true}, {suite.SHA1, false}, {suite.MD5, false}} {
		r, err := asic.New().Verify(context.Background(), &sig.Check{
			Document: sigtest.Document(sigtest.Zip(renewed(t, services, made, 1, c.hash), "")),
			Roots:    []*x509gost.Certificate{root.Certificate}, At: sigtest.Time.AddDate(2, 0, 0),
		})
		if err != nil {
			t.Fatal(err)
		}
		s := &r.Signatures[0]
		if r.Passed() != c.want || (len(s.TimeStamps) == 1) != c.want || strings.Contains(describe(r), sig.CodeWeak) == c.want {
			t.Errorf("archived by %s: %s, best time %s", c.hash.Name, describe(r), s.BestTime)
		}
		list := listOf("META-INF/timestamp.tst", c.hash, [2]string{"a", "first"})
		r = verified(t, root, sigtest.Zip([]sigtest.ZipEntry{
			{Name: "mimetype", Content: mimeE, Store: true}, {Name: "a", Content: "first"},
			{Name: "META-INF/ASiCManifest.xml", Content: list}, {Name: "META-INF/timestamp.tst", Content: stampOf(t, services, list)},
		}, ""))
		if got := describe(r); (got == "passed : a[0]") != c.want || !c.want && got != "indeterminate covers-part digest-algorithm-weak file-not-covered: a[]" {
			t.Errorf("stamped by %s: %s", c.hash.Name, got)
		}
	}
}

// An archive time stamp over a list with a signature proves when the signature existed and makes it an archive level.
// A broken one is left out and named, and so is one of another list.
func TestArchiveTimeStamp(t *testing.T) {
	root := sigtest.Root(t, suite.ECDSAP256)
	signer := root.Issue(t, suite.ECDSAP256, "Signer", func(c *x509gost.Template) { c.NotAfter = sigtest.Time.AddDate(1, 0, 0) })
	services := sigtest.NewServices(t, root)
	m := mode{"E", "CAdES"}
	made := func(level string) []sigtest.ZipEntry {
		job := m.job("CADESType", level, "TSPAddress", "http://tsp")
		job.Evidence = services
		return asZip(t, sigtest.Make(t, asic.New(), signer, job))
	}
	archived := func(all []sigtest.ZipEntry) []sigtest.ZipEntry { return renewed(t, services, all, 1, suite.SHA256) }
	basic, long := archived(made("BES")), archived(made("XLT1"))
	at := func(container []byte, when time.Time) *sig.Report {
		t.Helper()
		r, err := asic.New().Verify(context.Background(), &sig.Check{Document: sigtest.Document(container), Roots: []*x509gost.Certificate{root.Certificate}, At: when})
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	r := at(sigtest.Zip(long, ""), sigtest.Time)
	if s := r.Signatures[0]; !r.Passed() || len(r.Signatures) != 1 || s.Level != "A" || s.TimeStamps[len(s.TimeStamps)-1].Kind != "archive" {
		t.Fatalf("%s, %+v", describe(r), r.Signatures)
	}
	// The certificate of the signer ends, and the time stamp proves that the signature is older.
	late := signer.Certificate.NotAfter.Add(time.Hour)
	if r := at(sigtest.Zip(basic, ""), late); r.Signatures[0].BestTime.After(signer.Certificate.NotAfter) || r.Signatures[0].Level != "BES" {
		t.Errorf("%s, best time %s", describe(r), r.Signatures[0].BestTime)
	}
	if r := at(sigtest.Zip(basic[:len(basic)-2], ""), late); r.Passed() {
		t.Error("a signature of an ended certificate passes without a time stamp")
	}
	// Broken time stamps.
	for name, change := range map[string]func(*sigtest.ZipEntry){
		"META-INF/timestamp001.tst":           func(e *sigtest.ZipEntry) { e.Content = stampOf(t, services, "another list") },
		"META-INF/ASiCArchiveManifest001.xml": func(e *sigtest.ZipEntry) { e.Content = strings.Replace(e.Content, "<asic:SigR", " <asic:SigR", 1) },
	} {
		r := at(sigtest.Zip(edited(long, name, change), ""), sigtest.Time)
		if !r.Passed() || r.Signatures[0].Level != "XLT1" || !slices.Contains(r.Headlines(), "an invalid time stamp was left out") {
			t.Errorf("%s: %s at level %s, %q", name, describe(r), r.Signatures[0].Level, r.Headlines())
		}
		if r := at(sigtest.Zip(edited(basic, name, change), ""), late); r.Passed() {
			t.Errorf("%s: a broken time stamp proves a time", name)
		}
	}
	// A signature that was changed after the stamp is not covered by it.
	other := made("BES")
	mixed := edited(basic, "META-INF/signature001.p7s", func(e *sigtest.ZipEntry) { e.Content = detached(t, signer, other[4].Content) })
	if r := at(sigtest.Zip(mixed, ""), late); r.Passed() || !r.Signatures[0].BestTime.Equal(late) {
		t.Errorf("another signature: %s, best time %s", describe(r), r.Signatures[0].BestTime)
	}
	// One more signature in ASiC-S would break an archive time stamp over the entry.
	single := mode{"S", "CAdES"}
	covered := archived(asZip(t, sigtest.Make(t, asic.New(), signer, single.job())))
	_, err := sigtest.Try(t, asic.New(), signer, &sig.Job{Document: sigtest.Document(sigtest.Zip(covered, "")), Params: sig.Params{"CmsSignatureType": "Cosign"}})
	if !strings.Contains(refusal(err), "archive time stamp") {
		t.Errorf("a covered entry was changed: %v", err)
	}
}
