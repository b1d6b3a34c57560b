// Package xmldsig owns signatures in XML (XML Signature Syntax and Processing
// 1.1) and their form with signed properties, XAdES (ETSI EN 319 132-1, TS 101
// 903): enveloped (the signature stands inside the document it signs), enveloping
// (the document stands inside the signature) and by template (the document comes
// with an empty Signature that says what to sign and how).
//
// A document to sign enveloped or by template must be well-formed XML without a
// document type that declares entities. Enveloping takes anything: what begins
// like XML must be XML, everything else becomes Base64. Octets outside the
// signature leave as they came, in the encoding they came in.
//
// # XAdES
//
// XAdESType=BES adds signed properties (the time, the certificate), T a time stamp over
// the value as well; Enhance makes T of BES. In a template the properties go where it
// has QualifyingProperties, otherwise into an Object of their own with a Reference
// behind the others, see qualify. The empty digests of a Manifest in a template are
// filled; what is listed in a Manifest is not judged by Verify, as XMLDSig has it.
//
// # What is understood
//
// References within the document: URI="", "#id", "#xpointer(/)" and
// "#xpointer(id('id'))". Identifiers are the attributes of the tree (Id, ID, id,
// xml:id, wsu:Id); one that a reference resolves to must be unique among them all.
// Transforms: enveloped-signature, the six canonical forms, Base64, XPath in the
// grammar of package xmltree, XPath Filter 2.0, and the transform of SMEV 3.
// Everything else is refused by its name, XSLT and remote references among it.
package xmldsig

import (
	"io"

	"tamga/sig"
	"tamga/sig/budget"
)

// Format makes and checks signatures in XML. The zero value is ready.
type Format struct {
	// MaxSize is how many octets a document to sign may have; 0 means DefaultMaxSize.
	// The tree of a document takes several times its octets in memory. A signed
	// document may be as much larger as signing makes it: by a third where it became
	// Base64, and by 4 MiB for the signature.
	MaxSize int64
	// AllowDoctype admits documents with a document type declaration without
	// internal subset. What it names outside is never read.
	AllowDoctype bool
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

// Limits on one signature. What a document may cost as a whole is in package budget.
const (
	maxSignatures   = 64   // judged in one document
	maxReferences   = 128  // of one signature
	maxTransforms   = 8    // of one reference
	maxCertificates = 32   // of one signature
	maxValue        = 8192 // characters of a signature value
	maxPlaces       = 32   // of which a report tells the line, see judgement.tell

	// signatureRoom is more octets than a signature adds to a document, with the
	// certificates of its chain and a time stamp, in UTF-16 too.
	signatureRoom = 4 << 20

	maxPrefixes = 64 << 10 // characters of a PrefixList
)

// maxSigned is how many octets a signed document may have.
func (f *Format) maxSigned() int64 { return f.maxSize() + f.maxSize()/3 + signatureRoom }

// read returns the octets of a document of at most so many.
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
