// SPDX-License-Identifier: Apache-2.0

package ocsp_test

import (
	"bytes"
	"testing"

	"tamga/pki/ocsp"
	"tamga/pki/suite"
	"tamga/pki/x509gost"
)

func FuzzParseRequest(f *testing.F) {
	repeatable(f)
	p := newPlace(f, suite.GOST2012x256)
	for _, h := range hashes {
		der, err := ocsp.CreateRequest(p.leaf.cert, p.ca.cert, h, []byte("nonce"))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(der)
	}
	f.Fuzz(func(t *testing.T, der []byte) {
		r, err := ocsp.ParseRequest(der)
		if err != nil {
			return
		}
		if len(r.CertIDs) == 0 || len(r.Nonce) > ocsp.MaxNonce {
			t.Fatalf("%d certificates, a nonce of %d bytes", len(r.CertIDs), len(r.Nonce))
		}
		for i := range r.CertIDs {
			_ = r.CertIDs[i].Names(p.leaf.cert, p.ca.cert)
			if !bytes.Contains(der, r.CertIDs[i].Raw) {
				t.Fatal("an identifier is not the bytes received")
			}
		}
	})
}

func FuzzParseResponse(f *testing.F) {
	repeatable(f)
	p := newPlace(f, suite.GOST2012x256)
	gone := p.single(f, suite.Streebog256)
	gone.Status, gone.RevokedAt, gone.Reason = ocsp.Revoked, start, 1
	basic := p.basic(f, p.responder, ocsp.Template{
		Singles: []ocsp.Single{p.single(f, suite.SHA1), gone}, Certificates: []*x509gost.Certificate{p.responder.cert},
	})
	signed, err := ocsp.ParseBasic(basic)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(ocsp.CreateResponse(basic))
	f.Add(ocsp.CreateResponse(bytes.Replace(basic, []byte{0x0a, 1, 1}, []byte{0x0a, 1, 7}, 1))) // a reason that is not defined
	f.Add(ocsp.CreateError(ocsp.TryLater))
	f.Fuzz(func(t *testing.T, der []byte) {
		r, err := ocsp.Parse(der)
		if err != nil || r.Basic == nil {
			return
		}
		again, err := ocsp.ParseBasic(r.Basic.Raw)
		if err != nil || !bytes.Equal(again.RawTBS, r.Basic.RawTBS) {
			t.Fatalf("the basic response does not read again: %v", err)
		}
		if s, ok := r.Basic.Find(p.leaf.cert, p.ca.cert); ok && !x509gost.ValidReason(s.Reason) {
			t.Fatalf("reason %d", s.Reason)
		}
		if _, err := r.Basic.Responder(p.ca.cert); err == nil && !bytes.Equal(r.Basic.RawTBS, signed.RawTBS) {
			t.Fatal("an answer without a valid signature is accepted")
		}
	})
}
