package sig

import (
	"context"
	"errors"

	"tamga/pki/chain"
	"tamga/pki/x509gost"
	"tamga/sig/budget"
)

// Price is what it costs to check a signature by the key of a certificate, in steps.
func Price(c *x509gost.Certificate) int64 { return budget.Signature * int64(chain.Work(c)) }

// Within does what a format does with a document, with the budget of ctx or the ordinary one of
// the document's size. Where a bound was passed the outcome is an *ErrDocument that says which,
// whatever do came to: what it looked at until then is no judgement. The same goes for a context
// that ended.
func Within[T any](ctx context.Context, d Document, do func(context.Context) (T, error)) (T, error) {
	size := int64(0)
	if d != nil {
		size = d.Size()
	}
	ctx, b := budget.Of(ctx, size)
	out, err := do(ctx)
	var none T
	var exceeded *budget.Exceeded
	if ended := b.Err(); errors.As(ended, &exceeded) {
		return none, &ErrDocument{What: "Document", Text: exceeded.Error(), Err: exceeded}
	} else if ended != nil {
		return none, ended
	}
	return out, err
}
