package blob

import (
	"context"

	"tamga/internal/domain/document"
)

// Place keeps objects under names: a [Dir] or a [Bucket]. Names are letters, digits,
// dots and dashes, in at most one folder.
type Place interface {
	// create begins an object, which nobody can open before its Commit.
	create(ctx context.Context, name string) (document.Writer, error)
	// open opens an object; the error wraps fs.ErrNotExist when there is none.
	open(ctx context.Context, name string) (document.Object, error)
	// remove deletes an object and what an unfinished create of it left behind.
	remove(ctx context.Context, name string) error
	// sweep removes the objects, finished or not, right below folder ("" or one that
	// ends with a slash) whose names gone accepts.
	sweep(ctx context.Context, folder string, gone func(name string) bool) error
	// Ready reports why objects cannot be kept or read now, nil when they can.
	Ready(ctx context.Context) error
}

// sealedEnd ends the names of sealed objects: the form of an object is part of its
// name, so that a plain one put in the place of a sealed one does not open.
const sealedEnd = ".sealed"

// vessel keeps objects in a place, sealed or plain. What it opens is told by the name.
type vessel struct {
	place Place
	seals sealer
	plain bool // what is new is kept as it is
}

// named completes the name of a new object.
func (v *vessel) named(name string) string {
	if v.plain {
		return name
	}
	return name + sealedEnd
}

func (v *vessel) create(ctx context.Context, name string) (document.Writer, error) {
	w, err := v.place.create(ctx, name)
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
	o, err := v.place.open(ctx, name)
	if err != nil || !isSealed(name) {
		return o, err
	}
	opened, err := v.seals.open(o, name)
	if err != nil {
		o.Close()
		return nil, err
	}
	return opened, nil
}

// Options say how objects are kept.
type Options struct {
	Place Place
	Ring  Sealer // opens what is sealed, and seals what is new
	Plain bool   // new objects are not sealed
}

func (o Options) vessel() vessel { return vessel{o.Place, sealer{o.Ring}, o.Plain} }

// Documents keeps the bytes of stored documents. It implements [document.Bytes].
type Documents struct{ vessel }

var _ document.Bytes = (*Documents)(nil)

// NewDocuments returns the bytes of stored documents, which lie below documents/.
func NewDocuments(o Options) *Documents { return &Documents{o.vessel()} }

// Name implements [document.Bytes].
func (d *Documents) Name(id string) string { return d.named("documents/" + id) }

// Create implements [document.Bytes].
func (d *Documents) Create(ctx context.Context, name string) (document.Writer, error) {
	return d.create(ctx, name)
}

// Open implements [document.Bytes].
func (d *Documents) Open(ctx context.Context, name string) (document.Object, error) {
	return d.open(ctx, name)
}

// Remove implements [document.Bytes].
func (d *Documents) Remove(ctx context.Context, name string) error {
	return d.place.remove(ctx, name)
}
