// SPDX-License-Identifier: Apache-2.0

package store_test

import (
	"bytes"
	"errors"
	"io/fs"
	"strings"
	"testing"
	"time"

	"tamga/internal/domain/fault"
	"tamga/internal/domain/operation"
	"tamga/internal/domain/signing"
)

// TestConfirmedResults follows the inline result of a confirmed operation: where it is stored, for how
// long, and that it does not count. What is stored for years does not grow with it, and the documents of
// the request are gone. The figures are logged.
func TestConfirmedResults(t *testing.T) {
	t.Parallel()
	for _, engine := range engines(t) {
		for _, row := range []struct {
			name, level string
			size        int // of the document
			blob        bool
		}{
			{"CAdES-BES of 1 KiB", "BES", 1 << 10, false},
			{"CAdES-XLT1 of 1 KiB", "XLT1", 1 << 10, false},
			{"CAdES-BES of 40 KiB", "BES", 40 << 10, true},
		} {
			t.Run(engine.name+"/"+row.name, func(t *testing.T) {
				ctx := t.Context()
				d := newDesk(t, engine.migrated(t))
				d.settings.Keep = time.Second // shorter than the time to repeat
				o := d.live()
				op, err := propose(ctx, o, d.who, &signing.OperationOrder{
					Type: "CAdES", Params: map[string]string{"IsDetached": "False", "CADESType": row.level}, PIN: "pin",
					Inputs: []signing.Input{{Content: d.intake(o, strings.Repeat("x", row.size)), Name: "one.txt"}},
				})
				d.must(err)
				contents := d.contents(op.ID)
				if d.blob(contents) != row.size {
					t.Errorf("the document of the request has %d bytes", d.blob(contents))
				}
				d.approve(op.ID)
				done, err := o.Confirmed(ctx, d.who, confirmedOrder(op.ID))
				d.must(err)
				size := int(done.Documents[0].Content.Size())
				first := d.look(done)
				if n := d.blob(contents); n >= 0 {
					t.Errorf("the document of the request is still stored: %d bytes", n)
				}
				c, _, err := d.records.ConfirmationContent(ctx, op.ID)
				d.must(err)
				r, _, err := d.world.operations.FindOperation(ctx, op.ID)
				d.must(err)
				if (r.Results != "") != row.blob || (len(r.Answer) > 0) == row.blob || r.Bytes != 0 || bytes.Contains(r.Answer, bytes.Repeat([]byte("x"), 64)) {
					t.Errorf("results %q, answer of %d bytes, %d bytes count", r.Results, len(r.Answer), r.Bytes)
				}
				if most := 1200; len(c.Result) > most {
					t.Errorf("%d bytes are stored with the confirmation, want at most %d: %.300s", len(c.Result), most, c.Result)
				}
				t.Logf("a result of %d bytes: %d with the confirmation, %d in the row, %d in a blob", size, len(c.Result), len(r.Answer), max(0, d.blob(r.Results)))

				// Only a repeated call gets it, until the end of its time.
				found, err := o.Find(ctx, d.who, op.ID)
				if d.must(err); found.State != operation.Completed || found.Documents[0].Name == "" || found.Documents[0].Content != nil {
					t.Errorf("found: %+v", found.Documents)
				}
				again := func() {
					t.Helper()
					d.must(o.Sweep(ctx))
					d.must(o.Signer.Blobs.SweepBlobs(ctx, d.clock()))
					other := confirmedOrder(op.ID)
					other.Form = operation.FormTransaction
					_, err := o.Confirmed(ctx, d.who, other)
					d.is("another form", err, fault.InvalidOperation)
					repeated, err := d.live().Confirmed(ctx, d.who, confirmedOrder(op.ID))
					d.must(err)
					if second := d.look(repeated); second != first {
						t.Errorf("again:\n%s\nfirst:\n%s", second, first)
					}
				}
				d.keys.down = errors.New("no key is needed")
				again()
				d.pass(5*time.Minute - time.Second)
				again()
				d.pass(time.Second)
				_, err = o.Confirmed(ctx, d.who, confirmedOrder(op.ID))
				d.is("after its time", err, fault.InvalidTransaction)
				d.must(o.Sweep(ctx))
				if _, found, err := d.world.operations.FindOperation(ctx, op.ID); found || err != nil {
					t.Errorf("the operation is still stored: %v", err)
				}
				if row.blob {
					if d.blob(r.Results) < size {
						t.Error("the result is gone while a reading that began in time may go on")
					}
					d.pass(3 * time.Minute)
					d.must(o.Signer.Blobs.SweepBlobs(ctx, d.clock()))
					if n := d.blob(r.Results); n >= 0 {
						t.Errorf("the result is still stored: %d bytes", n)
					}
				}
			})
		}
		t.Run(engine.name+"/a failure", func(t *testing.T) {
			d := newDesk(t, engine.migrated(t))
			o := d.live()
			order := d.order(o)
			order.Async = true
			op, err := propose(t.Context(), o, d.who, order)
			d.must(err)
			contents := d.contents(op.ID)
			d.approve(op.ID)
			d.keys.down = fault.New(fault.InvalidCertificate, "refused")
			worked, err := o.Next(t.Context())
			if d.must(err); !worked || d.blob(contents) >= 0 {
				t.Errorf("worked %v, and %d bytes of the request are still stored", worked, d.blob(contents))
			}
		})
	}
}

// contents returns the name of the blob with the documents of a request that waits for its confirmation.
func (d *desk) contents(id string) string {
	d.t.Helper()
	r, _, err := d.world.operations.FindOperation(d.t.Context(), id)
	if d.must(err); r.Contents == "" {
		d.t.Fatal("no documents are stored")
	}
	return r.Contents
}

// blob returns the size of a blob; below 0 if there is none.
func (d *desk) blob(name string) int {
	d.t.Helper()
	if name == "" {
		return -1
	}
	b, err := d.world.blobs.OpenBlob(d.t.Context(), name)
	if errors.Is(err, fs.ErrNotExist) {
		return -1
	}
	d.must(err)
	defer b.Close()
	return int(b.Size())
}
