// SPDX-License-Identifier: Apache-2.0

package pdf

import (
	"bytes"
	"testing"

	"tamga/internal/sigtest"
	"tamga/pki/suite"
	"tamga/pki/x509gost"
	"tamga/sig"
)

// A later signature covers the earlier one, so its time stamp proves that the earlier one existed: the certificate of the
// earlier signer may end. A later signature that does not hold, or whose signer is not trusted, proves nothing.
func TestLaterSignatureProves(t *testing.T) {
	su := suite.GOST2012x256
	root := sigtest.Root(t, su)
	services := sigtest.NewServices(t, root)
	brief := root.Issue(t, su, "First", func(c *x509gost.Template) { c.NotBefore, c.NotAfter = sigtest.Time, sigtest.Time.AddDate(0, 1, 0) })
	second := root.Signer(t, su, "Second")
	sign := func(data []byte, p *sigtest.Party, format string) []byte {
		return sigtest.Make(t, New(), p, &sig.Job{Document: bytes.NewReader(data), Evidence: services, Params: sig.Params{"PDFFormat": format, "TSPAddress": ""}})
	}
	first := sign(document{}.build(), brief, "CMS")
	later := sigtest.Time.AddDate(0, 6, 0)
	if r := verifiedAt(t, sign(first, second, "CMS"), later, root); r.Verdict() != sig.Indeterminate || r.Conclusion().Sub != sig.OutOfBoundsNoPOE {
		t.Fatalf("without a time stamp: %s", say(r))
	}
	data := sign(first, second, "CAdEST")
	r := verifiedAt(t, data, later, root)
	if !r.Passed() || !r.Signatures[0].BestTime.Equal(r.Signatures[1].TimeStamps[0].Time) || r.Signatures[0].Level != "BES" && r.Signatures[0].Level != "CMS" {
		t.Errorf("level %s, best time %s: %s", r.Signatures[0].Level, r.Signatures[0].BestTime, say(r))
	}
	other := sigtest.Root(t, suite.GOST2012x512).Signer(t, su, "Other")
	if r := verifiedAt(t, sign(first, other, "CAdEST"), later, root); !r.Signatures[0].BestTime.Equal(later) {
		t.Errorf("a signer without trust proves %s", r.Signatures[0].BestTime)
	}
	at := bytes.LastIndex(data, []byte("/Contents"))
	for at += len("/Contents <"); data[at] != '<'; at-- {
	}
	broken := bytes.Clone(data)
	for i := at + 400; ; i++ { // a digit in the message
		if c := broken[i]; c >= '1' && c <= '8' {
			broken[i]++
			break
		}
	}
	if r := verifiedAt(t, broken, later, root); r.Passed() || !r.Signatures[0].BestTime.Equal(later) {
		t.Errorf("a broken signature proves %s: %s", r.Signatures[0].BestTime, say(r))
	}
}
