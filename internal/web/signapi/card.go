// SPDX-License-Identifier: Apache-2.0

package signapi

import (
	"context"
	_ "embed" // for CardDocs
	"fmt"

	"tamga/internal/domain/audit"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/signing"
	"tamga/internal/web/rest"
)

// Cards makes cards of signed documents. With a report, one is stored for the caller, and a code on the card leads to it.
type Cards interface {
	Card(ctx context.Context, who audit.Principal, o *signing.CardOrder, withReport bool) (rest.Content, error)
}

// cardFile is a file of a card.
type cardFile struct {
	Name    rest.Text
	Content rest.Document
}

type cardRequest struct {
	Body struct {
		Document   cardFile
		Signatures []cardFile
		Language   rest.Text
		// PDFPassword opens an encrypted PDF, to verify the signatures inside of it.
		PDFPassword rest.Text
		Report      rest.Text `api:"boolean"`
	}
}

// CardDocs describes the routes of cards, as Docs does.
//
//go:embed cards.txt
var CardDocs string

// CardRoutes returns the routes of cards, below {base_url}/api; none in an installation that verifies nothing.
func (a *API) CardRoutes() []rest.Route {
	if a.deps.Cards == nil {
		return nil
	}
	return []rest.Route{rest.HandleDocuments("POST /tamga/card", "MakeCard", rest.SignedIn, a.take, a.card).Answering(rest.File{}).Large()}
}

// card answers the card of a signed document as PDF.
func (a *API) card(ctx context.Context, docs *documents, r cardRequest) (rest.File, error) {
	b := &r.Body
	if b.Document.Content.Empty() {
		return rest.File{}, fault.New(fault.ContentRequired, "Document.Content is missing or empty: send the signed document as Base64")
	}
	switch b.Language {
	case "", "ru", "en":
	default:
		return rest.File{}, fault.Newf(fault.InvalidParameters, "Language is %.20q: want ru or en", string(b.Language))
	}
	withReport, ok := rest.Truth(string(b.Report))
	if !ok && b.Report != "" {
		return rest.File{}, fault.New(fault.InvalidParameters, "Report: want true or false")
	}
	order := &signing.CardOrder{Language: string(b.Language), Password: string(b.PDFPassword)}
	document, err := docs.Open(b.Document.Content)
	if err != nil {
		return rest.File{}, err
	}
	order.Of(string(b.Document.Name), document)
	for i, s := range b.Signatures {
		if s.Content.Empty() {
			return rest.File{}, fault.Newf(fault.ContentRequired, "Signatures[%d].Content is missing or empty: send the detached signature as Base64", i)
		}
		content, err := docs.Open(s.Content)
		if err != nil {
			return rest.File{}, err
		}
		name := string(s.Name)
		if name == "" {
			name = fmt.Sprintf("signature%d.sig", i+1)
		}
		order.Add(name, content)
	}
	content, err := a.deps.Cards.Card(ctx, rest.Caller(ctx), order, withReport)
	return rest.File{Content: content, Name: "card.pdf", Type: "application/pdf"}, err
}
