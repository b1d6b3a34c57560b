// SPDX-License-Identifier: Apache-2.0

package x509gost

import (
	"bytes"
	"crypto"
	"crypto/sha1"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"math/bits"
	"time"

	"golang.org/x/crypto/cryptobyte"
	cbasn1 "golang.org/x/crypto/cryptobyte/asn1"

	"tamga/pki/suite"
)

// SignFunc signs a digest and returns the value in the form of suite.Sign. The key may be
// in a vault. SignWith makes a SignFunc for a key in memory.
type SignFunc func(d suite.Digest) ([]byte, error)

// SignWith makes a SignFunc for a key in memory. A nil rand means crypto/rand.Reader.
func SignWith(rand io.Reader, key crypto.Signer, s *suite.Suite) SignFunc {
	return func(d suite.Digest) ([]byte, error) { return s.Sign(rand, key, d) }
}

// Template holds what CreateCertificate writes besides the keys.
type Template struct {
	Subject Name
	// SerialNumber is a positive number, big-endian, leading zeros allowed. Its DER has
	// at most 20 bytes.
	SerialNumber        []byte
	NotBefore, NotAfter time.Time // written in whole seconds

	IsCA       bool
	MaxPathLen int // with IsCA: how many authorities may follow in a chain, -1 for no limit

	KeyUsage    x509.KeyUsage // 0 writes no extension
	ExtKeyUsage []OID

	CRLDistributionPoints, OCSPServers, IssuingURLs []string
	Policies                                        []OID

	// privateKeyUsagePeriod, written when either is set.
	PrivateKeyNotBefore, PrivateKeyNotAfter time.Time

	// ExtraExtensions are appended unchanged. It is an error to repeat an extension that
	// is written from the fields above.
	ExtraExtensions []Extension
}

// CreateCertificate builds and signs a certificate for pub, a key of pubSuite. The issuer
// signs with signerSuite through sign. A nil issuer means self-signed, and the issuer's
// name is then that of the subject. CreateCertificate verifies the signature with the
// issuer's key before it returns the certificate.
func CreateCertificate(t *Template, issuer *Certificate, pub crypto.PublicKey, pubSuite *suite.Suite, signerSuite *suite.Suite, sign SignFunc) ([]byte, error) {
	der, err := createCertificate(t, issuer, pub, pubSuite, signerSuite, sign)
	if err != nil {
		return nil, fmt.Errorf("x509gost: creating a certificate: %w", err)
	}
	return der, nil
}

func createCertificate(t *Template, issuer *Certificate, pub crypto.PublicKey, pubSuite, signerSuite *suite.Suite, fn SignFunc) ([]byte, error) {
	serial, err := magnitudeToInteger(t.SerialNumber)
	if err != nil {
		return nil, fmt.Errorf("serial number: %w", err)
	}
	if err := checkPeriod(t.NotBefore, t.NotAfter); err != nil {
		return nil, fmt.Errorf("validity: %w", err)
	}
	spki, key, err := infoOf(pub, pubSuite)
	if err != nil {
		return nil, err
	}
	signer, rawIssuer, authority := key, t.Subject.Raw, []byte(nil)
	if issuer != nil {
		signer, rawIssuer, authority = issuer.key(), issuer.RawSubject, issuer.SubjectKeyID
	}
	if signer.Suite == nil || signer.Suite != signerSuite {
		return nil, errors.New("the issuer's key does not belong to the suite that signs")
	}
	if len(rawIssuer) == 0 || len(t.Subject.Raw) == 0 || t.IsCA && t.Subject.IsEmpty() {
		return nil, errors.New("issuer and subject must have a name")
	}
	extensions, err := t.extensions(key.bits, authority)
	if err != nil {
		return nil, err
	}
	der, err := sign(signerSuite, fn, signer, func(b *cryptobyte.Builder) {
		b.AddASN1(cbasn1.Tag(0).Constructed().ContextSpecific(), func(b *cryptobyte.Builder) { b.AddASN1Uint64(2) })
		addInteger(b, serial)
		addAlgorithm(b, signerSuite.SignatureOID, signerSuite.SignatureNull)
		b.AddBytes(rawIssuer)
		b.AddASN1(cbasn1.SEQUENCE, func(b *cryptobyte.Builder) {
			addTime(b, t.NotBefore)
			addTime(b, t.NotAfter)
		})
		b.AddBytes(t.Subject.Raw)
		b.AddBytes(spki)
		b.AddASN1(cbasn1.Tag(3).Constructed().ContextSpecific(), func(b *cryptobyte.Builder) { addExtensions(b, extensions) })
	})
	if err != nil {
		return nil, err
	}
	// The caller's names and extensions go in as bytes. Check that the result is
	// readable before anyone uses it.
	_, err = parseCertificate(der)
	return der, err
}

func checkPeriod(from, to time.Time) error {
	if err := checkTime(from); err != nil {
		return err
	}
	if err := checkTime(to); err != nil {
		return err
	}
	if !from.Before(to) {
		return errors.New("the end must be after the start")
	}
	return nil
}

// keyID returns the identifier of a key by method 1 of RFC 5280, 4.2.1.2: SHA-1 over the
// content of the BIT STRING. It is a name and needs no collision resistance.
func keyID(bits []byte) []byte {
	sum := sha1.Sum(bits)
	return sum[:]
}

// extensions returns the extensions of a certificate for the key whose BIT STRING is
// given. authority is the issuer's key identifier, nil to omit it.
func (t *Template) extensions(bits, authority []byte) ([]Extension, error) {
	var e extensionList
	e.add(OIDSubjectKeyID, false, func(b *cryptobyte.Builder) { b.AddASN1OctetString(keyID(bits)) })
	if authority != nil {
		e.add(OIDAuthorityKeyID, false, authorityKeyID(authority))
	}
	if t.IsCA {
		e.add(OIDBasicConstraints, true, t.basicConstraints)
	}
	if t.KeyUsage != 0 {
		e.add(OIDKeyUsage, true, keyUsage(t.KeyUsage))
	}
	if len(t.ExtKeyUsage) > 0 {
		e.add(OIDExtKeyUsage, false, func(b *cryptobyte.Builder) {
			b.AddASN1(cbasn1.SEQUENCE, func(b *cryptobyte.Builder) {
				for _, oid := range t.ExtKeyUsage {
					b.AddASN1ObjectIdentifier(oid)
				}
			})
		})
	}
	if len(t.Policies) > 0 {
		e.add(OIDPolicies, false, t.policies)
	}
	if !t.PrivateKeyNotBefore.IsZero() || !t.PrivateKeyNotAfter.IsZero() {
		e.add(OIDPrivateKeyUsage, false, t.privateKeyUsage)
	}
	if len(t.CRLDistributionPoints) > 0 {
		e.add(OIDCRLPoints, false, t.crlPoints)
	}
	if len(t.OCSPServers)+len(t.IssuingURLs) > 0 {
		e.add(OIDInfoAccess, false, t.infoAccess)
	}
	return e.with(t.ExtraExtensions)
}

func authorityKeyID(id []byte) func(*cryptobyte.Builder) {
	return func(b *cryptobyte.Builder) {
		b.AddASN1(cbasn1.SEQUENCE, func(b *cryptobyte.Builder) {
			b.AddASN1(cbasn1.Tag(0).ContextSpecific(), func(b *cryptobyte.Builder) { b.AddBytes(id) })
		})
	}
}

func (t *Template) basicConstraints(b *cryptobyte.Builder) {
	b.AddASN1(cbasn1.SEQUENCE, func(b *cryptobyte.Builder) {
		b.AddASN1Boolean(true)
		if t.MaxPathLen >= 0 {
			b.AddASN1Int64(int64(t.MaxPathLen))
		}
	})
}

// KeyUsageExtension returns the extension keyUsage for at least one use, as for a request.
func KeyUsageExtension(u x509.KeyUsage) (Extension, error) {
	if u <= 0 || u > x509.KeyUsageDecipherOnly<<1-1 {
		return Extension{}, fmt.Errorf("x509gost: key usage %#x: want at least one of the nine bits", int(u))
	}
	var e extensionList
	e.add(OIDKeyUsage, true, keyUsage(u))
	list, err := e.with(nil)
	if err != nil {
		return Extension{}, err
	}
	return list[0], nil
}

// keyUsage writes a named BIT STRING, which DER cuts after its last set bit.
func keyUsage(u x509.KeyUsage) func(*cryptobyte.Builder) {
	usage := []byte{bits.Reverse8(uint8(u)), bits.Reverse8(uint8(u >> 8))}
	usage = bytes.TrimRight(usage, "\x00")
	unused := bits.TrailingZeros8(usage[len(usage)-1])
	return func(b *cryptobyte.Builder) {
		b.AddASN1(cbasn1.BIT_STRING, func(b *cryptobyte.Builder) {
			b.AddUint8(uint8(unused))
			b.AddBytes(usage)
		})
	}
}

func (t *Template) policies(b *cryptobyte.Builder) {
	b.AddASN1(cbasn1.SEQUENCE, func(b *cryptobyte.Builder) {
		for _, oid := range t.Policies {
			b.AddASN1(cbasn1.SEQUENCE, func(b *cryptobyte.Builder) { b.AddASN1ObjectIdentifier(oid) })
		}
	})
}

func (t *Template) privateKeyUsage(b *cryptobyte.Builder) {
	b.AddASN1(cbasn1.SEQUENCE, func(b *cryptobyte.Builder) {
		for n, at := range []time.Time{t.PrivateKeyNotBefore, t.PrivateKeyNotAfter} {
			if at.IsZero() {
				continue
			}
			b.AddASN1(cbasn1.Tag(n).ContextSpecific(), func(b *cryptobyte.Builder) {
				b.AddBytes([]byte(at.UTC().Format(generalizedTimeForms[0])))
			})
		}
	})
}

func (t *Template) crlPoints(b *cryptobyte.Builder) {
	explicit := cbasn1.Tag(0).Constructed().ContextSpecific()
	b.AddASN1(cbasn1.SEQUENCE, func(b *cryptobyte.Builder) {
		for _, uri := range t.CRLDistributionPoints {
			b.AddASN1(cbasn1.SEQUENCE, func(b *cryptobyte.Builder) {
				b.AddASN1(explicit, func(b *cryptobyte.Builder) {
					b.AddASN1(explicit, func(b *cryptobyte.Builder) { addURI(b, uri) })
				})
			})
		}
	})
}

func addURI(b *cryptobyte.Builder, uri string) {
	b.AddASN1(cbasn1.Tag(tagURI).ContextSpecific(), func(b *cryptobyte.Builder) { b.AddBytes([]byte(uri)) })
}

func (t *Template) infoAccess(b *cryptobyte.Builder) {
	b.AddASN1(cbasn1.SEQUENCE, func(b *cryptobyte.Builder) {
		for _, kind := range []struct {
			method OID
			uris   []string
		}{{oidAccessOCSP, t.OCSPServers}, {oidAccessIssuers, t.IssuingURLs}} {
			for _, uri := range kind.uris {
				b.AddASN1(cbasn1.SEQUENCE, func(b *cryptobyte.Builder) {
					b.AddASN1ObjectIdentifier(kind.method)
					addURI(b, uri)
				})
			}
		}
	})
}

// extensionList builds extensions and keeps the first error.
type extensionList struct {
	list []Extension
	err  error
}

func (e *extensionList) add(oid OID, critical bool, value func(*cryptobyte.Builder)) {
	var b cryptobyte.Builder
	value(&b)
	der, err := b.Bytes()
	if err != nil && e.err == nil {
		e.err = fmt.Errorf("extension %s: %w", oid, err)
	}
	e.list = append(e.list, Extension{OID: oid, Critical: critical, Value: der})
}

// with appends the caller's extensions.
func (e *extensionList) with(extra []Extension) ([]Extension, error) {
	for _, x := range extra {
		if _, twice := findExtension(e.list, x.OID); twice && e.err == nil {
			e.err = fmt.Errorf("extension %s is given twice", x.OID)
		}
		e.list = append(e.list, x)
	}
	return e.list, e.err
}

func addExtensions(b *cryptobyte.Builder, list []Extension) {
	b.AddASN1(cbasn1.SEQUENCE, func(b *cryptobyte.Builder) {
		for _, e := range list {
			b.AddASN1(cbasn1.SEQUENCE, func(b *cryptobyte.Builder) {
				b.AddASN1ObjectIdentifier(e.OID)
				if e.Critical {
					b.AddASN1Boolean(true)
				}
				b.AddASN1OctetString(e.Value)
			})
		}
	})
}
