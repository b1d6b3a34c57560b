// SPDX-License-Identifier: Apache-2.0

package signing

import (
	"bytes"
	"context"
	"io"
	"slices"

	"tamga/pki/suite"
	"tamga/sig"
)

// Match finds the documents of detached signatures by what the signatures say of themselves (see
// [VerifyOrder.Describe]). It returns for each signature the index of the first document that has its digest, -1 for
// none. Each document is read once.
func (v *Verification) Match(ctx context.Context, signatures [][]SignatureReport, documents []*Intake) ([]int, error) {
	var hashes []*suite.Hash
	for _, reports := range signatures {
		for _, r := range reports {
			if r.Signed != nil && !slices.Contains(hashes, r.Signed.Hash) {
				hashes = append(hashes, r.Signed.Hash)
			}
		}
	}
	at := slices.Repeat([]int{-1}, len(signatures))
	if len(hashes) == 0 {
		return at, nil
	}
	for i, d := range documents {
		sums, err := sig.DigestAll(ctx, io.NewSectionReader(d, 0, d.Size()), d.Size(), hashes...)
		if err != nil {
			return nil, err
		}
		for n, reports := range signatures {
			if at[n] < 0 && slices.ContainsFunc(reports, func(r SignatureReport) bool {
				return r.Signed != nil && slices.ContainsFunc(sums, func(d suite.Digest) bool { return d.Hash == r.Signed.Hash && bytes.Equal(d.Sum, r.Signed.Sum) })
			}) {
				at[n] = i
			}
		}
	}
	return at, nil
}

// digestOfReports is the hash by which reports name a document.
var digestOfReports = suite.Streebog256

// Digest returns the digest of a document by Streebog-256.
func (v *Verification) Digest(ctx context.Context, document *Intake) ([]byte, error) {
	sums, err := sig.DigestAll(ctx, io.NewSectionReader(document, 0, document.Size()), document.Size(), digestOfReports)
	if err != nil {
		return nil, err
	}
	return sums[0].Sum, nil
}
