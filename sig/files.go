// SPDX-License-Identifier: Apache-2.0

package sig

import (
	"fmt"
	"iter"

	"tamga/pki/suite"
)

// File is a document with what its caller knows of it: one of several that one signature covers.
type File struct {
	// Name is its name in the container. The format decides which names are possible.
	Name string
	// Document is what is signed.
	Document Document
	// Digests were computed over the whole Document while it was received, as [Job.Digests].
	Digests []suite.Digest
}

// First returns the Document of the job with its name and digests.
func (j *Job) First() File { return File{j.Name, j.Document, j.Digests} }

// Documents returns all documents that the signature covers, in their order: First, then Files.
func (j *Job) Documents() iter.Seq[File] {
	return func(yield func(File) bool) {
		if !yield(j.First()) {
			return
		}
		for _, f := range j.Files {
			if !yield(f) {
				return
			}
		}
	}
}

// Size returns the length of all documents that the signature covers together, in bytes. A document that
// is nil has none.
func (j *Job) Size() (n int64) {
	for f := range j.Documents() {
		if f.Document != nil {
			n += f.Document.Size()
		}
	}
	return n
}

// refuseFiles returns the faults of a job for a format that signs one document.
func (j *Job) refuseFiles() []Fault {
	if len(j.Files) == 0 {
		return nil
	}
	return []Fault{{Key: "Files", Text: fmt.Sprintf("has %d more documents, but a signature of this type covers one; sign each of them alone", len(j.Files))}}
}
