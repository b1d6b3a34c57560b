// SPDX-License-Identifier: Apache-2.0

package signing

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"tamga/internal/domain/audit"
	"tamga/internal/domain/fault"
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
	plan, err := json.Marshal(&plan{Version: planVersion})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name     string
		attempts int
		fault    *fault.Error
		again    bool
	}{
		{"the first attempt", 1, busy, true},
		{"the last but one", 2, busy, true},
		{"the last", 3, busy, false},
		{"another fault", 1, fault.New(fault.InvalidContent, "is no document"), false},
	} {
		s := &Operations{Settings: OperationSettings{Attempts: 3}}
		r := &run{Operations: s, op: &Operation{Owner: audit.Principal{UserID: "u"}}}
		if err := s.attempt(t.Context(), r, &OperationRecord{Attempts: c.attempts, Plan: plan}); err != nil {
			t.Fatal(err)
		}
		r.op.Documents = make([]Processed, 1)
		err := r.settle(context.Background(), 0, Outcome{Err: c.fault}, &manner{})
		f, _ := fault.As(err)
		switch {
		case c.again && (!errors.Is(err, budget.ErrBusy) || !passing[f.Code] || r.op.Documents[0].Fault != nil):
			t.Errorf("%s: %v, and the document has %v", c.name, err, r.op.Documents[0].Fault)
		case !c.again && (err != nil || r.op.Documents[0].Fault != c.fault):
			t.Errorf("%s: %v, and the document has %v", c.name, err, r.op.Documents[0].Fault)
		}
	}
}
