// SPDX-License-Identifier: Apache-2.0

package asic

import (
	"bytes"
	"crypto/sha256"
	"slices"

	"tamga/sig"
)

var stateForm = sig.StateForm{What: "a signature in a container", First: 1, Version: 1, Several: true}

// state is all that Finish needs in addition to the job's documents and certificate.
type state struct {
	sig.StateHeader
	XML, Single, Extends bool
	// Files are the documents of a new container, in its order.
	Files []stateFile
	// Directory is the fingerprint of the container to extend.
	Directory []byte
	// List is the list of files of a CAdES signature in ASiC-E, and ListName the name of its entry. Entry is the
	// name of the entry with the signature.
	List            []byte
	ListName, Entry string
	// Inner is the state of the signature itself.
	Inner []byte
}

// stateFile is a document of a new container.
type stateFile struct {
	Name   string
	Size   int64
	CRC32  int64
	Digest []byte
}

// Fields implements sig.State.
func (st *state) Fields(f *sig.Fields) {
	f.Header(&st.StateHeader)
	f.Flags(&st.XML, &st.Single, &st.Extends)
	sig.List(f, &st.Files, func(one *stateFile) {
		f.Text(&one.Name)
		sig.Number(f, &one.Size)
		sig.Number(f, &one.CRC32)
		f.Bytes(&one.Digest)
	})
	f.Bytes(&st.Directory)
	f.Bytes(&st.List)
	f.Text(&st.ListName)
	f.Text(&st.Entry)
	f.Bytes(&st.Inner)
}

// fits returns an *sig.ErrState unless the state was made for the documents of a job.
func (st *state) fits(job *sig.Job) error {
	files := slices.Collect(job.Documents())
	if len(files) != len(st.Files) {
		return &sig.ErrState{Text: "made for another number of documents"}
	}
	for i, f := range files {
		kept := &st.Files[i]
		if f.Document == nil {
			return &sig.ErrState{Text: "the document is needed"}
		}
		if nameOf(f) != kept.Name || f.Document.Size() != kept.Size {
			return &sig.ErrState{Text: "made for other documents"}
		}
		for _, d := range f.Digests {
			if job.Certificate.Suite != nil && d.Hash == job.Certificate.Suite.Hash && !bytes.Equal(d.Sum, kept.Digest) {
				return &sig.ErrState{Text: "made for a document with another hash value"}
			}
		}
	}
	return nil
}

// fingerprint distinguishes containers without reading their files: the SHA-256 of the central directory, which
// has the name, size and checksum of each.
func (c *container) fingerprint() []byte {
	sum := sha256.Sum256(c.zip.Directory)
	return sum[:]
}
