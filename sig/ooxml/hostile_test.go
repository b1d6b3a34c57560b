// SPDX-License-Identifier: Apache-2.0

package ooxml_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode/utf16"

	"tamga/internal/sigtest"
	"tamga/pki/suite"
	"tamga/sig"
	"tamga/sig/ooxml"
)

// compound returns a compound file (MS-CFB) with a stream of that name.
func compound(stream string) []byte {
	b := make([]byte, 3*512)
	copy(b, "\xD0\xCF\x11\xE0\xA1\xB1\x1A\xE1")
	le.PutUint16(b[30:], 9)
	le.PutUint32(b[48:], 1)
	entry := b[2*512+128:]
	for i, u := range utf16.Encode([]rune(stream)) {
		le.PutUint16(entry[2*i:], u)
	}
	return b
}

// Prepare and Verify refuse a document that cannot be signed, with the reason.
func TestBadInput(t *testing.T) {
	signer := sigtest.Root(t, suite.ECDSAP256).Signer(t, suite.ECDSAP256, "Signer")
	good := sigtest.Zip(word(), "")
	one := func(name string, change func(*sigtest.ZipEntry)) []byte {
		return sigtest.Zip(edit(word(), name, change), "")
	}
	named := func(name string) []byte {
		return sigtest.Zip(append(word(), sigtest.ZipEntry{Name: name, Content: "x"}), "")
	}
	content := func(name, old, new string) []byte { return sigtest.Zip(replaced(t, word(), name, old, new), "") }
	bytesAt := func(behind string, at int, b ...byte) []byte {
		out := bytes.Clone(good)
		copy(out[bytes.LastIndex(out, []byte(behind))+at:], b)
		return out
	}
	const end = "PK\x05\x06"
	for name, c := range map[string]struct {
		document  []byte
		says      string
		otherKind bool
	}{
		"nothing":                 {nil, "is empty", false},
		"text":                    {[]byte("just a text"), "this is no archive", true},
		"PDF":                     {[]byte("%PDF-1.4\n"), "this is a PDF", true},
		"RTF":                     {[]byte(`{\rtf1 x}`), "this is RTF", true},
		"empty archive":           {sigtest.Zip(nil, ""), "the archive is empty", true},
		"another archive":         {sigtest.Zip([]sigtest.ZipEntry{{Name: "a.txt", Content: "x"}}, ""), "has no [Content_Types].xml", true},
		"OpenDocument":            {sigtest.Zip([]sigtest.ZipEntry{{Name: "mimetype", Content: "application/vnd.oasis.opendocument.text", Store: true}}, ""), "has no [Content_Types].xml", true},
		"no relationships":        {sigtest.Zip(without(word(), "_rels/.rels"), ""), "has no relationships", true},
		"no main part":            {sigtest.Zip(without(word(), "word/document.xml"), ""), "has no main part", true},
		"encrypted":               {compound("EncryptedPackage"), "encrypted with a password", false},
		"doc":                     {compound("WordDocument"), "Word 97 to 2003", false},
		"xls":                     {compound("Workbook"), "Excel 97 to 2003", false},
		"ppt":                     {compound("PowerPoint Document"), "PowerPoint 97 to 2003", false},
		"compound":                {compound("x"), "a compound file", false},
		"compound cut off":        {compound("x")[:100], "a compound file", false},
		"cut off":                 {good[:len(good)-30], "cut off", false},
		"cut off at the comment":  {sigtest.Zip(word(), "a comment")[:len(sigtest.Zip(word(), "a comment"))-1], "comment is cut off", false},
		"start cut off":           {append([]byte("PK\x03\x04"), good[10:]...), "does not end where the archive's end begins", false},
		"two volumes":             {bytesAt(end, 4, 1), "one of several volumes", false},
		"more entries":            {bytesAt(end, 8, byte(len(word())+1), 0, byte(len(word())+1)), "fewer entries", false},
		"fewer entries":           {bytesAt(end, 8, byte(len(word())-1), 0, byte(len(word())-1)), "more entries", false},
		"two numbers of entries":  {bytesAt(end, 8, 3), "two different numbers", false},
		"a longer directory":      {bytesAt(end, 12, 0xFF), "does not end where", false},
		"Zip64 is announced":      {bytesAt(end, 16, 0xFF, 0xFF, 0xFF, 0xFF), "Zip64 record, which is missing", false},
		"Zip64 sizes missing":     {bytesAt("PK\x01\x02", 24, 0xFF, 0xFF, 0xFF, 0xFF), "does not have", false},
		"the same name":           {named("word/document.xml"), "equivalent names", false},
		"another letter case":     {named("Word/Document.XML"), "equivalent names", false},
		"needless encoding":       {named("word/d%6Fcument.xml"), "equivalent names", false},
		"content types twice":     {named("[content_types].XML"), "equivalent names", false},
		"dots":                    {named("word/../../x"), "segment of dots", false},
		"encoded dots":            {named("word/%2E%2e/x"), "segment of dots", false},
		"absolute":                {named("/word/x.xml"), "begins with a slash", false},
		"backslash":               {named(`word\x.xml`), "backslash", false},
		"encoded slash":           {named("word%2fx.xml"), "percent-encoding", false},
		"zero byte":               {named("word/x\x00.xml"), "control character", false},
		"encoded zero byte":       {named("word/x%00.xml"), "percent-encoding", false},
		"empty segment":           {named("word//x.xml"), "empty segment", false},
		"no UTF-8":                {named("word/\xFF.xml"), "not UTF-8", false},
		"pieces":                  {named("word/x.xml/[0].piece"), "in pieces", false},
		"last piece":              {named("word/x.xml/[1].last.piece"), "in pieces", false},
		"two names of one entry":  {one("word/styles.xml", func(f *sigtest.ZipEntry) { f.LocalName = "word/stylez.xml" }), "different name", false},
		"two methods":             {bytesAt("PK\x03\x04", 8, 0), "different compression method", false},
		"two sizes":               {bytesAt("PK\x03\x04", 22, 1, 1), "different size or checksum", false},
		"more content":            {one("word/styles.xml", func(f *sigtest.ZipEntry) { f.Size = 1<<32 - 1 }), "more content than", false},
		"less content":            {one("word/styles.xml", func(f *sigtest.ZipEntry) { f.Size = 1 }), "less than announced", false},
		"another checksum":        {one("word/styles.xml", func(f *sigtest.ZipEntry) { f.CRC32 = 1 }), "checksum", false},
		"no Deflate":              {one("word/styles.xml", func(f *sigtest.ZipEntry) { f.Store, f.Method = true, 8 }), "cannot be decompressed", false},
		"another method":          {one("word/styles.xml", func(f *sigtest.ZipEntry) { f.Method = 6 }), "method 14", false},
		"password":                {one("word/styles.xml", func(f *sigtest.ZipEntry) { f.Flags = 1 }), "is encrypted", false},
		"one content for two":     {sigtest.Zip(append(word(), sigtest.ZipEntry{Name: "word/twin.xml", Content: contentOf(t, word(), "word/document.xml"), At: 3}), ""), "different name", false},
		"a directory":             {named("word/x/"), "has content", false},
		"Zip64 twice":             {one("word/styles.xml", func(f *sigtest.ZipEntry) { f.Extra, f.Zip64 = "\x01\x00\x10\x00"+strings.Repeat("\x00", 16), true }), "its sizes twice", false},
		"extra field cut off":     {one("word/styles.xml", func(f *sigtest.ZipEntry) { f.Extra = "\x22\x00\xFF\x00abc" }), "cut off", false},
		"bomb":                    {one("word/styles.xml", func(f *sigtest.ZipEntry) { f.Size = 1 << 30 }), "decompression bomb", false},
		"no content types":        {content("[Content_Types].xml", "content-types\"", "content-typos\""), "does not list content types", true},
		"content types broken":    {content("[Content_Types].xml", "</Types>", ""), "cannot be read", false},
		"type of relationships":   {content("[Content_Types].xml", relsType, "x/y"), "declares the relationships of the package", false},
		"document type":           {content("[Content_Types].xml", "<Types ", "<!DOCTYPE x [<!ENTITY y 'z'>]><Types "), "document type", false},
		"two types of a part":     {content("[Content_Types].xml", "</Types>", override("/WORD/document.xml", "x/y")+"</Types>"), "two content types", false},
		"relationships broken":    {content(docRels, "</Relationships>", ""), "cannot be read", false},
		"relationships of others": {content(docRels, "package/2006/relationships\"", "package/2006/rel\""), "does not hold relationships", false},
		"relationship Ids":        {content(docRels, `Id="rId10"`, `Id="rId1"`), "two relationships with the Id", false},
		"relationship target":     {content(docRels, ` Target="NULL"`, ""), "without Id, Type or Target", false},
		"relationship mode":       {content(docRels, "External", "Extern"), "TargetMode", false},
		"two origins":             {content("_rels/.rels", "</Relationships>", rel("a", rootRel+"digital-signature/origin", "x.sigs", "")+rel("b", rootRel+"digital-signature/origin", "y.sigs", "")+"</Relationships>"), "two origins", false},
		"origin outside":          {content("_rels/.rels", "</Relationships>", rel("a", rootRel+"digital-signature/origin", "http://x", "External")+"</Relationships>"), "outside the package", false},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := sigtest.Try(t, ooxml.New(), signer, job(c.document))
			var e *sig.ErrDocument
			if !errors.As(err, &e) || e.OtherKind != c.otherKind || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%v; want %q, other kind %v", err, c.says, c.otherKind)
			}
			_, err = ooxml.New().Verify(context.Background(), &sig.Check{Document: bytes.NewReader(c.document)})
			if !errors.As(err, &e) && err != nil {
				t.Errorf("verify: %v", err)
			}
		})
	}
}

// A failure to read is not an error of the document.
func TestReadError(t *testing.T) {
	signer := sigtest.Root(t, suite.ECDSAP256).Signer(t, suite.ECDSAP256, "Signer")
	good := sigtest.Zip(word(), "")
	for at := range len(good) {
		j := job(nil)
		j.Document = &broken{Reader: bytes.NewReader(good), at: int64(at)}
		_, err := sigtest.Try(t, ooxml.New(), signer, j)
		var e *sig.ErrDocument
		if err != nil && (errors.As(err, &e) || !errors.Is(err, errBroken)) {
			t.Fatalf("byte %d: %v", at, err)
		}
	}
}

var errBroken = errors.New("the disk is broken")

// broken is a document with one unreadable byte.
type broken struct {
	*bytes.Reader
	at int64
}

func (b *broken) ReadAt(p []byte, off int64) (int, error) {
	if off <= b.at && b.at < off+int64(len(p)) {
		return 0, errBroken
	}
	return b.Reader.ReadAt(p, off)
}

// Very many entries, relationships or signatures take time that grows only with the size
// of the document. The numbers are near the limits.
func TestMany(t *testing.T) {
	root := sigtest.Root(t, suite.ECDSAP256)
	signer := root.Signer(t, suite.ECDSAP256, "Signer")
	files := word()
	var list strings.Builder
	for i := range 20_000 {
		name := fmt.Sprintf("word/x%d.xml", i)
		files = append(files, sigtest.ZipEntry{Name: name, Content: "<a/>", Store: true})
		list.WriteString(rel(fmt.Sprintf("x%d", i), officeRel+"image", "/"+name, ""))
	}
	files = replaced(t, files, docRels, "</Relationships>", list.String()+"</Relationships>")
	signed := sign(t, signer, sigtest.Zip(files, ""))
	if r := verify(t, signed, root); !r.Passed() {
		t.Errorf("%+v", r.Findings)
	}
	// The same number of signatures, each over everything.
	parts := filesOf(t, sign(t, signer, sigtest.Zip(word(), "")))
	relations := contentOf(t, parts, originRels)
	types := contentOf(t, parts, "[Content_Types].xml")
	text := contentOf(t, parts, sig1)
	for i := 2; i <= 70; i++ {
		name := fmt.Sprintf("sig%d.xml", i)
		parts = append(parts, sigtest.ZipEntry{Name: "_xmlsignatures/" + name, Content: text})
		relations = strings.Replace(relations, "</R", rel(fmt.Sprintf("rId%d", i), rootRel+"digital-signature/signature", name, "")+"</R", 1)
		types = strings.Replace(types, "</T", override("/_xmlsignatures/"+name, "application/vnd.openxmlformats-package.digital-signature-xmlsignature+xml")+"</T", 1)
	}
	r := verify(t, sigtest.Zip(with(with(parts, originRels, relations), "[Content_Types].xml", types), ""), root)
	if len(r.Signatures) != 64 || fmt.Sprint(sigtest.Codes(r)) != "[too-many-signatures]" {
		t.Errorf("%d signatures, codes %v", len(r.Signatures), sigtest.Codes(r))
	}
}

func TestLooksLikePackage(t *testing.T) {
	for head, want := range map[string]bool{
		string(sigtest.Zip(word(), "")[:8]): true, string(compound("x")[:8]): true, "": false, "PK": false, "%PDF-1.7": false,
	} {
		if got := ooxml.LooksLikePackage([]byte(head)); got != want {
			t.Errorf("%q: %v", head, got)
		}
	}
}
