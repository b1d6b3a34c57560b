package sig

import (
	"context"
	"errors"

	"tamga/sig/budget"
)

// Within does what a format does with a document, with the budget of ctx or the ordinary one of
// the document's size. Where a bound was passed the outcome is an *ErrDocument that says which,
// whatever do came to: what it looked at until then is no judgement.
func Within[T any](ctx context.Context, d Document, do func(context.Context) (T, error)) (T, error) {
	size := int64(0)
	if d != nil {
		size = d.Size()
	}
	ctx, b := budget.Of(ctx, size)
	out, err := do(ctx)
	var exceeded *budget.Exceeded
	if errors.As(b.Err(), &exceeded) {
		var none T
		return none, &ErrDocument{What: "Document", Text: exceeded.Error(), Err: exceeded}
	}
	return out, err
}
