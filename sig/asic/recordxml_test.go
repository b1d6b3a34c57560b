// SPDX-License-Identifier: Apache-2.0

package asic_test

import (
	"bytes"
	"context"
	"encoding/base64"
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

// xmlRecord makes an evidence record in XML (RFC 6283). Its text is written in canonical form, so that no program is needed for it.
type xmlRecord struct {
	chains []string
	stamps []string
	last   string // TimeStamp in canonical form
	hash   *suite.Hash
}

const ersAttr = ` xmlns="urn:ietf:params:xml:ns:ers"`

func (x *xmlRecord) add(t testing.TB, by *sigtest.Services, h *suite.Hash, first [][]byte) {
	t.Helper()
	x.hash = h
	root := first[0]
	if len(first) > 1 {
		sorted := slices.Clone(first)
		slices.SortFunc(sorted, bytes.Compare)
		root = h.Digest(slices.Concat(sorted...)).Sum
	}
	v, err := by.TimeStamp(context.Background(), "", suite.Digest{Hash: h, Sum: root})
	if err != nil {
		t.Fatal(err)
	}
	var values strings.Builder
	for _, sum := range first {
		fmt.Fprintf(&values, "<DigestValue>%s</DigestValue>", base64.StdEncoding.EncodeToString(sum))
	}
	stamp := `><TimeStampToken Type="RFC3161">` + base64.StdEncoding.EncodeToString(v.Token().Raw) + `</TimeStampToken></TimeStamp>`
	x.last = "<TimeStamp" + ersAttr + stamp
	x.stamps = append(x.stamps, fmt.Sprintf(`<ArchiveTimeStamp Order="%d"><HashTree><Sequence Order="1">%s</Sequence></HashTree><TimeStamp%s</ArchiveTimeStamp>`, len(x.stamps)+1, values.String(), stamp))
}

func (x *xmlRecord) renew(t testing.TB, by *sigtest.Services) {
	t.Helper()
	x.add(t, by, x.hash, [][]byte{x.hash.Digest([]byte(x.last)).Sum})
}

func (x *xmlRecord) newChain(t testing.TB, by *sigtest.Services, h *suite.Hash, digests [][]byte) {
	t.Helper()
	x.end()
	before := "<ArchiveTimeStampSequence" + ersAttr + ">" + strings.Join(x.chains, "") + "</ArchiveTimeStampSequence>"
	x.add(t, by, h, append(slices.Clone(digests), h.Digest([]byte(before)).Sum))
}

func (x *xmlRecord) end() {
	if x.stamps != nil {
		x.chains = append(x.chains, fmt.Sprintf(`<ArchiveTimeStampChain Order="%d"><DigestMethod Algorithm="%s"></DigestMethod><CanonicalizationMethod Algorithm="http://www.w3.org/TR/2001/REC-xml-c14n-20010315"></CanonicalizationMethod>%s</ArchiveTimeStampChain>`,
			len(x.chains)+1, x.hash.XML[0], strings.Join(x.stamps, "")))
		x.stamps = nil
	}
}

func (x *xmlRecord) text() string {
	x.end()
	return `<?xml version="1.0"?><EvidenceRecord` + ersAttr + ` Version="1.0"><ArchiveTimeStampSequence>` + strings.Join(x.chains, "") + `</ArchiveTimeStampSequence></EvidenceRecord>`
}

// A record in XML proves the files of its list through renewals, with a document in XML in its canonical form. What is changed in the
// record makes it prove nothing.
func TestEvidenceRecordInXML(t *testing.T) {
	su := suite.GOST2012x256
	rootA, _, first := sigtest.Era(t, su, "A", sigtest.Time, sigtest.Time.AddDate(3, 0, 0))
	rootB, _, second := sigtest.Era(t, su, "B", sigtest.Time.AddDate(2, 0, 0), sigtest.Time.AddDate(9, 0, 0))
	files := [][2]string{{"a.txt", "first"}, {"b.xml", "<b  x = '1'/>"}}
	sums := func(h *suite.Hash) [][]byte {
		return [][]byte{h.Digest([]byte("first")).Sum, h.Digest([]byte(`<b x="1"></b>`)).Sum}
	}
	verify := func(record string, at time.Time) *sig.Report {
		t.Helper()
		r, err := asic.New().Verify(context.Background(), &sig.Check{At: at, Roots: []*x509gost.Certificate{rootA.Certificate, rootB.Certificate}, Document: bytes.NewReader(sigtest.Zip([]sigtest.ZipEntry{
			{Name: "mimetype", Content: mimeE, Store: true}, {Name: "a.txt", Content: "first"}, {Name: "b.xml", Content: files[1][1]},
			{Name: "META-INF/ASiCEvidenceRecordManifest1.xml", Content: listOf("META-INF/evidencerecord1.xml", suite.SHA256, files...)},
			{Name: "META-INF/evidencerecord1.xml", Content: record},
		}, ""))})
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	var one xmlRecord
	one.add(t, first, suite.SHA256, sums(suite.SHA256))
	one.renew(t, first)
	early := one.text()
	one.newChain(t, second, suite.Streebog256, sums(suite.Streebog256))
	one.renew(t, second)
	whole := one.text()
	for name, test := range map[string]struct {
		record string
		years  int
		want   string
	}{
		"renewed in a chain":   {early, 1, "passed : a.txt[0] b.xml[0]"},
		"after its end":        {early, 4, "failed archive-time-stamp-lapsed evidence-record: a.txt[] b.xml[]"},
		"with a second chain":  {whole, 4, "passed : a.txt[0] b.xml[0]"},
		"after the second end": {whole, 10, "failed archive-time-stamp-lapsed evidence-record: a.txt[] b.xml[]"},
		"no time stamp":        {strings.ReplaceAll(early, "TimeStampToken", "Token"), 1, "failed evidence-record: a.txt[] b.xml[]"},
		"another order":        {strings.Replace(whole, `Chain Order="2"`, `Chain Order="3"`, 1), 4, "failed evidence-record: a.txt[] b.xml[]"},
		"a changed chain":      {strings.Replace(whole, "<DigestMethod ", `<DigestMethod Id="x" `, 1), 4, "failed evidence-record: a.txt[] b.xml[]"},
		"a changed digest":     {strings.Replace(whole, "<DigestValue>", "<DigestValue>AA", 1), 4, "failed evidence-record: a.txt[] b.xml[]"},
		"an empty list":        {strings.Replace(whole, "<HashTree>", "<HashTree><Sequence Order=\"1\"></Sequence>", 1), 4, "failed evidence-record: a.txt[] b.xml[]"},
		"another root element": {"<x/>", 1, "failed evidence-record: a.txt[] b.xml[]"},
		"nothing in it":        {`<EvidenceRecord` + ersAttr + `><ArchiveTimeStampSequence/></EvidenceRecord>`, 1, "failed evidence-record: a.txt[] b.xml[]"},
		"no methods":           {`<EvidenceRecord` + ersAttr + `><ArchiveTimeStampSequence><ArchiveTimeStampChain Order="1"/></ArchiveTimeStampSequence></EvidenceRecord>`, 1, "failed evidence-record: a.txt[] b.xml[]"},
	} {
		r := verify(test.record, sigtest.Time.AddDate(test.years, 0, 0))
		if got := describe(r); got != test.want || r.Unsigned() {
			t.Errorf("%s:\n got %s\nwant %s", name, got, test.want)
		}
	}
}
