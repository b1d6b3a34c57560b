// SPDX-License-Identifier: Apache-2.0

package store_test

import (
	"bytes"
	"context"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"tamga/internal/adapter/store/storetest"
	"tamga/internal/domain/audit"
	"tamga/internal/domain/document"
	"tamga/internal/domain/operation"
	"tamga/internal/domain/signing"
	"tamga/pki/suite"
	"tamga/sig"
	"tamga/sig/cades"
)

// readStore counts the documents whose content is read to be signed, and can open them with other
// bytes than were stored.
type readStore struct {
	operation.Documents
	instead string // replaces the content of each document; "": nothing does
	read    map[string]bool
}

type readBlob struct {
	signing.Blob
	content io.ReaderAt
	note    func()
}

func (b readBlob) ReadAt(p []byte, off int64) (int, error) {
	b.note()
	return b.content.ReadAt(p, off)
}

func (s *readStore) Find(ctx context.Context, who audit.Principal, ids []string) (operation.Found, error) {
	found, err := s.Documents.Find(ctx, who, ids)
	return readFound{s, found}, err
}

type readFound struct {
	*readStore
	found operation.Found
}

func (s readFound) Open(ctx context.Context, id string) (signing.Blob, document.Info, error) {
	b, info, err := s.found.Open(ctx, id)
	if err != nil {
		return b, info, err
	}
	content := io.ReaderAt(b)
	if s.instead != "" {
		content = strings.NewReader(s.instead)
	}
	return readBlob{b, content, func() { s.read[id] = true }}, info, nil
}

// receive stores documents as one request.
func (d *desk) receive(texts ...string) (kept []document.New, ids []string) {
	d.t.Helper()
	first, err := d.documents.NewIntake(d.t.Context(), d.who)
	d.must(err)
	for i, text := range texts {
		in := first
		if i > 0 {
			in, err = first.Sibling()
			d.must(err)
		}
		_, err = in.Write([]byte(text))
		d.must(err)
		d.must(in.Finish())
		kept = append(kept, document.New{Content: in, Description: document.Description{Name: "received"}})
	}
	infos, err := d.documents.Keep(d.t.Context(), d.who, kept)
	d.must(err)
	for _, i := range infos {
		ids = append(ids, i.ID)
	}
	return kept, ids
}

// content returns the bytes of a stored document.
func (d *desk) content(id string) []byte {
	d.t.Helper()
	stored, err := d.documents.Open(d.t.Context(), d.who, id)
	d.must(err)
	defer stored.Close()
	var b bytes.Buffer
	_, err = stored.WriteTo(&b)
	d.must(err)
	return b.Bytes()
}

// covers reports whether all signatures of a message over a document are mathematically right.
func (d *desk) covers(message []byte, original string) bool {
	d.t.Helper()
	c := &sig.Check{Document: bytes.NewReader(message), Roots: d.keys.signer.Chain, At: d.clock()}
	if original != "" {
		c.Original = strings.NewReader(original)
	}
	r, err := cades.New().Verify(d.t.Context(), c)
	d.must(err)
	return r.Verdict() != sig.Failed
}

// TestReceivedDocuments signs documents that the same request has stored. A document is not
// read for its digest if the intake has computed this digest from exactly its bytes. In every
// other case the stored bytes are hashed.
func TestReceivedDocuments(t *testing.T) {
	const text, other, changed = "a document that was received", "another document", "A DOCUMENT THAT WAS RECEIVED"
	detached := map[string]string{"IsDetached": "True", "CADESType": "BES"}
	attached := map[string]string{"IsDetached": "False", "CADESType": "BES"}
	for _, c := range []struct {
		name    string
		hash    *suite.Hash // of the intake; the certificate signs SHA-256
		params  map[string]string
		hand    func(kept, others []document.New) []document.New
		instead string
		read    bool
		covers  string // the document that the signature is over; "": that in the message
		invalid bool
	}{
		{name: "received", hash: suite.SHA256, params: detached, covers: text, hand: func(kept, _ []document.New) []document.New { return kept }},
		{name: "stored before", hash: suite.SHA256, params: detached, covers: text, read: true},
		{name: "another one received", hash: suite.SHA256, params: detached, covers: text, read: true, hand: func(_, others []document.New) []document.New { return others }},
		{name: "received among others", hash: suite.SHA256, params: detached, covers: text, hand: func(kept, others []document.New) []document.New { return append(others, kept...) }},
		{name: "hashed for another kind of key", hash: suite.Streebog256, params: detached, covers: text, read: true, hand: func(kept, _ []document.New) []document.New { return kept }},
		{name: "attached", hash: suite.SHA256, params: attached, read: true, hand: func(kept, _ []document.New) []document.New { return kept }}, // read to be copied
		// Nothing in the program changes a document. Bytes that were changed in the storage are
		// never signed: the signature is over what was received.
		{name: "changed in the storage", hash: suite.SHA256, params: detached, instead: changed, covers: text, hand: func(kept, _ []document.New) []document.New { return kept }},
		{name: "changed in the storage and attached", hash: suite.SHA256, params: attached, instead: changed, read: true, invalid: true, hand: func(kept, _ []document.New) []document.New { return kept }},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := newDesk(t, storetest.SQLiteFile(t, filepath.Join(t.TempDir(), "tamga.db")))
			d.documents.Digest = func(context.Context, string) (document.Digest, error) {
				return document.Digest{Name: c.hash.Name, New: c.hash.New}, nil
			}
			kept, ids := d.receive(text)
			others, _ := d.receive(other, changed)
			o := d.live()
			documents := &readStore{Documents: d.docs.Documents, instead: c.instead, read: map[string]bool{}}
			d.docs.Documents = documents
			o.Use(d.docs)
			order := &signing.OperationOrder{Type: "CAdES", Params: c.params, PIN: "pin", Inputs: []signing.Input{{RefID: ids[0]}}}
			if c.hand != nil {
				order.Received = c.hand(kept, others)
			}
			op, err := o.Start(t.Context(), d.who, order)
			d.must(err)
			defer op.Close()
			if documents.read[ids[0]] != c.read {
				t.Errorf("the stored document is read: %v", !c.read)
			}
			message := d.content(op.Documents[0].RefID)
			if got := d.covers(message, c.covers); got == c.invalid {
				t.Errorf("the signature is valid: %v", got)
			}
			if c.covers != "" && d.covers(message, changed) {
				t.Error("the signature is over bytes that were not received")
			}
		})
	}
}

// TestReceivedOriginal adds a signature to a detached one. The document beside the message is not
// read if the same request has received it.
func TestReceivedOriginal(t *testing.T) {
	const text = "a document that two people sign"
	d := newDesk(t, storetest.SQLiteFile(t, filepath.Join(t.TempDir(), "tamga.db")))
	d.documents.Digest = func(context.Context, string) (document.Digest, error) {
		return document.Digest{Name: suite.SHA256.Name, New: suite.SHA256.New}, nil
	}
	o := d.live()
	first, err := o.Start(t.Context(), d.who, &signing.OperationOrder{
		Type: "CAdES", Params: map[string]string{"IsDetached": "True", "CADESType": "BES"}, PIN: "pin", Inputs: []signing.Input{{RefID: d.stored(text)}},
	})
	d.must(err)
	defer first.Close()
	kept, ids := d.receive(string(d.content(first.Documents[0].RefID)), text)
	documents := &readStore{Documents: d.docs.Documents, read: map[string]bool{}}
	d.docs.Documents = documents
	o.Use(d.docs)
	second, err := o.Start(t.Context(), d.who, &signing.OperationOrder{
		Type: "CAdES", Params: map[string]string{"CmsSignatureType": "Cosign", "CADESType": "BES"}, PIN: "pin", Received: kept,
		Inputs: []signing.Input{{RefID: ids[0], RelatedRefID: ids[1]}},
	})
	d.must(err)
	defer second.Close()
	if documents.read[ids[1]] {
		t.Error("the document beside the message is read")
	}
	if message := d.content(second.Documents[0].RefID); !d.covers(message, text) {
		t.Error("the signatures are not over the document")
	}
}
