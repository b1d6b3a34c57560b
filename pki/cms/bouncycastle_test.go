// SPDX-License-Identifier: Apache-2.0

package cms

import (
	"bytes"
	"crypto/x509"
	"testing"

	"tamga/gost/gost3410"
	"tamga/internal/judge"
	"tamga/pki/suite"
)

// castleKey returns a private key in the form that Bouncy Castle reads.
func castleKey(t *testing.T, p party) []byte {
	t.Helper()
	private, ok := p.private.(*gost3410.PrivateKey)
	if !ok {
		der, err := x509.MarshalPKCS8PrivateKey(p.private)
		if err != nil {
			t.Fatal(err)
		}
		return der
	}
	params, err := p.certificate.Suite.ParametersOf(private.Set())
	if err != nil {
		t.Fatal(err)
	}
	digest := params.Digest
	if digest == nil {
		digest = p.certificate.Suite.Hash.OID
	}
	algorithm := wrap(tagSequence, marshalOID(p.certificate.Suite.KeyOID), wrap(tagSequence, marshalOID(params.OID), marshalOID(digest)))
	return wrap(tagSequence, []byte{tagInteger, 1, 0}, algorithm, wrap(tagOctetString, wrap(tagOctetString, private.Bytes())))
}

// Bouncy Castle reads what we encrypt, and we read what it encrypts. It does not read keys without
// digestParamSet, which RFC 9215 leaves out for the sets of TC26: our messages for 512 bits have them.
func TestBouncyCastleEncrypted(t *testing.T) {
	castle := judge.BouncyCastle(t)
	for _, c := range []struct {
		suite *suite.Suite
		form  string
		o     Encryption
		write bool // Bouncy Castle reads ours
	}{
		{suite.GOST2001, "transport 28147-89", Encryption{}, true},
		{suite.GOST2012x256, "transport 28147-89", Encryption{}, true},
		{suite.GOST2012x512, "transport 28147-89", Encryption{}, false},
		{suite.GOST2001, "agreement 28147-89", Encryption{Agreement: true}, true},
		{suite.GOST2012x256, "agreement 28147-89", Encryption{Agreement: true}, true},
		{suite.GOST2012x512, "agreement 28147-89", Encryption{Agreement: true}, true},
		{suite.RSASHA256, "transport AES256-CBC", Encryption{}, true},
		{suite.RSASHA256, "oaep AES256-CBC", Encryption{OAEP: true}, true},
		{suite.RSASHA256, "oaep AES256-GCM", Encryption{OAEP: true, Cipher: AES256GCM}, true},
		{suite.RSASHA256, "transport 28147-89", Encryption{Cipher: GOST28147}, true},
		{suite.ECDSAP256, "agreement AES256-CBC", Encryption{}, true},
		{suite.ECDSAP256, "agreement AES256-GCM", Encryption{Cipher: AES256GCM}, false}, // its version 1.72 has no such class
	} {
		t.Run(c.suite.Name+" "+c.form, func(t *testing.T) {
			p := newParty(t, c.suite, nil, 1)
			for _, size := range []int{0, 1, 8, 1023, 1024, 1025, 100_000} {
				text := textOf(size)
				theirs, err := castle.Encrypt(c.form, p.certificate.Raw, text)
				if err != nil {
					t.Fatal(err)
				}
				got, integrity, err := decrypt(t, theirs, p.opening())
				if err != nil || !bytes.Equal(got, text) || (integrity == Verified) != (c.o.Cipher == AES256GCM) {
					t.Errorf("%d bytes: we do not read theirs: %d bytes, %v, %v", size, len(got), integrity, err)
				}
				for _, announced := range []int64{int64(size), -1} {
					if !c.write {
						break
					}
					got, err := castle.Decrypt(encrypt(t, text, announced, c.o, p), castleKey(t, p))
					if err != nil || !bytes.Equal(got, text) {
						t.Errorf("%d bytes, announced %d: Bouncy Castle does not read ours: %d bytes, %v", size, announced, len(got), err)
					}
				}
			}
		})
	}
}
