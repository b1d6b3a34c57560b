// SPDX-License-Identifier: Apache-2.0

package cades

import (
	"context"

	"tamga/pki/cms"
	"tamga/sig"
	"tamga/sig/budget"
)

// Prices of the parts of a message, in steps and bytes of memory for each of their bytes. The bytes
// themselves are charged while the message is parsed.
const (
	stepsOfValue  = 2 // certificates, lists, attributes
	memoryOfValue = 1
	memoryOfList  = 5 // the entries of a revocation list, in addition
)

// spending returns the budget of a document.
func spending(ctx context.Context) *budget.Budget {
	_, b := budget.Of(ctx, 0)
	return b
}

// charge charges for a message without its content.
func charge(b *budget.Budget, m *cms.Message) error {
	var bytes, lists int64
	for _, raw := range m.Certificates {
		bytes += int64(len(raw))
	}
	for _, raw := range m.CRLs {
		lists += int64(len(raw))
	}
	for _, s := range m.Signers {
		bytes += int64(len(s.Raw))
	}
	if err := b.Hold(memoryOfValue*bytes + memoryOfList*lists); err != nil {
		return err
	}
	return b.Spend(budget.Certificate*int64(len(m.Certificates)) + stepsOfValue*(bytes+lists))
}

// chargeSigner charges for one signature, except the check of its value: for finding its
// certificate and reading its attributes.
func chargeSigner(b *budget.Budget, s *cms.SignerInfo, candidates int) error {
	return b.Spend(budget.Certificate + stepsOfValue*int64(candidates) + 2*stepsOfValue*int64(len(s.Raw)))
}

// chargeHashes charges for hashing a document with more than one algorithm. The first
// hash of the received bytes is free.
func chargeHashes(b *budget.Budget, d sig.Document, algorithms int) error {
	return b.Spend(d.Size() * int64(max(0, algorithms-1)))
}
