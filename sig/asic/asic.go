// SPDX-License-Identifier: Apache-2.0

// Package asic makes and checks signatures in Associated Signature Containers (ASiC, ETSI
// EN 319 162-1): ZIP archives that hold files together with their signatures. There are two kinds:
//
//   - ASiC-S has one file and signatures of it;
//   - ASiC-E has any number of files, and each signature covers some of them.
//
// Signatures are CAdES or XAdES. Begin with New. The package does not check signatures itself:
// packages cades and xmldsig do, and package zip reads the archive.
//
// # What is signed
//
// A CAdES signature of ASiC-S covers the file. One of ASiC-E covers an ASiCManifest, a list of files
// with their digests. A XAdES signature refers to the files itself. Time stamps over the file or over
// a list are read as well, and those over a list with signatures (ASiCArchiveManifest) prove when these
// signatures existed. Evidence records are named and not checked.
//
// Nothing requires that signatures cover all files. The report names each file and the signatures that
// cover it unchanged.
//
// # What is refused
//
// Archives that two programs could read differently (see package zip). Names that mean the same file on
// some systems or in a reference: those that differ only in letter case, in the form of Unicode, in
// percent-encoding, in format characters, or in dots and spaces at an end. Other spellings of META-INF and mimetype.
//
// # What a new container consists of
//
// The entry mimetype, the files, and META-INF with the signatures. Files are stored without compression,
// so that the length of the container is known in advance and the container is written as a stream. A
// further signature is added behind the last entry and changes no byte of the others, except in ASiC-S,
// whose signatures are in one entry.
package asic

import (
	"tamga/sig/cades"
	"tamga/sig/xmldsig"
)

// Format makes and checks signatures in containers. It has the formats of the signatures inside.
type Format struct {
	CMS *cades.Format
	XML *xmldsig.Format
}

// New returns the format with the default limits.
func New() *Format { return &Format{CMS: cades.New(), XML: xmldsig.New()} }

// Limits. They bound the cost of a hostile container. Package zip has the limits of the archive.
const (
	maxManifest   = 4 << 20  // bytes of one manifest
	maxMessage    = 32 << 20 // bytes of one CMS signature
	maxSignatures = 256      // entries with signatures or time stamps that are checked
	maxManifests  = 512      // lists of files that are read
	maxListed     = 1 << 16  // files in all lists together
	maxDigests    = 8        // algorithms by which one file is hashed
	maxNames      = 20       // names in one text
)

// Namespaces.
const (
	nsASiC    = "http://uri.etsi.org/02918/v1.2.1#"
	nsASiCOld = "http://uri.etsi.org/2918/v1.2.1#"
	nsDS      = "http://www.w3.org/2000/09/xmldsig#"
)

// Media types of containers (EN 319 162-1, A.1 and clauses 4.3.3.1 and 4.4.3.1).
const (
	typeS = "application/vnd.etsi.asic-s+zip"
	typeE = "application/vnd.etsi.asic-e+zip"
)

const (
	mimetypeName = "mimetype"
	metaFolder   = "META-INF/"
)
