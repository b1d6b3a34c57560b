// SPDX-License-Identifier: Apache-2.0

package ooxml_test

import (
	"bytes"
	"compress/flate"
	"encoding/binary"
	"hash/crc32"
	"strings"
	"testing"
)

var le = binary.LittleEndian

// file is an entry of an archive to write, with possible errors.
type file struct {
	name, content string
	store         bool   // not compressed
	descriptor    string // "", "small", "large", "bare" (without a signature) or "none" (announced and missing)
	localName     string // another name in the local header
	extra         string // extra fields in the local header and in the directory
	crc           uint32 // added to the checksum
	size          uint32 // added to the size
	flags, method uint16 // added
	at            int    // 1 more than the index of the file whose content this one uses
	prefix        string // bytes before the entry
	zip64         bool   // sizes in an extra field
}

// archiveOf writes an archive. comment is its archive comment.
func archiveOf(files []file, comment string) []byte {
	var out, directory []byte
	offsets := make([]uint32, len(files))
	for i, f := range files {
		out = append(out, f.prefix...)
		data, method := []byte(f.content), uint16(0)
		if !f.store {
			var b bytes.Buffer
			w, _ := flate.NewWriter(&b, 9)
			w.Write(data)
			w.Close()
			data, method = b.Bytes(), 8
		}
		crc, size := crc32.ChecksumIEEE([]byte(f.content))+f.crc, uint32(len(f.content))+f.size
		flags := f.flags
		if f.descriptor != "" {
			flags |= 8
		}
		offsets[i] = uint32(len(out))
		if f.at > 0 {
			offsets[i] = offsets[f.at-1]
		}
		fields := func(crc, compressed, size uint32, name, extra string) []byte {
			b := le.AppendUint16(nil, 20)
			b = le.AppendUint16(b, flags)
			b = le.AppendUint16(b, method+f.method)
			b = append(b, 1, 2, 3, 0x21) // a time, a date
			for _, v := range []uint32{crc, compressed, size} {
				b = le.AppendUint32(b, v)
			}
			b = le.AppendUint16(b, uint16(len(name)))
			return le.AppendUint16(b, uint16(len(extra)))
		}
		localName := f.name
		if f.localName != "" {
			localName = f.localName
		}
		compressed := uint32(len(data))
		if f.at == 0 {
			b := le.AppendUint32(nil, 0x04034b50)
			if f.descriptor != "" {
				b = append(b, fields(0, 0, 0, localName, f.extra)...)
			} else {
				b = append(b, fields(crc, compressed, size, localName, f.extra)...)
			}
			out = append(append(append(append(out, b...), localName...), f.extra...), data...)
			mark := le.AppendUint32(nil, 0x08074b50)
			small := le.AppendUint32(le.AppendUint32(le.AppendUint32(nil, crc), compressed), size)
			switch f.descriptor {
			case "small":
				out = append(append(out, mark...), small...)
			case "large":
				out = append(append(append(out, mark...), small[:4]...), le.AppendUint64(le.AppendUint64(nil, uint64(compressed)), uint64(size))...)
			case "bare":
				out = append(out, small...)
			}
		}
		extra := f.extra
		if f.zip64 {
			extra += string(le.AppendUint64(le.AppendUint64([]byte{1, 0, 16, 0}, uint64(size)), uint64(compressed)))
			size, compressed = 1<<32-1, 1<<32-1
		}
		directory = append(le.AppendUint32(directory, 0x02014b50), 45, 0)
		directory = append(directory, fields(crc, compressed, size, f.name, extra)...)
		directory = append(directory, make([]byte, 10)...)
		directory = le.AppendUint32(directory, offsets[i])
		directory = append(append(directory, f.name...), extra...)
	}
	end := le.AppendUint32(nil, 0x06054b50)
	end = append(end, 0, 0, 0, 0)
	end = le.AppendUint16(le.AppendUint16(end, uint16(len(files))), uint16(len(files)))
	end = le.AppendUint32(end, uint32(len(directory)))
	end = le.AppendUint32(end, uint32(len(out)))
	end = le.AppendUint16(end, uint16(len(comment)))
	return append(append(append(out, directory...), end...), comment...)
}

const (
	xmlHead   = `<?xml version="1.0" encoding="UTF-8" standalone="yes"?>` + "\r\n"
	officeRel = "http://schemas.openxmlformats.org/officeDocument/2006/relationships/"
	strictRel = "http://purl.oclc.org/ooxml/officeDocument/relationships/"
	rootRel   = "http://schemas.openxmlformats.org/package/2006/relationships/"
	relsType  = "application/vnd.openxmlformats-package.relationships+xml"
)

// rel is a relationship: type, target, and "External" or nothing.
func rel(id, kind, target, mode string) string {
	if mode != "" {
		mode = ` TargetMode="` + mode + `"`
	}
	return `<Relationship Id="` + id + `" Type="` + kind + `" Target="` + target + `"` + mode + `/>`
}

func rels(list ...string) string {
	return xmlHead + `<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">` + strings.Join(list, "") + `</Relationships>`
}

func contentTypes(list ...string) string {
	return xmlHead + `<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"><Default Extension="rels" ContentType="` + relsType + `"/>` +
		`<Default Extension="xml" ContentType="application/xml"/><Default Extension="png" ContentType="image/png"/>` + strings.Join(list, "") + `</Types>`
}

func override(part, kind string) string {
	return `<Override PartName="` + part + `" ContentType="` + kind + `"/>`
}

const (
	mainType   = "application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"
	stylesType = "application/vnd.openxmlformats-officedocument.wordprocessingml.styles+xml"
)

// word returns a Word document with one part of each kind: properties, a picture, a link,
// custom XML, and a part of a kind that is newer than Office's list.
func word() []file {
	return []file{
		{name: "[Content_Types].xml", content: contentTypes(
			override("/word/document.xml", mainType), override("/word/styles.xml", stylesType),
			override("/docProps/core.xml", "application/vnd.openxmlformats-package.core-properties+xml"),
			override("/word/commentsExtended.xml", "application/vnd.openxmlformats-officedocument.wordprocessingml.commentsExtended+xml"),
		)},
		{name: "_rels/.rels", content: rels(
			rel("rId1", officeRel+"officeDocument", "word/document.xml", ""),
			rel("rId2", rootRel+"metadata/core-properties", "docProps/core.xml", ""),
		)},
		{name: "word/document.xml", content: xmlHead + `<w:document xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"><w:body><w:p><w:r><w:t>Договор</w:t></w:r></w:p></w:body></w:document>`, descriptor: "small"},
		{name: "word/_rels/document.xml.rels", content: rels(
			rel("rId10", officeRel+"hyperlink", "https://example.org/?a=1&amp;b=2", "External"),
			rel("rId2", officeRel+"image", "media/image1.png", ""),
			rel("rId1", officeRel+"styles", "/word/styles.xml", ""),
			rel("rId3", officeRel+"customXml", "../customXml/item1.xml", ""),
			rel("rId4", "http://schemas.microsoft.com/office/2011/relationships/commentsExtended", "commentsExtended.xml", ""),
			rel("rId5", officeRel+"image", "NULL", ""),
		)},
		{name: "word/media/", store: true},
		{name: "word/media/image1.png", content: strings.Repeat("\x89PNG", 100), store: true},
		{name: "word/styles.xml", content: xmlHead + `<w:styles xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"/>`},
		{name: "word/commentsExtended.xml", content: xmlHead + `<a/>`},
		{name: "customXml/item1.xml", content: `<data>1</data>`},
		{name: "docProps/core.xml", content: xmlHead + `<cp:coreProperties xmlns:cp="http://schemas.openxmlformats.org/package/2006/metadata/core-properties"/>`},
	}
}

// with returns the files with the content of one replaced, or with one added.
func with(files []file, name, content string) []file {
	return edit(files, name, func(f *file) { f.content = content })
}

func edit(files []file, name string, change func(*file)) []file {
	out := append([]file(nil), files...)
	for i := range out {
		if out[i].name == name {
			change(&out[i])
			return out
		}
	}
	f := file{name: name}
	change(&f)
	return append(out, f)
}

// contentOf returns the content of a file of word().
func contentOf(t testing.TB, files []file, name string) string {
	t.Helper()
	for _, f := range files {
		if f.name == name {
			return f.content
		}
	}
	t.Fatalf("there is no %s", name)
	return ""
}

func replaced(t testing.TB, files []file, name, old, new string) []file {
	t.Helper()
	c := contentOf(t, files, name)
	if !strings.Contains(c, old) {
		t.Fatalf("%s does not hold %s", name, old)
	}
	return with(files, name, strings.Replace(c, old, new, 1))
}
