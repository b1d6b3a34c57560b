// SPDX-License-Identifier: Apache-2.0

package signapi

import (
	"context"
	"encoding/base64"
	"strings"

	"tamga/internal/domain/audit"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/signing"
	"tamga/internal/web/rest"
	"tamga/internal/web/rest/limit"
)

// preSignRequest is PreSignArgs of the specification.
type preSignRequest struct {
	Body struct {
		Document        rest.Blob
		Name            fileName // in a container
		Files           []containedFile
		RawCertificate  rest.Blob
		SignatureType   rest.Text
		SignatureParams map[string]rest.Blob
	}
}

// preSignResponse is DSSPreSignResponse. One of the existing clients reads the name of the
// object only as a server of the family once wrote it, with the Cyrillic letter U+0421 in
// front.
type preSignResponse struct {
	HashValue             []byte
	CacheObjectID         string `json:"CacheObjectId"`
	CacheObjectIDCyrillic string `json:"\u0421acheObjectId" api:"-"`
}

func (a *API) preSign(ctx context.Context, docs *documents, r preSignRequest) (preSignResponse, error) {
	body := &r.Body
	var none preSignResponse
	if body.Document.Empty() && len(body.Files) == 0 { // see sign
		return none, fault.New(fault.ContentRequired, "Document is missing or empty: send the document, hash or message as Base64")
	}
	order := &signing.PrepareOrder{Type: string(body.SignatureType), From: limit.Network(rest.Remote(ctx)), Snapshot: snapshotOf(ctx)}
	var err error
	if order.Certificate, err = rawCertificate(body.RawCertificate); err != nil {
		return none, err
	}
	var content rest.Source
	if !body.Document.Empty() {
		content = body.Document
	}
	if order.Document, order.Name, order.Files, err = openFiles(docs, content, body.Name, body.Files); err != nil {
		return none, err
	}
	if order.Params, order.Original, err = readParameters(docs, a.deps.Signer, "SignatureParams", body.SignatureParams); err != nil {
		return none, err
	}
	var answer preSignResponse
	order.Keep = func(ctx context.Context, p *signing.Prepared) (audit.Beside, error) {
		answer = preSignResponse{p.Hash, p.ID, p.ID}
		rest.Concerning(ctx, preparedObject(p.ID))
		return rest.KeepEntry(ctx, answer)
	}
	if _, err := a.deps.Signer.Prepare(ctx, rest.Caller(ctx), order); err != nil {
		return none, err
	}
	return answer, nil
}

// postSignRequest is PostSignArgs, with the fields that existing clients repeat from the
// first step.
type postSignRequest struct {
	Body struct {
		CacheObjectID         rest.Text `json:"CacheObjectId"`
		CacheObjectIDCyrillic rest.Text `json:"\u0421acheObjectId" api:"-"`
		SignatureType         rest.Text
		SignatureValue        rest.Blob
		SignedHashValue       rest.Blob
		SignatureParams       map[string]rest.Blob
	}
}

func (a *API) postSign(ctx context.Context, docs *documents, r postSignRequest) (rest.Stream, error) {
	body := &r.Body
	id := string(body.CacheObjectID)
	switch other := string(body.CacheObjectIDCyrillic); {
	case id == "":
		id = other
	case other != "" && other != id:
		return rest.Stream{}, fault.New(fault.InvalidParameters, "CacheObjectId is given twice, with different values")
	}
	rest.Concerning(ctx, preparedObject(id))
	switch {
	case id == "":
		return rest.Stream{}, fault.New(fault.InvalidObjectState, "CacheObjectId is missing or empty: send what presign answered")
	case body.SignatureValue.Empty():
		return rest.Stream{}, fault.New(fault.InvalidSignatureParams, "SignatureValue is missing or empty: send the signature over HashValue as Base64")
	}
	order := &signing.CompleteOrder{ID: id, Type: string(body.SignatureType)}
	var err error
	if order.Value, err = decoded("SignatureValue", body.SignatureValue, fault.InvalidSignatureParams); err != nil {
		return rest.Stream{}, err
	}
	if !body.SignedHashValue.Empty() {
		if order.Hash, err = decoded("SignedHashValue", body.SignedHashValue, fault.InvalidSignatureParams); err != nil {
			return rest.Stream{}, err
		}
	}
	if order.Params, order.Original, err = readParameters(docs, a.deps.Signer, "SignatureParams", body.SignatureParams); err != nil {
		return rest.Stream{}, err
	}
	order.Keep = func(ctx context.Context, r signing.Result) (audit.Beside, error) {
		return rest.KeepEntry(ctx, rest.Stream{Content: r})
	}
	completed, err := a.deps.Signer.Complete(ctx, rest.Caller(ctx), order)
	if err != nil {
		return rest.Stream{}, err
	}
	rest.Afterwards(ctx, completed)
	return rest.Stream{Content: completed}, nil
}

// rawCertificate reads a certificate in Base64 or, from some clients, in PEM.
func rawCertificate(b rest.Blob) ([]byte, error) {
	if text, err := b.Text(); err == nil && strings.HasPrefix(strings.TrimSpace(text), "-----BEGIN ") {
		return []byte(text), nil
	}
	return decoded("RawCertificate", b, fault.InvalidCertificate)
}

// decoded reads a short value in Base64, with or without line breaks.
func decoded(name string, b rest.Blob, code string) ([]byte, error) {
	text, err := b.Text()
	if err != nil {
		return nil, recoded(err, code)
	}
	value, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(text), ""))
	if err != nil {
		return nil, fault.Newf(code, "%s is not Base64", name)
	}
	return value, nil
}

// preparedObject returns the prepared object for an audit entry. A client may send any
// text, so only a text that can be a name is written.
func preparedObject(id string) string {
	if len(id) != 36 || strings.Trim(id, "0123456789abcdef-") != "" {
		return ""
	}
	return "prepared object " + id
}

// enhanceRequest is EnhanceSignatureArgs. The specification does not show the name of the
// field with the signature, so the first of six fields that is not empty counts.
type enhanceRequest struct {
	Body struct {
		Signature       rest.Blob
		SignatureValue  rest.Blob
		SignedDocument  rest.Blob
		SignedMessage   rest.Blob
		Document        rest.Blob
		Content         rest.Blob
		SignatureType   rest.Text
		SignatureParams map[string]rest.Blob
	}
}

func (a *API) enhance(ctx context.Context, docs *documents, r enhanceRequest) (rest.Stream, error) {
	b := &r.Body
	for _, message := range []rest.Blob{b.Signature, b.SignatureValue, b.SignedDocument, b.SignedMessage, b.Document, b.Content} {
		if !message.Empty() {
			return a.enhanceOne(ctx, docs, message, b.SignatureType, "SignatureParams", b.SignatureParams)
		}
	}
	return rest.Stream{}, fault.New(fault.ContentRequired, "Signature is missing or empty: send the signed message as Base64")
}

// enhanceSignatureRequest is enhanceRequest in the form of a signing request.
type enhanceSignatureRequest struct {
	Body struct {
		Content   rest.Blob
		Signature *signature
	}
}

func (a *API) enhanceSignature(ctx context.Context, docs *documents, r enhanceSignatureRequest) (rest.Stream, error) {
	switch {
	case r.Body.Content.Empty():
		return rest.Stream{}, fault.New(fault.ContentRequired, "Content is missing or empty: send the signed message as Base64")
	case r.Body.Signature == nil:
		return rest.Stream{}, fault.New(fault.InvalidSignatureParams, "Signature is missing: say at least its Type")
	}
	s := r.Body.Signature
	return a.enhanceOne(ctx, docs, r.Body.Content, s.Type, "Signature.Parameters", s.Parameters)
}

func (a *API) enhanceOne(ctx context.Context, docs *documents, message rest.Blob, signatureType rest.Text, where string, parameters map[string]rest.Blob) (rest.Stream, error) {
	order := &signing.EnhanceOrder{Type: string(signatureType), Snapshot: snapshotOf(ctx)}
	var err error
	if order.Document, err = docs.Open(message); err != nil {
		return rest.Stream{}, err
	}
	if order.Params, order.Original, err = readParameters(docs, a.deps.Signer, where, parameters); err != nil {
		return rest.Stream{}, err
	}
	result, err := a.deps.Signer.Enhance(ctx, rest.Caller(ctx), order)
	if err != nil {
		return rest.Stream{}, err
	}
	audit.Changed(ctx, "") // also for callers without a token
	return rest.Stream{Content: result}, nil
}
