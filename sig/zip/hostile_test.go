// SPDX-License-Identifier: Apache-2.0

package zip_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"tamga/internal/sigtest"
	"tamga/sig/zip"
)

var le = binary.LittleEndian

// inside returns an archive whose second entry is in the content of the first one: its directory
// record refers to a local header there.
func inside() []byte {
	second := sigtest.ZipEntry{Name: "b", Content: "2", Store: true}
	alone := sigtest.Zip([]sigtest.ZipEntry{second}, "")
	first := sigtest.ZipEntry{Name: "a", Content: string(alone[:32]), Store: true}
	data := sigtest.Zip([]sigtest.ZipEntry{first, second}, "")
	record := bytes.LastIndex(data, []byte("PK\x01\x02"))
	le.PutUint32(data[record+42:], 31)
	return data
}

// Every archive that two programs could read differently, or that costs too much, is refused with its
// kind and the entry.
func TestRefused(t *testing.T) {
	const end, central, local = "PK\x05\x06", "PK\x01\x02", "PK\x03\x04"
	good := sigtest.Zip(container(), "a comment")
	changed := func(data []byte, behind string, at int, b ...byte) []byte {
		out := bytes.Clone(data)
		copy(out[bytes.LastIndex(out, []byte(behind))+at:], b)
		return out
	}
	bytesAt := func(behind string, at int, b ...byte) []byte { return changed(good, behind, at, b...) }
	one := func(f sigtest.ZipEntry) []byte {
		return sigtest.Zip([]sigtest.ZipEntry{{Name: "first", Content: "1"}, f}, "")
	}
	named := func(name string) []byte { return one(sigtest.ZipEntry{Name: name, Content: "x"}) }
	for name, c := range map[string]struct {
		data  []byte
		kind  zip.Kind
		entry string
		says  string
	}{
		"nothing":                    {nil, zip.Damaged, "", "its end is missing"},
		"text":                       {[]byte("just a text"), zip.Damaged, "", "its end is missing"},
		"cut off":                    {good[:len(good)-31], zip.Damaged, "", "its end is missing"},
		"cut off at the comment":     {good[:len(good)-1], zip.Damaged, "", "comment is cut off"},
		"start cut off":              {append([]byte(local), good[10:]...), zip.Damaged, "", "does not end where"},
		"bytes in front":             {append([]byte("MZ"), good...), zip.Damaged, "", "does not end where"},
		"two volumes":                {bytesAt(end, 4, 1), zip.Damaged, "", "several volumes"},
		"entry of another volume":    {bytesAt(central, 34, 1), zip.Damaged, "META-INF/manifest.xml", "another volume"},
		"more entries":               {bytesAt(end, 8, 8, 0, 8), zip.Damaged, "", "fewer entries than the 8"},
		"fewer entries":              {bytesAt(end, 8, 6, 0, 6), zip.Damaged, "", "more entries than the 6"},
		"very many entries":          {bytesAt(end, 8, 0xFE, 0xFF, 0xFE, 0xFF), zip.Damaged, "", "fewer entries than the 65534"},
		"two numbers of entries":     {bytesAt(end, 8, 3), zip.Damaged, "", "two different numbers"},
		"a longer directory":         {bytesAt(end, 12, 0xFF), zip.Damaged, "", "does not end where"},
		"a directory that is cut":    {bytesAt(central, 28, 0xFF), zip.Damaged, "", "directory is cut off"},
		"Zip64 is announced":         {bytesAt(end, 16, 0xFF, 0xFF, 0xFF, 0xFF), zip.Damaged, "", "Zip64 record, which is missing"},
		"Zip64 sizes missing":        {bytesAt(central, 24, 0xFF, 0xFF, 0xFF, 0xFF), zip.Damaged, "META-INF/manifest.xml", "does not have"},
		"Zip64 twice":                {one(sigtest.ZipEntry{Name: "x", Extra: "\x01\x00\x10\x00" + strings.Repeat("\x00", 16), Zip64: true}), zip.Damaged, "x", "its sizes twice"},
		"extra field cut off":        {one(sigtest.ZipEntry{Name: "x", Extra: "\x22\x00\xFF\x00abc"}), zip.Damaged, "x", "cut off"},
		"no local header":            {bytesAt(central, 42, 1), zip.Damaged, "META-INF/manifest.xml", "no local header"},
		"begins outside":             {bytesAt(central, 42, 0, 0, 0, 0x7F), zip.Damaged, "META-INF/manifest.xml", "begins outside"},
		"content ends outside":       {bytesAt(central, 20, 0, 0, 1), zip.Damaged, "META-INF/manifest.xml", "ends outside"},
		"another local name":         {one(sigtest.ZipEntry{Name: "x", LocalName: "y"}), zip.Damaged, "x", "different name"},
		"a longer local name":        {one(sigtest.ZipEntry{Name: "x", LocalName: "xy"}), zip.Damaged, "x", "different name"},
		"another local method":       {bytesAt(local, 8, 0), zip.Damaged, "META-INF/manifest.xml", "different compression method"},
		"another local flag":         {bytesAt(local, 6, 0), zip.Damaged, "META-INF/manifest.xml", "different set of flags"},
		"another local size":         {changed(one(sigtest.ZipEntry{Name: "x"}), local, 22, 1), zip.Damaged, "x", "different size or checksum"},
		"a local size of its own":    {bytesAt(local, 14, 1, 0, 0, 0, 0, 0, 0, 0, 1), zip.Damaged, "META-INF/manifest.xml", "different size or checksum"},
		"a size of its own, no sum":  {bytesAt(local, 14, 0, 0, 0, 0, 0, 0, 0, 0, 1), zip.Damaged, "META-INF/manifest.xml", "different size or checksum"},
		"a checksum, no size":        {bytesAt(local, 14, 1), zip.Damaged, "META-INF/manifest.xml", "different size or checksum"},
		"another encoding":           {changed(one(sigtest.ZipEntry{Name: "é"}), local, 6, 0, 8), zip.Damaged, "é", "different set of flags"},
		"another Unicode name":       {one(sigtest.ZipEntry{Name: "x", Extra: "up\x06\x00\x01\x00\x00\x00\x00y"}), zip.Damaged, "x", "another name in its extra field"},
		"another local Unicode name": {changed(one(sigtest.ZipEntry{Name: "x", Descriptor: "small", Extra: "up\x06\x00\x01\x00\x00\x00\x00x"}), "PK\x03\x04", 30+1+9, 'y'), zip.Damaged, "x", "another name in its extra field"},
		"another local checksum":     {changed(one(sigtest.ZipEntry{Name: "x"}), local, 14, 1), zip.Damaged, "x", "different size or checksum"},
		"the same name":              {named("first"), zip.Damaged, "first", `the entries "first" and "first" have equivalent names`},
		"the same entry twice":       {sigtest.Zip([]sigtest.ZipEntry{{Name: "x"}, {Name: "x", At: 1}}, ""), zip.Damaged, "x", "overlaps"},
		"one content for two":        {sigtest.Zip([]sigtest.ZipEntry{{Name: "x"}, {Name: "y", At: 1}}, ""), zip.Damaged, "y", "different name"},
		"an entry in another":        {inside(), zip.Damaged, "b", "overlaps"},
		"no name":                    {named(""), zip.Damaged, "", "is empty"},
		"dots":                       {named("a/../../x"), zip.Damaged, "a/../../x", "segment of dots"},
		"dots alone":                 {named(".."), zip.Damaged, "..", "segment of dots"},
		"a dot":                      {named("./x"), zip.Damaged, "./x", "segment of dots"},
		"absolute":                   {named("/x"), zip.Damaged, "/x", "begins with a slash"},
		"backslash":                  {named(`a\x`), zip.Damaged, `a\x`, "backslash"},
		"zero byte":                  {named("a\x00.exe"), zip.Damaged, "a\x00.exe", "control character"},
		"empty segment":              {named("a//x"), zip.Damaged, "a//x", "empty segment"},
		"no UTF-8":                   {named("a\xFF"), zip.Damaged, "a\xFF", "not UTF-8"},
		"a directory with content":   {named("x/"), zip.Damaged, "x/", "has content"},
		"password":                   {one(sigtest.ZipEntry{Name: "x", Flags: 1}), zip.Encrypted, "x", "is encrypted"},
		"strong encryption":          {one(sigtest.ZipEntry{Name: "x", Flags: 1 << 6}), zip.Encrypted, "x", "is encrypted"},
		"encrypted directory":        {one(sigtest.ZipEntry{Name: "x", Flags: 1 << 13}), zip.Encrypted, "x", "is encrypted"},
		"another method":             {one(sigtest.ZipEntry{Name: "x", Method: 6}), zip.Unsupported, "x", "method 14"},
		"stored with two sizes":      {one(sigtest.ZipEntry{Name: "x", Content: "1", Store: true, Size: 1}), zip.Damaged, "x", "two different sizes"},
		"bomb":                       {one(sigtest.ZipEntry{Name: "x", Size: 1 << 30}), zip.TooLarge, "", "decompression bomb"},
		"many small bombs":           {sigtest.Zip(slices.Repeat([]sigtest.ZipEntry{{Name: "x/", Size: 0}, {Name: "y", Size: 1 << 26}}, 3), ""), zip.TooLarge, "", "decompression bomb"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := zip.Open(nil, bytes.NewReader(c.data))
			var e *zip.Error
			if !errors.As(err, &e) || e.Kind != c.kind || e.Entry != c.entry || !strings.Contains(e.Error(), c.says) || !strings.HasPrefix(e.Error(), "zip: the ") {
				t.Errorf("%v; want kind %d, entry %q, %q", err, c.kind, c.entry, c.says)
			}
		})
	}
}

// Content that is not what the directory announces is refused when it is read.
func TestWrongContent(t *testing.T) {
	for name, c := range map[string]struct {
		entry sigtest.ZipEntry
		says  string
	}{
		"more content":     {sigtest.ZipEntry{Size: 1<<32 - 2}, "more content than the 8 bytes"},
		"a bomb of zeros":  {sigtest.ZipEntry{Content: strings.Repeat("\x00", 1<<20), Size: 1<<32 - 1<<20 + 5}, "more content than the 5 bytes"},
		"less content":     {sigtest.ZipEntry{Size: 1}, "1 bytes less than announced"},
		"another checksum": {sigtest.ZipEntry{CRC32: 1}, "does not match its checksum"},
		"bytes behind":     {sigtest.ZipEntry{Behind: "PK\x03\x04"}, "bytes behind the end"},
		"a byte behind it": {sigtest.ZipEntry{Content: strings.Repeat("\x00", 1<<20), Behind: "x"}, "bytes behind the end"},
		"no Deflate":       {sigtest.ZipEntry{Store: true, Method: 8}, "cannot be decompressed"},
	} {
		if c.entry.Name = "x"; c.entry.Content == "" {
			c.entry.Content = "0123456789"
		}
		a := open(t, sigtest.Zip([]sigtest.ZipEntry{c.entry}, ""))
		var got bytes.Buffer
		err := a.Copy(context.Background(), &a.Entries[0], &got)
		var e *zip.Error
		if !errors.As(err, &e) || e.Kind != zip.Damaged || e.Entry != "x" || !strings.Contains(e.Text, c.says) {
			t.Errorf("%s: %v", name, err)
		}
		if int64(got.Len()) > a.Entries[0].Size {
			t.Errorf("%s: %d bytes were written, %d announced", name, got.Len(), a.Entries[0].Size)
		}
		if content, err := a.Content(context.Background(), &a.Entries[0], 1<<20); err == nil || content != nil {
			t.Errorf("%s: %.20q, %v", name, content, err)
		}
	}
}

// A reader finds at the end of the content what is wrong with its length, and reads again from the beginning afterwards.
func TestReaderAtEnd(t *testing.T) {
	for name, c := range map[string]struct {
		entry sigtest.ZipEntry
		says  string
	}{
		"bytes behind":            {sigtest.ZipEntry{Content: "0123456789", Behind: "PK\x03\x04"}, "bytes behind the end"},
		"bytes behind no content": {sigtest.ZipEntry{Behind: "x"}, "bytes behind the end"},
		"more content":            {sigtest.ZipEntry{Content: "0123456789", Size: 1<<32 - 2}, "more content than the 8 bytes"},
		"less content":            {sigtest.ZipEntry{Content: "0123456789", Size: 1}, "cannot be decompressed"},
		"nothing wrong":           {sigtest.ZipEntry{Content: "0123456789"}, ""},
		"nothing":                 {sigtest.ZipEntry{}, ""},
	} {
		c.entry.Name = "x"
		a := open(t, sigtest.Zip([]sigtest.ZipEntry{c.entry}, ""))
		r := a.Reader(&a.Entries[0])
		for range 2 {
			got, err := io.ReadAll(io.NewSectionReader(r, 0, max(r.Size(), 1)))
			var e *zip.Error
			switch {
			case c.says == "" && (err != nil || string(got) != c.entry.Content):
				t.Errorf("%s: %q, %v", name, got, err)
			case c.says != "" && (!errors.As(err, &e) || e.Kind != zip.Damaged || !strings.Contains(e.Text, c.says)):
				t.Errorf("%s: %q, %v", name, got, err)
			}
		}
	}
}

// A failure to read is not an error of the archive.
func TestReadError(t *testing.T) {
	good := sigtest.Zip(container(), "a comment")
	for at := range len(good) {
		src := &broken{Reader: bytes.NewReader(good), at: int64(at)}
		a, err := zip.Open(nil, src)
		if err == nil {
			for i := range a.Entries {
				err = errors.Join(err, a.Copy(context.Background(), &a.Entries[i], io.Discard))
			}
		}
		var e *zip.Error
		if err != nil && (errors.As(err, &e) || !errors.Is(err, errBroken)) {
			t.Fatalf("byte %d: %v", at, err)
		}
	}
	// A source that is shorter than its size.
	if _, err := zip.Open(nil, short{bytes.NewReader(good)}); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("%v", err)
	}
}

var errBroken = errors.New("the disk is broken")

// broken is a source with one unreadable byte.
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

type short struct{ *bytes.Reader }

func (s short) Size() int64 { return s.Reader.Size() + 10 }
