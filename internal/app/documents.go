package app

import (
	"context"
	"crypto/rand"
	"time"

	"tamga/internal/adapter/blob"
	"tamga/internal/adapter/store"
	stored "tamga/internal/domain/document"
	"tamga/internal/domain/fault"
	"tamga/internal/web/rest"
	"tamga/pki/suite"
)

// Place is where document bytes are kept, and how.
func (h *Base) Place(ctx context.Context) (blob.Options, error) {
	o := blob.Options{Ring: h.ring, Plain: h.Config.Documents.Plain}
	var err error
	if h.Config.Bucket.Endpoint != "" {
		o.Place, err = h.bucket(ctx)
	} else {
		o.Place, err = blob.NewDir(h.Config.Path(h.Config.BlobDir))
	}
	return o, err
}

// Documents is the document store.
func (h *Base) Documents(place blob.Options) *stored.Service {
	return &stored.Service{
		Store: store.Documents{DB: h.DB}, Uploads: store.Documents{DB: h.DB}, Bytes: blob.NewDocuments(place), Digest: h.documentDigest,
		Now: time.Now, Rand: rand.Reader, Rules: h.Config.Documents.Rules(),
	}
}

// documentDigest hashes documents the way their owner will most likely sign them: as
// the default certificate does, and by GOST R 34.11-2012 of 256 bits without one.
func (h *Base) documentDigest(ctx context.Context, userID string) (stored.Digest, error) {
	hash := suite.Streebog256
	c, err := h.Keys.Resolve(ctx, userID, "")
	switch {
	case err == nil:
		hash = c.X509.Suite.Hash
	case !fault.Is(err, fault.InvalidCertificate):
		return stored.Digest{}, err
	}
	return stored.Digest{Name: hash.Name, New: hash.New}, nil
}

// documentsGate is the gate of the document store, with its number of documents.
func documentsGate(gate *rest.Gate) *rest.Gate {
	g := *gate
	g.Limits.Documents = stored.Many
	return &g
}
