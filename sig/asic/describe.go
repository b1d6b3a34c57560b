// SPDX-License-Identifier: Apache-2.0

package asic

import (
	"bytes"
	"context"
	"encoding/binary"
	"strings"

	"tamga/sig"
	"tamga/sig/budget"
)

// Describe implements sig.Describer.
func (*Format) Describe() sig.Description { return description }

var description = sig.Description{
	Types: []sig.Type{{Name: "ASiC", Usual: sig.Params{"ASiCType": typeNameE, "ASiCFormat": formatCAdES}}},
	Kind:  "asic", Noun: "container with signatures", Expected: "a container (ASiC)",
	Suffix: ".asice", SuffixFor: suffixFor, Extends: extends,
	Forms: []sig.Form{{
		Name: "asic", Noun: "container with the files and their signature (ASiC)", Type: "ASiC",
		Params: map[sig.Level]sig.Params{
			sig.LevelBasic: {"Container": "one"}, sig.LevelTime: {"Container": "one", "CADESType": "T"},
			sig.LevelLongTerm: {"Container": "one", "CADESType": "XLT1"}, sig.LevelArchive: {"Container": "one", "CADESType": "A"},
		},
	}},
	Recognises: func(head []byte, _ int64) bool { return LooksLikeArchive(head) && !isPackage(head) },
	Confirms:   confirms,
}

// extends reports whether a signature with these parameters is added to a container.
func extends(p sig.Params) bool {
	return p.Reader().Enum("CmsSignatureType", kinds, kindSign) == kindCosign
}

// suffixFor returns the suffix of a container with these parameters.
func suffixFor(p sig.Params) string {
	if p.Reader().Enum("ASiCType", types, typeNameE) == typeNameS {
		return ".asics"
	}
	return ".asice"
}

// LooksLikeArchive reports by the first bytes whether a document is a ZIP archive.
func LooksLikeArchive(head []byte) bool { return bytes.HasPrefix(head, []byte("PK\x03\x04")) }

// isPackage reports whether the first entry of an archive is one with which Office documents begin. They are
// most archives that are signed, so their directory is not read to find out that they are no containers.
func isPackage(head []byte) bool {
	name := firstName(head)
	return name == "[Content_Types].xml" || strings.HasPrefix(name, "_rels/") || strings.HasPrefix(name, "docProps/")
}

// firstName returns the name of the first entry of an archive, as far as head has it.
func firstName(head []byte) string {
	if len(head) < 30 {
		return ""
	}
	name := head[30:]
	return string(name[:min(len(name), int(binary.LittleEndian.Uint16(head[26:])))])
}

// confirms reports whether an archive is a container: it says so in its entry mimetype, or it has signatures in
// META-INF. An archive that cannot be read is one if it begins like one, so that the reason is reported.
func confirms(ctx context.Context, doc sig.Document) bool {
	b := budget.New(ctx, budget.Anonymous())
	b.Begin()
	defer b.End()
	c, err := openContainer(ctx, b, doc)
	if err == nil {
		return c.signs() || c.kind == kindS && c.mimetype != "" || c.kind == kindE && c.mimetype != ""
	}
	head := make([]byte, min(doc.Size(), 1<<10))
	if n, _ := doc.ReadAt(head, 0); n < len(head) {
		return false
	}
	return strings.HasPrefix(firstName(head), metaFolder) || firstName(head) == mimetypeName && bytes.Contains(head, []byte("application/vnd.etsi.asic-"))
}
