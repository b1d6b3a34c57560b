// SPDX-License-Identifier: Apache-2.0

// Package cms reads, checks and writes the SignedData message of RFC 5652 with GOST
// algorithms (RFC 4490, R 1323565.1.025), RSA and ECDSA, and the encrypted messages
// EnvelopedData and AuthEnvelopedData (RFC 5083).
//
// Begin with Parse and SignerInfo.Check to verify, or with BuildSignedAttributes and Encode
// to write. Message.Rewrite adds signatures, attributes and certificates. The package does
// not decide whether to trust a certificate, and knows no levels of CAdES: packages chain and
// sig/cades do.
//
// Begin with Encrypt to encrypt, and with ParseEnveloped and Enveloped.Decrypt to decrypt. The
// private key is a RecipientKey, which may be kept elsewhere. Plaintext goes to a Sink, which
// may release it only after Decrypt has checked the whole message. Encrypt does not check whether a
// certificate is valid.
//
// A message may be larger than memory. Parse and ParseEnveloped read headers only and describe the
// content as ranges of the file. Encode returns what precedes and what follows the content. Bytes of
// other programs are kept unchanged, and only signed attributes are sorted when they are
// written, so positions in the message stay the same.
package cms

import (
	"encoding/asn1"
	"io"
)

// Content types and attributes (RFC 5652, section 11; RFC 5035; RFC 5126; RFC 6211).
var (
	OIDData       = asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 7, 1}
	OIDSignedData = asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 7, 2}

	OIDContentType          = asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 9, 3}
	OIDMessageDigest        = asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 9, 4}
	OIDSigningTime          = asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 9, 5}
	OIDAlgorithmProtection  = asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 9, 52} // cms-algorithm-protection (RFC 6211)
	OIDCountersignature     = asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 9, 6}
	OIDSigningCertificate   = asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 9, 16, 2, 12}
	OIDSignatureTimeStamp   = asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 9, 16, 2, 14}
	OIDCertificateRefs      = asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 9, 16, 2, 21} // complete-certificate-references
	OIDRevocationRefs       = asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 9, 16, 2, 22} // complete-revocation-references
	OIDCertificateValues    = asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 9, 16, 2, 23}
	OIDRevocationValues     = asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 9, 16, 2, 24}
	OIDEscTimeStamp         = asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 9, 16, 2, 25} // CAdES-C time stamp
	OIDRefsTimeStamp        = asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 9, 16, 2, 26} // time stamp of the references alone
	OIDArchiveTimeStamp     = asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 9, 16, 2, 27}
	OIDSigningCertificateV2 = asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 9, 16, 2, 47}
	OIDArchiveTimeStampV2   = asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 9, 16, 2, 48}
	OIDArchiveTimeStampV3   = asn1.ObjectIdentifier{0, 4, 0, 1733, 2, 4}
	OIDHashIndex            = asn1.ObjectIdentifier{0, 4, 0, 1733, 2, 5} // ats-hash-index, in the token of an archive-time-stamp-v3
	OIDHashIndexV2          = asn1.ObjectIdentifier{0, 4, 0, 19122, 1, 4}
	OIDHashIndexV3          = asn1.ObjectIdentifier{0, 4, 0, 19122, 1, 5}

	oidOCSPResponse = asn1.ObjectIdentifier{1, 3, 6, 1, 5, 5, 7, 16, 2} // id-ri-ocsp-response (RFC 5940)
)

// Limits of Parse and ParseEnveloped. They limit memory and time and are far above what real messages need.
const (
	maxDepth    = 64       // nesting of BER elements: 8 countersignatures take 32, a time stamp on the last 25
	maxElements = 1024     // certificates, CRLs, signers, digest algorithms, each
	maxAttrs    = 128      // attributes in one set
	maxValues   = 1024     // values of the attributes of one set, together
	maxHeld     = 16 << 20 // bytes of everything except the content, together
	maxRanges   = 1 << 20  // pieces of a content encoded in pieces
	maxWalked   = 4 << 20  // elements visited in search of an end mark
	maxPadding  = 1 << 20  // zero bytes after the message
)

// MaxCountersignatures is the largest depth of countersignatures over countersignatures.
const MaxCountersignatures = 8

// Range is a range of the message's bytes.
type Range struct{ Offset, Length int64 }

// Algorithm is an AlgorithmIdentifier.
type Algorithm struct {
	// OID is nil when its arcs do not fit an int. Such an algorithm is unknown.
	OID asn1.ObjectIdentifier
	// Params is the parameters element as DER, nil when absent.
	Params []byte
	// Raw is the whole AlgorithmIdentifier as DER.
	Raw []byte
}

// Attribute is one signed or unsigned attribute.
type Attribute struct {
	// OID is nil when its arcs do not fit an int.
	OID asn1.ObjectIdentifier
	// Raw is the whole Attribute as DER.
	Raw []byte
	// Encoded is the whole Attribute as it is in the message. It differs from Raw only
	// when the message is BER. Time stamps over attributes cover these bytes.
	Encoded []byte
	// Values holds the values of the attribute as whole elements, in their order.
	Values [][]byte
}

// Message is a parsed SignedData. It refers to the reader it was parsed from.
type Message struct {
	Version          int
	DigestAlgorithms []Algorithm
	// ContentType is the type of what is signed. It is nil when its arcs do not fit an int.
	ContentType asn1.ObjectIdentifier
	// Detached reports whether the message does not include its content.
	Detached bool
	// Content has the ranges of the content bytes, without any headers.
	Content []Range
	// EncapContentInfo is the whole element around the content, with its header and its
	// end mark if any. Rewrite keeps it unchanged.
	EncapContentInfo Range
	// Certificates and CRLs hold each element exactly as it is in the message, in its
	// order. An element that is not an X.509 certificate or CRL (attribute certificates,
	// other revocation formats) begins with a context tag.
	Certificates, CRLs [][]byte
	// CertificateSet and RevocationInfo are the whole fields around Certificates and CRLs as they
	// are in the message; their length is 0 if a field is absent.
	CertificateSet, RevocationInfo Range
	Signers                        []*SignerInfo
	// Padding is the number of zero bytes after the message.
	Padding int64

	source io.ReaderAt
}

// ContentSize returns the number of content bytes.
func (m *Message) ContentSize() int64 {
	var n int64
	for _, r := range m.Content {
		n += r.Length
	}
	return n
}

// ContentReader returns a reader of the content bytes.
func (m *Message) ContentReader() io.Reader {
	return &contentReader{source: m.source, left: m.Content}
}

type contentReader struct {
	source io.ReaderAt
	left   []Range
	done   int64 // bytes already read of left[0]
}

func (c *contentReader) Read(p []byte) (int, error) {
	total := 0
	for total < len(p) {
		for len(c.left) > 0 && c.done == c.left[0].Length {
			c.left, c.done = c.left[1:], 0
		}
		if len(c.left) == 0 {
			break
		}
		r := c.left[0]
		n, err := c.source.ReadAt(p[total:total+int(min(int64(len(p)-total), r.Length-c.done))], r.Offset+c.done)
		total += n
		c.done += int64(n)
		if err != nil && !(err == io.EOF && c.done == r.Length) {
			if err == io.EOF {
				err = io.ErrUnexpectedEOF
			}
			return total, err
		}
		if n == 0 {
			return total, io.ErrNoProgress
		}
	}
	if total == 0 && len(p) > 0 {
		return 0, io.EOF
	}
	return total, nil
}
