// SPDX-License-Identifier: Apache-2.0

package asic

import (
	"context"
	"errors"
	"hash"
	"io"
	"slices"

	"tamga/pki/suite"
	"tamga/sig"
	"tamga/sig/budget"
	"tamga/sig/xmldsig"
	"tamga/sig/zip"
)

// digest is the digest of a file that was computed once.
type digest struct {
	suite.Digest
	err error // the file cannot be read
}

// want remembers that a file will be hashed by an algorithm, so that one pass serves all.
func (f *file) want(h *suite.Hash) {
	if h != nil && len(f.wanted) < maxDigests && !slices.Contains(f.wanted, h) {
		f.wanted = append(f.wanted, h)
	}
}

// digest returns the digest of the whole file. It reads the file once for all algorithms that are wanted. An
// *sig.ErrDocument is about this file.
func (f *file) digest(ctx context.Context, h *suite.Hash) (suite.Digest, error) {
	if d, err, known := f.known(h); known {
		return d, err
	}
	if f.want(h); !slices.Contains(f.wanted, h) {
		return suite.Digest{}, unfit(nil, "the file %s is to be hashed by more than %d algorithms", quote(f.Name), maxDigests)
	}
	var hashes []*suite.Hash
	for _, w := range f.wanted {
		if _, _, known := f.known(w); !known {
			hashes = append(hashes, w)
		}
	}
	// Package zip charges the content once. Each algorithm reads it again.
	if err := f.of.budget.Spend(int64(len(hashes)-1) * f.Size / 8); err != nil {
		return suite.Digest{}, err
	}
	all := make(sums, len(hashes))
	for i, w := range hashes {
		all[i] = w.New()
	}
	err := ofArchive(f.of.zip.Copy(ctx, f.Entry, all))
	if err != nil && !isDocument(err) {
		return suite.Digest{}, err
	}
	for i, w := range hashes {
		f.digests = append(f.digests, digest{suite.Digest{Hash: w, Sum: all[i].Sum(nil)}, err})
	}
	d, err, _ := f.known(h)
	return d, err
}

func (f *file) known(h *suite.Hash) (d suite.Digest, err error, known bool) {
	for _, d := range f.digests {
		if d.Hash == h {
			if d.err != nil {
				return suite.Digest{}, d.err, true
			}
			return d.Digest, nil, true
		}
	}
	return suite.Digest{}, nil, false
}

// sums writes to several hashes.
type sums []hash.Hash

func (s sums) Write(p []byte) (int, error) {
	for _, h := range s {
		h.Write(p)
	}
	return len(p), nil
}

// content returns the content of a file of at most most bytes.
func (f *file) content(ctx context.Context, most int64) ([]byte, error) {
	b, err := f.of.zip.Content(ctx, f.Entry, most)
	return b, ofArchive(err)
}

// document returns the file as a document.
func (f *file) document() *fileDocument { return &fileDocument{f.of.zip.Reader(f.Entry), f} }

// fileDocument is a file of a container as a document, with its digests.
type fileDocument struct {
	zip.Source
	file *file
}

// Digests implements sig.Digester.
func (d *fileDocument) Digests(ctx context.Context, hs ...*suite.Hash) ([]suite.Digest, error) {
	for _, h := range hs {
		d.file.want(h)
	}
	out := make([]suite.Digest, len(hs))
	for i, h := range hs {
		var err error
		if out[i], err = d.file.digest(ctx, h); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// besideFiles gives package xmldsig the files of a container.
type besideFiles struct{ *container }

// File implements xmldsig.Files.
func (b besideFiles) File(uri string) (xmldsig.File, error) {
	f, why := b.find(uri)
	if f == nil {
		return nil, errors.New(why)
	}
	return besideFile{f}, nil
}

type besideFile struct{ *file }

// Name implements xmldsig.File.
func (b besideFile) Name() string { return b.file.Name }

// Digest implements xmldsig.File.
func (b besideFile) Digest(ctx context.Context, h *suite.Hash) (suite.Digest, error) {
	return b.file.digest(ctx, h)
}

// Content implements xmldsig.File.
func (b besideFile) Content(ctx context.Context, most int64) ([]byte, error) {
	return b.file.content(ctx, most)
}

// Write implements xmldsig.File.
func (b besideFile) Write(ctx context.Context, w io.Writer) error {
	return ofArchive(b.of.zip.Copy(ctx, b.Entry, w))
}

// newFiles gives package xmldsig the documents of a new container.
type newFiles map[string]newFile // by URI

// newFiles returns the documents of the job.
func (m *maker) newFiles() newFiles {
	all, i := newFiles{}, 0
	for f := range m.job.Documents() {
		all[uriOf(nameOf(f))] = newFile{f, m.suite, m.state.Files[i].Digest}
		i++
	}
	return all
}

// File implements xmldsig.Files.
func (n newFiles) File(uri string) (xmldsig.File, error) {
	if f, is := n[uri]; is {
		return f, nil
	}
	return nil, errors.New("is not in the container")
}

// newFile is a document of a new container, with its digest of the first step.
type newFile struct {
	sig.File
	suite *suite.Suite
	sum   []byte
}

// Name implements xmldsig.File.
func (n newFile) Name() string { return nameOf(n.File) }

// Digest implements xmldsig.File.
func (n newFile) Digest(ctx context.Context, h *suite.Hash) (suite.Digest, error) {
	if h == n.suite.Hash {
		return suite.Digest{Hash: h, Sum: n.sum}, nil
	}
	return sig.DigestOf(ctx, n.File, h)
}

// Content implements xmldsig.File. A new signature has no transforms.
func (n newFile) Content(context.Context, int64) ([]byte, error) {
	return nil, errors.New("asic: a reference to a new file has no transforms")
}

// Write implements xmldsig.File.
func (n newFile) Write(ctx context.Context, w io.Writer) error {
	_, b := budget.Of(ctx, 0)
	size := n.Document.Size()
	if err := b.Spend(size / 8); err != nil {
		return err
	}
	_, err := sig.DigestAll(ctx, io.TeeReader(io.NewSectionReader(n.Document, 0, size), w), size)
	return err
}

var _ sig.Digester = (*fileDocument)(nil)
