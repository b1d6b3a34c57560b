// SPDX-License-Identifier: Apache-2.0

package cades_test

import (
	"bytes"
	"encoding/pem"
	"fmt"
	"slices"
	"testing"

	"tamga/internal/judge"
	"tamga/internal/sigtest"
	"tamga/pki/cms"
	"tamga/pki/suite"
	"tamga/pki/x509gost"
	"tamga/sig"
	"tamga/sig/cades"
)

// Two signers, each at both levels, with a countersignature and another one on it: Bouncy
// Castle verifies each signature and each time stamp, OpenSSL each signer. Both refuse
// the message with a bit changed.
func TestJuryOfLevels(t *testing.T) {
	openssl, castle := judge.OpenSSL(t), judge.BouncyCastle(t)
	for n, s := range suite.All() {
		w := newWorld(t, s)
		second := w.sub.Signer(t, s, "Second")
		authorities := slices.Concat(w.root.PEM(), w.sub.PEM(), pemOf(w.services.TSA.Chain[0]))
		for i, mode := range modes {
			if leftOut(n, i) {
				continue
			}
			t.Run(s.Name+"/"+mode.name, func(t *testing.T) {
				doc, content := text, []byte(nil)
				if mode.hash {
					doc = s.Hash.Digest(text).Sum
				}
				if mode.detached {
					content = text
				}
				message := w.make(t, w.signer, "XLT1", &sig.Job{Document: sigtest.Document(doc), Params: modes[i].params})
				message = w.make(t, second, "T", add("Cosign", message, content, nil))
				message = w.make(t, second, "XLT1", add("Countersign", message, nil, nil))
				message = w.make(t, w.signer, "T", add("Countersign", message, nil, sig.Params{"SignatureIndex": "0.0"}))
				message = sigtest.Make(t, cades.New(), w.signer, add("Countersign", message, nil, sig.Params{"SignatureIndex": "1"}))
				counts := [3]int{2, 3, 2 + 1 + 2 + 1}
				if err := castle.VerifyCAdES(message, content, authorities, counts); err != nil {
					t.Errorf("Bouncy Castle: %v", err)
				}
				ask := func(message []byte) error {
					openssl.Write("message.der", message)
					openssl.Write("root.pem", authorities)
					args := []string{"cms", "-verify", "-binary", "-inform", "DER", "-in", "message.der", "-out", "content.out",
						"-CAfile", "root.pem", "-purpose", "any", "-attime", fmt.Sprint(sigtest.Time.Unix())}
					if content != nil {
						openssl.Write("content.bin", content)
						args = append(args, "-content", "content.bin")
					}
					_, err := openssl.Run(args...)
					return err
				}
				if err := ask(message); err != nil {
					t.Errorf("OpenSSL: %v", err)
				}
				if out, err := openssl.Run("cms", "-cmsout", "-print", "-noout", "-inform", "DER", "-in", "message.der"); err != nil || !bytes.Contains([]byte(out), []byte("id-smime-aa-ets-escTimeStamp")) {
					t.Errorf("OpenSSL does not print it: %v", err)
				}
				m := mustParse(t, message)
				for i, si := range m.Signers {
					broken := change(t, message, si.Signature)
					if ask(broken) == nil {
						t.Errorf("OpenSSL accepts a changed value of signer %d", i)
					}
					if castle.VerifyCAdES(broken, content, authorities, counts) == nil {
						t.Errorf("Bouncy Castle accepts a changed value of signer %d", i)
					}
				}
				for _, a := range m.Signers[0].UnsignedAttrs {
					if a.OID.Equal(cms.OIDCertificateRefs) || a.OID.Equal(cms.OIDSignatureTimeStamp) || a.OID.Equal(cms.OIDCountersignature) {
						i := bytes.Index(message, a.Raw) + len(a.Raw) - 1
						broken := bytes.Clone(message)
						broken[i] ^= 1
						if castle.VerifyCAdES(broken, content, authorities, counts) == nil {
							t.Errorf("Bouncy Castle accepts a changed attribute %v", a.OID)
						}
						if r := verify(t, broken, content, w.root); allValid(r.Signatures) {
							t.Errorf("we accept a changed attribute %v", a.OID)
						}
					}
				}
			})
		}
	}
}

// allValid reports whether every signature, countersignature and time stamp is valid.
func allValid(list []sig.Signature) bool {
	for _, s := range list {
		if !s.Passed() || !allValid(s.Countersigners) {
			return false
		}
		for _, ts := range s.TimeStamps {
			if !ts.Passed() {
				return false
			}
		}
	}
	return true
}

func pemOf(c *x509gost.Certificate) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Raw})
}
