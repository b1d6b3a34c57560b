// SPDX-License-Identifier: Apache-2.0

package ooxml

import (
	"bytes"
	"encoding/binary"
	"io"
	"unicode/utf16"

	"tamga/sig"
)

// checkKind looks at the first bytes of a document and returns an error that names its
// kind if it is not a package.
func checkKind(doc sig.Document) error {
	head := make([]byte, min(doc.Size(), 512))
	if n, err := doc.ReadAt(head, 0); n < len(head) {
		if err == nil || err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		return readError(err)
	}
	switch {
	case bytes.HasPrefix(head, []byte(magicZIP)):
		return nil
	case bytes.HasPrefix(head, []byte(magicCFB)):
		return compoundFile(doc, head)
	case len(head) == 0:
		return unfit(nil, "is empty; an Office document expected")
	case bytes.HasPrefix(head, []byte("PK\x05\x06")):
		return otherKind("an Office document expected, but the archive is empty")
	case bytes.HasPrefix(head, []byte("%PDF-")):
		return otherKind("an Office document (.docx, .xlsx, .pptx and their like) expected, but this is a PDF; it is signed with the type PDF")
	case bytes.HasPrefix(head, []byte(`{\rtf`)):
		return otherKind("an Office document (.docx, .xlsx, .pptx and their like) expected, but this is RTF; save it as .docx")
	}
	return otherKind("an Office document (.docx, .xlsx, .pptx and their like) expected, but this is no archive")
}

// compoundFile returns an error that names the content of a compound file (MS-CFB) by the
// entries of its directory.
func compoundFile(doc sig.Document, head []byte) error {
	const what = "a document of Office 2007 or later without a password (.docx, .xlsx, .pptx and their like) expected, but this is "
	var directory []byte
	if len(head) == 512 {
		// The header has the shift of the sector size and the first sector of the
		// directory. Sectors are counted after the header.
		if shift := binary.LittleEndian.Uint16(head[30:]); shift == 9 || shift == 12 {
			at := (int64(binary.LittleEndian.Uint32(head[48:])) + 1) << shift
			if at < doc.Size() {
				directory = make([]byte, min(8<<10, doc.Size()-at))
				n, _ := doc.ReadAt(directory, at) // an unreadable directory is not named
				directory = directory[:n]
			}
		}
	}
	for _, stream := range []struct{ name, text string }{
		{"EncryptedPackage", "one that is encrypted with a password or by rights management; remove the protection first"},
		{"WordDocument", "one of Word 97 to 2003 (.doc); save it as .docx"},
		{"Workbook", "one of Excel 97 to 2003 (.xls); save it as .xlsx"},
		{"Book", "one of Excel 95 (.xls); save it as .xlsx"},
		{"PowerPoint Document", "one of PowerPoint 97 to 2003 (.ppt); save it as .pptx"},
	} {
		var name []byte
		for _, u := range utf16.Encode([]rune(stream.name + "\x00")) {
			name = binary.LittleEndian.AppendUint16(name, u)
		}
		// A directory entry begins with the name and has 128 bytes.
		for i := 0; i+128 <= len(directory); i += 128 {
			if bytes.HasPrefix(directory[i:], name) {
				return unfit(nil, "%s%s", what, stream.text)
			}
		}
	}
	return unfit(nil, "%sa compound file: one of Office 97 to 2003, or encrypted", what)
}
