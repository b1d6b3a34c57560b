// SPDX-License-Identifier: Apache-2.0

package signapi

import (
	"context"
	"strings"

	"tamga/internal/domain/fault"
	"tamga/internal/web/rest"
)

// hashRequest asks for the hash of a document. With the header the document is the body,
// without it Content.
type hashRequest struct {
	Raw  rest.Raw `header:"CPDSS-OPERATION-PARAMS"`
	Body struct {
		Content rest.Blob
		Hash    struct{ Parameters map[string]rest.Text }
	}
}

// hash answers the bytes of the hash value in their standard order.
func (a *API) hash(ctx context.Context, docs *documents, r hashRequest) ([]byte, error) {
	var content rest.Source = r.Raw
	if !r.Raw.Present() {
		if r.Body.Content.Empty() {
			return nil, fault.New(fault.ContentRequired, "the document is missing: send it as the body, with the header CPDSS-OPERATION-PARAMS, or as Content")
		}
		content = r.Body.Content
	}
	in, err := docs.Open(content)
	if err != nil {
		return nil, err
	}
	algorithm := ""
	for key, value := range r.Body.Hash.Parameters {
		if strings.EqualFold(strings.TrimSpace(key), "HashAlgorithm") {
			algorithm = string(value)
		}
	}
	return a.deps.Signer.Hash(ctx, in, algorithm)
}
