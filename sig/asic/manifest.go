// SPDX-License-Identifier: Apache-2.0

package asic

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	"tamga/pki/suite"
	"tamga/sig"
	"tamga/sig/xmltree"
)

// manifest is a list of files with their digests (EN 319 162-1, A.4).
type manifest struct {
	file  *file
	data  []byte
	signs *file  // the signature or time stamp over the list; nil: it is missing
	uri   string // that names it
	list  []listed
	flaw  string // why the list cannot be read, "" if it can

	archive bool          // it is an ASiCArchiveManifest
	hashes  []*suite.Hash // of the list, each once
}

// listed is one entry of a list.
type listed struct {
	uri   string
	file  *file // nil: it is missing
	why   string
	hash  *suite.Hash // nil: unknown
	named string      // the algorithm as written
	sum   []byte
}

// manifestReader reads the lists of a container.
type manifestReader struct {
	ctx  context.Context
	of   *container
	left int // entries that may still be read
}

// read reads a list. An error is one of reading the archive or of the budget: a list that breaks the rules
// has a flaw.
func (r *manifestReader) read(f *file) (*manifest, error) {
	m := &manifest{file: f}
	data, err := f.content(r.ctx, maxManifest)
	if err != nil {
		if !isDocument(err) {
			return nil, err
		}
		m.flaw = err.Error()
		return m, nil
	}
	m.data = data
	t, err := xmltree.Parse(data, xmltree.Options{Size: maxManifest, Budget: r.of.budget})
	if failed := r.of.budget.Err(); failed != nil {
		return nil, failed
	}
	if err != nil {
		m.flaw = err.Error()
		return m, nil
	}
	if flaw := r.parse(t, m); flaw != "" {
		m.flaw, m.list = flaw, nil
	}
	return m, nil
}

// parse reads the elements of a list. It returns what is wrong.
func (r *manifestReader) parse(t *xmltree.Tree, m *manifest) string {
	root := t.Root()
	space := t.Name(root).Space
	if t.Name(root).Local != "ASiCManifest" || space != nsASiC && space != nsASiCOld {
		return fmt.Sprintf("its root element is %s; ASiCManifest expected", quote(t.Name(root).String()))
	}
	seen := map[*file]bool{}
	read := func(c xmltree.Node) (flaw string) {
		if r.left--; r.left < 0 {
			return fmt.Sprintf("the lists of the container have more than %d entries", maxListed)
		}
		one, flaw := r.entry(t, c)
		if flaw == "" && one.file != nil && seen[one.file] {
			flaw = fmt.Sprintf("it names the file %s twice", quote(one.uri))
		}
		seen[one.file] = true
		m.list = append(m.list, one)
		if one.hash != nil && !slices.Contains(m.hashes, one.hash) {
			m.hashes = append(m.hashes, one.hash)
		}
		return flaw
	}
	for c := range t.Elements(root) {
		flaw := ""
		switch {
		case t.Is(c, space, "SigReference"):
			if m.uri != "" {
				return "it names two signatures"
			}
			if m.uri, _ = t.Get(c, "URI"); m.uri == "" {
				return "its SigReference has no URI"
			}
			m.signs, _ = r.of.find(m.uri)
			// Some programs put the entries into this element, against the schema.
			for inner := range t.Elements(c) {
				if flaw == "" && t.Is(inner, space, "DataObjectReference") {
					flaw = read(inner)
				}
			}
		case t.Is(c, space, "DataObjectReference"):
			flaw = read(c)
		}
		if flaw != "" {
			return flaw
		}
	}
	switch {
	case m.uri == "":
		return "it names no signature: it has no SigReference"
	case len(m.list) == 0:
		return "it names no files: it has no DataObjectReference"
	}
	return ""
}

// entry reads a DataObjectReference.
func (r *manifestReader) entry(t *xmltree.Tree, n xmltree.Node) (l listed, flaw string) {
	var given bool
	if l.uri, given = t.Get(n, "URI"); !given {
		return l, "a DataObjectReference has no URI"
	}
	l.file, l.why = r.of.find(l.uri)
	method, value := t.Child(n, nsDS, "DigestMethod"), t.Child(n, nsDS, "DigestValue")
	if method == xmltree.None || value == xmltree.None {
		return l, fmt.Sprintf("the entry %s has no DigestMethod or no DigestValue", quote(l.uri))
	}
	l.named, _ = t.Get(method, "Algorithm")
	if h, ok := suite.HashByXML(l.named); ok {
		l.hash = h
	}
	var wrong error
	l.sum, wrong = t.Base64(value, 1024, func(format string, args ...any) error { return fmt.Errorf(format, args...) })
	if wrong != nil {
		return l, fmt.Sprintf("the DigestValue of the entry %s is not Base64: %s", quote(l.uri), wrong)
	}
	if l.file != nil {
		l.file.want(l.hash)
	}
	return l, ""
}

// check compares the files of a list with their digests. It returns the names of those that are unchanged
// and findings about the others. An error is one of reading the archive or of the budget.
func (m *manifest) check(ctx context.Context) (intact []*file, findings []sig.Finding, err error) {
	for i := range m.list {
		l := &m.list[i]
		switch {
		case l.file == nil:
			findings = append(findings, finding(codeMissing, true, "the list %s names %s, which %s", quote(m.file.Name), quote(l.uri), l.why))
		case l.hash == nil:
			findings = append(findings, finding(codeAlgorithm, true, "the digest algorithm %s of the file %s is not known", quote(l.named), quote(l.file.Name)))
		default:
			d, err := l.file.digest(ctx, l.hash)
			switch {
			case err != nil && !isDocument(err):
				return nil, nil, err
			case err != nil:
				findings = append(findings, finding(codeFailed, true, "the file %s: %s", quote(l.file.Name), err))
			case !bytes.Equal(d.Sum, l.sum):
				findings = append(findings, finding(codeDigest, true, "the file %s has changed since it was signed", quote(l.file.Name)))
			default:
				intact = append(intact, l.file)
			}
		}
		if len(findings) > maxFindings {
			findings = append(findings, finding(codeMany, true, "there are more findings about the files, which are not listed"))
			break
		}
	}
	return intact, findings, nil
}

// maxFindings is how many findings about files one signature may have.
const maxFindings = 100
