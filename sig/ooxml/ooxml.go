// Package ooxml owns Office documents as packages and the signatures in them: the
// ZIP archive with its parts, content types and relationships (Open Packaging
// Conventions, ECMA-376 part 2), and the signature that Word, Excel and PowerPoint
// make and read (ECMA-376 part 2, clause 13, with MS-OFFCRYPTO 2.5.2).
//
// # What is signed
//
// Every part that a relationship leads to, and every relationship, but document
// properties, thumbnails, custom XML data and the signatures themselves: what Office
// signs, and also the kinds of parts that came after the list it signs by (policy.go).
// Nobody signs [Content_Types].xml; the content type of a part is in the reference to
// the part.
//
// # What a signed document is made of
//
// Entries of the archive that do not change are copied octet by octet, compressed as
// they are. [Content_Types].xml and the relationships of the package are written anew
// where they stood, with one element more; a further signature adds to the
// relationships of the origin part instead, which no signature covers. The first
// signature of a document also takes white space out of its relationships parts, which
// means nothing and makes LibreOffice call signatures broken (see spaces). The rest is
// added behind the last entry. Memory does not grow with the parts: they are
// decompressed and hashed in passing.
//
// # What is refused
//
// Archives that two programs could read differently: names that occur twice, also by
// another letter case or percent-encoding, entries that overlap, local headers that
// contradict the central directory, sizes that are not true; packages in pieces
// (interleaving); anything encrypted. Encrypted documents and those of Word 97 to 2003
// are named as what they are.
package ooxml

import (
	"bytes"
)

// Format makes and checks signatures in Office documents. It has no settings.
type Format struct{}

// New returns the format.
func New() *Format { return &Format{} }

// Limits. They bound what a hostile document can ask for; documents of people stay
// far below them.
const (
	maxEntries    = 1 << 16  // of an archive
	maxDirectory  = 16 << 20 // octets of its central directory
	maxXML        = 8 << 20  // octets of one part that has to be read as a tree
	maxXMLTotal   = 32 << 20 // of all parts of a package read so
	maxXMLNodes   = 1 << 19  // nodes and attributes of one of them
	maxRelations  = 100_000  // relationships of a package; a sheet may have 66 530 links
	maxSignatures = 64       // judged in one document
	maxSigned     = 8 << 20  // octets of all signature parts together
	maxReferences = 8        // of SignedInfo; Office makes three, or five with pictures

	// maxTransformed bounds the octets of relationships and XML that all signatures of a
	// document together have transformed.
	maxTransformed = 32 << 20

	// maxRatio bounds what all entries together may decompress to, as a multiple of
	// the size of the archive; up to ratioFloor octets nobody counts. Deflate reaches
	// a ratio of 1032, Office documents 20, sparse sheets 50.
	maxRatio   = 100
	ratioFloor = 128 << 20

	// workers is how many parts are decompressed and hashed at once for a signature.
	// Strangers have documents verified: that is done on one processor.
	workers = 4
)

// The first octets of an archive and of a compound file, which holds documents of
// Word 97 to 2003 and encrypted ones of later versions.
const (
	magicZIP = "PK\x03\x04"
	magicCFB = "\xD0\xCF\x11\xE0\xA1\xB1\x1A\xE1"
)

// LooksLikePackage tells by its first eight octets whether a document is an Office
// document or meant to be one: an archive, or a compound file, which is refused with
// the reason.
func LooksLikePackage(head []byte) bool {
	return bytes.HasPrefix(head, []byte(magicZIP)) || bytes.HasPrefix(head, []byte(magicCFB))
}
