// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"context"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"tamga/internal/domain/audit"
)

// holdsX holds the requests of the operation X.
type holdsX struct{}

func (holdsX) Holds(operation string) bool { return operation == "X" }

func (holdsX) Hold(context.Context, audit.Principal, HeldCall) (func(context.Context, error) error, error) {
	return nil, nil
}

// TestHoldable checks that a program does not start if requests may wait that a holder cannot read.
func TestHoldable(t *testing.T) {
	type reads[B any] struct{ Body B }
	open := func(context.Context, audit.Principal) (*memorySink, error) { return &memorySink{}, nil }
	documents := func(context.Context, *Documents[*memorySink], reads[Parts]) (None, error) { return None{}, nil }
	value := func(Form) any { return nil }
	parts := HandleDocuments("POST /x", "X", SignedIn, open, documents)
	raw := HandleDocuments("POST /x", "X", SignedIn, open, func(context.Context, *Documents[*memorySink], struct {
		Raw  Raw `header:"X"`
		Body struct{ Content Blob }
	}) (None, error) {
		return None{}, nil
	})
	form := Handle("POST /x", "X", SignedIn, func(context.Context, reads[Form]) (None, error) { return None{}, nil })
	list := Handle("POST /x", "X", SignedIn, func(context.Context, reads[[]string]) (None, error) { return None{}, nil })
	named := func(r Route, name string) Route {
		r.Name = name
		return r
	}
	for name, c := range map[string]struct {
		route Route
		ok    bool
	}{
		"a form": {form, true}, "a form as a value": {form.HeldAs(value), true}, "a value": {list, true},
		"parts": {parts, false}, "a document as the body": {raw, false}, "a value as a form": {list.HeldAs(value), false},
		"parts of another operation": {named(parts, "Y"), true},
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if p := recover(); (p == nil) != c.ok || p != nil && !strings.Contains(p.(string), "a holder cannot read") {
					t.Errorf("%v", p)
				}
			}()
			Mount(http.NewServeMux(), "", &Gate{
				Audit: noAudit{}, Log: slog.New(slog.DiscardHandler), Holder: holdsX{},
				Identify: func(context.Context, string) (audit.Principal, error) { return audit.Principal{}, nil },
			}, []Route{c.route})
		})
	}
}
