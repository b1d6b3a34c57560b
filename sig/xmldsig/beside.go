// SPDX-License-Identifier: Apache-2.0

package xmldsig

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"tamga/pki/suite"
	"tamga/sig"
	"tamga/sig/xmltree"
)

// Files are the files beside a document with signatures, in a container such as ASiC. References
// name them by relative URIs.
type Files interface {
	// File returns the file that a URI names, as it is written in a reference. The error says why
	// there is none.
	File(uri string) (File, error)
}

// File is one file beside a document with signatures.
type File interface {
	// Name is its name for people.
	Name() string
	// Digest returns the digest of the whole file.
	Digest(ctx context.Context, h *suite.Hash) (suite.Digest, error)
	// Content returns the file, for a reference with transforms. It charges the memory first.
	Content(ctx context.Context, most int64) ([]byte, error)
	// Write writes the whole file, for an archive time stamp. It charges the reading first.
	Write(ctx context.Context, w io.Writer) error
}

// Beside is what the signatures of a document cover of the files beside it.
type Beside struct {
	// Names has, for each signature of the report, the names of the files that it covers unchanged. A file
	// to which two references lead is there twice.
	Names [][]string
}

// VerifyBeside is Verify for a document whose signatures also refer to files. A signature that refers
// to any has no finding that it covers only a part (sig.CodePart): the caller knows all files.
func (f *Format) VerifyBeside(ctx context.Context, c *sig.Check, files Files) (*sig.Report, *Beside, error) {
	beside := &Beside{}
	report, err := sig.Within(ctx, c.Document, func(ctx context.Context) (*sig.Report, error) {
		return f.verifyBeside(ctx, c, files, beside)
	})
	return report, beside, err
}

// isBeside reports whether a URI names a file beside the document: a relative one without a fragment.
func isBeside(uri string) bool { return uri != "" && !strings.Contains(uri, "#") }

// fileDigest is the digest of a file after the transforms of a reference.
type fileDigest struct {
	suite.Digest
	nothing   bool // the transforms leave nothing
	unchanged bool // the transforms leave all bytes as they are, so the digest covers the file itself
}

// fileDigest digests a file after the transforms of the reference. Transforms that need a place in the document
// are refused.
func (d *digester) fileDigest(file File, most int64) (fileDigest, error) {
	if len(d.ref.transforms) == 0 {
		sum, err := file.Digest(d.ctx, d.ref.hash)
		return fileDigest{Digest: sum, unchanged: true}, err
	}
	sum := &counter{Hash: d.ref.hash.New()}
	unchanged, err := d.writeFile(file, most, sum)
	return fileDigest{suite.Digest{Hash: d.ref.hash, Sum: sum.Sum(nil)}, sum.n == 0, unchanged}, err
}

// writeFile writes a file after the transforms of the reference. It reports whether these leave all bytes as they are.
func (d *digester) writeFile(file File, most int64, w io.Writer) (unchanged bool, err error) {
	if len(d.ref.transforms) == 0 {
		return true, file.Write(d.ctx, w)
	}
	for _, tr := range d.ref.transforms {
		if _, isForm := canonicalForms[tr.algorithm]; !isForm && !tr.selects() {
			return false, flawAt(d.sig.tree, tr.node, codeTransform, "the transform %s is not used for files in a container; a canonical form of XML or XPath expected", quote(tr.algorithm))
		}
	}
	held := d.budget().Held()
	defer func() { d.budget().Release(d.budget().Held() - held) }()
	data, err := file.Content(d.ctx, most)
	if err != nil {
		return false, err
	}
	m := material{data: data}
	for _, tr := range d.ref.transforms {
		if m, err = tr.apply(d, m); err != nil {
			return false, d.explain(err)
		}
	}
	if set := m.set; set != nil { // XMLDSig, 4.4.3.2
		m.finish = func(w io.Writer) error { return set.Canonicalize(w, d.final) }
	}
	same := &comparer{rest: data, same: true}
	if err := d.emit(m, io.MultiWriter(w, same)); err != nil {
		return false, d.explain(err)
	}
	return same.same && len(same.rest) == 0, nil
}

// comparer compares what is written with bytes.
type comparer struct {
	rest []byte
	same bool
}

func (c *comparer) Write(p []byte) (int, error) {
	if c.same = c.same && bytes.HasPrefix(c.rest, p); c.same {
		c.rest = c.rest[len(p):]
	}
	return len(p), nil
}

// besideReference checks a reference to a file. It returns only errors of the budget and of reading.
func (v *verification) besideReference(r *reference, covers *coverage) error {
	file, err := v.files.File(r.uri)
	if err != nil {
		v.flaw(flawAt(v.tree, r.node, codeMissing, "the reference URI=%s: %s", quote(r.uri), err))
		covers.words = append(covers.words, "nothing by URI="+quote(r.uri))
		return nil
	}
	covers.beside++
	name := sig.Printable(file.Name(), maxPrintedName, '?')
	if r.hash == nil {
		v.flaw(r.unknownHash(v.tree))
		return nil
	}
	d := digester{ctx: v.ctx, sig: v.sig, ref: r, options: v.options}
	got, err := d.fileDigest(file, v.options.Size)
	if failed := v.budget().Err(); failed != nil {
		return failed
	}
	want, wrong := base64Text(v.tree, r.digest, maxValue)
	switch {
	case err != nil:
		if v.ctx.Err() != nil {
			return v.ctx.Err()
		}
		v.flaw(err)
	case got.nothing:
		v.flaw(flawAt(v.tree, r.node, codeNothing, "the result of the reference's transforms is empty, so nothing is signed"))
	case wrong != nil:
		v.flaw(wrong)
	case !bytes.Equal(got.Sum, want):
		v.flaw(flawAt(v.tree, r.node, codeDigest, "the file %s has changed since it was signed", quote(file.Name())))
	case slices.ContainsFunc(r.transforms, transform.selects):
		covers.words = append(covers.words, "the part of the file "+name+" that XPath selects")
		return nil
	case !got.unchanged:
		// Comments, spaces inside of tags and entities may differ. Programs that read the bytes notice.
		covers.words = append(covers.words, "the XML content of the file "+name+", not its bytes")
		return nil
	default:
		v.names = append(v.names, file.Name())
		covers.words = append(covers.words, "the file "+name)
		return nil
	}
	covers.words = append(covers.words, "the file "+name+", which is not as it was signed")
	return nil
}

// selects reports whether the transform keeps only a part of its input.
func (tr transform) selects() bool { return tr.algorithm == algXPath || tr.algorithm == algFilter2 }

// maxPrintedName is how many runes of the name of a file a report may have.
const maxPrintedName = 120

// Reference is a file beside the document that a signature covers.
type Reference struct {
	// URI names the file from the top of the container, percent-encoded.
	URI string
	// MimeType is its type, such as "application/octet-stream".
	MimeType string
	// Digest is over the whole file.
	Digest suite.Digest
}

// PrepareBeside is Prepare for a signature of files: it puts a Signature with these references behind
// the last child of the root element of the Document of the job, which itself is not signed. FinishBeside
// takes the same job.
func (f *Format) PrepareBeside(ctx context.Context, job *sig.Job, files []Reference) (*sig.Prepared, error) {
	return sig.Within(ctx, job.Document, func(ctx context.Context) (*sig.Prepared, error) {
		if len(files) == 0 || len(files) > maxFiles {
			return nil, unfit(fmt.Sprintf("%d files are to be signed; 1 to %d expected", len(files), maxFiles), nil)
		}
		return f.prepareWith(ctx, job, func(m *maker) (*made, error) { return m.beside(files) })
	})
}

// FinishBeside is Finish for PrepareBeside. An archive time stamp covers the files.
func (f *Format) FinishBeside(ctx context.Context, job *sig.Job, prepared, signature []byte, files Files) (sig.Result, error) {
	return sig.Within(ctx, job.Document, func(ctx context.Context) (sig.Result, error) { return f.finish(ctx, job, prepared, signature, files) })
}

// beside makes a signature of files.
func (m *maker) beside(files []Reference) (*made, error) {
	t, err := m.parse("a document with signatures of files")
	if err != nil {
		return nil, err
	}
	refs := make([]renderedReference, len(files))
	types := make([]string, len(files))
	for i, file := range files {
		if !isBeside(file.URI) || strings.ContainsAny(file.URI, "\"<>&\x00") {
			return nil, unfit(fmt.Sprintf("the URI %s does not name a file of a container", quote(file.URI)), nil)
		}
		refs[i] = renderedReference{uri: file.URI, digest: file.Digest}
		types[i] = file.MimeType
	}
	text, digest, err := m.complete(m.element(), refs, types, t, func(fragment []byte) (*xmltree.Tree, xmltree.Node, error) {
		return t.Graft(t.Root(), fragment, m.options)
	})
	if err != nil {
		return nil, err
	}
	pieces, err := planOf(t, []xmltree.Edit{t.Append(t.Root(), text)})
	return &made{digest: digest, encoding: t.Encoding(), pieces: pieces}, err
}
