// SPDX-License-Identifier: Apache-2.0

// Package xmldsig makes and checks signatures in XML (XML Signature Syntax and Processing
// 1.1) and their form with signed properties, XAdES (ETSI EN 319 132-1, TS 101 903).
// There are three kinds:
//
//   - enveloped: the signature is inside the document that it signs;
//   - enveloping: the document is inside the signature;
//   - by template: the document comes with an empty Signature that says what to sign
//     and how.
//
// Begin with New. VerifyElement checks one Signature element for protocols such as SAML.
// The package does not parse XML itself (package xmltree does) and does not decide which
// certificates are trusted (sig.Check does).
//
// A document to sign enveloped or by template must be well-formed XML without a document
// type that declares entities. Enveloping accepts any document: if it begins like XML it
// must be XML, and everything else is stored as Base64. Bytes outside the signature do
// not change, and neither does the encoding.
//
// # XAdES
//
// XAdESType=BES adds signed properties (the time, the certificate). T also adds a time
// stamp over the value, LT certificates and revocation data, LTA an archive time stamp. Enhance
// raises signatures of any program to these levels and renews LTA. In a template the properties go into
// its QualifyingProperties. If it has none, they go into an Object of their own with a
// Reference after the others, see qualify. The empty digests of a Manifest in a template
// are filled. Verify does not check what a Manifest lists, as XMLDSig defines it.
//
// # Supported references and transforms
//
// References within the document: URI="", "#id", "#xpointer(/)" and
// "#xpointer(id('id'))". Identifiers are the attributes Id, ID, id, xml:id and wsu:Id.
// The identifier of a reference must be unique among them all. Transforms:
// enveloped-signature, the six canonical forms, Base64, XPath in the grammar of package
// xmltree, XPath Filter 2.0, and the transform of SMEV 3. All others are refused by name,
// including XSLT and remote references.
package xmldsig

import (
	"io"

	"tamga/sig"
	"tamga/sig/budget"
	"tamga/sig/evidence"
)

// Format makes and checks signatures in XML. The zero value is ready.
type Format struct {
	// MaxSize is the maximum size of a document to sign, in bytes; 0 means
	// DefaultMaxSize. The tree of a document takes several times its size in memory. A
	// signed document may be larger by what signing adds: a third for Base64, and 4 MiB
	// for the signature.
	MaxSize int64
	// AllowDoctype admits documents with a document type declaration without internal
	// subset. External subsets are never read.
	AllowDoctype bool
	// Rules say how old the revocation data of the levels above T may be.
	Rules evidence.Rules
}

// DefaultMaxSize is 64 MiB.
const DefaultMaxSize = 64 << 20

// New returns the format with its default limit.
func New() *Format { return &Format{} }

func (f *Format) maxSize() int64 {
	if f.MaxSize > 0 {
		return f.MaxSize
	}
	return DefaultMaxSize
}

// Limits for one signature. Package budget limits the cost of a whole document.
const (
	maxSignatures   = 64   // checked in one document
	maxReferences   = 128  // of one signature, within the document
	maxFiles        = 4096 // files beside the document that one signature refers to
	maxTransforms   = 8    // of one reference
	maxCertificates = 32   // of KeyInfo, and among which the signer is searched for
	maxValues       = 1024 // certificates, lists and answers of one signature
	maxValue        = 8192 // characters of a signature value
	maxPlaces       = 32   // findings of a report with their line, see tell

	// signatureRoom is more bytes than a signature adds to a document, with the
	// certificates of its chain and a time stamp, in UTF-16 too.
	signatureRoom = 4 << 20

	maxPrefixes = 64 << 10 // characters of a PrefixList
)

// maxSigned returns the maximum size of a signed document, in bytes.
func (f *Format) maxSigned() int64 { return f.maxSize() + f.maxSize()/3 + signatureRoom }

// read returns the bytes of a document of at most limit bytes.
func read(b *budget.Budget, d sig.Document, limit int64) ([]byte, error) {
	size := d.Size()
	if size > limit {
		return nil, tooLarge(size, limit)
	}
	if err := b.Hold(size); err != nil {
		return nil, err
	}
	data := make([]byte, size)
	if n, err := d.ReadAt(data, 0); n < len(data) {
		if err == nil || err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		return nil, readError(err)
	}
	return data, nil
}
