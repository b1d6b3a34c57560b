// SPDX-License-Identifier: Apache-2.0

package signing

import (
	"errors"
	"testing"

	"tamga/internal/domain/fault"
	"tamga/internal/domain/operation"
	"tamga/sig/budget"
)

// TestBusyDocumentsAreSignedLater: a document of a waiting operation that finds no memory ends the attempt,
// so that the operation is tried again. At the last attempt the fault is that of the document, as it is
// for other faults at once.
func TestBusyDocumentsAreSignedLater(t *testing.T) {
	busy, ok := fault.As(translate(&budget.Exceeded{Kind: budget.ErrBusy}))
	if !ok {
		t.Fatal("a busy pool has no fault")
	}
	for _, c := range []struct {
		name        string
		more, again bool
		fault       *fault.Error
	}{
		{"an attempt before the last", true, true, busy},
		{"the last", false, false, busy},
		{"another fault", true, false, fault.New(fault.InvalidContent, "is no document")},
	} {
		r := &signRun{Operations: &Operations{}, run: &operation.Run{Again: c.more}}
		r.run.Documents = make([]operation.Document, 1)
		err := r.settle(t.Context(), 0, Outcome{Err: c.fault}, &request{})
		switch {
		case c.again && (!errors.Is(err, budget.ErrBusy) || r.run.Documents[0].Fault != nil):
			t.Errorf("%s: %v, and the document has %v", c.name, err, r.run.Documents[0].Fault)
		case !c.again && (err != nil || r.run.Documents[0].Fault != c.fault):
			t.Errorf("%s: %v, and the document has %v", c.name, err, r.run.Documents[0].Fault)
		}
	}
}
