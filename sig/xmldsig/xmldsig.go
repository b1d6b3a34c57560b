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
)

// Format makes and checks signatures in XML. The zero value is ready.
type Format struct {
	// MaxSize is how many octets a document may have; 0 means DefaultMaxSize. The
	// tree of a document takes several times its octets in memory.
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

// Limits on one signature. They bound the work a hostile document can ask for.
const (
	maxSignatures   = 64   // judged in one document
	maxReferences   = 128  // of one signature
	maxTransforms   = 8    // of one reference
	maxCertificates = 32   // of one KeyInfo
	maxValue        = 8192 // characters of a signature value
	maxPlaces       = 32   // of which a report tells the line, see judgement.tell

	// workFactor bounds the octets that all references of a document together may
	// have digested, as a multiple of the document's size.
	workFactor = 16
	workFloor  = 16 << 20
)

// read returns the octets of a document of at most the size limit.
func (f *Format) read(d sig.Document) ([]byte, error) {
	size := d.Size()
	if limit := f.maxSize(); size > limit {
		return nil, tooLarge(size, limit)
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
