// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"context"
	"slices"
	"strings"
	"sync"
)

// Holders collects the holders of private keys that one call made keys in or used keys of, and a note. The zero value
// is ready, and safe for concurrent use.
type Holders struct {
	mu    sync.Mutex
	names []string
	note  string // see Remark
}

type holdersKey struct{}

// WithHolders puts a collection into the context of a call.
func WithHolders(ctx context.Context, h *Holders) context.Context {
	return context.WithValue(ctx, holdersKey{}, h)
}

// UsedHolder adds a holder by its name to the collection of a context, if there is one.
func UsedHolder(ctx context.Context, name string) {
	h, _ := ctx.Value(holdersKey{}).(*Holders)
	if h == nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if !slices.Contains(h.names, name) {
		h.names = append(h.names, name)
	}
}

// WithHoldersOf returns the detail of an audit entry with the holders that the call of a context has
// collected.
func WithHoldersOf(ctx context.Context, detail string) string {
	h, _ := ctx.Value(holdersKey{}).(*Holders)
	if h == nil {
		return detail
	}
	return h.Detail(detail)
}

// Detail returns the detail of an audit entry with the holders after it: "3 documents, holder token".
func (h *Holders) Detail(detail string) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.note != "" && detail != "" {
		detail += ", "
	}
	detail += h.note
	if len(h.names) == 0 {
		return detail
	}
	holders := "holder " + strings.Join(slices.Sorted(slices.Values(h.names)), " ")
	if detail == "" {
		return holders
	}
	return detail + ", " + holders
}

// Remark adds a text, such as counts, to the detail of the entry that the collection of a context is for. The text
// has no secret.
func Remark(ctx context.Context, text string) {
	h, _ := ctx.Value(holdersKey{}).(*Holders)
	if h == nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.note = text
}
