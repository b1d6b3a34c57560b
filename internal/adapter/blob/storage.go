// SPDX-License-Identifier: Apache-2.0

package blob

import (
	"context"

	"tamga/internal/domain/document"
	"tamga/internal/domain/vault"
)

// Storage keeps objects under names: a [Dir] or a [Bucket]. Names have letters, digits, dots and dashes,
// and at most one folder.
type Storage interface {
	// create begins an object. It cannot be opened before its Commit.
	create(ctx context.Context, name string) (document.Writer, error)
	// open opens an object. The error wraps fs.ErrNotExist if there is no such object.
	open(ctx context.Context, name string) (document.Object, error)
	// remove deletes an object and the remains of an unfinished create.
	remove(ctx context.Context, name string) error
	// sweep removes the objects directly below folder, finished or not, for whose names
	// gone returns true. folder is "" or ends with a slash.
	sweep(ctx context.Context, folder string, gone func(name string) bool) error
	// Ready returns an error if objects cannot be written or read now.
	Ready(ctx context.Context) error
}

// sealedEnd is the end of the names of sealed objects. The form of an object is part of its name, so a
// plain object in place of a sealed one does not open.
const sealedEnd = ".sealed"

// vessel keeps objects in a Storage, sealed or plain. The name of an object determines its form.
type vessel struct {
	storage Storage
	seals   sealer
	plain   bool // new objects are not sealed
}

// named returns the full name of a new object.
func (v *vessel) named(name string) string {
	if v.plain {
		return name
	}
	return name + sealedEnd
}

func (v *vessel) create(ctx context.Context, name string) (document.Writer, error) {
	w, err := v.storage.create(ctx, name)
	if err != nil || !isSealed(name) {
		return w, err
	}
	sealed, err := v.seals.writer(w, name)
	if err != nil {
		w.Abort()
		return nil, err
	}
	return sealed, nil
}

func (v *vessel) open(ctx context.Context, name string) (document.Object, error) {
	o, err := v.storage.open(ctx, name)
	if err != nil || !isSealed(name) {
		return o, err
	}
	opened, err := v.seals.open(ctx, o, name)
	if err != nil {
		o.Close()
		return nil, err
	}
	return opened, nil
}

// Options are the storage and the form of objects.
type Options struct {
	Storage Storage
	Ring    Sealer // opens sealed objects, and seals new ones
	Keys    Keys   // of objects whose keys were sealed anew; optional
	Plain   bool   // new objects are not sealed
}

func (o Options) vessel() vessel { return vessel{o.Storage, sealer{o.Ring, o.Keys}, o.Plain} }

// Documents keeps the bytes of stored documents. It implements [document.Bytes].
type Documents struct{ vessel }

var _ document.Bytes = (*Documents)(nil)

// documentsFolder is where the bytes of stored documents are.
const documentsFolder = "documents/"

// NewDocuments returns the bytes of stored documents. Their names begin with documents/.
func NewDocuments(o Options) *Documents { return &Documents{o.vessel()} }

// Name implements [document.Bytes].
func (d *Documents) Name(id string) string { return d.named(documentsFolder + id) }

// Create implements [document.Bytes].
func (d *Documents) Create(ctx context.Context, name string) (document.Writer, error) {
	return d.create(ctx, name)
}

// Open implements [document.Bytes].
func (d *Documents) Open(ctx context.Context, name string) (document.Object, error) {
	return d.open(ctx, name)
}

// SealKey returns the key of a sealed document under the active master key, for [Keys].
func (d *Documents) SealKey(ctx context.Context, name string, reseal func(p vault.Place, sealed []byte) ([]byte, error)) ([]byte, error) {
	o, err := d.storage.open(ctx, name)
	if err != nil {
		return nil, err
	}
	defer o.Close()
	_, sealed, err := readHead(o)
	if err != nil {
		return nil, err
	}
	return reseal(keyPlace(name), sealed)
}

// Remove implements [document.Bytes].
func (d *Documents) Remove(ctx context.Context, name string) error {
	return d.storage.remove(ctx, name)
}
