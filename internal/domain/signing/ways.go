// SPDX-License-Identifier: Apache-2.0

package signing

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"tamga/internal/domain/confirm/what"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/operation"
)

// way is how the documents are signed whose Way is its index.
type way struct {
	Type   string            `json:"type"`
	Params map[string]string `json:"params,omitempty"`
}

// ways returns how the documents are signed.
func (p *plan) ways() []way {
	if len(p.Ways) > 0 {
		return p.Ways
	}
	return []way{{p.Type, p.Params}}
}

// setWays replaces what ways returns.
func (p *plan) setWays(list []way) {
	if p.Ways = list; len(list) == 1 {
		p.Type, p.Params, p.Ways = list[0].Type, list[0].Params, nil
	}
}

// OfWay is a fault of one of several ways of an order, which refuses the whole order.
type OfWay struct {
	error
	Document int // index of its first document in the order
}

// Unwrap returns the fault.
func (o OfWay) Unwrap() error { return o.error }

// ofWay adds to a fault of one of some ways the index of its first document. Other errors stay as they are.
func ofWay(ways, document int, err error) error {
	if _, refused := fault.As(err); refused && ways > 1 {
		return OfWay{err, document}
	}
	return err
}

// firstOf returns the index of the first document of a way.
func firstOf(documents []operation.Document, way int) int {
	return slices.IndexFunc(documents, func(d operation.Document) bool { return d.Way == way })
}

// requestsOf returns the requests of some ways, by which documents are signed.
func (s *Operations) requestsOf(ctx context.Context, ways []way, with *secret, documents []operation.Document) ([]*request, error) {
	for i := range documents {
		if way := documents[i].Way; way < 0 || way >= len(ways) {
			return nil, fmt.Errorf("signing: document %d has way %d of %d", i, way, len(ways))
		}
	}
	list := make([]*request, len(ways))
	for i, w := range ways {
		var err error
		if list[i], err = s.Signer.request(ctx, w.Type, with.added(i, w.Params)); err != nil {
			return nil, ofWay(len(ways), firstOf(documents, i), err)
		}
	}
	return list, nil
}

// alike are items that are signed in one way, with their indexes.
type alike struct {
	way   int
	at    []int
	items []Item
}

// byWay divides the items of some documents by their ways.
func byWay(documents []operation.Document, items []Item) (list []alike) {
	for i := range items {
		way := documents[i].Way
		n := slices.IndexFunc(list, func(a alike) bool { return a.way == way })
		if n < 0 {
			n, list = len(list), append(list, alike{way: way})
		}
		list[n].at, list[n].items = append(list[n].at, i), append(list[n].items, items[i])
	}
	return list
}

// wrongWay returns the fault of a way whose parameters are refused for each of its documents.
func (r *signRun) wrongWay(way int) error {
	var first *fault.Error
	for i := range r.run.Documents {
		switch d := &r.run.Documents[i]; {
		case d.Way != way:
		case d.Fault == nil || d.Fault.Code != fault.InvalidSignatureParams:
			return nil
		case first == nil:
			first = d.Fault
		}
	}
	if first == nil {
		return nil
	}
	return ofWay(len(r.plan.Ways), firstOf(r.run.Documents, way), first)
}

// Way is how documents are signed.
type Way struct {
	Type   string
	Params map[string]string // without OriginalDocument
}

// ways returns the different ways of an order, in the order of their first documents, and the index of the
// way of each document.
func (s *Operations) ways(o *OperationOrder) (list []Way, of []int, err error) {
	of = make([]int, len(o.Inputs))
	if len(o.Ways) == 0 {
		return []Way{{o.Type, o.Params}}, of, nil
	}
	if o.Type != "" || len(o.Params) > 0 || o.Template != "" {
		return nil, nil, errors.New("signing: an order with ways has a type, parameters or a template beside them")
	}
	at := make([]int, len(o.Ways)) // in list, after the first document of the way
	for i := range at {
		at[i] = -1
	}
	for i := range o.Inputs {
		from := o.Inputs[i].Way
		if from < 0 || from >= len(o.Ways) {
			return nil, nil, fmt.Errorf("signing: a document with way %d of %d", from, len(o.Ways))
		}
		if at[from] < 0 {
			w := &o.Ways[from]
			at[from] = slices.IndexFunc(list, func(other Way) bool {
				return s.Signer.typeName(w.Type) == s.Signer.typeName(other.Type) && maps.Equal(w.Params, other.Params)
			})
			if at[from] < 0 {
				at[from], list = len(list), append(list, *w)
			}
			if len(list) > what.MaxWays {
				return nil, nil, fault.Newf(fault.InvalidSignatureParams, "the documents are signed in more than %d ways: send fewer types and parameters in one request", what.MaxWays)
			}
		}
		of[i] = at[from]
	}
	return list, of, nil
}
