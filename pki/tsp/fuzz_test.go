// SPDX-License-Identifier: Apache-2.0

package tsp_test

import (
	"bytes"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tamga/pki/suite"
	"tamga/pki/tsp"
)

func FuzzParseRequest(f *testing.F) {
	for _, h := range hashes {
		r := tsp.Request{Digest: h.Digest(nil), Policy: policy, Nonce: []byte{0x80}, CertReq: true}
		der, err := r.Marshal()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(der)
	}
	f.Fuzz(func(t *testing.T, der []byte) {
		r, err := tsp.ParseRequest(der)
		if err != nil || r.Digest.Hash == nil {
			return
		}
		again, err := r.Marshal()
		if err != nil {
			return // a nonce of zero is accepted but cannot be sent
		}
		if _, err := tsp.ParseRequest(again); err != nil {
			t.Fatalf("a parsed request does not parse after encoding: %v", err)
		}
	})
}

func FuzzParseResponse(f *testing.F) {
	repeatable(f)
	ca, tsa := newAuthority(f, suite.GOST2012x256)
	signed := parse(f, create(f, info(suite.Streebog256), tsa, tsa, ca))
	f.Add(tsp.CreateResponse(signed.Raw))
	f.Add(tsp.CreateRejection(tsp.Rejection, tsp.BadAlg, "text"))
	f.Add(slices.Concat([]byte{4, 0x82, byte(len(signed.Raw) >> 8), byte(len(signed.Raw))}, signed.Raw)) // in an OCTET STRING
	f.Fuzz(func(t *testing.T, der []byte) {
		if _, err := tsp.ParseToken(tsp.Unwrap(der)); err == nil && tsp.Unwrap(der)[0] != 0x30 {
			t.Fatal("a token that is not a SEQUENCE")
		}
		token, err := tsp.ParseResponse(der)
		if err != nil {
			return
		}
		again, err := tsp.ParseToken(token.Raw)
		if err != nil || !cmp.Equal(again.Info, token.Info, sameHash) {
			t.Fatalf("the token does not read again: %v", err)
		}
		_ = token.Answers(&tsp.Request{Digest: suite.SHA256.Digest(nil)})
		signer, err := token.CheckSignature(certs(tsa))
		if err == nil && signer.Equal(tsa.cert) && !cmp.Equal(token.Info, signed.Info, sameHash) {
			t.Fatal("a token without a valid signature is accepted")
		}
		if err == nil && !bytes.Contains(der, token.Raw) {
			t.Fatal("the token is not the bytes received")
		}
	})
}
