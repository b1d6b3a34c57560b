// SPDX-License-Identifier: Apache-2.0

// Package pdf makes and checks signatures in PDF (ISO 32000-1, 12.8; ISO 32000-2, 12.8;
// ETSI EN 319 142-1) by incremental update. It reads and writes as much PDF as signing
// needs:
//
//	CMS     adbe.pkcs7.detached
//	CAdEST  ETSI.CAdES.detached with a time stamp of the signature (PAdES B-T)
//	CAdES   the same with the attributes of X Long Type 1 in the message and, in a
//	        revision of its own, a document security store (PAdES B-LT)
//	CAdESA  the same with a time stamp of the document over it (PAdES B-LTA)
//
// Enhance raises signatures of any program to the levels above CMS, and renews CAdESA.
//
// Begin with New. The package does not render pages and does not make the messages
// inside: package cades does.
//
// The bytes of a document never change: new bytes follow them, in a cross-reference
// section of the same kind as the last one. If the cross-references of a document are
// broken, the new section lists all its objects.
//
// # Supported documents
//
// PDF 1.0 to 2.0: tables, cross-reference streams, hybrids of both, object streams and
// linearised files; files encrypted by the standard security handler (RC4, AES-128,
// AES-256 of revisions 5 and 6) that open with an empty password or PDFPassword; files
// whose objects must be found by a pass over the whole file. The file is read by its
// cross-references through a window, so a document may be larger than memory.
package pdf

import (
	"bytes"

	"tamga/sig/cades"
	"tamga/sig/pdf/stamp"
)

// Format makes and checks signatures in PDF.
type Format struct {
	// CMS makes and checks the messages inside. Its rules about the age of revocation
	// data apply to the format CAdES too.
	CMS *cades.Format

	// Logo is the logo or the arms on marks of requests without an image, as [ReadLogo] returns it. Empty: none.
	Logo string

	sizes sizes // sizes of the evidence of earlier signatures
}

// ReadLogo checks an image for Logo.
func ReadLogo(image []byte) (string, error) { return stamp.CheckLogo(image) }

// New returns the format with the strictest rules for messages.
func New() *Format { return &Format{CMS: cades.New()} }

// LooksLikePDF reports by the first kilobyte of a document whether it is PDF: the header
// must be there (ISO 32000-1, annex H.3, notes 13 and 14). Signing, verification and the
// recognition of files all use this rule.
func LooksLikePDF(head []byte) bool {
	_, _, ok := findHeader(head)
	return ok
}

// findHeader returns the offset of the header, from which offsets in the file are
// counted, and its version.
func findHeader(head []byte) (at int, version string, ok bool) {
	head = head[:min(len(head), headerReach)]
	if at = bytes.Index(head, []byte("%PDF-")); at >= 0 {
		return at, versionOf(head[at+len("%PDF-"):]), true
	}
	// %!PS-Adobe-N.n PDF-M.m
	if at = bytes.Index(head, []byte("%!PS-Adobe-")); at >= 0 {
		line, _, _ := bytes.Cut(head[at:], []byte("\n"))
		line, _, _ = bytes.Cut(line, []byte("\r"))
		if _, v, ok := bytes.Cut(line, []byte(" PDF-")); ok {
			return at, versionOf(v), true
		}
	}
	return 0, "", false
}

// Limits for one document. They bound memory and time for hostile input. Real documents
// are far below them.
const (
	headerReach   = 1024     // bytes before the header
	trailerReach  = 4096     // bytes from the end in which startxref is searched for
	maxDepth      = 128      // nesting of arrays and dictionaries
	maxTokens     = 1 << 20  // of one object
	maxObject     = 32 << 20 // bytes of one object without its stream
	maxSections   = 4096     // revisions
	maxEntries    = 8 << 20  // objects of one document
	maxWritten    = 8388607  // largest object number that is written (annex C); MuPDF reads none above
	maxAdded      = 8192     // more than the number of objects that a signature adds
	maxFound      = 4 << 20  // objects found by a pass over a broken document
	maxCrossData  = 96 << 20 // bytes of all cross-reference streams, decoded
	maxDecoded    = 64 << 20 // bytes of one stream, decoded
	inflateFloor  = 192 << 20
	maxHops       = 16      // references that lead to references
	maxVisited    = 1 << 19 // objects visited in one walk over a tree
	maxTreeDepth  = 64
	maxSignatures = 256 // checked in one document
)
