// SPDX-License-Identifier: Apache-2.0

package sig

import (
	"context"
	"errors"

	"tamga/pki/chain"
	"tamga/pki/x509gost"
	"tamga/sig/budget"
)

// Price returns the cost of checking one signature by the key of c, in steps.
func Price(c *x509gost.Certificate) int64 { return budget.Signature * int64(chain.Work(c)) }

// Within calls do with a budget: that of ctx, or the ordinary one for the size in bytes of a Document, or
// of all documents of a *Job; nil has none. If a
// limit was exceeded, Within returns an *ErrDocument that names it and ignores the result of do,
// because do did not see the whole document. The error is the *budget.Exceeded itself if the
// document may be sent again later. It returns the error of ctx if ctx is done. What the budget
// drew from the pool of ctx is given back.
func Within[T any](ctx context.Context, d interface{ Size() int64 }, do func(context.Context) (T, error)) (T, error) {
	size := int64(0)
	if d != nil {
		size = d.Size()
	}
	ctx, b := budget.Of(ctx, size)
	b.Begin()
	defer b.End()
	out, err := do(ctx)
	var none T
	var exceeded *budget.Exceeded
	if ended := b.Err(); errors.Is(ended, budget.ErrBusy) {
		return none, ended
	} else if errors.As(ended, &exceeded) {
		return none, &ErrDocument{What: "Document", Text: exceeded.Error(), Err: exceeded}
	} else if ended != nil {
		return none, ended
	}
	return out, err
}
