// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"crypto/rand"

	"tamga/internal/adapter/blob"
	"tamga/internal/adapter/store"
	stored "tamga/internal/domain/document"
	"tamga/internal/domain/fault"
	"tamga/internal/web/rest"
	"tamga/pki/suite"
)

// Storage returns where document bytes are stored, and how: a bucket or a directory, encrypted
// or plain.
func (b *Base) Storage(ctx context.Context) (blob.Options, error) {
	o := blob.Options{Ring: b.ring, Keys: store.MasterKeys{DB: b.DB}, Plain: b.Config.Documents.Plain, InRow: int64(b.Config.Documents.InDatabase)}
	var err error
	if b.Config.Bucket.Endpoint != "" {
		o.Storage, err = b.bucket(ctx)
	} else {
		o.Storage, err = blob.NewDir(b.Config.Path(b.Config.BlobDir))
	}
	return o, err
}

// Documents returns the document store.
func (b *Base) Documents(storage blob.Options) *stored.Service {
	return &stored.Service{
		Store: store.Documents{DB: b.DB}, Uploads: store.Documents{DB: b.DB}, Retention: store.Documents{DB: b.DB}, Bytes: blob.NewDocuments(storage), Digest: b.documentDigest,
		Held: store.Backups{DB: b.DB}.Held,
		Now:  b.DB.Now, Rand: rand.Reader, Rules: b.Config.Documents.Rules(),
	}
}

// documentDigest returns the hash that signatures of a user most likely need: the one of the
// default certificate, or GOST R 34.11-2012 of 256 bits without one.
func (b *Base) documentDigest(ctx context.Context, userID string) (stored.Digest, error) {
	hash := suite.Streebog256
	c, err := b.Keys.Resolve(ctx, userID, "")
	switch {
	case err == nil:
		hash = c.X509.Suite.Hash
	case !fault.Is(err, fault.InvalidCertificate):
		return stored.Digest{}, err
	}
	return stored.Digest{Name: hash.Name, New: hash.New}, nil
}

// documentsGate returns the gate of the document store, which has its own limit of documents
// per request.
func documentsGate(gate *rest.Gate) *rest.Gate {
	g := *gate
	g.Limits.Documents = stored.Many
	return &g
}
