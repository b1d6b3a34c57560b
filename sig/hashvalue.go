// SPDX-License-Identifier: Apache-2.0

package sig

import (
	"fmt"
	"io"

	"tamga/pki/suite"
)

// CheckHashAlgorithm records a fault if HashAlgorithm is given and is not the one that keys of
// the suite sign. A 512-bit key signs only the 512-bit hash.
func (r *ParamReader) CheckHashAlgorithm(s *suite.Suite) {
	if !r.Given("HashAlgorithm") {
		return
	}
	v := r.String("HashAlgorithm")
	if h, ok := suite.HashByName(v); !ok {
		r.Fault("HashAlgorithm", fmt.Sprintf("%s is not known; the certificate's key signs %s", quote(v), s.Hash.Name))
	} else if h != s.Hash {
		r.Fault("HashAlgorithm", fmt.Sprintf("is %s, but the certificate's key signs %s", h.Name, s.Hash.Name))
	}
}

// HashValue reads a document as a hash value by the suite's algorithm (parameter Hash=True). A
// document of another length is a fault. name is the document's name in the request.
func HashValue(doc Document, name string, r *ParamReader, s *suite.Suite) (suite.Digest, error) {
	d := suite.Digest{Hash: s.Hash, Sum: make([]byte, s.Hash.Size)}
	if n := doc.Size(); n != int64(s.Hash.Size) {
		r.Fault("Hash", fmt.Sprintf("is True, so %s must be a %s hash value of %d bytes; it has %d", name, s.Hash.Name, s.Hash.Size, n))
		return d, nil
	}
	if n, err := doc.ReadAt(d.Sum, 0); n < len(d.Sum) {
		if err == nil || err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		return d, fmt.Errorf("document: reading the hash value: %w", err)
	}
	return d, nil
}
