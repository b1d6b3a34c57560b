// SPDX-License-Identifier: Apache-2.0

package sig

import (
	"context"
	"crypto"
	"fmt"
	"io"
)

// Sign makes a signature in one step: Prepare, the key, Finish. job.Certificate must be the
// certificate of key, and rand a secure source. Sign verifies the value against the certificate
// before it goes into the document. The errors are those of Prepare and Finish and of the key.
//
// If the key is in another process, call Prepare and Finish instead.
func Sign(ctx context.Context, f Format, job *Job, rand io.Reader, key crypto.Signer) (Result, error) {
	s, err := SuiteOf(job.Certificate)
	if err != nil {
		return nil, err
	}
	prepared, err := f.Prepare(ctx, job)
	if err != nil {
		return nil, err
	}
	value, err := s.Sign(rand, key, prepared.Digest)
	if err != nil {
		return nil, fmt.Errorf("signing: %w", err)
	}
	if err := s.Verify(job.Certificate.PublicKey, prepared.Digest, value); err != nil {
		return nil, fmt.Errorf("signing: the value does not verify against the certificate; does the key belong to it? %w", err)
	}
	return f.Finish(ctx, job, prepared.State, value)
}
