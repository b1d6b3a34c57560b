// SPDX-License-Identifier: Apache-2.0

package asic

import (
	"bytes"
	"context"
	"encoding/hex"
	"net/url"
	"slices"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"

	"tamga/pki/suite"
	"tamga/sig"
	"tamga/sig/budget"
	"tamga/sig/zip"
)

// kind is the kind of a container.
type kind int

const (
	kindUnknown kind = iota // the container does not say
	kindS
	kindE
	kindOther // a document of another format with META-INF, such as OpenDocument
)

// container is an archive with the meaning of its entries.
type container struct {
	zip    *zip.Archive
	budget *budget.Budget
	doc    sig.Document

	byKey map[string]*file // by the key of the name
	files []*file          // data: neither mimetype nor in META-INF
	// others are entries of META-INF that are nothing a container has there. People may take them for its files.
	others []*file
	// cms, xml, stamps and records are the entries with CMS signatures, XML signatures, time stamps
	// and evidence records, manifests the lists of files, archives the lists of archive time stamps.
	// They are in the order of the directory.
	cms, xml, stamps, records, manifests, archives []*file
	evidence                                       []*file // lists of evidence records

	kind     kind
	mimetype string // content of the entry, "" without one
	notes    []sig.Finding
}

// file is an entry of a container.
type file struct {
	*zip.Entry
	of      *container
	signs   bool // it has signatures
	digests []digest
	wanted  []*suite.Hash
	signed  []int // indexes of the signatures of the report that cover it unchanged
}

// key returns what is the same for all spellings of a name that mean the same file on some system or in a reference,
// or that look the same: percent-encoding, as often as it was applied, letter case, the form of Unicode, dots and spaces
// at the end of a segment, which Windows drops, and format characters, which are not visible.
func key(name string) string {
	decoded := make([]byte, 0, len(name))
	for i := range len(name) {
		decoded = append(decoded, name[i])
		// A decoded byte may end another escape.
		for n := len(decoded); n >= 3 && decoded[n-3] == '%'; n = len(decoded) {
			one, err := hex.DecodeString(string(decoded[n-2:]))
			if err != nil {
				break
			}
			decoded = append(decoded[:n-3], one...)
		}
	}
	visible := strings.Map(func(r rune) rune {
		if unicode.Is(unicode.Cf, r) {
			return -1
		}
		return r
	}, string(decoded))
	// Lower case of upper case joins letters that have several lower-case forms.
	segments := strings.Split(sig.NameKey(strings.ToLower(strings.ToUpper(visible))), "/")
	for i, s := range segments {
		segments[i] = strings.TrimRight(s, ". ")
	}
	return strings.Join(segments, "/")
}

// openContainer reads the structure of a container and sorts its entries.
func openContainer(ctx context.Context, b *budget.Budget, doc sig.Document) (*container, error) {
	z, err := zip.Open(b, doc)
	if err != nil {
		return nil, ofArchive(err)
	}
	c := &container{zip: z, budget: b, doc: doc, byKey: make(map[string]*file, len(z.Entries))}
	var names int64
	for i := range z.Entries {
		names += int64(len(z.Entries[i].Name))
	}
	// A name in normal form takes at most three times its bytes, and there are two more copies on the way.
	if err := b.Hold(256*int64(len(z.Entries)) + 6*names); err != nil {
		return nil, err
	}
	if err := b.Spend(20 * names); err != nil {
		return nil, err
	}
	folders := map[string]bool{}
	for i := range z.Entries {
		e := &z.Entries[i]
		k := key(e.Name)
		if e.IsDirectory() {
			folders[k] = true
			if err := spelled(k, e.Name); err != nil {
				return nil, err
			}
			continue
		}
		if other := c.byKey[k]; other != nil {
			return nil, damaged("the entries %s and %s have equivalent names", quote(other.Name), quote(e.Name))
		}
		f := &file{Entry: e, of: c}
		c.byKey[k] = f
		if err := spelled(k, e.Name); err != nil {
			return nil, err
		}
		c.sort(k, f)
	}
	for k := range folders {
		if f := c.byKey[strings.TrimSuffix(k, "/")]; f != nil {
			return nil, damaged("the entry %s is both a file and a directory", quote(f.Name))
		}
	}
	return c, c.readKind(ctx)
}

// spelled refuses another spelling of META-INF and of mimetype: some programs would take the entry for one of the
// files, and others would not.
func spelled(k, name string) error {
	if k == mimetypeName && name != mimetypeName || strings.HasPrefix(k, strings.ToLower(metaFolder)) && !strings.HasPrefix(name, metaFolder) {
		return damaged("the entry %s means %s on some systems; exactly these letters expected", quote(name), quote(k))
	}
	return nil
}

// sort puts an entry into its list (EN 319 162-1, 4.3.3.2, 4.4.3.2 and 4.4.4.2). Names of META-INF are
// compared without letter case, because programs differ in it.
func (c *container) sort(k string, f *file) {
	if k == mimetypeName {
		return
	}
	name, inMeta := strings.CutPrefix(k, "meta-inf/")
	if !inMeta {
		c.files = append(c.files, f)
		return
	}
	is := func(part, suffix string) bool { return strings.Contains(name, part) && strings.HasSuffix(name, suffix) }
	switch {
	case is("asicarchivemanifest", ".xml"):
		c.archives = append(c.archives, f)
	case is("asicevidencerecordmanifest", ".xml"):
		c.evidence = append(c.evidence, f)
	case is("asicmanifest", ".xml"):
		c.manifests = append(c.manifests, f)
	case is("evidencerecord", ".ers"), is("evidencerecord", ".xml"):
		c.records = append(c.records, f)
	case is("timestamp", ".tst"):
		c.stamps = append(c.stamps, f)
	case is("signature", ".p7s"):
		c.cms, f.signs = append(c.cms, f), true
	case is("signatures", ".xml"):
		c.xml, f.signs = append(c.xml, f), true
	case name == "manifest.xml": // the list of files of OpenDocument, which many programs also write here
	default:
		c.others = append(c.others, f)
	}
}

// shown returns what people may take for the files of the container.
func (c *container) shown() []*file { return slices.Concat(c.files, c.others) }

// signs reports whether the container has anything to check.
func (c *container) signs() bool {
	return len(c.cms)+len(c.xml)+len(c.stamps)+len(c.records)+len(c.manifests)+len(c.archives) > 0
}

// maxMimetype is the largest content of the entry mimetype, in bytes.
const maxMimetype = 256

// readKind reads the entry mimetype, or what else says which kind the container is.
func (c *container) readKind(ctx context.Context) error {
	f := c.byKey[mimetypeName]
	if f == nil || f.Name != mimetypeName || f.Size > maxMimetype {
		c.notes = append(c.notes, finding(codeMimetype, false, "the container has no entry mimetype that says which kind it is"))
	} else {
		data, err := c.zip.Content(ctx, f.Entry, maxMimetype)
		if err != nil {
			return ofArchive(err)
		}
		c.mimetype = strings.TrimSpace(string(bytes.TrimPrefix(data, []byte("\xEF\xBB\xBF"))))
		switch {
		case f.Offset != 0:
			c.notes = append(c.notes, finding(codeMimetype, false, "the entry mimetype is not the first one, so programs do not recognise the container by its beginning"))
		case f.Method != zip.Store || f.Data != int64(30+len(f.Name)):
			c.notes = append(c.notes, finding(codeMimetype, false, "the entry mimetype is compressed or has extra fields, so programs do not recognise the container by its beginning"))
		}
	}
	switch {
	case c.mimetype == typeS:
		c.kind = kindS
	case c.mimetype == typeE:
		c.kind = kindE
	case c.mimetype != "":
		c.kind = kindOther
	case len(c.manifests) > 0 || len(c.files) > 1:
		c.kind = kindE
	case c.byKey["meta-inf/signature.p7s"] != nil || c.byKey["meta-inf/timestamp.tst"] != nil:
		c.kind = kindS
	}
	return nil
}

// find returns the file that a URI in a list or a reference names, or the reason why it names no file. URIs
// are relative to the top of the container and percent-encoded, but programs also write names as they are.
func (c *container) find(uri string) (*file, string) {
	switch {
	case uri == "":
		return nil, "is empty; the name of a file expected"
	case strings.HasPrefix(uri, "/") || strings.Contains(uri, "://"):
		return nil, "leads out of the container; the name of a file from its top expected"
	}
	for segment := range strings.SplitSeq(uri, "/") {
		if segment == ".." {
			return nil, "leads out of the container; the name of a file from its top expected"
		}
	}
	uri = strings.TrimPrefix(uri, "./")
	names := []string{uri}
	if decoded, err := url.PathUnescape(uri); err == nil {
		names = append(names, decoded)
	}
	for _, name := range names {
		if f := c.byKey[key(name)]; f != nil && norm.NFC.String(f.Name) == norm.NFC.String(name) {
			return f, ""
		}
	}
	return nil, "is not in the container"
}
