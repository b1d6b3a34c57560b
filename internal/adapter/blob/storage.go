// SPDX-License-Identifier: Apache-2.0

package blob

import (
	"bytes"
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

// pack returns the stored form of an object that is not kept in the storage.
func (v *vessel) pack(name string, content []byte) ([]byte, error) {
	to := &packing{}
	to.Grow(HeadSize + len(content) + tagSize)
	var w document.Writer = to
	if isSealed(name) {
		sealed, err := v.seals.writer(to, name)
		if err != nil {
			return nil, err
		}
		defer sealed.Abort()
		w = sealed
	}
	if _, err := w.Write(content); err != nil {
		return nil, err
	}
	if err := w.Commit(); err != nil {
		return nil, err
	}
	return to.Bytes(), nil
}

// unpack opens an object by its stored form.
func (v *vessel) unpack(ctx context.Context, name string, stored []byte) (document.Object, error) {
	o := packed{bytes.NewReader(stored)}
	if !isSealed(name) {
		return o, nil
	}
	return v.seals.open(ctx, o, name)
}

// packing is a [document.Writer] of the stored form of an object in memory.
type packing struct{ bytes.Buffer }

func (*packing) Commit() error { return nil }
func (*packing) Abort()        {}

// packed is the stored form of an object in memory, a [document.Object].
type packed struct{ *bytes.Reader }

func (packed) Close() error { return nil }

// Options are the storage and the form of objects.
type Options struct {
	Storage Storage
	Ring    Sealer // opens sealed objects, and seals new ones
	Keys    Keys   // of objects whose keys were sealed anew; optional
	Plain   bool   // new objects are not sealed
	InRow   int64  // size in bytes up to which the content is stored in a row of the database instead; 0: none
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

// SealedName implements [document.Bytes].
func (d *Documents) SealedName(id string) string { return documentsFolder + id + sealedEnd }

// IsSealed implements [document.Bytes].
func (d *Documents) IsSealed(name string) bool { return isSealed(name) }

// Create implements [document.Bytes].
func (d *Documents) Create(ctx context.Context, name string) (document.Writer, error) {
	return d.create(ctx, name)
}

// Open implements [document.Bytes].
func (d *Documents) Open(ctx context.Context, name string) (document.Object, error) {
	return d.open(ctx, name)
}

// Pack implements [document.Bytes].
func (d *Documents) Pack(name string, content []byte) ([]byte, error) { return d.pack(name, content) }

// Unpack implements [document.Bytes].
func (d *Documents) Unpack(ctx context.Context, name string, stored []byte) (document.Object, error) {
	return d.unpack(ctx, name, stored)
}

// SealKey returns the key of a sealed document under the active master key, for [Keys]. stored is its content
// if the row has it, or the beginning of it, otherwise nil.
func (d *Documents) SealKey(ctx context.Context, name string, stored []byte, reseal func(p vault.Place, sealed []byte) ([]byte, error)) ([]byte, error) {
	var o document.Object = packed{bytes.NewReader(stored)}
	if len(stored) == 0 {
		var err error
		if o, err = d.storage.open(ctx, name); err != nil {
			return nil, err
		}
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
