// SPDX-License-Identifier: Apache-2.0

package store_test

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"tamga/internal/adapter/store/storetest"
	"tamga/internal/domain/audit"
	"tamga/internal/domain/confirm"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/operation"
	"tamga/internal/domain/signing"
)

// besideBlobs calls a function once, before a document is opened.
type besideBlobs struct {
	signing.Blobs
	meanwhile func()
}

func (b *besideBlobs) OpenBlob(ctx context.Context, name string) (signing.Blob, error) {
	if do := b.meanwhile; do != nil {
		b.meanwhile = nil
		do()
	}
	return b.Blobs.OpenBlob(ctx, name)
}

// besideRecords calls a function once, before a record is cancelled.
type besideRecords struct {
	operation.Confirmations
	meanwhile func()
}

func (b *besideRecords) Cancel(ctx context.Context, who audit.Principal, id string) (confirm.Record, error) {
	if do := b.meanwhile; do != nil {
		b.meanwhile = nil
		do()
	}
	return b.Confirmations.Cancel(ctx, who, id)
}

// TestOperationEndsBeside ends operations between the moments in which another call reads their
// state and uses it. The answer is that of the state now, and no loss of documents.
func TestOperationEndsBeside(t *testing.T) {
	t.Parallel()
	d := newDesk(t, storetest.SQLiteFile(t, filepath.Join(t.TempDir(), "tamga.db")))
	ctx := t.Context()
	other := d.live()
	records := &besideRecords{}
	var failed []error
	d.failed = func(err error) { failed = append(failed, err) }
	d.wrapped = func(c operation.Confirmations) operation.Confirmations { records.Confirmations = c; return records }
	o := d.live()
	blobs := &besideBlobs{Blobs: o.Signer.Blobs}
	d.docs.Blobs = blobs
	o.Use(d.docs)
	cancel := func(id string) func() { return func() { d.must(other.Cancel(ctx, d.who, id)) } }
	propose := func() string {
		op, err := propose(ctx, o, d.who, d.order(o))
		d.must(err)
		d.must(op.Close())
		return op.ID
	}

	id := propose()
	blobs.meanwhile = cancel(id)
	_, err := o.Shown(ctx, d.who, id, 0, false)
	d.is("reading a document", err, fault.InvalidTransaction)

	id = propose()
	d.approve(id)
	blobs.meanwhile = cancel(id)
	_, err = o.Confirmed(ctx, d.who, confirmedOrder(id))
	d.is("carrying out", err, fault.InvalidTransaction)

	// The refusal of a cancellation names the state that refused it.
	id = propose()
	d.approve(id)
	records.meanwhile = func() {
		op, err := other.Confirmed(ctx, d.who, confirmedOrder(id))
		d.must(err)
		d.must(op.Close())
	}
	err = o.Cancel(ctx, d.who, id)
	d.is("cancelling", err, fault.WrongOperation)
	if f, ok := fault.As(err); !ok || !strings.HasSuffix(f.Message, "its state is Completed") {
		t.Errorf("cancelling what was just carried out: %v", err)
	}
	id = propose()
	records.meanwhile = cancel(id)
	d.must(o.Cancel(ctx, d.who, id)) // twice at once

	order := d.order(o)
	order.Async = true
	op, err := o.Start(ctx, d.who, order)
	d.must(err)
	blobs.meanwhile = cancel(op.ID)
	worked, err := o.Next(ctx)
	if d.must(err); !worked {
		t.Error("nothing was due")
	}
	if len(failed) > 0 {
		t.Errorf("cancelling an operation that runs: %v", failed)
	}
	got, err := o.Find(ctx, d.who, op.ID)
	if d.must(err); got.State != operation.Cancelled {
		t.Errorf("it is %s", got.State)
	}
}
