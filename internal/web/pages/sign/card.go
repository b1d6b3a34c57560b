// SPDX-License-Identifier: Apache-2.0

package sign

import (
	"context"
	"slices"
	"strconv"

	"tamga/internal/domain/fault"
	"tamga/internal/domain/signing"
	"tamga/internal/web/pages/view"
	"tamga/internal/web/rest"
)

// cardOfUpload answers the card of a document of an upload, with all its signatures. at is the place of the document, or of
// one of its signatures.
func (a *API) cardOfUpload(ctx context.Context, files []sent, list []*report, at, password string) (rest.File, error) {
	i, err := strconv.Atoi(at)
	if err != nil {
		i = -1
	}
	n := slices.IndexFunc(list, func(r *report) bool { return r.At == i })
	if n < 0 {
		return rest.File{}, fault.New(fault.InvalidParameters, "choose the signed file again")
	}
	document := list[n].of()
	order := &signing.CardOrder{Password: password}
	order.Of(files[document].name, files[document].content)
	slices.SortStableFunc(list, func(x, y *report) int { return x.At - y.At })
	for _, r := range list {
		if r.document == document && r.At != document {
			order.Add(files[r.At].name, files[r.At].content)
		}
	}
	return a.card(ctx, order)
}

// card makes a card. A report is stored where the reader may store one: the code on the card leads to it.
func (a *API) card(ctx context.Context, order *signing.CardOrder) (rest.File, error) {
	w := view.VisitorOf(ctx).Words
	order.Language = w.Language
	content, err := a.Cards.Card(ctx, view.CallerOf(ctx), order, a.keeps(ctx))
	return rest.File{Content: content, Name: rest.FileName(order.Document.Name) + " (" + w.Text("card.suffix") + ").pdf", Type: "application/pdf"}, err
}

// cardHint returns the key of what a page says about cards, "" if none are made.
func (a *API) cardHint(ctx context.Context) string {
	switch {
	case a.Cards == nil:
		return ""
	case a.keeps(ctx):
		return "card.hint_report"
	}
	return "card.hint"
}

// cardOfStored answers the card of a stored result, with its original if the signature is in a file of its own.
func (a *API) cardOfStored(ctx context.Context, r struct{ Body rest.Form }) (rest.File, error) {
	if a.Cards == nil {
		return rest.File{}, fault.New(fault.WrongOperation, "this installation makes no cards")
	}
	result, info, err := view.CopyOf(ctx, a.Documents, a.Verifier, r.Body.Get("ref"), nil)
	if err != nil {
		return rest.File{}, err
	}
	rest.Afterwards(ctx, result)
	rest.Concerning(ctx, "document "+info.ID)
	order := &signing.CardOrder{}
	if info.Parent == "" || !isSignature(info.Name) {
		order.Of(resultName(view.VisitorOf(ctx).Words, info.Name, info.Name), result)
		return a.card(ctx, order)
	}
	original, from, err := view.CopyOf(ctx, a.Documents, a.Verifier, info.Parent, result)
	if fault.Is(err, fault.NotFound) {
		return rest.File{}, fault.New(fault.NotFound, "the document of this signature is not stored any more: verify both files together, and make the card there")
	}
	if err != nil {
		return rest.File{}, err
	}
	rest.Afterwards(ctx, original)
	order.Of(from.Name, original)
	order.Add(info.Name, result)
	return a.card(ctx, order)
}
