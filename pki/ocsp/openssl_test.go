// SPDX-License-Identifier: Apache-2.0

package ocsp_test

import (
	"bytes"
	"encoding/pem"
	"fmt"
	"strings"
	"testing"
	"time"

	"tamga/internal/judge"
	"tamga/pki/ocsp"
	"tamga/pki/suite"
	"tamga/pki/x509gost"
)

func certificatePEM(h *holder) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: h.cert.Raw})
}

func keyPEM(t *testing.T, h *holder) []byte {
	t.Helper()
	der, err := x509gost.MarshalPrivateKey(h.key, h.s)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
}

// TestOpenSSL checks that OpenSSL reads our messages and that we read its messages. OpenSSL
// compares answers with the machine's clock, so their period is long.
func TestOpenSSL(t *testing.T) {
	tool := judge.OpenSSL(t)
	for _, s := range suite.All() {
		t.Run(s.Name, func(t *testing.T) {
			p := newPlace(t, s)
			tool.Write("ca.pem", certificatePEM(p.ca))
			tool.Write("leaf.pem", certificatePEM(p.leaf))
			tool.Write("responder.pem", certificatePEM(p.responder))
			tool.Write("responder.key", keyPEM(t, p.responder))

			t.Run("ours", func(t *testing.T) {
				// OpenSSL makes the request, so that it checks the nonce.
				if _, err := tool.Run("ocsp", "-issuer", "ca.pem", "-cert", "leaf.pem", "-reqout", "req.der"); err != nil {
					t.Fatal(err)
				}
				r, err := ocsp.ParseRequest(tool.Read("req.der"))
				if err != nil {
					t.Fatal(err)
				}
				if len(r.CertIDs) != 1 || !r.CertIDs[0].Names(p.leaf.cert, p.ca.cert) || len(r.Nonce) == 0 {
					t.Fatalf("%+v", r)
				}
				answer := func(change func(*ocsp.Single)) []byte {
					one := ocsp.Single{CertID: r.CertIDs[0], Status: ocsp.Good, ThisUpdate: start, NextUpdate: start.AddDate(60, 0, 0)}
					change(&one)
					return ocsp.CreateResponse(p.basic(t, p.responder, ocsp.Template{
						Singles: []ocsp.Single{one}, Extensions: r.Extensions, Certificates: []*x509gost.Certificate{p.responder.cert},
					}))
				}
				verify := func(der []byte) (string, error) {
					tool.Write("resp.der", der)
					// -no_nonce keeps the nonce of the request. Otherwise OpenSSL draws a new one.
					return tool.Run("ocsp", "-no_nonce", "-issuer", "ca.pem", "-cert", "leaf.pem", "-CAfile", "ca.pem",
						"-reqin", "req.der", "-respin", "resp.der", "-attime", fmt.Sprint(now.Unix()))
				}
				good := answer(func(*ocsp.Single) {})
				if out, err := verify(good); err != nil || !strings.Contains(out, "leaf.pem: good") {
					t.Errorf("good: %q, %v", out, err)
				}
				out, err := verify(answer(func(s *ocsp.Single) { s.Status, s.RevokedAt, s.Reason = ocsp.Revoked, start, 1 }))
				if err != nil || !strings.Contains(out, "leaf.pem: revoked") || !strings.Contains(out, "keyCompromise") {
					t.Errorf("revoked: %q, %v", out, err)
				}
				if out, err := verify(answer(func(s *ocsp.Single) { s.Status = ocsp.Unknown })); err != nil || !strings.Contains(out, "leaf.pem: unknown") {
					t.Errorf("unknown: %q, %v", out, err)
				}
				bad := bytes.Clone(good)
				bad[bytes.Index(good, []byte("20260101000000Z"))] ^= 1
				if out, err := verify(bad); err == nil {
					t.Errorf("OpenSSL accepts a changed answer: %q", out)
				}
			})

			t.Run("theirs", func(t *testing.T) {
				nonce := bytes.Repeat([]byte{7}, 32)
				req, err := ocsp.CreateRequest(p.leaf.cert, p.ca.cert, suite.SHA1, nonce)
				if err != nil {
					t.Fatal(err)
				}
				tool.Write("req.der", req)
				for line, want := range map[string]ocsp.Status{
					"V\t350101000000Z\t\tC8\tunknown\t/CN=Leaf\n":                         ocsp.Good,
					"R\t350101000000Z\t260101000000Z,superseded\tC8\tunknown\t/CN=Leaf\n": ocsp.Revoked,
					"V\t350101000000Z\t\tC9\tunknown\t/CN=Another one\n":                  ocsp.Unknown,
				} {
					tool.Write("index.txt", []byte(line))
					out, err := tool.Run("ocsp", "-index", "index.txt", "-CA", "ca.pem", "-rsigner", "responder.pem", "-rkey", "responder.key",
						"-reqin", "req.der", "-respout", "resp.der", "-ndays", "7")
					if err != nil {
						t.Fatalf("%v %s", err, out)
					}
					r, err := ocsp.Parse(tool.Read("resp.der"))
					if err != nil {
						t.Fatal(err)
					}
					if r.Status != ocsp.Successful || !bytes.Equal(r.Basic.Nonce, nonce) {
						t.Fatalf("status %d, nonce %x", r.Status, r.Basic.Nonce)
					}
					single, ok := r.Basic.Find(p.leaf.cert, p.ca.cert)
					if !ok || single.Status != want || want == ocsp.Revoked && (single.Reason != 4 || !single.RevokedAt.Equal(start)) {
						t.Errorf("%+v, want %s", single, want)
					}
					if single.NextUpdate.Sub(single.ThisUpdate).Round(time.Hour) != 7*24*time.Hour {
						t.Errorf("from %s to %s", single.ThisUpdate, single.NextUpdate)
					}
					if by, err := r.Basic.Responder(p.ca.cert); err != nil || !by.Equal(p.responder.cert) {
						t.Errorf("responder: %v", err)
					}
				}
			})
		})
	}
}
