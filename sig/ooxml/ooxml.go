// SPDX-License-Identifier: Apache-2.0

// Package ooxml makes and checks signatures in Office documents. It reads and writes the
// document as a package: a ZIP archive with parts, content types and relationships (Open
// Packaging Conventions, ECMA-376 part 2). Its signature is the one that Word, Excel and
// PowerPoint make and read (ECMA-376 part 2, clause 13, with MS-OFFCRYPTO 2.5.2).
//
// Begin with New. The package does not check the Signature elements themselves: package
// xmldsig does. Package zip reads the archive. The package does not read documents of Word 97 to
// 2003, and it does not decrypt.
//
// # What is signed
//
// Every part that a relationship leads to, and every relationship, with these exceptions:
// document properties, thumbnails, custom XML data and the signatures themselves. This is
// what Office signs, plus the kinds of parts that are newer than its list (policy.go).
// [Content_Types].xml is never signed: the reference to a part includes its content type.
//
// # What a signed document consists of
//
// Unchanged entries of the archive are copied byte by byte, still compressed.
// [Content_Types].xml and the relationships of the package are rewritten in their place,
// with one element more. A further signature adds to the relationships of the origin part
// instead, which no signature covers. The first signature of a document also removes
// white space from its relationships parts. It has no meaning, but it makes LibreOffice
// call signatures broken (see spaces). All other additions come after the last entry.
// New content of up to 8 KiB is not compressed, which saves a fifth of the time.
// Memory does not grow with the parts: they are decompressed and hashed as a stream.
//
// # What is refused
//
// Archives that two programs could read differently (see package zip). Names that mean the same
// part: those that differ only in letter case or percent-encoding. Packages in pieces
// (interleaving). All encrypted entries. The error for an encrypted document or one of
// Word 97 to 2003 names its kind.
package ooxml

import (
	"bytes"
)

// Format makes and checks signatures in Office documents. It has no settings.
type Format struct{}

// New returns the format.
func New() *Format { return &Format{} }

// Limits. They bound the cost of a hostile document. Real documents are far below them. Package zip
// has the limits of the archive.
const (
	maxXML        = 8 << 20  // bytes of one part that must be parsed as XML
	maxXMLTotal   = 32 << 20 // of all parsed parts of a package
	maxXMLNodes   = 1 << 19  // nodes and attributes of one of them
	maxRelations  = 100_000  // relationships of a package; a sheet may have 66 530 links
	maxSignatures = 64       // checked in one document
	maxSigned     = 8 << 20  // bytes of all signature parts together
	maxReferences = 8        // of SignedInfo; Office makes three, or five with pictures

	// maxTransformed is the limit for relationships and XML that all signatures of a
	// document together have transformed, in bytes.
	maxTransformed = 32 << 20

	// workers is how many parts are decompressed and hashed at once to make a signature.
	// Verification uses one processor, because unauthenticated callers can request it.
	workers = 4
)

// The first bytes of an archive, and of a compound file, which is the format of Word 97
// to 2003 and of encrypted documents of later versions.
const (
	magicZIP = "PK\x03\x04"
	magicCFB = "\xD0\xCF\x11\xE0\xA1\xB1\x1A\xE1"
)

// LooksLikePackage reports by the first eight bytes whether a document is an Office
// document or was meant to be: an archive, or a compound file, which is refused with the
// reason.
func LooksLikePackage(head []byte) bool {
	return bytes.HasPrefix(head, []byte(magicZIP)) || bytes.HasPrefix(head, []byte(magicCFB))
}
