// SPDX-License-Identifier: Apache-2.0

package ocsp_test

import (
	"bytes"
	"encoding/hex"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tamga/pki/ocsp"
	"tamga/pki/suite"
	"tamga/pki/x509gost"
)

var hashes = []*suite.Hash{suite.SHA1, suite.SHA256, suite.SHA384, suite.SHA512, suite.GOST94, suite.Streebog256, suite.Streebog512}

func TestRequest(t *testing.T) {
	p := newPlace(t, suite.GOST2012x256)
	nonce := []byte("0123456789abcdef")
	for _, h := range hashes {
		der, err := ocsp.CreateRequest(p.leaf.cert, p.ca.cert, h, nonce)
		if err != nil {
			t.Fatal(err)
		}
		r, err := ocsp.ParseRequest(der)
		if err != nil {
			t.Fatal(err)
		}
		if len(r.CertIDs) != 1 || r.CertIDs[0].Hash != h || !bytes.Equal(r.Nonce, nonce) {
			t.Errorf("%s: %+v", h.Name, r)
		}
		if !r.CertIDs[0].Names(p.leaf.cert, p.ca.cert) || r.CertIDs[0].Names(p.responder.cert, p.ca.cert) || r.CertIDs[0].Names(p.leaf.cert, p.leaf.cert) {
			t.Errorf("%s: it names other certificates", h.Name)
		}
	}
	der, err := ocsp.CreateRequest(p.leaf.cert, p.ca.cert, suite.SHA1, nil)
	if err != nil {
		t.Fatal(err)
	}
	if r, err := ocsp.ParseRequest(der); err != nil || r.Nonce != nil || r.Extensions != nil {
		t.Errorf("a nonce out of nothing: %v", err)
	}
	for _, n := range []int{0, ocsp.MaxNonce + 1} {
		if _, err := ocsp.CreateRequest(p.leaf.cert, p.ca.cert, suite.SHA1, make([]byte, n)); err == nil {
			t.Errorf("a nonce of %d bytes is accepted", n)
		}
	}
	for i := range der {
		if r, err := ocsp.ParseRequest(der[:i]); err == nil {
			t.Errorf("truncated at %d, the request is accepted as %+v", i, r)
		}
	}
	if _, err := ocsp.ParseRequest(append(der, 0)); err == nil {
		t.Error("bytes after the request are accepted")
	}
}

// TestBareNonce reads a nonce without an OCTET STRING, as programs wrote it before RFC 8954.
func TestBareNonce(t *testing.T) {
	der, err := hex.DecodeString("305a3058303e303c303a300906052b0e03021a0500" + "0414" + "00112233445566778899aabbccddeeff00112233" + "0414" + "00112233445566778899aabbccddeeff00112233" + "020101" +
		"a2163014301206092b06010505073001020405" + "0102030405")
	if err != nil {
		t.Fatal(err)
	}
	r, err := ocsp.ParseRequest(der)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(r.Nonce, []byte{1, 2, 3, 4, 5}) {
		t.Errorf("nonce %x", r.Nonce)
	}
}

func TestAnswer(t *testing.T) {
	for _, s := range suite.All() {
		t.Run(s.Name, func(t *testing.T) {
			p := newPlace(t, s)
			nonce, err := ocsp.NonceExtension([]byte{1, 2, 3})
			if err != nil {
				t.Fatal(err)
			}
			gone := p.single(t, suite.SHA1)
			gone.Status, gone.RevokedAt, gone.Reason, gone.NextUpdate = ocsp.Revoked, start, 4, time.Time{}
			if gone.CertID, err = ocsp.NewCertID(p.responder.cert, p.ca.cert, suite.SHA1); err != nil {
				t.Fatal(err)
			}
			singles := []ocsp.Single{p.single(t, s.Hash), gone}
			der := p.basic(t, p.responder, ocsp.Template{
				Singles: singles, Extensions: []x509gost.Extension{nonce},
				Certificates: []*x509gost.Certificate{p.responder.cert},
			})
			r, err := ocsp.Parse(ocsp.CreateResponse(der))
			if err != nil {
				t.Fatal(err)
			}
			b := r.Basic
			if r.Status != ocsp.Successful || !bytes.Equal(b.Raw, der) || !b.ProducedAt.Equal(now) || !bytes.Equal(b.Nonce, []byte{1, 2, 3}) || len(b.Certificates) != 1 {
				t.Errorf("%+v", b)
			}
			if d := cmp.Diff(singles, b.Singles, cmp.Comparer(func(a, b *suite.Hash) bool { return a == b })); d != "" {
				t.Error(d)
			}
			if !bytes.Contains(b.RawTBS, slices.Concat(b.RawResponderID, b.RawProducedAt)) {
				t.Error("responderID and producedAt are not as encoded")
			}
			responder, err := b.Responder(p.ca.cert)
			if err != nil || !responder.Equal(p.responder.cert) || !ocsp.NoCheck(responder) || ocsp.NoCheck(p.leaf.cert) {
				t.Errorf("responder: %v", err)
			}
			if found, ok := b.Find(p.leaf.cert, p.ca.cert); !ok || found.Status != ocsp.Good {
				t.Errorf("found %+v", found)
			}
			if found, ok := b.Find(p.responder.cert, p.ca.cert); !ok || found.Status != ocsp.Revoked || found.Reason != 4 {
				t.Errorf("found %+v", found)
			}
			if _, ok := b.Find(p.ca.cert, p.ca.cert); ok {
				t.Error("an answer about the authority is found")
			}
			// Signed by the issuer itself, without certificates.
			own, err := ocsp.ParseBasic(p.basic(t, p.ca, ocsp.Template{Singles: singles}))
			if err != nil {
				t.Fatal(err)
			}
			if responder, err := own.Responder(p.ca.cert); err != nil || !responder.Equal(p.ca.cert) {
				t.Errorf("the issuer's own: %v", err)
			}
			if _, err := own.Responder(p.leaf.cert); !errors.Is(err, ocsp.ErrResponder) {
				t.Errorf("for another issuer: %v", err)
			}
			// A change of any byte is detected by the parser or by the signature.
			for i := range der {
				bad := bytes.Clone(der)
				bad[i] ^= 1
				changed, err := ocsp.ParseBasic(bad)
				if err != nil {
					continue
				}
				if _, err := changed.Responder(p.ca.cert); err == nil && !bytes.Equal(changed.RawTBS, b.RawTBS) {
					t.Fatalf("byte %d was changed, but the answer is accepted", i)
				}
			}
		})
	}
}

func TestErrorStatus(t *testing.T) {
	for _, status := range []ocsp.ResponseStatus{ocsp.MalformedRequest, ocsp.InternalError, ocsp.TryLater, ocsp.SigRequired, ocsp.Unauthorized} {
		r, err := ocsp.Parse(ocsp.CreateError(status))
		if err != nil || r.Status != status || r.Basic != nil {
			t.Errorf("%d: %+v, %v", status, r, err)
		}
	}
	if _, err := ocsp.Parse(ocsp.CreateError(ocsp.Successful)); err == nil {
		t.Error("a successful response without an answer is accepted")
	}
}

func TestCreateRefuses(t *testing.T) {
	p := newPlace(t, suite.GOST2012x256)
	for name, change := range map[string]func(*ocsp.Template){
		"no answers":        func(t *ocsp.Template) { t.Singles = nil },
		"no time":           func(t *ocsp.Template) { t.ProducedAt = time.Time{} },
		"no certificate":    func(t *ocsp.Template) { t.Singles[0].CertID.Raw = nil },
		"no thisUpdate":     func(t *ocsp.Template) { t.Singles[0].ThisUpdate = time.Time{} },
		"turned period":     func(t *ocsp.Template) { t.Singles[0].NextUpdate = t.Singles[0].ThisUpdate },
		"status":            func(t *ocsp.Template) { t.Singles[0].Status = 3 },
		"reason":            func(t *ocsp.Template) { t.Singles[0].Reason = 7 },
		"no revocationTime": func(t *ocsp.Template) { t.Singles[0].Status = ocsp.Revoked },
	} {
		tmpl := ocsp.Template{ProducedAt: now, Singles: []ocsp.Single{p.single(t, suite.SHA1)}}
		change(&tmpl)
		if _, err := ocsp.CreateBasic(&tmpl, p.responder.cert, p.responder.s, p.responder.sign()); err == nil {
			t.Errorf("%s: an answer was made", name)
		}
	}
	tmpl := ocsp.Template{ProducedAt: now, Singles: []ocsp.Single{p.single(t, suite.SHA1)}}
	if _, err := ocsp.CreateBasic(&tmpl, p.responder.cert, suite.GOST2012x512, p.responder.sign()); err == nil {
		t.Error("an answer signed by another suite is created")
	}
	if _, err := ocsp.CreateBasic(&tmpl, p.responder.cert, p.responder.s, p.leaf.sign()); !errors.Is(err, suite.ErrSignature) {
		t.Errorf("by another key: %v", err)
	}
}

func TestBounds(t *testing.T) {
	p := newPlace(t, suite.ECDSAP256)
	if _, err := ocsp.ParseRequest(make([]byte, ocsp.MaxRequest+1)); err == nil {
		t.Error("a request above the limit is accepted")
	}
	if _, err := ocsp.Parse(make([]byte, ocsp.MaxResponse+1)); err == nil {
		t.Error("a response above the limit is accepted")
	}
	many := ocsp.Template{Singles: slices.Repeat([]ocsp.Single{p.single(t, suite.SHA1)}, ocsp.MaxSingles)}
	if _, err := ocsp.ParseBasic(p.basic(t, p.ca, many)); err != nil {
		t.Error(err)
	}
	crowd := ocsp.Template{Singles: many.Singles[:1], Certificates: slices.Repeat([]*x509gost.Certificate{p.leaf.cert}, ocsp.MaxCertificates+1)}
	if _, err := ocsp.ParseBasic(p.basic(t, p.ca, crowd)); err == nil {
		t.Error("too many certificates are accepted")
	}
	// Certificates that ResponderID does not name do not count toward the limit of
	// tries, so the responder's is found after 20 of them.
	crowd.Certificates = append(slices.Repeat([]*x509gost.Certificate{p.leaf.cert}, 20), p.responder.cert)
	b, err := ocsp.ParseBasic(p.basic(t, p.responder, crowd))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.Responder(p.ca.cert); err != nil {
		t.Errorf("the responder is not found among other certificates: %v", err)
	}
}

func BenchmarkCreateBasic(b *testing.B) {
	for _, s := range []*suite.Suite{suite.GOST2012x256, suite.ECDSAP256} {
		b.Run(s.Name, func(b *testing.B) {
			p := newPlace(b, s)
			tmpl := ocsp.Template{Singles: []ocsp.Single{p.single(b, suite.SHA1)}, Certificates: []*x509gost.Certificate{p.responder.cert}}
			for b.Loop() {
				p.basic(b, p.responder, tmpl)
			}
		})
	}
}
