// SPDX-License-Identifier: Apache-2.0

package view

import "context"

// Noted is what became of a request that a page has sent to another page.
type Noted struct {
	Err    error // nil: it was not refused
	Result any   // what it has made, if the other page notes that
}

type notedKey struct{}

// Noting returns a context for a request to another page, and where its error will be.
func Noting(ctx context.Context) (context.Context, *Noted) {
	n := &Noted{}
	return context.WithValue(ctx, notedKey{}, n), n
}

// Note notes the error of a request, if another page has sent it.
func Note(ctx context.Context, err error) {
	if n, ok := ctx.Value(notedKey{}).(*Noted); ok {
		n.Err = err
	}
}

// NoteResult notes what a request has made, if another page has sent it.
func NoteResult(ctx context.Context, result any) {
	if n, ok := ctx.Value(notedKey{}).(*Noted); ok {
		n.Result = result
	}
}
