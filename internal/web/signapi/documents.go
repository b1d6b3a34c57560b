// SPDX-License-Identifier: Apache-2.0

package signapi

import (
	"context"
	"encoding/base64"
	"fmt"
	"maps"
	"slices"
	"strings"

	"tamga/internal/domain/fault"
	"tamga/internal/domain/keys"
	"tamga/internal/domain/signing"
	"tamga/internal/web/rest"
)

// signRequest is the signing request of the specification, for one document or many. Empty
// documents are ignored. With the header, the body is the document itself.
type signRequest struct {
	Raw  rest.Raw `header:"CPDSS-OPERATION-PARAMS"`
	Body struct {
		Content   rest.Blob
		Name      fileName // in a container
		Files     []containedFile
		Documents []document
		Signature *signature
	}
}

// document is one item of a batch.
type document struct {
	Content         rest.Document
	Name            fileName // in a container
	OriginalContent rest.Document
}

// containedFile is a document of a container.
type containedFile struct {
	Name    fileName
	Content rest.Document
}

// fileName is the name of a document in a container. Clients send it with other signatures too, in any form, and it
// has no effect there.
type fileName string

// FromValue implements rest.FromValue.
func (n *fileName) FromValue(value any) error {
	text, _ := value.(string)
	*n = fileName(text)
	return nil
}

// openFiles opens the documents of a container. Without Content the first of them takes its place.
func openFiles(docs *documents, content rest.Source, name fileName, files []containedFile) (first *signing.Intake, of string, more []signing.File, err error) {
	if content != nil {
		if first, err = docs.Open(content); err != nil {
			return nil, "", nil, err
		}
	}
	for i := range files {
		f := &files[i]
		if f.Content.Empty() {
			return nil, "", nil, fault.Newf(fault.ContentRequired, "Files[%d].Content is missing or empty: send the document as Base64", i)
		}
		in, err := docs.Open(f.Content)
		if err != nil {
			return nil, "", nil, err
		}
		more = append(more, signing.File{Name: string(f.Name), Content: in})
	}
	if first == nil && len(more) > 0 {
		return more[0].Content, more[0].Name, more[1:], nil
	}
	return first, string(name), more, nil
}

type signature struct {
	Type          rest.Text // a name or a number
	Parameters    map[string]rest.Blob
	CertificateID rest.Text `json:"CertificateId" api:"integer"`
	PinCode       rest.Text
}

// original is the only parameter that is a document.
const original = "OriginalDocument"

// parameterForms describes the parameters of signatures.
type parameterForms interface {
	Parameter(name string) signing.Parameter
}

// sign answers one document as a JSON string and a batch as an object.
func (a *API) sign(ctx context.Context, docs *documents, r signRequest) (any, error) {
	body := &r.Body
	many := len(body.Documents) > 0
	raw := r.Raw.Present()
	if rest.Caller(ctx).Confirmation != "" {
		if many || raw || !body.Content.Empty() || len(body.Files) > 0 {
			return nil, onlyPIN()
		}
		return a.signConfirmed(ctx, body.Signature)
	}
	// Package signing refuses an empty document, whatever form it came in. A missing one is refused
	// here as well, so that this is said before what is wrong with other fields.
	switch {
	case raw && (many || !body.Content.Empty() || len(body.Files) > 0):
		return nil, fault.New(fault.InvalidParameters, "with the header CPDSS-OPERATION-PARAMS the body is the document: leave Content, Files and Documents out of the header")
	case many && len(body.Files) > 0:
		return nil, fault.New(fault.InvalidParameters, "Files and Documents are both given: Files become one container, Documents are signed one by one")
	case many && !body.Content.Empty():
		return nil, fault.New(fault.InvalidParameters, "Content and Documents are both given: send one document as Content, or many as Documents")
	case !many && !raw && body.Content.Empty() && len(body.Files) == 0:
		return nil, fault.New(fault.ContentRequired, "Content is missing or empty: send the document, hash or message as Base64")
	case body.Signature == nil:
		return nil, fault.New(fault.InvalidSignatureParams, "Signature is missing: say at least its Type")
	}
	rest.Concerning(ctx, certificateObject(string(body.Signature.CertificateID)))
	if many {
		return a.signMany(ctx, docs, body.Documents, body.Signature)
	}
	var content rest.Source
	switch {
	case raw:
		content = r.Raw
	case !body.Content.Empty():
		content = body.Content
	}
	return a.signOne(ctx, docs, content, body.Name, body.Files, body.Signature)
}

func (a *API) signOne(ctx context.Context, docs *documents, content rest.Source, name fileName, files []containedFile, s *signature) (any, error) {
	order := &signing.SignOrder{
		Type:        string(s.Type),
		Certificate: string(s.CertificateID),
		PIN:         string(s.PinCode),
		Snapshot:    snapshotOf(ctx),
		Noted:       func(detail string) { rest.Detail(ctx, detail) },
	}
	var err error
	if order.Content, order.Name, order.Files, err = openFiles(docs, content, name, files); err != nil {
		return nil, err
	}
	if order.Params, order.Original, err = readParameters(docs, a.deps.Signer, "Signature.Parameters", s.Parameters); err != nil {
		return nil, err
	}
	result, err := a.deps.Signer.Sign(ctx, rest.Caller(ctx), order)
	if err != nil {
		return nil, err
	}
	return rest.Stream{Content: result}, nil
}

// readParameters splits the parameters of a signature into texts and the original document,
// if there is one. where is the name of the parameters in messages. Clients write keys in
// several letter cases, and one with a space after it. So a key must not occur twice up to
// these differences, because it would be unclear which one counts.
func readParameters(docs *documents, forms parameterForms, where string, parameters map[string]rest.Blob) (texts map[string]string, document *signing.Intake, err error) {
	texts = make(map[string]string, len(parameters))
	seen := make(map[string]bool, len(parameters))
	keys := slices.AppendSeq(make([]string, 0, len(parameters)), maps.Keys(parameters))
	slices.Sort(keys)
	for _, key := range keys {
		value := parameters[key]
		if value.Absent() {
			continue
		}
		name := strings.TrimSpace(key)
		if folded := strings.ToLower(name); seen[folded] {
			return nil, nil, fault.Newf(fault.InvalidSignatureParams, "%s: %.64q is given twice, in different spellings", where, name)
		} else {
			seen[folded] = true
		}
		if strings.EqualFold(name, original) {
			// Some clients send an empty one. It is ignored.
			if value.Empty() {
				continue
			}
			if document, err = docs.Open(value); err != nil {
				return nil, nil, err
			}
			continue
		}
		form := forms.Parameter(name)
		if text, ok := value.Object(); ok && form.Object {
			texts[name] = text
			continue
		}
		if form.Long > 0 {
			if texts[name], err = long(docs, name, value, form.Long); err != nil {
				return nil, nil, err
			}
			continue
		}
		if texts[name], err = value.Text(); err != nil {
			return nil, nil, recoded(err, fault.InvalidSignatureParams)
		}
	}
	return texts, document, nil
}

// long reads a parameter of Base64 that may be longer than other texts, up to most bytes.
func long(docs *documents, name string, value rest.Blob, most int64) (string, error) {
	text, err := value.Text()
	if err == nil {
		return text, nil
	}
	in, err := docs.Open(value)
	if err != nil {
		return "", recoded(err, fault.InvalidSignatureParams)
	}
	if in.Size() > most {
		return "", fault.Newf(fault.InvalidSignatureParams, "%s: has %d bytes, want at most %d", name, in.Size(), most)
	}
	data := make([]byte, in.Size())
	if n, err := in.ReadAt(data, 0); n < len(data) {
		return "", fmt.Errorf("signapi: reading a parameter: %w", err)
	}
	return base64.StdEncoding.EncodeToString(data), nil
}

// recoded gives a fault of package rest the code of the specification for its place.
func recoded(err error, code string) error {
	if f, ok := fault.As(err); ok {
		return fault.New(code, f.Message)
	}
	return err
}

// certificateObject returns the certificate for an audit entry. A client may send any text,
// so only a text that can be a number is written.
func certificateObject(identifier string) string {
	if keys.IsDefault(identifier) {
		return "default certificate"
	}
	identifier = strings.TrimSpace(identifier)
	if len(identifier) > 19 || strings.Trim(identifier, "0123456789") != "" {
		return ""
	}
	return "certificate " + identifier
}
