// SPDX-License-Identifier: Apache-2.0

package pdf

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"tamga/internal/judge"
	"tamga/internal/sigtest"
	"tamga/internal/testsize"
	"tamga/pki/suite"
	"tamga/pki/x509gost"
	"tamga/sig"
)

// verified checks a document against one root at the time of the tests.
func verified(t testing.TB, document []byte, root *sigtest.Party) *sig.Report {
	t.Helper()
	r, err := New().Verify(context.Background(), &sig.Check{
		Document: bytes.NewReader(document), Roots: []*x509gost.Certificate{root.Certificate}, At: sigtest.Time,
	})
	if err != nil {
		t.Fatalf("verify: %v", err)
	}
	return r
}

// say formats a report for a test failure.
func say(r *sig.Report) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%+v\n", r.Findings)
	for _, s := range r.Signatures {
		fmt.Fprintf(&b, "%s, %s, %+v\n", s.Level, s.Covers, s.Findings)
	}
	return b.String()
}

// TestJudged signs documents of every kind and checks the results with qpdf, MuPDF and
// Poppler.
func TestJudged(t *testing.T) {
	tools := judge.PDF(t)
	root := sigtest.Root(t, suite.RSASHA256)
	tools.Trust(root.PEM())
	signer := root.Signer(t, suite.RSASHA256, "Signer")
	levels := map[string]string{"CMS": "BES", "CAdEST": "T", "CAdES": "XLT1"}
	all := kinds(t, tools)
	for i, name := range slices.Sorted(maps.Keys(all)) {
		s, services := all[name], sigtest.NewServices(t, root)
		for j, format := range []string{"CMS", "CAdEST", "CAdES"} {
			if testsize.Of() < testsize.Whole && (i+j)%3 != 0 {
				continue // each document with one format
			}
			t.Run(name+" "+format, func(t *testing.T) {
				signed := sigtest.Make(t, New(), signer, &sig.Job{
					Document: bytes.NewReader(s.data), Evidence: services,
					Params: sig.Params{"PDFFormat": format, "TSPAddress": "", "PDFPassword": s.password, "PDFReason": "Согласовано", "PDFLocation": "Kazan (centre)"},
				})
				if !bytes.HasPrefix(signed, s.data) {
					t.Error("the document was changed")
				}
				if err := tools.CheckQPDF(signed, s.password); err != nil {
					t.Error(err)
				}
				if err := tools.CheckMuPDF(signed, s.password); err != nil && !s.notMuPDF {
					t.Error(err)
				}
				list, err := tools.Signatures(signed, s.password)
				if err != nil {
					t.Fatal(err)
				}
				if len(list) != 1 || !list[0].Valid || !list[0].Trusted || list[0].Name != "Signer" || list[0].Whole != (format != "CAdES") {
					if !s.notPoppler {
						t.Errorf("pdfsig says %+v", list)
					}
				}
				if s.password != "" {
					return
				}
				r := verified(t, signed, root)
				if !r.Passed() || len(r.Signatures) != 1 || r.Signatures[0].Level != levels[format] || r.Signatures[0].SigningTime.IsZero() {
					t.Errorf("our own verifier says %s", say(r))
				}
			})
		}
	}
}

// TestFiveInARow signs one document five times, in each format, by every suite: all
// signatures stay valid.
func TestFiveInARow(t *testing.T) {
	tools := judge.PDF(t)
	root := sigtest.Root(t, suite.RSASHA256)
	tools.Trust(root.PEM())
	var signers []*sigtest.Party
	for i, su := range []*suite.Suite{suite.RSASHA256, suite.ECDSAP256, suite.RSASHA256, suite.ECDSAP256, suite.RSASHA256} {
		signers = append(signers, root.Signer(t, su, fmt.Sprintf("Signer %d", i)))
	}
	all := kinds(t, tools)
	for i, name := range slices.Sorted(maps.Keys(all)) {
		s := all[name]
		if s.password != "" || testsize.Of() < testsize.Whole && i%4 != 0 {
			continue
		}
		t.Run(name, func(t *testing.T) {
			services := sigtest.NewServices(t, root)
			data := s.data
			for i, format := range []string{"CMS", "CAdES", "CAdEST", "CAdES", "CMS"} {
				data = sigtest.Make(t, New(), signers[i], &sig.Job{
					Document: bytes.NewReader(data), Evidence: services, Params: sig.Params{"PDFFormat": format, "TSPAddress": ""},
				})
			}
			if err := tools.CheckQPDF(data, ""); err != nil {
				t.Error(err)
			}
			list, err := tools.Signatures(data, "")
			if err != nil {
				t.Fatal(err)
			}
			valid := 0
			for _, one := range list {
				if one.Valid && one.Trusted {
					valid++
				}
			}
			if (valid != 5 || len(list) != 5) && !s.notPoppler {
				t.Errorf("pdfsig calls %d of %d valid: %+v", valid, len(list), list)
			}
			if r := verified(t, data, root); !r.Passed() || len(r.Signatures) != 5 {
				t.Errorf("our own verifier says %s", say(r))
			}
		})
	}
}

// TestGOST checks the messages with OpenSSL and gost-engine over the bytes of ByteRange.
func TestGOST(t *testing.T) {
	openssl := judge.OpenSSL(t)
	for _, su := range []*suite.Suite{suite.GOST2001, suite.GOST2012x256, suite.GOST2012x512} {
		for _, format := range []string{"CMS", "CAdEST", "CAdES"} {
			t.Run(su.Name+" "+format, func(t *testing.T) {
				root := sigtest.Root(t, su)
				services := sigtest.NewServices(t, root)
				signed := sigtest.Make(t, New(), root.Signer(t, su, "Подписант"), &sig.Job{
					Document: bytes.NewReader(document{}.build()), Evidence: services, Params: sig.Params{"PDFFormat": format, "TSPAddress": ""},
				})
				f, err := open(context.Background(), bytes.NewReader(signed), int64(len(signed)), nil)
				if err != nil {
					t.Fatal(err)
				}
				s := f.signature(f.form().signatures[0])
				openssl.Write("content", append(bytes.Clone(signed[:s.from]), signed[s.to:s.end]...))
				openssl.Write("message", s.message)
				openssl.Write("root.pem", root.PEM())
				args := []string{"cms", "-verify", "-binary", "-inform", "DER", "-in", "message", "-content", "content", "-CAfile", "root.pem", "-purpose", "any", "-out", "out"}
				if _, err := openssl.Run(args...); err != nil {
					t.Error(err)
				}
				signed[100] ^= 1
				openssl.Write("content", append(bytes.Clone(signed[:s.from]), signed[s.to:s.end]...))
				if _, err := openssl.Run(args...); err == nil {
					t.Error("OpenSSL accepts a changed document")
				}
				signed[100] ^= 1
				if r := verified(t, signed, root); !r.Passed() {
					t.Errorf("our own verifier says %s", say(r))
				}
			})
		}
	}
}
