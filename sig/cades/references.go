// SPDX-License-Identifier: Apache-2.0

package cades

import (
	"bytes"
	"encoding/asn1"
	"errors"
	"fmt"
	"time"

	"golang.org/x/crypto/cryptobyte"
	cbasn1 "golang.org/x/crypto/cryptobyte/asn1"

	"tamga/pki/cms"
	"tamga/pki/ocsp"
	"tamga/pki/suite"
	"tamga/pki/x509gost"
	"tamga/sig/evidence"
)

// Tags of the attributes of RFC 5126, 6.2 and 6.3. The tags of its module are explicit.
var (
	tag0 = cbasn1.Tag(0).ContextSpecific().Constructed()
	tag1 = cbasn1.Tag(1).ContextSpecific().Constructed()
	tag2 = cbasn1.Tag(2).ContextSpecific().Constructed()
)

// maxReferences is the limit for the references and for the values of one signature, of
// each kind.
const maxReferences = 1024

// algorithm writes the AlgorithmIdentifier of a digest as CMS does.
func algorithm(b *cryptobyte.Builder, h *suite.Hash) {
	b.AddASN1(cbasn1.SEQUENCE, func(b *cryptobyte.Builder) {
		b.AddASN1ObjectIdentifier(h.OID)
		if h.NullParams {
			b.AddASN1NULL()
		}
	})
}

// otherHash writes OtherHash in its long form. The short form means SHA-1.
func otherHash(b *cryptobyte.Builder, h *suite.Hash, data []byte) {
	b.AddASN1(cbasn1.SEQUENCE, func(b *cryptobyte.Builder) {
		algorithm(b, h)
		b.AddASN1OctetString(h.Digest(data).Sum)
	})
}

// certificateRefs returns complete-certificate-references (RFC 5126, 6.2.1) of a path
// without the signer's own certificate.
func certificateRefs(path []*x509gost.Certificate, h *suite.Hash) cms.Attribute {
	var b cryptobyte.Builder
	b.AddASN1(cbasn1.SEQUENCE, func(b *cryptobyte.Builder) {
		for _, c := range path[1:] {
			b.AddASN1(cbasn1.SEQUENCE, func(b *cryptobyte.Builder) {
				otherHash(b, h, c.Raw)
				b.AddASN1(cbasn1.SEQUENCE, func(b *cryptobyte.Builder) {
					b.AddASN1(cbasn1.SEQUENCE, func(b *cryptobyte.Builder) { // GeneralNames
						b.AddASN1(cbasn1.Tag(4).ContextSpecific().Constructed(), func(b *cryptobyte.Builder) { b.AddBytes(c.RawIssuer) })
					})
					b.AddASN1(cbasn1.INTEGER, func(b *cryptobyte.Builder) { b.AddBytes(c.SerialNumber) })
				})
			})
		}
	})
	return cms.NewAttribute(cms.OIDCertificateRefs, b.BytesOrPanic())
}

// revocationRefs returns complete-revocation-references (RFC 5126, 6.2.2): one entry for
// the signer, then one for each reference of certificateRefs in its order. The entry of
// the trust anchor, which has no proof, is empty.
func revocationRefs(statuses []*evidence.Status, h *suite.Hash) cms.Attribute {
	var b cryptobyte.Builder
	b.AddASN1(cbasn1.SEQUENCE, func(b *cryptobyte.Builder) {
		for _, p := range statuses {
			b.AddASN1(cbasn1.SEQUENCE, func(b *cryptobyte.Builder) {
				switch {
				case p == nil:
				case p.CRL != nil:
					wrapped(b, tag0, func(b *cryptobyte.Builder) { crlReference(b, p.CRL, h) })
				default:
					wrapped(b, tag1, func(b *cryptobyte.Builder) { ocspReference(b, p.OCSP, h) })
				}
			})
		}
	})
	return cms.NewAttribute(cms.OIDRevocationRefs, b.BytesOrPanic())
}

// wrapped writes tag { SEQUENCE { SEQUENCE OF { one } } }: CRLListID or OcspListID.
func wrapped(b *cryptobyte.Builder, tag cbasn1.Tag, one cryptobyte.BuilderContinuation) {
	b.AddASN1(tag, func(b *cryptobyte.Builder) {
		b.AddASN1(cbasn1.SEQUENCE, func(b *cryptobyte.Builder) {
			b.AddASN1(cbasn1.SEQUENCE, func(b *cryptobyte.Builder) {
				b.AddASN1(cbasn1.SEQUENCE, one)
			})
		})
	})
}

// crlReference writes CrlValidatedID.
func crlReference(b *cryptobyte.Builder, l *x509gost.RevocationList, h *suite.Hash) {
	otherHash(b, h, l.Raw)
	b.AddASN1(cbasn1.SEQUENCE, func(b *cryptobyte.Builder) {
		b.AddBytes(l.RawIssuer)
		// The syntax is UTCTime, which cannot express a date from 2050 on.
		if l.ThisUpdate.Year() < 2050 {
			b.AddASN1UTCTime(l.ThisUpdate)
		} else {
			b.AddASN1GeneralizedTime(l.ThisUpdate)
		}
		if l.Number != nil {
			b.AddASN1(cbasn1.INTEGER, func(b *cryptobyte.Builder) { b.AddBytes(l.Number) })
		}
	})
}

// ocspReference writes OcspResponsesID: the responder and the time with exactly the bytes
// of the answer, and the digest of the BasicOCSPResponse.
func ocspReference(b *cryptobyte.Builder, o *ocsp.Basic, h *suite.Hash) {
	b.AddASN1(cbasn1.SEQUENCE, func(b *cryptobyte.Builder) {
		b.AddBytes(o.RawResponderID)
		b.AddBytes(o.RawProducedAt)
	})
	otherHash(b, h, o.Raw)
}

// certificateValues returns certificate-values (RFC 5126, 6.3.3).
func certificateValues(certs []evidence.Value) cms.Attribute {
	var b cryptobyte.Builder
	b.AddASN1(cbasn1.SEQUENCE, func(b *cryptobyte.Builder) { addAll(b, certs) })
	return cms.NewAttribute(cms.OIDCertificateValues, b.BytesOrPanic())
}

// revocationValues returns revocation-values (RFC 5126, 6.3.4): CertificateList and
// BasicOCSPResponse, not OCSPResponse.
func revocationValues(crls, answers []evidence.Value) cms.Attribute {
	var b cryptobyte.Builder
	b.AddASN1(cbasn1.SEQUENCE, func(b *cryptobyte.Builder) {
		for i, list := range [][]evidence.Value{crls, answers} {
			if len(list) == 0 {
				continue
			}
			b.AddASN1(cbasn1.Tag(i).ContextSpecific().Constructed(), func(b *cryptobyte.Builder) {
				b.AddASN1(cbasn1.SEQUENCE, func(b *cryptobyte.Builder) { addAll(b, list) })
			})
		}
	})
	return cms.NewAttribute(cms.OIDRevocationValues, b.BytesOrPanic())
}

// addAll writes values one after another.
func addAll(b *cryptobyte.Builder, list []evidence.Value) {
	for _, v := range list {
		b.AddBytes(v.DER)
	}
}

// reference is one digest of a certificate, a list or an answer, with the other data of
// the reference.
type reference struct {
	hash *suite.Hash // nil if the algorithm is unknown
	sum  []byte
	// issuer (a Name) and serial of a certificate, nil if absent.
	issuer, serial []byte
	// of a list
	at     time.Time
	number []byte
	// responder and produced are the elements of an answer's identifier.
	responder, produced []byte
}

var errReference = errors.New("is malformed")

// readHash reads OtherHash.
func (r *reference) readHash(in *cryptobyte.String) bool {
	var sum, seq cryptobyte.String
	if in.PeekASN1Tag(cbasn1.OCTET_STRING) {
		r.hash = suite.SHA1
		ok := in.ReadASN1(&sum, cbasn1.OCTET_STRING)
		r.sum = sum
		return ok
	}
	var oid asn1.ObjectIdentifier
	var id cryptobyte.String
	if !in.ReadASN1(&seq, cbasn1.SEQUENCE) || !seq.ReadASN1(&id, cbasn1.SEQUENCE) || !id.ReadASN1ObjectIdentifier(&oid) ||
		!seq.ReadASN1(&sum, cbasn1.OCTET_STRING) || !seq.Empty() {
		return false
	}
	r.hash, _ = suite.HashByOID(oid)
	r.sum = sum
	return true
}

// readCertificateRefs reads the value of complete-certificate-references.
func readCertificateRefs(value []byte) (list []reference, err error) {
	err = each(value, func(in *cryptobyte.String) bool {
		var r reference
		var id, names, name, serial cryptobyte.String
		if !r.readHash(in) {
			return false
		}
		if !in.Empty() {
			if !in.ReadASN1(&id, cbasn1.SEQUENCE) || !id.ReadASN1(&names, cbasn1.SEQUENCE) ||
				!names.ReadASN1(&name, cbasn1.Tag(4).ContextSpecific().Constructed()) || !id.ReadASN1(&serial, cbasn1.INTEGER) {
				return false
			}
			r.issuer, r.serial = name, serial
		}
		list = append(list, r)
		return in.Empty()
	})
	return list, err
}

// revocationRef is one CrlOcspRef: the references for one certificate.
type revocationRef struct {
	crls, answers []reference
	other         bool
}

// readRevocationRefs reads the value of complete-revocation-references.
func readRevocationRefs(value []byte) (list []revocationRef, err error) {
	total := 0
	err = each(value, func(in *cryptobyte.String) bool {
		var r revocationRef
		for i, tag := range []cbasn1.Tag{tag0, tag1, tag2} {
			var explicit, ids cryptobyte.String
			if !in.PeekASN1Tag(tag) {
				continue
			}
			if !in.ReadASN1(&explicit, tag) {
				return false
			}
			if tag == tag2 {
				r.other = true
				continue
			}
			if !explicit.ReadASN1(&ids, cbasn1.SEQUENCE) || !explicit.Empty() {
				return false
			}
			read, out := readCRLReference, &r.crls
			if i == 1 {
				read, out = readAnswerReference, &r.answers
			}
			err := each(ids, func(in *cryptobyte.String) bool {
				var one reference
				total++
				ok := total <= maxReferences && read(in, &one)
				*out = append(*out, one)
				return ok && in.Empty()
			})
			if err != nil {
				return false
			}
		}
		list = append(list, r)
		return in.Empty()
	})
	return list, err
}

func readCRLReference(in *cryptobyte.String, r *reference) bool {
	var id, issuer, number cryptobyte.String
	if !r.readHash(in) {
		return false
	}
	if in.Empty() {
		return true
	}
	if !in.ReadASN1(&id, cbasn1.SEQUENCE) || !id.ReadASN1Element(&issuer, cbasn1.SEQUENCE) {
		return false
	}
	ok := id.PeekASN1Tag(cbasn1.UTCTime) && id.ReadASN1UTCTime(&r.at) || id.ReadASN1GeneralizedTime(&r.at)
	if !ok || !id.Empty() && (!id.ReadASN1(&number, cbasn1.INTEGER) || !id.Empty()) {
		return false
	}
	r.issuer, r.number = issuer, number
	return true
}

func readAnswerReference(in *cryptobyte.String, r *reference) bool {
	var id, responder, produced cryptobyte.String
	var tag cbasn1.Tag
	if !in.ReadASN1(&id, cbasn1.SEQUENCE) || !id.ReadAnyASN1Element(&responder, &tag) ||
		!id.ReadASN1Element(&produced, cbasn1.GeneralizedTime) || !id.Empty() {
		return false
	}
	r.responder, r.produced = responder, produced
	return in.Empty() || r.readHash(in)
}

// each reads a SEQUENCE OF SEQUENCE.
func each(value []byte, read func(*cryptobyte.String) bool) error {
	in := cryptobyte.String(value)
	var seq cryptobyte.String
	if !in.ReadASN1(&seq, cbasn1.SEQUENCE) || !in.Empty() {
		return errReference
	}
	for n := 0; !seq.Empty(); n++ {
		var one cryptobyte.String
		if n == maxReferences || !seq.ReadASN1(&one, cbasn1.SEQUENCE) || !read(&one) {
			return errReference
		}
	}
	return nil
}

// readElements returns the elements of a SEQUENCE OF, with their headers.
func readElements(in cryptobyte.String) (list [][]byte, err error) {
	var seq cryptobyte.String
	if !in.ReadASN1(&seq, cbasn1.SEQUENCE) || !in.Empty() {
		return nil, errReference
	}
	for !seq.Empty() {
		var one cryptobyte.String
		if len(list) == maxReferences || !seq.ReadASN1Element(&one, cbasn1.SEQUENCE) {
			return nil, errReference
		}
		list = append(list, one)
	}
	return list, nil
}

// readRevocationValues reads the value of revocation-values.
func readRevocationValues(value []byte) (crls, answers [][]byte, err error) {
	in := cryptobyte.String(value)
	var seq cryptobyte.String
	if !in.ReadASN1(&seq, cbasn1.SEQUENCE) || !in.Empty() {
		return nil, nil, errReference
	}
	for i, tag := range []cbasn1.Tag{tag0, tag1, tag2} {
		var explicit cryptobyte.String
		if !seq.PeekASN1Tag(tag) {
			continue
		}
		if !seq.ReadASN1(&explicit, tag) {
			return nil, nil, errReference
		}
		switch i {
		case 0:
			crls, err = readElements(explicit)
		case 1:
			answers, err = readElements(explicit)
		}
		if err != nil {
			return nil, nil, err
		}
	}
	if !seq.Empty() {
		return nil, nil, errReference
	}
	return crls, answers, nil
}

// matches reports whether the reference has the digest of these bytes.
func (r *reference) matches(raw []byte) bool {
	return r.hash != nil && bytes.Equal(r.sum, r.hash.Digest(raw).Sum)
}

// String describes a reference by a known algorithm in messages.
func (r *reference) String() string {
	if r.sum == nil {
		return "a reference without a digest"
	}
	return fmt.Sprintf("the reference with the %s digest %x", r.hash.Name, r.sum)
}
