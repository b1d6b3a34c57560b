// SPDX-License-Identifier: Apache-2.0

package signing

import (
	"context"
	"io"

	"tamga/internal/domain/fault"
	"tamga/pki/suite"
	"tamga/sig"
)

// Hash returns the hash value of a document. algorithm is a value of the parameter
// HashAlgorithm; if it is empty, the algorithm of the caller's default certificate is
// used. Faults: content_required, invalid_parameters.
func (s *Service) Hash(ctx context.Context, content *Intake, algorithm string) ([]byte, error) {
	if content.isEmpty() {
		return nil, fault.New(fault.ContentRequired, "the document is empty")
	}
	h := content.room.hash
	if algorithm != "" {
		var ok bool
		if h, ok = suite.HashByName(algorithm); !ok {
			return nil, fault.Newf(fault.InvalidParameters, "HashAlgorithm %q is unknown: use, for instance, %q", abbreviate(algorithm), suite.Streebog256.Name)
		}
	}
	if h == nil {
		return nil, fault.New(fault.InvalidParameters, "HashAlgorithm is missing, and you have no default certificate that defines it")
	}
	for _, d := range content.digests() {
		if d.Hash == h {
			return d.Sum, nil
		}
	}
	digests, err := sig.DigestAll(ctx, io.NewSectionReader(content, 0, content.Size()), content.Size(), h)
	if err != nil {
		return nil, err
	}
	return digests[0].Sum, nil
}
